# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Multi-head attention
#
# One attention returns one weighted average. **What if a query needs two different things at once?**
#
# The answer is to attend several times, each time on another projection of the same vectors. In this chapter you will
#
# - **prove** that one head cannot do two look-ups, and see what exactly stands in its way;
# - **build** $h$ heads, first as a loop, then as one matrix product and two transposes, and prove both equal to
#   PyTorch's module, gradients and masks included;
# - **explain** why heads cost no parameters, and why $\mathbf W_o$ makes their outputs a *sum*;
# - **tell** projecting an embedding from slicing it, and say what slicing loses;
# - **train** 1, 2, 4 and 8 heads on a task whose right maps you know beforehand, and take heads away one by one.
#
# About 75 minutes. You need [Scoring functions](03_scoring_functions.ipynb): scaled dot-product attention and masks.

# %%
import copy
import itertools
import math

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import course_utils as cu
from course_utils.lessons.multi_head_attention.lookups import (
    LookupNetwork,
    lookup_accuracy,
    train_lookups,
    two_lookups,
)
from course_utils.lessons.multi_head_attention.lookups import (
    without_head as copy_without_head,
)

cu.seed_everything(0)

# %% [markdown]
# ## Two questions, one average
#
# A cabinet has eight drawers, A to H, with a white ball ($+1$) or a black one ($-1$) in each. A request such as "CF"
# asks for the ball in C *and* the ball in F, in this order. Drawers are keys, balls are values, requests are queries.
# **Which attention maps would answer all requests?** We can say so before any training: one map that finds the first
# drawer asked for, and one that finds the second.

# %%
task = two_lookups()  # 8 drawers
assert len(task.requests) == 8 * 7 and len(task.balls) == 2**8  # all requests, all fillings
shown = ["AB", "BA", "CF", "FC", "DH", "HD", "EG", "GE"]
rows = [task.requests.index(request) for request in shown]
first, second = (F.one_hot(task.pairs[:, look_up], 8).float() for look_up in (0, 1))
cu.show_heatmaps(
    torch.stack([first[rows], second[rows]]),
    queries=shown,
    keys=task.drawers,
    xlabel="Drawers",
    ylabel="Requests",
    titles=["first look-up", "second look-up"],
    width=7.6,
    height=3.0,
    alt="Two maps of eight requests over eight drawers. In the first each row has weight 1 on the "
    "first drawer of its request, in the second on the second drawer.",
)

# %% [markdown]
# Row "CF" has all its weight on C in one map and on F in the other. A single map can do one or the other, or something
# in between: weight $\alpha$ on C and $\beta$ on F. It then returns
#
# $$m = \alpha\, b_C + \beta\, b_F + \text{(the rest)},$$
#
# one number for two questions. By hand, with nothing on the rest:
#
# | C, F | $\alpha = \beta = \tfrac12$ | $\alpha = 0.7,\ \beta = 0.3$ |
# |---|---|---|
# | $+,+$ | $1$ | $1$ |
# | $+,-$ | $0$ | $0.4$ |
# | $-,+$ | $0$ | $-0.4$ |
# | $-,-$ | $-1$ | $-1$ |
#
# With equal weights, "white, black" and "black, white" give the same 0. With 0.7 and 0.3 the sign of $m$ is right for
# C. No single threshold on $m$, however, is right for F: the order from top to bottom is white, black, white, black.
#
# ### What exactly is impossible?
#
# Let the two answers be read off $m$ *linearly*, as in a network whose last layer is linear: white if
# $u_1 m + c_1 > 0$, and white if $u_2 m + c_2 > 0$. Then **of the four combinations at most three are answered
# right**, because
#
# - to be right about C for all four, the two numbers with white C must lie above the two with black C (or below, but
#   $+,+$ is never below $-,-$), so $\alpha - \beta > \beta - \alpha$, that is $\alpha > \beta$;
# - to be right about F for all four, in the same way, $\beta > \alpha$.
#
# Both at once cannot be. The keys do not show the balls, so the weights, and with them this argument, are the same for
# every filling: **one head answers at most ¾ of all cases.** Let a computer look for a counterexample.

# %%
signs = torch.tensor(list(itertools.product([1.0, -1.0], repeat=2)))  # (4, 2): balls in C and F
best = 0
for alpha in torch.linspace(0, 1, 101):
    m = signs @ torch.stack([alpha, 1 - alpha])  # (4,)
    cuts = torch.linspace(-1.01, 1.02, 204)[:, None]
    above = m > cuts  # every threshold, (cuts, 4)
    sides = torch.cat([above, ~above])  # u > 0 and u < 0
    right_c = sides == (signs[:, 0] > 0)  # (2 · cuts, 4)
    right_f = sides == (signs[:, 1] > 0)
    both = (right_c[:, None] & right_f).sum(dim=-1)  # each rule for C with each rule for F
    best = max(best, both.max().item())
assert best == 3  # of 4: reached, never passed
assert (signs @ torch.tensor([0.7, 0.3])).unique().numel() == 4  # yet four different numbers

# %% [markdown]
# A fair warning, since many texts say more than is true: the *information* is not always lost. For $\alpha = 0.7$ the
# four values of $m$ differ, and a nonlinear layer could tell them apart, if values are few and exact. One head cannot
# hand two separate answers to what comes next; it can hide them in one number.
#
# ### The same for k look-ups
#
# The argument has a short general form. Let $k$ answers be $\operatorname{sign}$ of $\mathbf A\mathbf b + \mathbf c$,
# where $\mathbf b \in \{-1, 1\}^k$ are the balls asked for and $\mathbf A$ has what the layer does with them. To be
# right for every $\mathbf b$, row $i$ needs $A_{ii} > \sum_{j \ne i} |A_{ij}|$: the ball in question must outvote all
# others together. Such a matrix (*strictly diagonally dominant*) is always invertible, so it has rank $k$. With scalar
# averages $m_1, \dots, m_h$ in between, its rank is at most $h$. Hence **$h \ge k$: as many heads as look-ups.**

# %%
k = 4
off_diagonal = torch.randn(1000, k, k) * (1 - torch.eye(k))
outvoted = off_diagonal.abs().sum(dim=-1)  # (1000, k)
dominant = off_diagonal + torch.diag_embed(outvoted + 0.01)
every_filling = torch.tensor(list(itertools.product([1.0, -1.0], repeat=k))).T  # (k, 16)
assert ((dominant @ every_filling).sign() == every_filling).all()  # right for every filling
assert (torch.linalg.matrix_rank(dominant) == k).all()

through_two = torch.randn(1000, k, 2) @ torch.randn(1000, 2, k)  # two averages in between
assert ((through_two @ every_filling).sign() != every_filling).any(dim=-1).any(dim=-1).all()

# %% [markdown]
# ## From one head to h
#
# Head $i$ has three matrices of its own, with $d/h$ rows each, and attends on what they project
# ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.2):
#
# $$\mathbf H_i = \mathrm{Attention}\big(\mathbf Q \mathbf W_q^{(i)\top},\ \mathbf K \mathbf W_k^{(i)\top},\ \mathbf V \mathbf W_v^{(i)\top}\big) \in \mathbb R^{n \times d/h}, \qquad \mathrm{output} = [\mathbf H_1, \dots, \mathbf H_h]\, \mathbf W_o^\top .$$
#
# Here $d$ is `embed_dim`, $d/h$ is `head_dim`, $[\dots]$ joins along the last axis, and a matrix acts as in
# `nn.Linear`: $\mathbf x \mapsto \mathbf x\mathbf W^\top$. Each head scales by its *own* size, $1/\sqrt{d/h}$. (Queries,
# keys and values could have three sizes, and heads any width; that all sizes are $d$ and the width is $d/h$ is the
# choice that lets one matrix product serve all heads.)
#
# A pencil example: two tokens, $d = 4$, $h = 2$, and projections that pick columns. Head 1 reads columns 1 and 2, head
# 2 columns 3 and 4:
#
# $$\mathbf X = \begin{pmatrix} 1 & 0 & 0 & 2\\ 0 & 1 & 0 & 2\end{pmatrix}: \quad \text{scores of head 1: } \tfrac{1}{\sqrt 2}\begin{pmatrix}1&0\\0&1\end{pmatrix}, \quad \text{head 2: } \tfrac{1}{\sqrt 2}\begin{pmatrix}4&4\\4&4\end{pmatrix}.$$
#
# Head 1 tells the tokens apart, head 2 does not. One head with all four columns adds the products up and would see
# $\begin{pmatrix}5&4\\4&5\end{pmatrix}$: two opinions in one number.

# %%
x = torch.tensor([[1.0, 0.0, 0.0, 2.0], [0.0, 1.0, 0.0, 2.0]])
head_1, head_2 = x[:, :2], x[:, 2:]
assert (head_1 @ head_1.T).tolist() == [[1, 0], [0, 1]]
assert (head_2 @ head_2.T).tolist() == [[4, 4], [4, 4]]
assert torch.equal(x @ x.T, head_1 @ head_1.T + head_2 @ head_2.T)

weights = [cu.dot_product_weights(head, head) for head in (head_1, head_2)]
assert (weights[0].diagonal() > 0.6).all()
assert (weights[1] == 0.5).all()

# %% [markdown]
# ### First as a loop
#
# The formula, word for word, as a function of lists with one matrix per head:


# %%
def attention_heads(queries, keys, values, W_q, W_k, W_v, attn_mask=None):
    """One (batch, queries, head_dim) per head; W_q, W_k, W_v are lists of (head_dim, embed_dim)."""
    heads = []
    for w_q, w_k, w_v in zip(W_q, W_k, W_v, strict=True):
        q, k, v = queries @ w_q.T, keys @ w_k.T, values @ w_v.T
        heads.append(cu.scaled_dot_product_attention(q, k, v, attn_mask))
    return heads


def multi_head_loop(queries, keys, values, W_q, W_k, W_v, w_o, attn_mask=None):
    """The heads joined, times W_oᵀ: (batch, queries, embed_dim)."""
    heads = attention_heads(queries, keys, values, W_q, W_k, W_v, attn_mask)
    return torch.cat(heads, dim=-1) @ w_o.T


# %% [markdown]
# The lists matter. Lecture slides sometimes write the loop with *the same* `W_q`, `W_k`, `W_v` in each round. That is
# $h$ copies of one head: the joined vector repeats itself, and everything above about one head still holds.

# %%
embed_dim, num_heads = 12, 3
head_dim = embed_dim // num_heads
tokens = torch.randn(2, 5, embed_dim)
W_q, W_k, W_v = (
    [torch.randn(head_dim, embed_dim) / math.sqrt(embed_dim) for _head in range(num_heads)]
    for _role in range(3)
)
own = attention_heads(tokens, tokens, tokens, W_q, W_k, W_v)
shared = attention_heads(tokens, tokens, tokens, W_q[:1] * 3, W_k[:1] * 3, W_v[:1] * 3)
assert torch.equal(shared[0], shared[1]) and torch.equal(shared[0], shared[2])
rank = torch.linalg.matrix_rank
assert rank(torch.cat(shared, dim=-1).flatten(0, 1)) <= head_dim  # of ten rows with 12 numbers
assert rank(torch.cat(own, dim=-1).flatten(0, 1)) > head_dim

# %% [markdown]
# ### Then as one product and two transposes
#
# A loop of small products keeps a processor waiting. Stack the $h$ matrices $\mathbf W_q^{(i)}$ on top of each other:
# one $d \times d$ matrix $\mathbf W_q$, and in $\mathbf X\mathbf W_q^\top$ the columns of head 1 come first, then those
# of head 2, and so on. All heads can then attend in one batched product, if the head becomes an axis *before* the
# length. **What moves where?** We follow each number of one sequence with six tokens, 14 features and two heads.

# %%
labels = torch.arange(6 * 14.0).view(1, 6, 14)  # number = 14 · token + column
split = labels.unflatten(-1, (2, 7)).transpose(1, 2)  # (1, 6, 2, 7) → (1, 2, 6, 7)
assert torch.equal(split[0, 0], labels[0, :, :7])  # head 1: the first seven columns
assert torch.equal(split[0, 1], labels[0, :, 7:])
merged = split.transpose(1, 2).flatten(-2)  # (1, 6, 2, 7) → (1, 6, 14): the way back
assert torch.equal(merged, labels)

careless = labels.reshape(1, 2, 6, 7)  # the right shape, without a transpose
assert careless[0, 0, 1].tolist() == list(range(7, 14))  # "token 2" is the rest of token 1


# %% tags=["hide-input"]
def draw_numbers(ax, numbers, title):
    """A matrix with its numbers; columns 0–6 of the original are blue, 7–13 yellow."""
    for row, column in itertools.product(*map(range, numbers.shape)):
        number = int(numbers[row, column])
        blue = number % 14 < 7
        color = cu.COLORS["blue"] if blue else cu.COLORS["yellow"]
        ax.fill_between([column, column + 1], row, row + 1, color=color, linewidth=0)
        ax.text(
            column + 0.5, row + 0.5, number, ha="center", va="center", fontsize=8,
            color="white" if blue else "black",
        )  # fmt: skip
    ax.hlines(range(len(numbers) + 1), 0, numbers.shape[1], color="white", linewidth=1.5)
    ax.set(xlim=(0, numbers.shape[1]), ylim=(len(numbers), 0), xticks=[])
    ax.set_title(title, fontsize=10)
    ax.set_yticks([row + 0.5 for row in range(6)], range(1, 7))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


fig, axes = cu.subplots(
    2,
    3,
    width=8.8,
    height=3.6,
    width_ratios=[2, 1, 1],
    alt="Above, a matrix of six tokens with seven blue and seven yellow columns is split into a "
    "blue matrix of six tokens for head 1 and a yellow one for head 2. Below, a reshape without "
    "transpose gives matrices of the right size whose rows alternate between blue and yellow.",
)
draw_numbers(axes[0, 0], labels[0], "six tokens, 14 features")
draw_numbers(axes[0, 1], split[0, 0], "head 1: transposed")
draw_numbers(axes[0, 2], split[0, 1], "head 2")
axes[1, 0].set_axis_off()
axes[1, 0].text(
    0.97, 0.5, "the same numbers after\nreshape alone: tokens 1–3 fill\n“head 1”, tokens 4–6 “head 2”",
    ha="right", va="center", fontsize=10,
)  # fmt: skip
draw_numbers(axes[1, 1], careless[0, 0], "“head 1”: reshape only")
draw_numbers(axes[1, 2], careless[0, 1], "“head 2”")
axes[0, 0].set_ylabel("token")
axes[1, 1].set_ylabel("row")
fig

# %% [markdown]
# Above, each head keeps all six tokens and gets its own seven columns; a row is still a token. Below, a reshape alone
# has the right shape and the wrong meaning: its rows alternate between the halves of one token, and the last three
# tokens never meet the first three. No error is raised.
#
# The way back is the same in reverse: transpose, then flatten. The library calls the two `split_heads` and
# `merge_heads`. (Older code goes on and folds the heads into the batch: (batch · heads, length, head_dim). The
# operator takes the four axes as they are.)


# %%
def multi_head(queries, keys, values, w_q, w_k, w_v, w_o, num_heads, attn_mask=None):
    """The same with one (embed_dim, embed_dim) matrix for all heads of a role."""
    q = cu.split_heads(queries @ w_q.T, num_heads)  # (batch, heads, queries, head_dim)
    k = cu.split_heads(keys @ w_k.T, num_heads)
    v = cu.split_heads(values @ w_v.T, num_heads)
    heads = cu.scaled_dot_product_attention(q, k, v, attn_mask)
    return cu.merge_heads(heads) @ w_o.T  # (batch, queries, embed_dim)


assert torch.equal(cu.split_heads(labels, 2), split)
assert torch.equal(cu.merge_heads(split), labels)

# %% [markdown]
# ### Exercise 1 · Split
# *6 minutes · ★*
#
# Write `split_heads` yourself: (batch, length, embed_dim) → (batch, heads, length, head_dim), head $i$ with the $i$-th
# block of neighboring columns.


# %% tags=["exercise"]
def split_into_heads(x, num_heads):
    """(batch, length, embed_dim) → (batch, num_heads, length, embed_dim / num_heads)."""
    ...


# %% tags=["check"]
cu.checks.split_into_heads(split_into_heads)


# %% tags=["solution"] jupyter={"source_hidden": true}
def split_into_heads(x, num_heads):
    """(batch, length, embed_dim) → (batch, num_heads, length, embed_dim / num_heads)."""
    batch, length, embed_dim = x.shape
    cut = x.view(batch, length, num_heads, embed_dim // num_heads)
    return cut.transpose(1, 2)


cu.checks.split_into_heads(split_into_heads)

# %% [markdown]
# ### Equal, to the gradient
#
# Is the loop the same as the product, the library's `MultiHeadAttention` and PyTorch's `nn.MultiheadAttention`? We copy
# one set of weights into all four and compare outputs and gradients, with a different number of queries than keys and
# masks of both kinds. PyTorch's module keeps $\mathbf W_q, \mathbf W_k, \mathbf W_v$ stacked in `in_proj_weight`, and
# its masks have the opposite meaning: True = must *not* attend.

# %%
ours = cu.MultiHeadAttention(embed_dim, num_heads, bias=False)
torchs = nn.MultiheadAttention(embed_dim, num_heads, bias=False, batch_first=True)
w_q, w_k, w_v = ours.query_proj.weight, ours.key_proj.weight, ours.value_proj.weight
w_o = ours.out_proj.weight
with torch.no_grad():
    torchs.in_proj_weight.copy_(torch.cat([w_q, w_k, w_v]))
    torchs.out_proj.weight.copy_(w_o)

valid_lens = torch.tensor([7, 4])
padding = cu.padding_mask(valid_lens, 7)  # (2, 1, 1, 7)
per_pair = torch.rand(5, 7) < 0.7
per_pair[:, 0] = True  # every query may attend to something
masks = {"none": None, "padding": padding, "both": padding & per_pair}


def by_torch(q, k, v, attn_mask):
    """nn.MultiheadAttention, whose masks are (batch · heads, queries, keys) and turned round."""
    if attn_mask is not None:
        attn_mask = ~attn_mask.expand(2, num_heads, 5, 7).flatten(0, 1)
    return torchs(q, k, v, attn_mask=attn_mask, need_weights=False)[0]


ways = {
    "loop": lambda q, k, v, mask: multi_head_loop(
        q, k, v, *(w.chunk(num_heads) for w in (w_q, w_k, w_v)), w_o, mask
    ),
    "product": lambda q, k, v, mask: multi_head(q, k, v, w_q, w_k, w_v, w_o, num_heads, mask),
    "nn.MultiheadAttention": by_torch,
}

# %%
for mask in masks.values():
    q = torch.randn(2, 5, embed_dim, requires_grad=True)
    k, v = (torch.randn(2, 7, embed_dim, requires_grad=True) for _ in range(2))
    direction = torch.randn(2, 5, embed_dim)  # gradients of a random sum of outputs
    expected = ours(q, k, v, mask)
    gradients = torch.autograd.grad(expected, [q, k, v, w_q, w_k, w_v, w_o], direction)
    for name, way in ways.items():
        outputs = way(q, k, v, mask)
        torch.testing.assert_close(outputs, expected)
        if name == "nn.MultiheadAttention":
            inputs = [q, k, v, torchs.in_proj_weight, torchs.out_proj.weight]
            actual = torch.autograd.grad(outputs, inputs, direction)
            actual = [*actual[:3], *actual[3].chunk(3), actual[4]]
        else:
            actual = torch.autograd.grad(outputs, [q, k, v, w_q, w_k, w_v, w_o], direction)
        for one, other in zip(actual, gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)

# %% [markdown]
# From here on we use the library's module. A mask (batch, 1, 1, keys) has an axis for the heads, so each head gets the
# same one; a mask (1, heads, 1, keys) would give each its own.
#
# ## Joined means added
#
# Why the last matrix $\mathbf W_o$? Cut its columns into $h$ blocks, one per head, and multiply out:
#
# $$[\mathbf H_1, \dots, \mathbf H_h]\,\mathbf W_o^\top \;=\; \sum_{i=1}^h \mathbf H_i\, \mathbf W_o^{(i)\top}, \qquad \mathbf W_o = \big[\mathbf W_o^{(1)}, \dots, \mathbf W_o^{(h)}\big],\quad \mathbf W_o^{(i)} \in \mathbb R^{d \times d/h}.$$
#
# To join and to project is to *add*: each head writes its own vector of all $d$ numbers, and the layer returns the
# sum ([Elhage et al., 2021](https://transformer-circuits.pub/2021/framework/index.html)). By hand: two heads with one
# number each, 3 and 5, and $\mathbf W_o = \begin{pmatrix}1&2\\0&1\end{pmatrix}$ give $3\cdot(1, 0) + 5\cdot(2, 1) =
# (13, 5)$. Head 2 writes to both outputs.

# %%
joined = torch.tensor([3.0, 5.0])
small = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
assert (joined @ small.T).tolist() == [13, 5]
assert (3 * small[:, 0] + 5 * small[:, 1]).tolist() == [13, 5]

heads = torch.stack(own, dim=1)  # (2, 3, 5, 4), from the loop above
blocks = w_o.chunk(num_heads, dim=1)  # three (12, 4)
added = sum(heads[:, i] @ blocks[i].T for i in range(num_heads))
torch.testing.assert_close(added, cu.merge_heads(heads) @ w_o.T)

# %% [markdown]
# ### Exercise 2 · What each head adds
# *8 minutes · ★★*
#
# Given the heads' outputs (batch, heads, queries, head_dim) and $\mathbf W_o$ in `nn.Linear`'s layout (out_dim, heads ·
# head_dim), return each head's summand: (batch, heads, queries, out_dim).


# %% tags=["exercise"]
def head_contributions(heads, weight):
    """What each head adds to the output: (batch, heads, queries, out_dim)."""
    ...


# %% tags=["check"]
cu.checks.head_contributions(head_contributions)


# %% tags=["solution"] jupyter={"source_hidden": true}
def head_contributions(heads, weight):
    """What each head adds to the output: (batch, heads, queries, out_dim)."""
    num_heads = heads.shape[1]
    blocks = weight.unflatten(1, (num_heads, -1))  # (out_dim, heads, head_dim)
    return torch.einsum("bhqd,ohd->bhqo", heads, blocks)


cu.checks.head_contributions(head_contributions)

# %% [markdown]
# ## What do more heads cost?
#
# Each of the four matrices is $d \times d$, however it is cut: with biases $4d^2 + 4d$ parameters, **whatever $h$ is**.
# Products, too, stay the same, since $h$ maps of $n^2$ scores with $d/h$ multiplications each are $n^2 d$. Only the
# maps become more: $h n^2$ weights, if somebody writes them down (the fused operator does not, [Scoring functions](03_scoring_functions.ipynb)).

# %%
records = []
tokens = torch.randn(1, 10, 64)
for h in (1, 2, 4, 8, 64):
    layer = cu.MultiHeadAttention(64, h)
    count = sum(parameter.numel() for parameter in layer.parameters())
    with cu.record_attention(layer) as maps:
        layer(tokens, tokens, tokens)
    with FlopCounterMode(display=False) as flops:
        cu.split_heads(tokens, h) @ cu.split_heads(tokens, h).transpose(-2, -1)
    assert count == 4 * 64**2 + 4 * 64
    assert maps[""].shape == (1, h, 10, 10)
    products = flops.get_total_flops() // 2  # a product and a sum count as two
    records.append((h, 64 // h, count, products, maps[""].numel()))
assert {products for *_, products, _weights in records} == {10 * 10 * 64}
pd.DataFrame(
    records, columns=["heads", "head_dim", "parameters", "products in q·k", "weights"]
).set_index("heads")

# %% [markdown]
# What is paid for more heads is *width*: head_dim shrinks. With $d/h$ numbers, the matrix that compares queries with
# keys, $\mathbf W_q^{(i)\top}\mathbf W_k^{(i)}$, has rank at most $d/h$
# ([Bhojanapalli et al., 2020](https://arxiv.org/abs/2002.07028)). The extreme case is easy to see. A head of width 1 has
# scores $q\,k_j$: for $q > 0$ the largest $k_j$ wins, for $q < 0$ the smallest. **Of $n$ keys, only two can ever
# win.** With width 2, keys on a circle can all win. The original paper found a balance on translation: one head was 0.9
# BLEU worse than the best number of heads, and too many were worse as well
# ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 6.2).

# %%
queries, keys = torch.randn(1000, 1), torch.randn(8, 1)
winners = (queries @ keys.T).argmax(dim=1).unique()
assert set(winners.tolist()) == {keys.argmin().item(), keys.argmax().item()}

angle = torch.arange(8) * 2 * math.pi / 8
circle = torch.stack([angle.cos(), angle.sin()], dim=1)
assert (torch.randn(1000, 2) @ circle.T).argmax(dim=1).unique().tolist() == list(range(8))

# %% [markdown]
# ## Slicing is not projecting
#
# There is a cheaper way to have $h$ heads: cut the *embedding* into $h$ slices and give each head one slice, with small
# matrices of size $d/h \times d/h$. Some lectures and libraries define multi-head attention so, without
# $\mathbf W_o$ ([Kak, 2025](https://engineering.purdue.edu/DeepLearn/)).


# %%
class SlicedAttention(nn.Module):
    """Head i sees slice i of the embedding and nothing else; the outputs are joined."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads, size = num_heads, embed_dim // num_heads
        self.query_proj, self.key_proj, self.value_proj = (
            nn.ModuleList(nn.Linear(size, size, bias=False) for _head in range(num_heads))
            for _role in range(3)
        )

    def forward(self, queries, keys, values, attn_mask=None):
        slices = (tensor.chunk(self.num_heads, dim=-1) for tensor in (queries, keys, values))
        heads = []
        for i, (q, k, v) in enumerate(zip(*slices, strict=True)):
            q, k, v = self.query_proj[i](q), self.key_proj[i](k), self.value_proj[i](v)
            heads.append(cu.scaled_dot_product_attention(q, k, v, attn_mask))
        return torch.cat(heads, dim=-1)


# %% [markdown]
# How does it relate to the real thing? Slice $i$ of $\mathbf x$ times its small matrix is the $i$-th part of
# $\mathbf x$ times a large matrix that has the small ones on its diagonal and zeros elsewhere:
#
# $$\big[\mathbf x_1\mathbf A_1^\top, \dots, \mathbf x_h\mathbf A_h^\top\big] = \mathbf x \begin{pmatrix}\mathbf A_1&&\\&\ddots&\\&&\mathbf A_h\end{pmatrix}^{\!\top}.$$
#
# So slicing *is* multi-head attention with **block-diagonal** projections and $\mathbf W_o = \mathbf I$: a special case
# with $3d^2/h$ parameters, and no mixing anywhere.

# %%
sliced = SlicedAttention(embed_dim, num_heads)
special = [
    torch.block_diag(*(small.weight for small in role))
    for role in (sliced.query_proj, sliced.key_proj, sliced.value_proj)
]
identity = torch.eye(embed_dim)
x = torch.randn(2, 5, embed_dim)
mask = cu.causal_mask(5)
torch.testing.assert_close(
    sliced(x, x, x, mask), multi_head(x, x, x, *special, identity, num_heads, mask)
)
assert sum(p.numel() for p in sliced.parameters()) == 3 * embed_dim**2 // num_heads
cu.show_heatmaps(
    torch.stack([special[0].abs(), w_q.abs()]),
    titles=["sliced: W_q", "projected: W_q"],
    xlabel="Features of the embedding",
    ylabel="Features of the heads",
    vmax=0.7,
    width=6.6,
    height=2.9,
    alt="Sizes of the entries of two query projections of 12 by 12. Sliced: three blocks of 4 by 4 "
    "on the diagonal, zeros elsewhere. Projected: no zeros.",
)

# %% [markdown]
# Left, four rows belong to a head, and it reads four columns. Right, each head reads everything. **What does no mixing
# mean for the output?** We change slice 2 of every token and ask which outputs notice.


# %%
def changed_outputs(layer, change):
    """Which of the output dimensions move when `change` is added to the embeddings."""
    difference = layer(x + change, x + change, x + change) - layer(x, x, x)
    return (difference.abs().amax(dim=(0, 1)) > 1e-6).int().tolist()


second_slice = torch.zeros(2, 5, embed_dim)
second_slice[..., 4:8] = torch.randn(2, 5, 4)
assert changed_outputs(sliced, second_slice) == [0] * 4 + [1] * 4 + [0] * 4
assert changed_outputs(ours, second_slice) == [1] * 12

# %% [markdown]
# However many sliced layers are stacked, slice 1 never hears of slice 2: it is $h$ narrow networks side by side. (In a
# transformer the feed-forward layers between them do mix, and repair part of it.) And a projection may choose any
# *basis*: turn all embeddings by an orthogonal matrix $\mathbf R$, turn the weights with them, and nothing has changed.
# Slices have no such freedom; what a head sees is an accident of the order of the features.

# %%
R = torch.linalg.qr(torch.randn(embed_dim, embed_dim))[0]
turned = x @ R
before = multi_head(x, x, x, w_q, w_k, w_v, w_o, num_heads)
after = multi_head(turned, turned, turned, w_q @ R, w_k @ R, w_v @ R, w_o, num_heads)
torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-5)

# %% [markdown]
# ## Two heads for two look-ups
#
# Back to the cabinet. A request has a one-hot label of its first drawer in features 1–8 and of its second drawer in
# 9–16. A drawer carries its label *once*, in features 1–8. A value is the ball in feature 1. The network is one
# attention and a linear readout of two numbers, whose signs are the answer. **Can we write down weights for two heads
# that are always right?**
#
# Head 1 compares features 1–8 of the request with the label, head 2 compares features 9–16 with the *same* label: so
# $\mathbf W_k$ copies the label into both halves, and $\mathbf W_q$ is a multiple of the identity. In numbers: with
# factor 30 the right drawer has score $30/\sqrt 8 = 10.6$ and the seven others 0, so its weight is
# $e^{10.6} / (e^{10.6} + 7) = 0.9998$. $\mathbf W_v$ copies the ball to features 1 and 9, one for each head.

# %%
network = LookupNetwork(embed_dim=16, num_heads=2)
copy_labels = torch.zeros(16, 16)
copy_labels[:8, :8] = copy_labels[8:, :8] = torch.eye(8)
with torch.no_grad():
    for parameter in network.parameters():
        parameter.zero_()
    network.attention.query_proj.weight.copy_(30 * torch.eye(16))
    network.attention.key_proj.weight.copy_(copy_labels)
    network.attention.value_proj.weight.copy_(copy_labels)
    network.attention.out_proj.weight.copy_(torch.eye(16))
    network.readout.weight[0, 0] = network.readout.weight[1, 8] = 1.0

with cu.record_attention(network) as maps:
    network(*task.inputs(task.balls[:1]))
by_hand = maps["attention"][0]  # (heads, requests, drawers)
torch.testing.assert_close(by_hand, torch.stack([first, second]), atol=1e-3, rtol=0.0)
assert lookup_accuracy(network).tolist() == [1, 1, 1]

# %% [markdown]
# All 56 requests are answered right for all 256 fillings, and the maps are those of the first picture. (`two_lookups`
# and `LookupNetwork` are two short files; look into them.)
#
# **Does gradient descent find it, and what do 1, 4 and 8 heads do?** 300 steps of Adam for each number of heads and
# each of three seeds. `lookup_accuracy` tries *all* cases, so there is no luck in the test.

# %%
networks = {}
for h, seed in itertools.product((1, 2, 4, 8), (0, 1, 2)):
    cu.seed_everything(seed)
    networks[h, seed] = train_lookups(LookupNetwork(16, h), seed=seed)

accuracy = {key: lookup_accuracy(network) for key, network in networks.items()}
for (h, _seed), (_first, _second, both) in accuracy.items():
    assert both <= 0.75 if h == 1 else both > 0.99  # the proof says 0.75; more heads: solved

# %%
records = []
for h in (1, 2, 4, 8):
    each = torch.stack([accuracy[h, seed] for seed in (0, 1, 2)])  # (seeds, 3)
    better, worse = each[:, :2].amax(dim=1), each[:, :2].amin(dim=1)
    assert (better > 0.95).all()
    if h == 1:
        assert (worse < 0.65).all() and (each[:, 2] > 0.4).all()
    means = torch.stack([better, worse, each[:, 2]]).mean(dim=1).tolist()
    records.append([f"{10 * round(10 * mean)} %" for mean in means])
pd.DataFrame(
    records,
    columns=["the ball it knows better", "the other ball", "both"],
    index=pd.Index((1, 2, 4, 8), name="heads"),
)

# %% [markdown]
# (Means of three seeds, rounded to tens.) All four networks have the same number of parameters. One head gets one ball
# right and guesses the other: it settles at one half, below the three quarters it could reach. Two heads solve the
# task, and four and eight heads solve it as well: for two look-ups they are no better.
#
# **Do two trained heads divide the work as we predicted?** Nothing forces them to: if head 1 put 0.6 on C and 0.4 on
# F, and head 2 the reverse, then $3m_1 - 2m_2$ would still be the ball in C. And nothing says which head takes which
# look-up. So we look at three seeds.

# %%
learned = []
for seed in (0, 1, 2):
    with cu.record_attention(networks[2, seed]) as maps:
        networks[2, seed](*task.inputs(task.balls[:1]))
    learned.append(maps["attention"][0])  # (2, 56, 8)

for maps in learned:
    role = torch.stack([(maps * first).sum(-1).mean(-1), (maps * second).sum(-1).mean(-1)], dim=1)
    taken = role.argmax(dim=1)  # (heads,): the look-up that each head does
    assert sorted(taken.tolist()) == [0, 1]  # one each
    assert (role.amax(dim=1) > 0.7).all() and (role.amin(dim=1) < 0.15).all()

# %%
cu.show_heatmaps(
    torch.stack([maps[:, rows] for maps in learned], dim=1),
    queries=shown,
    keys=task.drawers,
    xlabel="Drawers",
    ylabel="Requests",
    titles=[f"head {head}, seed {seed}" for head in (1, 2) for seed in (0, 1, 2)],
    width=8.4,
    height=4.6,
    alt="Six maps: two heads in rows, three seeds in columns. In each column one head has its weight "
    "on the first drawer of every request and the other head on the second.",
)

# %% [markdown]
# In each column one head does the first look-up and the other the second, and which is
# which depends on the seed: exchange two heads, together with their blocks of $\mathbf W_o$, and you have the same
# function. "Head 2 does this" is a statement about one trained network, never about multi-head attention.
#
# ### Taking heads away
#
# **What is a head worth?** We take it out, that is set its summand $\mathbf H_i\mathbf W_o^{(i)\top}$ to zero, and
# count again. First the networks with two heads:

# %%
for seed in (0, 1, 2):
    results = []
    for head in (0, 1):
        ball_1, ball_2, both = lookup_accuracy(copy_without_head(networks[2, seed], head))
        assert max(ball_1, ball_2) > 0.95 and min(ball_1, ball_2) < 0.65  # one answer is a guess
        assert 0.4 < both < 0.65
        results.append(ball_1 > ball_2)
    assert results[0] != results[1]  # another answer for each head

# %% [markdown]
# Each head is needed: without it its ball is a guess, the other ball stays right, and both are right half of the time.
# **And where there are more heads than look-ups?**

# %%
without = {}  # (heads, seed) → share of both right, for each head taken away
for h, seed in itertools.product((2, 4, 8), (0, 1, 2)):
    fewer = [copy_without_head(networks[h, seed], head) for head in range(h)]
    without[h, seed] = torch.stack([lookup_accuracy(network)[2] for network in fewer])

worst = {h: sum(without[h, seed].min() for seed in (0, 1, 2)) / 3 for h in (2, 4, 8)}
assert worst[8] > worst[2] + 0.1
assert all(shares.max() > 0.95 for (h, _seed), shares in without.items() if h > 2)

# %% tags=["hide-input"]
fig, ax = cu.subplots(
    width=7.0,
    height=2.6,
    alt="Accuracy after one head is taken away. Of two heads: one half, for each head and seed. Of "
    "four: from about one half to nearly one. Of eight: mostly close to one.",
)
for (h, seed), shares in without.items():
    x = (2, 4, 8).index(h) + (seed - 1) * 0.18
    color = cu.COLORS[("blue", "vermilion", "green")[seed]]
    ax.plot([x] * h, shares, "os^"[seed], color=color, alpha=0.7, label=f"seed {seed}")
ax.set_xticks(range(3), ["one of 2", "one of 4", "one of 8"])
ax.set(xlabel="head taken away", ylabel="both balls right", xlim=(-0.5, 2.9), ylim=(0.4, 1.04))
ax.axhline(0.5, color="0.6", linestyle=":", linewidth=1)
ax.legend(handles=ax.lines[:3], loc="center right")
fig

# %% [markdown]
# Each mark is one head. With four or eight, work is shared unevenly: in every network at least one head is hardly
# missed, and some are. Trained translators were found to be alike: most heads can be removed at test time with little loss, a few cannot
# ([Michel et al., 2019](https://arxiv.org/abs/1905.10650); [Voita et al., 2019](https://arxiv.org/abs/1905.09418)).
# The conclusion "then train with fewer heads" does not follow: these are statements about *trained* networks.
#
# Move the slider from 1 to 8 and back. With one head, each row is torn between ○ and □. With two, one map has the
# circles and the other the squares; change the seed and they may swap. With eight, single maps are blurred and tell
# less and less, and the number above each says how well the seven others do without it. The dashed line is the ¾ of
# the proof.

# %%
cu.explore.heads(networks)

# %%
peak = {}  # mean over requests and heads of the largest weight
for (h, seed), network in networks.items():
    with cu.record_attention(network) as maps:
        network(*task.inputs(task.balls[:1]))
    maps = maps["attention"][0]
    peak[h, seed] = maps.amax(dim=-1).mean()
    if h == 1:
        assert (maps[0] * first).sum(-1).mean() > 0.2 and (maps[0] * second).sum(-1).mean() > 0.2
for seed in (0, 1, 2):
    assert peak[8, seed] < 0.75 < peak[2, seed]

# %% [markdown]
# ### What slicing costs here
#
# The drawers carry label and ball in features 1–8. A head that sees only features 9–16 has nothing to compare with and
# nothing to return: all its keys and values are zero. One head is left, and by the proof above two slices must fail,
# however long we train. If label and ball happened to stand in *both* halves, slices would do.


# %%
class LabelsInBothHalves(nn.Module):
    """Lays out keys and values anew before a layer, with fixed weights."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, queries, keys, values):
        return self.layer(queries, keys @ copy_labels.T, values @ copy_labels.T)


for seed in (0, 1, 2):
    cu.seed_everything(seed)
    as_given = LookupNetwork(16, 2, attention=SlicedAttention(16, 2))
    laid_out = LookupNetwork(16, 2, attention=LabelsInBothHalves(SlicedAttention(16, 2)))
    assert lookup_accuracy(train_lookups(as_given, seed=seed))[2] <= 0.75
    assert lookup_accuracy(train_lookups(laid_out, seed=seed))[2] > 0.99

# %% [markdown]
# That is the cost: slices work if somebody has laid out the features for them. A projection learns the layout.
#
# ### Exercise 3 · A layer without one head
# *10 minutes · ★★*
#
# Given a `cu.MultiHeadAttention` and the number of a head, counted from 0, return a layer that does the same without
# this head. The layer you are given must not change; the copy's bias stays.


# %% tags=["exercise"]
def without_head(layer, head):
    """A copy of the layer in which one head adds nothing to the output."""
    ...


# %% tags=["check"]
cu.checks.without_head(without_head)


# %% tags=["solution"] jupyter={"source_hidden": true}
def without_head(layer, head):
    """A copy of the layer in which one head adds nothing to the output."""
    layer = copy.deepcopy(layer)
    head_dim = layer.out_proj.in_features // layer.num_heads
    with torch.no_grad():
        layer.out_proj.weight[:, head * head_dim : (head + 1) * head_dim] = 0
    return layer


cu.checks.without_head(without_head)

# %% [markdown]
# ## What goes wrong
#
# **No $\mathbf W_o$.** Take one head away. In the real layer *all* output dimensions change, since every head writes to
# all of them. If only a block of dimensions changes, the heads are slices that were joined and never mixed. This is
# a test you can run on any implementation.

# %%
x = torch.randn(2, 5, 12)
layer = cu.MultiHeadAttention(12, 3)
weights = [p.weight for p in (layer.query_proj, layer.key_proj, layer.value_proj)]
heads = torch.stack(attention_heads(x, x, x, *(w.chunk(3) for w in weights)), dim=1)
fewer = heads.clone()
fewer[:, 1] = 0  # without head 2

joined, joined_fewer = cu.merge_heads(heads), cu.merge_heads(fewer)
moved = (joined != joined_fewer).any(dim=0).any(dim=0)
assert moved.int().tolist() == [0] * 4 + [1] * 4 + [0] * 4  # without W_o: its own block
moved = (layer.out_proj(joined) != layer.out_proj(joined_fewer)).any(dim=0).any(dim=0)
assert moved.all()  # with W_o: everything

# %% [markdown]
# **Scaling by $\sqrt d$ instead of $\sqrt{d/h}$.** The head's dot product has $d/h$ terms. With $\sqrt d$ the scores
# are $\sqrt h$ times too small: variance $1/h$ where it should be 1.

# %%
q, k = (cu.split_heads(torch.randn(64, 20, 256), 16) for _ in range(2))  # head_dim 16
right = (q @ k.transpose(-2, -1) / math.sqrt(256 // 16)).var()
wrong = (q @ k.transpose(-2, -1) / math.sqrt(256)).var()
assert abs(right - 1) < 0.05
assert abs(wrong - 1 / 16) < 0.01

# %% [markdown]
# **Lengths repeated in the wrong order.** Code that folds heads into the batch has rows (sequence 1, head 1),
# (sequence 1, head 2), (sequence 2, head 1), … It must repeat each valid length $h$ times *in a row*. `repeat` repeats
# the whole list instead, and some heads of one sequence get the length of another. Four axes and a mask that
# broadcasts leave no room for this.

# %%
valid_lens = torch.tensor([4, 2])
in_a_row = valid_lens.repeat_interleave(3)  # two sequences, three heads
assert in_a_row.tolist() == [4, 4, 4, 2, 2, 2]
assert valid_lens.repeat(3).tolist() == [4, 2, 4, 2, 4, 2]  # head 2 of sequence 1 loses two tokens

four_axes = cu.padding_mask(valid_lens, 4).expand(2, 3, 1, 4)
assert torch.equal(four_axes.flatten(0, 1).sum(dim=-1)[:, 0], in_a_row)

# %% [markdown]
# **A mean over heads taken for a map.** `nn.MultiheadAttention` returns weights *averaged over the heads* unless told
# otherwise. We give it the weights of our two-look-up network by hand: the average says that the layer attends half to
# C and half to F. No head does.

# %%
torchs = nn.MultiheadAttention(16, 2, bias=False, batch_first=True)
with torch.no_grad():
    torchs.in_proj_weight.copy_(torch.cat([30 * torch.eye(16), copy_labels, copy_labels]))
request = rows[shown.index("CF")]
queries, keys, values = task.inputs(task.balls[:1])

_outputs, averaged = torchs(queries, keys, values)
assert averaged[0, request, [2, 5]].round(decimals=2).tolist() == [0.5, 0.5]  # C and F

_outputs, each = torchs(queries, keys, values, average_attn_weights=False)
assert each[0, :, request].argmax(dim=-1).tolist() == [2, 5]
assert each[0, :, request].max(dim=-1).values.min() > 0.99

# %% [markdown]
# ### Exercise 4 · Find the bug
# *12 minutes · ★★*
#
# This function has run without an error for as long as anyone remembers. With one head it is right. With three, and a
# causal mask, the future leaks: we change token 4, and outputs before it move. The mask is not to blame. Find out what
# is, and write `fixed_multi_head`.


# %%
def buggy_multi_head(x, w_q, w_k, w_v, w_o, num_heads, attn_mask):
    """Multi-head self-attention without biases: x (batch, length, embed_dim)."""
    batch, length, embed_dim = x.shape
    head_dim = embed_dim // num_heads
    q = (x @ w_q.T).view(batch, length, num_heads, head_dim).transpose(1, 2)
    k = (x @ w_k.T).view(batch, length, num_heads, head_dim).transpose(1, 2)
    v = (x @ w_v.T).view(batch, length, num_heads, head_dim).transpose(1, 2)
    scores = q @ k.transpose(-2, -1) / math.sqrt(head_dim)
    weights = scores.masked_fill(~attn_mask, -math.inf).softmax(dim=-1)
    heads = weights @ v
    return heads.reshape(batch, length, embed_dim) @ w_o.T


four = [torch.randn(12, 12) / math.sqrt(12) for _ in range(4)]
later = x.clone()
later[:, 3] += 1.0
for h in (1, 3):
    before, after = (buggy_multi_head(each, *four, h, cu.causal_mask(5)) for each in (x, later))
    leaks = (after[:, :3] - before[:, :3]).abs().max() > 1e-3
    assert leaks == (h == 3)


# %% tags=["exercise"]
def fixed_multi_head(x, w_q, w_k, w_v, w_o, num_heads, attn_mask):
    """Multi-head self-attention without biases: x (batch, length, embed_dim)."""
    ...


# %% tags=["check"]
cu.checks.fixed_multi_head(fixed_multi_head)


# %% tags=["solution"] jupyter={"source_hidden": true}
def fixed_multi_head(x, w_q, w_k, w_v, w_o, num_heads, attn_mask):
    """Multi-head self-attention without biases: x (batch, length, embed_dim)."""
    batch, length, embed_dim = x.shape
    head_dim = embed_dim // num_heads
    q, k, v = (
        (x @ w.T).view(batch, length, num_heads, head_dim).transpose(1, 2) for w in (w_q, w_k, w_v)
    )
    scores = q @ k.transpose(-2, -1) / math.sqrt(head_dim)
    weights = scores.masked_fill(~attn_mask, -math.inf).softmax(dim=-1)
    heads = (weights @ v).transpose(1, 2)  # back to (batch, length, heads, head_dim) first
    return heads.reshape(batch, length, embed_dim) @ w_o.T


cu.checks.fixed_multi_head(fixed_multi_head)

# %% [markdown]
# ## Take-aways
#
# - One head returns one average per query. To hand $k$ independent look-ups to a linear readout takes $k$ heads; the averages of fewer have too small a rank.
# - $h$ heads are one projection, a reshape and a transpose; the way back is the transpose, then the reshape. A reshape alone has the right shape and mixes tokens.
# - Joining the heads and multiplying by $\mathbf W_o$ is adding one summand per head, and each writes to all output dimensions.
# - Heads cost no parameters. They cost width: a head of width $d/h$ compares with rank $d/h$, and with width 1 only two keys can win.
# - Slicing the embedding is the special case of block-diagonal projections. It works only if the features are laid out for it.
#
# ## Quiz

# %%
cu.quiz("multi_head_attention")

# %% [markdown]
# ## References
#
# - Bhojanapalli, S., Yun, C., Rawat, A. S., Reddi, S. J. and Kumar, S. (2020). [Low-rank bottleneck in multi-head attention models](https://arxiv.org/abs/2002.07028). ICML.
# - Elhage, N. et al. (2021). [A mathematical framework for transformer circuits](https://transformer-circuits.pub/2021/framework/index.html). Transformer Circuits Thread.
# - Kak, A. (2025). [Transformers: Learning with Purely Attention Based Networks](https://engineering.purdue.edu/DeepLearn/). Lecture slides, Purdue University: heads as slices of the embedding.
# - Michel, P., Levy, O. and Neubig, G. (2019). [Are sixteen heads really better than one?](https://arxiv.org/abs/1905.10650). NeurIPS.
# - PyTorch. [torch.nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html). Documentation.
# - Vaswani, A., Shazeer, N., Parmar, N., Uszkoreit, J., Jones, L., Gomez, A. N., Kaiser, Ł. and Polosukhin, I. (2017). [Attention is all you need](https://arxiv.org/abs/1706.03762). NeurIPS. Section 3.2.2: multi-head attention.
# - Voita, E., Talbot, D., Moiseev, F., Sennrich, R. and Titov, I. (2019). [Analyzing multi-head self-attention: specialized heads do the heavy lifting, the rest can be pruned](https://arxiv.org/abs/1905.09418). ACL.
