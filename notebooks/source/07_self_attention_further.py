# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Self-attention: costs, and a French word
#
# This page answers three questions that come up on a second reading of [Self-attention](07_self_attention.ipynb).
# What does attention cost, how do we test whether a layer ignores the order of its words, and how does a pronoun find its noun?
# You can read each section by itself.

# %% jupyter={"source_hidden": true}
import math

import pandas as pd
import torch

import course_utils as cu
from course_utils.kit.comparison import table
from course_utils.lessons.self_attention.layers import (
    convolution,
    path,
    recurrence,
    self_attention,
)
from course_utils.lessons.self_attention.matrix_products import waiting_products

cu.seed_everything(0)

# %% [markdown]
# ## Convolution, recurrence, attention
#
# We compare attention with the two older ways to read a sentence.
# A **convolution** of width $k$ (this $k$ isn't a key) reads a word and the $k - 1$ words before it, with zeros in front of the first word.
# A **recurrence** reads the word and the state before it (the arrows from y to y), and attention reads all words.
# Each of the three turns $n$ vectors of size $d$ into $n$ others, at three costs.
#
# - **Multiply-adds** are multiplications, each with its addition, in all matrix products (`cu.multiply_adds` counts them).
# - **Depth**, also called the *critical path*, is the longest chain of matrix products that wait for each other.
#   Products that need nothing from each other count once, as all $x_tW_x$ do.
#   `waiting_products` finds the chain in the graph that autograd keeps.
# - **Path length** is the number of layers, or steps of a recurrence, between the first word and the last output.
#   A convolution with a **dilation** of 3 leaves gaps and reads $i$, $i - 3$, $i - 6$, so its receptive field grows faster.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
dots = {
    f"{part}{name}{i}": cu.Circle(name, color=color)
    for part in "cra"
    for i in range(4)
    for name, color in (("x", "wash"), ("y", "value"))
}
straight = [
    cu.Arrow(f"cx{i}", f"cy{j}", straight=True)
    for j in range(4)
    for i in range(j - 2, j + 1)
    if i >= 0
]
straight += [cu.Arrow(f"rx{i}", f"ry{i}") for i in range(4)] + [
    cu.Arrow(f"ry{i}", f"ry{i + 1}", color="query") for i in range(3)
]
straight += [cu.Arrow(f"ax{i}", f"ay{j}", straight=True) for j in range(4) for i in range(4)]
cu.Drawing(
    """
    c   c   c   c   . r   r   r   r   . a   a   a   a
    cx0 cx1 cx2 cx3 . rx0 rx1 rx2 rx3 . ax0 ax1 ax2 ax3
    cy0 cy1 cy2 cy3 . ry0 ry1 ry2 ry3 . ay0 ay1 ay2 ay3
    """,
    nodes=dots | {"c": cu.Note("convolution, k = 3"), "r": cu.Note("recurrence"), "a": cu.Note("self-attention")},
    arrows=straight,
    alt="Four words x and four outputs y, three times. Convolution: each y is joined to its own x and the two before it. "
    "Recurrence: each y to its own x and, in red, to the y before it. Self-attention: each y to all four x.",
    gap=(14, 46),
)  # fmt: skip

# %% [markdown]
# ### Exercise 1 · Three costs on paper
#
# *predict · 9 minutes*
#
# Let $n = 10$, $d = 8$, and $k = 3$.
# How many multiply-adds do we need for (a) the convolution (count the zeros in front like words), (b) the recurrence (also count the first state, which is zero), (c) self-attention with three matrices $8\times 8$, including its projections?
# How many products wait for each other in (d) the recurrence, (e) self-attention?
# (f) How many layers of the convolution do we have to stack until the last output depends on the first word?


# %% tags=["exercise", "predict"]
def predicted_costs():
    """Six whole numbers, for (a) to (f), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5, 6]


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.predicted_costs(predicted_costs)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_costs_solution():
    """k n d²; 2 n d²; 3 n d² + 2 n² d; 1 + 9; project, score, mix; ⌈9 / 2⌉, as a layer reaches 2 words further."""
    return [1920, 1280, 3520, 10, 3, 5]


cu.checks.predicted_costs(predicted_costs_solution)

# %%
k = 3  # try 2 … 5
d = 64  # try 16 … 128
kernel = (torch.randn(d, d, k) / math.sqrt(k * d)).requires_grad_()
W_QKV = (torch.randn(3, d, d) / math.sqrt(d)).requires_grad_()
W_x, W_h = (torch.randn(2, d, d) / math.sqrt(d)).requires_grad_()
layers = {
    "convolution": lambda x: convolution(x, kernel),
    "recurrence": lambda x: recurrence(x, W_x, W_h),
    "self-attention": lambda x: self_attention(x, *W_QKV),
}
lengths = [16, 32, 96, 192, 384, 768]
texts = {n: torch.randn(n, d) for n in lengths}
adds = {n: [cu.multiply_adds(f, texts[n]) for f in layers.values()] for n in texts}
costs = pd.DataFrame(adds, index=list(layers)).T
waits = {n: [waiting_products(f(texts[n])) for f in layers.values()] for n in texts}
paths = {n: [path(n, kernel), path(n, kernel, grow=k)] for n in lengths[:3]}
print(pd.DataFrame(waits, index=list(layers)).rename_axis("products that wait"), "\n")
print(pd.DataFrame(paths, index=["convolution", "dilated"]).rename_axis("layers"))
twice = {f"{n} → {2 * n}": costs.loc[2 * n] / costs.loc[n] for n in (16, 96, 384)}
twice = pd.DataFrame(twice).map("× {:.2f}".format)
pd.concat([costs.loc[[16, 96, 384]].T, twice], axis=1).rename_axis("multiply-adds")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
runs = cu.stored_runs("self_attention", "milliseconds")
timed = pd.DataFrame({run.config["length"]: run.result for run in runs}).T
print(f"processor's milliseconds for n words, d = 64, one thread of: {runs[0].machine}")
timed.rename_axis("n").round(2)

# %% [markdown]
# The counts follow these formulas.
#
# | | multiply-adds of a layer | products that wait | layers from the first word to the last output |
# |---|---|---|---|
# | convolution | $knd^2$ | $1$ | $\lceil (n-1)/(k-1)\rceil$, or $\lceil\log_k n\rceil$ with the dilations $1, k, k^2, \dots$ |
# | recurrence | $2nd^2$ | $n$ | $1$, but $n - 1$ steps |
# | self-attention | $3nd^2 + 2n^2d$ | $3$ | $1$ |
#
# So is attention quadratic in the length?
# For twice the length, convolution and recurrence cost twice as much, whereas attention costs three times as much at $n = \tfrac32 d$, where its two parts are equal.
# It comes near 4, the factor of a square, only where $n$ is several times $d$.
#
# We measured the times on one thread of the processor, and took the best of 25 rounds.
# At 256 words attention does 5.5 times as many multiply-adds as the recurrence, but takes only a third of its time.
# Python's loop alone isn't to blame, since `nn.RNN`, which loops in C++, is slower as well.
# But at 4,096 words attention takes more than five times as long.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The counted operations follow the formulas in the table."):
    n = torch.tensor(lengths)
    assert costs["convolution"].tolist() == (k * n * d**2).tolist()
    assert costs["recurrence"].tolist() == (2 * n * d**2).tolist()
    assert costs["self-attention"].tolist() == (3 * n * d**2 + 2 * n**2 * d).tolist()
    assert all(waits[m] == [1, m, 3] for m in waits)
    assert all(paths[m][0] == -(-(m - 1) // (k - 1)) for m in paths)
    assert all(k ** (paths[m][1] - 1) < m <= k ** paths[m][1] for m in paths)

# %% [markdown]
# ## Does the order count?
#
# ### Exercise 2 · Find the bug
#
# *bug · 11 minutes*
#
# This test should tell us whether a layer (batch, n, d) → (batch, n, d) ignores the order of its words.
# It says False for plain attention over 60 words, and True for a convolution whose ends are joined to a ring.
# Both answers are wrong.
# Find the reasons, and repair the test so that it also catches a layer that ignores about every second order.


# %%
def buggy_order_test(layer, x):
    order = torch.arange(x.shape[1]).flip(0)
    return torch.equal(layer(x[:, order]), layer(x)[:, order])


def plain(x):
    return (x @ x.mT / math.sqrt(x.shape[-1])).softmax(dim=-1) @ x


def ring(x):
    return x.roll(1, dims=1) + 2 * x + x.roll(-1, dims=1)


print("plain attention:", buggy_order_test(plain, torch.randn(2, 60, 48)))
print("ring:", buggy_order_test(ring, torch.randint(9, (2, 9, 4)).float()))


# %% tags=["exercise", "bug"]
def fixed_order_test(layer, x):
    """True if permuting the words of x (batch, n, d) only permutes the outputs."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_order_test(fixed_order_test)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_order_test_solution(layer, x):
    """A sum in another order differs in its last digits; and one order, also a random one, may be harmless."""
    for _ in range(20):
        order = torch.randperm(x.shape[1])
        if not torch.allclose(layer(x[:, order]), layer(x)[:, order], rtol=1e-3, atol=1e-3):
            return False
    return True


cu.checks.fixed_order_test(fixed_order_test_solution)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The test refuses plain attention and lets a convolution in a ring pass."):
    assert not buggy_order_test(plain, torch.randn(2, 60, 48))
    assert buggy_order_test(ring, torch.randint(9, (2, 9, 4)).float())

# %% [markdown]
# ## It and its adjective
#
# *The cat saw the apple near the desk and the coat, and it was ripe.*
# Our sentences have four nouns, one of each kind, in any order.
# The adjective fits only one of them, and in French *it* and the adjective take the gender of this noun.

# %%
tuned = cu.stored_runs("self_attention", "reader", highest="it, training")
shares = table(tuned, "it", "adjective")
layers_of = {"one attention": "one attention layer", "two attentions": "two attention layers"}
in_words = shares.replace({"kind": layers_of}).rename(columns={"rate": "learning rate"})
in_words.round({"it": 2, "adjective": 2})

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Two attention layers find the gender of “it”, and so does an average with a hidden layer, but the plain ones don't."
):
    of_it = shares.set_index("kind")["it"]
    assert of_it[["two attentions", "average, hidden layer"]].min() > 0.95
    assert of_it[["average", "one attention"]].max() < 0.8

# %% [markdown]
# Each number is an **accuracy**, the mean of three seeds at the best of three rates on training sentences, and a guess would have one half.
# One attention layer finds the adjective's noun.
# But *it* asks the same in every sentence, so its answer is a vote of the four nouns, with an accuracy of $11/16$ at best.
# Two attention layers find the noun of both words.
# An average with a hidden layer does so as well, because four genders and the adjective determine the answer without any word asking another.
# Which of these two is ahead depends on the rate, as [A control is a tuned control](G_controls.ipynb) explains.
#
# ## Older than the Transformer
#
# Words of a sentence that attend to each other are older than the Transformer ([Cheng et al., 2016](https://arxiv.org/abs/1601.06733); [Parikh et al., 2016](https://arxiv.org/abs/1606.01933)).
# [Lin et al. (2017)](https://arxiv.org/abs/1703.03130) use the name *self-attention* for something else, because there the queries are learned vectors and no word asks another.

# %% [markdown] tags=["next"]
# Next: [Multi-head attention](08_multi_head_attention.ipynb).

# %% [markdown]
# ## References
#
# - Cheng, J., Dong, L. and Lapata, M. (2016).
#   [Long short-term memory-networks for machine reading](https://arxiv.org/abs/1601.06733).
#   EMNLP.
# - Lin, Z. et al. (2017).
#   [A structured self-attentive sentence embedding](https://arxiv.org/abs/1703.03130).
#   ICLR.
# - Parikh, A., Täckström, O., Das, D. and Uszkoreit, J. (2016).
#   [A decomposable attention model for natural language inference](https://arxiv.org/abs/1606.01933).
#   EMNLP.
