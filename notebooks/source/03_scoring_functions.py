# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Scoring functions
#
# A query meets many keys. **Which number should say how well they match, and which keys may answer at all?**
#
# [Kernel regression](02_kernel_regression.ipynb) measured distances. Transformers take dot products, divide them by $\sqrt d$ and hide some of them behind
# a mask. None of these steps is arbitrary, and each has a way to go wrong without a word of warning. In this chapter
# you will
#
# - **derive** the dot product from the Gaussian kernel, and say which terms were dropped and when that is allowed;
# - **measure** how dot products grow with the dimension $d$, and what $1/\sqrt d$ does to weights and gradients;
# - **build** masks and a masked softmax that survives huge scores, half precision and rows with nothing to attend to;
# - **write** scaled dot-product and additive attention for batches, and prove them equal to PyTorch's operator;
# - **compare** what the two cost in memory and time.
#
# About 75 minutes. You need [Queries, keys and values](01_queries_keys_values.ipynb) (queries, keys, values, softmax) and from [Kernel regression](02_kernel_regression.ipynb) the Gaussian kernel.

# %%
import itertools
import math
import time

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## From distances to dot products
#
# Attention needs a **score** $a(\mathbf q, \mathbf k)$ for each pair, and the softmax turns the scores of one query
# into weights:
#
# $$\alpha(\mathbf q, \mathbf k_i) = \frac{\exp a(\mathbf q, \mathbf k_i)}{\sum_j \exp a(\mathbf q, \mathbf k_j)}.$$
#
# The Gaussian kernel of [Kernel regression](02_kernel_regression.ipynb), with width 1, is the score $-\tfrac12\lVert \mathbf q - \mathbf k\rVert^2$.
# Multiply it out:
#
# $$-\tfrac12\lVert \mathbf q - \mathbf k_i\rVert^2 \;=\; \underbrace{\mathbf q^\top \mathbf k_i}_{\text{match}} \;-\; \underbrace{\tfrac12\lVert \mathbf k_i\rVert^2}_{\text{length of the key}} \;-\; \underbrace{\tfrac12\lVert \mathbf q\rVert^2}_{\text{length of the query}} .$$
#
# Take a pencil: $\mathbf q = (1, 2)$ and the keys $(1, 1)$, $(2, 2)$, $(0, 1)$. For the first key the distance is 1,
# so the score is $-\tfrac12$; on the right stand $3 - 1 - 2.5 = -\tfrac12$.

# %%
q = torch.tensor([1.0, 2.0])
k = torch.tensor([[1.0, 1.0], [2.0, 2.0], [0.0, 1.0]])  # (keys, 2)

match = k @ q
key_term = k.square().sum(dim=1) / 2
query_term = q.square().sum() / 2
distance_score = -(q - k).square().sum(dim=1) / 2
torch.testing.assert_close(distance_score, match - key_term - query_term)

pd.DataFrame(
    {"q·k": match, "½‖k‖²": key_term, "½‖q‖²": query_term.item(), "−½‖q−k‖²": distance_score},
    index=["(1, 1)", "(2, 2)", "(0, 1)"],
)

# %% [markdown]
# Which of the three terms does the softmax notice?
#
# **The query's length: never.** It is the same number for every key, and a softmax does not change when all scores
# shift together ([Queries, keys and values](01_queries_keys_values.ipynb)).
#
# **The key's length: yes.** The first two keys are equally near, yet their dot products are 3 and 6.

# %%
gaussian = distance_score.softmax(dim=0)
torch.testing.assert_close((match - key_term).softmax(dim=0), gaussian)  # the query's term is gone

dot = match.softmax(dim=0)
assert abs(gaussian[0] - gaussian[1]) < 1e-6  # equally near, equal weights
assert dot[1] > 0.9  # the longer key takes nearly everything
pd.DataFrame(
    {"by distance": gaussian, "by dot product": dot}, index=["(1, 1)", "(2, 2)", "(0, 1)"]
).round(3)

# %% [markdown]
# So a dot product is *not* a distance in disguise. **Which key wins a query, under each of the two rules?** We color
# each point of the plane, taken as a query, by its best key.


# %% tags=["hide-input"]
def winners(keys, score):
    """Index of the best key for each query on a grid over [-3, 3]²."""
    axis = torch.linspace(-3, 3, 241)
    grid = torch.cartesian_prod(axis, axis)[:, [1, 0]]  # rows from bottom to top
    return score(grid, keys).argmax(dim=1).view(241, 241)


def by_distance(queries, keys):
    return -torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist").square() / 2


def by_dot(queries, keys):
    return queries @ keys.T


plane_keys = torch.tensor([[2.0, 1.0], [-1.5, 1.5], [-1.0, -2.0], [0.2, 0.45], [1.7, -1.6]])
round_keys = 2 * plane_keys / plane_keys.norm(dim=1, keepdim=True)
maps = [winners(plane_keys, by_distance), winners(plane_keys, by_dot), winners(round_keys, by_dot)]

fig, axes = cu.subplots(
    1,
    3,
    width=8.4,
    height=3.2,
    sharey=True,
    alt="Three planes colored by the winning key. By distance each of five keys has a cell around "
    "it. By dot product the four outer keys have wedges and key D inside has none. With keys of"
    " one length there are five wedges.",
)
colors = [cu.COLORS[name] for name in ("sky", "orange", "green", "yellow", "purple")]
titles = ["−½‖q − k‖²: cells", "q · k: wedges, D never wins", "q · k, keys of one length"]
for ax, won, shown, title in zip(
    axes, maps, [plane_keys, plane_keys, round_keys], titles, strict=True
):
    ax.contourf(
        won,
        levels=[-0.5, 0.5, 1.5, 2.5, 3.5, 4.5],
        colors=colors,
        alpha=0.45,
        extent=(-3, 3, -3, 3),
    )
    for key in range(5):
        ax.contour(won == key, levels=[0.5], colors="black", linewidths=0.8, extent=(-3, 3, -3, 3))
    ax.plot(*shown.T, "o", color="black", markersize=4)
    for name, (x, y) in zip("ABCDE", shown.tolist(), strict=True):
        ax.text(x + 0.12, y + 0.12, name, fontsize=11, weight="bold")
    ax.set_title(title, fontsize=10)
    ax.set(xlabel="first coordinate", aspect="equal", xticks=range(-3, 4))
axes[0].set_ylabel("second coordinate")
fig

# %% [markdown]
# On the left every key is best for the queries near it. In the middle only the *direction* of a query matters, so the
# regions are wedges, and a long key is heard from afar: D, which lies inside the polygon of the others, wins no query
# at all. On the right we gave all keys the same length; now each has its wedge, and both rules agree.

# %%
assert maps[0].unique().tolist() == [0, 1, 2, 3, 4]  # each key wins somewhere
assert maps[1].unique().tolist() == [0, 1, 2, 4]  # D, number 3, wins nowhere
agree = (winners(round_keys, by_distance) == maps[2]).float().mean()
assert agree > 0.999  # up to rounding on the borders

# %% [markdown]
# ### What layer normalization buys
#
# If all keys have the same length, $\tfrac12\lVert\mathbf k_i\rVert^2$ is one more constant, and the dot product
# gives *exactly* the Gaussian's weights. Layer normalization ([Ba et al., 2016](https://arxiv.org/abs/1607.06450))
# does this: it gives a vector mean 0 and variance 1, so that $\lVert\mathbf k\rVert^2 = \sum_j k_j^2 = d$. With width
# $w$ the Gaussian score becomes $\mathbf q^\top\mathbf k / w^2$ plus constants. Hence dividing by $\sqrt d$, as we
# soon shall, is a Gaussian of width $w = d^{1/4}$.

# %%
d = 32
queries = torch.randn(8, d)
features = 5 * torch.randn(64, d) + 2
keys = F.layer_norm(features, (d,))
torch.testing.assert_close(
    keys.square().sum(dim=1), torch.full((64,), float(d)), rtol=1e-3, atol=0.0
)

by_product = (queries @ keys.T / math.sqrt(d)).softmax(dim=-1)
by_kernel = cu.kernel_weights(queries, keys, kernel="gaussian", width=d**0.25)
torch.testing.assert_close(by_product, by_kernel, rtol=1e-3, atol=1e-5)

# %% [markdown]
# A fair warning, which many texts leave out: in a transformer the keys are not the normalized vectors but
# $\mathbf W_k$ times them, and layer normalization often carries a learned gain. Then lengths differ again. **By how
# much, for a random $\mathbf W_k$?**

# %%
projected = keys @ torch.randn(d, d) / math.sqrt(d)
lengths = projected.norm(dim=1)
spread = (lengths.std() / lengths.mean()).item()
assert 0.05 < spread < 0.3
print(f"lengths of projected keys: spread {spread:.0%} of their mean")

# %% [markdown]
# The lengths are well bounded, not constant. A transformer therefore *can* make a key loud by making it long. Some
# models normalize queries and keys once more, after the projection
# ([Henry et al., 2020](https://arxiv.org/abs/2010.04245)); one of 22 billion parameters did so because its scores
# grew until training diverged ([Dehghani et al., 2023](https://arxiv.org/abs/2302.05442)).
#
# ### Exercise 1 · A Gaussian without differences
# *10 minutes · ★★*
#
# Computing $\mathbf q - \mathbf k$ for all pairs needs an array of (queries, keys, $d$). Use the expansion above to
# get the weights of the Gaussian kernel of width 1 from one matrix product and a correction. For queries (queries,
# $d$) and keys (keys, $d$), return weights (queries, keys).


# %% tags=["exercise"]
def gaussian_weights(queries, keys):
    """softmax of −½‖q − k‖² over the keys, without forming q − k."""
    ...


# %% tags=["check"]
cu.checks.gaussian_by_product(gaussian_weights)


# %% tags=["solution"] jupyter={"source_hidden": true}
def gaussian_weights(queries, keys):
    """softmax of −½‖q − k‖² over the keys, without forming q − k."""
    half_norms = keys.square().sum(dim=-1) / 2  # (keys,), the same for each query
    return (queries @ keys.T - half_norms).softmax(dim=-1)


cu.checks.gaussian_by_product(gaussian_weights)

# %% [markdown]
# ## Why divide by √d?
#
# Let all coordinates of $\mathbf q$ and $\mathbf k$ be independent, with mean 0 and variance 1. Each product
# $q_j k_j$ has mean 0 and variance $\mathrm E[q_j^2]\,\mathrm E[k_j^2] = 1$. The dot product adds $d$ of them, and
# variances of independent terms add up:
#
# $$\mathrm E[\mathbf q^\top\mathbf k] = 0, \qquad \mathrm{Var}[\mathbf q^\top\mathbf k] = d .$$
#
# By hand: let every coordinate be $+1$ or $-1$. For $d = 2$ the dot product is $-2$, $0$, $0$ or $2$, equally often;
# the mean square is $(4 + 0 + 0 + 4)/4 = 2$. A computer can try all pairs for $d$ up to 4:

# %%
for d in range(1, 5):
    signs = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=d)))  # all 2^d vectors
    products = signs @ signs.T  # all pairs
    assert products.mean() == 0
    assert products.square().mean() == d

# %% [markdown]
# **Does it hold for normal vectors, and up to $d = 1024$?** We draw 4,000 pairs for each dimension.

# %%
dims = [2**power for power in range(11)]  # 1, 2, 4, …, 1024
products = {d: (torch.randn(4000, d) * torch.randn(4000, d)).sum(dim=1) for d in dims}
variance = torch.tensor([products[d].var() for d in dims])
scaled_variance = torch.tensor([(products[d] / math.sqrt(d)).var() for d in dims])


def slope(x, y):
    """Slope of log y against log x: the exponent of a power law."""
    x, y = torch.as_tensor(x).double().log(), torch.as_tensor(y).double().log()
    return ((x - x.mean()) * (y - y.mean())).sum().item() / (x - x.mean()).square().sum().item()


assert abs(slope(dims, variance) - 1) < 0.05  # variance ∝ d
assert (scaled_variance - 1).abs().max() < 0.25

# %% tags=["hide-input"]
fig, (left, right) = cu.subplots(
    1,
    2,
    width=8.4,
    height=3.0,
    alt="Left: histograms of dot products, narrow for d = 4, wide for d = 64, flat for d = 1024. "
    "Right, log axes: the variance follows the line d, and after division by the square root of"
    " d it stays at 1.",
)
bins = torch.linspace(-60, 60, 81).numpy()
for d, dash in zip([4, 64, 1024], ["-", "--", ":"], strict=True):
    left.hist(
        products[d].numpy(),
        bins=bins,
        density=True,
        histtype="step",
        linestyle=dash,
        linewidth=1.6,
        label=f"d = {d}",
    )
left.set(xlabel="q · k", ylabel="density")
left.legend(frameon=False)
right.loglog(dims, dims, "-", color="0.75", label="d")
right.loglog(dims, variance, "o", label="variance of q · k")
right.loglog(dims, scaled_variance, "s--", label="variance of q · k / √d")
right.set(xlabel="dimension d", ylabel="variance")
right.legend(frameon=False)
fig

# %% [markdown]
# Left: with $d = 1024$ a typical score is $\pm 32$. Right: the variance is $d$ over three powers of ten, and
# $1/\sqrt d$ keeps it at 1. This is **scaled** dot-product attention
# ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.1):
#
# $$a(\mathbf q, \mathbf k) = \frac{\mathbf q^\top \mathbf k}{\sqrt d}.$$
#
# In the words of [Queries, keys and values](01_queries_keys_values.ipynb): the softmax has the temperature $\sqrt d$.
#
# ### What large scores do to the weights
#
# How spread out are weights $\alpha_1, \dots, \alpha_m$? The **entropy** $H = -\sum_i \alpha_i \log_2 \alpha_i$ says
# it in bits: 0 if one key has all the weight, and $\log_2 m$ if all $m$ keys share equally. By hand:
# $(\tfrac12, \tfrac12)$ has 1 bit, $(\tfrac12, \tfrac14, \tfrac14)$ has $\tfrac12 + \tfrac24 + \tfrac24 = 1.5$ bits.


# %%
def entropy(weights):
    """Bits; 0 · log 0 counts as 0."""
    return torch.special.entr(weights).sum(dim=-1) / math.log(2)


for weights, bits in [([0.5, 0.5], 1.0), ([0.5, 0.25, 0.25], 1.5), ([1.0, 0.0], 0.0)]:
    torch.testing.assert_close(entropy(torch.tensor(weights)), torch.tensor(bits))

# %% [markdown]
# And the gradient? A weight answers to scores by
# $\partial\alpha_i / \partial a_j = \alpha_i(\delta_{ij} - \alpha_j)$. With two keys that is $\alpha(1 - \alpha)$: at
# most $\tfrac14$, for equal weights. If the scores differ by 8, as they easily do for $d = 64$, the larger weight is
# 0.99966, and $\alpha(1-\alpha) \approx 0.0003$: almost nothing is left to learn from.


# %%
def softmax_jacobian(weights):
    """∂α_i / ∂a_j = α_i (δ_ij − α_j): (…, keys, keys)."""
    return torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)


two = torch.tensor([8.0, 0.0], requires_grad=True)
torch.testing.assert_close(
    softmax_jacobian(two.detach().softmax(0)),
    torch.autograd.functional.jacobian(lambda a: a.softmax(0), two),
)
assert 3.0e-4 < softmax_jacobian(two.softmax(0))[0, 0] < 3.6e-4

# %% [markdown]
# **How do entropy and gradient change with $d$, with and without the scale?** 300 random queries, each with 16 random
# keys. As gradient we take the size of $\partial\boldsymbol\alpha/\partial\mathbf q$, which is what reaches the
# query.

# %%
records = []
for d, scaled in itertools.product(dims, [False, True]):
    q, k = torch.randn(300, 1, d), torch.randn(300, 16, d)
    scale = 1 / math.sqrt(d) if scaled else 1.0
    weights = (scale * q @ k.transpose(1, 2)).softmax(dim=-1).squeeze(1)  # (300, 16)
    gradient = (scale * softmax_jacobian(weights) @ k).flatten(1).norm(dim=1)  # chain rule
    low, middle, high = gradient.quantile(torch.tensor([0.1, 0.5, 0.9])).tolist()
    records.append((d, scaled, entropy(weights).mean().item(), low, middle, high))
measured = pd.DataFrame(
    records, columns=["d", "scaled", "bits", "low", "median", "high"]
).set_index(["scaled", "d"])

assert measured.loc[True, "bits"].between(3.2, 3.7).all()  # scaled: flat in d
assert measured.loc[(False, 1024), "bits"] < 0.4  # unscaled: nearly one-hot
assert measured.loc[(False, 1024), "median"] < 0.02 < 0.2 < measured.loc[(True, 1024), "median"]
assert measured.loc[(False, 1024), "high"] > 1  # a few queries get a lot
assert measured.loc[(False, 16), "median"] > 2 * measured.loc[(True, 16), "median"]

# %% tags=["hide-input"]
fig, (left, right) = cu.subplots(
    1,
    2,
    width=8.4,
    height=3.0,
    alt="Left: the entropy of scaled weights stays near 3.4 bits for all d; unscaled it falls to "
    "nearly 0. Right: the scaled gradient is the same at all d; unscaled its median collapses "
    "while its upper decile grows.",
)
for scaled, color, marker, label in [
    (True, "blue", "s--", "q · k / √d"),
    (False, "vermilion", "o-", "q · k"),
]:
    part = measured.loc[scaled]
    left.semilogx(part.index, part.bits, marker, color=cu.COLORS[color], label=label, markersize=4)
    right.loglog(
        part.index,
        part["median"],
        marker,
        color=cu.COLORS[color],
        label=f"{label}: median",
        markersize=4,
    )
    right.fill_between(
        part.index, part.low, part.high, color=cu.COLORS[color], alpha=0.2, label="10 % to 90 %"
    )
left.axhline(4, color="0.6", linewidth=1)
left.text(1, 3.82, "equal weights", color="0.35", fontsize=9, va="top")
left.set(xlabel="dimension d", ylabel="mean entropy (bits)", ylim=(0, 4.2))
right.set(xlabel="dimension d", ylabel="size of ∂α/∂q", ylim=(1e-6, 20))
left.legend(frameon=False)
right.legend(loc="lower left", fontsize=8, frameon=False)
fig

# %% [markdown]
# Left: unscaled weights turn into a hard choice as $d$ grows, before anything is learned; scaled, the dimension no
# longer matters. Right: for $d$ near 1,000 and no scale, the median query gets almost no gradient, while a few
# queries, those between two nearly equal keys, get a large one; around $d = 16$ most of them get more than with the
# scale. So it is not that gradients "vanish" on average: their size depends on $d$, and they are *badly spread*.
#
# Do not read more into $\sqrt d$ than there is. It is right for **independent** vectors, as they are at the start of
# training. When queries and keys become aligned, each $q_j k_j$ has mean $\rho > 0$ and the score grows with $d$,
# scaled or not: on average $\rho\, d/\sqrt d = \rho\sqrt d$. (Work on transferring learning rates between widths
# therefore prefers $1/d$: [Yang et al., 2022](https://arxiv.org/abs/2203.03466).)

# %%
rho = 0.5
for d in [16, 256, 1024]:
    k = torch.randn(4000, d)
    q = rho * k + math.sqrt(1 - rho**2) * torch.randn(4000, d)  # correlation ρ, variance 1
    mean_score = ((q * k).sum(dim=1) / math.sqrt(d)).mean()
    assert abs(mean_score - rho * math.sqrt(d)) < 0.15

# %% [markdown]
# ### Scaling after the softmax is something else
#
# Some slides and at least one older implementation write
# $\dfrac{\mathrm{softmax}(\mathbf Q\mathbf K^\top)}{\sqrt d}\mathbf V$. It looks like the same formula. By hand, with
# $d = 64$ and the scores 8 and 0: before the softmax we get softmax$(1, 0) = (0.73, 0.27)$; after it,
# $(0.9997, 0.0003)/8 = (0.125, 0.00004)$. **What does it look like for random vectors?**

# %%
q, k = torch.randn(6, 64), torch.randn(6, 64)
before = (q @ k.T / math.sqrt(64)).softmax(dim=-1)
unscaled = (q @ k.T).softmax(dim=-1)
after = unscaled / math.sqrt(64)
cu.show_heatmaps(
    torch.stack([before, unscaled, after]),
    titles=["scaled before: right", "not scaled", "scaled after: wrong"],
    alt="Three weight maps of six queries and keys. Scaled before the softmax the weights are "
    "spread; unscaled nearly one-hot; scaled after, the same one-hot pattern, eight times "
    "paler.",
)

# %%
assert (before.sum(dim=-1) - 1).abs().max() < 1e-5
torch.testing.assert_close(after.sum(dim=-1), torch.full((6,), 1 / 8))  # weights no longer sum to 1
torch.testing.assert_close(after * 8, unscaled)  # as hard a choice as without any scale
assert entropy(before).mean() > 1.5 > 0.8 > entropy(after * 8).mean()

# %% [markdown]
# The output is eight times too small, which a later normalization can undo. The hard choice, and with it the bad
# gradient, no later layer undoes.
#
# ## Which keys may answer: masks
#
# Three sentences of 4, 2 and 1 tokens share a batch, so the shorter ones are padded. Padding has no meaning and
# should get no weight. **How do we say so?** With a *mask*: a boolean tensor, **True = may attend**, which broadcasts
# to (batch, heads, queries, keys).
#
# A length becomes a mask by one comparison. Positions $(0, 1, 2, 3)$ in a row meet lengths in a column:
#
# $$\begin{pmatrix}0&1&2&3\end{pmatrix} < \begin{pmatrix}4\\2\\1\end{pmatrix} = \begin{pmatrix}T&T&T&T\\T&T&F&F\\T&F&F&F\end{pmatrix}$$

# %%
valid_lens = torch.tensor([4, 2, 1])
mask = torch.arange(4) < valid_lens[:, None]  # (1, keys) < (batch, 1) → (batch, keys)
assert mask.int().tolist() == [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]

padding = cu.padding_mask(valid_lens, 4)  # the same, with axes for heads and queries
assert padding.shape == (3, 1, 1, 4)
assert torch.equal(padding[:, 0, 0], mask)

# %% [markdown]
# Sometimes a whole sequence is known (an encoder reads), sometimes only its beginning (a decoder writes: position $i$
# may look at positions $0 \dots i$, a **causal** mask). Two masks are combined by "and". **Which pairs remain?**

# %%
causal = cu.causal_mask(4)  # (queries, keys)
assert causal.int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
both = padding & causal  # (3, 1, 1, 4) & (4, 4) → (3, 1, 4, 4)
assert both.shape == (3, 1, 4, 4)
assert both.sum(dim=(1, 2, 3)).tolist() == [10, 7, 4]

# %% tags=["hide-input"]
sentences = [["the", "cat", "sat", "down"], ["birds", "sing", "–", "–"], ["rain", "–", "–", "–"]]
fig, axes = cu.subplots(
    2,
    3,
    width=7.2,
    height=4.2,
    alt="Masks of three sentences with 4, 2 and 1 tokens. Above, padding masks: full columns for "
    "real tokens. Below, padding and causal: only the lower left triangle of those columns "
    "remains.",
)
for column, words in enumerate(sentences):
    for row, shown in enumerate([padding.expand(3, 1, 4, 4), both]):
        cu.heatmap(
            axes[row, column], shown[column, 0].float(), queries=words, keys=words,
            xlabel="Keys" if row else None, ylabel=None if column else "Queries",
            title=["padding", "padding and causal"][row],
        )  # fmt: skip
fig

# %% [markdown]
# Dark pairs are permitted. Above, a key is visible to all queries or to none. Padded *queries* keep their rows: they
# compute something that nobody reads, and the loss leaves it out ([Bahdanau attention](05_bahdanau_attention.ipynb)). Below, only what is real *and* not in
# the future remains.
#
# ### One length per sequence, or one per query
#
# Lengths come in two shapes, and many texts hand them to the attention itself as `valid_lens`; we turn them into a
# mask first. `(batch,)` gives each sequence a length. `(batch, queries)` gives each *query* its own; a causal mask is
# the special case $1, 2, \dots, n$. (Older code flattens the scores to (batch · queries, keys) and repeats each
# sequence's length once per query. Broadcasting does the same and copies nothing.)

# %%
per_query = torch.tensor([[1, 2, 4], [3, 3, 0]])  # (batch, queries)
mask_2d = cu.padding_mask(per_query, 4)
assert mask_2d.shape == (2, 1, 3, 4)
assert torch.equal(mask_2d.sum(dim=-1)[:, 0], per_query)

steps = torch.arange(1, 5).expand(2, 4)  # every query sees itself and what came before
assert torch.equal(cu.padding_mask(steps, 4), causal.expand(2, 1, 4, 4))

repeated = torch.tensor([4, 2])[:, None].expand(2, 3)  # (batch,) repeated for each query
assert torch.equal(
    cu.padding_mask(repeated, 4), cu.padding_mask(torch.tensor([4, 2]), 4).expand(2, 1, 3, 4)
)

# %% [markdown]
# **What goes wrong here: the axis nobody named.** A mask (batch, keys) without an axis for the queries meets scores
# (batch, queries, keys), and broadcasting aligns from the right: its rows are taken for *queries*. Where batch and
# queries differ in number, PyTorch usually stops you. In a batch as large as the sequence is long it does not.

# %%
scores = torch.zeros(2, 2, 3)  # (batch, queries, keys), batch = queries = 2
lens = torch.tensor([1, 3])
careless = torch.arange(3) < lens[:, None]  # (batch, keys): no axis for the queries
leaked = scores.masked_fill(~careless, -math.inf).softmax(dim=-1)
assert (leaked[0, 1] > 0).all()  # sequence 0 has one token, yet its second query sees three
assert leaked[1, 0].tolist() == [1, 0, 0]  # sequence 1 has three, yet its first query sees one

right = cu.masked_softmax(scores, cu.padding_mask(lens, 3))
assert right[0].tolist() == [[1, 0, 0], [1, 0, 0]]

# %% [markdown]
# ### Exercise 2 · The mask of a decoder
# *8 minutes · ★*
#
# Given `valid_lens` (batch,) and the padded length, return the boolean mask (batch, 1, length, length) that permits
# what is both real and not in the future. Write it with comparisons of `torch.arange`; of our two functions use at
# most one.


# %% tags=["exercise"]
def decoder_mask(valid_lens, length):
    """True where query i may attend to key j: j ≤ i and j < its sequence's length."""
    ...


# %% tags=["check"]
cu.checks.decoder_mask(decoder_mask)


# %% tags=["solution"] jupyter={"source_hidden": true}
def decoder_mask(valid_lens, length):
    """True where query i may attend to key j: j ≤ i and j < its sequence's length."""
    position = torch.arange(length)
    valid = position < valid_lens[:, None, None, None]  # (batch, 1, 1, keys)
    past = position <= position[:, None]  # (queries, keys)
    return valid & past


cu.checks.decoder_mask(decoder_mask)

# %% [markdown]
# ## Masked softmax, step by step
#
# The weights we want are a softmax over the permitted keys alone, with $m_i = 1$ where key $i$ may answer and 0
# elsewhere:
#
# $$\alpha_i = \frac{m_i\, e^{a_i}}{\sum_j m_j\, e^{a_j}}.$$
#
# One example for all attempts: scores $\ln 1, \ln 2, \ln 3, \ln 4$, whose exponentials are $1, 2, 3, 4$. Only the
# first two keys are permitted, so the weights have to be $\tfrac13, \tfrac23, 0, 0$. We grow the function version by
# version; each fails at something.

# %%
scores = torch.tensor([[1.0, 2.0, 3.0, 4.0]]).log()
mask = torch.tensor([[True, True, False, False]])
wanted = torch.tensor([[1 / 3, 2 / 3, 0.0, 0.0]])


def zero_the_scores(scores, mask):  # version 1
    return (scores * mask).softmax(dim=-1)


torch.testing.assert_close(zero_the_scores(scores, mask), torch.tensor([[1.0, 2.0, 1.0, 1.0]]) / 5)

# %% [markdown]
# **Version 1** forgets that $e^0 = 1$: a score of 0 is a score like any other. Zeroing the *embeddings* of forbidden
# tokens, as some older code does, comes to the same thing: a key of zeros has the dot product 0 with every query. If
# the real keys match badly, with negative scores, the forbidden ones even win.

# %%
query = torch.tensor([1.0, 1.0])
embeddings = torch.tensor(
    [[-1.0, 0.0], [-2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
)  # the last two: zeroed padding
lost = (embeddings @ query).softmax(dim=0)[2:].sum()
assert lost > 0.79  # four fifths of the weight go to padding

# %% [markdown]
# **Version 2** masks after the softmax. Forbidden keys get nothing, but they have taken their share before: the row
# sums to 0.3.


# %%
def multiply_afterwards(scores, mask):  # version 2
    return scores.softmax(dim=-1) * mask


torch.testing.assert_close(multiply_afterwards(scores, mask), torch.tensor([[0.1, 0.2, 0.0, 0.0]]))

# %% [markdown]
# **Version 3** is what most courses teach: replace forbidden scores by a large negative number, such as $-10^6$,
# whose exponential is 0.


# %%
def minus_a_million(scores, mask):  # version 3
    return scores.masked_fill(~mask, -1e6).softmax(dim=-1)


torch.testing.assert_close(minus_a_million(scores, mask), wanted)

# %% [markdown]
# It passes, and it passes nearly everywhere. Three cells show where it does not. First: a model diverges, or someone
# multiplies where they should add, and the true scores are $-2\cdot 10^6$. Now $-10^6$ is the *largest* score, and
# the mask is inverted:

# %%
far_below = torch.full((1, 4), -2e6)
assert minus_a_million(far_below, mask).tolist() == [
    [0.0, 0.0, 0.5, 0.5]
]  # all weight on forbidden keys

# %% [markdown]
# Second: half precision, in which large models compute. The largest float16 is 65,504. PyTorch refuses $-10^6$ in
# `masked_fill`; an assignment with brackets turns it silently into $-\infty$.

# %%
half = scores.half()
try:
    minus_a_million(half, mask)
    raise AssertionError("expected an error")
except RuntimeError as error:
    assert "overflow" in str(error)
half[~mask] = -1e6
assert half[0, 2] == -math.inf

# %% [markdown]
# Third: a row with no permitted key. It occurs more often than one would think: an empty sentence, a retrieval with
# no hit, or left padding under a causal mask, where the first positions see nothing but padding. With $-10^6$
# everywhere the softmax is uniform: the output is the mean of *exactly the values that were forbidden*.

# %%
left_padded = causal & torch.tensor([False, False, True, True])  # two padding tokens in front
assert left_padded.any(dim=-1).tolist() == [False, False, True, True]  # two empty rows
assert minus_a_million(torch.randn(4, 4), left_padded)[0].tolist() == [0.25] * 4

# %% [markdown]
# **Version 4** takes the one number that is below all others in every precision, $-\infty$. Scores of any size are
# now fine, and float16 too. But an empty row is $e^{-\infty}/\sum e^{-\infty} = 0/0$.


# %%
def minus_infinity(scores, mask):  # version 4
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)


torch.testing.assert_close(minus_infinity(scores, mask), wanted)
assert minus_infinity(far_below, mask).tolist() == [[0.5, 0.5, 0.0, 0.0]]
assert minus_infinity(torch.randn(4, 4), left_padded)[0].isnan().all()

# %% [markdown]
# One NaN in one row of one batch, and after the next optimizer step the parameters are NaN. The quick cure is
# `nan_to_num` behind the softmax. **Version 5** does this, with the mask added to the scores, as many models do. The
# output is right now, and the *gradient* is still NaN: the backward pass goes through the softmax that saw nothing
# but $-\infty$.


# %%
def add_and_clean(scores, mask):  # version 5
    bias = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -math.inf)
    return (scores + bias).softmax(dim=-1).nan_to_num()


a = torch.randn(4, 4, requires_grad=True)
weights = add_and_clean(a, left_padded)
assert weights[0].tolist() == [0.0] * 4  # forward: looks cured
weights[:, 0].sum().backward()
assert a.grad[0].isnan().all()  # backward: is not

# %% [markdown]
# (With `masked_fill` in place of the sum the gradient happens to be cut off, and NaN with it. But `nan_to_num` also
# hides every NaN that a broken model makes, so you learn of it a week later.)
#
# **Version 6**, ours, never asks the softmax such a question. It fills an empty row with zeros *before* the softmax
# and clears forbidden weights *after* it. Nothing attended, nothing returned: the output of an empty row is 0, which
# is also what PyTorch's operator gives.


# %%
def masked_softmax(scores, mask):  # version 6
    """Softmax over the permitted keys; zeros where there are none."""
    empty = ~mask.any(dim=-1, keepdim=True)
    filled = scores.masked_fill(~mask, -math.inf).masked_fill(empty, 0.0)
    return filled.softmax(dim=-1).masked_fill(~mask, 0.0)


a = torch.randn(4, 4, requires_grad=True)
weights = masked_softmax(a, left_padded)
weights[:, 2].sum().backward()
assert weights[0].tolist() == [0.0] * 4
assert a.grad.isfinite().all()
torch.testing.assert_close(weights, cu.masked_softmax(a, left_padded))

# %% [markdown]
# One more habit, from the oldest of these implementations: `X[~mask] = value` writes into the tensor that was passed
# in. The caller's scores are gone, and with them the residual path, the picture, or the next head that shares them.


# %%
def write_into_it(scores, mask):  # version 3, as often written
    scores[~mask] = -1e6
    return scores.softmax(dim=-1)


mine = scores.clone()
write_into_it(mine, mask)
assert mine[0, 3] == -1e6  # this was ln 4

# %% [markdown]
# **Which version passes which test?** One table for all of them.


# %% tags=["hide-input"]
def exam(softmax):
    """✓ or ✗ for each test; an exception counts as ✗."""

    def fresh(*shape):
        return torch.ones(*shape).cumsum(-1).log().requires_grad_()

    def empty_row(look):
        a = fresh(4, 4)
        weights = softmax(a * 1.0, left_padded)
        weights[:, 2].sum().backward()
        return look(weights, a.grad)

    def keeps_input():
        a = fresh(1, 4).detach()
        softmax(a, mask)
        return torch.equal(a, fresh(1, 4))

    tests = {
        "scores ln 1 … ln 4": lambda: torch.allclose(softmax(scores.clone(), mask), wanted),
        "scores −2·10⁶": lambda: softmax(far_below.clone(), mask).tolist() == [[0.5, 0.5, 0, 0]],
        "float16": lambda: torch.allclose(softmax(scores.half(), mask).float(), wanted, atol=1e-3),
        "empty row: zeros": lambda: empty_row(lambda weights, _: weights[0].tolist() == [0.0] * 4),
        "finite gradient": lambda: empty_row(lambda _, gradient: bool(gradient.isfinite().all())),
        "input kept": keeps_input,
    }
    marks = {}
    for name, test in tests.items():
        try:
            marks[name] = "✓" if test() else "✗"
        except RuntimeError:
            marks[name] = "✗"
    return marks


versions = {
    "1 zero the scores": zero_the_scores,
    "2 multiply afterwards": multiply_afterwards,
    "3 minus a million": minus_a_million,
    "3 written in place": write_into_it,
    "4 minus infinity": minus_infinity,
    "5 add and clean": add_and_clean,
    "6 ours": masked_softmax,
    "course_utils": cu.masked_softmax,
}
marks = pd.DataFrame({name: exam(version) for name, version in versions.items()}).T
assert (marks.loc[["6 ours", "course_utils"]] == "✓").all(axis=None)
assert (marks.drop(["6 ours", "course_utils"]) == "✗").any(axis=1).all()
marks

# %% [markdown]
# Only the last two rows have no ✗. Read the third row again: everyday scores are fine, the rare cases are not. That
# is how such code survives for years.
#
# ### Exercise 3 · Find the bug: masked softmax by renormalizing
# *15 minutes · ★★★*
#
# This version mends number 2: it masks after the softmax and then divides by what is left, so rows sum to 1 again. On
# paper it is right, and on our example it is. Below, it fails on scores that a dot product easily gives when nobody
# scales it.


# %%
def buggy_masked_softmax(scores, attn_mask):
    weights = scores.softmax(dim=-1) * attn_mask
    return weights / weights.sum(dim=-1, keepdim=True)


torch.testing.assert_close(buggy_masked_softmax(scores, mask), wanted)  # looks right
loud_padding = torch.tensor([[0.0, 0.7, 120.0, 90.0]])  # the forbidden keys match best
assert buggy_masked_softmax(loud_padding, mask)[0, :2].isnan().all()

# %% [markdown]
# Find out why, and write a version that passes everything: any scores, any dtype, any mask that broadcasts, empty
# rows (zeros, with finite gradients), nothing changed in place, and no NaN of the model's own covered up.


# %% tags=["exercise"]
def fixed_masked_softmax(scores, attn_mask):
    """Softmax over the permitted keys (True = may attend); zeros where there are none."""
    ...


# %% tags=["check"]
cu.checks.masked_softmax(fixed_masked_softmax)


# %% tags=["solution"] jupyter={"source_hidden": true}
def fixed_masked_softmax(scores, attn_mask):
    """Softmax over the permitted keys (True = may attend); zeros where there are none."""
    # The softmax subtracts the largest score of all. If a forbidden key holds it, every permitted exponential
    # underflows to 0, and 0/0 is NaN. So forbidden keys have to be out before the softmax.
    empty = ~attn_mask.any(dim=-1, keepdim=True)
    filled = scores.masked_fill(~attn_mask, -math.inf).masked_fill(empty, 0.0)
    return filled.softmax(dim=-1).masked_fill(~attn_mask, 0.0)


cu.checks.masked_softmax(fixed_masked_softmax)

# %% [markdown]
# ## Explore: dimension, scale, and valid keys
#
# Four queries and six keys with random coordinates. Move $d$ to the far right: each row becomes a one-hot choice and
# the entropy drops to nearly 0. Tick the box: the same scores divided by $\sqrt d$, and most of the entropy is back
# (the dashed line is that of equal weights). Then move the valid keys down: forbidden scores become $-\infty$, the
# rest shares the weight, and the dashed line falls with $\log_2$ of their number. At 0 nothing is permitted and all
# weights are 0.

# %%
cu.explore.scores()

# %%
torch.manual_seed(1)
q, k = torch.randn(50, 1024), torch.randn(6, 1024)
valid = torch.tensor([4])
for dim in [1, 16, 1024]:
    raw = q[:, :dim] @ k[:, :dim].T
    bits = entropy(cu.masked_softmax(raw, cu.padding_mask(valid, 6)[0, 0]))
    scaled_bits = entropy(cu.masked_softmax(raw / math.sqrt(dim), cu.padding_mask(valid, 6)[0, 0]))
    assert max(bits.max(), scaled_bits.max()) <= math.log2(4) + 1e-5
    assert scaled_bits.mean() > 1.2
assert bits.mean() < 0.3  # d = 1024, unscaled

# %% [markdown]
# ## Scaled dot-product attention
#
# ### Batches of matrix products
#
# A batch has one matrix of queries and one of keys per sequence. The **batch matrix product** multiplies them
# pairwise, and never across sequences:
#
# $$\mathrm{bmm}([\mathbf A_1, \dots, \mathbf A_b],\, [\mathbf B_1, \dots, \mathbf B_b]) = [\mathbf A_1\mathbf B_1, \dots, \mathbf A_b\mathbf B_b], \qquad (b, n, d)\,(b, d, m) \to (b, n, m).$$
#
# By hand, with $b = 2$, $n = 1$, $d = 2$, $m = 1$: $(1, 2)\cdot(3, 4) = 11$ and $(0, 1)\cdot(5, 6) = 6$.

# %%
A = torch.tensor([[[1.0, 2.0]], [[0.0, 1.0]]])  # (2, 1, 2)
B = torch.tensor([[[3.0], [4.0]], [[5.0], [6.0]]])  # (2, 2, 1)
assert torch.bmm(A, B).flatten().tolist() == [11.0, 6.0]

A, B = torch.randn(2, 3, 4), torch.randn(2, 4, 6)
one_by_one = torch.stack([A[0] @ B[0], A[1] @ B[1]])
for product in (torch.bmm(A, B), A @ B, torch.einsum("bnd,bdm->bnm", A, B)):
    torch.testing.assert_close(product, one_by_one)

# %% [markdown]
# `@` does the same and takes any number of leading axes, which broadcast: with it one function serves (batch, …) and
# (batch, heads, …). Now the whole of attention is three lines. For queries $\mathbf Q \in \mathbb R^{n\times d}$,
# keys $\mathbf K \in \mathbb R^{m\times d}$ and values $\mathbf V \in \mathbb R^{m\times v}$:
#
# $$\mathrm{softmax}\!\left(\frac{\mathbf Q\mathbf K^\top}{\sqrt d}\right)\mathbf V \;\in\; \mathbb R^{n\times v}.$$


# %%
def dot_product_attention(queries, keys, values, attn_mask=None):
    """(…, n, d), (…, m, d), (…, m, v) → (…, n, v)."""
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])  # (…, n, m)
    weights = scores.softmax(dim=-1) if attn_mask is None else masked_softmax(scores, attn_mask)
    return weights @ values


# %% [markdown]
# ### A toy batch that can be checked by hand
#
# Two sequences with ten keys each, of which 2 and 6 are valid. All keys are **equal**, so no query can tell them
# apart: whatever the query, the weights are uniform over the valid keys, $\tfrac12$ and $\tfrac16$. The values of key
# $i$ are $(i, 10\,i)$. The outputs must be the means: $(0.5, 5)$ and $(2.5, 25)$.

# %%
queries = torch.randn(2, 1, 3)  # anything
keys = torch.ones(2, 10, 3)
values = torch.stack([torch.arange(10.0), 10 * torch.arange(10.0)], dim=-1).expand(2, 10, 2)
mask = cu.padding_mask(torch.tensor([2, 6]), 10)[:, 0]  # (2, 1, 10): no heads here

outputs = dot_product_attention(queries, keys, values, mask)
torch.testing.assert_close(outputs[:, 0], torch.tensor([[0.5, 5.0], [2.5, 25.0]]))

# %% [markdown]
# **And with keys that differ?** The same mask, random keys, the same question to each sequence.

# %%
different = torch.randn(2, 10, 3)
equal_weights = cu.dot_product_weights(queries, keys, mask)[:, 0]  # (sequences, keys)
random_weights = cu.dot_product_weights(queries, different, mask)[:, 0]
cu.show_heatmaps(
    torch.stack([equal_weights, random_weights]),
    queries=["2 valid", "6 valid"],
    ylabel="Sequences",
    titles=["equal keys", "random keys"],
    width=8.4,
    height=1.9,
    alt="Weights over ten keys. With equal keys the first sequence gives one half to two keys, the "
    "second one sixth to six keys. With random keys the weights differ, and keys beyond the "
    "valid length still get none.",
)

# %%
torch.testing.assert_close(equal_weights[0, :2], torch.full((2,), 1 / 2))
torch.testing.assert_close(equal_weights[1, :6], torch.full((6,), 1 / 6))
assert (random_weights[0, 2:] == 0).all()
assert (random_weights[1, 6:] == 0).all()

# %% [markdown]
# ### Equal to PyTorch's operator
#
# Three lines are quickly written and quickly wrong. So we compare them with `course_utils` and with PyTorch's own
# operator, on random inputs, outputs *and* gradients, under every kind of mask, one of them with an empty row.


# %%
def with_gradients(function, inputs, attn_mask):
    """The output and the gradients of the three inputs."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    outputs = function(*inputs, attn_mask)
    direction = torch.linspace(-1, 1, outputs.numel(), dtype=outputs.dtype).view_as(outputs)
    return outputs, *torch.autograd.grad(outputs, inputs, direction)


inputs = [
    torch.randn(2, 3, 5, size, dtype=torch.float64) for size in (8, 8, 4)
]  # (batch, heads, n, size)
masks = {
    "none": None,
    "lengths per sequence": cu.padding_mask(torch.tensor([5, 2]), 5),
    "lengths per query, one of them 0": cu.padding_mask(
        torch.tensor([[1, 2, 3, 4, 5], [5, 0, 1, 1, 2]]), 5
    ),
    "causal": cu.causal_mask(5),
    "anything": torch.rand(2, 3, 5, 5) < 0.6,
}
for attn_mask in masks.values():
    ours = with_gradients(dot_product_attention, inputs, attn_mask)
    for reference in (cu.scaled_dot_product_attention, F.scaled_dot_product_attention):
        torch.testing.assert_close(ours, with_gradients(reference, inputs, attn_mask))

# %% [markdown]
# From now on we use the library. `cu.scaled_dot_product_attention` calls PyTorch's operator, which is *fused*: where
# it can, it never writes the weights to memory. That makes it fast, and it leaves us with nothing to look at. Hence
# two ways to ask for the weights:
#
# - `cu.dot_product_weights(queries, keys, mask)` computes them;
# - `with cu.record_attention(model) as maps:` collects the weights of every attention module inside a model, under the
#   module's name, while the block runs. Outside the block nothing is computed or kept.

# %%
model = nn.ModuleDict({"dot": cu.DotProductAttention(dropout=0.5)})
with cu.record_attention(model) as maps:
    model["dot"](queries, different, values, mask)
assert list(maps) == ["dot"]
torch.testing.assert_close(maps["dot"][:, 0], random_weights)

# %% [markdown]
# The module above has **dropout**: in training it drops each weight with probability $p$ and divides the others by
# $1 - p$. Recorded weights are those *before* dropout; a map drawn after it has holes, and its rows do not sum to 1.
# In evaluation nothing is dropped: remember `model.eval()`.

# %%
torch.testing.assert_close(maps["dot"].sum(dim=-1), torch.ones(2, 1))  # recorded: before dropout
dropped = F.dropout(random_weights, p=0.5)  # what multiplies the values in training
assert (dropped.sum(dim=-1) - 1).abs().max() > 0.01

model.eval()
outputs = model["dot"](queries, different, values, mask)
torch.testing.assert_close(outputs, dot_product_attention(queries, different, values, mask))

# %% [markdown]
# ## Additive attention
#
# A dot product needs queries and keys of the same size. In a translation model, say, a query of 20 numbers may meet
# keys of 2. The scoring function with which neural translation learned to attend
# ([Bahdanau et al., 2015](https://arxiv.org/abs/1409.0473)) maps both to $h$ hidden units, *adds* them, and reads a
# number off:
#
# $$a(\mathbf q, \mathbf k) = \mathbf w^\top \tanh(\mathbf W_q \mathbf q + \mathbf W_k \mathbf k), \qquad \mathbf W_q \in \mathbb R^{h\times d_q},\; \mathbf W_k \in \mathbb R^{h\times d_k},\; \mathbf w \in \mathbb R^h .$$
#
# By hand, with $d_q = 1$, $d_k = 2$, $h = 2$: let $\mathbf W_q = \begin{pmatrix}1\\0\end{pmatrix}$,
# $\mathbf W_k = \begin{pmatrix}0&1\\1&0\end{pmatrix}$, $\mathbf w = (1, -1)$ and $q = 0.5$. For
# $\mathbf k = (1, -0.5)$ the sum is $(0.5, 0) + (-0.5, 1) = (0, 1)$ and the score $\tanh 0 - \tanh 1 = -0.76$. For
# $\mathbf k = (0, 0.5)$ it is $(1, 0)$ and $+0.76$.

# %%
W_q = torch.tensor([[1.0], [0.0]])
W_k = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
w = torch.tensor([1.0, -1.0])


def additive_score(query, key):
    return w @ torch.tanh(W_q @ query + W_k @ key)


assert abs(additive_score(torch.tensor([0.5]), torch.tensor([1.0, -0.5])) + math.tanh(1)) < 1e-6
assert abs(additive_score(torch.tensor([0.5]), torch.tensor([0.0, 0.5])) - math.tanh(1)) < 1e-6

# %% [markdown]
# It is a small network: join query and key to one vector, one hidden layer with tanh, one output, no biases. Its
# first matrix is $[\mathbf W_q \; \mathbf W_k]$, side by side.

# %%
joined = torch.cat([torch.tensor([0.5]), torch.tensor([1.0, -0.5])])  # (d_q + d_k,)
hidden = torch.tanh(torch.cat([W_q, W_k], dim=1) @ joined)
torch.testing.assert_close(
    w @ hidden, additive_score(torch.tensor([0.5]), torch.tensor([1.0, -0.5]))
)

# %% [markdown]
# For all pairs of a batch at once we let the axes broadcast. Each query, (batch, $n$, 1, $h$), meets each key,
# (batch, 1, $m$, $h$): the sum is (batch, $n$, $m$, $h$).


# %%
def additive_attention(layer, queries, keys, values, attn_mask=None):
    """The weights of a cu.AdditiveAttention, applied step by step."""
    q = queries @ layer.query_proj.weight.T  # (batch, n, h)
    k = keys @ layer.key_proj.weight.T  # (batch, m, h)
    hidden = torch.tanh(q[:, :, None, :] + k[:, None, :, :])  # (batch, n, m, h)
    scores = hidden @ layer.score_proj.weight[0]  # (batch, n, m)
    weights = scores.softmax(dim=-1) if attn_mask is None else masked_softmax(scores, attn_mask)
    return weights @ values


layer = cu.AdditiveAttention(query_dim=20, key_dim=2, hidden_dim=8).double()
inputs = [torch.randn(2, *shape, dtype=torch.float64) for shape in [(3, 20), (10, 2), (10, 4)]]
for attn_mask in (
    None,
    cu.padding_mask(torch.tensor([2, 6]), 10)[:, 0],
    torch.rand(2, 3, 10) < 0.3,
):
    ours = with_gradients(
        lambda *arguments: additive_attention(layer, *arguments), inputs, attn_mask
    )
    torch.testing.assert_close(ours, with_gradients(layer, inputs, attn_mask))

# %% [markdown]
# The toy batch again: equal keys, valid lengths 2 and 6, queries of 20 numbers now. **What do the weights look
# like?**

# %%
model = nn.ModuleDict({"dot": cu.DotProductAttention(), "additive": cu.AdditiveAttention(20, 3, 8)})
wide_queries = torch.randn(2, 1, 20)
with cu.record_attention(model) as maps:
    outputs = model["additive"](wide_queries, keys, values, mask)
    model["dot"](queries, keys, values, mask)
torch.testing.assert_close(outputs[:, 0], torch.tensor([[0.5, 5.0], [2.5, 25.0]]))
torch.testing.assert_close(maps["additive"], maps["dot"])
cu.show_heatmaps(
    torch.stack([maps["dot"][:, 0], maps["additive"][:, 0]]),
    queries=["2 valid", "6 valid"],
    ylabel="Sequences",
    titles=["dot product", "additive"],
    width=8.4,
    height=1.9,
    alt="Two identical weight maps for equal keys: one half on two keys in the first sequence, one "
    "sixth on six keys in the second.",
)

# %% [markdown]
# The same maps: where keys do not differ, no scoring function can tell them apart. What, then, is different about
# additive scores? Two things, easily missed.
#
# **They are bounded.** tanh lies between $-1$ and 1, so $|a| \le \sum_j |w_j|$, however long the vectors. Additive
# attention needs no $1/\sqrt d$. In high dimensions it did better than *unscaled* dot products, and $1/\sqrt d$ was
# introduced to close that gap ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.1).
#
# **The tanh is essential.** Without it the score is
# $\mathbf w^\top\mathbf W_q\mathbf q + \mathbf w^\top\mathbf W_k\mathbf k$, and the first term is the same for all
# keys. The softmax removes it: every query would get the same weights. "Additive" alone is no attention at all.

# %%
layer = cu.AdditiveAttention(20, 3, 8)
with torch.no_grad():
    bound = layer.score_proj.weight.abs().sum()
    huge = layer.scores(1e4 * torch.randn(1, 5, 20), 1e4 * torch.randn(1, 7, 3))
    assert huge.abs().max() <= bound + 1e-5

    q, k = torch.randn(5, 20), torch.randn(7, 3)
    q_part = layer.score_proj(layer.query_proj(q))  # (5, 1)
    k_part = layer.score_proj(layer.key_proj(k)).T  # (1, 7)
    linear = (q_part + k_part).softmax(dim=-1)
    torch.testing.assert_close(linear, linear[:1].expand(5, 7))  # every query: the same weights

    with_tanh = layer.scores(q, k).softmax(dim=-1)
    assert (with_tanh - with_tanh[:1]).abs().max() > 0.01

# %% [markdown]
# ### A matrix in between
#
# There is a cheaper way to compare vectors of different sizes:
# $a(\mathbf q, \mathbf k) = \mathbf q^\top \mathbf M \mathbf k$ with a learned matrix
# $\mathbf M \in \mathbb R^{d_q\times d_k}$ ([Luong et al., 2015](https://arxiv.org/abs/1508.04025), there called
# "general"). It is nothing new to us: project queries and keys with the matrices of [Queries, keys and values](01_queries_keys_values.ipynb) and take dot products,
# and you have $\mathbf M = \mathbf W_q^\top\mathbf W_k$, of rank at most $h$.

# %%
W_q, W_k = torch.randn(4, 20), torch.randn(4, 3)  # h = 4
M = W_q.T @ W_k  # (20, 3)
torch.testing.assert_close((q @ W_q.T) @ (k @ W_k.T).T, q @ M @ k.T, rtol=1e-4, atol=1e-4)
assert torch.linalg.matrix_rank(M) <= 3

# %% [markdown]
# ### Exercise 4 · Bilinear scores
# *8 minutes · ★★*
#
# Compute $\mathbf q^\top\mathbf M\mathbf k$ for all pairs of a batch: queries (batch, $n$, $d_q$), keys (batch, $m$,
# $d_k$), matrix ($d_q$, $d_k$); return scores (batch, $n$, $m$), neither scaled nor normalized. Try one pair by hand
# first: $\mathbf q = (1, 2)$, $\mathbf M = \begin{pmatrix}1&0&2\\0&3&1\end{pmatrix}$, $\mathbf k = (1, 0, 1)$ give 5.


# %% tags=["exercise"]
def bilinear_scores(queries, keys, matrix):
    """qᵀ M k for all pairs: (batch, n, m)."""
    ...


# %% tags=["check"]
cu.checks.bilinear_scores(bilinear_scores)


# %% tags=["solution"] jupyter={"source_hidden": true}
def bilinear_scores(queries, keys, matrix):
    """qᵀ M k for all pairs: (batch, n, m)."""
    return queries @ matrix @ keys.transpose(-2, -1)


cu.checks.bilinear_scores(bilinear_scores)

# %% [markdown]
# ## What do they cost?
#
# For $n$ queries, $n$ keys, size $d$ and $h$ hidden units, leaving the projections aside:
#
# | | numbers to hold | multiplications | tanh |
# |---|---|---|---|
# | dot product, written out | $n^2$ | $n^2 d$ | none |
# | dot product, fused | about $n d$ | $n^2 d$ | none |
# | additive | $n^2 h$ | $n^2 h$ | $n^2 h$ |
#
# On paper dot product and additive attention need about as many multiplications. **What do they keep in memory, and
# how long do they take?** Memory we count exactly: the numbers PyTorch keeps for the backward pass.


# %%
def numbers_kept(function, *inputs):
    """How many numbers the forward pass saves for the backward pass."""
    kept = {}

    def pack(tensor):
        kept[tensor.data_ptr(), tensor.numel()] = tensor.numel()  # a tensor saved twice counts once
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        _outputs = function(*inputs)
    return sum(kept.values())


size = 64
functions = {
    "additive": cu.AdditiveAttention(size, size, size),
    "dot product, written out": dot_product_attention,
    "dot product, fused": lambda q, k, v: cu.scaled_dot_product_attention(
        q[:, None], k[:, None], v[:, None]
    ),
}
lengths = [32, 64, 128, 256, 512]
kept = {name: [] for name in functions}
for n in lengths:
    inputs = [torch.randn(1, n, size, requires_grad=True) for _ in range(3)]
    for name, function in functions.items():
        kept[name].append(numbers_kept(function, *inputs))

# %%
assert kept["dot product, written out"] == [n * n + 3 * n * size for n in lengths]
assert slope(lengths[-3:], kept["additive"][-3:]) > 1.9  # n² already
assert slope(lengths[-3:], kept["dot product, fused"][-3:]) < 1.1  # linear
assert kept["additive"][-1] > 30 * kept["dot product, written out"][-1]
without_heads = numbers_kept(F.scaled_dot_product_attention, *inputs)  # (batch, n, size)
assert without_heads > 2 * kept["dot product, fused"][-1]  # no head axis: not fused
pd.DataFrame(kept, index=pd.Index(lengths, name="n"))

# %% [markdown]
# The additive hidden layer (batch, $n$, $n$, $h$) must be kept for the gradient of the tanh: with $n = 512$ and
# $h = 64$ that is 17 million numbers, for one sequence and one layer. The written-out dot product keeps its inputs
# and one map of $n^2$ weights. The fused operator keeps no map at all: it recomputes the weights block by block in
# the backward pass ([Dao et al., 2022](https://arxiv.org/abs/2205.14135)), so its memory is linear in $n$. (It looks
# for a head axis. Without one, PyTorch computes the same numbers the long way and says nothing.)
#
# Time depends on the machine, so the next cell asserts only what is safe to say: additive is slower, by a wide
# margin.


# %% tags=["nbval-ignore-output"]
def seconds(function, *inputs, repeat=5):
    """The best of several runs, without gradients."""
    times = []
    with torch.no_grad():
        for _ in range(repeat):
            start = time.perf_counter()
            function(*inputs)
            times.append(time.perf_counter() - start)
    return min(times)


threads = torch.get_num_threads()
torch.set_num_threads(1)  # one thread: less noise from whatever else runs here
inputs = {n: [torch.randn(1, n, size) for _ in range(3)] for n in lengths}
timed = {name: [seconds(f, *inputs[n]) for n in lengths] for name, f in functions.items()}
torch.set_num_threads(threads)
assert timed["additive"][-1] > 3 * timed["dot product, fused"][-1]
(1e3 * pd.DataFrame(timed, index=pd.Index(lengths, name="n"))).round(2).add_suffix(" (ms)")

# %% tags=["hide-input", "nbval-ignore-output"]
fig, (left, right) = cu.subplots(
    1,
    2,
    width=8.4,
    height=3.1,
    alt="Log axes over the number of tokens. Left, numbers kept: additive highest and growing with "
    "n squared, written-out dot product below, fused lowest and linear. Right, time: additive "
    "well above both dot products.",
)
for (name, numbers), marker in zip(kept.items(), ["o-", "s--", "^:"], strict=True):
    left.loglog(lengths, numbers, marker, label=name, markersize=4)
    right.loglog(lengths, [1e3 * t for t in timed[name]], marker, label=name, markersize=4)
left.set(xlabel="tokens n", ylabel="numbers kept for backward")
right.set(xlabel="tokens n", ylabel="time (ms), forward")
for ax in (left, right):
    ax.set_xticks(lengths, lengths)
    ax.minorticks_off()
left.legend(fontsize=8, frameon=False)
fig

# %% [markdown]
# The count of multiplications was no guide. A dot product is one matrix product, which processors are built for; the
# additive score writes $n^2 h$ numbers to memory, takes a tanh of each and reads them again.
#
# ### Exercise 5 · Attention in pieces
# *12 minutes · ★★*
#
# Queries do not know of each other: each row of weights is normalized on its own. So a long sequence can be answered
# in pieces of `chunk` queries, and only (batch, `chunk`, keys, $h$) numbers exist at a time. `score(queries, keys)`
# returns scores (batch, $n$, $m$). Never score more than `chunk` queries at once.


# %% tags=["exercise"]
def attention_in_pieces(queries, keys, values, score, chunk):
    """softmax(score(queries, keys)) @ values, for `chunk` queries at a time."""
    ...


# %% tags=["check"]
cu.checks.attention_in_pieces(attention_in_pieces)


# %% tags=["solution"] jupyter={"source_hidden": true}
def attention_in_pieces(queries, keys, values, score, chunk):
    """softmax(score(queries, keys)) @ values, for `chunk` queries at a time."""
    pieces = [score(some, keys).softmax(dim=-1) @ values for some in queries.split(chunk, dim=1)]
    return torch.cat(pieces, dim=1)


cu.checks.attention_in_pieces(attention_in_pieces)

# %% [markdown]
# (In training this saves nothing by itself, since all pieces are kept for the backward pass; `torch.utils.checkpoint`
# recomputes them. Cutting the *keys* into pieces is harder, because the softmax needs their common sum. The fused
# operator does it with a running maximum and a running sum.)
#
# ## What goes wrong
#
# We met scores scaled after the softmax, masks on the wrong axis, $-10^6$, empty rows and overwritten inputs. Three
# more run without an error or a warning. To expose them we use **one-hot values**: if value $i$ is the $i$-th unit
# vector, the output *is* the row of weights, whatever the code inside.
#
# **The mask of the wrong polarity.** In `F.scaled_dot_product_attention` True means "may attend". In
# `nn.MultiheadAttention` and `nn.TransformerEncoder` True means "must **not**". Both are PyTorch.

# %%
tokens = torch.randn(1, 5, 4)
one_hot = torch.eye(5)[None]
may_attend = cu.padding_mask(torch.tensor([3]), 5)  # keys 0, 1, 2

weights = F.scaled_dot_product_attention(tokens, tokens, one_hot, attn_mask=may_attend[:, 0])
assert (weights[..., 3:] == 0).all()  # as it should be

layer = nn.MultiheadAttention(4, num_heads=1, batch_first=True).eval()
_outputs, weights = layer(tokens, tokens, tokens, key_padding_mask=may_attend[:, 0, 0])
assert (weights[..., :3] == 0).all()  # exactly the real tokens are shut out

_outputs, weights = layer(tokens, tokens, tokens, key_padding_mask=~may_attend[:, 0, 0])
assert (weights[..., 3:] == 0).all()

# %% [markdown]
# **A mask of zeros and ones that is not boolean.** PyTorch takes a float mask for something to *add* to the scores.
# Ones and zeros then raise the permitted scores by 1, and forbid nothing. Our functions refuse it.

# %%
weights = F.scaled_dot_product_attention(
    tokens, tokens, one_hot, attn_mask=may_attend[:, 0].float()
)
assert (weights[..., 3:] > 0).all()  # padding gets weight

try:
    cu.scaled_dot_product_attention(tokens, tokens, one_hot, may_attend[:, 0].float())
    raise AssertionError("expected a TypeError")
except TypeError as error:
    print(error)

# %% [markdown]
# **Softmax over the wrong axis.** With as many queries as keys, `dim=-2` raises no error. Columns sum to 1, rows do
# not, and under a causal mask the first query's weight then depends on later queries: the future leaks.

# %%
scores = tokens @ tokens.transpose(1, 2) / math.sqrt(4)
wrong = scores.masked_fill(~cu.causal_mask(5), -math.inf).softmax(dim=-2)
torch.testing.assert_close(wrong.sum(dim=-2), torch.ones(1, 5))
assert (wrong.sum(dim=-1) - 1).abs().max() > 0.1

later = tokens.clone()
later[:, -1] += 1.0  # change the last token only
scores = later @ later.transpose(1, 2) / math.sqrt(4)
changed = scores.masked_fill(~cu.causal_mask(5), -math.inf).softmax(dim=-2)
assert (changed[0, 0] - wrong[0, 0]).abs().max() > 1e-3  # the first row has changed
before, after = (cu.dot_product_weights(x, x, cu.causal_mask(5)) for x in (tokens, later))
assert torch.equal(before[0, :4], after[0, :4])  # right: rows before the change stay as they were

# %% [markdown]
# ## Take-aways
#
# - The dot product is the Gaussian's score without the lengths. Dropping the query's length is always free; dropping the key's length is free only for keys of equal length, and otherwise long keys are loud.
# - Dot products of independent unit-variance vectors have variance $d$. Divide by $\sqrt d$ **before** the softmax, and entropy and gradients no longer depend on the dimension.
# - Masks are boolean, True = may attend, with an axis for each of batch, heads, queries and keys. Fill forbidden scores with $-\infty$, treat empty rows on their own, and change nothing in place.
# - Additive attention takes queries and keys of different size and bounded scores, at the price of $n^2 h$ numbers in memory. The dot product is one matrix product, and fused it never stores the weights.
# - Never trust three lines of attention: compare outputs and gradients with the operator, under masks.
#
# ## Quiz

# %%
cu.quiz("scoring_functions")

# %% [markdown]
# ## References
#
# - Ba, J. L., Kiros, J. R. and Hinton, G. E. (2016). [Layer normalization](https://arxiv.org/abs/1607.06450).
# - Bahdanau, D., Cho, K. and Bengio, Y. (2015). [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473). ICLR. Section 3.1: additive attention.
# - Dao, T., Fu, D. Y., Ermon, S., Rudra, A. and Ré, C. (2022). [FlashAttention: Fast and memory-efficient exact attention with IO-awareness](https://arxiv.org/abs/2205.14135). NeurIPS.
# - Dehghani, M. et al. (2023). [Scaling vision transformers to 22 billion parameters](https://arxiv.org/abs/2302.05442). ICML.
# - Henry, A., Dachapally, P. R., Pawar, S. and Chen, Y. (2020). [Query-key normalization for transformers](https://arxiv.org/abs/2010.04245). Findings of EMNLP.
# - Luong, M.-T., Pham, H. and Manning, C. D. (2015). [Effective approaches to attention-based neural machine translation](https://arxiv.org/abs/1508.04025). EMNLP. Section 3.1: dot, general, concat.
# - Vaswani, A., Shazeer, N., Parmar, N., Uszkoreit, J., Jones, L., Gomez, A. N., Kaiser, Ł. and Polosukhin, I. (2017). [Attention is all you need](https://arxiv.org/abs/1706.03762). NeurIPS. Section 3.2.1: scaled dot-product attention.
# - Yang, G. et al. (2022). [Tensor programs V: Tuning large neural networks via zero-shot hyperparameter transfer](https://arxiv.org/abs/2203.03466).
