# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # GPT
#
# **A network reads a text letter by letter, and guesses each next one.
# What can it learn from that, and how do we know that it is more than counting?**
#
# Let's try it on *your* text.
# The GPT below has random weights and knows nothing.
# Paste something you have written, or keep the story that is there, and press *Learn*.
# Your browser trains it, and three lines show how it goes.
# The first is the loss on the **training text**, which the GPT learns from.
# The second is the loss on the last tenth of your text, which we keep from it (the **[validation](C_glossary.ipynb#validation-set) text**).
# The third, dashed, is what plain *counting* reaches on that tenth.

# %% [markdown] tags=["paths"]
# On the path to GPT: [What counting knows](#What-counting-knows), [GPT in one class](#GPT-in-one-class), [Training it](#Training-it), [Writing](#Writing), [Your file](#Your-file).

# %% jupyter={"source_hidden": true}
import math
import random
from collections import Counter

import torch
from IPython.display import Markdown
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.cache import KVCache
from course_utils.data.prose import TextBatch, load_english
from course_utils.decoding import next_token_probs
from course_utils.lessons.gpt import ngrams, training
from course_utils.lessons.gpt.own import OwnText, has_read_plays, pieces_per_letter, until

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.live.character_gpt()

# %% [markdown]
# With our story the validation loss turns up after some 400 steps, far above the dashed line, while the training loss goes on falling.
# That takes a minute or two, or ten if your computer is busy.
# The GPT **[overfits](C_glossary.ipynb#overfitting)**: it memorizes the training text, and that is of no use for new text.
# A few pages are too little to beat counting, and this chapter shows what it takes.

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - say what counting knows about a text, as a loss that a network has to beat;
# - say what each part of a GPT's class does, and train it;
# - write text with it, and choose how daring it is;
# - train it on a file of your own, and judge fairly what came out.

# %% [markdown] tags=["needs"]
# You will need [The Transformer](10_transformer.ipynb), as far as its two blocks, and the causal mask from [Masks](04_masks.ipynb).

# %% jupyter={"source_hidden": true}
cu.recall("queries_keys_values", "transformer", "multi_head_attention")

# %% [markdown]
# ## What counting knows
#
# A **language model** gives a probability to each possible next token, and our tokens are simply characters.
# If we multiply these probabilities along a text, we get the probability of the whole text.
# The **loss** is its negative logarithm, divided by the number of tokens:
#
# $$P(t_1, \dots, t_n) = \prod_{i=1}^{n} P(t_i \mid t_1, \dots, t_{i-1}), \qquad \mathrm{loss} = -\frac1n \sum_{i=1}^{n} \ln P(t_i \mid t_1, \dots, t_{i-1}).$$
#
# The unit of the loss is the [nat](C_glossary.ipynb#nat).
# Its exponential is the **[perplexity](C_glossary.ipynb#perplexity)**.
# For example, with a perplexity of 4 the model is as uncertain as in a fair choice among four characters.
#
# The oldest language models count.
# A **bigram** model asks which character followed *this* one in the training text, and how often.
# A **trigram** model looks at two characters, and an **n-gram** model at the last $n-1$.
# The next cell shows what follows *q* and *th* in the course's English sentences.

# %%
sentences = load_english()
random.Random(0).shuffle(sentences)
train_text, val_text = (
    "".join(text + "\n" for text in part) for part in (sentences[1000:], sentences[:1000])
)
alphabet = sorted(set(train_text + val_text))
for history in ("q", "th"):
    n, text = len(history), train_text
    follows = Counter(text[i + n] for i in range(len(text) - n) if text[i : i + n] == history)
    print(f"{history!r} is followed by", follows.most_common(5))
print(f"characters: {len(train_text):,} to train on, {len(val_text):,} to validate")
print(f"different characters: {len(alphabet)}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We look back nine characters and take the plain shares as probabilities. What is the loss on the validation text?",
    ["smaller than for one character", "larger than for one character, but finite", "infinite"],
    answer="infinite",
    wrong={
        "smaller than for one character": "Nine characters do say more than one, where we have seen them. What probability does a share give to a character that never followed?",
        "larger than for one character, but finite": "Think of one nine-character history that is followed by something new. What is −ln 0?",
    },
    why="A single surprise is enough: what never followed gets the share 0, and −ln 0 is infinite. Every pair of characters in the validation text has been seen before, but some 5,800 of its rows of ten haven't.",
)

# %% [markdown]
# So plain shares have to be **smoothed**.
# Imagine that *th* came ten times, six times before *e*, three times before *a* and once before *i*.
# **Kneser–Ney smoothing** takes a **discount** $D = ½$ from each of these three counts, and what it saves, 1½ of ten, goes to the shorter history *h*.
# If *e* has 0.4 after *h*, it has $(6 - ½ + 1½ \cdot 0.4)/10 = 0.61$ after *th*.
# And an *r*, which never followed *th* and has 0.1 after *h*, still gets $1½ \cdot 0.1/10 = 0.015$.
#
# The figure shows the loss of counting with more and more history, on our sentences and on the million characters of Shakespeare's plays.
# The numbers come from **modified** Kneser–Ney, which estimates a discount for counts of 1, of 2, and of more ([Chen and Goodman, 1999](https://doi.org/10.1006/csla.1999.0128)).

# %%
number = {letter: i for i, letter in enumerate(alphabet)}
stream, val_stream = (
    torch.tensor([number[letter] for letter in text]) for text in (train_text, val_text)
)
counted = ngrams.kneser_ney_losses(stream.tolist(), val_stream.tolist(), 9, len(alphabet))
plays = list(cu.stored_run("gpt", "shakespeare_kneser_ney").result.values())

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=6.4, height=2.9,
    alt="Loss of counting over the characters it looks back. For the sentences it falls from 3.0 without a look back to 0.7 "
    "with eight characters and is still falling a little. For Shakespeare it falls from 3.3 to 1.5 with six and rises a little after.",
)  # fmt: skip
for losses, name, color in ((counted, "our sentences", "key"), (plays, "Shakespeare", "value")):
    ax.plot(range(len(losses)), losses, "o-", color=cu.COLORS[color], label=name)
    best = min(losses)
    ax.annotate(
        f"{best:.2f}", (losses.index(best), best), (0, 7), textcoords="offset points", ha="center"
    )
ax.set(xlabel="Characters it looks back", ylabel="Validation loss (nats)", ylim=(0, None))
ax.set_xticks(range(9))
ax.legend()
fig

# %% [markdown]
# Each further character helps less, because most long histories are new.
# The best point of the curve is our **[baseline](C_glossary.ipynb#baseline)**, the number to beat.
# It costs a few seconds and no training.

# %% jupyter={"source_hidden": true}
cu.quiz("gpt", "three_halves")

# %% [markdown]
# ## Kneser–Ney by hand
#
# This section gives the formula behind the curve, and you work through it on paper.
# Nothing later needs it, so feel free to skip it.
#
# $$P_n(w \mid s) = \frac{\max(c(sw) - D,\ 0) + D\,u(s)\,P_{n-1}(w \mid s')}{c(s)}$$
#
# In the example the history $s$ is *th*, and $s'$ is *h*, the history without its first character.
# In the text $s$ occurs $c(s) = 10$ times with something after it.
# In $c(sw) = 6$ of these cases that is $w$, here an *e*.
# In all there are $u(s) = 3$ *different* characters after it.
# For shorter histories the counts mean something else.
# A *u* may be frequent, but if it only ever follows *q*, it is a bad guess elsewhere.
# So there $c(sw)$ counts how many different characters come before $sw$, not how often it occurs.
# So $P_1(w)$ is the share of the different pairs that end in $w$.
# For example, the text `x y x x` has three different pairs, *xy*, *yx*, and *xx*, so $P_1(x) = ⅔$.
# After *x* came one *y* and one *x*, which gives $P_2(x \mid x) = (1 - ½ + ½ \cdot 2 \cdot ⅔)/2 = 0.58$.
#
# ### Exercise 1 · Counting on paper
#
# *predict · 8 minutes*
#
# The training text is `a b a c a b a`, and $D = ½$.
# Pairs are the longest we count here, so $P_2$ uses the counts themselves.
# Give two decimals.
#
# - (a) What is $P_1(b)$?
#   Write down the different pairs first.
# - (b) What is $P_2(b \mid a)$?
# - (c) What is $P_2(a \mid a)$, for a pair that never occurred?
# - (d) What is the perplexity of a model that guesses uniformly among 33 characters?


# %% tags=["exercise", "predict"]
def counted_on_paper():
    """Four numbers, for (a) to (d), without running anything."""
    return ...  # such as [0.11, 0.22, 0.33, 4]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.counted_on_paper(counted_on_paper)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def counted_on_paper_solution():
    """One of ab, ba, ac, ca; (2 − ½ + ½ · 2 · ¼)/3; (0 + ½ · 2 · ½)/3; 33."""
    return [0.25, 0.58, 0.17, 33]


cu.checks.counted_on_paper(counted_on_paper_solution)

# %% [markdown]
# ## GPT in one class
#
# Now take the machine at the top of [The Transformer](10_transformer.ipynb) and erase its left half.
# Then cross-attention has nothing to look at, so it goes as well.
# What remains is a **decoder-only** model, a tower of blocks with causal self-attention and a feed-forward network ([Radford et al., 2018](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf)).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    tok    pos
    E      P
    x      .
    .      n1
    .      att
    add1   .
    .      n2
    .      ffn
    add2   .
    nf     .
    out    .
    """,
    nodes={
        "tok": cu.Box("tokens", shape="(n,)"),
        "pos": cu.Box("positions 0, 1, …", shape="(n,)"),
        "E": cu.Box("embedding", shape="(n, d)", color="wash"),
        "P": cu.Box("position table", shape="(n, d)"),
        "x": cu.Circle("+"),
        "n1": cu.Box("norm"),
        "att": cu.Box("causal attention", shape="4 heads", color="key"),
        "add1": cu.Circle("+"),
        "n2": cu.Box("norm"),
        "ffn": cu.Box("network", shape="d → 4d → d", color="line"),
        "add2": cu.Circle("+"),
        "nf": cu.Box("norm"),
        "out": cu.Box("times embedding^T", shape="(n, vocabulary)", color="wash"),
    },
    arrows=["tok -> E -> x", "pos -> P -> x", "x -> add1 -> add2 -> nf -> out",
            "x -> n1 -> att -> add1", "add1 -> n2 -> ffn -> add2"],
    groups={"one block, × num_layers": "n1 att add1 n2 ffn add2"},
    alt="Tokens and positions are looked up in two tables and added. Each block adds to this stream what causal "
    "multi-head attention makes of its norm, and then what a network makes of its norm. After the blocks a "
    "norm and the transposed embedding give a logit for each token of the vocabulary.",
    gap=(40, 30),
)  # fmt: skip

# %% [markdown]
# The next two cells are this drawing in Python.
# `cu.MultiHeadAttention` and `cu.FeedForward` are the layers of the chapters before, with a few more arguments: `is_causal=True` forbids what comes later, and `activation="gelu"` takes [GELU](C_glossary.ipynb#gelu), a smooth relative of the ReLU.
# Everything with `cache`, and the methods `start` and `step`, is for writing, so you can pass over it until [Writing](#Writing).


# %%
class Block(nn.Module):
    """Attention to a position and those before it, then the network at each position."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.attention = cu.MultiHeadAttention(embed_dim, num_heads)
        self.feed_forward = cu.FeedForward(embed_dim, 4 * embed_dim, activation="gelu")
        self.attention_norm = nn.LayerNorm(embed_dim)
        self.feed_forward_norm = nn.LayerNorm(embed_dim)

    def forward(self, x, cache=None):
        y = self.attention_norm(x)
        x = x + self.attention(y, y, y, is_causal=True, cache=cache)
        return x + self.feed_forward(self.feed_forward_norm(x))


# %%
class GPT(nn.Module):
    """(batch, n) ids → (batch, n, vocab_size) logits of each next token."""

    def __init__(self, vocab_size, embed_dim, num_heads, num_layers, max_len):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.positions = nn.Embedding(max_len, embed_dim)
        blocks = [Block(embed_dim, num_heads) for _ in range(num_layers)]
        self.layers = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(embed_dim)
        self.output = nn.Linear(embed_dim, vocab_size, bias=False)
        self.output.weight = self.embedding.weight  # weight tying
        for table in (self.embedding, self.positions):
            nn.init.normal_(table.weight, std=embed_dim**-0.5)

    def forward(self, tokens, caches=None):
        first = caches[0].length if caches else 0  # so many were read before
        position = torch.arange(first, first + tokens.shape[1])
        x = self.embedding(tokens) + self.positions(position)
        for i, layer in enumerate(self.layers):
            x = layer(x, caches[i] if caches else None)
        return self.output(self.norm(x))

    def start(self):
        """Nothing read so far: an empty cache for each block."""
        return [KVCache() for _ in self.layers]

    def step(self, tokens, caches):
        """Read (batch, new) ids: logits (batch, vocab_size) of the next."""
        return self(tokens, caches)[:, -1]


# %% [markdown]
# The model returns **logits**, one score for each possible next token, from which a softmax makes probabilities.
# With **[weight tying](C_glossary.ipynb#weight-tying)** ([Press and Wolf, 2017](https://arxiv.org/abs/1608.05859)) the output layer *is* the embedding, so a token's logit is the dot product of the last vector with that token's own embedding.
#
# This is what one forward pass makes of 16 windows of 64 characters, with $d = 64$, four heads, and 33 different characters:
#
# | step | shape |
# |---|---|
# | `tokens` | (16, 64) |
# | `x`, after the tables and after each block | (16, 64, 64) |
# | weights of a block's attention | (16, 4, 64, 64) |
# | inside a block's network | (16, 64, 256) |
# | logits | (16, 64, 33) |
#
# Our tables start small, with a standard deviation of $1/\sqrt d$; `nn.Embedding` would use 1.
# Guess the first loss for each of the two choices before you run the cell.

# %%
length = 64
sizes = {"embed_dim": 64, "num_heads": 4, "num_layers": 2, "max_len": length}
std = 1.0  # try 0.01 … 2.0
cu.seed_everything(0)
gpt, loud = (GPT(len(alphabet), **sizes) for _ in range(2))
nn.init.normal_(loud.embedding.weight, std=std)
probe = torch.randint(len(alphabet), (32, length + 1))
for name, model in ((f"std {std:.3f}", loud), ("std 0.125", gpt)):
    first_loss = F.cross_entropy(model(probe[:, :-1]).mT, probe[:, 1:])
    print(f"{name}: first loss {first_loss:.1f}; a uniform guess has {math.log(len(alphabet)):.1f}")

package = cu.GPT(len(alphabet), **sizes, dropout=0.0)
package.load_state_dict(gpt.state_dict())
cu.equal(gpt, package, probe[:2, :-1])

# %% [markdown]
# With the large embedding the model starts out sure, and wrong.
# The [residual stream](C_glossary.ipynb#residual-stream) still holds the embedding of the token that was just read, and its dot product with itself is near 64, so the model bets that every character follows itself.
# With small tables it begins near the loss of a uniform guess.

# %% jupyter={"source_hidden": true}
cu.quiz("gpt", "who_sees")

# %% [markdown]
# ## Training it
#
# The text is one long row of numbers.
# A batch consists of **windows** that begin at random positions of the text, and at each position of a window the model has to say the next token.
# Thanks to the causal mask one forward pass asks all 64 questions at once.
#
# ### Exercise 2 · Find the bug
#
# *bug · 9 minutes*
#
# The function below draws the windows, and `roll(-1)` makes 1 2 3 0 of 0 1 2 3.
# To test it we take the text 0, 1, 2, … and a "model" that always says the next number.
# Its **accuracy**, the share of right answers, should be 1, but it isn't.
# Write `fixed_windows`, and the chapter trains with it.


# %%
def buggy_windows(stream, length, count, generator):
    """Random windows: tokens and targets, each (count, length)."""
    starts = torch.randint(len(stream) - length, (count, 1), generator=generator)
    tokens = stream[starts + torch.arange(length)]
    return tokens, tokens.roll(-1, dims=1)


counting = buggy_windows(torch.arange(1000), 8, 500, torch.Generator().manual_seed(0))
print(f"accuracy: {(counting[0] + 1 == counting[1]).float().mean():.3f}")


# %% tags=["exercise", "bug"]
def fixed_windows(stream, length, count, generator):
    """Random windows: tokens and targets, each (count, length)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_windows(fixed_windows)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_windows_solution(stream, length, count, generator):
    """`roll` puts the window's first token behind its last: read one token more instead."""
    starts = torch.randint(len(stream) - length, (count, 1), generator=generator)
    both = stream[starts + torch.arange(length + 1)]
    return both[:, :-1], both[:, 1:]


cu.checks.fixed_windows(fixed_windows_solution)

# %% [markdown]
# Here is what the training loop does, in the order of its lines.
#
# - The optimizer is AdamW, which is [Adam](C_glossary.ipynb#adam) with **[weight decay](C_glossary.ipynb#weight-decay)**: each step also shrinks the weights a little.
# - `done` gives the share of training that is over, by steps or, at the end of the chapter, by minutes. `:=` keeps it as `share`, and we go on while it is below 1.
# - We draw windows and compute the loss of all their questions.
#   `F.cross_entropy` wants the axis of the 33 logits right after the batch, and `.mT` puts it there.
# - The **learning rate** rises over 30 steps, then falls along half a cosine, so the first steps are small and the last ones, too.
# - `backward` computes the gradient, and **[clipping](C_glossary.ipynb#gradient-clipping)** shortens it if it is longer than 1, so that an odd batch can't throw the model off.
# - `watch`, if there is one, may look on after each step.

# %%
windows = cu.choose(fixed_windows, training.windows)


def train(model, stream, done, lr=1e-2, batch=16, watch=None):
    """Train until done(step) is 1; the loss of each step. `watch` may look on."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr, (0.9, 0.99), weight_decay=0.1)
    losses = []
    while (share := done(len(losses))) < 1:
        tokens, targets = windows(stream, length, batch, generator)
        loss = F.cross_entropy(model(tokens).mT, targets)
        rise, fall = min((len(losses) + 1) / 30, 1), (1 + math.cos(math.pi * share)) / 2
        optimizer.param_groups[0]["lr"] = lr * rise * fall
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if watch:
            watch(len(losses))
    return losses


# %% [markdown]
# Before we train, we check five things, because a mistake found here saves hours later.
# The first check needs a count by hand.
# A block has $4d^2$ weights in its attention, $8d^2$ in its network, and $4d + 5d + 4d$ numbers in the biases of both and the two norms, which is $12 d^2 + 13 d$.


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def summed_loss(model, batch):
    loss = F.cross_entropy(model(batch.tokens).mT, batch.targets, reduction="sum")
    return loss, batch.targets.numel()


some = windows(stream, length, 32, torch.Generator().manual_seed(1))
d = sizes["embed_dim"]
by_hand = (len(alphabet) + length) * d + 2 * (12 * d**2 + 13 * d) + 2 * d
whole = torch.full((32,), length)
cu.before_training(gpt, TextBatch(some[0], whole, some[1]), summed_loss, expected=by_hand, lr=3e-4)

# %% [markdown]
# Now we train the GPT and compare it with counting.
# At the start of a window it has hardly anything to look at, so to be fair we measure the loss only on the second half of each window.
# The windows overlap by half, and almost nothing is left out.
# While we measure, `@torch.no_grad()` keeps PyTorch from recording what a gradient would need.

# %% tags=["nbval-ignore-output"]
steps = 500  # try 50 … 1500
gpt.load_state_dict(package.state_dict())  # untrained, if this cell runs again
losses = train(gpt, stream, lambda step: step / steps)


@torch.no_grad()
def loss_by_position(model, both):
    """Mean loss at each position of the windows (count, length + 1), after 1, 2, … tokens."""
    return F.cross_entropy(model(both[:, :-1]).mT, both[:, 1:], reduction="none").mean(0)


by_position = loss_by_position(gpt, val_stream.unfold(0, length + 1, length // 2))
gpt_loss = by_position[length // 2 :].mean().item()
print(f"validation loss: GPT {gpt_loss:.2f}, counting {min(counted):.2f}")

# %% [markdown]
# The left-hand figure shows the loss over the steps, with dotted lines for counting.
# The right-hand figure shows the loss over the number of characters that the GPT can look back: one at the first position of a window, ten at the tenth, just like n-grams of growing length.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, (left, right) = cu.subplots(
    1, 2, width=8.6, height=3.2,
    alt="Left, the training loss over 500 steps falls below the lines of n-grams that look back 0, 1, 2 and nearly 3 characters; dots of "
    "two longer trainings go on to 1,500 steps and lie lower, above the line of 8. Three diamonds at 1,200 steps, of a GPT that reads "
    "pieces of words, lie below all lines, at 0.6. Right, the validation loss over the characters it may look at: the GPT "
    "falls with up to eight characters, but lies above counting at each of them, and then it stays nearly level.",
)  # fmt: skip
smooth = [sum(losses[max(0, i - 9) : i + 1]) / min(i + 1, 10) for i in range(len(losses))]
left.plot(smooth, color=cu.COLORS["key"], label="training")
for i, run in enumerate(cu.stored_runs("gpt", "longer")):
    x, y = zip(*run.curves["held_out"][1:], strict=True)
    label = None if i else "validation, longer training"
    left.plot(x, y, ".", color=cu.COLORS["value"], label=label)
in_pieces = cu.stored_runs("gpt", "ladder", parts="+ second block", steps=1200)
per_letter = pieces_per_letter(sentences[:1000])
piece_losses = [run.result["loss"] * per_letter for run in in_pieces]
label = "validation, pieces of words"
left.plot([1200] * 3, piece_losses, "D", color=cu.COLORS["wrong"], markersize=4, label=label)
for back in (0, 1, 2, 3, 8):
    left.axhline(counted[back], color="0.5", linestyle=":", linewidth=1)
    left.text(1560, counted[back], f"{back} back", va="center", fontsize=8)
left.plot([steps], [gpt_loss], "o", color=cu.COLORS["query"], label="validation, at the end")
left.legend(loc="upper right", fontsize=8)
left.set(xlabel="Step", ylabel="Loss (nats)", xlim=(0, 1540), ylim=(0.5, 3.5))
right.plot(range(1, length + 1), by_position, color=cu.COLORS["key"], label="GPT")
right.plot(range(1, len(counted)), counted[1:], "o:", color="0.5", label="counting")
right.set(xlabel="Characters it may look at", xscale="log", ylim=(0.5, 2.5))
right.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
right.minorticks_off()
right.legend()
fig

# %% [markdown]
# The GPT's loss passes the first lines of counting one after the other.
# The right-hand figure shows where it falls short.
# Up to eight characters it does worse than counting, and beyond eight it gains almost nothing.
# Training three times as long helps (green dots), but not enough.
#
# A token doesn't have to be a letter.
# The diamonds show the same class with *pieces of words* for tokens ([how they are found](13_gpt_further.ipynb#Pieces-of-words)).
# In fewer steps, this GPT has read more than twice as much text as the one behind the last green dots.
# Its validation loss per character is 0.61, and counting can't match that.
# Counting gets down to 0.72 with letters and to 0.70 with the same pieces.
# **Letter by letter our GPT loses to counting here. With pieces of words, and more text, it wins.**

# %% [markdown]
# ## Writing
#
# A GPT writes by drawing a character from its probabilities, reading it, and drawing the next.
# A **temperature** $T$ divides the logits, $p_i \propto e^{z_i/T}$, which sharpens the choice below 1 and flattens it above.
# If four tokens have the weights 8, 4, 2, and 1, then $T = ½$ squares them to 64, 16, 4, and 1, and the best one gets $64/85 = 0.75$.
# **Top-k** keeps the best $k$ tokens, and **top-p** those that together reach a probability of $p$ ([the nucleus](13_gpt_further.ipynb#The-nucleus)).
# The next figure shows what our GPT expects after the beginning of a word, at three temperatures.

# %% tags=["nbval-ignore-output"]
prompt = "the old w"  # try "the old w" | "she wants t" | "the "
with torch.no_grad():
    z = gpt(torch.tensor([[number[letter] for letter in prompt]]))[0, -1]
ways = {f"T = {t:g}": next_token_probs(z, temperature=t) for t in (1, 0.5, 2)}

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
fig, axes = cu.subplots(
    1, 3, width=8.0, height=2.3, sharey=True,
    alt="Bars of the eight likeliest next characters at three temperatures. At temperature 1 a few share most of the probability; at ½ the best "
    "one has nearly all; at 2 it is spread over many.",
)  # fmt: skip
shown = z.topk(8).indices
for ax, (name, probs) in zip(axes, ways.items(), strict=True):
    ax.bar(range(8), probs[shown], color=cu.COLORS["key"])
    ax.set_xticks(range(8), [{" ": "␣", "\n": "⏎"}.get(alphabet[i], alphabet[i]) for i in shown])
    ax.set_title(name, fontsize=9)
axes[0].set(ylabel="Probability", ylim=(0, 1))
fig

# %% [markdown]
# ### Exercise 3 · Write on a cache
#
# *build · 12 minutes*
#
# Write `my_generate`, the loop that draws and reads.
# The keys and values of the tokens that were read don't change, so we keep them in a **[KV cache](C_glossary.ipynb#kv-cache)** and let only the new token pass through the model.
# `state = model.start()` makes empty caches, and `model.step(tokens, state)` reads (batch, new) tokens onto them and gives the logits of the next, (batch, vocab_size).
# `next_token_probs(logits, temperature=…, top_k=…)` gives the probabilities, and `torch.multinomial(probs, 1, generator=generator)` draws.
# Read each token at most once, and don't read the last one drawn, because nobody asks what follows.


# %% tags=["exercise", "build"]
def my_generate(model, prompt, steps, temperature=1.0, top_k=None, generator=None):
    """(batch, n) ids → (batch, n + steps): the prompt and the tokens drawn."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_generate(my_generate)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
@torch.no_grad()
def my_generate_solution(model, prompt, steps, temperature=1.0, top_k=None, generator=None):
    """First the whole prompt is new, then the token drawn last."""
    state, text, new = model.start(), prompt, prompt
    for _ in range(steps):
        logits = model.step(new, state)
        probs = next_token_probs(logits, temperature=temperature, top_k=top_k)
        new = torch.multinomial(probs, 1, generator=generator)
        text = torch.cat([text, new], dim=1)
    return text


cu.checks.my_generate(my_generate_solution)

# %% [markdown]
# Our GPT has only 64 positions, so for longer texts the function below lets it read the last 32 characters and draw 32 more, again and again.

# %% tags=["nbval-ignore-output"]
generate = cu.choose(my_generate, training.generate)


def write(model, ids, count, temperature=0.7, seed=0):
    """The ids and `count` more, half a window at a time."""
    ids, end, draws = [*ids], len(ids) + count, torch.Generator().manual_seed(seed)
    while len(ids) < end:
        start = torch.tensor([ids[-length // 2 :]])
        text = generate(model, start, length // 2, temperature, None, draws)
        ids += text[0, start.shape[1] :].tolist()
    return ids[:end]


prompt = [number[letter] for letter in "she wants to "]
for temperature in (0, 0.7, 1.5):
    text = "".join(alphabet[i] for i in write(gpt, prompt, 140, temperature))
    print(f"T = {temperature}:", text.replace("\n", " / "))

# %% [markdown]
# At temperature 0 we always take the best character (**[greedy decoding](C_glossary.ipynb#greedy-decoding)**), and the text soon goes round in circles.
# At 0.7 you see words and near-words, and at 1.5 hardly any.
#
# ## Your file
#
# Put the path of a text file and a number of minutes into the next cell.
# It trains *your* class on nine tenths of the text, measures the validation loss every 25 steps, and keeps the weights from the step where it was lowest (**early stopping**).
# With `begin = "Shakespeare"`, as here, your class starts from weights that were trained on Shakespeare's plays, cut into pieces of words.
#
# How long does it take until the validation loss turns up?
# After Shakespeare it did so after some 20 steps on the story (4 KB).
# From nothing, in letters, it took some 150 steps on the story and 2,400 on 100 KB of code.
# The GPT at the top of the page took 400, but it is smaller and reads a quarter as many characters a step.
# An idle laptop manages a few thousand steps in a minute, and a busy one perhaps a tenth of that.
# If the cell says that the loss is still falling, give it twice the minutes.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The story has only 4,000 characters. On its validation tenth, a GPT that reads pieces of words and is trained from scratch has a loss of 2.08. What will it be if the GPT has read Shakespeare before?",
    ["about 2.1", "about 1.55", "about 0.8"],
    answer="about 1.55",
    wrong={
        "about 2.1": "Shakespeare's words are often different, that's true. But what does a GPT that knows no words at all have to learn first from its 4,000 characters?",
        "about 0.8": "It does know spelling and short words already. But how well do we guess Shakespeare himself by counting, with a million characters of his?",
    },
    why="2.08 falls to 1.55, because the spelling, the spaces, and the common words are there already.",
)

# %% tags=["nbval-ignore-output"]
path, minutes = "../data/prose/story.txt", 0.1  # put in a file of your own, and 1 to 10 minutes
begin = "Shakespeare"  # try "Shakespeare" | "nothing"

done, has_read = until(minutes), has_read_plays(begin)
own = OwnText(path, length, pieces=has_read)
mine = GPT(len(own), **sizes)
if has_read:
    mine.load_state_dict(cu.load_model("gpt_plays").state)
best = {"validation": math.inf, "counting": own.counted(minutes)}


def keep_best(step, last=False):
    if last or step % 25 == 0:
        val, training = (per_letter * loss_by_position(mine, both)[length // 2 :].mean().item()
                         for both, per_letter in own.measured)  # fmt: skip
        if val < best["validation"]:
            weights = {name: value.clone() for name, value in mine.state_dict().items()}
            best.update(validation=val, training=training, step=step, weights=weights)


keep_best(0)
lr = 3e-3 if has_read else 1e-2
losses = train(mine, own.train, done, lr, watch=keep_best)
keep_best(len(losses), last=True)
mine.load_state_dict(best["weights"])
print(own)
print(own.decode(write(mine, own.train[:20].tolist(), 200)))

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=6.0, height=1.7,
    alt="Three bars for the story after a few seconds of training from Shakespeare's plays: the validation loss, near 1.6, is smaller than that of counting, near 1.8.",
)  # fmt: skip
names = ["counting", "validation", "training"]
bars = ax.barh(
    names, [best[name] for name in names], color=[cu.COLORS[c] for c in ("line", "query", "key")]
)
ax.bar_label(bars, fmt="%.2f", padding=3)
ax.set(xlabel=f"Loss (nats per character), best at step {best['step']} of {len(losses)}")
if best["step"] == 0:
    print(f"None of the {len(losses)} steps was better than the beginning: give it more minutes.")
elif best["step"] > len(losses) - 25:
    print("The validation loss is still falling: give it twice the minutes.")
fig

# %% [markdown]
# On the story **your GPT is ahead of counting**, but it has read Shakespeare, and counting has not.
# The next figure shows three texts: the story, some pages of Python's documentation, and the code of its `argparse`.
# On each text we trained three GPTs.
# One reads letters.
# The other two read pieces of words, and one of these had read Shakespeare first.
# We also counted, once with his plays and once without.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
trained = cu.stored_runs("gpt", "own_texts_in_pieces", lowest="loss")
letter_by_letter = cu.stored_runs("gpt", "own_texts", start="nothing")
tables = cu.stored_runs("gpt", "own_texts_counted")
titles = {"story": "story, 4 KB", "topics": "documentation, 26 KB", "argparse": "code, 100 KB"}
fig, ax = cu.subplots(
    width=7.6, height=3.4,
    alt="Losses on three texts. On the story a GPT of pieces reaches 2.1 from scratch and 1.55 after Shakespeare, one of letters 2.2; counting reaches 1.84 and, "
    "with Shakespeare, 1.61. On the documentation the GPT of pieces falls from 1.87 to 1.67 after Shakespeare, while the one of letters reaches 1.63 and "
    "counting 1.46, or 1.62 with Shakespeare. On the code pieces reach 1.2 and 1.04, letters 0.94, and counting 0.90 or 1.01.",
)  # fmt: skip
looks = (
    ("nothing", "key", "from scratch", "alone"),
    ("Shakespeare", "value", "after Shakespeare", "with Shakespeare"),
)
for row, text in enumerate(titles):
    letters = min(r.result["loss"] for r in letter_by_letter if r.config["text"] == text)
    ax.plot(letters, row - 0.25, "o", color=cu.COLORS["query"], label="GPT, letters, from scratch")
    for start, color, label, _ in looks:
        losses = [
            run.result["loss"]
            for run in trained
            if (run.config["text"], run.config["start"]) == (text, start)
        ]
        label = f"pieces, {label}"
        ax.plot(losses, [row] * len(losses), "D", markersize=5, color=cu.COLORS[color], label=label)
    for start, color, _, label in looks:
        (count,) = (
            run.result["Kneser–Ney"]
            for run in tables
            if (run.config["text"], run.config["before"]) == (text, start)
        )
        ax.plot(count, row + 0.25, "x", color=cu.COLORS[color], label=f"counting, {label}")
ax.set_yticks(range(3), titles.values())
ax.set(xlabel="Loss on the validation tenth (nats per character)", ylim=(2.5, -0.5))
ax.legend(*(part[:5] for part in ax.get_legend_handles_labels()), fontsize=8)
fig

# %% [markdown]
# **With pieces of words, reading Shakespeare first helped on every text**, most of all on the story, which is short *and* English prose.
# There the GPT is about level with counting that has read Shakespeare as well.
# On the documentation and on the code, a GPT that reads single letters did better here than one that reads Shakespeare's pieces, and counting without Shakespeare did best of all.
#
# On Shakespeare himself, a GPT [trained on a GPU](13_gpt_further.ipynb#Shakespeare-on-a-GPU) can beat counting even letter by letter.
# It took a hundred times the parameters, longer windows, and dropout (one training run, at its best step).
# What still separates such a GPT from an assistant?
# An assistant has far more parameters, has read far more text, and is trained a second time, on good answers to instructions and on what people prefer ([Ouyang et al., 2022](https://arxiv.org/abs/2203.02155)).
# In [Real weights](18_real_weights.ipynb) you will load a small one into this chapter's class, and it will answer you.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
Markdown(
    "<details><summary><em>How sure is this?</em></summary>\n\n"
    "In the figure above, each diamond is one of three seeds, trained at the best of four or six rates, for 120 steps on the story and 240 on the other texts. "
    "The GPTs of letters had only one seed, a longer training, and mostly one rate. More training could change the order on the documentation and the code. "
    "In *Training it*, the three diamonds are three seeds at one learning rate, and the green dots are two seeds at the chapter's rate. "
    "\n\nA GPT of letters can read Shakespeare first, too. With one seed it then reaches 1.64 on the story, 1.53 on the documentation, and 0.94 on the code, and counting stays ahead on all three. "
    "On the story the GPT of pieces reaches 1.55 after Shakespeare. Counting reaches 1.61 with his counts added, and 1.54 with the best mix of his table and the story's. "
    "These numbers are too close to tell apart, because the story's validation tenth contains only some 400 characters, or 160 pieces. "
    "\n\nWe chose by the validation loss itself, the best n up to 7 for counting and the best rate and step for the GPTs, and that flatters both a little. "
    "On the GPU the GPT reached 1.48, and counting reaches 1.52 there. "
    "\n\n</details>"
)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Letter by letter our GPT is far ahead of bigrams, but behind the best counting.",
    given=steps == 500,
):
    assert min(counted) < gpt_loss < counted[2] < counted[1]

with cu.guard("With three times as many steps it is still learning, and still behind counting."):
    later = [run.curves["held_out"] for run in cu.stored_runs("gpt", "longer")]
    assert all(min(counted) < curve[-1][1] < curve[-2][1] for curve in later)

with cu.guard("With pieces of words it is ahead of counting, in letters and in pieces."):
    in_all = cu.stored_run("gpt", "kneser_ney").result
    assert max(piece_losses) + 0.05 < min(in_all.values()) * per_letter < min(counted)

with cu.guard("On Shakespeare counting is at its best when it looks six characters back."):
    assert plays.index(min(plays)) == 6

with cu.guard(
    "Reading Shakespeare first helps a GPT of pieces on every text, most of all on the story; his counts help on the story only."
):
    gains, mixed = {}, cu.stored_runs("gpt", "own_texts_mixed")
    for text in titles:
        least, most = (
            [
                r.result["loss"]
                for r in trained
                if (r.config["text"], r.config["start"]) == (text, start)
            ]
            for start in ("Shakespeare", "nothing")
        )
        assert max(least) < min(most)
        gains[text] = sum(most) / len(most) - sum(least) / len(least)
        alone, after = (run.result["Kneser–Ney"] for run in tables if run.config["text"] == text)
        assert (after < alone) is (text == "story")
        assert (max(least) < alone) is (text == "story")
        if of_text := [r for r in mixed if r.config["text"] == text]:
            assert 0.01 < min(alone, after) - of_text[0].result["loss"] < 0.1
    assert max(gains, key=gains.get) == "story"

# %% [markdown]
# ## Take-aways
#
# - A language model gives probabilities to the next token, and its loss means something only next to a baseline: what counting reaches on the same text.
# - A GPT is two tables, blocks of causal attention and a feed-forward network, and an output layer that shares the embedding's weights.
#   One forward pass asks as many questions as the window has tokens.
# - A GPT writes by drawing a token and reading it, and temperature, top-k, and top-p are our choice.
# - On a small text a GPT soon overfits, so keep the weights of the lowest validation loss, and try starting from a model that has read something before.
# - Here a GPT that reads letters lost to counting, and one that reads pieces of words, and more text, won.

# %% [markdown] tags=["next"]
# Next: [BERT and transfer](14_bert_and_transfer.ipynb), where reading something else first becomes the whole idea and gets its name, **pretraining**.
# On the path to a real model, [Real weights](18_real_weights.ipynb) comes next.
# The path to GPT ends here.
# [GPT: pieces of words, bits and the nucleus](13_gpt_further.ipynb) explains pieces of words, asks what each part is good for, and shows a GPT that copies and a run on a GPU.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("gpt")

# %% [markdown]
# ## References
#
# - Chen, S. F. and Goodman, J. (1999).
#   [An empirical study of smoothing techniques for language modeling](https://doi.org/10.1006/csla.1999.0128).
#   Computer Speech and Language 13(4).
# - Ouyang, L. et al. (2022).
#   [Training language models to follow instructions with human feedback](https://arxiv.org/abs/2203.02155).
#   NeurIPS.
# - Press, O. and Wolf, L. (2017).
#   [Using the output embedding to improve language models](https://arxiv.org/abs/1608.05859).
#   EACL.
# - Radford, A., Narasimhan, K., Salimans, T. and Sutskever, I. (2018).
#   [Improving language understanding by generative pre-training](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf).
#   OpenAI.
