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
# **One attention returns one weighted average.
# What if a query needs two different things at once?**
# The verb of a sentence needs to know *who* does it and *to whom*.
# The answer of nearly all models is to attend several times, each time on another projection of the same vectors.
# Each of these attentions is a **head**.
#
# After this chapter you can
#
# - say which two look-ups one head can do at once, which it cannot, and show both with numbers;
# - cut a tensor into heads and join them again, and recognize the version that has the right shape and the wrong meaning;
# - write multi-head attention as one class, equal to PyTorch's in outputs and gradients;
# - explain why heads cost no parameters, and why joining the heads is adding them;
# - take a head away correctly, and say what follows from that and what does not.
#
# It needs [Self-attention](07_self_attention.ipynb): queries, keys and values as projections $XW_Q$, $XW_K$, $XW_V$.
#
# On the way to GPT: [Two questions, one average](#Two-questions,-one-average), [From one head to h](#From-one-head-to-h), [Then as one product and two transposes](#Then-as-one-product-and-two-transposes), [Who, and to whom?](#Who,-and-to-whom?).
# On the way to translation: [Two questions, one average](#Two-questions,-one-average), [From one head to h](#From-one-head-to-h), [Then as one product and two transposes](#Then-as-one-product-and-two-transposes).

# %%
import copy
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.multi_head_attention import adapters, lookups, who_whom

cu.seed_everything(0)

# %% jupyter={"source_hidden": true}
cu.recall("self_attention", "scoring_functions")

# %% [markdown]
# ## Two questions, one average
#
# A cabinet has eight drawers, A to H. In each lies a white ball ($+1$) or a black one ($-1$).
# The request "CF" asks for the ball in C *and* the ball in F, in this order.
# Requests are queries, drawers are keys, balls are values.
# Each answer is a **look-up**, all weight on one drawer.
# So before any training we know the weights: one map for the first drawer, and one for the second.

# %%
task = lookups.two_lookups()  # 8 · 7 requests, 2⁸ ways to fill the drawers
shown = ["AB", "BA", "CF", "FC", "DH", "HD", "EG", "GE"]
rows = [task.requests.index(request) for request in shown]
first, second = (F.one_hot(task.pairs[:, place], 8).float() for place in (0, 1))
cu.show_heatmaps(
    torch.stack([first[rows], second[rows]]),
    queries=shown, keys=task.drawers, xlabel="Drawers", ylabel="Requests",
    titles=["first look-up", "second look-up"], width=7.6, height=3.0,
    alt="Two maps of eight requests over eight drawers. In the first each row has "
    "weight 1 on the first drawer of its request, in the second on the second drawer.",
)  # fmt: skip

# %% [markdown]
# In the row "CF" all weight lies on C in one map and on F in the other.
# A single map has to decide: $\alpha$ on C and $1-\alpha$ on F, for example.
# Then the query gets *one* number, $m = \alpha\, b_C + (1-\alpha)\, b_F$.
# A **linear readout** has to make two answers of it: "C is white" if $u_1 m + c_1 > 0$, "F is white" if $u_2 m + c_2 > 0$.
# There are four cases, from two white balls to two black ones.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Choose the weights and both rules as well as you can. In how many of the four cases are both answers right?",
    ["2", "3", "all 4, with equal weights", "all 4, with unequal weights"],
    answer="3",
    wrong={
        "2": "Take all weight on C and the rule m > 0 for C. Which constant answer for F is right half of the time, "
        "and can unequal weights do better?",
        "all 4, with equal weights": "What is m for white and black, and what for black and white?",
        "all 4, with unequal weights": "Sort the four cases by m. In which order come the colors of F?",
    },
    why="Each rule cuts the line of averages at one place. Two cuts make three pieces, and in a piece neither answer changes: three "
    "pairs of answers. The four cases need four.",
)

# %%
alpha = 0.7  # try 0.0 … 1.0
signs = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * 2)  # (4, 2): balls in C, F


def most_right(averages):
    """(4,) → in how many cases both answers are right, with the best linear rules."""
    cuts = torch.cat([averages - 1e-4, averages.max()[None] + 1])[:, None]
    above = averages > cuts  # (5, 4): u > 0
    said = torch.cat([above, ~above])  # and u < 0
    right_c, right_f = (said == (signs[:, ball] > 0) for ball in (0, 1))
    return (right_c[:, None] & right_f).sum(dim=-1).max().item()


tried = {a: signs @ torch.tensor([a, 1 - a]) for a in (1.0, alpha, 0.5, 0.3, 0.0)}
averages_of = pd.DataFrame(
    tried, index=["white, white", "white, black", "black, white", "black, black"]
).T
averages_of["both right, at best"] = [most_right(m) for m in tried.values()]
averages_of.rename_axis("α").round(2)

# %% [markdown]
# With all weight on one drawer two cases are right, between them three.
# Never four: two cuts make three pieces, each with one pair of answers.
# The keys do not show the balls, so the weights are the same for every filling of the cabinet, and the four cases are equally frequent: **one head answers at most ¾ of the cases.**
# The *information* may still be there: for $\alpha = 0.3$ the four averages differ, and something nonlinear could read them.
# What is impossible is to hand two separate answers to the next linear layer.
#
# ### The condition
#
# All of this holds because the values lie on *one direction*: each is a number times the same vector.
# Now put the balls of A–D into one feature and those of E–H into another, and ask for one of each, with half the weight on each.

# %%
mixed = [(i, j) for i in range(4) for j in range(4, 8)]  # one of A–D, one of E–H
balls = task.balls  # (256, 8)
side = (torch.arange(8) >= 4).long()  # the feature of each drawer: 0 or 1
values = balls[..., None] * F.one_hot(side, 2)  # (256, 8, 2)
halves = F.one_hot(torch.tensor(mixed), 8).sum(dim=1) / 2  # (16, 8)
asked = balls[:, torch.tensor(mixed)]  # (256, 16, 2)

two_features = halves @ values  # (256, 16, 2): read as it is
unequal = 0.7 * balls[:, [i for i, _ in mixed]] + 0.3 * balls[:, [j for _, j in mixed]]
one_feature = torch.stack([unequal, unequal + 0.7], dim=-1)  # rules m > 0, m > −0.7
found = {
    name: ((answers > 0) == (asked > 0)).all(dim=-1).sum().item()
    for name, answers in (("one feature", one_feature), ("two features", two_features))
}
print(f"one head, both right in {found} of {asked[..., 0].numel()}")

# %% [markdown]
# One head, 4,096 of 4,096: an average of *vectors* keeps in each direction what is there.
# With all balls in one feature, weights 0.7 and 0.3 and the best rules for them ($m > 0$ for the first ball, $m > -0.7$ for the second) are right in 3,072.
# So the sentence "$k$ look-ups take $k$ heads" is true for look-ups of the *same* feature ([proof](08_multi_head_attention_further.ipynb#Why-k-look-ups-take-k-heads)), and wrong without this condition.
# We meet both cases again in words.

# %% jupyter={"source_hidden": true}
cu.quiz("multi_head_attention", "same_feature")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("In one feature one head is right in at most 3 of 4 cases, in two features always."):
    assert (averages_of["both right, at best"] <= 3).all()
    assert most_right(tried[0.3]) == 3 and most_right(tried[1.0]) == 2
    assert found["two features"] == 4096
    assert found["one feature"] == 3072

# %% [markdown]
# ## From one head to h
#
# Head $i$ of $h$ has three matrices of its own, with $d/h$ columns each, and attends on what they project ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.2):
#
# $$H_i = \mathrm{attention}\big(XW_Q^{(i)},\ XW_K^{(i)},\ XW_V^{(i)}\big) \in \mathbb R^{n \times d/h}, \qquad \mathrm{output} = [H_0, \dots, H_{h-1}]\, W_O .$$
#
# $d$ is `embed_dim`, $d/h$ is `head_dim`, and $[\dots]$ joins along the last axis.
# Each head scales by its *own* size, $1/\sqrt{d/h}$.
# Side by side, the $h$ matrices $W_Q^{(i)}$ are one $d\times d$ matrix $W_Q$: one product projects for all heads, and its columns are then cut.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
two_colors = ["key", "key", "wrong", "wrong"]
in_heads = {"color": "key", "sheets": 2, "behind": "wrong", "shape": "(2, 3, 2)"}
whole = {"color": two_colors, "shape": "(3, 4)"}
cu.Drawing(
    """
    X     X     X
    proj  proj  proj
    Q     K     V
    cut   cut   cut
    Qh    Kh    Vh
    att   att   att
    H     H     H
    join  join  join
    J     J     J
    out   out   out
    Y     Y     Y
    """,
    nodes={
        "X": cu.Cells(3, 4, "X: 3 tokens", shape="(3, 4)", color="line"),
        "proj": cu.Box("project: X W_Q, X W_K, X W_V"),
        "Q": cu.Cells(3, 4, "Q", **whole),
        "K": cu.Cells(3, 4, "K", **whole),
        "V": cu.Cells(3, 4, "V", **whole),
        "cut": cu.Box("split: 2 heads, the head becomes an axis"),
        "Qh": cu.Cells(3, 2, **in_heads),
        "Kh": cu.Cells(3, 2, **in_heads),
        "Vh": cu.Cells(3, 2, **in_heads),
        "att": cu.Box("in each head:\nscore, scale, mask, normalize, mix"),
        "H": cu.Cells(3, 2, "H_0, H_1", **in_heads),
        "join": cu.Box("join: the way back"),
        "J": cu.Cells(3, 4, "[H_0, H_1]", **whole),
        "out": cu.Box("merge: times W_O"),
        "Y": cu.Cells(3, 4, "output", shape="(3, 4)", color="line"),
    },
    arrows=["X -> proj", "proj -> Q -> cut", "proj -> K -> cut", "proj -> V -> cut",
            "cut -> Qh -> att", "cut -> Kh -> att", "cut -> Vh -> att",
            "att -> H -> join -> J -> out -> Y"],
    alt="Three tokens of four features are projected to Q, K and V. Each is cut into two heads of two "
    "columns, one behind the other, blue and yellow. In each head attention gives three rows of two numbers; these are joined to three "
    "rows of four and multiplied by W_O.",
    gap=(30, 20),
)  # fmt: skip

# %% [markdown]
# With a pencil: two [tokens](C_glossary.ipynb#token), $d = 4$, $h = 2$, and projections that pick columns.
# Head 0 reads columns 0 and 1, head 1 reads columns 2 and 3.
# These are the scores of token 0, and the softmax of them divided by $\sqrt 2$ (or $\sqrt 4$ for all four columns):
#
# $$X = \begin{pmatrix} 1 & 0 & 0 & 2\\ 0 & 1 & 0 & 2\end{pmatrix}$$
#
# | | score with token 0 | with token 1 | weight on token 0 | on token 1 |
# |---|---|---|---|---|
# | head 0 | 1 | 0 | 0.67 | 0.33 |
# | head 1 | 4 | 4 | 0.50 | 0.50 |
# | one head, all columns | 5 | 4 | 0.62 | 0.38 |
#
# Head 0 sees that the tokens differ, head 1 finds them equal.
# One head with all columns adds the scores, and its weights lie between theirs.
#
# ### First as a loop
#
# The formula, with lists of one matrix for each head:


# %%
def multi_head_loop(queries, keys, values, W_Q, W_K, W_V, W_O, attn_mask=None):
    """W_Q, W_K, W_V: lists of (embed_dim, head_dim); W_O: (embed_dim, embed_dim)."""
    heads = []
    for w_q, w_k, w_v in zip(W_Q, W_K, W_V, strict=True):
        q, k, v = queries @ w_q, keys @ w_k, values @ w_v  # project
        heads.append(cu.scaled_dot_product_attention(q, k, v, attn_mask))  # score … mix
    return torch.cat(heads, dim=-1) @ W_O  # merge


# %% [markdown]
# ### Split, then join
#
# The loop runs the heads one after the other.
# Attention for batches works on the last two axes, so all heads can attend at once if the head becomes an axis *before* the length.
# What moves where?
# We number the entries of one sequence with six tokens and 14 features, and cut them into two heads:
#
# 1. `unflatten` cuts the last axis: (batch, 6, 14) → (batch, 6, 2, 7);
# 2. `transpose` exchanges length and head: → (batch, 2, 6, 7).
#
# A **reshape** alone gives the same shape in one step.


# %%
def split(x, num_heads):
    """(batch, length, embed_dim) → (batch, heads, length, head_dim)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


labels = torch.arange(6 * 14).view(1, 6, 14)  # number = 14 · token + feature
careful = split(labels, 2)
careless = labels.reshape(1, 2, 6, 7)
print(f"shapes: {tuple(careful.shape)} and {tuple(careless.shape)}")
print(f"head 0, row 1: {careful[0, 0, 1].tolist()} and {careless[0, 0, 1].tolist()}")


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def draw_numbers(ax, numbers, title, ylabel=""):
    """A matrix with its numbers; features 0–6 of the original are blue, 7–13 yellow."""
    for (row, column), number in zip(
        torch.cartesian_prod(*map(torch.arange, numbers.shape)).tolist(),
        numbers.flatten().tolist(),
        strict=True,
    ):
        blue = number % 14 < 7
        color = cu.COLORS["key" if blue else "wrong"]
        ax.fill_between([column, column + 1], row, row + 1, color=color, alpha=0.3, linewidth=0)
        ax.text(column + 0.5, row + 0.5, number, ha="center", va="center", fontsize=8)
    ax.hlines(range(len(numbers) + 1), 0, numbers.shape[1], color="white", linewidth=1.5)
    ax.set(xlim=(0, numbers.shape[1]), ylim=(len(numbers), 0), xticks=[], ylabel=ylabel)
    ax.set_title(title)
    ax.set_yticks([row + 0.5 for row in range(6)], range(6))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


fig, axes = cu.subplots(
    2, 3, width=8.8, height=3.6, width_ratios=[2, 1, 1],
    alt="Above, a matrix of six tokens with seven blue and seven yellow features is split into a "
    "blue matrix of six tokens for head 0 and a yellow one for head 1. Below, a reshape without "
    "transpose gives matrices of the same size whose rows alternate between blue and yellow.",
)  # fmt: skip
draw_numbers(axes[0, 0], labels[0], "six tokens, 14 features", "token")
draw_numbers(axes[0, 1], careful[0, 0], "head 0: cut and exchanged")
draw_numbers(axes[0, 2], careful[0, 1], "head 1")
axes[1, 0].set_axis_off()
axes[1, 0].text(
    0.97, 0.5, "the same numbers after\nreshape alone: tokens 0–2 fill\n“head 0”, tokens 3–5 “head 1”",
    ha="right", va="center", fontsize=10,
)  # fmt: skip
draw_numbers(axes[1, 1], careless[0, 0], "“head 0”: reshape only", "row")
draw_numbers(axes[1, 2], careless[0, 1], "“head 1”")
fig

# %% [markdown]
# Above, each head keeps all six tokens and has its own seven features; a row is still a token.
# Below, the shape is right and the meaning is wrong: row 1 of "head 0" is the rest of token 0, and the last three tokens never meet the first three.
# No error is raised.
#
# ### Exercise 1 · Where is it now?
#
# *predict · 6 minutes*
#
# Now four tokens, six features and **three** heads; the numbers are 6 · token + feature, from 0 to 23.
# On paper: which number stands in head 2, row 1, column 0 (a) after the split; (b) after the reshape alone, to (3, 4, 2)? (c) Numbers of how many different tokens are in head 0 of the reshape? (d) Split rightly, then go back to (4, 6) by a reshape *without* a transpose: which number stands in row 0, column 2? (e) With *one* head, at how many of the 24 places do split and reshape differ?


# %% tags=["exercise", "predict"]
def predicted_heads():
    """Five whole numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.predicted_heads(predicted_heads)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_heads_solution():
    """6 · 1 + 4; 2 · 8 + 1 · 2; tokens 0 and 1; 0, 1, then token 1; nowhere."""
    return [10, 18, 2, 6, 0]


cu.checks.predicted_heads(predicted_heads_solution)

# %% [markdown]
# ### Exercise 2 · Join the heads
#
# *build · 6 minutes*
#
# Write the way back: (batch, heads, length, head_dim) → (batch, length, heads · head_dim), so that `join_heads(split(x, h))` is `x` again.
# The class below uses it.


# %% tags=["exercise", "build"]
def join_heads(heads):
    """(batch, heads, length, head_dim) → (batch, length, heads · head_dim)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.join_heads(join_heads)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def join_heads_solution(heads):
    """The steps of the split, backwards: exchange, then join the last two axes."""
    return heads.transpose(1, 2).flatten(2)


cu.checks.join_heads(join_heads_solution)

# %% jupyter={"source_hidden": true}
cu.quiz("multi_head_attention", "own_scale")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("A split keeps all tokens in each head; a reshape alone gives head 0 three of six."):
    assert (careful[0, 0] // 14).unique().tolist() == list(range(6))
    assert (careful[0, 0] % 14).unique().tolist() == list(range(7))
    assert (careless[0, 0] // 14).unique().tolist() == [0, 1, 2]
    X = torch.tensor([[1.0, 0, 0, 2], [0, 1, 0, 2]])  # the example for a pencil
    scored = [(X[0, cut] @ X[:, cut].T, cut) for cut in (slice(2), slice(2, 4), slice(4))]
    on_0 = [(a / math.sqrt(X[0, cut].numel())).softmax(0)[0].item() for a, cut in scored]
    assert [round(weight, 2) for weight in on_0] == [0.67, 0.5, 0.62]

# %% [markdown]
# ## Then as one product and two transposes
#
# The whole layer: four linear maps, and between them the steps that you know.
# `nn.Linear` computes $xW + b$ and keeps $W$ transposed, as its `weight`.

# %%
join = cu.choose(join_heads, cu.merge_heads)


class MultiHeadAttention(nn.Module):
    """num_heads attentions side by side; (batch, n, embed_dim) → the same."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads  # has to divide embed_dim
        self.query_proj = nn.Linear(embed_dim, embed_dim)
        self.key_proj = nn.Linear(embed_dim, embed_dim)
        self.value_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, queries, keys, values, attn_mask=None):
        q = split(self.query_proj(queries), self.num_heads)  # project, split
        k = split(self.key_proj(keys), self.num_heads)
        v = split(self.value_proj(values), self.num_heads)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # score, scale
        weights = cu.masked_softmax(scores, attn_mask)  # mask, normalize
        self.weights = weights.detach()  # to look at: (batch, heads, queries, keys)
        return self.out_proj(join(weights @ v))  # mix, join, merge


# %% [markdown]
# Is it the same as the loop, as PyTorch's layer, and as the package's?
# `as_functions` makes functions of weights of the first three, so that `cu.equal` compares the gradients of the weights, too.
# (In PyTorch's mask True means *must not*; it is turned round there.)

# %%
embed_dim = 12
num_heads = 3  # try 1 | 2 | 3 | 4 | 6 | 12
mine = MultiHeadAttention(embed_dim, num_heads)
torchs = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)
package = cu.MultiHeadAttention(embed_dim, num_heads)
by_loop, by_class, by_torch = adapters.as_functions(multi_head_loop, mine, torchs)
qkv = [torch.randn(2, n, embed_dim) for n in (5, 7, 7)]  # 5 queries, 7 keys
W, b = torch.randn(4, embed_dim, embed_dim) / 3, torch.randn(4, embed_dim)
pairs = torch.rand(5, 7) < 0.7
pairs[:, 0] = True  # each query may look at something
mask = cu.padding_mask(torch.tensor([7, 4]), 7) & pairs
cu.equal(by_class, by_loop, *qkv, W, mask)
cu.equal(by_class, by_torch, *qkv, W, mask, b)
package.load_state_dict(mine.state_dict())
cu.equal(mine, package, *qkv, mask)

# %% [markdown]
# The class equals the loop: outputs, and the gradients of queries, keys, values and of the four matrices, which are one tensor here.
# It equals `nn.MultiheadAttention`, with biases and so one gradient more.
# And it equals the package's, with 11 gradients: of three inputs and of eight parameters.
# These have the same names: from here on the two are interchangeable.
# A mask (batch, 1, 1, keys) has an axis for the heads, and so each head gets the same.
#
# ### Joined means added
#
# Why the last matrix?
# Cut $W_O$ into $h$ blocks of *rows*, one for each head, and multiply out:
#
# $$[H_0, \dots, H_{h-1}]\,W_O = \sum_{i=0}^{h-1} H_i\, W_O^{(i)}, \qquad W_O^{(i)} \in \mathbb R^{d/h \times d}.$$
#
# Each head writes a vector of all $d$ numbers, and the layer returns the *sum* ([Elhage et al., 2021](https://transformer-circuits.pub/2021/framework/index.html)).
# Two heads of one number each, 3 and 5, and $W_O = \begin{pmatrix}1&0\\2&1\end{pmatrix}$ give $3\cdot(1, 0) + 5\cdot(2, 1) = (13, 5)$. Head 1 writes to both outputs. Without $W_O$, each head would own its block of outputs, and no other head could write there.
#
# ### What do more heads cost?

# %%
ten = torch.randn(1, 10, 64)
costs = []
for h in (1, 2, 4, 8, 64):
    layer = MultiHeadAttention(64, h)
    layer(ten, ten, ten)
    parameters = sum(parameter.numel() for parameter in layer.parameters())
    products = h * 10 * 10 * (64 // h)  # in all scores q·k
    costs.append([h, 64 // h, parameters, products, layer.weights.numel()])
costs = pd.DataFrame(
    costs, columns=["heads", "head_dim", "parameters", "products in q·k", "weights"]
)
costs.set_index("heads")

# %% [markdown]
# Parameters and products (counted by a formula) stay; only the weights become more, one map for each head.
# What is paid is *width*: a head compares with $d/h$ numbers.
# In the original paper's experiments on translation, a single head was 0.9 points of [BLEU](C_glossary.ipynb#bleu) (from 0 to 100) worse than the best number of heads, and too many were worse, too.
# (A head of width 1 can prefer only two of its keys, however many there are: [further page](08_multi_head_attention_further.ipynb#How-narrow-may-a-head-be?).)

# %% jupyter={"source_hidden": true}
cu.quiz("multi_head_attention", "silent_head")

# %% [markdown]
# ## Two heads for two look-ups
#
# Back to the cabinet.
# A request has the label of its first drawer in features 0–7 (one of them is 1) and that of its second drawer in features 8–15.
# A drawer has its label *once*, in features 0–7, and the value is the ball in feature 0.
# The network is one attention and a linear readout.
#
# Two heads can do it: head 0 compares features 0–7 with the label, head 1 compares features 8–15 with the *same* label, and each returns a ball.
# ([Further page](08_multi_head_attention_further.ipynb#Weights-for-two-look-ups,-by-hand): such weights, written down, are right in every case.)
# Does gradient descent find them?
# 100 steps of [Adam](C_glossary.ipynb#adam) for each number of heads and for three seeds.
# All networks have equally many parameters, and all 56 · 256 cases are counted.
# First, as before every training, a look at an untrained network: 1,122 parameters by hand and by the machine, and a first loss near that of a coin, $\ln 2 = 0.69$.
# The question mark is about the rate, 0.03; the networks learn all the same.


# %%
def new_network(heads, seed):
    cu.seed_everything(seed)
    return lookups.LookupNetwork(16, heads, attention=MultiHeadAttention(16, heads))


def summed_loss(network, balls):  # and the number of answers
    logits, white = network(*task.inputs(balls)), (task.answers(balls) > 0).float()
    loss = F.binary_cross_entropy_with_logits(logits, white, reduction="sum")
    return loss, white.numel()


counted = 4 * (16 * 16 + 16) + (16 * 2 + 2)  # four linear maps, and the readout
ritual = {"expected": counted, "choices": 2, "lr": 0.03}
batch = task.balls[torch.randperm(256)[:16]]
cu.before_training(new_network(2, 0), batch, summed_loss, **ritual)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "One head, trained. In which share of the cases will both answers be right?",
    ["about a quarter", "about half", "three quarters, as the best rules"],
    answer="about half",
    wrong={
        "about a quarter": "Two coin tosses are both right in a quarter. Can one head do nothing better for one ball?",
        "three quarters, as the best rules": "That needs two uneven weights and a cut at the right place, for all requests at once. "
        "What is easier to find?",
    },
    why="In all three runs one ball is always right, and for the other one the network says the same color: right in half of the cases. "
    "¾ takes two rules with cuts at different places, which this training did not find.",
)

# %%
steps = 100  # try 50 … 200
networks = {}
for h in (1, 2, 4, 8):
    for seed in (0, 1, 2):
        network = new_network(h, seed)
        networks[h, seed] = lookups.train_lookups(network, steps=steps, seed=seed)
shares = {key: lookups.lookup_accuracy(one).tolist() for key, one in networks.items()}
both = {key: share[2] for key, share in shares.items()}
longer = cu.stored_runs("multi_head_attention", "one_head")  # 1,500 steps
longer = [round(run.result["both"], 2) for run in longer]
print(f"one head, 1,500 steps (stored): both right in {longer}")
said = [(networks[1, n](*task.inputs(task.balls)) > 0).float() for n in (0, 1, 2)]
alike = [round((two[..., 0] == two[..., 1]).float().mean().item(), 2) for two in said]
print(f"one head: the same color for both balls in {alike}")
table = pd.DataFrame(
    {key: [max(share[:2]), min(share[:2]), both[key]] for key, share in shares.items()},
    index=["the ball it knows better", "the other ball", "both"],
).T
table.rename_axis(["heads", "seed"]).unstack().round(2)

# %% [markdown]
# One head has one ball nearly always right and the other one in half of the cases, and three others have no more after fifteen times as many steps (first line).
# It does not guess: it nearly always says the same color for both (second line).
# Two, four and eight heads solve the task.

# %% jupyter={"source_hidden": true}
cu.quiz("multi_head_attention", "half_right")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With equally many parameters one head has both right in half of the cases, more heads always."
):
    assert costs["parameters"].nunique() == 1
    assert all(abs(both[1, n] - 0.5) < 0.03 for n in (0, 1, 2)) and longer == [0.5] * 3
    assert min(alike) > 0.9
    assert min(both[h, n] for h in (2, 4, 8) for n in (0, 1, 2)) > 0.97

# %% [markdown]
# ## Taking heads away
#
# What is a head worth?
# Take it out and count again: then its summand $H_i W_O^{(i)}$ has to be zero.
#
# ### Exercise 3 · Find the bug
#
# *bug · 8 minutes*
#
# A colleague takes a head away by setting its part of the query projection to zero, "so that it no longer asks anything".
# The lines below show a network with two heads, then the same network without head 0, then without head 1.
# There are two mistakes.
# A network that is always right about one ball, and about the other in half of the cases, has 0.50: why is the last line lower?
# Write `fixed_without_head`.
# The layer has `num_heads` and the four linear layers of the class above; `copy.deepcopy(layer)` is a copy.


# %%
def buggy_without_head(layer, head):
    width = layer.query_proj.out_features // layer.num_heads
    with torch.no_grad():
        layer.query_proj.weight[head * width : (head + 1) * width] = 0
        layer.query_proj.bias[head * width : (head + 1) * width] = 0
    return layer


victim = copy.deepcopy(networks[2, 0])
print(f"before: both right {lookups.lookup_accuracy(victim)[2]:.2f}")
for gone in (0, 1):
    victim.attention = buggy_without_head(victim.attention, gone)
    print(f"without head {gone}: {lookups.lookup_accuracy(victim)[2]:.2f}")


# %% tags=["exercise", "bug"]
def fixed_without_head(layer, head):
    """The layer without one head (counted from 0), as a copy."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_without_head(fixed_without_head)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_without_head_solution(layer, head):
    """Queries of zero have equal scores: the head writes the mean of all values.

    And the caller's layer was changed: the second time two heads were missing. In `weight`,
    which is W_O transposed, the rows of a head are columns.
    """
    layer = copy.deepcopy(layer)
    width = layer.out_proj.in_features // layer.num_heads
    with torch.no_grad():
        layer.out_proj.weight[:, head * width : (head + 1) * width] = 0
    return layer


cu.checks.fixed_without_head(fixed_without_head_solution)

# %%
take_away = cu.choose(fixed_without_head, lookups.without_head)
rest, again = {}, {}  # both right without one head, for each head
for (h, n), full in networks.items():
    fewer = copy.deepcopy(full)
    for head in range(h):
        fewer.attention = take_away(full.attention, head)
        rest[h, n, head] = lookups.lookup_accuracy(fewer)[2].item()
        with cu.intervene(full) as acts:  # no copy: it ends with the block
            acts.ablate(heads=head)
            again[h, n, head] = lookups.lookup_accuracy(full)[2].item()
print("the same by cu.intervene:", again == rest)
rest = pd.Series(rest).groupby(level=[0, 1]).agg(["min", "max"])
rest.columns = ["without the head that is missed most", "without the one missed least"]
rest.rename_axis(["heads", "seed"]).unstack().round(2)

# %% [markdown]
# Of two heads both are needed: without either, both balls are right in 0.50 of the cases.
# Without its only head a network has its bias, and ¼.
# With four or eight heads the work is shared unevenly, and differently from seed to seed: in each of these networks there is a head whose loss costs less than 0.01 (the right half of the table).
#
# In large models?
# [Michel et al. (2019)](https://arxiv.org/abs/1905.10650) took heads out of *trained* translators and of BERT, without training again: most single heads could go with little loss, and some layers did with one.
# [Voita et al. (2019)](https://arxiv.org/abs/1905.09418) trained *further*, with a penalty on heads: 38 of the 48 heads of an encoder were switched off at a cost of 0.15 points of BLEU, and many of the last ones had roles that can be named, such as a neighboring word.
# From neither follows "then train with fewer heads from the start": that would be another experiment.
#
# The explorer shows the maps; above a map stands what remains without this head.
# With one head each row is divided between ○ and □, and both answers follow the one that has more.
# With two, which head does which look-up, and does this depend on the seed?

# %% jupyter={"source_hidden": true}
cu.explore.heads(networks)

# %% jupyter={"source_hidden": true}
cu.quiz("multi_head_attention", "worth")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Of two heads both are needed; of four and of eight one is hardly missed."):
    assert (rest.loc[2] < 0.7).all(axis=None)
    assert (rest.loc[[4, 8]].iloc[:, 1] > 0.9).all()

# %% [markdown]
# ## Who, and to whom?
#
# Now words.
# In a sentence such as "yesterday the young doctor followed the queen ." the verb has two questions: who, and to whom or what?
# The network adds the vector of each word and the vector of its place (more on [places](09_positions.ipynb) in the next chapter), attends **once**, with the verb as the only query, and reads two nouns off the answer linearly.
# There are two kinds of sentences, with the same verbs and adjectives:
#
# - **things**: the subject is a person and the object a thing: "the girl saw the small boat .";
# - **people**: both are people, so that each noun may be either: "the girl saw the small king ."

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "300 steps of training. For which sentences will a single head find both nouns, whatever the seed?",
    ["for both kinds", "for things only", "for people only", "for neither"],
    answer="for things only",
    wrong={
        "for both kinds": "Half the weight on girl and half on king: which of the two is the subject?",
        "for people only": "What does the average of girl and king say about the order?",
        "for neither": "Half the weight on girl and half on boat: how many people are in the average?",
    },
    why="The average of girl and boat holds one person and one thing, and the readout has a score for each person as subject and each thing "
    "as object. Of girl and king equal weights lose which was the subject. With unequal ones a linear score finds the noun that has more "
    "weight, and not the other one. Weights that are different for each pair of words would be a way out, and a hard one to find.",
)

# %% tags=["nbval-ignore-output"]
example = 1  # try 0 … 499
more = 2  # try 2 | 4 | 8
readers = {}
for objects, h in (("things", 1), ("people", 1), ("people", more)):
    cu.seed_everything(0)
    reader = who_whom.VerbReader(MultiHeadAttention(32, h))
    who_whom.train_reader(reader, objects, seed=0)
    _, unseen = who_whom.sentences(objects, seed=0)
    who, whom, nouns = who_whom.reader_accuracy(reader, unseen)
    print(f"{objects}, heads: {h}; who {who:.2f}, whom {whom:.2f}, both {nouns:.2f}")
    words_of = unseen.nouns + who_whom.WORDS.index(who_whom.NOUNS[0])
    there = unseen.tokens[:, None] == words_of[..., None]  # (500, 2, words)
    on_nouns = (reader.attention.weights.mean(dim=1) * there).sum(dim=-1).mean(dim=0)
    print("  weight on subject {:.2f}, on object {:.2f}".format(*on_nouns))
    readers[objects, h] = reader

stored = cu.stored_runs("multi_head_attention", "verb_reader")
stored = pd.DataFrame(run.config | run.result for run in stored)
cases = ["objects", "num_heads", "steps"]
both_nouns = stored.groupby(cases)["both"]
both_nouns.agg(runs="count", lowest="min", median="median", highest="max").round(2)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
words = unseen.texts[example]
looks = {}
for h, trained in ((1, readers["people", 1]), (more, readers["people", more])):
    trained(unseen)
    for head in range(h):
        weights_of = trained.attention.weights[example, head, 0, : len(words)]
        looks["one head" if h == 1 else f"{h} heads: {head}"] = weights_of
looks["their mean"] = torch.stack(list(looks.values())[1:]).mean(dim=0)
fig, ax = cu.subplots(
    width=7.5, height=2.6,
    alt="Weights of the verb on the words of: " + " ".join(words) + " Rows: the single head, "
    f"each of {more} heads, and the mean of these.",
)  # fmt: skip
cu.heatmap(ax, torch.stack(list(looks.values())), queries=list(looks), keys=words, annotate=True,
           xlabel=f"the verb is “{words[unseen.verbs[example]]}”", ylabel=None)  # fmt: skip
fig

# %% [markdown]
# The lines are trained here, the table is stored: the share of 500 sentences, not trained on, in which both nouns are right.
# (They start from other random numbers.)
# With *things* one head is right in all runs, as are two, and in the first line its weight is divided between both nouns.
# With *people* two heads are right in all ten runs.
# One head finds both in 0.96 of the sentences in one run, and in 0.12 to 0.40 in the nine others.
# When this page was made, the one trained here had nearly all its weight on the subject: it knew who, and found whom little more often than by a guess among the seven other people, 0.14.
# With 1,500 steps it is one run in three.
# So one head *can*, but rarely does, and section 1 does not forbid it: a drawer does not show its ball, but here key and value come from the same *word*, and the weights may depend on which two words they are.
#
# In the picture the single head looks at one noun.
# Of two heads one looks at the subject and the other at the object.
# The last row is what `nn.MultiheadAttention` returns as "the weights" unless told `average_attn_weights=False`: a mean that looks like one undecided head.
#
# ### Exercise 4 · A head for adjectives?
#
# *open · 6 minutes*
#
# You see a map of a trained translator in which head 5 of layer 2 looks from each noun to its adjective.
# "Head 5 handles adjectives", says the caption.
# Which three things would you measure before you believe it?
# Which result of each would refute the caption?
#
# *To compare:* (1) the weight from nouns to adjectives over many sentences, beside a head that takes the word next to the noun: refuted if that explains it.
# (2) Errors without this head: refuted if adjectives suffer no more than other words.
# (3) Other seeds: refuted as a statement about such models if no other has this head.

# %% jupyter={"source_hidden": true}
cu.quiz("multi_head_attention", "girl_boat")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "One head finds both nouns for things in all runs, for people in few; two heads in all runs."
):
    results = stored.set_index(cases)["both"]
    assert min(results["things", 1, 300]) > 0.95 and min(results["things", 2, 300]) > 0.95
    assert len(results["people", 2, 300]) == 10 and min(results["people", 2, 300]) > 0.95
    assert sorted(results["people", 1, 300].round(2))[::8] == [0.12, 0.4]
    assert sum(results["people", 1, 300] > 0.9) == 1
    assert sorted(results["people", 1, 1500].round(2)) == [0.16, 0.17, 1.0]

# %% [markdown]
# ## Take-aways
#
# - One head returns one weighted average.
#   To hand $k$ look-ups *of the same feature* to a linear readout takes $k$ heads if keys say nothing about values.
#   Look-ups in different features can share a head.
# - $h$ heads are one projection, a cut and a transpose; the way back is the transpose, then the join.
#   A reshape alone has the right shape and mixes tokens.
# - Joining the heads and multiplying by $W_O$ is adding one summand for each head, and each writes to all outputs.
# - Heads cost no parameters.
#   They cost width.
# - To take a head away, zero its rows of $W_O$, in a copy.
#   What it shows is about this trained network.
#
# Next: [Positions](09_positions.ipynb).
# The proof for $k$ look-ups, heads as slices, sizes of their own for queries, keys and values, and heads by additive attention are on the further page: [Multi-head attention: proofs, slices and other heads](08_multi_head_attention_further.ipynb).
#
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("multi_head_attention")

# %% [markdown]
# ## References
#
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.2.2: multi-head attention; section 6.2: how many heads.
# - Elhage, N. et al. (2021).
#   [A mathematical framework for transformer circuits](https://transformer-circuits.pub/2021/framework/index.html).
#   Transformer Circuits Thread.
# - Michel, P., Levy, O. and Neubig, G. (2019).
#   [Are sixteen heads really better than one?](https://arxiv.org/abs/1905.10650).
#   NeurIPS.
# - Voita, E. et al. (2019).
#   [Analyzing multi-head self-attention: specialized heads do the heavy lifting, the rest can be pruned](https://arxiv.org/abs/1905.09418).
#   ACL.
# - PyTorch.
#   [MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html).
