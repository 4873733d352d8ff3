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
# A network can try that as well.
# One part of the network reads the string, another part writes it again, and all that goes from one to the other is a vector of $C$ numbers, however long the string is.
# The letters are random, so there is nothing to guess.
#
# ```text
# j b k a e l … <eos>   →   [ C numbers ]   →   j b k a e l … <eos>
# ```
#
# **Can one vector of fixed size carry a sentence of any length?**
# Train this network for more epochs, and compare it with one that may **look back** at the string before each letter that it writes.
# An **epoch** is one run through the training set.
# The curves show the **accuracy**, the share of strings that are copied without a mistake.
# How many epochs will each of the two need for twelve letters?
# Guess, and then move the slider.

# %% jupyter={"source_hidden": true}
import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LinearLR

import course_utils as cu
from course_utils.data.text import BOS, EOS, PAD, Vocabulary
from course_utils.data.translation import collate
from course_utils.lessons.sequence_to_sequence import explorer, strings
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, small_world

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.squeezed_context()

# %% [markdown]
# The network that looks back copies nearly all strings of twelve letters after eight epochs.
# The network with the vector soon learns short strings, but twelve letters took it more than ten times as many epochs.
# Looking back is **attention**, which we build in the next chapter.
#
# The vector isn't too small.
# Twelve random letters carry 43 bits, and two 32-bit numbers already hold 64.
# But gradient descent has to *find* a code, and a way to undo it, whereas a decoder that looks back is given a vector for each letter.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - turn strings and sentences into batches of numbers;
# - write an encoder, a decoder, and a step of a GRU;
# - train them with a loss that padding can't change, and let them write and translate.

# %% [markdown] tags=["needs"]
# You will need padding and lengths from [Masks](04_masks.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("scoring_functions", "masks")

# %% [markdown]
# ## From strings to batches: tokens, padding, a shifted target
#
# A network computes with numbers, so we give one to each **token**, here a letter and later a word.
# The list of all tokens is the **vocabulary**.
# Four **special tokens** come first: `<pad>` fills up, `<unk>` replaces what the list lacks, and `<bos>` and `<eos>` mark beginning and end.
# All rows of a tensor are equally long, so we pad the shorter strings and keep a note of their real lengths.
# The next cell puts *feedback* and *bad* into one batch.

# %%
alphabet = Vocabulary([list("abcdefghijkl")])
ids = [alphabet.encode(word) for word in ("feedback", "bad")]
batch = collate([(row, row) for row in ids])  # what to read, and what to say
for name in ("source", "target_in", "target_out", "source_lens"):
    print(f"{name:12}", *getattr(batch, name).tolist())

# %% [markdown]
# The letter *b* is 5, because 0 to 3 are special and *a* is 4.
# With its `<eos>` (3) *bad* has four real tokens, and the rest is `<pad>` (0).
#
# The target is there twice, because at each step the decoder reads one token and has to say the next one.
# The two rows are the same tokens **shifted by one**, and `<bos>` (2) gives the decoder something to start from.
#
# Each number picks a row of a learned table, the token's **embedding**.
#
# ### Exercise 1 · Strings to copy
#
# *build · 6 minutes*
#
# Make the strings that our network will learn from, all equally long.
# `torch.randint(4, 16, shape, generator=generator)` draws letters, and `torch.cat` joins a column of `BOS` or `EOS` to them.
# Once your function passes, the chapter uses it.


# %% tags=["exercise", "build"]
def my_strings(count, length, generator):
    """Random strings: source, target_in, target_out, each (count, length + 1)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_strings(my_strings)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_strings_solution(count, length, generator):
    """The source and target_out end with <eos>, and target_in begins with <bos>."""
    letters = torch.randint(4, 16, (count, length), generator=generator)
    begin, end = torch.full((count, 1), BOS), torch.full((count, 1), EOS)
    source = torch.cat([letters, end], dim=1)
    return source, torch.cat([begin, letters], dim=1), source


cu.checks.my_strings(my_strings_solution)

# %% [markdown]
# ## A network that reads: RNN and GRU
#
# How can a fixed number of weights read a string of any length?
# A **recurrent network**, RNN for short, reads one token after the other and carries a vector along.
# It computes this vector, its **state** $h_t$, from the token's embedding $x_t$ and the previous state:
#
# $$h_t = \tanh(x_t W + h_{t-1} U + b).$$
#
# The same $W$, $U$, and $b$ serve at every step.
# In the drawing the network reads *bad*.

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
        **{f"w{t}": cu.Note(letter) for t, letter in enumerate("bad", 1)},
    },
    arrows=["h0 -> s1 -> h1 -> s2 -> h2 -> s3 -> h3",
            *(f"w{t} -> x{t} -> s{t}" for t in (1, 2, 3))],
    alt="Three steps side by side: each takes the state from the step before and the embedding of its letter, "
    "b, a, and d, and hands a new state on to the next.",
    gap=(16, 20), flow="right",
)  # fmt: skip

# %% [markdown]
# The last state is all that we keep, so the first letter has to survive every later step.
# The gradient travels back the same way (**backpropagation through time**), and each step multiplies it by the slope of the tanh and by $U$.
# If the slope and $U$ are small, hardly any of the gradient reaches the first letters.
# This is the **vanishing gradient** ([measured here](05_sequence_to_sequence_further.ipynb#The-vanishing-gradient,-measured)).
#
# The **gated recurrent unit**, GRU ([Cho et al., 2014](https://arxiv.org/abs/1406.1078); here in PyTorch's form), opens a way past the tanh.
# It computes a *proposal* $n$, and two **gates** between 0 and 1 act on each feature.
# The **update gate** $z$ says how much of the old state stays, and the **reset gate** $r$ how much of it the proposal may see:
#
# $$\begin{aligned}
# z &= \sigma(xW_z + hU_z), & r &= \sigma(xW_r + hU_r),\\
# n &= \tanh\big(xW_n + r\odot(hU_n)\big), & h' &= (1-z)\odot n + z\odot h.
# \end{aligned}$$
#
# Here $\odot$ multiplies feature by feature, $\sigma(a) = 1/(1 + e^{-a})$, and we leave out the biases.
# For example, let $h = 0.5$, $n = -0.3$, and $z = 0.75$.
# Then three quarters of the old state stay, and $h' = 0.25\cdot(-0.3) + 0.75\cdot 0.5 = 0.3$.

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
        "x": cu.Cells(1, 3, "x: token", color="line", **cells),
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
    alt="Token and old state give a reset gate and an update gate. The reset gate decides how much of the old state "
    "the proposal sees; the token enters it, too. The update gate mixes the proposal with the old state, which also comes directly.",
    gap=(26, 24),
)  # fmt: skip


# %%
def gru_step(x, h, W, U, b, c):
    """x (batch, input), h (batch, hidden); W, U, b, c hold r, z, n below each other."""
    x_r, x_z, x_n = (x @ W.T + b).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ U.T + c).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    return (1 - z) * n + z * h


shapes = (3, 5), (3, 4), (12, 5), (12, 4), (12,), (12,)  # x, h, W, U, b, c
cu.equal(gru_step, torch.gru_cell, *map(torch.randn, shapes))

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "A feature has an update gate of 0.9 at every step. How much of its state is left ten letters later?",
    ["0.9 of it", "about a third", "next to nothing"],
    answer="about a third",
    wrong={
        "0.9 of it": "That is what one step leaves. What happens to these nine tenths in the next step?",
        "next to nothing": "With a gate near 0 that would be right. Here each step keeps nine tenths of what it gets.",
    },
    why="0.9 multiplied by itself ten times is 0.35. With a gate of 0.99 it is 0.90, so a GRU can learn how long to remember.",
)

# %% [markdown]
# The gates also multiply the gradient on its way back, so the gradient lives as long as the memory.
# And since the gates are learned, a network can choose how long that is.
# The GRU's older relative, the **LSTM**, has a second state and three gates.
#
# ## Encoder and decoder
#
# Two recurrent networks make a copier ([Sutskever et al., 2014](https://arxiv.org/abs/1409.3215), Cho et al., 2014).
# The **encoder** reads, and we squeeze its last states into the **context** $c$ of $C$ numbers.
# The **decoder** begins with a state made from $c$, and at each step it reads the previous token, with $c$ beside it.
# The output layer gives each token a score, its **logit**, and the softmax of the logits says how probable each token is.

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
        "src": cu.Box("source embedding", shape="(batch, source, 32)", color="line"),
        "E": cu.Box("encoder: GRU, both directions", shape="last states (2, batch, 64)", color="wash"),
        "C": cu.Cells(1, 6, "context c", shape="(batch, C)", color="plum", cell=16),
        "bridge": cu.Box("bridge: linear, tanh", shape="(1, batch, 64)"),
        "D": cu.Box("decoder: GRU", shape="(batch, steps, 64)", color="wash"),
        "join": cu.Box("join", shape="(batch, steps, 32 + C)"),
        "tin": cu.Box("target embedding", shape="(batch, steps, 32)", color="line"),
        "combine": cu.Box("combine: linear, tanh", shape="(batch, steps, 32)"),
        "out": cu.Box("output: linear", shape="logits (batch, steps, tokens)", color="wash"),
    },
    arrows=["src -> E", cu.Arrow("E", "C", label="squeeze"), "bridge -> D -> combine -> out", "tin -> join -> D",
            cu.Arrow("C", "bridge", start="top", end="left"),
            cu.Arrow("C", "join", label="c, beside each token"),
            cu.Arrow("C", "combine", start="top", end="left", label="c, at every step")],
    alt="The source embedding goes into the encoder, whose last states are squeezed into the context. A bridge makes the decoder's "
    "first state from it. The decoder reads the target embedding, joined with the context; its states, "
    "joined with the context again, go through combine and output to the logits.",
    gap=(30, 26),
)  # fmt: skip

# %% [markdown]
# We write the copier in three steps.
# The encoder has a GRU for each direction, `pack_padded_sequence` tells it where each string ends, and `squeeze` is the bottleneck.


# %%
class Encoder(nn.Module):
    """Strings (batch, length) → their contexts (batch, room)."""

    def __init__(self, embedding, hidden_dim, room):
        super().__init__()
        self.embedding = embedding
        self.gru = nn.GRU(embedding.embedding_dim, hidden_dim, batch_first=True, bidirectional=True)
        self.squeeze = nn.Linear(2 * hidden_dim, room) if room else nn.Identity()

    def forward(self, source, source_lens):
        real = nn.utils.rnn.pack_padded_sequence(
            self.embedding(source), source_lens, batch_first=True, enforce_sorted=False
        )
        _, last = self.gru(real)  # (2, batch, hidden): forwards, backwards
        return self.squeeze(torch.cat([last[0], last[1]], dim=-1))


# %% [markdown]
# We give the decoder the context three times: as its first state, beside every token, and once more before the output.


# %%
class Decoder(nn.Module):
    """Tokens (batch, steps) and a state → logits of the next (batch, steps, tokens)."""

    def __init__(self, embedding, hidden_dim, room):
        super().__init__()
        size, embed_dim = embedding.weight.shape
        self.embedding = embedding
        self.bridge = nn.Linear(room, hidden_dim)
        self.gru = nn.GRU(embed_dim + room, hidden_dim, batch_first=True)
        self.combine = nn.Linear(hidden_dim + room, embed_dim)
        self.output = nn.Linear(embed_dim, size)

    def start(self, context):
        return {"context": context, "hidden": self.bridge(context).tanh()[None]}

    def forward(self, tokens, state):  # the state moves on
        context = state["context"][:, None].expand(-1, tokens.shape[1], -1)
        joined = torch.cat([self.embedding(tokens), context], dim=-1)
        hidden, state["hidden"] = self.gru(joined, state["hidden"])
        return self.output(self.combine(torch.cat([hidden, context], dim=-1)).tanh())


# %% [markdown]
# The encoder reads once, with `start`, and the decoder then says one token with every `step`.
# In training we know all the tokens, so `forward` lets the decoder read them in one go.


# %%
class Translator(nn.Module):
    """A string → one vector, of `room` numbers if given → its copy or translation."""

    def __init__(self, source_size, target_size, embed_dim=64, hidden_dim=96, room=None):
        super().__init__()
        self.source_embedding = nn.Embedding(source_size, embed_dim, padding_idx=PAD)
        self.target_embedding = nn.Embedding(target_size, embed_dim, padding_idx=PAD)
        self.encoder = Encoder(self.source_embedding, hidden_dim, room)
        self.decoder = Decoder(self.target_embedding, hidden_dim, room or 2 * hidden_dim)

    def start(self, source, source_lens):
        return self.decoder.start(self.encoder(source, source_lens))

    def step(self, tokens, state):  # (batch,) → (batch, tokens)
        return self.decoder(tokens[:, None], state)[:, 0]

    def forward(self, source, source_lens, target_in):
        return self.decoder(target_in, self.start(source, source_lens))


# %% [markdown]
# ## Training: teacher forcing and the loss
#
# At first the decoder says nonsense, and reading nonsense would teach it little.
# So in training we let it read the *right* tokens, `target_in`, whatever it has said, and compute the loss of all steps at once.
# This is **teacher forcing**, and its price is **exposure bias**: the decoder never learns to go on from its own mistakes.
#
# The step that should say $y$ costs $-\log p(y)$.
# The loss of a batch is the mean of these costs.
# **The mean over what?**
# Imagine strings of 1 and 3 tokens, padded to 4 positions.
# Each token of the short string costs 2, each token of the long one 1, and each `<pad>` 0.
#
# - Over all positions the mean is 5/8, and it looks better with more padding.
# - The mean of the two means is 3/2, and the token of the short string counts three times as much.
# - Over all real tokens the mean is 5/4, and this is our loss.
#
# ### Exercise 2 · A loss that padding cannot change
#
# *build · 8 minutes*
#
# Write the mean of $-\log p(y)$ over the real tokens of a batch.
# The logits at padding may be anything, and they get no gradient.
# You know how lengths become a mask, and `F.cross_entropy` takes logits (tokens, vocabulary) and targets (tokens,).


# %% tags=["exercise", "build"]
def my_masked_loss(logits, targets, lens):
    """(batch, steps, vocabulary), (batch, steps), (batch,) → a scalar."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_masked_loss(my_masked_loss)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_masked_loss_solution(logits, targets, lens):
    """A boolean mask (batch, steps) picks the real tokens, in logits and targets alike."""
    real = torch.arange(targets.shape[1]) < lens[:, None]
    return F.cross_entropy(logits[real], targets[real])


cu.checks.my_masked_loss(my_masked_loss_solution)


# %% jupyter={"source_hidden": true}
def masked_loss(logits, targets, lens):  # the course's version
    steps = torch.arange(targets.shape[1])
    return F.cross_entropy(
        logits.mT, targets.masked_fill(steps >= lens[:, None], PAD), ignore_index=PAD
    )


# %% [markdown]
# Now the loop.
# For each batch we compute the loss and its gradient, clip the gradient to a length of 1, and move the weights with Adam, which gives each weight its own step size.
# An epoch does this for all batches of the **training set**.
# After each epoch we measure the loss on other batches, the **validation set**, without learning from them.

# %%
mean_loss = cu.choose(my_masked_loss, masked_loss)


def batch_loss(model, batch):  # summed loss, number of tokens
    logits = model(batch.source, batch.source_lens, batch.target_in)
    mean = mean_loss(logits, batch.target_out, batch.target_lens)
    return mean * batch.num_tokens, batch.num_tokens


def train(model, batches, validation, loss, epochs, rate):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    decay = LinearLR(optimizer, 1.0, 0.0, epochs * len(batches))  # learning rate to 0
    history = []
    for _ in range(epochs):
        learned = []
        for batch in batches:
            summed, tokens = loss(model, batch)
            optimizer.zero_grad()
            (summed / tokens).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            decay.step()
            learned.append((summed.item(), tokens))
        with torch.no_grad():
            unseen = [loss(model, batch) for batch in validation]
        sums = [map(sum, zip(*rows, strict=True)) for rows in (learned, unseen)]
        history.append([float(total / count) for total, count in sums])
    return history


# %% [markdown]
# And now the network from the first screen is yours.
# Choose how much room the vector gets, and train it on 25,000 strings of 2 to 12 letters.
# `Watched` makes the strings, and measures the accuracy after each epoch.

# %% tags=["nbval-ignore-output"]
room = 16  # try 2 … 128
draw = cu.choose(my_strings, strings.random_strings)
cu.seed_everything(0)
copier = Translator(len(alphabet), len(alphabet), embed_dim=32, hidden_dim=64, room=room)
fresh = strings.Watched(copier, 0, batches=100, draw=draw)
validation = strings.Strings(1, batches=20)
history = train(copier, fresh, list(validation), batch_loss, epochs=4, rate=0.01)


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def show_losses(history, blind, alt):
    """Training and validation loss over the epochs, and the baseline, a decoder that does not see the source."""
    fig, ax = cu.subplots(width=6.0, height=2.8, alt=alt)
    number = range(1, len(history) + 1)
    ax.plot(number, [row[0] for row in history], "-o", label="training")
    ax.plot(number, [row[1] for row in history], "-s", label="validation")
    ax.axhline(blind, linestyle=":", color="0.3", label="baseline, sees no source")
    ax.set(xlabel="epoch", ylabel="loss per token", ylim=(0, None))
    ax.legend()
    return fig


blind_copier = torch.tensor(len("abcdefghijkl")).log().item()
show_losses(
    history,
    blind_copier,
    "Loss per token of the copier over four epochs. It begins near the dotted line at 2.5, the loss of a decoder that does not see the "
    "string, and falls to about a half; the validation loss is a little lower, since it is measured after each epoch.",
)

# %% [markdown]
# To judge such a loss we need a **baseline**, something to compare with.
# Ours is a decoder that doesn't see the string and guesses one of twelve letters, at $\ln 12 = 2.5$ a letter (dotted).
# Whatever lies below this line has come through your vector.
# Here the validation loss is the lower one.
# It is measured at the end of an epoch, whereas the training loss is averaged over the epoch, when the network still knew less.

# %% [markdown]
# ## Greedy decoding: letters, then words
#
# When our copier writes, nobody hands it the right letters.
# **Greedy decoding** takes the most probable token, hands it back as the next input, and goes on until `<eos>`.
#
# ### Exercise 3 · Find the bug
#
# *bug · 8 minutes*
#
# This function decodes greedily, and for a single string it is right.
# In a batch words lose their ends, as *feedback* does next to *badge* or *bad*.
# Write a version that returns a list of ids for each string, without `<bos>` and `<eos>`, and that stops after `max_len` tokens.


# %% tags=["nbval-ignore-output"]
@torch.no_grad()
def buggy_decoding(model, source, source_lens, max_len):
    state = model.start(source, source_lens)
    tokens = torch.full((len(source),), BOS)
    written = [[] for _ in source]
    for _ in range(max_len):
        tokens = model.step(tokens, state).argmax(dim=-1)  # (batch,)
        if (tokens == EOS).any():
            break
        for row, token in zip(written, tokens.tolist(), strict=True):
            row.append(token)
    return written


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
heard = {}
for neighbor in ("badge", "bad"):
    ids = [alphabet.encode(word) for word in ("feedback", neighbor)]
    both = collate([(row, row) for row in ids])
    heard[neighbor] = buggy_decoding(copier, both.source, both.source_lens, 20)[0]
    print(f"feedback beside {neighbor}:", "".join(alphabet.decode(heard[neighbor])))


# %% tags=["exercise", "bug"]
def fixed_decoding(model, source, source_lens, max_len):
    """Ids (batch, length), lengths (batch,) → a list of ids for each string."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_decoding(fixed_decoding)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
@torch.no_grad()
def fixed_decoding_solution(model, source, source_lens, max_len):
    """The batch ends when ALL its strings have ended; a finished string gets no more tokens."""
    state = model.start(source, source_lens)
    tokens = torch.full((len(source),), BOS)
    written, finished = [[] for _ in source], [False] * len(source)
    for _ in range(max_len):
        tokens = model.step(tokens, state).argmax(dim=-1)
        for row, token in enumerate(tokens.tolist()):
            finished[row] = finished[row] or token == EOS
            if not finished[row]:
                written[row].append(token)
        if all(finished):
            break
    return written


cu.checks.fixed_decoding(fixed_decoding_solution)

# %% [markdown]
# ### Your own strings
#
# What does your copier make of words of your own?
# Any word of the letters *a* to *l* will do.

# %% tags=["nbval-ignore-output"]
decode = cu.choose(fixed_decoding, cu.greedy)
for word in ("ice", "badge", "jackal", "cabbage", "feedback", "jbkaelfchgdi"):
    copy = strings.copied(copier, word, decode)
    print("✓" if copy == word else "✗", word, "→", copy)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
explorer.beside_the_stored(fresh.shares, f"yours, {room} numbers")

# %% [markdown]
# This is the first screen again, with your own curve in it.
# After four epochs short words come back whole, and long words break, often with the right letters in the wrong order.
# Give your copier more epochs or another `room`, and see how far it gets.
#
# ### Words instead of letters: a translator
#
# A sentence is a string of words, so our classes and our loop can learn to translate, if we give them two vocabularies.
# A grammar, which is a set of rules, made our sentences from 200 English words.
# They look like these two.

# %%
world = small_world("fr")
english, french = world.source_vocab, world.target_vocab
for pair in world.train[:2]:
    print(" ".join(pair.source), "→", " ".join(pair.target))

# %% [markdown]
# This time the same sentences come back in every epoch, and the validation set has others.
# Compare the two losses.

# %% tags=["nbval-ignore-output"]
epochs = 6  # try 1 … 24
cu.seed_everything(0)
translator = Translator(len(english), len(french))
pairs, validation = world.loader(world.train), world.loader(world.val, shuffle=False)
learned = train(translator, pairs, list(validation), batch_loss, epochs, rate=0.01)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
blind_runs = cu.stored_runs("sequence_to_sequence", "fixed_context", source=False)
blind = sum(run.result["val_loss"] for run in blind_runs) / len(blind_runs)
show_losses(
    learned,
    blind,
    "Loss per token of the translator over the epochs. Both losses fall far below the dotted line of a decoder that does not see the source; "
    "the validation loss ends above the training loss.",
)

# %% [markdown]
# The network learns some of its sentences by heart, and the validation loss stays higher.
# This is **overfitting**.
# Can the network translate anyway?
# We give it a sentence of yours, four from the training set, and eight from the **test set**, which has played no part in any choice.
# The **exact-match accuracy** is the share of test sentences with every word as the grammar has it.

# %% tags=["nbval-ignore-output"]
yours = "her cat isn't sleeping ."  # try "her cat isn't sleeping ." | "the dog is hungry ."
print(yours, "→", *cu.translate(translator, [yours], english, french, max_len=20))

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
sources = [" ".join(pair.source) for pair in world.test]
said = cu.translate(translator, sources, english, french, max_len=20)
right = [text == " ".join(pair.target) for text, pair in zip(said, world.test, strict=True)]
exact = sum(right) / len(right)
print(f"exact-match accuracy on the {len(right)} sentences of the test set: {exact:.2f}")
asked = [*FOUR, *sources[:8]]
pd.DataFrame({
    "English": asked,
    "our network": cu.translate(translator, asked, english, french, max_len=20),
    "right": [" / ".join(sorted(world.references[text])) for text in asked],
}).set_index("English")  # fmt: skip

# %% [markdown]
# Many of the mistakes are still good French.
# The shape of a sentence arrives, and individual words get lost on the way, so that the church becomes a bottle.
#
# ### Is the vector too small?
#
# We gave our translator no `room`, so its context is the two last states of the encoder, 192 numbers.
# The picture compares it with a second network, whose context is twice as wide.
# Both were trained four times as long as yours.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
chosen = cu.stored_runs("sequence_to_sequence", "fixed_context", lowest="val_loss", passes=24)
groups = [name for name in chosen[0].result if name.startswith("test_exact, ")]
every = pd.DataFrame([run.config | run.result for run in chosen])
widths = every.groupby("hidden_dim")[groups].mean()
fig, ax = cu.subplots(
    width=6.4, height=3.2,
    alt="Exact-match accuracy on the test set, over the length of the source. Both lines fall from the shortest to the longest sentences. "
    "The network of twice the width is ahead at each length. Points are seeds.",
)  # fmt: skip
for width, shares in widths.iterrows():
    color = cu.COLORS["key" if width == 192 else "wrong"]
    ax.plot(range(4), shares, color=color, label=f"context of {2 * width} numbers")
    seeds = every[every["hidden_dim"] == width][groups]
    ax.plot(range(4), seeds.T, "o", color=color, markersize=3, alpha=0.5)
ax.set_xticks(range(4), ["up to 5", "6", "7", "8 to 10"])
ax.set(xlabel="English tokens", ylabel="exact-match accuracy", ylim=(0, 1))
ax.legend()
fig

# %% [markdown]
# **With both networks at their best learning rates, the wider one is ahead on average at every length, and both do worst on long sentences.**
# The picture doesn't tell us whether it was the wider vector that helped or the larger GRUs.
# In the next chapter we let the decoder look back, and then it needs no such vector at all.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The neighbor that ends first cuts the other string."):
    assert len(heard["bad"]) < len(heard["badge"]) < 8

with cu.guard(
    "The copier copies most short strings and hardly any long one, and it is far below the baseline.",
    given=room == 16 and len(history) == 4,
):
    assert history[-1][1] < blind_copier / 2
    mine = {length: points[-1][1] for length, points in fresh.shares.items()}
    assert mine[4] > 0.8 > 0.5 > mine[8] and mine[12] < 0.1

with cu.guard(
    "The translator is far below its baseline, and some new sentences are exactly right.",
    given=epochs == 6,
):
    assert learned[-1][0] < learned[-1][1] < blind / 2 and exact > 0.15

trained = cu.stored_runs("sequence_to_sequence", "learning_to_copy", lowest="val_loss")


def accuracies(room, letters, epochs):
    """The accuracies on whole strings after so many epochs, seed by seed."""
    chosen = [run for run in trained if run.config["room"] == room]
    return [dict(run.curves[f"right, {letters}"])[epochs] for run in chosen]


def after_four(room):
    """The accuracies on twelve letters at the end of a training of four epochs."""
    runs = cu.stored_runs("sequence_to_sequence", "copier", lowest="val_loss", room=room)
    return [run.result["right, 12"] for run in runs]


with cu.guard(
    "Trained for four epochs, the network that looks back copies nearly all strings of twelve letters, and the vector hardly any."
):
    assert min(after_four(0)) > 0.8 and max(after_four(128)) < 0.1

with cu.guard(
    "The network that looks back needs eight epochs, and the vector learns as well, short strings soon and long strings late."
):
    assert min(accuracies(0, 12, 8)) > 0.85 and max(accuracies(128, 12, 24)) < 0.4
    assert min(accuracies(128, 6, 24)) > 0.85 and min(accuracies(128, 12, 96)) > 0.8

with cu.guard("Twice the width is ahead at each length."):
    gain = widths.loc[192] - widths.loc[96]
    assert gain.min() > 0

# %% [markdown]
# ## Take-aways
#
# - An encoder reads a sequence into one vector of fixed size, and a decoder writes another from it.
#   Our copier learned to carry twelve letters in one vector, but the longer the strings, the longer it took.
#   A decoder that looks back learned the same strings in less than a tenth of the epochs.
# - A recurrent network carries its state along, and a GRU's gates learn what to keep.
# - The decoder reads the target shifted by one, and the loss is a mean over real tokens.
#   Compare it with a baseline.
#
# <details><summary>How sure is this?</summary>
#
# Both networks on the first screen have their best learning rate.
# We tried four rates for the vector and three for the network that looks back, with three seeds each, and chose by the validation loss.
# Neither best rate is at an end of its range.
# The network with the vector trained for 96 epochs, and the one that looks back for twelve.
# The learning rate decays to 0 over each training run, and a faster decay helps early on.
# So we also trained both networks for only four epochs.
# Then the one with 128 numbers copied 1% of the strings of twelve letters, and the one that looks back more than 97%.
# The gray curves for 16 numbers come from a single learning rate, and each copy of *jbkaelfchgdi* from a single training run.
# The translators had three rates with three seeds each, and there are only 55 long sentences, so we can't say which lengths gain most.
# At the highest rate the wider translator does *not* gain, so [tune both sides](G_controls.ipynb#Does-a-wider-network-help?) before you compare.
# The [next chapter](06_bahdanau_attention.ipynb) shows that looking back helps with French as well.
#
# </details>

# %% [markdown] tags=["next"]
# Next: [Bahdanau attention: learning to align](06_bahdanau_attention.ipynb).
# [The further page](05_sequence_to_sequence_further.ipynb) computes BLEU, measures the vanishing gradient, and has translators of real sentences.

# %% [markdown]
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
# - Sutskever, I., Vinyals, O. and Le, Q. V. (2014).
#   [Sequence to sequence learning with neural networks](https://arxiv.org/abs/1409.3215).
#   NeurIPS.
