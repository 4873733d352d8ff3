# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The Transformer
#
# **Attention lets tokens look at each other.
# What else does a network need to turn one sequence into another?**
# Four parts, each a few lines long: a small network for each token, a norm, a sum, and a decoder that looks at what the encoder has read.
#
# After this chapter you can
#
# - draw the Transformer with all its parts, and say where the memory leaves the encoder;
# - write its blocks and the whole model, equal to PyTorch's blocks and to the package's model in outputs and gradients;
# - say which token can change which, and test it;
# - count the parameters with a pencil;
# - say what a residual connection keeps, and under which condition.
#
# It needs [Multi-head attention](08_multi_head_attention.ipynb), [Positions](09_positions.ipynb) and [Masks](04_masks.ipynb).
#
# On the way to GPT: [The whole on one page](#The-whole-on-one-page), [A network and a norm for each token](#A-network-and-a-norm-for-each-token), [Around every sublayer](#Around-every-sublayer), [The two blocks](#The-two-blocks), [The whole model](#The-whole-model).
# On the way to images: [The whole on one page](#The-whole-on-one-page), [A network and a norm for each token](#A-network-and-a-norm-for-each-token), [Around every sublayer](#Around-every-sublayer), [The two blocks](#The-two-blocks).

# %%
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.transformer import blocks, totals

cu.seed_everything(0)

# %% jupyter={"source_hidden": true}
cu.recall("multi_head_attention", "positions", "masks")

# %% [markdown]
# ## The whole on one page
#
# One small task runs through this chapter.
# The source is a row of digits from 0 to 4.
# The target is its running totals on a clock with five hours, where 5 is 0 again: 3, 3 + 4 = 7, 7 + 4 = 11 and 11 + 2 = 13 become 3, 2, 1 and 3.
#
# | source | 3 | 4 | 4 | 2 |
# |---|---|---|---|---|
# | **target** | **3** | **2** | **1** | **3** |
#
# The next digit follows from the digit just written, the next one of the source, and a table of 5 × 5 sums.
# At the end your model does this, and we take its parts away one by one.
#
# The **Transformer** ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)) has an encoder and a decoder, as the translator of [Bahdanau attention](06_bahdanau_attention.ipynb) has, but no recurrence.
# The encoder reads the source; the decoder writes the target, token by token, each from those before.
# In training the decoder reads the true target, shifted by one place, and predicts the next token at every place at once (**teacher forcing**); padding does not count in the loss.
# Read the drawing upwards.
# It shows one of the paper's six blocks on each side:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
add = {"color": "wash"}
attend = {"color": "key"}
network = {"color": "line"}
cu.Drawing(
    """
    .     out
    M     n5
    n2    f2
    f1    n4
    n1    cross
    self  n3
    .     mself
    X     Y
    E     D
    src   tgt
    """,
    nodes={
        "src": cu.Note("source tokens"),
        "E": cu.Box("embedding · √d\n+ positions"),
        "X": cu.Cells(4, 4, "X", shape="(m, d)", color="line", cell=12),
        "self": cu.Box("self-attention", **attend),
        "n1": cu.Box("add & norm", **add),
        "f1": cu.Box("position-wise network", **network),
        "n2": cu.Box("add & norm", **add),
        "M": cu.Cells(4, 4, "memory", shape="(m, d)", color="value", cell=12),
        "tgt": cu.Note("target tokens, shifted right"),
        "D": cu.Box("embedding · √d\n+ positions"),
        "Y": cu.Cells(3, 4, "Y", shape="(n, d)", color="line", cell=12),
        "mself": cu.Box("masked self-attention", **attend),
        "n3": cu.Box("add & norm", **add),
        "cross": cu.Box("cross-attention", **attend),
        "n4": cu.Box("add & norm", **add),
        "f2": cu.Box("position-wise network", **network),
        "n5": cu.Box("add & norm", **add),
        "out": cu.Box("output layer: logits", shape="(n, target vocabulary)"),
    },
    arrows=["src -> E -> X -> self -> n1 -> f1 -> n2 -> M",
            "tgt -> D -> Y -> mself -> n3 -> cross -> n4 -> f2 -> n5 -> out",
            cu.Arrow("M", "cross", start="right", end="left", color="value", label="K, V"),
            cu.Arrow("X", "n1", around="left"), cu.Arrow("n1", "n2", around="left"),
            cu.Arrow("Y", "n3", around="right"), cu.Arrow("n3", "n4", around="right"),
            cu.Arrow("n4", "n5", around="right")],
    groups={"encoder block": "self n1 f1 n2",
            "decoder block": "mself n3 cross n4 f2 n5"},
    alt="Two stacks, read upwards. Left, the encoder: source tokens, embedding and positions, then a block "
    "of self-attention, add and norm, position-wise network, add and norm. Above the last block stands the memory. Right, "
    "the decoder: a block of masked self-attention, cross-attention and position-wise network, each followed by add "
    "and norm, then the output layer. Arrows lead around each sublayer to its add and norm. An arrow from the memory, "
    "above the encoder's last block, leads to the cross-attention as keys and values.",
    gap=(84, 20),
)  # fmt: skip

# %% [markdown]
# Each blue box is a multi-head attention with weights of its own:
#
# | attention | queries from | keys and values from | mask |
# |---|---|---|---|
# | self-attention of the encoder | source | source | padding of the source |
# | masked self-attention | target | target | causal |
# | [cross-attention](C_glossary.ipynb#cross-attention) | target | memory | padding of the source |
#
# The **memory** is what leaves the *last* encoder block, and each decoder block reads the same memory.
# The target needs no padding mask: its padding stands at the end, hidden by the causal mask, and does not count in the loss.
# New are the gray boxes and "add & norm".
# From the bottom up:

# %% jupyter={"source_hidden": true}
cu.quiz("transformer", "top_of_the_encoder")

# %% [markdown]
# ## A network and a norm for each token
#
# Once the weights are fixed, attention is linear in the values: it only takes averages.
# So each block has a second sublayer, the **[position-wise network](C_glossary.ipynb#position-wise-network)**, also called feed-forward network: two linear layers with a ReLU between them, for *each token on its own*,
#
# $$\mathrm{FFN}(x) = \max(0,\ xW_1 + b_1)\,W_2 + b_2 .$$
#
# $W_1$ has $d$ rows and `ffn_dim` columns, often $4d$, and $W_2$ leads back.
# By hand, with $d = 1$, `ffn_dim` 2, $W_1 = (1, -1)$, $W_2 = (1, 1)^\top$ and no biases: $\max(0, x) + \max(0, -x) = |x|$ (the table below).
# And who depends on whom?
# We exchange one of six tokens and look which rows of the output change.


# %%
class FeedForward(nn.Sequential):
    """The same two layers for each token: (…, embed_dim) → (…, embed_dim)."""

    def __init__(self, embed_dim, ffn_dim, *, dropout=0.0):
        super().__init__(
            nn.Linear(embed_dim, ffn_dim),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(ffn_dim, embed_dim),
        )


# %%
def moved(function, x, place):
    """The rows of function(x) that change when token `place` becomes another one."""
    other = x.clone()
    other[:, place] = torch.randn(x.shape[-1])
    changes = (function(other) - function(x)).abs().amax(dim=(0, 2))
    return (changes > 1e-6).nonzero().flatten().tolist()


slope = -1.0  # try -2.0 … 2.0
token = 2  # try 0 … 5
ffn, attention = FeedForward(8, 32), cu.MultiHeadAttention(8, 2)
six = torch.randn(1, 6, 8)
alone = moved(ffn, six, token)
together = moved(lambda x: attention(x, x, x), six, token)
print("rows that change: network", alone, "self-attention", together)
three = torch.tensor([[-2.0], [0.0], [3.0]])  # three tokens, d = 1
hidden = (three @ torch.tensor([[1.0, slope]])).relu() + 0.0
by_hand = torch.cat([three, hidden, hidden.sum(dim=1, keepdim=True)], dim=1)
pd.DataFrame(by_hand, columns=["token", "hidden 0", "hidden 1", "FFN"])

# %% [markdown]
# Behind the network one row changes, behind attention all six.
# In a block the network has to give $d$ numbers, because they are added to its input.
#
# ### Which numbers form a group?
#
# A **norm** brings a group of numbers to mean 0 and variance 1, then multiplies by a learned scale and adds a learned shift.
# For **[layer norm](C_glossary.ipynb#layer-norm)** ([Ba et al., 2016](https://arxiv.org/abs/1607.06450)) a group is *one token*.
# With a pencil: $(1, 2, 3, 4)$ has mean 2.5 and variance $(1.5^2 + 0.5^2 + 0.5^2 + 1.5^2)/4 = 1.25$, so that the 1 becomes $-1.5/\sqrt{1.25} = -1.342$.
# (A tiny $\varepsilon$ under the root avoids 0/0.)
# Other groups are possible.
# Here are two sentences of two tokens with four features:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
pair = torch.tensor([[[1, 2, 3, 4], [5, 6, 7, 8]], [[5, 6, 7, 8], [5, 1, 0, -1]]]).float()
groups = {"layer norm": (2,), "over the sentence": (1, 2), "batch norm": (0, 1)}
fig, axes = cu.subplots(
    1, 3, width=7.6, height=2.3,
    alt="Sixteen numbers three times, colored by group. Layer norm: each row, that is each token, is a group. Over "
    "the sentence: two rows each. Batch norm: each column, that is each feature, through both sentences.",
)  # fmt: skip
palette = [cu.COLORS[name] for name in ("key", "wrong", "query", "value")]
for ax, (name, over) in zip(axes, groups.items(), strict=True):
    for s, t, f in torch.cartesian_prod(*map(torch.arange, pair.shape)).tolist():
        group = {(2,): 2 * s + t, (1, 2): s, (0, 1): f}[over]
        row = 2.5 * s + t
        ax.fill_between(
            [f + 0.03, f + 0.97], row + 0.03, row + 0.97, color=palette[group], alpha=0.3
        )
        ax.text(f + 0.5, row + 0.5, f"{pair[s, t, f]:.0f}", ha="center", va="center")
    ax.set(xlim=(0, 4), ylim=(4.5, 0), xticks=[], title=name)
    ax.set_yticks([0.5, 1.5, 3, 4], ["0, 0", "0, 1", "1, 0", "1, 1"])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
axes[0].set_ylabel("sentence, token")
fig


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def normalize(x, axes):
    """Mean 0 and variance 1 over these axes of (sentences, tokens, features)."""
    mean = x.mean(axes, keepdim=True)
    variance = x.var(axes, keepdim=True, correction=0)
    return (x - mean) / (variance + 1e-5).sqrt()


norms = {}
for name, over in groups.items():
    effects = []
    for changed in ((0, 1), (1, 0)):  # the second token, the other sentence
        other = pair.clone()
        other[changed] = torch.tensor([3.0, 0.0, 0.0, -1.0])
        moved_by = (normalize(other, over) - normalize(pair, over))[0, 0].abs().max()
        effects.append("changes it" if moved_by > 1e-6 else "–")
    norms[name] = [round(normalize(pair, over)[0, 0, 0].item(), 3), *effects]
cu.equal(lambda x: normalize(x, (2,)), nn.LayerNorm(4), pair)
asked = ["the first 1 becomes", "another second token", "another second sentence"]
pd.DataFrame(norms, index=asked).T

# %% [markdown]
# Numbers of one color share a mean and a variance.
# Over a sentence, the second token changes the first: in a decoder the future would leak into the past, whatever the mask says.
# Batch norm ([Ioffe and Szegedy, 2015](https://arxiv.org/abs/1502.03167)) mixes in the other sentences of the batch as well, padding included, and in eval mode it uses averages that it collected in training: another function.
# Of the three only layer norm looks at one token alone.

# %% jupyter={"source_hidden": true}
cu.quiz("transformer", "leaking_norm")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Network and layer norm see one token; the two other norms let a later token in."):
    assert alone == [token] and together == list(range(6))
    assert [row[0] for row in norms.values()] == [-1.342, -1.528, -1.732]
    assert [row[1] for row in norms.values()] == ["–", "changes it", "changes it"]
    assert [row[2] for row in norms.values()] == ["–", "–", "changes it"]

# %% [markdown]
# ## Around every sublayer
#
# Let $f$ be a sublayer, an attention or a network.
# "Add" means that its output is *added* to its input, $x + f(x)$: a **[residual connection](C_glossary.ipynb#residual)** ([He et al., 2016](https://arxiv.org/abs/1512.03385)).
# The norm has two places:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    ya  yb
    na  pb
    pa  fb
    fa  nb
    xa  xb
    """,
    nodes={
        "xa": cu.Note("x"), "fa": cu.Box("sublayer f", color="key"), "pa": cu.Circle("+"),
        "na": cu.Box("norm", color="wash"), "ya": cu.Note("after:\nnorm(x + f(x))"),
        "xb": cu.Note("x"), "nb": cu.Box("norm", color="wash"),
        "fb": cu.Box("sublayer f", color="key"), "pb": cu.Circle("+"),
        "yb": cu.Note("before:\nx + f(norm(x))"),
    },
    arrows=["xa -> fa -> pa -> na -> ya", "xb -> nb -> fb -> pb -> yb",
            cu.Arrow("xa", "pa", around="right"), cu.Arrow("xb", "pb", around="right")],
    alt="Two orders, read upwards. After: x goes through the sublayer, is added to it, and the sum is normalized. "
    "Before: x is normalized, goes through the sublayer, and is added; the sum passes no norm.",
    gap=(90, 20),
)  # fmt: skip


# %%
class Residual(nn.Module):
    """x plus a sublayer of x, with the norm before the sublayer or after the sum."""

    def __init__(self, embed_dim, *, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm = nn.LayerNorm(embed_dim)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x, sublayer):
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


# %% [markdown]
# **After** ([post-norm](C_glossary.ipynb#post-norm-and-pre-norm)) is the order of the 2017 paper and of BERT, and the default of PyTorch's layers.
# **Before** (pre-norm) is the order of GPT-2, of ViT and of most large language models since ([Xiong et al., 2020](https://arxiv.org/abs/2002.04745) compare the two).
# With the norm before, the sum itself is never normalized, and so such a stack ends with one more norm.
#
# **[Dropout](C_glossary.ipynb#dropout)** (in training a random share of the numbers becomes 0) has three places here: the sum of embedding and position, the output of each sublayer before it is added (these two are the paper's), and the hidden layer of the network.
# PyTorch's layers drop attention weights, too.
#
# ### What does the sum keep?
#
# We stack 24 random position-wise networks, without biases, in four ways.
# The size of $f$ matters: $f(x)$ is $s$ times as large as $x$.
# PyTorch's initialization gives about $s = 0.24$ (printed below); we try $s = 1$ as well.
# Two questions, over three seeds each.
# How large is the gradient that arrives at the input?
# (It is 1 if the layers change nothing.)
# And what share of the input's variance can a *linear* map compute from the output?
# (This is $R^2$, on new tokens; 0 is no better than the mean.)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "24 layers, each with a norm and without a residual connection. A gradient arrives at the input. Which share of the input can a linear map read off the output?",
    ["nearly all", "about half", "nearly nothing"],
    answer="nearly nothing",
    wrong={
        "nearly all": "A gradient says that the output depends on the input. Does it say that a linear map can undo 24 ReLU layers?",
        "about half": "Each layer replaces its input by something else. How much would be left after one layer, and after 24?",
    },
    why="A norm keeps sizes. Each layer still replaces what came in by a random nonlinear function of it.",
)

# %%
small = 0.24  # try 0.05 … 2.0
large = 1.0  # try 0.05 … 2.0


def norm(x):
    return F.layer_norm(x, x.shape[-1:])


ORDERS = {
    "neither": lambda x, f: f(x),
    "norm only": lambda x, f: f(norm(x)),
    "residual, norm after": lambda x, f: norm(x + f(x)),
    "residual, norm before": lambda x, f: x + f(norm(x)),
}
measured = {(s, name, seed): blocks.measured(order, s, seed)
            for s in (small, large) for name, order in ORDERS.items()
            for seed in (0, 1, 2)}  # fmt: skip
print(f"PyTorch's initialization: s = {blocks.size_at_first(FeedForward):.2f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, axes = cu.subplots(
    2, 2, width=8.2, height=5.0,
    alt="Gradient at the input (left) and share of the input recovered (right) over the number of layers, with s = 0.24 "
    "(above) and s = 1 (below). Only with neither norm nor residual and s = 0.24 does the gradient vanish. Without a "
    "residual the share falls to zero in 8 layers; with one it stays high for small s, and falls for s = 1.",
)  # fmt: skip
looks = {"neither": ("query", ":"), "norm only": ("wrong", "-."),
          "residual, norm after": ("key", "--"), "residual, norm before": ("value", "-")}  # fmt: skip
for (s, name, seed), values in measured.items():
    color, dash = looks[name]
    sizes_row = axes[0 if s == small else 1]
    for ax, line in zip(sizes_row, zip(*values, strict=True), strict=True):
        ax.plot(
            blocks.DEPTHS,
            line,
            dash,
            color=cu.COLORS[color],
            alpha=0.8,
            label=name if seed == 0 else None,
        )
for row, s in enumerate((small, large)):
    axes[row, 0].set(
        yscale="log", ylim=(1e-9, 50), ylabel="gradient at the input", title=f"s = {s}"
    )
    axes[row, 1].set(ylim=(-0.1, 1.05), ylabel="input recovered (R²)", title=f"s = {s}")
for ax in axes[1]:
    ax.set_xlabel("layers")
axes[0, 0].legend(loc="lower left", fontsize=8)
print("behind 24 layers, three seeds:")
for s, name, seed in measured:
    if seed == 0:
        last = [measured[s, name, one][-1] for one in (0, 1, 2)]
        gradients, shares = (sorted(column) for column in zip(*last, strict=True))
        print(f"s = {s:<4}  {name:21} gradient {gradients[0]:7.2g} to {gradients[-1]:7.2g}, "
              f"R² {shares[0]:5.2f} to {shares[-1]:5.2f}")  # fmt: skip
fig

# %% [markdown]
# *Left.*
# With neither, and $s = 0.24$, the gradient falls to about $10^{-5}$ behind 8 layers: $0.24^8$.
# With $s = 1$ the same stack keeps it: 0.64 to 0.69 behind 24 layers.
# So whether it vanishes depends on the initialization.
# A norm alone prevents it, too: 0.3 to 2.1 behind 24 layers.
#
# *Right.*
# Without a residual connection a linear map finds at most 0.03 of the input behind 8 layers, with or without a norm, for either size.
# With one, 24 layers leave 0.79 to 0.81 (norm before) and 0.63 to 0.65 (after) if $s = 0.24$, but 0.33 to 0.36 and nothing if $s = 1$, where each layer adds as much as it reads.
# **A residual connection keeps the input readable as long as each layer adds little.**
# (In random networks; training may change this.)

# %% jupyter={"source_hidden": true}
cu.quiz("transformer", "normed_stream")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Without a residual no linear map finds the input; with one, small layers leave most of it, large ones less.",
    given=(small, large) == (0.24, 1.0),
):
    behind = {
        key: dict(zip(blocks.DEPTHS, values, strict=True)) for key, values in measured.items()
    }
    for other_seed in (0, 1, 2):
        assert all(
            behind[s, name, other_seed][8][1] < 0.05
            for s in (small, large)
            for name in ("neither", "norm only")
        )
        assert all(behind[small, name, other_seed][24][1] > 0.6 for name in list(ORDERS)[2:])
        assert behind[large, "residual, norm after", other_seed][24][1] < 0.02
        assert 0.3 < behind[large, "residual, norm before", other_seed][24][1] < 0.4
        assert (
            behind[small, "neither", other_seed][8][0]
            < 1e-4
            < 0.1
            < behind[large, "neither", other_seed][24][0]
        )

# %% [markdown]
# ## The two blocks
#
# The **encoder block** is self-attention, then the network, each inside its residual.
# A residual calls its sublayer with what the sublayer has to read, normalized or not:


# %%
class EncoderBlock(nn.Module):
    """(batch, m, embed_dim) → the same shape."""

    def __init__(self, embed_dim, num_heads, ffn_dim, *, dropout=0.1, norm_first=True):
        super().__init__()
        options = {"dropout": dropout, "norm_first": norm_first}
        self.attention = cu.MultiHeadAttention(embed_dim, num_heads)
        self.feed_forward = FeedForward(embed_dim, ffn_dim, dropout=dropout)
        self.around_attention = Residual(embed_dim, **options)
        self.around_feed_forward = Residual(embed_dim, **options)

    def forward(self, x, attn_mask=None):
        x = self.around_attention(x, lambda y: self.attention(y, y, y, attn_mask))
        return self.around_feed_forward(x, self.feed_forward)


# %% [markdown]
# ### Exercise 1 · The decoder block
#
# *build · 10 minutes*
#
# Its forward pass has three sublayers: masked self-attention, cross-attention to the memory, network.
# Write it.
# `block` has `self_attention`, `cross_attention` and `feed_forward`, and for each its residual: `around_self`, `around_cross` and `around_feed_forward`.
# Residuals and attentions are called as in the encoder block.
# `attn_mask` is for target tokens among themselves, `memory_mask` for the memory; both may be `None`.
# The model below uses your function, once it passes.


# %% tags=["exercise", "build"]
def my_sublayers(block, x, memory, attn_mask=None, memory_mask=None):
    """(b, n, d), memory (b, m, d), masks (n, n) and (b, 1, 1, m) → (b, n, d)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_sublayers(my_sublayers)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_sublayers_solution(block, x, memory, attn_mask=None, memory_mask=None):
    """Queries come from x each time; keys and values in the middle from the memory."""

    def look_at_memory(y):
        return block.cross_attention(y, memory, memory, memory_mask)

    x = block.around_self(x, lambda y: block.self_attention(y, y, y, attn_mask))
    x = block.around_cross(x, look_at_memory)
    return block.around_feed_forward(x, block.feed_forward)


cu.checks.my_sublayers(my_sublayers_solution)

# %%
sublayers = cu.choose(my_sublayers, blocks.three_sublayers)


class DecoderBlock(nn.Module):
    """(batch, n, embed_dim), memory (batch, m, embed_dim) → (batch, n, embed_dim)."""

    def __init__(self, embed_dim, num_heads, ffn_dim, *, dropout=0.1, norm_first=True):
        super().__init__()
        options = {"dropout": dropout, "norm_first": norm_first}
        self.self_attention = cu.MultiHeadAttention(embed_dim, num_heads)
        self.cross_attention = cu.MultiHeadAttention(embed_dim, num_heads)
        self.feed_forward = FeedForward(embed_dim, ffn_dim, dropout=dropout)
        self.around_self = Residual(embed_dim, **options)
        self.around_cross = Residual(embed_dim, **options)
        self.around_feed_forward = Residual(embed_dim, **options)

    def forward(self, x, memory, attn_mask=None, memory_mask=None):
        return sublayers(self, x, memory, attn_mask, memory_mask)


# %% [markdown]
# Are they PyTorch's layers?
# We compare outputs, and the gradients of inputs and of all weights, for both places of the norm, with a padded source and random weights everywhere.
# PyTorch has other names for the weights, keeps $W_Q, W_K, W_V$ in one table, and its masks say True = must **not** be looked at; `blocks.by_weights` translates both.
# The lines below are encoder and decoder in turn: 17 gradients are those of the input and of 16 weights, 28 those of two inputs and 26 weights.

# %%
num_heads = 4  # try 1 | 2 | 4 | 8
real = cu.padding_mask(torch.tensor([4, 6]), 6)  # two sources, of 4 and 6 tokens
causal = cu.causal_mask(8)
encoded, target = torch.randn(2, 6, 16), torch.randn(2, 8, 16)
for norm_first in (True, False):
    options = {"dropout": 0.0, "norm_first": norm_first}
    ours = EncoderBlock(16, num_heads, 32, **options)
    torchs = nn.TransformerEncoderLayer(16, num_heads, 32, batch_first=True, **options)
    both = blocks.by_weights(ours, torchs, real)
    cu.equal(*both, encoded, *blocks.random_weights(ours))
    ours = DecoderBlock(16, num_heads, 32, **options)
    torchs = nn.TransformerDecoderLayer(16, num_heads, 32, batch_first=True, **options)
    both = blocks.by_weights(ours, torchs, real, causal)
    cu.equal(*both, target, encoded, *blocks.random_weights(ours))

# %% jupyter={"source_hidden": true}
cu.quiz("transformer", "three_masks")

# %% [markdown]
# ## The whole model
#
# What is left are the ends.
# **Below**, a token becomes a row of an embedding matrix, times $\sqrt d$, plus its position.
# Rows are drawn with standard deviation $1/\sqrt d$; after the factor their entries are about as large as the sines.
# **Above**, the output layer turns each vector of the decoder into a logit for each target token.


# %%
class Transformer(nn.Module):
    """Encoder and decoder; source and target are ids, (batch, m) and (batch, n)."""

    def __init__(self, source_size, target_size, *, embed_dim, num_heads, ffn_dim,
                 num_layers, dropout=0.1, norm_first=True):  # fmt: skip
        super().__init__()
        sizes = (embed_dim, num_heads, ffn_dim)
        options = {"dropout": dropout, "norm_first": norm_first}
        self.source_embedding = nn.Embedding(source_size, embed_dim, padding_idx=0)
        self.target_embedding = nn.Embedding(target_size, embed_dim, padding_idx=0)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=1 / math.sqrt(embed_dim))
        self.positions = cu.SinusoidalPositions(embed_dim, max_len=128)
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.ModuleList(EncoderBlock(*sizes, **options)
                                     for _ in range(num_layers))  # fmt: skip
        self.decoder = nn.ModuleList(DecoderBlock(*sizes, **options)
                                     for _ in range(num_layers))  # fmt: skip
        last = nn.LayerNorm if norm_first else nn.Identity
        self.encoder_norm, self.decoder_norm = last(embed_dim), last(embed_dim)
        self.output = nn.Linear(embed_dim, target_size)

    def embed(self, embedding, tokens):
        x = embedding(tokens) * math.sqrt(embedding.embedding_dim)
        return self.dropout(self.positions(x))

    def encode(self, source, source_lens):
        """The memory (b, m, embed_dim) and its mask."""
        mask = cu.padding_mask(source_lens, source.shape[1])
        x = self.embed(self.source_embedding, source)
        for block in self.encoder:
            x = block(x, mask)
        return self.encoder_norm(x), mask  # at the top, behind the last block

    def decode(self, target, memory, memory_mask):
        """What `output` turns into logits, (b, n, embed_dim)."""
        x = self.embed(self.target_embedding, target)
        causal = cu.causal_mask(target.shape[1], device=target.device)
        for block in self.decoder:
            x = block(x, memory, causal, memory_mask)
        return self.decoder_norm(x)

    def features(self, source, source_lens, target):
        return self.decode(target, *self.encode(source, source_lens))

    def forward(self, source, source_lens, target):
        """Logits for teacher forcing, (b, n, target_size)."""
        return self.output(self.features(source, source_lens, target))


# %%
num_layers = 2  # try 1 … 4
sizes = {"embed_dim": 64, "num_heads": 4, "ffn_dim": 256,
         "num_layers": num_layers, "dropout": 0.0}  # fmt: skip
rows = totals.draw(3, seed=4)
inputs = rows.source, rows.source_lens, rows.target_in
for place in ("before", "after"):
    mine = Transformer(9, 9, **sizes, norm_first=place == "before")
    theirs = cu.Transformer(9, 9, **sizes, norm_first=place == "before")
    theirs.load_state_dict(blocks.in_package_names(mine.state_dict()))
    cu.equal(mine, theirs, *inputs)
print("source", *totals.names(rows.source[0]), "→", *totals.names(rows.target_out[0]))

# %% [markdown]
# Both orders are equal to `cu.Transformer`, which writes each sum out: its weights have other names.
# Each [vocabulary](C_glossary.ipynb#vocabulary) has five digits and four special tokens.
# The last line is a pair of the task: 4, 4 + 1, 4 + 1 + 2, …
#
# ### Exercise 2 · Count
#
# *predict · 6 minutes*
#
# What do the parts of a model cost?
# Here for $d = 64$ and `ffn_dim` 256:
#
# | part | what it has | parameters |
# |---|---|---|
# | attention | four $d\times d$ matrices with biases | $4\cdot(4{,}096 + 64) = 16{,}640$ |
# | position-wise network | $d\times$ `ffn_dim` and back, with biases | $16{,}384 + 256 + 16{,}384 + 64 = 33{,}088$ |
# | layer norm | scale and shift | $128$ |
# | embedding | a row of $d$ for each token | $9 \cdot 64 = 576$ |
# | output layer | a column of $d$ and a bias for each target token | $9 \cdot 65 = 585$ |
#
# Now $d = 8$, `ffn_dim` 16, 2 heads, 3 encoder and 3 decoder blocks, the norm before, 10 source tokens and 14 target tokens.
# How many parameters are there in (a) one attention, (b) one position-wise network, (c) one decoder block? (d) How many more does an attention with 4 heads have? (e) How many are there in the whole model?


# %% tags=["exercise", "predict"]
def counted():
    """Five whole numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.counted(counted)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def counted_solution():
    """4 · (64 + 8); 128 + 16 + 128 + 8; 2 · 288 + 280 + 3 · 16; heads share the matrices.

    3 · (600 + 904) in the blocks, 2 · 16 in the last norms, 80 + 112 embeddings, 14 · 9 above.
    """
    return [288, 280, 904, 0, 4862]


cu.checks.counted(counted_solution)

# %% [markdown]
# The base model of the paper has 6 + 6 blocks and about 37,000 tokens that both languages share.
# It uses *one* matrix as both embeddings and as output layer (**weight tying**, [Press and Wolf, 2017](https://arxiv.org/abs/1608.05859)): $44.1 + 18.9 = 63$ million parameters by our count, 44.1 in the blocks; the paper's table says 65.
# Our models have three matrices.
#
# ## Who can see whom?
#
# In training the whole target is known, and one forward pass gives the logits of all next tokens (teacher forcing).
# Later there is only what has been written so far.
# Both have to give the same numbers, and so no later token may change an earlier logit, in training mode *or* in eval mode.
# First predict, then exchange tokens in the explorer and read upwards.
# What changes if you exchange padding?
# And what without the causal mask?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "A source has 4 digits and <eos>, then 2 places of padding: 7 rows of memory. You exchange digit 1. How many of the 7 rows change?",
    ["1", "5", "7"],
    answer="7",
    wrong={
        "1": "In the embeddings it is one row. What does self-attention do with it?",
        "5": "No token may look at padding. But what does the padding look at?",
    },
    why="The mask hides keys. A row of padding still asks, and reads the real tokens. Nobody reads such a row, and so it does not matter.",
)
# %% tags=["opening"] jupyter={"source_hidden": true}
cu.explore.ripple(mine)

# %%
digit = 2  # try 1 … 3
source, lens, read = inputs
later, padding = read.clone(), source.clone()
later[:, digit] = 4 + (later[:, digit] - 3) % 5  # the next digit of the clock
padding[source == 0] = 6
tests = {}
with torch.no_grad():
    at_once = mine(*inputs)
    apart = [mine(source, lens, read[:, :t]) - at_once[:, :t] for t in range(1, 8)]
    tests["step by step"] = [max(one.abs().max() for one in apart), math.nan]
    for mode in (True, False):
        moves = mine.train(mode)(source, lens, later) - at_once
        moves = moves.abs().amax(dim=(0, 2))  # at each target place
        which = f"target token {digit} exchanged, {'training' if mode else 'eval'}"
        tests[which] = [moves[:digit].max(), moves[digit:].min()]
    tests["padding"] = [(mine(padding, lens, read) - at_once).abs().max(), math.nan]
tested = pd.DataFrame(tests, ["largest forbidden change", "smallest required change"])
tested.astype(float).T.map("{:.2f}".format).replace("nan", "–")

# %% [markdown]
# Changes of logits are 0.00 where none is allowed.
# So writing step by step gives the same as all at once, a token changes no logit before its own place, in both modes, and what stands in the padding does not matter.
# From its own place on a changed token moves each logit vector, by 0.09 at least.
# These three tests are worth a run on every decoder: a mask that lets one token too many through, or is left out in eval mode, fails the second.
#
# Such a model that has learned French answers below ([Translating](11_translating.ipynb) trains one): the tables under *Look closer* are the weights of your three blue boxes.
# Choose a head, *French to French*, a number above the diagonal: what does *mask* say?

# %% jupyter={"source_hidden": true}
cu.live.translator("she has a red car .")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("No later token and no padding changes a logit that it may not, in either mode."):
    assert max(none for none, _ in tests.values()) < 1e-4
    assert min(one for _, one in tests.values() if one == one) > 0.01

# %% [markdown]
# ## It adds up
#
# Now the task of the first page, with the model that you have written: one encoder block and one decoder block, $d = 64$, the norm before.
# Rows of 3 to 6 digits are drawn at random.
# Those whose first three digits, read as a number with base 5, are a multiple of 7 (such as 0 1 2) never occur in training: they are the test.
# First the usual questions.
# By hand, with the table above, there are 49,984 + 66,752 parameters in the blocks, 256 in the last norms, 1,152 in the embeddings and 585 in the output layer: 118,729.
# (The question mark is Adam's first step; so the rate rises over 50 steps.)
# *Rows right* counts rows in which each token is right if those before it are right; then the row that is written step by step is right, too.
# In the maps a row is the token that was read, from which the next one is written.
# Dashed is ln 5, a guess among the digits.

# %% tags=["nbval-ignore-output"]
steps = 250  # try 50 … 300
test = totals.draw(1000, seed=7, held_out=True)
cu.seed_everything(0)
adder = Transformer(9, 9, embed_dim=64, num_heads=4, ffn_dim=256, num_layers=1,
                    dropout=0.0)  # fmt: skip
batch = totals.draw(64, seed=1)
loss = cu.translation_loss()
cu.before_training(adder, batch, loss, expected=118_729, lr=0.01)
losses = totals.train_totals(adder, steps=steps)
right = totals.score(adder, test)
copied = (test.source == test.target_out)[test.target_out >= 4].float().mean()
print(f"digits right: {right['digits']:.2f}; by copying the source: {copied:.2f}")
print(f"rows right: {right['rows']:.2f}")

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
shown = int(test.source_lens.argmax())  # a row of six digits
with cu.record_attention(adder) as maps, torch.no_grad():
    adder.eval()(test.source, test.source_lens, test.target_in)
length = int(test.source_lens[shown])
fig, axes = cu.subplots(
    1, 3, width=8.6, height=2.9, width_ratios=[1.2, 1, 1],
    alt="Left, the training loss falls from about 2.2 to near zero. Right, two maps for one row of digits, means over the "
    "heads: the masked self-attention of the decoder is spread out, the cross-attention lies mostly on the diagonal.",
)  # fmt: skip
axes[0].plot(losses, color=cu.COLORS["key"], linewidth=1)
axes[0].axhline(math.log(5), color="0.4", linestyle="--", linewidth=1)
axes[0].text(len(losses), math.log(5) + 0.05, "ln 5", ha="right", fontsize=9)
axes[0].set(xlabel="step", ylabel="training loss per token", ylim=(0, 3))
was_read = totals.names(test.target_in[shown])
for ax, kind, keys in zip(
    axes[1:], ("self", "cross"), (was_read, totals.names(test.source[shown])), strict=True
):
    weights = maps[f"decoder.0.{kind}_attention"][shown, :, :length, :length].mean(dim=0)
    title = f"{kind}-attention"
    cu.heatmap(ax, weights, queries=was_read, keys=keys, title=title, xlabel=None, ylabel=None)
    ax.tick_params(labelsize=8)
fig

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "We take one part away and train again. Without which of these can no rate and no number of steps get the digits right?",
    ["memory", "layer norms", "residual connections", "position-wise networks"],
    answer="memory",
    wrong={
        "layer norms": "They keep sizes in check while one trains. Do they know a digit?",
        "residual connections": "Each sublayer then replaces what it reads. Can it learn to hand the digit on?",
        "position-wise networks": "Which part brings the digit of the source?",
    },
    why="Without the memory the decoder knows nothing of the source. What the three others are worth hangs on rate and steps.",
)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
stored, other, thrice = (
    pd.DataFrame(run.config | run.result for run in cu.stored_runs("transformer", name))
    for name in ("changed_model", "norms_at_rates", "three_times_as_long")
)


def seeds_of(runs, column):
    return runs.groupby("kind", sort=False)[column].agg(lambda x: " ".join(map("{:.2f}".format, x)))


taken = pd.DataFrame({
    "right digits, three seeds": seeds_of(stored, "digits"),
    "right rows": seeds_of(stored, "rows"),
    **{f"digits at {rate}": seeds_of(runs, "digits") for rate, runs in other.groupby("rate")},
    "parameters": stored.groupby("kind", sort=False)["parameters"].first().map("{:,.0f}".format),
}).rename_axis("changed").reindex(stored["kind"].unique()).fillna("")  # fmt: skip
for (kind, lr), runs in thrice.groupby(["kind", "rate"]):
    print(f"{kind}, 750 steps, rate {lr}: right digits", *runs["digits"].map("{:.2f}".format))
taken

# %% [markdown]
# In the maps above, when this page was made, the cross-attention lay mostly on the diagonal, on the digit of the source that comes next, and the rest on the last tokens.
# The self-attention was spread out: the digit just written need not be looked up, since the residual connection passes it on.
#
# Each row of the table has three seeds, 250 steps at rate 0.01; two columns are other rates.
# The model of this page gets every digit right; copying the source gets 0.40 (the first digit of a row is its total).
# Zeroed memory, no positions or no residual connections leave at most 0.42 of the digits: hardly more than copying.
#
# Two of the three are needed: without memory no digit of the source arrives, and without positions they are a bag.
# But without residual connections 750 steps (above the table) give 0.35 to 0.38 of the digits at rate 0.01, and 0.80 to 0.88 at 0.003 and 0.001: most of the task can be learned.
# **A comparison at one rate shows what a part does at that rate.**
#
# At 0.01 it makes no difference to the digits where the norm stands, and whether there is one.
# At 0.001 the model without norms is behind in each seed, and at 0.03 batch norm alone still learns all.
# Without the networks the model gets 0.88 to 0.99 of the digits right, after 750 steps 0.99 to 1.00.
# So the toy needs memory and positions, and says no more.
#
# ### Exercise 3 · Find the bug
#
# *bug · 8 minutes*
#
# A colleague has written the three sublayers anew and loads the weights that you have trained.
# There is no dropout, and so with the same weights the logits have to be the same, in both modes.
# Below are the losses of the test rows and the largest difference of a logit.
# There are two mistakes.
# One shows in eval mode only.
# The other, when this page was made, hardly changed the loss, but the logits.
# Find both, and write `fixed_block` with all three sublayers.


# %% tags=["nbval-ignore-output"]
def buggy_block(block, x, memory, memory_mask):
    """A decoder block with the norm before; x (b, n, d), memory (b, m, d)."""
    causal = cu.causal_mask(x.shape[1]) if block.training else None
    x = block.around_self.norm(x)
    x = x + block.self_attention(x, x, x, causal)
    x = block.around_cross.norm(x)
    x = x + block.cross_attention(x, memory, memory, memory_mask)
    x = block.around_feed_forward.norm(x)
    return x + block.feed_forward(x)


for in_mode in ("training", "eval"):
    adder.train(in_mode == "training")
    her_loss, hers = totals.run_with(adder, test, buggy_block)
    your_loss, yours = totals.run_with(adder, test)
    gap = (hers - yours).abs().max()
    both_losses = f"loss {your_loss:.2f}, hers {her_loss:.2f}"
    print(f"{in_mode}: {both_losses}; logits differ by up to {gap:.1f}")


# %% tags=["exercise", "bug"]
def fixed_block(block, x, memory, memory_mask):
    """A decoder block with the norm before; x (b, n, d), memory (b, m, d)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_block(fixed_block)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_block_solution(block, x, memory, memory_mask):
    """The causal mask in every mode; the norm for the sublayer, not for what is passed on.

    Her block is no block without residual connections: read through the stack, it has the norm after the sum.
    """
    causal = cu.causal_mask(x.shape[1])
    y = block.around_self.norm(x)
    x = x + block.self_attention(y, y, y, causal)
    y = block.around_cross.norm(x)
    x = x + block.cross_attention(y, memory, memory, memory_mask)
    return x + block.feed_forward(block.around_feed_forward.norm(x))


cu.checks.fixed_block(fixed_block_solution)

# %% [markdown]
# ### Exercise 4 · What does the table show?
#
# *open · 5 minutes*
#
# At rate 0.01 the norm looks superfluous, batch norm as good as layer norm, and the network a luxury.
# Choose one of the three.
# Which experiment would show that the part is needed elsewhere: which task, which size, what is held equal, which plainer model stands beside it?
# And which result would convince you that it is not needed?
#
# *To compare:* for the norm, the same task with 1, 4 and 12 blocks on each side, with and without norms, each at the best of the same four rates on validation rows, three seeds.
# It is needed if the models without it fall behind as the depth grows, at each of the rates.
# It is not needed if both learn equally well at each depth.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "On the toy memory and positions are needed; without residuals 0.01 is too high a rate, without norms 0.001 too low."
):
    digits = stored.set_index(["kind", "seed"])["digits"].unstack()
    needed = ["memory is zero", "no positions", "no residual connections"]
    assert digits.shape[1] == 3 and (digits.loc[needed] < 0.45).all(axis=None)
    by_rate = thrice.set_index(["kind", "rate"])["digits"].loc["no residual connections"]
    assert by_rate[0.01].max() < 0.5 < 0.7 < by_rate[[0.001, 0.003]].min()
    assert (digits.loc["nothing"] > 0.99).all()
    slow, fast = (
        runs.set_index(["kind", "seed"])["digits"].unstack() for _, runs in other.groupby("rate")
    )
    assert slow.loc["no layer norms"].max() < slow.loc["nothing"].min()
    assert fast.loc["batch norm for layer norm"].min() > 0.99 > fast.loc["nothing"].max()

with cu.guard(
    "The model of this page adds; without the mask that it was trained with its loss is far higher.",
    given=steps == 250,
):
    assert right["digits"] > 0.9 and abs(copied - 0.4) < 0.005
    assert her_loss > your_loss + 1

# %% [markdown]
# ## Take-aways
#
# - Encoder block: self-attention, network.
#   Decoder block: masked self-attention, cross-attention to the memory, network.
#   Around each sublayer stand a residual connection and a layer norm.
# - The memory leaves the encoder at the top, and each decoder block reads it.
# - Network and layer norm see one token at a time.
#   A norm over the sentence, and in training one over the batch, lets the future in, whatever the mask says.
# - Without a residual connection no linear map finds the input behind 24 random layers; with one it can as long as each layer adds little.
#   Whether gradients vanish without it depends on the initialization.
# - At one rate a part can look necessary that at another rate is not.
# - Test a decoder: step by step against all at once, a later token in both modes, another padding.
#
# Next: [Translating](11_translating.ipynb), where this model learns French and writes word by word.
# Deeper stacks, and both places of the norm: [Training transformers](12_training_transformers.ipynb).
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("transformer")

# %% [markdown]
# ## References
#
# - Ba, J. L., Kiros, J. R. and Hinton, G. E. (2016).
#   [Layer normalization](https://arxiv.org/abs/1607.06450).
# - He, K., Zhang, X., Ren, S. and Sun, J. (2016).
#   [Deep residual learning for image recognition](https://arxiv.org/abs/1512.03385).
#   CVPR.
# - Ioffe, S. and Szegedy, C. (2015).
#   [Batch normalization: Accelerating deep network training by reducing internal covariate shift](https://arxiv.org/abs/1502.03167).
#   ICML.
# - Press, O. and Wolf, L. (2017).
#   [Using the output embedding to improve language models](https://arxiv.org/abs/1608.05859).
#   EACL.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Sections 3 and 5.4.
# - Xiong, R. et al. (2020).
#   [On layer normalization in the Transformer architecture](https://arxiv.org/abs/2002.04745).
#   ICML.
# - PyTorch.
#   [TransformerEncoderLayer](https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html), [TransformerDecoderLayer](https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerDecoderLayer.html).
