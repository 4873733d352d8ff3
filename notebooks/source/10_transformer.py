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
# Attention mixes tokens. It is a weighted average, and averages alone do not translate. **What else does a network
# need, and how little is it?**
#
# Two layers per token, a shortcut and a norm. In this chapter you will
#
# - **build** an encoder block and a decoder block in a dozen lines each, and prove them equal to PyTorch's, gradients,
#   masks and both norm orders included;
# - **tell** what may depend on what: a network per position, a norm per token, a decoder that never sees what it has to
#   say next, in training *and* afterwards;
# - **count** every parameter by formula;
# - **train** a translator in seconds, with three seeds, and tell sentences it has seen from sentences it has not;
# - **decode** greedily, with a beam and with a cache, and say what the cache saves.
#
# *100 minutes. You need heads ([Multi-head attention](08_multi_head_attention.ipynb)) and positions ([Positions](09_positions.ipynb)). Translation data and BLEU come from [Sequence to sequence](05_sequence_to_sequence.ipynb);
# what we use of them is said again here.*

# %%
import copy
import math
import time

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

import course_utils as cu
from course_utils.data.translation import collate
from course_utils.layers import LayerCache
from course_utils.metrics import links_of

cu.seed_everything(0)

# %% [markdown]
# ## The whole on one page
#
# The Transformer ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)) has an **encoder**, which reads the source
# sentence, and a **decoder**, which writes the target one token at a time. Both are stacks of equal blocks. **What
# stands in a block, and where do the two meet?**

# %% tags=["hide-input"]
fig, ax = cu.subplots(
    width=7.6, height=4.6,
    alt="Left, the encoder: embeddings and positions, then a block of self-attention and a position-wise network. "
    "Right, the decoder: embeddings and positions, then a block of masked self-attention, cross-attention and a "
    "position-wise network, then a linear layer. An arrow named memory leads from the encoder to the cross-attention.",
)  # fmt: skip
boxes = {
    (0, 0): ("source tokens", None), (0, 1): ("embedding · √d + positions", "sky"),
    (0, 2): ("self-attention", "orange"), (0, 3): ("position-wise network", "green"),
    (1, 0): ("target tokens, shifted right", None), (1, 1): ("embedding · √d + positions", "sky"),
    (1, 2): ("masked self-attention", "orange"), (1, 3): ("cross-attention", "orange"),
    (1, 4): ("position-wise network", "green"), (1, 5): ("linear: logits of the next token", "sky"),
}  # fmt: skip
for (side, level), (text, color) in boxes.items():
    x = 2.1 + 5.2 * side
    if color:
        ax.fill_between(
            [x - 1.65, x + 1.65], level - 0.26, level + 0.26, color=cu.COLORS[color], alpha=0.45
        )
    ax.text(x, level, text, ha="center", va="center", fontsize=9.5)
    if (side, level + 1) in boxes:
        ax.annotate(
            "", (x, level + 0.72), (x, level + 0.28), arrowprops={"arrowstyle": "->", "lw": 1.2}
        )
for x, low, high in ((2.1, 1.58, 3.42), (7.3, 1.58, 4.42)):
    ax.plot(
        [x - 1.95, x + 1.95, x + 1.95, x - 1.95, x - 1.95], [low, low, high, high, low], "--",
        color="0.45", linewidth=1.1,
    )  # fmt: skip
    ax.text(x - 1.9, high + 0.06, "× layers", ha="left", va="bottom", fontsize=9, color="0.3")
ax.annotate("", (5.6, 3), (4.1, 3), arrowprops={"arrowstyle": "->", "lw": 2, "color": "#D55E00"})
ax.text(4.7, 3.12, "memory", ha="center", va="bottom", fontsize=9.5, color=cu.COLORS["vermilion"])
ax.text(2.1, 5, "encoder", ha="center", fontsize=12, weight="bold")
ax.text(7.3, 5.45, "decoder", ha="center", fontsize=12, weight="bold")
ax.set(xlim=(0, 9.4), ylim=(-0.4, 5.8))
ax.set_axis_off()
fig

# %% [markdown]
# An encoder block has two *sublayers*, a decoder block three. Around each stands a shortcut with a layer norm, which
# the picture leaves out. The two sides meet in one place: queries of the decoder look at keys and values made of the
# encoder's output, the **memory**. Attention we have. The rest comes first, from the bottom up.
#
# ## The same small network at every position
#
# Attention takes averages of values, and between two averages nothing nonlinear happens. So each block adds a network
# of two layers that is applied to *each token on its own*:
#
# $$\operatorname{FFN}(\mathbf x) = \mathbf W_2 \max(0, \mathbf W_1\mathbf x + \mathbf b_1) + \mathbf b_2, \qquad \mathbf x \in \mathbb R^d,\quad \mathbf W_1 \in \mathbb R^{m\times d},\quad \mathbf W_2 \in \mathbb R^{d\times m} .$$
#
# $d$ is `embed_dim`, $m$ is `ffn_dim`. By hand, with $d = 1$, $m = 2$, $\mathbf W_1 = (1, -1)^\top$, $\mathbf W_2 = (1, 1)$:
# then $\operatorname{FFN}(x) = \max(0, x) + \max(0, -x) = |x|$. A sentence of three tokens $(-2, 0, 3)$ becomes
# $(2, 0, 3)$, each token by itself.


# %%
def feed_forward(x, W1, b1, W2, b2):
    """(…, d) → (…, d): the same two layers for every vector along the last axis."""
    return (x @ W1.T + b1).relu() @ W2.T + b2


sentence = torch.tensor([[-2.0], [0.0], [3.0]])
W1, W2 = torch.tensor([[1.0], [-1.0]]), torch.tensor([[1.0, 1.0]])
assert feed_forward(sentence, W1, torch.zeros(2), W2, torch.zeros(1)).tolist() == [[2], [0], [3]]

# %% [markdown]
# Two consequences. Equal tokens get equal outputs at every position; and permuting tokens permutes outputs. The
# library's `FeedForward` is the same function, and so is a convolution whose kernel covers one token.

# %%
n, d, m = 5, 8, 32
x = torch.randn(2, n, d, requires_grad=True)
ffn = cu.FeedForward(d, m)
W1, b1, W2, b2 = ffn.parameters()
ours, library = feed_forward(x, W1, b1, W2, b2), ffn(x)
assert_close(library, ours)
for a, b in zip(
    *(torch.autograd.grad(y.sin().sum(), [x, W1, W2]) for y in (ours, library)), strict=True
):
    assert_close(a, b)

convolved = F.conv1d(F.conv1d(x.mT, W1[..., None], b1).relu(), W2[..., None], b2).mT
assert_close(convolved, ours, rtol=1e-4, atol=1e-5)
same = ffn(torch.ones(2, 3, d))
assert_close(same[:, :1].expand(2, 3, d), same)
order = torch.randperm(n)
assert_close(ffn(x[:, order]), ffn(x)[:, order])

# %% [markdown]
# ### What if it saw the whole sentence?
#
# One [teaching implementation](https://engineering.purdue.edu/DeepLearn/) flattens the sentence into one vector of $nd$ numbers and puts that through the
# two layers. It runs, and it even trains. **Who depends on whom in the three ways to treat a sentence?** We measure how
# much output $i$ moves with input $j$: the size of the block $\partial\mathbf y_i/\partial\mathbf x_j$ of the Jacobian.

# %%
flattened = nn.Sequential(nn.Flatten(), *cu.FeedForward(n * d, 2 * n * d), nn.Unflatten(1, (n, d)))
attention = cu.MultiHeadAttention(d, 2)


def dependence(layer, n=n):
    """(n, n): the norm of ∂y_i/∂x_j, scaled so that the largest is 1."""
    x = torch.randn(1, n, d)
    jacobian = torch.autograd.functional.jacobian(layer, x)[0, :, :, 0]  # (n, d, n, d)
    blocks = jacobian.norm(dim=(1, 3))
    return blocks / blocks.max()


maps = torch.stack([dependence(layer) for layer in (ffn, flattened, lambda x: attention(x, x, x))])
assert (maps[0] - torch.diag(maps[0].diagonal()) == 0).all()  # a token depends on itself only
assert (maps[1:] > 0).all()
cu.show_heatmaps(
    maps,
    titles=["position-wise", "flattened", "self-attention"],
    xlabel="input token",
    ylabel="output token",
    width=7.6,
    height=2.6,
    alt="Three maps of how much each output token depends on each input token. Position-wise: the diagonal "
    "only. Flattened: everything on everything. Self-attention: everything on everything.",
)

# %% [markdown]
# Position-wise, the map is diagonal. Flattened, all depends on all, as in self-attention. But attention does it with
# weights that fit any length, and a flattened layer has its own weights for each *pair of places*. So it is tied to
# one length, it is not equivariant, padding reaches every word, and it sees the future, whatever mask the attention
# has. And it costs $4n^2d^2$ weights where the position-wise network of the same width ($m = 2d$) costs $4d^2$:
# $n^2$ times as many.

# %%
padded = torch.randn(1, n, d)
other_padding = torch.cat([padded[:, :3], torch.randn(1, 2, d)], dim=1)  # two tokens of padding
assert (flattened(padded) - flattened(other_padding))[:, :3].abs().max() > 1e-3
assert_close(ffn(padded)[:, :3], ffn(other_padding)[:, :3])


def weights_in(module):
    return sum(p.numel() for p in module.parameters())


with torch.device("meta"):  # shapes without memory
    rows = {
        length: (weights_in(cu.FeedForward(512, 1024)), weights_in(cu.FeedForward(512 * length, 1024 * length)))
        for length in (1, 10, 50)
    }  # fmt: skip
for length, (per_position, flat) in rows.items():
    assert per_position == 4 * 512**2 + 3 * 512
    assert flat == 4 * (length * 512) ** 2 + 3 * length * 512
pd.DataFrame(rows, index=["position-wise", "flattened"]).T.rename_axis("tokens").map("{:,}".format)

# %% [markdown]
# At 50 tokens, more than two and a half *billion* weights in a single block.
#
# ## A norm for each token
#
# After some layers, numbers drift: some tokens' vectors grow, others shrink. **Normalizing** brings a group of numbers
# to mean 0 and variance 1, then scales and shifts them by learned $\mathbf g$ and $\mathbf b$:
#
# $$x \;\mapsto\; g\,\frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + b .$$
#
# The question is **which numbers form a group**. Take two sentences of two tokens with four features, the example of a
# set of lecture notes. Pencil ready: the first token is $(1, 2, 3, 4)$.

# %%
x = torch.tensor([[[1, 2, 3, 4], [5, 6, 7, 8]], [[5, 6, 7, 8], [5, 1, 0, -1]]]).float()
groups = {  # axes over which mean and variance are taken
    "layer norm": (2,),
    "over the sentence": (1, 2),
    "batch norm": (0, 1),
}


# %% tags=["hide-input"]
def draw_groups(ax, axes, title):
    """Color the (sentence, token, feature) cells that share a mean alike."""
    palette = [cu.COLORS[name] for name in ("sky", "yellow", "orange", "green")]
    for s in range(2):
        for t in range(2):
            for f in range(4):
                kept = [i for a, i in enumerate((s, t, f)) if a not in axes]
                sizes = [(2, 2, 4)[a] for a in range(3) if a not in axes]
                group = kept[0] if len(kept) == 1 else kept[0] * sizes[1] + kept[1]
                row = 2.5 * s + t
                ax.fill_between(
                    [f + 0.03, f + 0.97], row + 0.03, row + 0.97, color=palette[group], alpha=0.75
                )
                ax.text(f + 0.5, row + 0.5, f"{x[s, t, f]:.0f}", ha="center", va="center")
    ax.set(xlim=(0, 4), ylim=(4.5, 0), xticks=[])
    ax.set_yticks([0.5, 1.5, 3, 4], ["1.1", "1.2", "2.1", "2.2"])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(title)


fig, axes = cu.subplots(
    1, 3, width=7.6, height=2.3,
    alt="The sixteen numbers three times, colored by group. Layer norm: each row, that is each token, is a group. Over "
    "the sentence: two rows each. Batch norm: each column, that is each feature, across both sentences.",
)  # fmt: skip
for ax, (title, group) in zip(axes, groups.items(), strict=True):
    draw_groups(ax, group, title)
axes[0].set_ylabel("sentence.token")
fig

# %% [markdown]
# Cells of one color share a mean and a variance. With layer norm
# ([Ba et al., 2016](https://arxiv.org/abs/1607.06450)) a group is one token: mean $2.5$, variance
# $(1.5^2 + 0.5^2 + 0.5^2 + 1.5^2)/4 = 1.25$ (divided by 4, not by 3), so the 1 becomes $-1.5/\sqrt{1.25} = -1.342$.
# `nn.LayerNorm([2, 4])` normalizes a whole sentence: mean $4.5$, variance $5.25$, and the same 1 becomes $-1.528$.


# %%
def normalize(x, axes, eps=1e-5):
    mean = x.mean(axes, keepdim=True)
    variance = x.var(axes, keepdim=True, correction=0)
    return (x - mean) / (variance + eps).sqrt()


norms = {name: normalize(x, axes) for name, axes in groups.items()}
assert_close(norms["layer norm"], nn.LayerNorm(4)(x))
assert_close(norms["over the sentence"], nn.LayerNorm([2, 4])(x))
assert_close(norms["batch norm"], nn.BatchNorm1d(4)(x.mT).mT)  # wants (batch, features, length)
pd.DataFrame(
    {name: y.reshape(4, 4)[[0, 3]].flatten().tolist() for name, y in norms.items()},
    index=pd.MultiIndex.from_product([["token 1.1", "token 2.2"], ["f1", "f2", "f3", "f4"]]),
).round(3).T

# %% [markdown]
# The difference is not in the digits but in who depends on whom:
#
# - **Batch norm** ([Ioffe and Szegedy, 2015](https://arxiv.org/abs/1502.03167)) ties a sentence to the others in its batch, and to the running averages it collects for later: eval
#   mode is another function than training mode.
# - **A norm over the sentence** ties each token to all tokens: to later ones, which a decoder must not see, and to
#   padding. One lecture's Transformer is built so, with `norm_shape = [100, 24]` for 100 tokens.
# - **Layer norm** looks at one token. It is the only one of the three that keeps a causal mask causal.

# %%
later = x.clone()
later[:, 1] += torch.tensor([3.0, 0, 0, -1])  # change the second token of each sentence
changes_the_first = {
    name: not torch.allclose(normalize(later, axes)[:, 0], normalize(x, axes)[:, 0])
    for name, axes in groups.items()
}
assert changes_the_first == {
    "layer norm": False,
    "over the sentence": True,
    "batch norm": True,
}
batch_norm = nn.BatchNorm1d(4)
trained = batch_norm(x.mT)
assert not torch.allclose(batch_norm.eval()(x.mT), trained, atol=0.1)

# %% [markdown]
# What a layer norm forgets: size and offset of a token. $a\mathbf x + c$ with $a > 0$ gives the same as $\mathbf x$
# (but for $\epsilon$), so only the direction of the centered vector goes on. With $d = 2$ that leaves a sign: the
# tokens $(1, 2)$ and $(2, 3)$ both become $(-1, 1)$, where batch norm gives $(-1, -1)$ and $(1, 1)$.

# %%
token = torch.randn(6)
assert_close(F.layer_norm(3 * token + 5, (6,)), F.layer_norm(token, (6,)), rtol=1e-3, atol=1e-4)
two = torch.tensor([[1.0, 2.0], [2.0, 3.0]])
assert_close(F.layer_norm(two, (2,)).round(decimals=2), torch.tensor([[-1.0, 1.0], [-1.0, 1.0]]))
assert_close(normalize(two, (0,)).round(decimals=2), torch.tensor([[-1.0, -1.0], [1.0, 1.0]]))

# %% [markdown]
# ### Exercise 1 · Layer norm
# *8 minutes · ★*
#
# Write layer norm with its learned scale and shift, for any number of leading axes. A token whose features are all
# equal must come out as the shift, without NaN.


# %% tags=["exercise"]
def layer_norm(x, scale, shift, eps=1e-5):
    """(…, d), (d,), (d,) → (…, d)."""
    ...


# %% tags=["check"]
cu.checks.layer_norm(layer_norm)


# %% tags=["solution"] jupyter={"source_hidden": true}
def layer_norm(x, scale, shift, eps=1e-5):
    """(…, d), (d,), (d,) → (…, d)."""
    centered = x - x.mean(dim=-1, keepdim=True)
    variance = centered.square().mean(dim=-1, keepdim=True)
    return scale * centered / (variance + eps).sqrt() + shift


cu.checks.layer_norm(layer_norm)

# %% [markdown]
# ## A shortcut around every sublayer
#
# Let $f$ be a sublayer, attention or FFN. What a block adds is not $f(\mathbf x)$ but $\mathbf x + f(\mathbf x)$: the
# sublayer ([He et al., 2016](https://arxiv.org/abs/1512.03385), had the idea for images) writes a *correction* onto a stream that flows from the embeddings to the logits. This is why every sublayer
# returns $d$ numbers per token. The norm has two places:
#
# $$\text{after: } \operatorname{norm}(\mathbf x + f(\mathbf x)), \qquad\qquad \text{before (\texttt{norm\_first}): } \mathbf x + f(\operatorname{norm}(\mathbf x)) .$$
#
# The first is the original; the second ([Xiong et al., 2020](https://arxiv.org/abs/2002.04745)) is what nearly all
# later models use. Dropout, where there is some, falls on $f$'s output and never on the stream.


# %%
def around(x, sublayer, norm, norm_first):
    """A sublayer with its shortcut and its norm, in either order."""
    return x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))


for norm_first in (False, True):
    residual = cu.Residual(d, norm_first=norm_first)
    x = torch.randn(2, n, d)
    assert_close(around(x, ffn, residual.norm, norm_first), residual(x, ffn))

# %% [markdown]
# **What is a shortcut good for?** We stack up to 24 position-wise networks as PyTorch initializes them, and measure two
# things: the gradient that arrives at the input, and how much of the input a *linear* readout can still recover from
# the output ($R^2$ on tokens it was not fitted to).


# %%
def stack(kind, depth, d=64):
    """`depth` networks of one kind, with weights of their own."""
    torch.manual_seed(depth)
    layers = [(cu.FeedForward(d, 4 * d), nn.LayerNorm(d)) for _ in range(depth)]
    apply = {
        "neither": lambda y, ffn, norm: ffn(y),
        "norm only": lambda y, ffn, norm: ffn(norm(y)),
        "shortcut, norm after": lambda y, ffn, norm: around(y, ffn, norm, False),
        "shortcut, norm before": lambda y, ffn, norm: around(y, ffn, norm, True),
    }[kind]

    def run(y):
        for ffn, norm in layers:
            y = apply(y, ffn, norm)
        return y

    return run


def gradient_size(run):
    x = torch.randn(128, 64, requires_grad=True)
    (gradient,) = torch.autograd.grad((run(x) * torch.randn(128, 64)).sum(), x)
    return gradient.square().mean().sqrt().item()


@torch.no_grad()
def recovered(run):
    x = torch.randn(2000, 64)
    y = F.pad(run(x), (0, 1), value=1.0)
    # A little ridge: behind a norm, the features add up to 0.
    gram = y[:1000].T @ y[:1000] + 0.01 * torch.eye(65)
    error = x[1000:] - y[1000:] @ torch.linalg.solve(gram, y[:1000].T @ x[:1000])
    return 1 - (error.square().mean() / x[1000:].square().mean()).item()


# %%
kinds = ["neither", "norm only", "shortcut, norm after", "shortcut, norm before"]
depths = [1, 2, 4, 8, 16, 24]
gradients = {kind: [gradient_size(stack(kind, depth)) for depth in depths] for kind in kinds}
kept = {kind: [recovered(stack(kind, depth)) for depth in depths] for kind in kinds}
assert gradients["neither"][3] < 1e-3  # eight layers
assert all(min(gradients[kind]) > 0.1 for kind in kinds[1:])
assert all(max(kept[kind][3:]) < 0.1 for kind in kinds[:2])
assert kept[kinds[2]][-1] > 0.5 and kept[kinds[3]][-1] > 0.7

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 2, width=8.4, height=2.9,
    alt="Left, the gradient at the input over depth: with neither shortcut nor norm it falls below a thousandth within "
    "eight layers; the other three curves are flat. Right, the share of the input that is recovered: without a shortcut "
    "it is near 0 from eight layers on, with or without norm; with a shortcut it falls slowly.",
)  # fmt: skip
for kind, dash in zip(kinds, (":", "-.", "--", "-"), strict=True):
    axes[0].plot(depths, gradients[kind], dash, label=kind)
    axes[1].plot(depths, kept[kind], dash)
axes[0].set(yscale="log", ylim=(1e-6, 5), xlabel="layers", ylabel="gradient at the input")
axes[1].set(xlabel="layers", ylabel="input recovered (R²)", ylim=(-0.1, 1.05))
axes[0].legend(loc="lower right")
fig

# %% [markdown]
# The usual explanation, that shortcuts keep gradients from vanishing, is half of the story. Left: a bare stack loses
# its gradient within eight layers, but a *norm alone* cures that as well. Right: what a norm does not cure is that every
# layer scrambles what came in. With a shortcut, most of the input is still there after 24 layers, and the gradient,
# besides arriving, still says something about it. So the token's embedding and its position reach the top, and a layer
# can afford to add little.
#
# The norm before has a price: the stream grows with depth, since each layer adds something and nothing takes it
# back. So a `norm_first` network ends with one more norm. With the norm after, the output always has size 1.

# %%
x = torch.randn(500, 64)
size = {kind: stack(kind, 24)(x).square().mean().sqrt().item() for kind in kinds[2:]}
assert abs(size["shortcut, norm after"] - 1) < 0.01 and size["shortcut, norm before"] > 1.3

# %% [markdown]
# How the two orders train, and why the first needs a slow start, is [Training transformers](12_training_transformers.ipynb). From here on, every block has both.
#
# ## The encoder block
#
# Self-attention, then the network, each with its shortcut and norm. **How few lines is that?**


# %%
class EncoderBlock(nn.Module):
    def __init__(self, embed_dim, num_heads, ffn_dim, norm_first=False):
        super().__init__()
        self.attention = cu.MultiHeadAttention(embed_dim, num_heads)
        self.feed_forward = cu.FeedForward(embed_dim, ffn_dim)
        self.norms = nn.ModuleList(nn.LayerNorm(embed_dim) for _ in range(2))
        self.norm_first = norm_first

    def forward(self, x, attn_mask=None):
        def attend(x):
            return self.attention(x, x, x, attn_mask)

        x = around(x, attend, self.norms[0], self.norm_first)
        return around(x, self.feed_forward, self.norms[1], self.norm_first)


# %% [markdown]
# It must equal the library's `EncoderLayer` and PyTorch's `nn.TransformerEncoderLayer`: outputs and *all* gradients, in
# both orders of norm, with padding. Our block and the library's list their parameters in the same order. PyTorch joins
# the three input projections into one matrix, and its padding mask has the opposite sense: **True means "ignore"**.


# %%
def as_torch_has_them(tensors):
    """Four weights and biases of each attention → PyTorch's joined ones; the rest stays."""
    tensors = list(tensors)
    joined = []
    while len(tensors) > 10:  # FFN and norms are the last ones, 8 or 10 of them
        wq, bq, wk, bk, wv, bv, wo, bo, *tensors = tensors
        joined += [torch.cat([wq, wk, wv]), torch.cat([bq, bk, bv]), wo, bo]
    return joined + tensors


def copy_weights(values, module):
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), values, strict=True):
            parameter.copy_(value)


def randomized(block):
    """Norms start as 1 and 0, biases of attention in PyTorch as 0: give all of them something to do."""
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return block


# %%
x, valid_lens = torch.randn(2, 6, 16), torch.tensor([4, 6])
mask = cu.padding_mask(valid_lens, 6)
real = mask[:, 0, 0]  # (2, 6)
sizes = {"dropout": 0.0, "norm_first": False}
for norm_first in (False, True):
    block = randomized(EncoderBlock(16, 4, 32, norm_first))
    library = cu.EncoderLayer(16, 4, 32, dropout=0.0, norm_first=norm_first)
    copy_weights(block.parameters(), library)
    torchs = nn.TransformerEncoderLayer(
        16, 4, 32, dropout=0.0, norm_first=norm_first, batch_first=True
    )
    copy_weights(as_torch_has_them(block.parameters()), torchs)

    outputs = [block(x, mask), library(x, mask), torchs(x, src_key_padding_mask=~real)]
    ours, of_library, of_torch = (
        torch.autograd.grad(y[real].sin().sum(), list(module.parameters()))
        for y, module in zip(outputs, (block, library, torchs), strict=True)
    )
    assert_close(outputs[1], outputs[0])
    assert_close(outputs[2][real], outputs[0][real], rtol=1e-4, atol=1e-5)
    assert_close(list(of_library), list(ours), rtol=1e-4, atol=1e-5)
    assert_close(list(of_torch), as_torch_has_them(ours), rtol=1e-4, atol=1e-5)

# %% [markdown]
# Everything from here to GPT is a stack of such blocks. The output has the shape of the input, and a whole encoder is
# still equivariant ([Self-attention](07_self_attention.ipynb)): it knows the order of words only because positions were added below.
#
# ## The decoder block
#
# A decoder block asks three questions in turn: *What have I said?* (masked self-attention), *what does the source
# say?* (cross-attention), *what do I make of it?* (FFN). In **cross-attention** queries come from the decoder's stream, keys and
# values from the memory.


# %%
class DecoderBlock(nn.Module):
    def __init__(self, embed_dim, num_heads, ffn_dim, norm_first=False):
        super().__init__()
        self.self_attention = cu.MultiHeadAttention(embed_dim, num_heads)
        self.cross_attention = cu.MultiHeadAttention(embed_dim, num_heads)
        self.feed_forward = cu.FeedForward(embed_dim, ffn_dim)
        self.norms = nn.ModuleList(nn.LayerNorm(embed_dim) for _ in range(3))
        self.norm_first = norm_first

    def forward(self, x, memory, attn_mask=None, memory_mask=None):
        def said(x):
            return self.self_attention(x, x, x, attn_mask)

        def read(x):
            return self.cross_attention(x, memory, memory, memory_mask)

        x = around(x, said, self.norms[0], self.norm_first)
        x = around(x, read, self.norms[1], self.norm_first)
        return around(x, self.feed_forward, self.norms[2], self.norm_first)


# %% [markdown]
# The decoder's own mask is always causal: token $i$ may look at tokens $1, \dots, i$. The memory's mask hides the
# source's padding. **What do the two score matrices look like?** Take the sizes of a set of lecture notes: 8 target
# tokens, 6 source tokens, 2 sentences with 4 and 6 real source tokens, 2 heads of width 7.

# %%
block = DecoderBlock(14, 2, 28)
target, memory = torch.randn(2, 8, 14), torch.randn(2, 6, 14)
causal, memory_mask = cu.causal_mask(8), cu.padding_mask(torch.tensor([4, 6]), 6)
with cu.record_attention(block) as maps:
    block(target, memory, causal, memory_mask)
own, cross = maps["self_attention"], maps["cross_attention"]
assert own.shape == (2, 2, 8, 8) and cross.shape == (2, 2, 8, 6)
assert (own.triu(1) == 0).all() and (own[:, :, 0, 0] == 1).all()  # the first row has one choice
assert (cross[0, :, :, 4:] == 0).all() and (cross[1] > 0).all()
assert_close(own.sum(-1), torch.ones(2, 2, 8))
assert_close(cross.sum(-1), torch.ones(2, 2, 8))

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1, 4, width=8.6, height=2.5, width_ratios=[8, 8, 6, 6],
    alt="Weights of the first head for two sentences. Self-attention: 8 by 8, lower triangles. Cross-attention: 8 by 6, "
    "in the first sentence the last two columns are empty.",
)  # fmt: skip
for s in range(2):
    image = cu.heatmap(
        axes[s], own[s, 0], title=f"self-attention, sentence {s + 1}",
        xlabel="target", ylabel="target" if s == 0 else None,
    )  # fmt: skip
    cu.heatmap(
        axes[2 + s], cross[s, 0], title=f"cross, sentence {s + 1}", xlabel="source", ylabel=None
    )
for ax, size in zip(axes, (8, 8, 6, 6), strict=True):
    ax.set_xticks(range(size), range(1, size + 1))
    ax.set_yticks(range(8), range(1, 9))
fig.colorbar(image, ax=axes, pad=0.02).outline.set_visible(False)
fig

# %% [markdown]
# Left, two lower triangles; rows grow by one key each, and each sums to 1. Right, rows over the source: sentence 1 has
# two empty columns, its padding. No causal mask there: the source is known from the start. (These are weights. The
# *scores* above the diagonal are $-\infty$, not 0. A score of 0 would get weight like any other.)
#
# Again the proof: the library's layer, PyTorch's layer, all gradients, both orders, both masks at once.

# %%
for norm_first in (False, True):
    block = randomized(DecoderBlock(14, 2, 28, norm_first))
    library = cu.DecoderLayer(14, 2, 28, dropout=0.0, norm_first=norm_first)
    copy_weights(block.parameters(), library)
    torchs = nn.TransformerDecoderLayer(
        14, 2, 28, dropout=0.0, norm_first=norm_first, batch_first=True
    )
    copy_weights(as_torch_has_them(block.parameters()), torchs)
    outputs = [
        block(target, memory, causal, memory_mask),
        library(target, memory, causal, memory_mask),
        torchs(target, memory, tgt_mask=~causal, memory_key_padding_mask=~memory_mask[:, 0, 0]),
    ]
    ours, of_library, of_torch = (
        torch.autograd.grad(y.sin().sum(), list(module.parameters()))
        for y, module in zip(outputs, (block, library, torchs), strict=True)
    )
    assert_close(outputs[1], outputs[0])
    assert_close(outputs[2], outputs[0], rtol=1e-4, atol=1e-5)
    assert_close(list(of_library), list(ours), rtol=1e-4, atol=1e-5)
    assert_close(list(of_torch), as_torch_has_them(ours), rtol=1e-4, atol=1e-5)

# %% [markdown]
# ### Exercise 2 · Find the bug
# *15 minutes · ★★*
#
# This function does what a decoder block with `norm_first` does, with the parts of a `cu.DecoderLayer`. It has trained
# models for months. Their *validation* loss was suspiciously good, their translations were not; and deep stacks of it
# trained no better than stacks without shortcuts. Two bugs, one for each complaint. Write `fixed_decoder_layer`.


# %%
def buggy_decoder_layer(layer, x, memory, memory_mask):
    """A cu.DecoderLayer with norm_first=True, on (batch, n, d) and memory (batch, keys, d)."""
    causal = cu.causal_mask(x.shape[1]) if layer.training else None
    x = layer.around_self.norm(x)
    x = x + layer.self_attention(x, x, x, causal)
    x = layer.around_cross.norm(x)
    x = x + layer.cross_attention(x, memory, memory, memory_mask)
    x = layer.around_feed_forward.norm(x)
    return x + layer.feed_forward(x)


layer = cu.DecoderLayer(14, 2, 28, dropout=0.0, norm_first=True)
later = target.clone()
later[:, 5] = torch.randn(14)  # not `+= 1`: the layer norm would not notice
for mode, leaks in ((True, False), (False, True)):
    layer.train(mode)
    before, after = (buggy_decoder_layer(layer, t, memory, memory_mask) for t in (target, later))
    assert ((before - after)[:, :5].abs().max() > 1e-3) == leaks
silent = copy.deepcopy(layer)  # no sublayer says anything: x should pass unchanged
copy_weights(
    [torch.zeros_like(p) if p.ndim == 2 else p * 0 + (p == 1) for p in layer.parameters()], silent
)
assert (buggy_decoder_layer(silent, target, memory, memory_mask) - target).abs().max() > 0.1


# %% tags=["exercise"]
def fixed_decoder_layer(layer, x, memory, memory_mask):
    """A cu.DecoderLayer with norm_first=True, on (batch, n, d) and memory (batch, keys, d)."""
    ...


# %% tags=["check"]
cu.checks.fixed_decoder_layer(fixed_decoder_layer)


# %% tags=["solution"] jupyter={"source_hidden": true}
def fixed_decoder_layer(layer, x, memory, memory_mask):
    """A cu.DecoderLayer with norm_first=True, on (batch, n, d) and memory (batch, keys, d)."""
    causal = cu.causal_mask(x.shape[1])  # in every mode
    y = layer.around_self.norm(x)  # the norm is for the sublayer, not for the shortcut
    x = x + layer.self_attention(y, y, y, causal)
    y = layer.around_cross.norm(x)
    x = x + layer.cross_attention(y, memory, memory, memory_mask)
    return x + layer.feed_forward(layer.around_feed_forward.norm(x))


cu.checks.fixed_decoder_layer(fixed_decoder_layer)

# %% [markdown]
# ## The whole model
#
# What is left are the ends. **Below**, a token becomes a row of an embedding matrix, multiplied by $\sqrt d$, plus its
# position. Why the factor? The library draws rows with standard deviation $1/\sqrt d$, so that after it words and
# positions are about equally loud ([Positions, further](09_positions_further.ipynb)). **Above**, a linear layer turns each vector of the decoder into one
# logit per word of the target vocabulary.


# %%
def logits_by_hand(model, source, source_lens, target):
    """The forward pass of `cu.Transformer`, part by part, without dropout."""
    table = cu.sinusoidal_table(64, model.output.in_features)

    def embed(tokens, embedding):
        return embedding(tokens) * math.sqrt(embedding.embedding_dim) + table[: tokens.shape[1]]

    memory_mask = cu.padding_mask(source_lens, source.shape[1])
    memory = embed(source, model.source_embedding)
    for layer in model.encoder:
        memory = layer(memory, memory_mask)
    memory = model.encoder_norm(memory)
    x = embed(target, model.target_embedding)
    for layer in model.decoder:
        x = layer(x, memory, cu.causal_mask(target.shape[1]), memory_mask)
    return model.output(model.decoder_norm(x))


sizes = {"embed_dim": 16, "num_heads": 4, "ffn_dim": 32, "num_layers": 2, "dropout": 0.0}
source, target = torch.randint(4, 30, (2, 6)), torch.randint(4, 40, (2, 8))
source_lens = torch.tensor([4, 6])
for norm_first in (False, True):
    model = cu.Transformer(30, 40, norm_first=norm_first, **sizes)
    logits = model(source, source_lens, target)
    assert logits.shape == (2, 8, 40)
    assert_close(logits_by_hand(model, source, source_lens, target), logits)

# %% [markdown]
# ### Counting parameters
#
# **How large is it?** With $d$ = `embed_dim`, $m$ = `ffn_dim`, biases included:
#
# | part | parameters | how often |
# |---|---|---|
# | attention | $4(d^2 + d)$ | 1 per encoder block, 2 per decoder block |
# | position-wise network | $2dm + m + d$ | 1 per block |
# | layer norm | $2d$ | 2 per encoder block, 3 per decoder block, and with `norm_first` one more on each side |
# | embeddings | $V_{\text{source}}\,d + V_{\text{target}}\,d$ | |
# | last linear layer | $(d + 1)\,V_{\text{target}}$ | |
#
# Heads do not occur ([Multi-head attention](08_multi_head_attention.ipynb)), lengths do not occur, and the positions are a formula. By hand for $d = 16$,
# $m = 32$: attention $1{,}088$, network $1{,}072$, norm $32$, so an encoder block has
# $1{,}088 + 1{,}072 + 64 = 2{,}224$.
#
# ### Exercise 3 · Count
# *10 minutes · ★★*
#
# Write the formula as a function. The check builds models of several shapes and counts.


# %% tags=["exercise"]
def count_parameters(source_size, target_size, embed_dim, ffn_dim, num_layers, norm_first):
    """Number of parameters of cu.Transformer with these sizes."""
    ...


# %% tags=["check"]
cu.checks.count_parameters(count_parameters)


# %% tags=["solution"] jupyter={"source_hidden": true}
def count_parameters(source_size, target_size, embed_dim, ffn_dim, num_layers, norm_first):
    """Number of parameters of cu.Transformer with these sizes."""
    d, m = embed_dim, ffn_dim
    attention, network, norm = 4 * (d**2 + d), 2 * d * m + m + d, 2 * d
    encoder_block = attention + network + 2 * norm
    decoder_block = 2 * attention + network + 3 * norm
    last_norms = 2 * norm if norm_first else 0
    ends = source_size * d + target_size * d + (d + 1) * target_size
    return num_layers * (encoder_block + decoder_block) + last_norms + ends


cu.checks.count_parameters(count_parameters)

# %%
attention, network, norm = 4 * (16**2 + 16), 2 * 16 * 32 + 32 + 16, 2 * 16
assert (attention, network, norm) == (1088, 1072, 32)
assert weights_in(model.encoder[0]) == attention + network + 2 * norm == 2224
assert weights_in(model.decoder[0]) == 2 * attention + network + 3 * norm
ends = 30 * 16 + 40 * 16 + 17 * 40
assert weights_in(model) == 2 * (2224 + 2 * 1088 + 1072 + 96) + 2 * norm + ends

# %% [markdown]
# The count finds bugs. A `nn.Parameter(...).cuda()` is not a parameter any more and is missing from the sum; so is a
# list of blocks that is not an `nn.ModuleList`. And for the original base model ($d = 512$, $m = 2048$, 6 layers,
# 37,000 tokens that the source, the target and the last layer *share*) the formula gives 63 million. The paper's table 3
# says 65.

# %%
with torch.device("meta"):
    base = cu.Transformer(
        37_000, 37_000, embed_dim=512, num_heads=8, ffn_dim=2048, num_layers=6, norm_first=False
    )
shared = weights_in(base) - 2 * 37_000 * 512 - 37_000  # one matrix instead of three, no bias
assert round(shared / 1e6) == 63

# %% [markdown]
# ## All at once, or one by one
#
# A Transformer is used in two ways. In training the whole target is known: **teacher forcing** feeds it in, shifted
# right by one, and one forward pass gives the logits of *all* next tokens. In translation there is only what has been
# said so far, and the model takes a step per token. **Both have to compute the same numbers.** Three tests decide
# whether they do, and they are worth running on every decoder you ever meet:
#
# 1. Step-by-step logits equal teacher-forced logits.
# 2. A change of a later target token changes no earlier logit, **in training mode and in eval mode**.
# 3. A change in the source's padding changes nothing.

# %%
model = cu.Transformer(30, 40, **sizes)
teacher_forced = model(source, source_lens, target)

state = model.start(source, source_lens)
steps = [model.step(token, state) for token in target.unbind(dim=1)]
assert_close(torch.stack(steps, dim=1), teacher_forced, rtol=1e-4, atol=1e-5)  # 1

for training in (True, False):
    model.train(training)
    for t in range(1, 8):
        later = target.clone()
        later[:, t] = 4 + (later[:, t] + 1) % 30
        after = model(source, source_lens, later)
        assert_close(after[:, :t], teacher_forced[:, :t], rtol=0, atol=1e-5)  # 2
        assert (after[:, t] - teacher_forced[:, t]).abs().max() > 1e-2

other_padding = source.clone()
other_padding[0, 4:] = 7
assert_close(model(other_padding, source_lens, target), teacher_forced)  # 3

# %% [markdown]
# This is what makes the Transformer fast to train. A recurrent decoder has to take its steps one after the other in
# training, too; here all positions of all sentences go through at once, because the mask, and not the order of
# computation, keeps the future out.

# %% [markdown]
# ## Training a translator
#
# English to French, from two sources of ours: a hundred hand-written everyday sentences of one or two words, and
# 14,000 sentences from a grammar. The everyday sentences are few and mostly idioms, so each enters eight times per pass.
#
# What is held out, and from what? We split by *source sentence*, so that no sentence stands on both sides. 300 grammar
# sentences are for **validation**, by which one chooses sizes, rate and number of passes. 500 others, and all remaining
# short everyday sentences, are for the **test** at the end; nothing is chosen by them. Four everyday sentences
# that every lecture on the subject translates are in the *training* data, and we will say so when we come to them.

# %%
four = ["go .", "i lost .", "he's calm .", "i'm home ."]
everyday = {}
for pair in cu.load_sentences("fr"):
    if len(pair.source) <= 3:
        everyday.setdefault(pair.source, pair)  # the preferred translation comes first
asked = [everyday.pop(tuple(cu.tokenize(sentence))) for sentence in four]
seen, unseen = cu.split_by_source(list(everyday.values()), [len(everyday) - 96], seed=2017)
seen += asked
grammar, validation, test = cu.split_by_source(cu.load_grammar("fr"), [300, 500], seed=2017)
train = grammar[:14_000] + 8 * seen

known = {pair.source for pair in train}
validation, test, unseen = (  # a few everyday sentences stand in the grammar, too
    [pair for pair in part if pair.source not in known] for part in (validation, test, unseen)
)
source_vocab = cu.Vocabulary(pair.source for pair in train)
target_vocab = cu.Vocabulary(pair.target for pair in train)

# %% [markdown]
# The recipe, in full: 64 wide, 4 heads, 2 + 2 layers, `ffn_dim` 64, norm before, no dropout (two passes are too few to
# learn anything by heart that is not repeated); batches of 48, AdamW without weight decay, peak rate 0.007 after 60
# steps of warm-up, then linearly down to 0; gradients clipped at length 1. The loss is the cross-entropy over real
# target tokens; padding does not count.


# %%
def new_transformer(seed):
    cu.seed_everything(seed)
    return cu.Transformer(
        len(source_vocab), len(target_vocab),
        embed_dim=64, num_heads=4, ffn_dim=64, num_layers=2, dropout=0.0, norm_first=True,
    )  # fmt: skip


def fit(model, seed, *, lr=0.007, epochs=2):
    loader = cu.PairLoader(train, source_vocab, target_vocab, batch_size=48, seed=seed)
    held_out = cu.PairLoader(validation, source_vocab, target_vocab, shuffle=False)
    schedule = cu.warmup_decay(60, epochs * len(loader))
    trainer = cu.Trainer(cu.translation_loss(), epochs=epochs, lr=lr, schedule=schedule, seed=seed)
    return trainer.fit(model, loader, held_out)


models, histories = [new_transformer(0)], []
histories.append(fit(models[0], 0))

# %% [markdown]
# A loss of $\ln V$ nats per token is what a network starts with that knows nothing of $V$ words; here
# $\ln 1{,}600 \approx 7.4$. Two more seeds, because one trained network is an anecdote.

# %%
models.append(new_transformer(1))
histories.append(fit(models[1], 1))

# %%
models.append(new_transformer(2))
histories.append(fit(models[2], 2))

# %%
for history in histories:
    first, last = history.frame["val_loss"]
    assert last < 0.35 and last < 0.6 * first
assert 7.2 < math.log(len(target_vocab)) < 7.6

# %% tags=["nbval-ignore-output"]
pd.concat({f"seed {seed}": h.frame for seed, h in enumerate(histories)})[
    ["train_loss", "val_loss", "grad_norm", "seconds"]
].round(2)

# %% [markdown]
# ### What it has seen
#
# The four sentences first. They were in the training data sixteen times each. That a network can repeat them is no
# sign of understanding; that it cannot would be a sign of a bug.


# %%
def said(model, pairs, **options):
    sources = [" ".join(pair.source) for pair in pairs]
    return cu.translate(model, sources, source_vocab, target_vocab, **options)


right = [" ".join(pair.target) for pair in asked]
answers = [said(model, asked) for model in models]
assert sum(a == b for answer in answers for a, b in zip(answer, right, strict=True)) >= 11  # of 12

# %% tags=["nbval-ignore-output"]
pd.DataFrame(dict(zip(["seed 0", "seed 1", "seed 2"], answers, strict=True)), index=four)

# %% [markdown]
# ### What it has not seen
#
# BLEU ([Sequence to sequence](05_sequence_to_sequence.ipynb)) counts matching runs of one to four tokens, from 0 to 1. **How good are the three networks on
# sentences they have seen, on new sentences of the grammar, and on new everyday sentences?**


# %%
def score(model, pairs, **options):
    """BLEU, and the share of translations that are right to the letter."""
    references = [" ".join(pair.target) for pair in pairs]
    ours = said(model, pairs, **options)
    exact = sum(a == b for a, b in zip(ours, references, strict=True)) / len(pairs)
    return cu.bleu(ours, references), exact


parts = {"everyday, seen": seen, "grammar, held out": test, "everyday, held out": unseen}
scores = {name: [score(model, pairs) for model in models] for name, pairs in parts.items()}
for seed in range(3):
    (seen_bleu, _), (test_bleu, test_exact), (unseen_bleu, _) = (s[seed] for s in scores.values())
    assert seen_bleu > 0.9
    assert test_bleu > 0.7 and test_exact > 0.65
    assert unseen_bleu < 0.55

# %% tags=["nbval-ignore-output"]
pd.DataFrame(
    {
        f"seed {seed}": [
            f"{pairs[seed][0]:.2f} ({pairs[seed][1]:.0%})" for pairs in scores.values()
        ]
        for seed in range(3)
    },
    index=pd.Index(parts, name="BLEU (exact)"),
)

# %% [markdown]
# Three different answers to "how good is it". Of the new sentences of the grammar, more than two in three come out right
# to the letter: it has learned the grammar's rules and words. On new everyday sentences it fails, and it must: many
# contain a word that never occurred in training, others are idioms that no rule gives away. A report that names one BLEU
# and not the data says nothing. (The middle row will rise a little below, without any training.)

# %%
with_new_word = [pair for pair in unseen if any(word not in source_vocab for word in pair.source)]
assert len(with_new_word) > 0.3 * len(unseen)

# %% [markdown]
# ## Looking inside
#
# Three kinds of maps, each by layer and head: encoder self-attention, decoder self-attention, cross-attention. **What
# do they show for "i'm home ." → "je suis chez moi ."?** A row of a decoder map is labeled with the token that was
# *read*; from it, the *next* one is said.


# %%
def maps_of(model, pairs):
    """A dict of three: maps (layers, batch, heads, queries, keys) under teacher forcing."""
    batch = collate(
        [(source_vocab.encode(pair.source), target_vocab.encode(pair.target)) for pair in pairs]
    )
    with cu.record_attention(model.eval()) as maps, torch.no_grad():
        model(batch.source, batch.source_lens, batch.target_in)
    kinds = {"encoder": ".attention", "decoder": ".self_attention", "cross": ".cross_attention"}
    return {
        kind: torch.stack([maps[name] for name in maps if name.endswith(end)])
        for kind, end in kinds.items()
    }


home = [maps_of(model, asked[3:]) for model in models]
source_tokens = [*asked[3].source, "<eos>"]
target_tokens = ["<bos>", *asked[3].target]
heads = [f"head {head}" for head in range(1, 5)]

# %%
cu.show_heatmaps(
    home[0]["encoder"][:, 0],
    queries=source_tokens,
    keys=source_tokens,
    titles=heads,
    width=8.6,
    height=3.9,
    alt="Encoder self-attention for the four source tokens: two layers in rows, four heads in columns.",
)

# %%
fig = cu.show_heatmaps(
    home[0]["decoder"][:, 0],
    queries=target_tokens,
    keys=target_tokens,
    titles=heads,
    width=8.6,
    height=4.4,
    alt="Decoder self-attention for six target tokens, two layers by four heads: all maps are lower triangles.",
)
for ax in fig.axes[:8]:
    ax.tick_params(axis="x", rotation=60)
fig

# %% [markdown]
# What is certain here is what the masks enforce: lower triangles, a first row with one choice. The rest invites
# stories: "head 2 looks at the word before". Mind what *no* preference looks like. Row $i$ of a lower triangle has $i$
# choices, so equal weights give the token itself $1/i$: 1, 0.5, 0.33, … A diagonal that fades is not a finding.
#
# The map people look at most is the cross-attention, where one would like to see the translation's word alignment.
# **Do the three seeds tell the same story?** The second layer, seeds in rows:

# %%
cu.show_heatmaps(
    torch.stack([maps["cross"][1, 0] for maps in home]),
    queries=target_tokens,
    keys=source_tokens,
    titles=[f"head {head}, seed {seed}" for seed in range(3) for head in range(1, 5)],
    width=8.6,
    height=6.2,
    alt="Cross-attention of the second layer, three seeds in rows and four heads in columns. The maps differ from seed "
    "to seed and from head to head.",
)

# %% [markdown]
# They do not. Look for a head that ties "home" to the saying of "chez" (row "suis"): you may find one, at another number
# in each network, beside several that look elsewhere. What survives the change of seed? On this sentence: averaged over all heads and layers, the row `<bos>`, from which "je" is said, looks most at "i'm".
# That is all we dare to say.

# %%
for maps in home:
    average = maps["cross"].mean(dim=(0, 2))[0]  # over layers and heads: (target, source)
    assert source_tokens[average[0].argmax()] == "i'm"
    assert (maps["decoder"].triu(1) == 0).all()
    assert_close(maps["cross"].sum(-1), torch.ones(2, 1, 4, 6))

# %% [markdown]
# ### A hundred and more sentences instead of one
#
# One sentence is too little to tell chance from structure. The grammar gives us the *true* word alignments of its
# sentences, so we can measure: link each target token to the source token with the largest weight, and count the wrong
# links (alignment error rate, [Bahdanau attention](06_bahdanau_attention.ipynb): 0 is perfect). As a yardstick, a guess that sees no words and links along the
# diagonal. French and English run mostly in parallel, so the guess is hard to beat, and a map that "aligns" may only
# know how to walk. We take the test sentences in which links *cross*. **Does a head align? Does the average?**


# %%
def crosses(pair):
    """Whether two words change their order in translation."""
    return any(a < c and b > d for a, b in pair.alignment for c, d in pair.alignment)


def error_rate(weights, pairs):
    """Alignment error of weights (batch, target, source), padding and end marks cut off."""
    found = [
        links_of(w[: len(p.target), : len(p.source)]) for w, p in zip(weights, pairs, strict=True)
    ]
    return cu.alignment_error_rate(found, [pair.alignment for pair in pairs])


def diagonal(pair):
    """(target, source): the guess."""
    places = torch.linspace(0, len(pair.source) - 1, len(pair.target)).round().long()
    return F.one_hot(places, len(pair.source)).float()


crossing = [pair for pair in test if crosses(pair)]
guess = error_rate([diagonal(pair) for pair in crossing], crossing)
errors, averages = [], []
for model in models:
    cross = maps_of(model, crossing)["cross"]  # (layers, batch, heads, target, source)
    errors.append(
        torch.tensor([[error_rate(layer[:, h], crossing) for h in range(4)] for layer in cross])
    )
    averages.append(error_rate(cross.mean(dim=(0, 2)), crossing))
    assert averages[-1] < guess and averages[-1] < errors[-1].median() - 0.03
assert len(crossing) > 120

# %% tags=["hide-input"]
fig, ax = cu.subplots(
    width=6.8, height=2.9,
    alt="Alignment error of each head on sentences with crossing links, for three seeds. Heads scatter between about 0.4 "
    "and 0.55. The average over all heads is near 0.3 in each seed, below the diagonal guess.",
)  # fmt: skip
for layer, (marker, color) in enumerate((("o", "blue"), ("s", "vermilion"))):
    for seed in range(3):
        ax.plot(
            [seed - 0.12 + 0.24 * layer] * 4, errors[seed][layer], marker, color=cu.COLORS[color], alpha=0.65,
            label=f"a head of layer {layer + 1}" if seed == 0 else None,
        )  # fmt: skip
ax.plot(range(3), averages, "*", color="black", markersize=13, label="average of all heads")
ax.axhline(guess, color="0.4", linestyle="--", linewidth=1.2, label="diagonal guess")
ax.set_xticks(range(3), ["seed 0", "seed 1", "seed 2"])
ax.set(ylabel="alignment error", ylim=(0, 0.8), xlim=(-0.4, 3.6))
ax.legend(loc="upper right")
fig

# %% [markdown]
# Single heads scatter, most of them are *worse* than the guess, and which one is best changes with the seed. The average over all heads is
# better than most of them and better than the guess, in each network. So the decoder does look where
# the translation comes from, with many heads and none appointed; and it need not look exactly there, because
# the encoder's self-attention has already spread every word over its neighbors. Read a map of a Transformer as one
# voice of many, and an "alignment" as something to be measured.
#
# Now step through it yourself. Move the step from 1 to 6 at layer 2, *mean*: the framed row is the newest token, the
# bars are what may be said next. Then keep the step and change head and layer: the bars stay, and the maps do not agree.

# %%
cu.explore.transformer(models[0], source_vocab, target_vocab, "i'm home .")

# %% [markdown]
# ## Decoding
#
# The network gives probabilities for the *next* token. **How does one get from there to the most probable sentence?**
# Taking the best token each time, **greedily**, need not lead there. By hand: a model says A with 0.5 and B with 0.4;
# after A it wavers, after B it is sure.
#
# | | then | sentence |
# |---|---|---|
# | A: 0.5 | C 0.4, D 0.35, end 0.25 | "A C": 0.20, "A D": 0.175, "A": 0.125 |
# | B: 0.4 | C 0.9, end 0.1 | **"B C": 0.36**, "B": 0.04 |
# | end: 0.1 | | "": 0.1 |
#
# Greedy decoding takes A and can no longer do better than 0.20. A **beam** keeps the $k$ best beginnings, here A and
# B, and finds 0.36. The library's decoders take any model with `start` and `step`, so we can hand them this table.


# %%
class Table(nn.Module):
    """A language of the words A, B, C, D (ids 4 to 7); `<eos>` is 3, `<bos>` 2."""

    follows = {2: {4: 0.5, 5: 0.4, 3: 0.1}, 4: {6: 0.4, 7: 0.35, 3: 0.25}, 5: {6: 0.9, 3: 0.1}, 6: {3: 1.0}, 7: {3: 1.0}}  # fmt: skip

    def start(self, source, source_lens):
        return cu.KVCache()  # nothing to remember; can be reordered

    def step(self, tokens, state):
        probabilities = torch.zeros(len(tokens), 8)
        for row, token in enumerate(tokens.tolist()):
            for following, probability in self.follows.get(token, {3: 1.0}).items():
                probabilities[row, following] = probability
        return probabilities.log()


ask = torch.zeros(1, 1, dtype=torch.long), torch.ones(1, dtype=torch.long)
assert cu.greedy(Table(), *ask) == [[4, 6]]  # A C
assert cu.beam_search(Table(), *ask, beam_size=1) == [[4, 6]]
assert cu.beam_search(Table(), *ask, beam_size=2) == [[5, 6]]  # B C

# %% [markdown]
# Products of probabilities fall with length, so a beam that compares plain products likes short sentences. The usual
# remedy ([Wu et al., 2016](https://arxiv.org/abs/1609.08144), section 7) divides the log-probability by a power of the
# length; `beam_search` has it as `length_penalty`. **What does a beam of 4 change for our three translators?**

# %%
references = [" ".join(pair.target) for pair in test]
results, longest = {}, {}
for beam_size in (1, 4):
    translated = [said(model, test, beam_size=beam_size) for model in models]
    results[beam_size] = [
        (
            cu.bleu(ours, references),
            sum(a == b for a, b in zip(ours, references, strict=True)) / len(test),
        )
        for ours in translated
    ]
    longest[beam_size] = max((t for ours in translated for t in ours), key=lambda t: len(t.split()))
for (bleu_greedy, exact_greedy), (bleu_beam, exact_beam) in zip(
    results[1], results[4], strict=True
):
    assert bleu_beam > max(0.8, bleu_greedy - 0.01)
    assert abs(exact_beam - exact_greedy) < 0.06
assert len(longest[1].split()) >= len(longest[4].split())

# %% tags=["nbval-ignore-output"]
pd.DataFrame(
    {
        name: [
            *(f"{bleu:.2f} ({exact:.0%})" for bleu, exact in results[k]),
            f"{len(longest[k].split())} tokens",
        ]
        for name, k in (("greedy", 1), ("beam of 4", 4))
    },
    index=["seed 0", "seed 1", "seed 2", "longest translation"],
).rename_axis("BLEU (exact)")

# %% [markdown]
# The share of exact translations hardly moves. BLEU rises a little, in unlucky networks by several points. How can
# that be? Look at the longest output. No reference has more than a dozen tokens, but greedy decoding now and then falls into a loop, in one of our runs "est-ce
# qu'il est allé au musée le musée le musée …", and does not come out before `max_len`. One such sentence holds as many tokens as
# seven or eight good ones. Each step of a loop is likely, the whole is not, and a beam has kept the beginning of something better.
# So a beam repairs rare disasters; where the model is plainly wrong, it is wrong with a beam as well.
#
# ### Exercise 4 · Greedy, from nothing
# *12 minutes · ★★*
#
# Write greedy decoding for one sentence with nothing but teacher-forced calls `model(source, source_lens, target)`:
# begin with `<bos>`, run the model over what has been said, append the best next token, again. Return the ids without
# `<bos>` (2) and `<eos>` (3).


# %% tags=["exercise"]
def greedy_by_recomputing(model, source, source_lens, max_len=20):
    """source (1, length), source_lens (1,) → list of at most max_len token ids."""
    ...


# %% tags=["check"]
cu.checks.greedy_by_recomputing(greedy_by_recomputing)


# %% tags=["solution"] jupyter={"source_hidden": true}
def greedy_by_recomputing(model, source, source_lens, max_len=20):
    """source (1, length), source_lens (1,) → list of at most max_len token ids."""
    tokens = [2]
    while len(tokens) <= max_len:
        logits = model(source, source_lens, torch.tensor([tokens]))
        best = logits[0, -1].argmax().item()
        if best == 3:
            break
        tokens.append(best)
    return tokens[1:]


cu.checks.greedy_by_recomputing(greedy_by_recomputing)

# %% [markdown]
# ## The cache
#
# That exercise computes everything again for each token. Yet because of the causal mask, nothing about the earlier
# tokens changes: their keys and values are what they were. **Keep them**, and a step needs one query, one new key, one
# new value. That is the KV cache; it holds, per layer, two vectors per token.
#
# One widely copied decoder ([Zhang et al., 2023](https://d2l.ai), [Attention between pixels](16_attention_between_pixels.ipynb)) keeps the layer's *inputs* instead and projects all of them to keys and values at every
# step. It saves memory and loses most of the gain. Count multiply-adds of one decoder layer for the $t$-th token, with
# a source of $S$ tokens:
#
# | | projections and network | attention |
# |---|---|---|
# | recompute all | $t\,(6d^2 + 2dm) + 2Sd^2$ | $2t^2d + 2tSd$ |
# | cache inputs | $(6d^2 + 2dm) + 2(t-1)d^2 + 2Sd^2$ | $2td + 2Sd$ |
# | cache keys and values | $6d^2 + 2dm$ | $2td + 2Sd$ |
#
# ($6d^2$: query, key, value and output of self-attention, query and output of cross-attention. The two projections of
# the source, $2Sd^2$, are done once with the cache.) The counter confirms the first column; the fused operator hides
# the second from it.


# %%
def multiply_adds(function):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        function()
    return counter.get_total_flops() // 2


d, m, S, t = 32, 64, 6, 20
layer = cu.DecoderLayer(d, 4, m, dropout=0.0)
x, memory = torch.randn(1, t, d), torch.randn(1, S, d)
cache = LayerCache()
all_at_once = multiply_adds(lambda: layer(x, memory, cu.causal_mask(t)))
first = multiply_adds(lambda: layer(x[:, :1], memory, cache=cache))
second = multiply_adds(lambda: layer(x[:, 1:2], memory, cache=cache))
assert all_at_once == t * (6 * d**2 + 2 * d * m) + 2 * S * d**2
assert first == second + 2 * S * d**2 and second == 6 * d**2 + 2 * d * m

# %%
d, m, S = 512, 2048, 20  # as in the original base model
t = torch.arange(1, 1025).double()
token = 6 * d**2 + 2 * d * m
costs = {
    "recompute all": t * token + 2 * S * d**2 + 2 * t**2 * d + 2 * t * S * d,
    "cache inputs": token + 2 * (t - 1) * d**2 + 2 * S * d**2 + 2 * t * d + 2 * S * d,
    "cache keys and values": token + 2 * t * d + 2 * S * d,
}
assert costs["cache keys and values"][-1] < 1.4 * costs["cache keys and values"][0]
assert costs["cache inputs"][-1] > 100 * costs["cache keys and values"][-1]
cu.show_curves(
    t,
    costs,
    xlabel="token t",
    ylabel="multiply-adds per layer",
    logx=True,
    logy=True,
    width=6.4,
    height=3.0,
    alt="Cost of the t-th token on log axes. Recomputing grows more than in proportion to t; caching inputs grows in proportion "
    "from some tens of tokens on; caching keys and values is almost flat.",
)

# %% [markdown]
# Flat, up to the $2td$ of attention itself. Does the clock agree? A wider model with random weights, 512 tokens: the
# same logits, and the time of each step.

# %%
cu.seed_everything(0)
wide = cu.Transformer(
    50, 50, embed_dim=256, num_heads=4, ffn_dim=512, max_len=512, dropout=0.0
).eval()
source, source_lens = torch.randint(4, 50, (1, 20)), torch.tensor([20])
target = torch.randint(4, 50, (1, 512))
with torch.no_grad():
    state, cached, seconds = wide.start(source, source_lens), [], []
    for token in target[0]:
        began = time.perf_counter()
        cached.append(wide.step(token[None], state))
        seconds.append(time.perf_counter() - began)
    assert_close(
        torch.stack(cached, dim=1), wide(source, source_lens, target), rtol=1e-3, atol=1e-4
    )
held = state.caches[0].target
assert held.keys.numel() + held.values.numel() == 2 * 512 * 256  # per layer: 2 t d

# %%
recomputed = {}
with torch.no_grad():
    memory, memory_mask = wide.encode(source, source_lens)
    for t in (16, 64, 256, 512):
        runs = []
        for _ in range(3):
            began = time.perf_counter()
            wide.decode(target[:, :t], memory, memory_mask)
            runs.append(time.perf_counter() - began)
        recomputed[t] = min(runs)
step = {t: torch.tensor(seconds[max(0, t - 16) : t]).median().item() for t in recomputed}

# %% tags=["nbval-ignore-output"]
pd.DataFrame(
    {
        "recomputed, ms": {t: 1000 * s for t, s in recomputed.items()},
        "with cache, ms": {t: 1000 * s for t, s in step.items()},
        "ratio": {t: recomputed[t] / step[t] for t in step},
    }
).rename_axis("token t").round(1)

# %% [markdown]
# With the cache the last token costs about what the first did; without, it costs many times as much, and the sum over
# a sentence grows with its square at least. The price is memory: $2td$ numbers per layer and sentence. [Pretraining](13_gpt.ipynb) meets
# models in which that is the bottleneck.
#
# ## Against the recurrent translator
#
# [Bahdanau attention](06_bahdanau_attention.ipynb)'s model has a GRU encoder, a GRU decoder and additive attention
# ([Bahdanau et al., 2015](https://arxiv.org/abs/1409.0473)). **What did we gain by dropping
# recurrence?** We give it the same data, about as many parameters, a rate chosen on the same validation sentences, and
# compare after *one* pass. (That favors the recurrent model: its rate has come down to 0 by then, the Transformer's
# stands at its middle.)

# %%
cu.seed_everything(0)
recurrent = cu.AttentionTranslator(
    len(source_vocab), len(target_vocab), embed_dim=64, hidden_dim=64, dropout=0.0
)
recurrent_history = fit(recurrent, 0, lr=0.01, epochs=1)

# %%
length = 10  # tokens of source and of target
table = pd.DataFrame(
    {
        "recurrent, with attention": [weights_in(recurrent), 2 * length, 2 * length, "constant"],
        "Transformer, 2 + 2 layers": [weights_in(models[0]), 2 + 2, 2 + 2 * length, "grows"],
    },
    index=[
        "parameters",
        "steps that wait for each other, training",
        "the same, translating",
        "memory while translating",
    ],
)
assert 0.9 < table.iloc[0, 0] / table.iloc[0, 1] < 1.1
table.map(lambda entry: f"{entry:,}" if isinstance(entry, int) else entry)

# %%
after_one_pass = {
    "recurrent": recurrent_history.rows[0]["val_loss"],
    "Transformer": histories[0].rows[0]["val_loss"],
}
recurrent_bleu = score(recurrent, test)[0]
assert after_one_pass["Transformer"] < 0.5 * after_one_pass["recurrent"]
assert recurrent_bleu < 0.6

# %% tags=["nbval-ignore-output"]
pd.DataFrame(
    {
        "recurrent, with attention": [
            after_one_pass["recurrent"],
            recurrent_history.rows[0]["seconds"],
        ],
        "Transformer": [after_one_pass["Transformer"], histories[0].rows[0]["seconds"]],
    },
    index=["validation loss after one pass", "seconds per pass"],
).round(2)

# %% [markdown]
# The Transformer learns far more from the same pass. Be careful what to conclude. The recurrent model is not at its end: [Bahdanau attention](06_bahdanau_attention.ipynb) trains it longer, with its own recipe, and then it translates. What the table shows is
# how *fast* each learns, and why: 20 steps that wait for each other against 4, and any two words a single step apart.
# In translating, the advantage is gone: both write one token after the other, a layer is one more step (2 for the
# encoder, 2 for each token), and the recurrent state has constant size where the cache grows.
#
# ## What goes wrong
#
# **Each generated token at position 0.** In training, positions come from the length of the target. In decoding with a
# cache each call sees one token, and code that numbers "from 0 to the length" gives every one of them position 0. No
# error; teacher-forced loss is perfect. Test 1 from above finds it, BLEU shows it.


# %%
class AlwaysZero(nn.Module):
    """Positions that forget where a call begins."""

    def __init__(self, positions):
        super().__init__()
        self.positions = positions

    def forward(self, x, *, start=0):
        return self.positions(x)


broken = copy.deepcopy(models[0])
broken.positions = AlwaysZero(broken.positions)
batch = collate([(source_vocab.encode(p.source), target_vocab.encode(p.target)) for p in test[:4]])
inputs = batch.source, batch.source_lens, batch.target_in
with torch.no_grad():
    assert_close(broken(*inputs), models[0](*inputs))  # teacher-forced: nothing to see
assert score(models[0], test[:100])[0] > 0.75
assert score(broken, test[:100])[0] < 0.5

# %% [markdown]
# **The target is not shifted.** If the decoder reads the very token that it has to say, it need not translate. The loss
# goes to zero, for any source, with a model that copies: here the embedding matrix is its own readout. A training loss
# far below every validated number is a reason to look at `target_in`.

# %%
cu.seed_everything(0)
words = F.normalize(torch.randn(len(target_vocab), 64), dim=1)


def copying(tokens):
    """Logits of a model that repeats its input."""
    return 50 * words[tokens] @ words.T


unshifted = F.cross_entropy(copying(batch.target_out).flatten(0, 1), batch.target_out.flatten())
shifted = F.cross_entropy(copying(batch.target_in).flatten(0, 1), batch.target_out.flatten())
assert unshifted < 0.01 and shifted > 10

# %% [markdown]
# **A norm over the sentence in the decoder.** The mask is causal, the network position-wise, and still the future
# leaks: through mean and variance of the whole sentence.


# %%
class SentenceNorm(nn.Module):
    def forward(self, x):
        return normalize(x, (1, 2))


block, x = DecoderBlock(14, 2, 28), torch.randn(2, 8, 14)
memory = torch.randn(2, 6, 14)
later = x.clone()
later[:, 7] = torch.randn(14)
for norm, leaks in ((None, False), (SentenceNorm(), True)):
    if norm is not None:
        block.norms = nn.ModuleList(norm for _ in range(3))
    before, after = (block(each, memory, cu.causal_mask(8)) for each in (x, later))
    assert ((after - before)[:, :7].abs().max() > 1e-4) == leaks

# %% [markdown]
# **A mask of the other polarity.** Ours, and that of `F.scaled_dot_product_attention`, says who *may* be looked at.
# The masks of `nn.TransformerEncoderLayer` say who may *not*. Hand over the wrong one and the layer attends to padding
# only; where nothing is padded, every row is empty. The outputs have the right shape.

# %%
torchs = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
x = torch.randn(2, 6, 16)
other_padding = x.clone()
other_padding[0, 4:] += torch.randn(2, 16)
for mask_given, reads_padding in ((~real, False), (real, True)):
    outputs = [torchs(each, src_key_padding_mask=mask_given)[0, :4] for each in (x, other_padding)]
    assert torch.allclose(*outputs) != reads_padding

# %% [markdown]
# ## At full size
#
# The paper's base model has 6 + 6 layers of width 512 with 8 heads and `ffn_dim` 2048. Here it meets real sentences:
# all English–French pairs of at most ten tokens that Tatoeba's volunteers wrote, about 140,000, with 500 source sentences
# held out. On a GPU the cell downloads the pairs and trains; elsewhere it shows what was recorded, if anything was.


# %% tags=["gpu", "nbval-ignore-output"]
def base_transformer_on_real_pairs(*, quick=False):
    """BLEU of the base model on held-out sources, greedily and with a beam."""
    pairs = cu.load_grammar("fr")[::400] if quick else cu.load_tatoeba("fr", max_tokens=10)
    train, test = cu.split_by_source(pairs, [8 if quick else 500])
    vocabularies = [cu.Vocabulary(getattr(p, side) for p in train) for side in ("source", "target")]
    cu.seed_everything(0)
    size = (32, 2, 32, 1) if quick else (512, 8, 2048, 6)
    model = cu.Transformer(
        *map(len, vocabularies), embed_dim=size[0], num_heads=size[1], ffn_dim=size[2], num_layers=size[3],
        dropout=0.1, norm_first=False,
    )  # fmt: skip
    trainer = cu.Trainer(
        cu.translation_loss(label_smoothing=0.1), epochs=1 if quick else 20,
        lr=(512 * 4000) ** -0.5, schedule=cu.inverse_sqrt(4000),
    )  # fmt: skip
    trainer.fit(model, cu.PairLoader(train, *vocabularies, batch_size=128))
    references = {}
    for pair in test:
        references.setdefault(" ".join(pair.source), []).append(" ".join(pair.target))
    asked = [s for s in references if any(word in vocabularies[0] for word in s.split())]
    figures = {}
    for name, beam_size in (("greedy", 1), ("beam of 4", 4)):
        said = cu.translate(model, asked, *vocabularies, beam_size=beam_size, max_len=20)
        figures[f"BLEU, {name}"] = cu.bleu(said, [references[s] for s in asked])
    return figures


cu.stored_run("transformer", base_transformer_on_real_pairs)

# %% [markdown]
# ## Take-aways
#
# - A block is attention, which mixes tokens, and a network that treats every token alike; around each stands a shortcut with a layer norm. Of the norms, only the one per token respects a causal mask.
# - A shortcut keeps the input readable through a deep stack. A norm alone keeps gradients alive, but not what they are about.
# - The decoder's mask makes training parallel: teacher-forced logits equal step-by-step logits, and no later token changes an earlier output, in either mode. Test both on every decoder.
# - One BLEU is three: on seen sentences, on new ones of the same kind, on new ones of another kind. The first says nothing.
# - Single heads differ from seed to seed. What held in all three of ours: the average cross-attention aligns words.
# - A cache of keys and values makes a step's cost nearly flat. A cache of inputs does not.
#
# ## Quiz

# %%
cu.quiz("transformer")

# %% [markdown]
# ## References
#
# - Ba, J. L., Kiros, J. R. and Hinton, G. E. (2016). [Layer normalization](https://arxiv.org/abs/1607.06450).
# - Bahdanau, D., Cho, K. and Bengio, Y. (2015). [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473). ICLR.
# - He, K., Zhang, X., Ren, S. and Sun, J. (2016). [Deep residual learning for image recognition](https://arxiv.org/abs/1512.03385). CVPR.
# - Ioffe, S. and Szegedy, C. (2015). [Batch normalization: Accelerating deep network training by reducing internal covariate shift](https://arxiv.org/abs/1502.03167). ICML.
# - Kak, A. (2025). [Transformers: Learning with Purely Attention Based Networks](https://engineering.purdue.edu/DeepLearn/). Lecture slides, Purdue University: the network over the flattened sentence.
# - Vaswani, A., Shazeer, N., Parmar, N., Uszkoreit, J., Jones, L., Gomez, A. N., Kaiser, Ł. and Polosukhin, I. (2017). [Attention is all you need](https://arxiv.org/abs/1706.03762). NeurIPS. Sections 3.1 to 3.4; table 3.
# - Wu, Y. et al. (2016). [Google's neural machine translation system: Bridging the gap between human and machine translation](https://arxiv.org/abs/1609.08144). Section 7: length penalty.
# - Xiong, R. et al. (2020). [On layer normalization in the Transformer architecture](https://arxiv.org/abs/2002.04745). ICML.
# - Zhang, A., Lipton, Z. C., Li, M. and Smola, A. J. (2023). [Dive into deep learning](https://d2l.ai). Cambridge University Press. [Attention between pixels](16_attention_between_pixels.ipynb): the decoder that caches inputs.
