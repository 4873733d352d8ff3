# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Sequence to sequence
#
# Read *jbkaelfchgdi* once, cover it, and write it down.
# A network can do so, too: one part of it reads a string, another part writes it again, and between the two stands a vector of $C$ numbers, whatever the length.
# The letters are random, so that nothing can be guessed: all has to pass through the vector.
#
# ```text
# j b k a e l <eos>   →   [ C numbers ]   →   j b k a e l <eos>
# ```
#
# **Can one vector of fixed size hand on a sentence of any length?**
# Move the slider.

# %%
import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence
from torch.optim.lr_scheduler import LinearLR

import course_utils as cu
from course_utils.data.text import BOS, EOS, PAD
from course_utils.data.translation import collate
from course_utils.lessons.sequence_to_sequence.runs import LENGTHS
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, small_world

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.squeezed_context()

# %% [markdown]
# More room moves the curve to the right, up to a point, and more training does (dotted); but each of them falls.
# The dashed line hardly does: the same network, trained as briefly, with a decoder that may **look back** at the string before each letter.
# That is attention, and the next chapter.
# (Means of three seeds, the dots; each size at the best of three learning rates, by validation with one seed.)
#
# By counting, there is room enough: 8 letters out of 12 are 29 bits, and a single number of the vector has 32.
# But the network has to *find* a code, and a way to undo it, by gradient descent.
#
# This chapter builds that network, and makes it translate.
# After it you can
#
# - turn sentence pairs into batches of numbers;
# - write a step of a GRU, an encoder–decoder and its training loop;
# - compute a loss that padding cannot change, and decode a batch greedily.
#
# It needs [Masks](04_masks.ipynb): padding and valid lengths.

# %% jupyter={"source_hidden": true}
cu.recall("scoring_functions", "masks")

# %% [markdown]
# ## From sentences to batches
#
# Our data are short English sentences that a grammar makes from 200 words, with their French translations, and a few written by hand.
# They are cut into **tokens**: words and punctuation marks; an apostrophe stays inside its word.

# %%
world = small_world("fr")
print("to learn, choose, test:", *map(len, (world.train, world.val, world.test)))
some = [(" ".join(pair.source), " ".join(pair.target)) for pair in world.test[:6]]
pd.DataFrame(some, columns=["English", "French"])

# %% [markdown]
# Each token gets a number, its place in the **vocabulary**, made from training sentences alone.
# Four **special tokens** come first: `<pad>` fills up, `<unk>` stands for a word that the vocabulary lacks, `<bos>` and `<eos>` are the beginning and the end of a sentence.
# A network computes with vectors, so each token also gets a row of a table, its **embedding**; the rows are learned like all other weights.
#
# Sentences of a batch differ in length, and a tensor has one length.
# So the shorter ones are padded to the longest, and their real lengths are kept; the row of `<pad>` is zero and stays zero.
# The target is needed twice.
# At each step the decoder reads the token before and has to say the next one; so what it reads begins with `<bos>`, and what it has to say is the same, **shifted by one**, and ends with `<eos>`.

# %%
english, french = world.source_vocab, world.target_vocab
two = {"i'm home .": "je suis chez moi .", "i lost .": "j'ai perdu ."}
ids = [(english.encode(e.split()), french.encode(f.split())) for e, f in two.items()]
tiny = collate(ids)
named = {"source": english, "target_in": french, "target_out": french}
words = {
    name: [" ".join(vocab.tokens[i] for i in row) for row in getattr(tiny, name)]
    for name, vocab in named.items()
}
print(f"source as numbers: {tiny.source.tolist()}, lengths {tiny.source_lens.tolist()}")
pd.DataFrame(words, index=["pair 0", "pair 1"]).T

# %% [markdown]
# ## A network that reads
#
# A **recurrent network** reads tokens one after the other and carries a vector from each to the next: its **state** $h_t$.
# The simplest, often called RNN, computes the new state from the embedding $x_t$ of the token and the old state:
#
# $$h_t = \tanh(x_t W + h_{t-1} U + b).$$
#
# The same $W$, $U$ and $b$ serve at every step, so that a sentence may have any length.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cells = {"cell": 16}
cu.Drawing(
    """
    h0 s1 h1 s2 h2 s3 h3
    .  x1 .  x2 .  x3 .
    .  w1 .  w2 .  w3 .
    """,
    nodes={
        "h0": cu.Note("h_0 = 0"),
        **{f"s{t}": cu.Box("tanh", color="wash") for t in (1, 2, 3)},
        **{f"h{t}": cu.Note(f"h_{t}") for t in (1, 2, 3)},
        **{f"x{t}": cu.Cells(1, 3, f"x_{t}", color="line", **cells) for t in (1, 2, 3)},
        **{f"w{t}": cu.Note(word) for t, word in enumerate(("i'm", "home", "."), 1)},
    },
    arrows=["h0 -> s1 -> h1 -> s2 -> h2 -> s3 -> h3",
            *(f"w{t} -> x{t} -> s{t}" for t in (1, 2, 3))],
    alt="Three steps side by side: each takes the state from the step before and the embedding of its word, "
    "i'm, home and the full stop, and hands a new state on to the next.",
    gap=(16, 20), flow="right",
)  # fmt: skip

# %% [markdown]
# The gradient goes the same way back, step by step: **backpropagation through time**.
# Each step multiplies it by the slope of tanh and by $U$; if both are small, little of it reaches the first words.
# This is the **vanishing gradient**, and what is too far back is hardly learned.
#
# The **gated recurrent unit**, GRU ([Cho et al., 2014](https://arxiv.org/abs/1406.1078); here in PyTorch's form), has a way past tanh.
# It computes a *proposal* $n$, and two **gates**, vectors of numbers between 0 and 1, decide feature by feature.
# The **update gate** $z$ decides how much of the old state is kept, the **reset gate** $r$ how much of it the proposal sees.
# (The older **LSTM** of Hochreiter and Schmidhuber, 1997, has a second state, and now three gates.)
#
# $$\begin{aligned}
# z &= \sigma(xW_z + hU_z), & r &= \sigma(xW_r + hU_r),\\
# n &= \tanh\big(xW_n + r\odot(hU_n)\big), & h' &= (1-z)\odot n + z\odot h.
# \end{aligned}$$
#
# ($\odot$ multiplies feature by feature, $\sigma(a) = 1/(1 + e^{-a})$, biases are left out.)
# By hand, with one feature: $h = 0.5$, $n = -0.3$ and $z = 0.75$ give $h' = 0.25\cdot(-0.3) + 0.75\cdot 0.5 = 0.3$.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    x     .      .       h
    .     reset  update  .
    .     seen   .       .
    prop  .      .       .
    mix   mix    mix     mix
    new   new    new     new
    """,
    nodes={
        "x": cu.Cells(1, 3, "x: word", color="line", **cells),
        "h": cu.Cells(1, 3, "h: old state", color="plum", **cells),
        "reset": cu.Box("reset gate r"),
        "update": cu.Box("update gate z"),
        "seen": cu.Box("r ⊙ (h U_n)"),
        "prop": cu.Box("tanh(x W_n + …): proposal n"),
        "mix": cu.Box("mix: (1 − z) ⊙ n + z ⊙ h", color="wash"),
        "new": cu.Cells(1, 3, "h': new state", color="plum", **cells),
    },
    arrows=["x, h -> reset", "x, h -> update", "reset -> seen", "h -> seen", "seen -> prop", "x -> prop",
            "prop -> mix -> new", "update -> mix", "h -> mix"],
    alt="Word and old state give a reset gate and an update gate. The reset gate decides how much of the old state "
    "the proposal sees; the word enters it, too. The update gate mixes the proposal with the old state, which also comes directly.",
    gap=(26, 24),
)  # fmt: skip


# %%
def gru_step(x, h, W, U, b, c):
    """x (batch, input), h (batch, hidden); W, U, b, c hold r, z, n below each other."""
    x_r, x_z, x_n = (x @ W.T + b).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ U.T + c).chunk(3, dim=-1)
    r = (x_r + h_r).sigmoid()
    z = (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    return (1 - z) * n + z * h


shapes = (3, 5), (3, 4), (12, 5), (12, 4), (12,), (12,)  # x, h, W, U, b, c
cu.equal(gru_step, torch.gru_cell, *map(torch.randn, shapes))


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def gradients(cell, steps=20):
    """Lengths of the gradients at h_1, …, h_20, as shares of the last."""
    h, states = torch.zeros(100, 64), []
    for _ in range(steps):
        h = cell(torch.randn(100, 32), h.requires_grad_())
        states.append(h)
    found = torch.autograd.grad((h * torch.randn_like(h)).sum(), states)
    return [(g.norm() / found[-1].norm()).item() for g in found]


open_bias = 3.0
held = nn.GRUCell(32, 64)
with torch.no_grad():
    held.bias_ih[64:128] = open_bias  # of the update gate: sigmoid(3) = 0.95
turning = nn.RNNCell(32, 64)
nn.init.orthogonal_(turning.weight_hh)
arrives = {
    "tanh": nn.RNNCell(32, 64),
    "tanh, orthogonal U": turning,
    "GRU": nn.GRUCell(32, 64),
}
arrives = {name: gradients(cell) for name, cell in arrives.items()}
arrives["GRU, gate held at 0.95"] = gradients(held)
back = {name: shares[::-1] for name, shares in arrives.items()}
cu.show_curves(
    list(range(20)), back, xlabel="steps back", ylabel="share of the gradient", logy=True, height=3,
    alt="Share of the gradient that arrives, on a logarithmic axis, over the steps back. For tanh and for a GRU it falls "
    "below a thousandth at the first step; with an orthogonal U about a hundredth is left, with the update gate near 0.95 a third.",
)  # fmt: skip

# %% [markdown]
# How much of the gradient at step 20 arrives at the steps before?
# Words and weights are random: an untrained GRU forgets, too.
# An orthogonal $U$, which keeps lengths, helps tanh; an update gate near 1 (here a bias makes it 0.95) helps more, and a gate can be *learned*.
#
# ## Encoder and decoder
#
# Two recurrent networks make a translator (LSTMs in [Sutskever et al., 2014](https://arxiv.org/abs/1409.3215), GRUs in Cho et al., 2014, and here).
# The **encoder** reads the source, here in both directions, and leaves its two last states: the **context** $c$.
# The **decoder** begins with a state made from $c$, and at each step reads the token before, and $c$ again.
# Its output layer gives a **logit** for each French token; their softmax is the probability of the next token.
#
# `pack_padded_sequence` tells the encoder where each sentence ends: its forward state is taken at the last *real* token, not at the last `<pad>`.
# What the decoder carries from step to step, the context and its hidden state, is a dictionary, `state`; `room` squeezes the context, as for the strings above.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    .     .      out
    .     .      combine
    .     bridge D
    C     .      join
    E     .      tin
    src   .      .
    """,
    nodes={
        "src": cu.Box("source embedding", shape="(batch, source, 64)", color="line"),
        "E": cu.Box("encoder: GRU, both directions", shape="last states (2, batch, 96)", color="wash"),
        "C": cu.Cells(1, 6, "context c", shape="(batch, 192)", color="plum", cell=16),
        "bridge": cu.Box("bridge: linear, tanh", shape="(1, batch, 96)"),
        "D": cu.Box("decoder: GRU", shape="(batch, steps, 96)", color="wash"),
        "join": cu.Box("join", shape="(batch, steps, 256)"),
        "tin": cu.Box("target embedding", shape="(batch, steps, 64)", color="line"),
        "combine": cu.Box("combine: linear, tanh", shape="(batch, steps, 64)"),
        "out": cu.Box("output: linear", shape="logits (batch, steps, French)", color="wash"),
    },
    arrows=["src -> E -> C", "bridge -> D -> combine -> out", "tin -> join -> D",
            cu.Arrow("C", "bridge", start="top", end="left"),
            cu.Arrow("C", "join", label="c, beside each token"),
            cu.Arrow("C", "combine", start="top", end="left", label="c, at every step")],
    alt="The source embedding goes into the encoder, whose last states are the context. A bridge makes the decoder's "
    "first state from it. The decoder reads the target embedding, joined with the context; its states, "
    "joined with the context again, go through combine and output to the logits.",
    gap=(30, 26),
)  # fmt: skip


# %%
class Translator(nn.Module):
    """A sentence → one vector, of `room` numbers if given → its copy or translation."""

    def __init__(
        self, source_size, target_size, embed_dim=64, hidden_dim=96, room=None
    ):  # fmt: skip
        super().__init__()
        self.source_embedding = nn.Embedding(source_size, embed_dim, padding_idx=PAD)
        self.target_embedding = nn.Embedding(target_size, embed_dim, padding_idx=PAD)
        self.encoder = nn.GRU(
            embed_dim, hidden_dim, batch_first=True, bidirectional=True
        )  # fmt: skip
        self.squeeze = nn.Linear(2 * hidden_dim, room) if room else nn.Identity()
        room = room or 2 * hidden_dim
        self.bridge = nn.Linear(room, hidden_dim)
        self.decoder = nn.GRU(embed_dim + room, hidden_dim, batch_first=True)
        self.combine = nn.Linear(hidden_dim + room, embed_dim)
        self.output = nn.Linear(embed_dim, target_size)

    def start(self, source, source_lens):
        """Read the source (batch, length): context, and the decoder's first state."""
        embedded = self.source_embedding(source)  # (batch, length, embed)
        real = pack_padded_sequence(  # without the padding
            embedded, source_lens, batch_first=True, enforce_sorted=False
        )  # fmt: skip
        _, last = self.encoder(real)  # (2, batch, hidden): forwards, backwards
        both = torch.cat([last[0], last[1]], dim=-1)  # (batch, 2 · hidden)
        context = self.squeeze(both)  # (batch, room)
        return {"context": context, "hidden": self.bridge(context).tanh()[None]}

    def decode(self, tokens, state):
        """Read target tokens (batch, steps): logits of the next; the state moves on."""
        embedded = self.target_embedding(tokens)  # (batch, steps, embed)
        # the same context beside each token: (batch, room) → (batch, steps, room)
        context = state["context"][:, None].expand(-1, tokens.shape[1], -1)
        joined = torch.cat([embedded, context], dim=-1)
        hidden, state["hidden"] = self.decoder(joined, state["hidden"])
        combined = self.combine(torch.cat([hidden, context], dim=-1)).tanh()
        return self.output(combined)  # (batch, steps, French)

    def step(self, tokens, state):
        return self.decode(tokens[:, None], state)[:, 0]

    def forward(self, source, source_lens, target_in):
        return self.decode(target_in, self.start(source, source_lens))


# %% [markdown]
# ## What counts as an error, and the training loop
#
# While it learns, the decoder does not read its own words, which are nonsense at first, but the right ones, `target_in`.
# This is **teacher forcing**: all steps of a sentence are judged at once, and the step that should say $y$ costs $-\log p(y)$.
# It has a price, **exposure bias**: later the decoder reads its own words, mistakes included, and has never learned to go on from a mistake.
#
# The loss of a batch is the mean.
# **Of what?**
# Two sentences of 1 and 3 tokens are padded to 4 places.
# Each token of the short one costs 2, each of the long one 1, each `<pad>` 0.
#
# - Over all places the mean is 5/8, and the more padding, the better it looks.
# - Of each sentence, then of both, it is 3/2: a word of the short one counts three times as much.
# - Over all tokens it is 5/4, which we take.
#
# ### Exercise 1 · A loss that padding cannot change
#
# *build · 9 minutes*
#
# Write the mean of $-\log p(y)$ over the real tokens of a batch.
# The logits at padding may be anything, and get no gradient.
# From [Masks](04_masks.ipynb) you know how lengths become a mask; `F.cross_entropy(logits, targets)` takes (tokens, French) and (tokens,).


# %% tags=["exercise", "build"]
def my_masked_loss(logits, targets, lens):
    """(batch, steps, French), (batch, steps), (batch,) → a scalar."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_masked_loss(my_masked_loss)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_masked_loss_solution(logits, targets, lens):
    """A boolean mask (batch, steps) picks the real tokens, in logits and targets alike."""
    real = torch.arange(targets.shape[1]) < lens[:, None]
    return F.cross_entropy(logits[real], targets[real])


cu.checks.my_masked_loss(my_masked_loss_solution)


# %% [markdown]
# A **pass** (or epoch) reads all training pairs once, and then the held-out ones without learning.
# Adam is gradient descent that adapts the step of each parameter; its rate falls in a straight line to 0, and a gradient longer than 1 is shortened to 1.


# %%
def masked_loss(logits, targets, lens):  # the course's version
    steps = torch.arange(targets.shape[1])
    return F.cross_entropy(
        logits.mT, targets.masked_fill(steps >= lens[:, None], PAD), ignore_index=PAD
    )


mean_loss = cu.choose(my_masked_loss, masked_loss)


def batch_loss(model, batch):  # summed loss, number of tokens
    logits = model(batch.source, batch.source_lens, batch.target_in)
    mean = mean_loss(logits, batch.target_out, batch.target_lens)
    return mean * batch.num_tokens, batch.num_tokens


hidden_dim = 96  # try 16 … 128
sizes = len(english), len(french)
untrained = Translator(*sizes, hidden_dim=hidden_dim)
rate = 5e-3  # try 0.001 … 0.02
cu.before_training(untrained, next(iter(world.loader(world.val))), batch_loss, lr=rate)


# %% tags=["nbval-ignore-output"]
def train(model, batches, held_out, loss, passes, rate):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    decay = LinearLR(optimizer, 1.0, 0.0, passes * len(batches))
    history = []
    for _ in range(passes):
        read = []
        for batch in batches:
            summed, tokens = loss(model, batch)
            optimizer.zero_grad()
            (summed / tokens).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            decay.step()
            read.append((summed.item(), tokens))
        with torch.no_grad():
            unread = [loss(model, batch) for batch in held_out]
        sums = [map(sum, zip(*rows, strict=True)) for rows in (read, unread)]
        history.append([float(total / count) for total, count in sums])
        print("training loss {:.2f}, held-out loss {:.2f}".format(*history[-1]))
    return history


passes = 6  # try 1 … 10
cu.seed_everything(0)
translator = Translator(*sizes, hidden_dim=hidden_dim)
val = list(world.loader(world.val, shuffle=False))
history = train(translator, world.loader(world.train), val, batch_loss, passes, rate)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
blind_runs = cu.stored_runs("sequence_to_sequence", "fixed_context", source=False)
blind = sum(run.result["val_loss"] for run in blind_runs) / len(blind_runs)
fig, ax = cu.subplots(
    width=6.2, height=3.0,
    alt="Loss per token over the passes. The training loss and the held-out loss fall; the held-out loss ends above the "
    "training loss. Both end far below the dotted line of a decoder that does not see the source.",
)  # fmt: skip
number = range(1, passes + 1)
ax.plot(number, [row[0] for row in history], "-o", label="training pairs")
ax.plot(number, [row[1] for row in history], "-s", label="held-out pairs")
ax.axhline(blind, linestyle=":", color="0.3", label="blind, held-out")
ax.set(xlabel="pass", ylabel="loss per token", ylim=(0, None))
ax.legend()
fig

# %% [markdown]
# Is a loss good?
# The dullest rival is the same decoder, blind: its context is always zero.
# Its held-out loss (stored, mean of three seeds) is the dotted line.
# What lies below it came through the vector.
# At the end the training loss is below the held-out loss: the network learns pairs by heart, too.
#
# ## Word by word
#
# To translate, nobody hands over the right words.
# **Greedy decoding** takes the likeliest token, hands it back as the next input, and goes on until `<eos>`.
#
# ### Exercise 2 · Find the bug
#
# *bug · 8 minutes*
#
# This greedy decoder is right for one sentence.
# In a batch it loses ends: compare the two lines for *i'm home .* below.
# Find out why, and write a version that returns, for each sentence, its list of ids without `<bos>` and `<eos>`; a sentence that never ends stops after `max_len` tokens.


# %% tags=["nbval-ignore-output"]
@torch.no_grad()
def buggy_decoding(model, source, source_lens, max_len):
    state = model.start(source, source_lens)
    tokens = torch.full((len(source),), BOS)
    sentences = [[] for _ in source]
    for _ in range(max_len):
        tokens = model.step(tokens, state).argmax(dim=-1)  # (batch,)
        if (tokens == EOS).any():
            break
        for sentence, token in zip(sentences, tokens.tolist(), strict=True):
            sentence.append(token)
    return sentences


heard = {}
for neighbor in ("i'm home .", "go ."):
    asked = [english.encode(text.split()) for text in ("i'm home .", neighbor)]
    both = collate(list(zip(asked, asked, strict=True)))
    heard[neighbor] = buggy_decoding(translator, both.source, both.source_lens, 20)[0]
    print(f"beside {neighbor!r}:", *french.decode(heard[neighbor]))


# %% tags=["exercise", "bug"]
def fixed_decoding(model, source, source_lens, max_len):
    """Ids (batch, length), lengths (batch,) → a list of ids for each sentence."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_decoding(fixed_decoding)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
@torch.no_grad()
def fixed_decoding_solution(model, source, source_lens, max_len):
    """The batch ends when ALL its sentences have ended; a finished sentence gets no more tokens."""
    state = model.start(source, source_lens)
    tokens = torch.full((len(source),), BOS)
    sentences, finished = [[] for _ in source], [False] * len(source)
    for _ in range(max_len):
        tokens = model.step(tokens, state).argmax(dim=-1)
        for row, token in enumerate(tokens.tolist()):
            finished[row] = finished[row] or token == EOS
            if not finished[row]:
                sentences[row].append(token)
        if all(finished):
            break
    return sentences


cu.checks.fixed_decoding(fixed_decoding_solution)


# %% tags=["nbval-ignore-output"]
decode = cu.choose(fixed_decoding, cu.greedy)


def translate(model, sentences):
    encoded = [english.encode(sentence.split()) for sentence in sentences]
    batch = collate([(row, row) for row in encoded])
    rows = decode(model, batch.source, batch.source_lens, max_len=20)
    return [" ".join(french.decode(row)) for row in rows]


mine = "we lost the book ."  # try "we lost the book ." | "the cat is hungry ."
right = [" ".join(pair.target) for pair in world.test]
test_said = translate(translator, [" ".join(pair.source) for pair in world.test])
exact = sum(map(str.__eq__, test_said, right)) / len(right)
print(f"test sentences: BLEU {cu.bleu(test_said, right):.2f}, exactly {exact:.0%}")

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
known = [(text, min(world.references[text])) for text in FOUR]
shown = pd.DataFrame([(mine, ""), *known, *some], columns=["English", "French"])
shown.insert(1, "our network", translate(translator, shown["English"]))
shown

# %% [markdown]
# First your sentence (change `mine`; unknown words become `<unk>`), then four that it has read (*va !* is right, too), then six test sentences.
#
# ### A number for translations
#
# **BLEU** ([Papineni et al., 2002](https://aclanthology.org/P02-1040/)) counts **n-grams**, runs of $n$ neighboring tokens.
# For $n$ = 1 to 4 the precision $p_n$ is the share of the translations' n-grams that the references have, too.
# A token counts at most as often as in the reference: *the the the the the the the* against *the cat is on the mat* has $p_1 = 2/7$.
# With $c$ tokens said and $r$ in the references (the paper's letters),
#
# $$\mathrm{BLEU} = \min\big(1, e^{1 - r/c}\big)\cdot(p_1\,p_2\,p_3\,p_4)^{1/4}.$$
#
# The first factor punishes what is too short.
# By hand: *il est mouillé .* for *il est calme .* has $p_1 = 3/4$ and $p_2 = 1/3$, so with $n\le 2$ BLEU is $\sqrt{1/4} = 0.5$.
# One in five test sentences came out exactly; BLEU also counts what is right in the others.

# %% jupyter={"source_hidden": true}
cu.quiz("sequence_to_sequence", "loss_near_zero", "clipped")

# %% [markdown]
# ## Is the vector too small?
#
# For the strings one of 4 numbers was; beyond 16 more training helped, more room hardly.
# For French the obvious control is a network twice as wide in all its parts (stored runs of 24 passes).
# If room is what is missing, it must help most where sentences are long.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
wide = cu.stored_runs("sequence_to_sequence", "fixed_context", passes=24)
chosen = cu.stored_runs("sequence_to_sequence", "fixed_context", lowest="val_loss", passes=24)
groups = [f"test_exact, {length}" for length in LENGTHS]
every = pd.DataFrame([run.config | run.result for run in wide])
control = every.groupby(["hidden_dim", "rate"])[groups].mean()
fig, ax = cu.subplots(
    width=6.4, height=3.6,
    alt="Share of new sentences translated exactly, over the length of the source. All lines fall from the shortest to the longest. At the rate 0.004 twice "
    "the width is ahead at each length, most at the longest; at 0.009 it is not. Points are seeds.",
)  # fmt: skip
for (width, at), shares in control.iterrows():
    style = "-" if at == min(every["rate"]) else "--"
    color = cu.COLORS["key" if width == 192 else "wrong"]
    ax.plot(range(4), shares, style, color=color, label=f"{width} wide, rate {at:g}")
    seeds = every[(every["hidden_dim"] == width) & (every["rate"] == at)][groups]
    ax.plot(range(4), seeds.T, "o", color=color, markersize=3, alpha=0.5)
ax.set_xticks(range(4), ["≤ 5", "6", "7", "8–10"])
ax.set(xlabel="English tokens", ylabel="new sentences exactly right", ylim=(0, 1))
ax.legend()
fig

# %% [markdown]
# At the rate 0.004 twice the width helps at each length on average, and most where sentences are long; at 0.009 it helps nowhere (three seeds each, 55 long sentences).
# Who compares at 0.009 alone concludes that room is not what is missing.
# Each side gets its own rate, by the held-out loss: [A control is a tuned control](G_controls.ipynb).
# And even then: a wider network has a larger encoder and decoder, too.
#
# On millions of real pairs [Cho et al. (2014b)](https://arxiv.org/abs/1409.1259) saw the BLEU of fixed vectors fall steeply for long sentences.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Through 20 steps an open gate hands on more gradient than an orthogonal U, and an orthogonal U more than tanh.",
    given=(hidden_dim, rate, passes, open_bias) == (96, 0.005, 6, 3.0),
):
    tanh, orthogonal, gru, open_gate = (shares[0] for shares in arrives.values())
    assert max(tanh, gru) < 0.001 and 0.003 < orthogonal < 0.03 and open_gate > 0.2
    assert torch.equal(tiny.target_in[0, 1:], tiny.target_out[0, :-1])
    assert history[-1][0] < history[-1][1] < blind
    assert heard["i'm home ."] != heard["go ."]
    assert exact < cu.bleu(test_said, right)

with cu.guard(
    "A state of four numbers loses strings first, beyond 16 numbers more training helps more, and a look back copies everything."
):
    copied = cu.stored_runs("sequence_to_sequence", "copier", lowest="val_loss")
    eight = pd.DataFrame([{"passes": 4} | r.config | r.result for r in copied])
    eight = eight.groupby(["room", "passes"])["right, 8"].mean()
    assert eight[4, 4] < 0.1 < eight[16, 4] < eight[128, 4] < eight[16, 4] + 0.15
    assert eight[128, 4] + 0.3 < eight[128, 12] < eight[0, 4]

with cu.guard(
    "At a rate of 0.004 twice the width helps, most of all with long sentences, and at 0.009 it doesn't."
):
    gain = control.loc[192] - control.loc[96]
    assert gain.loc[0.009, groups[0]] < 0.02 and gain.loc[0.009, groups[-1]] < 0.02
    assert 0.02 < gain.loc[0.004, groups[0]] < gain.loc[0.004, groups[-1]]
    assert {run.config["rate"] for run in chosen} == {0.004}

# %% [markdown]
# ## Take-aways
#
# - Encoder, one context vector, decoder: a sequence to sequence model in one class.
#   The longer a string, the likelier it comes out broken, at every size.
# - A recurrent network hands its state from token to token; gates can learn to keep it, and the gradient with it.
# - The decoder reads the target shifted by one, and the loss is a mean over real tokens.
#   Compare it with that of a blind decoder.
#
# Next: [Bahdanau attention: learning to align](06_bahdanau_attention.ipynb), where the decoder makes a context of its own for each word.
# BLEU in full, what fixed lengths do, and how the papers' models differ: [Sequence to sequence: BLEU, fixed lengths and the papers' models](05_sequence_to_sequence_further.ipynb).
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("sequence_to_sequence")

# %% [markdown]
# ## References
#
# - Cho, K. et al. (2014).
#   [Learning phrase representations using RNN encoder–decoder for statistical machine translation](https://arxiv.org/abs/1406.1078).
#   EMNLP.
#   The GRU.
# - Hochreiter, S. and Schmidhuber, J. (1997).
#   [Long short-term memory](https://doi.org/10.1162/neco.1997.9.8.1735).
#   Neural Computation 9(8), 1735–1780.
# - Papineni, K., Roukos, S., Ward, T. and Zhu, W.-J.
#   (2002).
#   [BLEU: a method for automatic evaluation of machine translation](https://aclanthology.org/P02-1040/).
#   ACL.
# - Cho, K., van Merriënboer, B., Bahdanau, D. and Bengio, Y. (2014b).
#   [On the properties of neural machine translation: encoder–decoder approaches](https://arxiv.org/abs/1409.1259).
#   Workshop on Syntax, Semantics and Structure in Statistical Translation.
# - Sutskever, I., Vinyals, O. and Le, Q. V. (2014).
#   [Sequence to sequence learning with neural networks](https://arxiv.org/abs/1409.3215).
#   NeurIPS.
