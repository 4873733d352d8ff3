# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Positions
#
# **How does attention know which word came first, and what does it do at a place where it has never been?**
# Self-attention alone does not see it.
# A vector, an angle or a number has to say it, in one of six usual ways.
# Most of them work on the length of the training.
# Then comes a longer sequence:
#
# ```
# trained    c x q a                     which token stood three before?  which was the first?
# asked      m e c k x q a z o p d t r
# ```
#
# Trained as usual, none of the six answers both where it has never been.
#
# After this chapter you can
#
# - write sinusoidal, learned, rotary and relative positions, and say where each enters attention;
# - move one position to another by a rotation of the right sign;
# - say why a map that fits 16 positions need not fit the 17th;
# - show on a task with known answers that order was the one thing missing;
# - test what a network does beyond the length that it was trained on.
#
# It needs [Self-attention](07_self_attention.ipynb): queries, keys and values by three matrices, and equivariance.
#
# On the way to GPT: [Waves](#Waves), [Moving is turning](#Moving-is-turning), [Rotary: turn queries and keys](#Rotary:-turn-queries-and-keys).
# On the way to images: [Waves](#Waves), [Learned and relative positions](#Learned-and-relative-positions).
# On the way to translation: [Waves](#Waves), [Moving is turning](#Moving-is-turning).

# %%
import copy
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.positions import (
    RelativeBias,
    RelativeKeys,
    offset_buckets,
    rotate,
    sinusoidal_table,
)

cu.seed_everything(0)

# %% jupyter={"source_hidden": true}
cu.recall("self_attention", "masks")

# %% [markdown]
# ## Waves
#
# In [Self-attention](07_self_attention.ipynb) you saw it: if the tokens are permuted, the outputs are permuted with them, and nothing else happens.
# *Dog* gets the same vector in *dog bites man* and in *man bites dog*.
# The first idea: add to the embedding $x_i$ a vector $p_i$ that says "I am number $i$".
# Which vectors?
#
# | idea | what is wrong with it |
# |---|---|
# | the number $i$ in one column | grows without bound, and is soon much larger than the embedding |
# | the fraction $i/n$ | the third word has another code in each sentence, and "next to" is another distance |
# | $i$ in binary, a bit a column | bounded and unique, but neighbors differ wildly: $7 = 0111$, $8 = 1000$ |
#
# Binary counting has a good core: each column alternates with a period of its own, 2, 4, 8, 16.
# **Make these steps smooth waves**, and neighbors become similar.
#
# A table $P$ has a row for each position $i = 0, 1, \dots$ and $d$ columns in pairs $j = 0, \dots, d/2 - 1$.
# Each pair holds a sine and a cosine of one frequency $\omega_j$.
# These are **sinusoidal positions** ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.5):
#
# $$p_{i,\,2j} = \sin(i\,\omega_j),\qquad p_{i,\,2j+1} = \cos(i\,\omega_j),\qquad \omega_j = 10000^{-2j/d} .$$
#
# By hand for $d = 4$: $\omega_0 = 1$ and $\omega_1 = 10000^{-1/2} = 0.01$, so
#
# | | $\sin i$ | $\cos i$ | $\sin 0.01i$ | $\cos 0.01i$ |
# |---|---|---|---|---|
# | $p_0$ | 0 | 1 | 0 | 1 |
# | $p_1$ | 0.841 | 0.540 | 0.010 | 1.000 |
# | $p_2$ | 0.909 | −0.416 | 0.020 | 1.000 |


# %%
def sinusoids(length, dim, base=10_000.0):
    """The table P: (length, dim)."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = position * frequency  # (length, dim / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


columns = 32  # try 16 | 32 | 64
P = sinusoids(60, columns)
by_hand = sinusoids(3, 4)
same_table = torch.equal(P, sinusoidal_table(60, columns))
print(by_hand.numpy().round(3), "\nequal to course_utils:", same_table)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
bits = torch.tensor([[i >> bit & 1 for bit in range(6)] for i in range(60)])
fig, (left, middle, right) = cu.subplots(
    1, 3, width=9, height=3.6, width_ratios=[1, 2.4, 3],
    alt="Left: the six bits of the numbers 0 to 59, lowest bit first: stripes that double in height from column "
    f"to column. Middle: the {columns} columns of the sinusoidal table: fast waves on the left that slow down to the "
    "right. Right: columns 6 to 9 as curves, two pairs of a sine and a cosine of the same period.",
)  # fmt: skip
cu.heatmap(left, bits, xlabel="bit", ylabel="position i", title="binary")
image = cu.heatmap(
    middle, P, xlabel="column", ylabel=None, vmin=-1, cmap="signs", title="the table P"
)
for ax in (left, middle):
    ax.set_aspect("auto")
fig.colorbar(image, ax=middle)
for column, (name, dash) in zip(
    range(6, 10), [("key", "-"), ("key", "--"), ("query", "-"), ("query", "--")], strict=True
):  # fmt: skip
    wave = "cosine" if column % 2 else "sine"
    right.plot(P[:, column], dash, color=cu.COLORS[name], label=f"{column}, {wave}")
right.set(xlabel="position i", xlim=(0, 59), ylim=(-1.1, 1.7), title="columns 6 to 9")
right.legend(frameon=False, ncols=2, fontsize=8, loc="upper center")
fig

# %% [markdown]
# Stripes on the left, waves in the middle, both slower from column to column.
# With $d = 32$, columns 6 and 7 are a pair with a period of $2\pi/\omega_3 = 35$ positions, columns 8 and 9 a pair with 63: from pair to pair the period grows by $10000^{2/32} = 1.78$.
# The slowest pair has 35,333 positions, so that over these 60 its sine stays near 0 and its cosine near 1.
#
# ### Exercise 1 · Five numbers on paper
#
# *predict · 5 minutes*
#
# For $d = 4$, (a) to (d) to two decimals: (a) the sum of the entries of $p_0$; (b) $p_7 \cdot p_7$, the sum of the squares; (c) $p_0 \cdot p_1$; (d) $p_5 \cdot p_6$, without computing $\sin 5$ (which theorem about $\cos(a - b)$ helps?); (e) after how many positions, as a whole number, does the slow pair come back to where it began?


# %% tags=["exercise", "predict"]
def predicted_products():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.predicted_products(predicted_products)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_products_solution():
    """Two cosines of 0; sin² + cos² twice; cos 1 + cos 0.01; the same, one step apart; 2π / 0.01."""
    return [2, 2, 1.54, 1.54, 628]


cu.checks.predicted_products(predicted_products_solution)

# %% [markdown]
# ## Moving is turning
#
# Why sine *and* cosine?
# Because a pair can be turned.
# Take a pair as a point on a circle, with the sine to the right and the cosine up.
# Each step to the next position turns it by the angle $\omega$:

# %% jupyter={"source_hidden": true}
cu.explore.positions()

# %% [markdown]
# Here 10 steps turn the pair by 57°, clockwise.
# Set $\omega = 1$ and $k = 44$: the pair is back almost where it was.
# At $\omega = 0.01$, 63 steps turn it by 36°.
# (The second picture is explained below.)
# As a formula, by the addition theorems for $\sin(a+b)$ and $\cos(a+b)$, with vectors as rows:
#
# $$(p_{i+k,\,2j},\; p_{i+k,\,2j+1}) = (p_{i,\,2j},\; p_{i,\,2j+1})\begin{pmatrix}\cos k\omega_j & -\sin k\omega_j\\ \sin k\omega_j & \cos k\omega_j\end{pmatrix} .$$
#
# The matrix contains $k$ and not $i$.
# "Three to the right" is the *same* linear map everywhere, and linear maps are what $W_Q$ and $W_K$ can learn.
# **Mind the sign**, with a pencil: at $i = 0$ the pair is $(0, 1)$.
# Turned by $k\omega = 90°$ it has to become $(\sin 90°, \cos 90°) = (1, 0)$: the row $(0, 1)$ picks the lower row of the matrix, $(\sin 90°, \cos 90°)$.
# With the minus in the other corner it would be $(-1, 0)$, position $-k$.


# %%
def shift_matrix(k, dim):
    """(dim, dim): row p_i times it is row p_(i + k), for each i."""
    frequency = 10_000.0 ** (-torch.arange(0, dim, 2) / dim)
    cos, sin = (k * frequency).cos(), (k * frequency).sin()
    blocks = torch.stack([cos, -sin, sin, cos], dim=-1).view(-1, 2, 2)
    return torch.block_diag(*blocks)


offset = 3
S = shift_matrix(offset, columns)
moved = (P[:-offset] @ S - P[offset:]).abs().max()
print(f"P moved forward by {offset}: the rows of P, to 1e-5: {(moved < 1e-5).item()}")

# %% [markdown]
# ### Is that special?
#
# Nothing is left over but rounding.
# Least squares finds the best matrix for any table, without theory.
# Here on sinusoids and on random numbers:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "For which tables is there a matrix that carries every row to the row three further, without error?",
    [
        "the sinusoids alone",
        "the sinusoids, and random tables of few rows and many columns",
        "the sinusoids, and random tables of many rows and few columns",
        "all tables of random numbers, and the sinusoids",
    ],
    answer="the sinusoids, and random tables of few rows and many columns",
    wrong={
        "the sinusoids alone": "How many equations does a column of the matrix have to meet, and how many unknowns has it?",
        "the sinusoids, and random tables of many rows and few columns": "400 rows of 32 columns: 397 equations for 32 unknowns.",
        "all tables of random numbers, and the sinusoids": "400 rows of 32 columns: 397 equations for 32 unknowns.",
    },
    why="With 16 rows of 64 columns, each column of the matrix has 64 unknowns and 13 equations, one for each pair of rows. "
    "Random rows are independent, so that a solution exists. For 397 equations and 32 unknowns there is none.",
)


# %%
def best_shift(table, k):
    """The matrix that best carries each row to the row k further, by least squares."""
    now, later = table[:-k], table[k:]
    return torch.linalg.lstsq(now, later, rcond=1e-6, driver="gelsd").solution


def misfit(table, matrix, k):  # what it leaves over, as a share
    return ((table[:-k] @ matrix - table[k:]).norm() / table[k:].norm()).item()


rows = 16  # try 8 … 60
shifts = {}
for made, length, dim in [("sinusoids", 400, 32), ("random", 400, 32),
                          ("sinusoids", rows, 64), ("random", rows, 64)]:  # fmt: skip
    waves, noise = sinusoids(length + 48, dim), torch.randn(length + 48, dim)
    table = waves if made == "sinusoids" else noise
    seen, unseen = table.double().split([length, 48])
    M, turn = best_shift(seen, 3), shift_matrix(3, dim).double()
    left_over = [misfit(seen, M, 3), misfit(unseen, M, 3), misfit(unseen, turn, 3)]
    shifts[f"{made}, {length} × {dim}"] = left_over
head = "best matrix, fitted rows", "best matrix, next 48", "rotation, next 48"
misfits = pd.DataFrame(shifts, index=head).T
misfits.round(2)

# %% [markdown]
# With 400 rows of 32 columns only the sinusoids have such a matrix, also for the next 48 rows.
# With **16 rows of 64 columns the random table has one as well**: there are more unknowns than equations.
# But it is one of many.
# For the sinusoids, the matrix that was found fits the 16 rows and misses the next 48 by 0.62.
# The rotation, which fits as well, misses nothing.
# Sixteen rows do not say which matrix is meant.
#
# ### How similar are two positions?
#
# Each pair contributes $\sin i\omega\,\sin(i{+}k)\omega + \cos i\omega\,\cos(i{+}k)\omega = \cos k\omega$ to the dot product, so
#
# $$p_i \cdot p_{i+k} = \sum_{j=0}^{d/2-1} \cos(k\,\omega_j) .$$

# %%
width = 512  # try 32 | 128 | 512
wide = sinusoids(300, width)
similar = wide @ wide[50] / (width / 2)  # with each position, as a share of p · p
cu.show_curves(
    range(-50, 200), {f"d = {width}": similar[:250]},
    xlabel="offset k", ylabel="p · p / (d/2)", width=7, height=2.4,
    alt="A sharp peak of 1 at offset 0 that falls on both sides, fast and then slowly.",
)  # fmt: skip

# %% [markdown]
# With 512 columns it falls fast, by a third within ten positions, and then slowly; with 32 it goes up and down on its way.
# Left and right are the same: **the dot product of two positions does not see the direction.**
# A layer sees positions through $W_Q$ and $W_K$ and can learn it: with $S$ for $W_Q$, a query is most similar to the position three to its right.

# %% jupyter={"source_hidden": true}
cu.quiz("positions", "two_positions")

# %% [markdown]
# ## Rotary: turn queries and keys
#
# Sinusoids are *added*, and the layer has to find the rotation by itself.
# **Rotary positions** (**RoPE**, [Su et al., 2021](https://arxiv.org/abs/2104.09864), section 3.2) leave the embeddings alone and turn queries and keys, pair by pair, by an angle proportional to their position.
# From here on $j$ is the position of a key, and $\omega$ the frequency of a pair.
# Let $R_i$ turn each pair counterclockwise by $i\,\omega$:
#
# $$(a, b)\;\to\;(a\cos i\omega - b\sin i\omega,\;\; a\sin i\omega + b\cos i\omega),\qquad
# (q_i R_i)\cdot(k_j R_j) = q_i\,R_i R_j^\top\,k_j^\top = q_i\,R_{i-j}\,k_j^\top .$$
#
# (The cosine stands first here: the minus changes its corner.)
# The score contains the offset and nothing else about positions.
# By hand, $d = 2$ and $\omega = 1$: $q = k = (1, 0)$ at positions $i$ and $j$ become $(\cos i, \sin i)$ and $(\cos j, \sin j)$, with the product $\cos(i - j)$.
# At positions 2 and 3, as at 7 and 8: $\cos 1 = 0.540$.
#
# ### Exercise 2 · Turn the pairs
#
# *build · 10 minutes*
#
# Write it for `x` (…, length, dim), `dim` even.
# The pairs are the neighboring columns (0, 1), (2, 3), …, with the frequencies $10000^{-2j/\text{dim}}$, $j$ counting pairs; the positions are $0, 1, \dots$ along the axis before the last.
# `x[..., 0::2]` are the even columns.
# Do not change `x`, keep its dtype, and write no loop over positions: the network of section 5 calls your function some thousand times once it passes.


# %% tags=["exercise", "build"]
def my_rotate(x):
    """(…, length, dim) → the same shape and dtype, each pair turned by its angle."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_rotate(my_rotate)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_rotate_solution(x):
    """New tensors for both columns of a pair, computed from the old ones; stack puts them side by side."""
    length, dim = x.shape[-2:]
    frequency = 10_000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = torch.arange(length)[:, None] * frequency  # (length, dim / 2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


cu.checks.my_rotate(my_rotate_solution)

# %%
rotary = cu.choose(my_rotate, rotate)
one = rotary(torch.tensor([1.0, 0.0]).expand(9, 2))
print(f"positions 2 and 3: {one[2] @ one[3]:.3f}; 7 and 8: {one[7] @ one[8]:.3f}")
query, key = torch.randn(2, 1, 64).expand(2, 24, 64)
W_Q, W_K = torch.randn(2, 64, 64) / 8
P24 = sinusoids(24, 64)
score_maps = {
    "added sinusoids": (query + P24) @ W_Q @ ((key + P24) @ W_K).T / 8,
    "rotary": rotary(query @ W_Q) @ rotary(key @ W_K).T / 8,
}

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.show_heatmaps(
    torch.stack([m - m.mean() for m in score_maps.values()]), titles=list(score_maps), vmin=-2, vmax=2,
    cmap="signs", width=7, xlabel="position of the key", ylabel="position of the query",
    alt="Two maps of scores between 24 positions. Added sinusoids: the color changes along the diagonals. Rotary: each "
    "diagonal has one color.",
)  # fmt: skip

# %% [markdown]
# Both products are 0.540, as by hand.
# The maps show scores, less their mean, of one vector for the queries and one for the keys, repeated at 24 positions and projected by two random matrices.
# On the right each diagonal has one color: "two to the left" has the same score at every place.
# With *added* sinusoids it has not.
# Values are *not* turned; each head is, in every layer.

# %% [markdown]
# ## Learned and relative positions
#
# ### Exercise 3 · Find the bug
#
# *bug · 5 minutes*
#
# This function adds a table to a batch.
# It was written for tensors (n, batch, d); here they are (batch, n, d).
# Look at what sequence 1 gets, and at a second call.
# Find two mistakes, and write `fixed_add`.
# A sequence longer than the table has to raise an error.


# %%
def buggy_add(x, table):
    """(batch, n, d), (max_len, d) → x plus positions."""
    x += table[: x.shape[0], None]
    return x


zeros = torch.zeros(2, 3, 4)
for call in ("sequence 1, column 0:", "a second call:       "):
    print(call, buggy_add(zeros, sinusoids(20, 4))[1, :, 0].numpy().round(3))


# %% tags=["exercise", "bug"]
def fixed_add(x, table):
    """(batch, n, d), (max_len, d) → x plus positions."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_add(fixed_add)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_add_solution(x, table):
    """Axis 1 has the tokens, and + makes a new tensor.

    Each token got the number of its sequence, and a test of order would find it: the layer still ignores the order.
    `x += …` wrote into the caller's tokens. A sequence longer than the table is an error by itself: n tokens meet
    fewer rows.
    """
    return x + table[: x.shape[1]]


cu.checks.fixed_add(fixed_add_solution)

# %% [markdown]
# **Learned**: why design a table if one can learn it?
# BERT, GPT-2 and the [vision transformer](C_glossary.ipynb#vision-transformer) make $P$ a parameter with `max_len` rows.


# %%
class Learned(nn.Module):
    def __init__(self, dim, max_len):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_len, dim))

    def forward(self, x):
        return x + self.table[: x.shape[-2]]


learned, theirs = Learned(16, max_len=20), cu.LearnedPositions(16, max_len=20)
theirs.load_state_dict(learned.state_dict())
twelve = torch.randn(3, 12, 16)  # three sentences of 12 tokens
cu.equal(learned, theirs, twelve)
learned(twelve).sin().sum().backward()
row_gradients = learned.table.grad.norm(dim=1)
print("rows with a gradient:", row_gradients.nonzero().flatten().tolist())

# %% [markdown]
# Outputs and gradients are the package's.
# Rows 12 to 19 get none: **a row that is never visited is never trained.**
#
# **[Relative positions](C_glossary.ipynb#relative-positions)** leave the tokens alone: in the drawing, the third place where positions can enter.
# They add to the *score* of query $i$ and key $j$ something that depends on the offset $j - i$ (−3 is three to the left):
#
# | | score | learned |
# |---|---|---|
# | [Shaw et al., 2018](https://arxiv.org/abs/1803.02155) | $q_i\cdot(k_j + r_{j-i})/\sqrt d$; offsets beyond a limit share a vector | a vector for each offset |
# | T5, [Raffel et al., 2020](https://arxiv.org/abs/1910.10683) | $q_i\cdot k_j/\sqrt d + b_{j-i}$; far offsets share a number, in buckets (T5 itself leaves out $\sqrt d$) | a number for each bucket and head |
# | ALiBi, [Press et al., 2022](https://arxiv.org/abs/2108.12409) | $q_i\cdot k_j/\sqrt d - m\,\lvert j - i\rvert$ | nothing; a slope $m$ for each head |


# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    add    x      .
    .      p      .
    rot    qk     v
    rel    score  .
    .      norm   .
    .      mix    mix
    """,
    nodes={
        "x": cu.Box("embeddings X"), "p": cu.Box("project"),
        "add": cu.Box("sinusoidal, learned: + P", color="wash"),
        "qk": cu.Box("Q, K"), "v": cu.Box("V"),
        "rot": cu.Box("rotary: turn", color="wash"),
        "score": cu.Box("score, scale", shape="(n, n)"),
        "rel": cu.Box("Shaw, T5, ALiBi: + a table", color="wash", shape="(n, n)"),
        "norm": cu.Box("normalize"), "mix": cu.Box("mix: weights × V"),
    },
    arrows=["add -> x -> p -> qk -> score -> norm -> mix", "p -> v -> mix", "rot -> qk", "rel -> score"],
    alt="The steps of self-attention from top to bottom. Sinusoidal and learned positions are added to the embeddings, rotary "
    "ones turn queries and keys, and those of Shaw, T5 and ALiBi add a table to the scores. The values get none of the last two.",
)  # fmt: skip


# %%
def offsets(n):
    return torch.arange(n) - torch.arange(n)[:, None]  # (n, n): j − i


def shaw(Q, table):
    """Q (…, n, d), vectors for offsets −r … r (2r + 1, d) → added to Q Kᵀ."""
    r = len(table) // 2
    vectors = table[offsets(Q.shape[-2]).clamp(-r, r) + r]  # (n, n, d)
    return torch.einsum("...id, ijd -> ...ij", Q, vectors)


def bucket(offset):
    """T5: offsets up to 7 have a bucket each, others share; + 16 to the right."""
    distance = offset.abs()
    shared = 8 + (8 * (distance.clamp(min=8) / 8).log() / math.log(128 / 8)).long()
    return torch.where(distance < 8, distance, shared.clamp(max=15)) + 16 * (offset > 0)


def alibi(n, slope):
    return -slope * offsets(n).abs()


# %%
slope = 0.5  # try 0.1 … 2.0
print(offsets(4))
relative, Q = RelativeKeys(8, farthest=2), torch.randn(2, 5, 8)
same_shaw = torch.allclose(shaw(Q, relative.table), relative(Q), atol=1e-6)
lefts = [1, 7, 8, 11, 12, 15, 16, 32, 90, 91, 999]
buckets_of = dict(zip(lefts, bucket(-torch.tensor(lefts)).tolist(), strict=True))
same_buckets = torch.equal(bucket(offsets(500)), offset_buckets(offsets(500)))
print(f"distance to the left: bucket {buckets_of}")
print("equal to course_utils: Shaw", same_shaw, "buckets", same_buckets)
print("ALiBi, factors of query 0:", alibi(4, slope)[0].exp())

# %% [markdown]
# Row 0 of the matrix: seen from query 0, the keys lie 0, 1, 2, 3 to the right.
# T5's bucket of a distance $o$ from 8 on is $8 + \lfloor 8\ln(o/8)/\ln 16\rfloor$, by hand for 16: $8 + 8\ln 2/\ln 16 = 10$; from 91 on all share number 15.
# Shaw's scores and the buckets are the package's.
# ALiBi multiplies weights by 1, 0.61, 0.37, 0.22 before they are normalized.
# (In the paper a causal mask hides what is to the right; here the distance counts to both sides.)
#
# ## A task where order decides
#
# 16 *different* tokens out of 64 stand in random order.
# At each place, name **the token three places before**.
# Without order the output depends on the token at this place and on the set of the 15 others, all equally likely: nobody can be right more often than $1/15 = 6.7\,\%$.
#
# The network is as small as possible: embedding, one self-attention with one head, output layer.
# Each kind of positions has its own line.
# The loss should begin near $\ln 64 = 4.16$, that of a guess among 64 tokens.


# %%
class Reader(nn.Module):
    """Embedding, self-attention, output layer; `kind` says where positions enter."""

    def __init__(self, kind, vocabulary=64, dim=64):
        super().__init__()
        self.kind = kind
        self.embedding = nn.Embedding(vocabulary, dim)
        self.output = nn.Linear(dim, vocabulary)
        self.W_Q, self.W_K, self.W_V = (nn.Linear(dim, dim) for _ in range(3))
        if kind == "sinusoidal":
            self.positions = cu.SinusoidalPositions(dim, max_len=64)
        if kind == "learned":
            self.positions = cu.LearnedPositions(dim, max_len=64)
        if kind == "Shaw":
            self.relative = RelativeKeys(dim, farthest=15)
        if kind == "T5":
            self.relative = RelativeBias(num_heads=1)

    def forward(self, tokens, start=0, with_weights=False):  # start: of token 0
        x = self.embedding(tokens)  # (batch, n, dim)
        if self.kind in ("sinusoidal", "learned"):
            x = self.positions(x, start=start)
        Q, K, V = self.W_Q(x), self.W_K(x), self.W_V(x)  # project
        if self.kind == "rotary":
            Q, K = rotary(Q), rotary(K)
        scores = Q @ K.mT  # score
        if self.kind == "Shaw":
            scores = scores + self.relative(Q)
        scores = scores / math.sqrt(Q.shape[-1])  # scale
        if self.kind == "T5":
            scores = scores + self.relative(tokens.shape[-1])
        if self.kind == "ALiBi":
            scores = scores + alibi(tokens.shape[-1], 0.5)
        weights = scores.softmax(dim=-1)  # normalize
        logits = self.output(weights @ V)  # mix
        return (logits, weights) if with_weights else logits


# %%
tasks = {  # tokens (batch, n) → the answer at each place; −100 where there is none
    "three before": lambda tokens: F.pad(tokens[:, :-3], (3, 0), value=-100),
    "the first": lambda tokens: tokens[:, :1].expand(tokens.shape),
}


def sequences(count, length, generator):  # different tokens in random order
    return torch.rand(count, 64, generator=generator).argsort(dim=1)[:, :length]


def summed_loss(reader, tokens, task="three before", start=0):  # and how many places
    answers, logits = tasks[task](tokens), reader(tokens, start=start)
    loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten(), reduction="sum")
    return loss, (answers != -100).sum()


batch = sequences(64, 16, torch.Generator().manual_seed(0))
count = 5 * 64 * 64 + 4 * 64  # embedding and four layers; their biases
products = 64 * (16 * 4 * 64 * 64 + 2 * 16 * 16 * 64)  # four layers; scores and mixing
counted = {"expected": count, "operations": products, "lr": 5e-3}
cu.before_training(Reader("rotary"), batch, summed_loss, **counted)


# %%
def train(kind, seed, task="three before", farthest_start=0, steps=300):
    """A reader trained on 16 tokens, which begin at a position 0 … farthest_start."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    reader = Reader(kind)
    optimizer = torch.optim.Adam(reader.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps)
    for _ in range(steps):
        tokens = sequences(64, 16, generator)
        start = int(torch.randint(farthest_start + 1, (), generator=generator))
        loss, places = summed_loss(reader, tokens, task, start)
        optimizer.zero_grad()
        (loss / places).backward()
        optimizer.step()
        schedule.step()
    return reader


# %%
@torch.no_grad()
def tested(reader, task, length):
    """On 300 new sequences: share right at each place, and the mean weights."""
    tokens = sequences(300, length, torch.Generator().manual_seed(123))
    logits, weights = reader(tokens, with_weights=True)
    answers = tasks[task](tokens)
    hits = (logits.argmax(dim=-1) == answers).float()
    hits = hits.masked_fill(answers == -100, math.nan)
    return hits.mean(dim=0), weights.mean(dim=0)


reader = train("rotary", seed=0)
right_16, on_16 = tested(reader, "three before", 16)
print(f"rotary, trained here: {right_16.nanmean():.2f} right among 16 tokens")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
runs = cu.stored_runs("positions", "reading")


def reached(number, task, kind, steps=900, farthest_start=0):
    """The number that each of the stored seeds reached."""
    fits = {"kind": kind, "task": task, "steps": steps, "farthest_start": farthest_start}
    return [run.result[number] for run in runs if fits.items() <= run.config.items()]


kinds = ["none", "sinusoidal", "learned", "rotary"]
inside = {kind: reached("inside", "three before", kind, steps=300) for kind in kinds}
looks = {
    (run.config["task"], run.config["kind"]): torch.tensor(run.examples[0]["weights"])
    for run in cu.stored_runs("positions", "looking")
}
ends = {
    kind: dict.fromkeys(f"{n:.2f}" for n in (min(found), max(found)))
    for kind, found in inside.items()
}
looks_16 = [*(looks["three before", kind] for kind in kinds[:3]), on_16]
cu.show_heatmaps(
    torch.stack(looks_16), width=9, height=2.7,
    titles=[f"{kind}: {' to '.join(both)}" for kind, both in ends.items()],
    alt="Mean weights of four trained readers over 16 places. Without positions: an even pale blue. Sinusoidal, learned and "
    "rotary: a dark line three places to the left of the diagonal.",
)  # fmt: skip

# %% [markdown]
# The titles have the shares of three stored seeds; the rotary map is from this page.
# Without positions 0.06 to 0.07, as calculated; with any of the three 1.00, and the weights lie where they have to be, three places to the left.
# (Rows 0 to 2 have no answer, which the loss ignores, and look anywhere.)

# %% jupyter={"source_hidden": true}
cu.quiz("positions", "without_order")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A shift is one rotation; 16 rows of 64 columns have another matrix, too."):
    assert moved < 1e-4
    fits, fails, rotation = (misfits[column].tolist() for column in head)
    assert max(fits[0], fits[2], fits[3]) < 1e-3 and fits[1] > 0.9
    assert fails[0] < 0.01 and fails[2] > 0.3 and fails[3] > 0.9
    assert rotation[0] < 1e-4 and rotation[2] < 1e-4
    assert (similar[40:50].flip(0) - similar[51:61]).abs().max() < 1e-4

with cu.guard("Rotary knows offsets alone; without positions 1/15, with them the right keys."):
    changes = {n: (m[1:, 1:] - m[:-1, :-1]).abs().max() for n, m in score_maps.items()}
    assert changes["rotary"] < 1e-3 < 0.1 < changes["added sinusoids"]
    assert abs(one[2] @ one[3] - 0.540) < 1e-3 and abs(one[7] @ one[8] - 0.540) < 1e-3
    assert max(inside["none"]) < 0.1 and right_16.nanmean() > 0.97
    assert min(min(inside[kind]) for kind in kinds[1:]) > 0.97
    lines = [weights.diagonal(-3).mean() for weights in looks_16]
    assert lines[0] < 0.1 and min(lines[1:]) > 0.4

# %% [markdown]
# ## Beyond the trained length
#
# All readers saw 16 tokens at a time.
# Now they get 64, for the same task.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Which reader still names the token three before at places 20 to 63, nine times out of ten?",
    ["sinusoidal and rotary", "sinusoidal alone", "rotary alone", "all three"],
    answer="rotary alone",
    wrong={
        "sinusoidal and rotary": "The formula extends. Does the matrix that was learned from 16 rows?",
        "sinusoidal alone": "The formula extends. Does the matrix that was learned from 16 rows?",
        "all three": "Rows 16 to 63 of the learned table: what did training make of them?",
    },
    why="Its scores know the offset alone, and the offset −3 was seen in training at every place. The tables have rows that "
    "training never visited. How much farther it goes stands below.",
)


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def draw_places(task, live, alt, below=()):
    """Accuracy at each of 64 places: seed 0 in full, `live` where it was trained here, two more seeds dashed."""
    picture, panels = cu.subplots(
        1 + bool(below), 3, width=9, height=5.4 if below else 2.5, sharey="row", squeeze=False, alt=alt
    )  # fmt: skip
    for ax, kind in zip(panels[0], kinds[1:], strict=True):
        ax.axvspan(0, 15.5, color="0.9")
        for run in runs:
            case = [run.config[name] for name in ("kind", "task", "steps", "farthest_start")]
            if case == [kind, task, 300, 0]:
                seed, curve = run.config["seed"], torch.tensor(run.curves["right at 64"]).T
                style = {"color": cu.COLORS["query"], "linestyle": "--", "linewidth": 1}
                if not seed:
                    curve = (range(64), live[kind]) if kind in live else curve
                    style = {"color": cu.COLORS["key"]}
                ax.plot(*curve, **style)
        ax.set(xlabel="place (gray: trained)", ylim=(-0.04, 1.04), title=kind)
    for ax, weights in zip(panels[-1], below, strict=False):
        cu.heatmap(ax, weights, xlabel="place of the key", ylabel=None, vmax=0.5)
        ax.set_title("mean weights, dark: 0.5 or more", fontsize=8)
    panels[0, 0].set_ylabel("share right")
    panels[0, 1].plot([], [], color=cu.COLORS["key"], label="seed 0")
    panels[0, 1].plot([], [], "--", color=cu.COLORS["query"], linewidth=1, label="seeds 1, 2")
    panels[0, 1].legend(loc="center right")
    if below:
        panels[1, 0].set_ylabel("place of the query")
    return picture


at_64 = tested(reader, "three before", 64)[0]
fig = draw_places(
    "three before",
    {"rotary": at_64},
    "Share of right answers at each of 64 places, three seeds. All are near 1 on the 16 trained places. Beyond, sinusoidal "
    "and learned positions fall to nearly 0 at once, sinusoidal ones with a few peaks; rotary ones stay near 1.",
)
fig

# %% [markdown]
# Blue is seed 0 (rotary: the reader of this page), dashed are two others.
# In gray nearly all is right, among 64 tokens: their number alone does little harm.
# Beyond, **learned** positions fall to 0: rows 16 to 63 are the random numbers of the start.
# **Sinusoidal** ones fall as well, but for a few lucky places, although "three to the left" is the same rotation everywhere.
# Section 2 warned of this, but is not the cause: with 8 columns 16 rows do determine the matrix, and such a reader fails as well.
# **Rotary** ones go on.
# How far?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
farther = pd.DataFrame([r.config | r.result for r in cu.stored_runs("positions", "farther")])
farther = farther.drop(columns="seed").groupby("kind", sort=False).agg(["min", "max"])
lengths = list(farther.columns.unique(0))
pd.DataFrame(
    {
        f"{length} tokens": [f"{low:.2f} … {high:.2f}" for low, high in farther[length].to_numpy()]
        for length in lengths
    },
    index=farther.index,
)

# %% [markdown]
# Among 1,024 tokens the rotary readers fail, although −3 is the offset that they have learned: training fitted their scores at 31 offsets, and nothing says what a score is at the others.
# With so many of these, some are higher than that at −3.
# Shaw's vectors, one for all that is far, go farther.
#
# **Change the task**: name the *first* token, at every place.
# Now the distance to look back grows with the place.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The rotary reader, trained to name the first of 16 tokens: where among 64 does place 40 look most?",
    [
        "at place 0, the first",
        "near place 24, about 16 to the left",
        "at place 37, three to the left",
        "at all places alike",
    ],
    answer="near place 24, about 16 to the left",
    wrong={
        "at place 0, the first": "From place 40 the first token has the offset −40. Was it ever seen?",
        "at place 37, three to the left": "That was the other task. Where was the first token in training?",
        "at all places alike": "The scores are the same turns as before. What did they learn about offsets down to −15?",
    },
    why="Its scores know offsets alone. The first token was always the one farthest to the left, at most 15 away, and this is "
    "what the scores have learned to prefer. An offset of −40 was never seen.",
)

# %%
first_reader = train("learned", seed=0, task="the first")
first_right, on_64 = tested(first_reader, "the first", 64)
looks_64 = {kind: looks.get(("the first", kind), on_64) for kind in kinds[1:]}
for kind, weights in looks_64.items():
    row = f"place 40: key {weights[40].argmax()} most, {weights[40, 0]:.2f} on key 0"
    print(f"{kind:10} {row}")
print(f"learned, trained here: {first_right[20:].mean():.2f} right beyond")
deviation = 1.0  # try 0.0 … 1.0
loud, louder = copy.deepcopy(first_reader), []
for _ in range(5):
    loud.positions.table.data[16:] = deviation * torch.randn(48, 64)
    louder.append(tested(loud, "the first", 64)[0][20:].mean().item())
print(f"rows 16 to 63 drawn with {deviation}:", [round(x, 2) for x in louder])

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig = draw_places(
    "the first",
    {"learned": first_right},
    "Above, the share of right answers at each of 64 places on the other task: learned positions stay near 0.9, "
    "sinusoidal ones differ by seed, rotary ones are right at about places 10 to 17 alone. Below, the weights of 64 queries "
    "over 64 keys: sinusoidal, pale columns at key 0 and others, a dark one at 56; learned, one dark column at key 0; rotary, the "
    "first ten queries look at keys near 60, queries 10 to 17 at key 0, later ones about 16 places to the left.",
    list(looks_64.values()),
)
fig

# %% [markdown]
# The order is reversed, and the maps show why.
# **Learned** positions look for row 0 and find it.
# The rows that were never trained do little harm *because they begin small*: drawn with deviation 1 in place of 0.02 the share falls in each of five draws (last two lines).
# **Sinusoidal** ones give key 0 no more than 0.11: the query takes keys that it never met for row 0, above all 56, in gray, too.
# How far differs by seed: one of three is right nearly nine times in ten.
# **Rotary** ones cannot look for a place: "as far to the left as possible" was learned as an offset, and ends near 16.
# Places 0 to 8, in gray, look at keys near 60, at offsets to the right that were never trained.
# Each kind continues *something*; the task decides whether it is right.
#
# ### Show it the positions that it will meet
#
# **SHAPE** ([Kiyono et al., 2021](https://arxiv.org/abs/2109.05644)) begins each training sequence at a random position (here: each batch).
# [Ruoss et al. (2023)](https://arxiv.org/abs/2305.16843) draw random *increasing* positions.
# Again 16 tokens at a time, beginning anywhere between 0 and 48: in code, `farthest_start=48`.
# The table has all kinds on both tasks, **each trained for 900 steps** unless the row says otherwise: the least and the largest share of three stored seeds (beyond: places 20 to 63).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
rows_shown = {kind: (kind,) for kind in [*kinds, "Shaw", "T5"]}
rows_shown |= {f"{kind}, starts 0 … 48": (kind, 900, 48) for kind in ("sinusoidal", "learned")}
rows_shown |= {f"the same, {steps} steps": ("learned", steps, 48) for steps in (300, 2700)}
overview = {
    (task, "16 tokens" if number == "inside" else number): [
        f"{min(found):.2f} … {max(found):.2f}"
        for found in (reached(number, task, *row) for row in rows_shown.values())
    ]
    for task in tasks
    for number in ("inside", "beyond")
}
pd.DataFrame(overview, index=list(rows_shown))

# %% [markdown]
# With 16 tokens at a time, the sinusoidal reader is now right at most of 64 places, 0.90 and more.
# Is that the formula?
# At equal steps **learned** positions, which have no formula, gain as well, from at most 0.01 to 0.67 and more.
# Both gain where training visits all rows.
# It has a price: where a sequence begins anywhere, "the first" is no longer row 0, and learned positions fall from at least 0.91 to at most 0.45 there.
# Three times the steps do not repair it: at most 0.22.
#
# On the second task all of **Shaw's** keys 15 or more to the left share one vector: a guess among them would give 0.05, the mean of $1/(i - 14)$, and it has 0.04 to 0.05.
# **T5's** row for the first task is a matter of the rate: each bucket has one number, which has hardly moved after 900 steps; with ten times the rate for these alone all is right beyond.
# On the second its offsets 8 to 11 share a number, and so do 12 to 15, so that even among 16 tokens at most 12.17 of 16 answers can be right, 0.76.
# ALiBi has no row: it was made for a causal mask and many heads.
#
# ### Exercise 4 · Which one would you take?
#
# *open · 5 minutes*
#
# Choose positions for (a) a model that has to find the same tune at another place of a melody; (b) one that reads forms, where line 3 is always the date; (c) a language model trained on 4,000 tokens that has to read 16,000.
# For each, with which task like the two above would you test it, and which result would show that you were wrong?

# %% jupyter={"source_hidden": true}
cu.quiz("positions", "seen_positions")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Rotary goes on to 64 tokens with three before, not to 1,024; starts help."):
    assert farther["64"].min(axis=None) > 0.9 and farther.loc["rotary", ("1024", "max")] < 0.3
    befores = {kind: reached("beyond", "three before", kind, steps=300) for kind in kinds}
    on_offsets = [*befores["rotary"], at_64[20:].mean()]
    assert min(on_offsets) > 0.8 and max(befores["sinusoidal"] + befores["learned"]) < 0.3
    assert first_right[20:].mean() > 0.75
    assert deviation < 1 or max(louder) < first_right[20:].mean() - 0.2
    near = looks_64["rotary"][24:].argmax(dim=1)
    assert ((torch.arange(24, 64) - near).float().mean() - 16).abs() < 4
    moved_too = ("learned", 900, 48)
    price = [reached("beyond", "the first", *row) for row in (moved_too, ("learned",))]
    gain = [reached("beyond", "three before", *row) for row in (("learned",), moved_too)]
    assert max(price[0]) + 0.4 < min(price[1]) and max(gain[0]) + 0.6 < min(gain[1])

# %% [markdown]
# ## Take-aways
#
# - Attention does not see the order.
#   Positions enter at one of three places: added to the embeddings, as a turn of queries and keys, or added to the scores.
# - Sinusoids are pairs that turn.
#   A shift by $k$ is one rotation for all positions (mind the sign), and $p_i\cdot p_{i+k}$ falls with the distance, more smoothly with more columns, alike to both sides.
# - 16 rows of 64 columns have a shift matrix, even if they are random.
#   What fits the rows that were seen need not hold for the next.
# - Rotary and relative positions know offsets, tables know places.
#   Beyond the trained length a place or an offset that training never visited may do anything: for rotary positions no harm at 64 tokens here, and much at 1,024.
#
# Next: [The Transformer](10_transformer.ipynb).
# Why one may add, kinds of decay, the other rotary pairing, positions while writing token by token, and what a causal mask tells are on the further page: [Positions: decay, twins and caches](09_positions_further.ipynb).
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("positions")

# %% [markdown]
# ## References
#
# - Kiyono, S., Kobayashi, S., Suzuki, J. and Inui, K. (2021).
#   [SHAPE: Shifted absolute position embedding for transformers](https://arxiv.org/abs/2109.05644).
#   EMNLP.
# - Press, O., Smith, N. A. and Lewis, M. (2022).
#   [Train short, test long: Attention with linear biases enables input length extrapolation](https://arxiv.org/abs/2108.12409).
#   ICLR.
# - Raffel, C. et al. (2020).
#   [Exploring the limits of transfer learning with a unified text-to-text transformer](https://arxiv.org/abs/1910.10683).
#   JMLR 21.
#   Section 2.1.
# - Ruoss, A. et al. (2023).
#   [Randomized positional encodings boost length generalization of transformers](https://arxiv.org/abs/2305.16843).
#   ACL.
# - Shaw, P., Uszkoreit, J. and Vaswani, A. (2018).
#   [Self-attention with relative position representations](https://arxiv.org/abs/1803.02155).
#   NAACL.
# - Su, J., Lu, Y., Pan, S., Murtadha, A., Wen, B. and Liu, Y. (2021).
#   [RoFormer: Enhanced transformer with rotary position embedding](https://arxiv.org/abs/2104.09864).
#   Section 3.2.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.5.
