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
# **How does attention know which word came first, and what does it do at a place where it has never been?** Self-attention alone
# does not see it. So a vector, an angle or a number has to say it, and there are six usual ways. On the length that a network was
# trained on, most of them work. Then it gets a longer sequence:
#
# ```
# trained    c x q a                     which token stood three before?  which was the first?
# asked      m e c k x q a z o p d t r
# ```
#
# One way answers the first question at nearly all places, and the second at none. For another it is the other way round.
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

# %%
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu

cu.seed_everything(0)

# %%
cu.recall("self_attention", "masks")

# %% [markdown]
# ## Waves
#
# *Section 1 of 6*
#
# In [Self-attention](07_self_attention.ipynb) you saw it: if the tokens are permuted, the outputs are permuted with them, and nothing else
# happens. *Dog* gets the same vector in *dog bites man* and in *man bites dog*. The first idea: add to the embedding $x_i$ a vector $p_i$ that says "I am number $i$", so that the layer reads $X + P$. Which vectors?
#
# | idea | what is wrong with it |
# |---|---|
# | the number $i$ in one column | grows without bound, and is soon much larger than the embedding |
# | the fraction $i/n$ | the third word has another code in each sentence, and "next to" is another distance |
# | $i$ in binary, a bit a column | bounded and unique, but neighbors differ wildly: $7 = 0111$, $8 = 1000$ |
#
# Binary counting has a good core: each column alternates with a period of its own, 2, 4, 8, 16. **Make these steps smooth waves**, and neighbors become similar.
#
# A table $P$ has a row for each position $i = 0, 1, \dots$ and $d$ columns in pairs $j = 0, \dots, d/2 - 1$. Each pair
# holds a sine and a cosine of one frequency $\omega_j$. These are **sinusoidal positions**
# ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.5):
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
same_table = torch.equal(P, cu.sinusoidal_table(60, columns))
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
    middle, P, xlabel="column", ylabel=None, vmin=-1, cmap="PuOr", title="the table P"
)
for ax in (left, middle):
    ax.set_aspect("auto")
fig.colorbar(image, ax=middle)
for column, (name, dash) in zip(
    range(6, 10), [("blue", "-"), ("blue", "--"), ("vermilion", "-"), ("vermilion", "--")], strict=True
):  # fmt: skip
    wave = "cosine" if column % 2 else "sine"
    right.plot(P[:, column], dash, color=cu.COLORS[name], label=f"{column}, {wave}")
right.set(xlabel="position i", xlim=(0, 59), ylim=(-1.1, 2.2), title="columns 6 to 9")
right.legend(frameon=False, ncols=2, fontsize=8, loc="upper center")
fig

# %% [markdown]
# Stripes on the left, waves in the middle, both slower from column to column. With $d = 32$, columns 6 and 7 are a pair with a
# period of $2\pi/\omega_3 = 35$ positions, columns 8 and 9 a pair with 63: from pair to pair the period grows by $10000^{2/32} = 1.78$. The slowest pair has 35,333
# positions, so that over these 60 its sine stays near 0 and its cosine near 1.
#
# ### Exercise 1 · Five numbers on paper
#
# *predict · 5 minutes*
#
# For $d = 4$, (a) to (d) to two decimals: (a) the sum of the entries of $p_0$; (b) $p_7 \cdot p_7$, the sum of the squares; (c) $p_0 \cdot p_1$; (d) $p_5 \cdot p_6$, without computing
# $\sin 5$ (which theorem about $\cos(a - b)$ helps?); (e) after how many positions, as a whole number, does the slow pair come back to where it began?


# %% tags=["exercise", "predict"]
def predicted_products():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5]


# %% tags=["check"]
cu.checks.predicted_products(predicted_products)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_products_solution():
    """Two cosines of 0; sin² + cos² twice; cos 1 + cos 0.01; the same, one step apart; 2π / 0.01."""
    return [2, 2, 1.54, 1.54, 628]


cu.checks.predicted_products(predicted_products_solution)

# %% [markdown]
# ## Moving is turning
#
# *Section 2 of 6*
#
# Why sine *and* cosine? Because a pair can be turned. Take a pair as a point on a circle, with the sine to the right and the
# cosine up. Each step to the next position turns it by the angle $\omega$:

# %%
cu.explore.positions()

# %% [markdown]
# Frequency 1: each step turns by one radian, clockwise, and 44 steps bring the pair back almost to where it was. Frequency 0.01:
# 63 steps turn it by 36 degrees. As a formula, by the addition
# theorems for $\sin(a+b)$ and $\cos(a+b)$, with vectors as rows:
#
# $$(p_{i+k,\,2j},\; p_{i+k,\,2j+1}) = (p_{i,\,2j},\; p_{i,\,2j+1})\begin{pmatrix}\cos k\omega_j & -\sin k\omega_j\\ \sin k\omega_j & \cos k\omega_j\end{pmatrix} .$$
#
# The matrix contains $k$ and not $i$. "Three to the right" is the *same* linear map everywhere, and linear maps are what $W_Q$ and $W_K$
# can learn. **Mind the sign**, with a pencil: at $i = 0$ the pair is $(0, 1)$. Turned by $k\omega = 90°$ it has to become
# $(\sin 90°, \cos 90°) = (1, 0)$: the row $(0, 1)$ picks the lower row of the matrix, $(\sin 90°, \cos 90°)$. With the minus in the other corner it would be
# $(-1, 0)$, position $-k$.


# %%
def shift_matrix(k, dim):
    """(dim, dim): row p_i times it is row p_(i + k), for each i."""
    frequency = 10_000.0 ** (-torch.arange(0, dim, 2) / dim)
    cos, sin = (k * frequency).cos(), (k * frequency).sin()
    blocks = torch.stack([cos, -sin, sin, cos], dim=-1).view(-1, 2, 2)
    return torch.block_diag(*blocks)


offset = 3  # try 1 … 12
S = shift_matrix(offset, columns)
moved = (P[:-offset] @ S - P[offset:]).abs().max()
print(f"P moved forward by {offset}: largest error {moved:.4f}")

# %% [markdown]
# ### Is that special?
#
# Least squares finds the matrix that best carries each row of a table to the row three further, without any theory. We try it on
# sinusoids and on random numbers.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "For which tables is there a matrix that carries every row to the row three further, without error?",
    [
        "the sinusoids alone",
        "the sinusoids, and a random table of 16 rows and 64 columns",
        "the sinusoids, and any random table",
    ],
    answer="the sinusoids, and a random table of 16 rows and 64 columns",
    wrong={
        "the sinusoids alone": "How many equations does a column of the matrix have to meet, and how many unknowns has it?",
        "the sinusoids, and any random table": "With 400 rows and 32 columns: 397 equations for 32 unknowns.",
    },
    why="Each column of the matrix has 64 unknowns and 13 equations, one for each pair of rows: random rows are "
    "independent, so that a solution exists. With 397 equations for 32 unknowns it does not.",
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
# With 400 rows of 32 columns only the sinusoids have such a matrix, and it holds on the next 48 rows, too. With **16 rows of 64 columns the random table has one as
# well**: there are more unknowns than equations. But it is one of many. For the sinusoids, the matrix that was found fits the 16 rows and misses the next 48 by 0.62, although the rotation, which fits as well,
# misses nothing. Sixteen rows do not say which matrix is meant. Keep this in mind for section 6.
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
# It falls fast, by a third within ten positions, and then slowly. Left and right are the same: **the dot product of two positions does not see the direction.** A layer
# sees positions through $W_Q$ and $W_K$ and can learn it: with $S$ for $W_Q$, a query is most similar to the position three to its right.

# %%
cu.quiz("positions", "two_positions")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A shift is one rotation; 16 rows of 64 columns have another matrix, too."):
    assert moved < 1e-4
    fits, fails, rotation = (misfits[column].tolist() for column in head)
    assert max(fits[0], fits[2], fits[3]) < 1e-3 and fits[1] > 0.9
    assert fails[0] < 0.01 and fails[2] > 0.3 and fails[3] > 0.9
    assert rotation[0] < 1e-4 and rotation[2] < 1e-4
    assert (similar[40:50].flip(0) - similar[51:61]).abs().max() < 1e-4

# %% [markdown]
# ## Rotary: turn queries and keys
#
# *Section 3 of 6*
#
# Sinusoids are *added*, and the layer has to find the rotation by itself. **Rotary positions**
# ([Su et al., 2021](https://arxiv.org/abs/2104.09864), section 3.2) leave the embeddings alone and turn queries and keys, pair by pair, by an angle
# proportional to their position. Let $R_i$ turn each pair counterclockwise by $i\,\omega_j$:
#
# $$(a, b)\;\to\;(a\cos i\omega - b\sin i\omega,\;\; a\sin i\omega + b\cos i\omega),\qquad
# (q_i R_i)\cdot(k_j R_j) = q_i\,R_i R_j^\top\,k_j^\top = q_i\,R_{i-j}\,k_j^\top .$$
#
# The score contains the offset and nothing else about positions. By hand, $d = 2$ and $\omega = 1$: $q = k = (1, 0)$ at positions $i$ and $j$ become
# $(\cos i, \sin i)$ and $(\cos j, \sin j)$, with the product $\cos(i - j)$. At positions 2 and 3, as at 7 and 8: $\cos 1 = 0.540$.
#
# ### Exercise 2 · Turn the pairs
#
# *build · 10 minutes*
#
# Write it for `x` (…, length, dim), `dim` even. The pairs are the neighboring columns (0, 1), (2, 3), …, with the frequencies
# $\omega_j = 10000^{-2j/\text{dim}}$; the positions are $0, 1, \dots$ along the axis before the last. `x[..., 0::2]` are the even columns. Do not change `x`. The network of
# section 5 uses your function once it passes.


# %% tags=["exercise", "build"]
def my_rotate(x):
    """(…, length, dim) → the same: pair j of position i turned by i · ω_j."""
    ...


# %% tags=["check"]
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
rotary = cu.choose(my_rotate, cu.rotate)
one = rotary(torch.tensor([1.0, 0.0]).expand(9, 2))
print(f"positions 2 and 3: {one[2] @ one[3]:.3f}; 7 and 8: {one[7] @ one[8]:.3f}")
query, key = torch.randn(2, 1, 64).expand(2, 24, 64)
W_Q, W_K = torch.randn(2, 64, 64) / 8
P24 = sinusoids(24, 64)
score_maps = {
    "added sinusoids": (query + P24) @ W_Q @ ((key + P24) @ W_K).T / 8,
    "rotary": rotary(query) @ rotary(key).T / 8,
}

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.show_heatmaps(
    torch.stack([m - m.mean() for m in score_maps.values()]), titles=list(score_maps), vmin=-2, vmax=2,
    cmap="PuOr", width=7, xlabel="position of the key", ylabel="position of the query",
    alt="Two maps of scores between 24 positions. Added sinusoids: the color changes along the diagonals. Rotary: each "
    "diagonal has one color.",
)  # fmt: skip

# %% [markdown]
# Both products are 0.540, as by hand. The maps show the scores of one query vector and one key vector, repeated at 24 positions. On the right each diagonal has one color: "two to the left" has the same score at every place. With *added* sinusoids and two random matrices it has not. Values are *not* turned, each head is turned on its own, and it happens in every layer.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Rotary scores depend on the offset alone; with added sinusoids not."):
    changes = {n: (m[1:, 1:] - m[:-1, :-1]).abs().max() for n, m in score_maps.items()}
    assert changes["rotary"] < 1e-3 < 0.1 < changes["added sinusoids"]
    assert abs(one[2] @ one[3] - 0.540) < 1e-3 and abs(one[7] @ one[8] - 0.540) < 1e-3

# %% [markdown]
# ## Learned and relative positions
#
# *Section 4 of 6*
#
# **Learned**: why design a table if one can learn it? BERT, GPT-2 and the vision transformer make $P$ a parameter with `max_len` rows.


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
# Outputs and gradients are the package's. Rows 12 to 19 get none: **a row that is never visited is never trained.** Beyond row 19 there is nothing.
#
# **[Relative positions](C_glossary.ipynb#relative-positions)** leave the tokens alone. They add to the *score* of query $i$ and key $j$ something that depends on the offset $j - i$:
#
# | | score | learned |
# |---|---|---|
# | [Shaw et al., 2018](https://arxiv.org/abs/1803.02155) | $q_i\cdot(k_j + r_{j-i})/\sqrt d$; offsets beyond a limit share a vector | a vector for each offset |
# | T5, [Raffel et al., 2020](https://arxiv.org/abs/1910.10683) | $q_i\cdot k_j/\sqrt d + b_{j-i}$; far offsets share a number, in buckets | a number for each bucket and head |
# | ALiBi, [Press et al., 2022](https://arxiv.org/abs/2108.12409) | $q_i\cdot k_j/\sqrt d - m\,\lvert j - i\rvert$ | nothing; a slope $m$ for each head |


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
relative, (Q, K, V) = cu.RelativeKeys(8, farthest=2), torch.randn(3, 2, 5, 8)
same_shaw = torch.allclose(shaw(Q, relative.table), relative(Q), atol=1e-6)
lefts = [1, 7, 8, 11, 12, 16, 32, 64, 128, 999]
buckets_of = dict(zip(lefts, bucket(-torch.tensor(lefts)).tolist(), strict=True))
same_buckets = torch.equal(bucket(offsets(500)), cu.offset_buckets(offsets(500)))
print(f"distance to the left: bucket {buckets_of}")
print("equal to course_utils: Shaw", same_shaw, "buckets", same_buckets)
cu.equal(
    lambda Q, K, V: (Q @ K.mT / math.sqrt(8) + alibi(5, slope)).softmax(dim=-1) @ V,
    lambda Q, K, V: F.scaled_dot_product_attention(Q, K, V, alibi(5, slope).to(Q)),
    Q, K, V,
)  # fmt: skip

# %% [markdown]
# Row 0 of the matrix: seen from query 0, the keys lie 0, 1, 2, 3 to the right. T5's buckets by hand:
# distance 16 is in bucket $8 + 8\ln 2/\ln 16 = 10$, and from 128 on all share number 15. Shaw's scores and the buckets are the package's. The last line: ALiBi is a table that is added to the scores, and PyTorch's operator adds a mask of numbers: outputs and three gradients
# are equal. (In the paper a causal mask hides what is to the right; here the distance counts to both sides.)
#
# ### Exercise 3 · Find the bug
#
# *bug · 6 minutes*
#
# This function was copied from code for tensors (n, batch, d). Here they are (batch, n, d). Look at what is added to the tokens of sequence 1, and at a second call with the same tokens. Find the two mistakes, and write
# `fixed_add`. A sequence longer than the table has to be an error.


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


# %% tags=["check"]
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
# ## A task where order decides
#
# *Section 5 of 6*
#
# 16 *different* tokens out of 64 stand in random order. At each place, name **the token three places before**. Without order
# the output depends on the token at this place and on the set of the 15 others, each of which is equally likely: nobody can be right more often than $1/15 = 6.7\,\%$.
#
# The network is as small as possible: embedding, one self-attention with one head, output layer. Each kind of positions has its own line. Then, as before every training, what can be counted: the loss should
# begin near $\ln 64 = 4.16$, that of a guess among 64 tokens.


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
            self.relative = cu.RelativeKeys(dim, farthest=15)
        if kind == "T5":
            self.relative = cu.RelativeBias(num_heads=1)

    def forward(self, tokens, start=0, with_weights=False):
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


kinds = ["none", "sinusoidal", "learned", "rotary"]
readers = {kind: train(kind, seed=0) for kind in kinds}
for kind, reader in readers.items():
    print(f"{kind:10} {tested(reader, 'three before', 16)[0].nanmean():.2f} right")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.show_heatmaps(
    torch.stack([tested(reader, "three before", 16)[1] for reader in readers.values()]),
    titles=kinds, width=9, height=2.7,
    alt="Mean weights of four trained readers over 16 places. Without positions: an even gray. Sinusoidal, learned and "
    "rotary: a dark line three places to the left of the diagonal.",
)  # fmt: skip

# %% [markdown]
# Without positions 0.06, as calculated; with any of the three 1.00, and the weights lie where they have to be, three places to the left. (Rows 0 to 2 have no answer, which the loss ignores, and look anywhere.)

# %%
cu.quiz("positions", "without_order")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Without positions 1/15 and luck; with each of the three the right keys."):
    scores_16 = [tested(reader, "three before", 16) for reader in readers.values()]
    shares = [right.nanmean() for right, _ in scores_16]
    assert shares[0] < 0.1 and min(shares[1:]) > 0.97
    lines = [weights.diagonal(-3).mean() for _, weights in scores_16]
    assert lines[0] < 0.1 and min(lines[1:]) > 0.4

# %% [markdown]
# ## Beyond the trained length
#
# *Section 6 of 6*
#
# All readers saw 16 tokens at a time. Now they get 64, and nothing about the task has changed: three before is three before.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Which reader still names the token three before at places 20 to 63, nine times of ten?",
    ["sinusoidal and rotary", "sinusoidal alone", "rotary alone", "all three"],
    answer="rotary alone",
    wrong={
        "sinusoidal and rotary": "The formula extends. Does the matrix that was learned from 16 rows?",
        "sinusoidal alone": "The formula extends. Does the matrix that was learned from 16 rows?",
        "all three": "Rows 16 to 63 of the learned table: what did training make of them?",
    },
    why="Its scores know the offset alone, and the offset −3 was seen in training at every place. The tables have rows that "
    "training never visited, and W_Q and W_K were fitted to 16 rows.",
)


# %% tags=["hide-input"] jupyter={"source_hidden": true}
runs = cu.stored_runs("positions", "reading")


def draw_places(task, trained, alt, below=()):
    """Accuracy at each of 64 places: the readers of this page in full, the stored seeds 1 and 2 dashed."""
    picture, panels = cu.subplots(
        1 + bool(below), 3, width=9, height=5.4 if below else 2.5, sharey="row", squeeze=False, alt=alt
    )  # fmt: skip
    for ax, (kind, reader) in zip(panels[0], trained.items(), strict=True):
        ax.axvspan(0, 15.5, color="0.9")
        ax.plot(tested(reader, task, 64)[0], color=cu.COLORS["blue"])
        for run in runs:
            case = [run.config[name] for name in ("kind", "task", "steps", "farthest_start")]
            if case == [kind, task, 300, 0] and run.config["seed"]:
                curve = torch.tensor(run.curves["right at 64"]).T
                ax.plot(*curve, "--", color=cu.COLORS["vermilion"], linewidth=1)
        ax.set(xlabel="place (gray: trained)", ylim=(-0.04, 1.04), title=kind)
    for ax, weights in zip(panels[-1], below, strict=False):
        cu.heatmap(ax, weights, xlabel="place of the key", ylabel=None, vmax=0.5)
    panels[0, 0].set_ylabel("share right")
    if below:
        panels[1, 0].set_ylabel("place of the query")
    return picture


fig = draw_places(
    "three before",
    {kind: readers[kind] for kind in kinds[1:]},
    "Share of right answers at each of 64 places, three seeds. All are near 1 on the 16 trained places. Beyond, sinusoidal "
    "and learned positions fall to nearly 0 at once; rotary ones stay near 1.",
)
fig

# %% [markdown]
# Blue is this page's seed, orange are two others. **Learned** positions fall to 0: rows 16 to 63 are the random numbers of the start. **Sinusoidal** ones fall as well, but for a few lucky places, although
# "three to the left" is the same rotation everywhere: 16 rows do not determine the matrix (section 2). A formula that extends is not a network that extends. **Rotary** ones go on.
#
# So, rotary positions extrapolate? **Change the task**: name the *first* token, at every place. Now the distance to look back grows with the place.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Name the first token, trained on 16 places: who is best at places 20 to 63?",
    ["rotary", "learned", "sinusoidal"],
    answer="learned",
    wrong={
        "rotary": "At place 40 the first token has the offset −40. Was it ever seen?",
        "sinusoidal": "Row 0 looks the same as in training. Can a new query find it, and nothing else?",
    },
    why="Every query has learned to look for row 0, which was trained at every step, and rows 16 to 63 are small random "
    "vectors that hardly disturb. Rotary positions know offsets alone, and these offsets are new.",
)

# %%
firsts = {kind: train(kind, seed=0, task="the first") for kind in kinds[1:]}
first_tests = {kind: tested(firsts[kind], "the first", 64) for kind in firsts}
for kind, (share, weights) in first_tests.items():
    print(f"{kind:10} {share[20:].mean():.2f} right beyond,", end=" ")
    print("place 40 looks most at place", weights[40].argmax().item())

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig = draw_places(
    "the first",
    firsts,
    "Above, the share of right answers at each of 64 places on the other task: learned positions stay near 0.9, "
    "sinusoidal ones differ by seed, rotary ones are at 0 beyond the trained places. Below, the weights of 64 queries over "
    "64 keys: sinusoidal, columns at key 0 and further right; learned, one dark column at key 0; rotary, a diagonal "
    "band about 16 places to the left.",
    [weights for _, weights in first_tests.values()],
)
fig

# %% [markdown]
# The order is reversed, and the maps show why. **Learned** positions look for row 0 and find it. **Sinusoidal** ones find it, too, and other places beside it, which ones depends on the seed. **Rotary** ones cannot look for a
# place: "as far to the left as possible" was learned as an offset, and ends near 16.
# Each kind continues *something*, and the task decides whether this is the right thing.
#
# ### Show it the positions that it will meet
#
# **SHAPE** ([Kiyono et al., 2021](https://arxiv.org/abs/2109.05644)) begins each training sequence at a random position.
# [Ruoss et al. (2023)](https://arxiv.org/abs/2305.16843) go further and draw random *increasing* positions. Again 16 tokens at a time, beginning anywhere between 0 and `farthest`. The table has all kinds on both tasks, the least and the largest share of three stored seeds; beyond is places 20 to 63.

# %%
farthest = 48  # try 0 … 48
shifted = train("sinusoidal", seed=0, farthest_start=farthest)
after = tested(shifted, "three before", 64)[0]
print(f"sinusoidal, 300 steps, places 20 to 63: {after[20:].mean():.2f}")


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def spread(kind, task, number, steps=300, farthest_start=0):
    """The least and the largest of the stored seeds, as text."""
    fits = {"kind": kind, "task": task, "steps": steps, "farthest_start": farthest_start}
    found = [run.result[number] for run in runs if fits.items() <= run.config.items()]
    return f"{min(found):.2f} … {max(found):.2f}"


rows_shown = {kind: (kind, 300, 0) for kind in [*kinds, "Shaw", "T5", "ALiBi"]}
rows_shown |= {f"{kind}, starts 0 … 48": (kind, 900, 48) for kind in ("sinusoidal", "learned")}
overview = {
    (task, "16 tokens" if number == "inside" else number): [
        spread(kind, task, number, steps, last) for kind, steps, last in rows_shown.values()
    ]
    for task in tasks
    for number in ("inside", "beyond")
}
pd.DataFrame(overview, index=list(rows_shown))

# %% [markdown]
# Never more than 16 tokens at a time, and now the sinusoidal reader is right at most of 64 places. Is that the formula? The table has three stored seeds of 900 steps: **learned** positions, which have no formula, gain as
# well, from at most 0.01 to 0.67 and more. It helps both that training visits all rows. The price is in the last column: where a sequence begins anywhere, "the first" is no longer row 0, and learned positions fall from at least 0.88 to at most 0.45.
#
# **Shaw's** vectors do what rotary positions do: an offset, seen at every place. On the second task all keys 15 or more to the left share one vector. **T5's** far offsets share a number already
# inside the trained length, so that its reader cannot find the first token even there. **ALiBi** gets no place right in the first task: its bias is 0 for the token itself and −1.5 three places away, and nothing is learned about
# places. It was made for language models. (Trained three times as long, seed 0 gives the same order of the kinds in both columns named beyond, up to ties at 0.00.)
#
# ### Exercise 4 · Which one would you take?
#
# *open · 5 minutes*
#
# Choose positions for (a) a model that has to find the same tune at another place of a melody; (b) one that reads forms, where line 3 is always the date; (c) a language model trained on 4,000 tokens that has to
# read 16,000. For each, with which task like the two above would you test it, and which result would show that you were wrong?

# %%
cu.quiz("positions", "seen_positions")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Rotary goes on with three before, learned with the first; starts help."):
    befores = [tested(r, "three before", 64)[0][20:].mean() for r in readers.values()]
    assert befores[3] > 0.8 and max(befores[1:3]) < 0.3
    on_first = {kind: share[20:].mean() for kind, (share, _) in first_tests.items()}
    assert on_first["learned"] > 0.75 and on_first["rotary"] < 0.1
    near = first_tests["rotary"][1][24:].argmax(dim=1)
    assert ((torch.arange(24, 64) - near).float().mean() - 16).abs() < 4
    assert farthest < 40 or after[20:].mean() > befores[1] + 0.3

# %% [markdown]
# ## Take-aways
#
# - Attention does not see the order. Positions enter at one of three places: added to the embeddings, as a turn of queries and keys, or added to the scores.
# - Sinusoids are pairs that turn. A shift by $k$ is one rotation for all positions (mind the sign), and $p_i\cdot p_{i+k}$ falls with the distance, alike to both sides.
# - 16 rows of 64 columns have a shift matrix, whatever they contain. What fits the rows that were seen need not hold for the next.
# - Rotary and relative positions know offsets, tables know places. Beyond the trained length each works where the task needs what it knows and training has visited it.
#
# Next: [The Transformer](10_transformer.ipynb). Why one may add, kinds of decay, the other rotary pairing, positions while writing token by token, and what a causal mask
# tells are on the further page: [Positions: decay, twins and caches](09_positions_further.ipynb).
#
# ## Quiz

# %%
cu.quiz("positions")

# %% [markdown]
# ## References
#
# - Kiyono, S., Kobayashi, S., Suzuki, J. and Inui, K. (2021). [SHAPE: Shifted absolute position embedding for transformers](https://arxiv.org/abs/2109.05644). EMNLP.
# - Press, O., Smith, N. A. and Lewis, M. (2022). [Train short, test long: Attention with linear biases enables input length extrapolation](https://arxiv.org/abs/2108.12409). ICLR.
# - Raffel, C. et al. (2020). [Exploring the limits of transfer learning with a unified text-to-text transformer](https://arxiv.org/abs/1910.10683). JMLR 21. Section 2.1.
# - Ruoss, A. et al. (2023). [Randomized positional encodings boost length generalization of transformers](https://arxiv.org/abs/2305.16843). ACL.
# - Shaw, P., Uszkoreit, J. and Vaswani, A. (2018). [Self-attention with relative position representations](https://arxiv.org/abs/1803.02155). NAACL.
# - Su, J., Lu, Y., Pan, S., Murtadha, A., Wen, B. and Liu, Y. (2021). [RoFormer: Enhanced transformer with rotary position embedding](https://arxiv.org/abs/2104.09864). Section 3.2.
# - Vaswani, A. et al. (2017). [Attention is all you need](https://arxiv.org/abs/1706.03762). NeurIPS. Section 3.5.
