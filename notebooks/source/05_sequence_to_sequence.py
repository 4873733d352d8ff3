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
# Read this sentence once, then cover it and write it in another language: *the old woman gave the red book to my brother near the station yesterday*.
# All pictures of a set can be scaled to one size; a sentence cannot.
# **Can a network translate a sentence of any length if all that it keeps of it is one vector of fixed size?**
#
# ```text
# i'm home . <eos>   →   [ one vector ]   →   je suis chez moi . <eos>
# ```
#
# After this chapter you can
#
# - turn sentence pairs into batches of numbers, with padding, lengths and shifted targets;
# - say what a recurrent network and a GRU compute, and write a step of a GRU;
# - write an encoder–decoder as one class, and its training loop;
# - compute a loss that padding cannot change, and decode a batch greedily;
# - plan controls for a claim such as "the vector is too small", and read what they allow.
#
# It needs [Masks](04_masks.ipynb): padding and valid lengths.
# Attention comes in the next chapter.

# %%
import math
import random

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence
from torch.optim.lr_scheduler import LinearLR

import course_utils as cu
from course_utils.data.text import BOS, EOS, PAD, SPECIALS
from course_utils.data.translation import collate
from course_utils.figures import label_lines
from course_utils.lessons.sequence_to_sequence.runs import LENGTHS
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, small_world

cu.seed_everything(0)

# %% jupyter={"source_hidden": true}
cu.recall("scoring_functions", "masks")

# %% [markdown]
# ## From sentences to batches
#
# Our data are a small world: short English sentences that a grammar makes from 200 words, with their French translations, and a few written by hand.
# They are cut into **tokens**: words and punctuation marks, in lower case; an apostrophe stays inside its word.

# %%
world = small_world("fr")
print("to learn, choose, test:", *map(len, (world.train, world.val, world.test)))
some = random.Random(4).sample(world.test, 6)
texts = [(" ".join(pair.source), " ".join(pair.target)) for pair in some]
pd.DataFrame(texts, columns=["English", "French"])

# %% [markdown]
# Pairs were dealt out by their *English* sentence: none of the 400 test sentences is in the training part, not even with another translation.
#
# Each token gets a number, its place in the **vocabulary**.
# Four **special tokens** come first: `<pad>` fills up, `<unk>` stands for a word that the vocabulary lacks, `<bos>` and `<eos>` are the beginning and the end of a sentence.
# Only training sentences give words.
#
# Sentences of a batch differ in length, and a tensor has one length.
# So the shorter ones are padded to the longest, and their real lengths are kept.
# The target is needed twice: as what the decoder reads, beginning with `<bos>`, and **shifted by one**, as what it has to say, ending with `<eos>`.

# %%
english, french = world.source_vocab, world.target_vocab
print(f"{len(english)} English tokens, {len(french)} French; 0 to 3: {SPECIALS}")
two = {"i'm home .": "je suis chez moi .", "i lost .": "j'ai perdu ."}
ids = [(english.encode(e.split()), french.encode(f.split())) for e, f in two.items()]
tiny = collate(ids)
print(tiny.target_out, tiny.target_lens)
named = {"source": english, "target_in": french, "target_out": french}
words = {
    name: [" ".join(vocab.tokens[i] for i in row) for row in getattr(tiny, name)]
    for name, vocab in named.items()
}
pd.DataFrame(words, index=["pair 0", "pair 1"]).T

# %% [markdown]
# In pair 0 the decoder has to say *je* after `<bos>`, *suis* after *je*, …, and `<eos>` after the full stop: its length is 6.
# Pair 1 has 4 tokens that count, and two `<pad>`.
#
# Padding is work for nothing, so our loader puts sentences of similar length into a batch.
# Others give all sentences the same number of places, and **truncate** longer ones, that is, cut them off: what this costs is measured on the [further page](05_sequence_to_sequence_further.ipynb#A-fixed-number-of-places).
#
# ### Exercise 1 · Count the places
#
# *predict · 5 minutes*
#
# Three targets of 2, 5 and 3 words are padded to the longest. (a) How many columns has `target_out`? (b) How many of its tokens count in the loss? (c) How many `<pad>` are in it?
# Now every target gets 4 places, the special token at its end included, and longer ones are truncated: (d) how many tokens count? (e) How many sentences lose their `<eos>`?


# %% tags=["exercise", "predict"]
def predicted_counts():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.predicted_counts(predicted_counts)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_counts_solution():
    """5 + 1; 3 + 6 + 4; 3 · 6 − 13; 3 + 4 + 4; only the sentence of five words loses its <eos>."""
    return [6, 13, 5, 11, 1]


cu.checks.predicted_counts(predicted_counts_solution)

# %% jupyter={"source_hidden": true}
cu.quiz("sequence_to_sequence", "shape")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("No test sentence was read, and what is said is what is read, shifted by one."):
    assert not {p.source for p in world.train} & {p.source for p in world.test}
    assert tiny.target_lens.tolist() == [6, 4]
    assert torch.equal(tiny.target_in[0, 1:], tiny.target_out[0, :-1])

# %% [markdown]
# ## A network that reads
#
# A **recurrent network** reads tokens one after the other and carries a vector from each to the next: its **state** $h_t$.
# The simplest one, often just called RNN, computes the new state from the embedding $x_t$ of the token and the old state:
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
# Here all that the state holds passes through $U$ and tanh at every step; nothing is simply kept.
# The **gated recurrent unit**, GRU ([Cho et al., 2014](https://arxiv.org/abs/1406.1078); here in PyTorch's form), computes a *proposal* $n$, and two **gates**, vectors of numbers between 0 and 1, decide feature by feature.
# The **update gate** $z$ decides how much of the old state is kept, the **reset gate** $r$ how much of it the proposal sees.
# ($\odot$ multiplies feature by feature, $\sigma(a) = 1/(1 + e^{-a})$, biases are left out.)
#
# $$\begin{aligned}
# z &= \sigma(xW_z + hU_z), & r &= \sigma(xW_r + hU_r),\\
# n &= \tanh\big(xW_n + r\odot(hU_n)\big), & h' &= (1-z)\odot n + z\odot h.
# \end{aligned}$$
#
# By hand, with one feature: $h = 0.5$, $n = -0.3$ and $z = 0.75$ give $h' = 0.25\cdot(-0.3) + 0.75\cdot 0.5 = 0.3$.
#
# Below, the data flow of a step ($x$ and $h$ also enter the proposal, not drawn), and its code.
# PyTorch stores the three $W$ below each other and transposed, as one tensor (3 · hidden, input), and the three $U$ as (3 · hidden, hidden), in the order $r$, $z$, $n$.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    x     .       h
    reset update  .
    seen  .       .
    prop  .       .
    mix   mix     mix
    new   new     new
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
    arrows=["x, h -> reset", "x, h -> update", "reset -> seen -> prop -> mix -> new",
            "update -> mix", "h -> mix"],
    alt="Word and old state give a reset gate and an update gate. The reset gate decides how much of the old state "
    "the proposal sees. The update gate mixes the proposal with the old state, which also comes directly.",
    gap=(26, 24),
)  # fmt: skip

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "An update gate is 0.75 at every step. Which share of an old state is left after ten steps?",
    ["about 75 %", "about 25 %", "about 6 %"],
    answer="about 6 %",
    wrong={
        "about 75 %": "That is what one step leaves. And the second?",
        "about 25 %": "Two steps leave 0.75 · 0.75 = 0.56, and there are eight more.",
    },
    why="Each step multiplies it by 0.75, and 0.75¹⁰ = 0.056.",
    shows={"Update gate z": 0.75, "Step": 10},
)


# %%
def gru_step(x, h, W, U, b, c):
    """x (batch, input), h (batch, hidden); b, c biases → new state (batch, hidden)."""
    x_r, x_z, x_n = (x @ W.T + b).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ U.T + c).chunk(3, dim=-1)
    r = (x_r + h_r).sigmoid()
    z = (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    return (1 - z) * n + z * h


shapes = (3, 5), (3, 4), (12, 5), (12, 4), (12,), (12,)  # x, h, W, U, b, c
cu.equal(gru_step, torch.gru_cell, *map(torch.randn, shapes))

# %% jupyter={"source_hidden": true}
cu.explore.gated_memory()

# %% [markdown]
# Our step equals PyTorch's in the new state and in six gradients, of `x`, `h` and the four weights; `nn.GRU` repeats it for token after token.
# Below it are ten steps of a single feature, with the same gates at each.
# The bars show what the state is made of: after $T$ steps $z^T$ of it is the old state, and $(1-z)z^{T-t}$ is the proposal of word $t$.
# At 0.75 the old state has 0.056 after ten steps, at 0.95 still 0.599, but then each word moves the state little.
# The reset gate changes the proposals, not these shares.
# In a network the gates are computed at each step, so that one feature can be kept for long and another overwritten.

# %% jupyter={"source_hidden": true}
cu.quiz("sequence_to_sequence", "gates")

# %% [markdown]
# ## Encoder and decoder
#
# Two recurrent networks make a translator (LSTMs in [Sutskever et al., 2014](https://arxiv.org/abs/1409.3215), GRUs in [Cho et al., 2014](https://arxiv.org/abs/1406.1078) and here).
# The **encoder** reads the source, here in both directions, and leaves its two last states: the **context** $c$.
# The **decoder** begins with a state made from $c$, and at each step reads the token before and $c$ (that arrow is not drawn).
# Its output layer gives a **logit** for each French token; their softmax is the probability of the next token.
# `pack_padded_sequence` tells the encoder where each sentence ends: the forward state is taken at the last *real* token, not at the last `<pad>`.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    .     .      out
    .     .      combine
    C     bridge D
    E     .      tin
    src   .      .
    """,
    nodes={
        "src": cu.Box("source embedding", shape="(batch, source, 64)", color="line"),
        "E": cu.Box("encoder: GRU, both directions", shape="last states (2, batch, 96)", color="wash"),
        "C": cu.Cells(1, 6, "context c", shape="(batch, 192)", color="plum", cell=16),
        "bridge": cu.Box("bridge: linear, tanh", shape="(1, batch, 96)"),
        "D": cu.Box("decoder: GRU", shape="(batch, steps, 96)", color="wash"),
        "tin": cu.Box("target embedding", shape="(batch, steps, 64)", color="line"),
        "combine": cu.Box("combine: linear, tanh", shape="(batch, steps, 64)"),
        "out": cu.Box("output: linear", shape="logits (batch, steps, French)", color="wash"),
    },
    arrows=["src -> E -> C -> bridge -> D -> combine -> out", "tin -> D",
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


# %%
hidden_dim = 96  # try 16 … 128
sizes = len(english), len(french)
untrained = Translator(*sizes, hidden_dim=hidden_dim)
library = cu.RecurrentTranslator(*sizes, embed_dim=64, hidden_dim=hidden_dim, dropout=0)
library.load_state_dict(untrained.state_dict())
cu.equal(untrained, library, tiny.source, tiny.source_lens, tiny.target_in)
room = {}
for count in (4, 50):  # of tokens in the source
    state = untrained.start(torch.ones(1, count).long(), torch.tensor([count]))
    room[count] = tuple(state["context"].shape)
print("tokens: shape of the context", room)

# %% [markdown]
# With the same weights, our class and the library's agree in logits and gradients.
# And the context has 192 numbers, for 4 tokens and for 50: verb, tense, subject, gender, all has to be in these.
# The [further page](05_sequence_to_sequence_further.ipynb) says where the papers' models differ.

# %% jupyter={"source_hidden": true}
cu.quiz("sequence_to_sequence", "context")

# %% [markdown]
# ## What counts as an error, and the training loop
#
# While it learns, the decoder does not read its own words, which are nonsense at first, but the right ones, `target_in`.
# This is **teacher forcing**: all steps of a sentence are judged at once, the one for the token `y` by $-\log p(y)$.
#
# The loss of a batch is the mean.
# **Of what?**
# Two sentences of 1 and 3 tokens are padded to four places.
# Let each token of the short one cost 2, each of the long one 1, and each `<pad>` 0, because someone has set it to zero.

# %%
extra = 6  # try 0 … 20
costs = F.pad(torch.tensor([[2.0, 0, 0, 0], [1, 1, 1, 0]]), (0, extra))
real = torch.arange(4 + extra) < torch.tensor([[1], [3]])
means = {
    "over all places": costs.mean(),
    "of each sentence, then of both": (costs.sum(1) / real.sum(1)).mean(),
    "over all tokens": costs.sum() / real.sum(),
}
averages = pd.DataFrame({"mean": means}).astype(float)
averages.round(3)

# %% [markdown]
# The first is 0.25 with six more places than needed, and 0.625 without: padding makes such a loss look better, and the gradient smaller.
# In the second a word of the short sentence counts three times as much as one of the long.
# We take the last: 5 costs of 4 tokens, 1.25, whatever the padding.
#
# ### Exercise 2 · A loss that padding cannot change
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


# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "French has 570 tokens here. Before training, near which number is the loss per token?",
    ["0.002, that is 1/570", "1", "6.3, that is ln 570", "570"],
    answer="6.3, that is ln 570",
    wrong={
        "0.002, that is 1/570": "That is about the probability of the right token. What is −ln of it?",
        "1": "A loss of 1 means a probability of 1/e, more than a third, for the right token.",
        "570": "The loss is a logarithm. How likely would the right token be at a loss of 570?",
    },
    why="Random small weights give logits near 0, so each token has a probability near 1/570, and −ln(1/570) = 6.35.",
)


# %%
rate = 9e-3  # try 0.001 … 0.02


def gru_size(inputs, hidden):
    return 3 * hidden * (inputs + hidden + 2)  # three W, three U, two biases each


by_hand = 64 * sum(sizes) + 2 * gru_size(64, hidden_dim)
by_hand += (2 * hidden_dim + 1) * hidden_dim + gru_size(64 + 2 * hidden_dim, hidden_dim)
by_hand += (3 * hidden_dim + 1) * 64 + 65 * len(french)
first_batch = next(iter(world.loader(world.train)))
cu.before_training(untrained, first_batch, batch_loss, expected=by_hand, lr=rate)

# %% [markdown]
# The number of parameters is as counted by hand, the first loss is that of a uniform guess, and one batch can be learned by heart.
# The question mark: the first step of Adam (explained below) changes each weight by about the rate, and many weights are not much larger.
# We go on, because the loss falls from pass to pass; try a smaller rate.
#
# ### The loop
#
# A **pass** (or epoch) reads all training pairs once, and then the held-out ones without learning.
# Adam is gradient descent that adapts the step of each parameter; its rate falls in a straight line to 0; a gradient longer than 1 is shortened to 1, so that one strange batch does no harm.


# %%
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


# %% tags=["nbval-ignore-output"]
passes = 6  # try 1 … 10
cu.seed_everything(0)
translator = Translator(*sizes, hidden_dim=hidden_dim)
data = world.loader(world.train), list(world.loader(world.val, shuffle=False))
history = train(translator, *data, batch_loss, passes, rate)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
told_nothing = cu.stored_runs("sequence_to_sequence", "fixed_context", source=False)
blind = sum(run.result["val_loss"] for run in told_nothing) / 3
fig, ax = cu.subplots(
    width=6.2, height=3.0,
    alt="Loss per token over the passes. The training loss falls to a few tenths; the held-out loss falls more slowly "
    "and ends above it. Both end far below the dotted line of a decoder that is told nothing about the source.",
)  # fmt: skip
number = range(1, passes + 1)
ax.plot(number, [row[0] for row in history], "-o", label="training pairs")
ax.plot(number, [row[1] for row in history], "-s", label="held-out pairs")
ax.axhline(blind, linestyle=":", color="0.3", label="told nothing, held-out, 8 passes")
ax.set(xlabel="pass", ylabel="loss per token", ylim=(0, None))
ax.legend()
fig

# %% [markdown]
# Is a loss good?
# The dullest rival is the same decoder, told nothing: its context is always zero.
# Its held-out loss, 2.16 after 8 passes (stored, mean of three seeds), is the dotted line.
# What lies below it came through the vector.
# At the end the training loss is far below the held-out loss: the network learns pairs by heart, too.
# (At first it is larger: a mean over the pass, while the network learns.)
# In three stored runs of 8 passes the held-out loss ends at 0.60 to 0.67.

# %% jupyter={"source_hidden": true}
cu.quiz("sequence_to_sequence", "loss_near_zero")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The held-out loss ends between the training loss and that of a blind decoder.",
    given=(hidden_dim, rate, passes) == (96, 0.009, 6),
):
    assert len(history) == passes
    assert history[-1][0] < history[-1][1] < blind
    assert blind < math.log(len(french))

# %% [markdown]
# ## Word by word
#
# To translate, nobody hands the decoder the right words.
# **Greedy decoding** takes the likeliest token, hands it back as the next input, and goes on until `<eos>`.
# Many sentences can be decoded at once.
#
# ### Exercise 3 · Find the bug
#
# *bug · 8 minutes*
#
# This greedy decoder is right for one sentence.
# In a batch it loses ends: compare the two lines for *i'm home .* below.
# Find out why, and write a version that returns, for each sentence, its list of ids without `<bos>` and `<eos>`; a sentence that never ends stops after `max_len` tokens.


# %%
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
asked_for = [mine, *FOUR, *(" ".join(pair.source) for pair in some)]
known = [min(world.references[text]) for text in FOUR]
expected = ["", *known, *(" ".join(p.target) for p in some)]
columns = {"English": asked_for, "our network": translate(translator, asked_for)}
pd.DataFrame(columns | {"one right answer": expected})

# %% jupyter={"source_hidden": true}
cu.live.translator("we lost the book .")

# %% [markdown]
# First your sentence (change `mine`; unknown words become `<unk>`), then four from the training part.
# If they come back (*va !* is right, too), the network has stored them, which says nothing about unread sentences.
# The last six are test sentences.
# Below, a finished model answers, the stored Transformer of [Translating](11_translating.ipynb): choose a French word, and the bars show what else was likely in its place.
#
# ### A number for translations
#
# The share of sentences that agree exactly is a hard measure.
# **BLEU** ([Papineni et al., 2002](https://aclanthology.org/P02-1040/)) counts **n-grams**, runs of $n$ neighboring tokens.
# For $n$ = 1 to 4 the precision $p_n$ is the share of the translations' n-grams that the references have, too.
# A token counts at most as often as in the reference: *the the the the the the the* against *the cat is on the mat* has $p_1 = 2/7$.
# With $c$ tokens said and $r$ in the references (the paper's letters),
#
# $$\mathrm{BLEU} = \min\big(1, e^{1 - r/c}\big)\cdot(p_1\,p_2\,p_3\,p_4)^{1/4}.$$
#
# The first factor punishes what is too short.
# By hand: *il est mouillé .* for *il est calme .* has $p_1 = 3/4$ and $p_2 = 1/3$, so with $n\le 2$ BLEU is $\sqrt{1/4} = 0.5$.
# (It is meant for many sentences at once; the further page writes it out.)
# Not half of the new sentences come out exactly; BLEU also counts what is right in the others:

# %% tags=["nbval-ignore-output"]
right = [" ".join(pair.target) for pair in world.test]
test_said = translate(translator, [" ".join(pair.source) for pair in world.test])
exact = sum(map(str.__eq__, test_said, right)) / len(right)
print(f"test sentences: BLEU {cu.bleu(test_said, right):.2f}, exactly {exact:.0%}")

# %% jupyter={"source_hidden": true}
cu.quiz("sequence_to_sequence", "clipped")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The buggy decoder's answer depends on the neighbor; BLEU counts more than exactness.",
    given=(hidden_dim, rate, passes) == (96, 0.009, 6),
):
    assert heard["i'm home ."] != heard["go ."]
    assert exact < cu.bleu(test_said, right)

# %% [markdown]
# ## Is the vector too small?
#
# Whatever the length, the context has 192 numbers.
# If that is too little for long sentences, the context is a **bottleneck**.
# The same network with 8 passes, trained with three seeds (stored runs), translates 60 % of the new sentences of up to 5 tokens exactly, and 15 % of those of 8 to 10.
# Other explanations come first:
#
# - **More words, more chances for an error.**
#   So look at the loss *per token*.
# - **Long sentences are harder French.**
#   Control: the decoder that is told nothing.
# - **There are few to learn from**, 420 of the 3,900 pairs.
#   Control: as long sentences that it *has* read.
# - **Too little training.**
#   Control: half the passes, and three times as many.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Of the longest sentences, 8 to 10 tokens, 15 % of the new ones come out exactly right, and 69 % of those that the network "
    "has read. What do three times the passes change?",
    ["all that it has read come back", "more new ones alone", "nothing"],
    answer="all that it has read come back",
    wrong={
        "more new ones alone": "What does each pass lower, the loss of new sentences or of those that are read?",
        "nothing": "Then 69 % would be the most that this network can do. Was the training loss at its end?",
    },
    why="In three seeds all of them come back, and 23 % of the new ones.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
variants = {
    "8 passes": {"hidden_dim": 96, "passes": 8, "source": True},
    "half the passes": {"hidden_dim": 96, "passes": 4, "source": True},
    "three times the passes": {"hidden_dim": 96, "passes": 24, "source": True},
    "told nothing": {"hidden_dim": 96, "passes": 8, "source": False},
}


def by_length(variant, measure):
    """Of the stored runs: (seeds, groups of lengths)."""
    runs = cu.stored_runs("sequence_to_sequence", "fixed_context", **variants[variant])
    return torch.tensor([[run.result[f"{measure}, {n}"] for n in LENGTHS] for run in runs])


asked_of = {
    "read_exact": "exact, read", "test_exact": "exact, new",
    "read_loss": "loss per token, read", "test_loss": "loss per token, new",
}  # fmt: skip
ends = {0: "up to 5 tokens", -1: "8 to 10"}
control = {
    (said_as, where): [by_length(variant, measure).mean(0)[place].item() for variant in variants]
    for measure, said_as in asked_of.items()
    for place, where in ends.items()
}
control = pd.DataFrame(control, index=list(variants))
control.round(2)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=5.6, height=3.4,
    alt="Share of exact translations over the length of the source: three seeds as points, their mean as a line. Three times "
    "the passes give all sentences back that were read, at every length; half as many far fewer. New sentences fall with "
    "their length in all variants.",
)  # fmt: skip
shown = {"three times the passes": "wrong", "8 passes": "key", "half the passes": "value"}
for variant, color in shown.items():
    for measure, style in (("read_exact", "-"), ("test_exact", "--")):
        shares, label = by_length(variant, measure), variant if style == "-" else None
        ax.plot(range(4), shares.mean(0), style, color=cu.COLORS[color], label=label)
        ax.plot(range(4), shares.T, "o", color=cu.COLORS[color], markersize=3, alpha=0.5)
ax.set_xticks(range(4), ["≤ 5", "6", "7", "8–10"])
ax.set(xlabel="English tokens", ylabel="exactly right (dashed: new)", ylim=(0, 1.03))
label_lines(ax)
fig

# %% [markdown]
# Means of three seeds.
#
# - Long sentences are translated worse, and not only since they have more words: on new ones the loss *per token* goes from 0.41 to 0.94, on those that it has read from 0.13 to 0.35.
#   That they are harder French explains little: told nothing, the decoder goes from 2.05 to 2.33.
# - After three times the passes *all* sentences that were read come back.
#   New ones gain at both ends: of the longest 23 % are right.
#
# So: the longer the sentence, the worse; and **that the vector is too small is not shown**, nor that it is not.
# (That known sentences come back is weak evidence: the vector must only say *which* of 3,900 it is.)
# The obvious control is a wider network, and its answer turns with the rate: at 0.009 twice the width helped at neither end, at 0.004 it helped at both, and most where sentences are long.
# And a wider network has a larger encoder and decoder, too, not only a larger vector.
# [Cho et al. (2014b)](https://arxiv.org/abs/1409.1259) trained on millions of pairs of at most 30 words; the BLEU of their translators with a fixed vector fell steeply for long sentences.
#
# ### Exercise 4 · Which experiment would show it?
#
# *open · 7 minutes*
#
# You still suspect that a fixed vector is too small.
# Plan an experiment that could show it: what do you change, what stays equal (data, steps, parameters), which sentences do you measure on, what is the baseline, how many seeds?
# Write down the result that would prove you *wrong*.
# (A hint: nothing forbids a context of 8 numbers, or sentences of 40 words.)

# %% jupyter={"source_hidden": true}
cu.quiz("sequence_to_sequence", "control")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Long is worse per token; three times the passes help at both ends."):
    page, passes_3 = control.loc["8 passes"], control.loc["three times the passes"]
    new, blind_new = page["loss per token, new"], control.loc["told nothing", "loss per token, new"]
    assert new.iloc[1] > 2 * new.iloc[0] and blind_new.iloc[1] < 1.2 * blind_new.iloc[0]
    assert (passes_3["exact, read"] > 0.99).all()
    assert (passes_3["exact, new"] > page["exact, new"] + 0.05).all()

# %% [markdown]
# ## Take-aways
#
# - A batch is padded to its longest sentence and keeps the lengths.
#   The decoder reads the target shifted by one.
# - A GRU carries a state from token to token; gates decide what is kept and what is overwritten.
# - Encoder, one context vector, decoder: a translator in one class.
#   The vector has the same size for two words as for ten.
# - The loss is a mean over real tokens.
#   Compare it with a uniform guess, and with a decoder that is told nothing.
# - Long sentences are translated worse; only controls can say whether the vector is why.
#   Here more training helped; what more room does turns with the rate.
#
# Next: [Bahdanau attention: learning to align](06_bahdanau_attention.ipynb), where the decoder makes a context of its own for each word.
# BLEU in full, what fixed lengths do, and how the papers' models differ are on the further page: [Sequence to sequence: BLEU, fixed lengths and the papers' models](05_sequence_to_sequence_further.ipynb).
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
