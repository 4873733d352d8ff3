# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Queries, keys and values
#
# A network with a fixed number of inputs cannot read a text of any length. A database can be asked about anything, whatever its
# size, and the program that asks is short. **How do we turn a database look-up into something a network can learn?**
#
# After this chapter you can
#
# - write exact, nearest, top-k and average look-up as four weightings of one formula,
# - say where the answer can lie when weights are nonnegative, convex, one-hot or uniform,
# - compute a softmax that never overflows, and tell by numbers when its gradient vanishes,
# - turn word embeddings into queries, keys and values with three matrices, word by word and as tensors,
# - prove that three matrices can learn a look-up that the embeddings alone cannot express.
#
# *60 minutes. You need matrix products and a little Python; [Start here](00_start_here.ipynb) shows how to step through a chapter.*

# %%
import math

import pandas as pd
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## A database, asked in four ways
#
# *How long does a kitten live, if the database only knows cats?*
#
# A **database** $\mathcal D = \{(k_1, v_1), \dots, (k_m, v_m)\}$ is a list of pairs of a **key** and a **value**. Ours has $m = 5$
# animals. A key is what we search by: here two numbers between 0 and 1, the size of the animal and how much it is at home with
# people. The value is what we want to know: the years such an animal may live, in round figures.
#
# The keys are two of the seven features that the course's word table holds for 24 common words. They are written by hand, so
# that you can check every score in this chapter with a pencil.

# %%
table = cu.load_words()
animals = ["mouse", "cat", "dog", "horse", "elephant"]
size, home = table.names.index("size"), table.names.index("home")
keys = table[animals][:, [size, home]]  # (keys, features)
values = torch.tensor([2.0, 15.0, 12.0, 28.0, 65.0])  # (keys,), years
shown = pd.DataFrame(keys.tolist(), index=animals, columns=["size", "home"]).round(1)
shown["years"] = values.int().tolist()
shown

# %% [markdown]
# A **query** $q$ has the form of a key. The word *kitten* is not in the database, but it has features: size 0.2, home 0.9.
# Where does it stand among the keys?

# %% tags=["hide-input"]
query = table["kitten"][[size, home]]
fig, ax = cu.subplots(
    alt="Five keys in the plane of size and home: mouse at the lower left, cat and dog at the upper "
    "left, horse to the right, elephant at the lower right. The query kitten stands next to cat.",
    width=5.2,
    height=3.2,
)
ax.scatter(keys[:, 0], keys[:, 1], s=60, color=cu.COLORS["blue"], label="keys")
ax.scatter(*query, s=90, marker="X", color=cu.COLORS["vermilion"], label="query")
for name, (x, y) in zip([*animals, "kitten"], [*keys.tolist(), query.tolist()], strict=True):
    ax.annotate(name, (x, y), (6, 6), textcoords="offset points")
ax.set(
    xlim=(0, 1.2),
    ylim=(-0.08, 1.18),
    xlabel="size (0 small, 1 large)",
    ylabel="home (0 wild, 1 at home)",
)
ax.legend(loc="upper right")
fig

# %% [markdown]
# *Kitten* lies close to *cat* and not far from *dog*. To use this we need a number for closeness. We take
#
# $$a(q, k) = -\tfrac12 \lVert q - k\rVert^2,$$
#
# zero for a perfect match, more negative the further away. Such a function is called a **score**. By hand, for *kitten* and *dog*:
# $-\tfrac12\big((0.2 - 0.4)^2 + (0.9 - 1.0)^2\big) = -\tfrac12(0.04 + 0.01) = -0.025$.


# %%
def closeness(queries, keys):
    """−½‖q − k‖² for each pair: (…, queries, features), (…, keys, features) → (…, queries, keys)."""
    return -0.5 * (queries.unsqueeze(-2) - keys.unsqueeze(-3)).square().sum(-1)


scores = closeness(query[None], keys)[0]  # one query: (keys,)
assert_close(scores, torch.tensor([-0.325, -0.01, -0.025, -0.305, -0.725]))
pd.DataFrame([scores.tolist()], index=["score of kitten"], columns=animals).round(3)

# %% [markdown]
# Now the one formula of this course. Whoever asks, **attention** answers with a weighted sum of the values:
#
# $$\operatorname{Attention}(q, \mathcal D) = \sum_{i=1}^{m} \alpha(q, k_i)\, v_i .$$
#
# The numbers $\alpha(q, k_i)$ are the **attention weights**. (Bahdanau et al. (2015) brought this sum into deep learning, to translate;
# Miller et al. (2016) told keys from values.) Four ways to choose them are four kinds of look-up:
#
# | look-up | weights |
# |---|---|
# | exact | 1 where the key equals the query, else 0 |
# | approximate (nearest) | 1 for the best score, else 0 |
# | top-k | 1/k for each of the k best scores, else 0 |
# | average | 1/m for every key, whatever the query |


# %%
def exact(scores):
    return (scores == 0).float()


def nearest(scores):
    return F.one_hot(scores.argmax(-1), scores.shape[-1]).float()


def top_k(scores, k=2):
    return torch.zeros_like(scores).scatter(-1, scores.topk(k).indices, 1 / k)


def average(scores):
    return torch.full_like(scores, 1 / scores.shape[-1])


# %% [markdown]
# What does each of them answer for *kitten*? The last column is the weighted sum of the years. Check two rows by hand: top-2 gives
# $\tfrac12\cdot 15 + \tfrac12\cdot 12 = 13.5$, and the average is $122 / 5 = 24.4$.

# %%
lookups = {"exact": exact, "nearest": nearest, "top-2": top_k, "average": average}
weights = torch.stack([lookup(scores) for lookup in lookups.values()])  # (look-ups, keys)
answers = weights @ values
assert_close(answers, torch.tensor([0.0, 15.0, 13.5, 24.4]))
pd.DataFrame(
    torch.cat([weights, answers[:, None]], dim=1).round(decimals=2).tolist(),
    index=lookups.keys(),
    columns=[*animals, "answer"],
).round(2)

# %% [markdown]
# Three things to notice.
#
# - The same few lines answer every query, and would do so over five million pairs. Nothing is compressed, and nothing in the code
#   depends on $m$.
# - The same query gets another answer from another database. What is known sits in the pairs, not in the program.
# - The exact look-up found nothing, and the formula says 0. That is not an answer: no animal lives 0 years. All weights are zero,
#   and only their sum tells us so. For *cat*, which is a key, the exact look-up answers 15.

# %%
cat_scores = closeness(keys[1:2], keys)[0]
assert exact(scores).sum() == 0  # "not found" shows in the weights, not in the answer
assert exact(cat_scores).sum() == 1
assert exact(cat_scores) @ values == 15

# %% [markdown]
# ### Why a network cannot learn through these four
#
# *What happens to the answer when the query moves a little?* Let the query walk in a straight line from *kitten* to *elephant*.
# Next to three of the look-ups (the exact one finds nothing on the way) we draw a fifth one, softmax, which we build below.

# %%
step = torch.linspace(0, 1, 401)
walk = query + step[:, None] * (keys[4] - query)  # (queries, features)
walk_scores = closeness(walk, keys)  # (queries, keys)
curves = {name: lookups[name](walk_scores) @ values for name in ("nearest", "top-2", "average")}
curves["softmax, T = 0.03"] = (walk_scores / 0.03).softmax(-1) @ values
cu.show_curves(
    step,
    curves,
    alt="Answer in years along the walk from kitten to elephant: nearest and top-2 are staircases, "
    "average is flat, softmax is a smooth rising curve.",
    xlabel="step from kitten (0) to elephant (1)",
    ylabel="answer (years)",
)

# %% [markdown]
# *Nearest* and *top-2* are staircases: flat almost everywhere, with jumps in between. *Average* does not listen to the query at
# all. A network learns by following slopes, and a flat line has none. (Such hard choices can be trained with reinforcement
# learning, as in Mnih et al. (2014), at the price of noisy gradients.) The smooth curve has a slope at every point. We assert it.

# %%
for name in ("nearest", "top-2", "average"):
    slopes = curves[name].diff()
    assert (slopes == 0).float().mean() > 0.98, name  # flat but for a few jumps
assert (curves["softmax, T = 0.03"].diff() != 0).float().mean() > 0.98

# %% [markdown]
# ## Where the answer can lie: cone, hull, corners and center
#
# *Which points can a weighted sum reach, if we know what kind of weights it has?* Take three values in the plane,
# $v_1 = (3, 1)$, $v_2 = (1, 2)$ and $v_3 = (2, 3)$, and weights $(\tfrac12, \tfrac14, \tfrac14)$. By hand:
# $\tfrac12(3, 1) + \tfrac14(1, 2) + \tfrac14(2, 3) = (2.25, 1.75)$.
#
# Then we draw many random weights of four kinds and look at where the sums fall.

# %%
points = torch.tensor([[3.0, 1.0], [1.0, 2.0], [2.0, 3.0]])  # three values in the plane
assert_close(torch.tensor([0.5, 0.25, 0.25]) @ points, torch.tensor([2.25, 1.75]))

draws = 600
nonnegative = torch.empty(draws, 3).exponential_()
kinds = {
    "any sign: the plane": torch.randn(draws, 3),
    "nonnegative: the cone": nonnegative,
    "convex: the hull": nonnegative / nonnegative.sum(-1, keepdim=True),
    "one-hot, uniform": torch.cat([torch.eye(3), torch.full((1, 3), 1 / 3)]),
}

# %% tags=["hide-input"]
fig, axes = cu.subplots(
    1,
    4,
    alt="Where weighted sums of three values fall. With weights of any sign: all over the plane. "
    "Nonnegative: inside the cone from the origin through the outer two values. Convex: inside the "
    "triangle of the values. One-hot and uniform: the three corners and the center.",
    width=9.0,
    height=2.7,
    sharex=True,
    sharey=True,
)
for ax, (title, kind) in zip(axes, kinds.items(), strict=True):
    ax.fill([0, 30, 10], [0, 10, 20], color="0.92", zorder=0)  # the cone through v1 and v2
    ax.plot(*points[[0, 1, 2, 0]].T, color="black", linewidth=1, linestyle="--")
    few = len(kind) < 10
    look = {"s": 45, "color": cu.COLORS["vermilion"], "marker": "D"}
    ax.scatter(*(kind @ points).T, **(look if few else {"s": 2, "color": cu.COLORS["blue"]}))
    ax.plot(0, 0, "k+", markersize=9)
    ax.set(xlim=(-1.8, 5.2), ylim=(-1.8, 5.2), xlabel="first coordinate", aspect="equal")
    ax.set_title(title, fontsize=10)
for i, place in enumerate([(8, -4), (-20, -4), (4, 7)]):
    axes[3].annotate(f"$v_{i + 1}$", points[i].tolist(), place, textcoords="offset points")
axes[0].set_ylabel("second coordinate")
fig

# %% [markdown]
# The dashed triangle joins the three values; the gray wedge starts at the origin (+). What to see:
#
# - **Weights of any sign** reach the whole plane, and so say nothing about the answer.
# - **Nonnegative weights** stay in the **convex cone**: the wedge between the outermost values. The sum can be long, but it cannot
#   point elsewhere.
# - **Convex weights** (nonnegative, sum 1) stay in the **convex hull**: here the triangle. This is the usual case in deep learning.
# - **One-hot weights** give the corners: the answer *is* a stored value, as in a database. **Uniform weights** give one point, the
#   mean of the values: average pooling.
#
# We do not trust the eye. A point lies in the cone if it is $\lambda_1 v_1 + \lambda_2 v_2$ with $\lambda \ge 0$, and in the triangle
# if its three barycentric coordinates are nonnegative. Both are small linear systems.

# %%
cone, hull, special = (kind @ points for kind in list(kinds.values())[1:])
lambdas = torch.linalg.solve(points[:2].T, cone.T)  # the two outer values span the cone
assert (lambdas > -1e-4).all()

corners = torch.cat([points.T, torch.ones(1, 3)])  # sums to 1 in the last row
barycentric = torch.linalg.solve(corners, torch.cat([hull.T, torch.ones(1, draws)]))
assert (barycentric > -1e-4).all()
assert_close(special, torch.cat([points, points.mean(0, keepdim=True)]))

# %% [markdown]
# The hull holds in any dimension, in one line that makes a good test: in every direction $u$, the answer lies between the smallest
# and the largest $u^\top v_i$. For our animals: no query whatsoever makes attention with convex weights say less than 2 or more
# than 65 years. Attention interpolates between what it has stored. It can't extrapolate, add up or count; the layers around it
# must do that.

# %%
many = torch.randn(10_000, 2) * 3  # queries far outside the data as well
lifetimes = (closeness(many, keys) / 0.1).softmax(-1) @ values
assert lifetimes.min() >= values.min() - 1e-3 and lifetimes.max() <= values.max() + 1e-3

# %% [markdown]
# ## Softmax: from scores to weights
#
# *Scores can be any number. Which function makes convex weights of them?*
#
# Dividing by the sum gives weights that sum to 1, but only if the scores are nonnegative and not all zero. Scores of 1 and −1 would
# be divided by 0; scores of 3 and −1 would become 1.5 and −0.5, and the answer would leave the hull. So we make the scores
# positive first. The exponential does that:
#
# $$\alpha_i = \operatorname{softmax}(a)_i = \frac{\exp(a_i)}{\sum_{j=1}^m \exp(a_j)} .$$
#
# By hand, for the scores $(0, \ln 2, \ln 5)$: the exponentials are 1, 2 and 5, their sum is 8, the weights are
# $\tfrac18, \tfrac28, \tfrac58$.


# %%
def softmax(scores):
    """As the formula reads; it fails for large scores, as we shall see."""
    positive = scores.exp()
    return positive / positive.sum(dim=-1, keepdim=True)


divided = torch.tensor([3.0, -1.0]) / torch.tensor([3.0, -1.0]).sum()
assert_close(divided, torch.tensor([1.5, -0.5]))  # what dividing alone would give
by_hand = softmax(torch.tensor([0.0, math.log(2), math.log(5)]))
assert_close(by_hand, torch.tensor([1, 2, 5]) / 8)
[round(weight, 3) for weight in by_hand.tolist()]

# %% [markdown]
# Why the exponential, and not a square or a ReLU? Because of what it does with differences:
# $\alpha_i / \alpha_j = \exp(a_i - a_j)$. **Only differences of scores count.** A lead of $\ln 2 \approx 0.69$ doubles the weight,
# wherever the scores lie. Every key keeps a positive weight and so a slope to learn from; after a ReLU, a key with negative score
# would be lost.
#
# ### Rows sum to 1, columns need not
#
# With several queries the scores are a matrix, one row for each query and one column for each key. Softmax runs over the keys: along
# each **row**. *What do the columns sum to?*

# %%
askers = ["kitten", "bird", "house"]
queries = table[askers][:, [size, home]]
weights = (closeness(queries, keys) / 0.1).softmax(dim=-1)  # (queries, keys)
shown = pd.DataFrame(weights.tolist(), index=askers, columns=animals)
shown["row sum"] = shown.sum(axis=1)
shown.loc["column sum"] = shown.sum(axis=0)
shown.round(2)

# %% [markdown]
# Each row is a distribution over the keys. A column says how much attention one key gets from all queries together; it may be any
# number between 0 and the number of queries. Only the total is fixed: as many as there are queries.

# %%
assert_close(weights.sum(dim=-1), torch.ones(3))
columns = weights.sum(dim=0)
assert (columns - 1).abs().min() > 0.01  # not one column sums to 1
assert_close(columns.sum(), torch.tensor(3.0))

# %% [markdown]
# ### Shift invariance, and the overflow it saves
#
# Only differences count, so adding one number to *all* scores of a row changes nothing:
# $\exp(a_i + c) = e^c \exp(a_i)$, and $e^c$ cancels. Adding a number to one *column* does change the weights: that key gains for
# every query.

# %%
scores = torch.randn(3, 5)
per_row, per_column = torch.randn(3, 1), torch.randn(1, 5)
assert_close(softmax(scores + per_row), softmax(scores))
assert (softmax(scores + per_column) - softmax(scores)).abs().max() > 0.1

# %% [markdown]
# This small fact saves the computation. *What does the formula give for scores around 1000, if you type it in as it reads?*

# %%
large = torch.tensor([1000.0, 999.0])
assert softmax(large).isnan().all()  # exp(1000) is inf, and inf / inf is NaN
softmax(large).tolist()

# %% [markdown]
# Where does the exponential overflow? At the logarithm of the largest number of the format:

# %%
formats = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}
limits = {name: math.log(torch.finfo(dtype).max) for name, dtype in formats.items()}
assert limits["float16"] < 11.1 < 88 < limits["float32"]
pd.DataFrame([limits], index=["largest score that exp survives"]).round(1)

# %% [markdown]
# In half precision a score of 12 is already too much. The cure is to subtract the largest score of each row first. Then the largest
# exponent is 0, nothing can overflow, and by shift invariance the weights are the same. Small weights may still **underflow** to
# exactly 0; that is harmless here, but if you need $\log \alpha$, use `log_softmax`.


# %%
def stable(scores):
    shifted = scores - scores.max(dim=-1, keepdim=True).values  # the largest is now 0
    positive = shifted.exp()
    return positive / positive.sum(dim=-1, keepdim=True)


assert_close(stable(large), torch.tensor([0.7311, 0.2689]), atol=1e-4, rtol=0)
assert_close(stable(scores), softmax(scores))
assert_close(stable(scores), scores.softmax(dim=-1))  # PyTorch's own

# %% [markdown]
# Shift invariance also tells us how our score relates to a dot product. Multiply out:
#
# $$-\tfrac12\lVert q - k_i\rVert^2 = q^\top k_i \;-\; \tfrac12\lVert q\rVert^2 \;-\; \tfrac12\lVert k_i\rVert^2 .$$
#
# The middle term is the same for all keys, a shift of the whole row: softmax does not see it. If all keys have the same length, the
# last term is a shift as well, and the dot product gives *the same weights* as closeness. ([Scoring functions](03_scoring_functions.ipynb) goes on from here.)

# %%
q, k = torch.randn(4, 8), torch.randn(6, 8)
half_norms = 0.5 * k.square().sum(-1)
assert_close(closeness(q, k).softmax(-1), (q @ k.T - half_norms).softmax(-1))
k = F.normalize(k, dim=-1)  # all keys of length 1
assert_close(closeness(q, k).softmax(-1), (q @ k.T).softmax(-1))

# %% [markdown]
# ### Exercise 1 · A softmax for scores that are not there
# *10 minutes · ★★*
#
# A score of −∞ is a fine way to say "this key does not exist": $\exp(-\infty) = 0$. Write a softmax over the last axis, for any
# number of axes, that survives scores of ±1000 and scores of −∞, and gives a row of **zeros** if all scores of a row are −∞. Do not
# call `softmax` of PyTorch, and do not change the scores you are given. What does the function `stable` above make of such a row?


# %% tags=["exercise"]
def safe_softmax(scores):
    """Softmax over the last axis; a row of −inf gives zeros: (…, keys) → (…, keys)."""
    ...


# %% tags=["check"]
cu.checks.safe_softmax(safe_softmax)


# %% tags=["solution"] jupyter={"source_hidden": true}
def safe_softmax(scores):
    """Softmax over the last axis; a row of −inf gives zeros: (…, keys) → (…, keys)."""
    largest = scores.max(dim=-1, keepdim=True).values
    # −inf − (−inf) is NaN, so a row without any key is shifted by 0 instead.
    largest = largest.masked_fill(largest == -math.inf, 0.0)
    positive = (scores - largest).exp()
    total = positive.sum(dim=-1, keepdim=True)
    return positive / total.masked_fill(total == 0, 1.0)


cu.checks.safe_softmax(safe_softmax)

# %% [markdown]
# ## Temperature: from average pooling to exact look-up
#
# *Softmax forgets shifts. Does it forget factors too?* No. Divide the scores by a **temperature** $T > 0$:
#
# $$\alpha_i(T) = \frac{\exp(a_i / T)}{\sum_j \exp(a_j / T)} .$$
#
# By hand for *kitten*, $T = 0.1$: the scores divided by $T$ are −3.25, −0.1, −0.25, −3.05 and −7.25. Their exponentials are 0.039,
# 0.905, 0.779, 0.047 and 0.001, with sum 1.771. The weights are 0.02, 0.51, 0.44, 0.03 and 0.00, and the answer is
# $0.02\cdot 2 + 0.51\cdot 15 + 0.44\cdot 12 + 0.03\cdot 28 + \dots \approx 13.8$ years.


# %%
def lookup(queries, keys, values, temperature=1.0):
    """Attention with weights softmax(closeness / temperature) over the keys."""
    weights = (closeness(queries, keys) / temperature).softmax(dim=-1)
    return weights @ values


kitten = query[None]  # (1, features)
assert_close(lookup(kitten, keys, values, temperature=0.1), torch.tensor([13.8]), atol=0.05, rtol=0)

# %% [markdown]
# The temperature leads through the look-ups of the first section. As $T \to 0$ the best score takes everything: **nearest**, and
# for a query that is one of the keys, **exact**. As $T \to \infty$ all scores become equal: **average**. A network may even choose its temperature itself, query by query, as in
# Graves et al. (2014).

# %%
for name in ["kitten", *animals, "house"]:
    asked = table[name][[size, home]][None]
    cold, hot = lookup(asked, keys, values, 1e-4), lookup(asked, keys, values, 1e4)
    assert_close(cold, nearest(closeness(asked, keys)) @ values)
    assert_close(hot, values.mean()[None], atol=1e-2, rtol=0)
assert_close(lookup(keys, keys, values, 1e-4), values)  # each key finds its own value

# %% [markdown]
# Now move it yourself. The query *kitten* starts at $T = 0.1$.
#
# - Move the temperature to the far left: one weight becomes 1, and the answer snaps to the 15 years of the cat. At the far right all
#   weights are 0.2, and every query gets the same 24.4 years.
# - Keep it cold and choose *house*. The answer is that of the dog, 12 years, and it looks just as sure. We come back to this.

# %%
cu.explore.temperature()

# %% [markdown]
# ### The identity heatmap
#
# *What if every key is asked for itself?* Take twelve words of the table with all seven features, as queries and as keys. A
# heatmap shows one weight per cell: queries downwards, keys to the right.

# %%
chosen = ["cat", "kitten", "dog", "horse", "milk", "water", "bread", "apple"]
chosen += ["drinks", "eats", "cold", "small"]
self_scores = closeness(table[chosen], table[chosen])  # (queries, keys)
temperatures = (0.001, 0.1, 10.0)
maps = torch.stack([(self_scores / T).softmax(-1) for T in temperatures])
cu.show_heatmaps(
    maps,
    queries=chosen,
    keys=chosen,
    titles=[f"T = {T:g}" for T in temperatures],
    alt="Three maps of weights among twelve words. At temperature 0.001 an identity matrix. At 0.1 "
    "blocks: animals attend to animals, food to food, actions to actions. At 10 all weights are "
    "about one twelfth.",
)

# %% [markdown]
# - On the left the weight is 1 exactly where query and key are the same word: the **identity matrix** is what an exact look-up of
#   different keys looks like. Remember it; later heatmaps are read against it.
# - In the middle words lean on their likes: animals, food, actions and qualities form blocks. (*Horse* stands a little apart.)
# - On the right nobody is told apart: each cell is 1/12.

# %%
cold, warm, hot = maps
assert_close(cold, torch.eye(12), atol=0.02, rtol=0)
assert_close(hot, torch.full((12, 12), 1 / 12), atol=0.02, rtol=0)
groups = [range(0, 4), range(4, 8), range(8, 10), range(10, 12)]
inside = [warm[i, list(group)].sum() for group in groups for i in group]
assert min(inside) > 0.9  # nine tenths of the attention stay in the group

# %% [markdown]
# ### Exercise 2 · Soft top-k
# *10 minutes · ★★*
#
# A compromise between softmax and top-k: softmax over the k best scores of each row, exactly 0 elsewhere. Language models sample
# their next token from such weights. For k = 1 it is one-hot, for k = m plain softmax. Scores may have any number of axes.


# %% tags=["exercise"]
def soft_top_k(scores, k):
    """Softmax over the k largest scores of each row, 0 elsewhere: (…, keys) → (…, keys)."""
    ...


# %% tags=["check"]
cu.checks.soft_top_k(soft_top_k)


# %% tags=["solution"] jupyter={"source_hidden": true}
def soft_top_k(scores, k):
    """Softmax over the k largest scores of each row, 0 elsewhere: (…, keys) → (…, keys)."""
    best = scores.topk(k, dim=-1)
    return torch.zeros_like(scores).scatter(-1, best.indices, best.values.softmax(dim=-1))


cu.checks.soft_top_k(soft_top_k)

# %% [markdown]
# ## When the gradient vanishes
#
# You can read that the gradient of softmax never vanishes. *Is that so?* The derivative of weight $i$ by score $j$ is
#
# $$\frac{\partial \alpha_i}{\partial a_j} = \alpha_i\,(\delta_{ij} - \alpha_j),
# \qquad\text{as a matrix}\quad J = \operatorname{diag}(\alpha) - \alpha\alpha^\top .$$
#
# By hand for $\alpha = (\tfrac12, \tfrac12)$: the diagonal is $\tfrac12\cdot\tfrac12 = \tfrac14$, off the diagonal
# $-\tfrac12\cdot\tfrac12 = -\tfrac14$. PyTorch's automatic derivative agrees:


# %%
def softmax_jacobian(scores):
    """∂α/∂a for one row of scores: (keys,) → (keys, keys)."""
    weights = scores.softmax(dim=-1)
    return weights.diag() - weights[:, None] * weights[None, :]


assert_close(softmax_jacobian(torch.zeros(2)), torch.tensor([[0.25, -0.25], [-0.25, 0.25]]))
row = torch.randn(5)
automatic = torch.autograd.functional.jacobian(lambda scores: scores.softmax(-1), row)
assert_close(softmax_jacobian(row), automatic)

# %% [markdown]
# Take two keys whose scores differ by a gap $\Delta$. Then every entry of $J$ is $\pm\alpha_1\alpha_2$, and
# $\alpha_1\alpha_2 \approx e^{-\Delta}$ for a large gap. *How small does it get, in exact arithmetic and on a computer?*

# %%
gaps = [0, 2, 5, 10, 20, 120]


def largest_slope(gap, dtype):
    scores = torch.tensor([gap, 0], dtype=dtype)
    return torch.autograd.functional.jacobian(lambda a: a.softmax(-1), scores).abs().max().item()


slopes = {"double precision": [f"{largest_slope(gap, torch.float64):.1e}" for gap in gaps]}
for name, dtype in (("single", torch.float32), ("half", torch.float16)):
    slopes[name] = ["exactly 0" if largest_slope(gap, dtype) == 0 else "not 0" for gap in gaps]
pd.DataFrame(slopes, index=[f"gap {gap}" for gap in gaps])

# %% [markdown]
# *How does it fall in between?*

# %%
between = torch.linspace(0, 25, 200)
halves = [largest_slope(gap, torch.float16) or math.nan for gap in between.tolist()]
cu.show_curves(
    between,
    {
        "exact": [largest_slope(gap, torch.float64) for gap in between.tolist()],
        "half precision": halves,
    },
    alt="Largest slope of softmax against the gap of two scores, on a logarithmic axis: a straight line "
    "down from a quarter to about 1e-11 at a gap of 25; in half precision it becomes a staircase and "
    "ends at a gap of about 17.",
    xlabel="gap Δ of the two scores",
    ylabel="largest slope ∂α/∂a",
    logy=True,
)

# %% [markdown]
# A straight line on a logarithmic axis: exponential decay. Half precision follows it in steps and ends at a gap of about 17, where
# its smallest number is reached.
#
# So the sentence is true on paper: for finite scores and two or more keys, $J$ is never zero. On a computer it is not, and even on
# paper the gradient becomes too small to learn from:
#
# - The slope falls like $e^{-\Delta}$. At a gap of 10 it is 5 in 100 000. A softmax that is this sure of itself is **saturated**.
# - In half precision it is *exactly* 0 from a gap of 20 on, in single precision at 120: underflow.
# - In one direction it is zero always: shifting all scores changes nothing, so $J\mathbf 1 = 0$.
# - With a single key the weight is 1 whatever the score, and $J = 0$. Where all values are equal, the answer does not depend on
#   the scores at all.

# %%
assert 0 < largest_slope(10, torch.float64) < 5e-5  # not zero, but small
assert largest_slope(20, torch.float16) == largest_slope(120, torch.float32) == 0
assert_close(softmax_jacobian(row) @ torch.ones(5), torch.zeros(5), atol=1e-6, rtol=0)
assert softmax_jacobian(torch.tensor([3.0])).item() == 0

# %% [markdown]
# *Does it matter in training?* Let attention choose between two keys with values 0 and 1. The right answer is 1, but the scores
# start with a gap $\Delta$ in favor of the **wrong** key. Gradient descent on the squared error of the answer has to bring the gap
# down. We count its steps until the right key wins.


# %%
def steps_to_unlearn(gap, slope_of_loss):
    """Gradient steps of size 1 on the gap until the right key has the larger weight."""
    steps = 0
    while gap > 0:
        right = 1 / (1 + math.exp(gap))  # softmax of two scores: the weight of the right key
        gap -= slope_of_loss(right)
        steps += 1
    return steps


def squared(right):  # loss ½(1 − answer)², answer = weight of the right key
    return (1 - right) * right * (1 - right)


def log_loss(right):  # loss −log(weight of the right key)
    return 1 - right


gaps = [2, 4, 6, 8, 10]
counts = {"squared error of the answer": squared, "−log of the weight": log_loss}
counts = {name: [steps_to_unlearn(gap, slope) for gap in gaps] for name, slope in counts.items()}
pd.DataFrame(counts, index=[f"gap {gap}" for gap in gaps])

# %% [markdown]
# Through the answer, each further 2 in the gap multiplies the steps by a factor that tends to $e^2 \approx 7.4$: a confident mistake is
# unlearned exponentially slowly. The second column shows that softmax alone is not to blame. The loss $-\log\alpha$, which classifiers use,
# divides by the small weight and cancels it: its slope is $1 - \alpha$, largest where the mistake is largest. Attention weights
# are not trained by such a loss. They are judged only through the values, so **attention can saturate where a classifier does not**.
# That is why scores must not start out large, and why [Scoring functions](03_scoring_functions.ipynb) divides them by $\sqrt d$.

# %%
through_answer, through_log = counts.values()
assert all(
    5 < later / earlier < 10
    for earlier, later in zip(through_answer[1:], through_answer[2:], strict=False)
)
assert max(through_log) < 20

# %% [markdown]
# ## From word embeddings to queries, keys and values
#
# Until now somebody handed us queries, keys and values. In a network there are only words, and each word is a vector $w$ of $M$
# numbers, its **embedding**. *Where do queries, keys and values come from?*
#
# Take the sentence *cat drinks cold milk*: $N_w = 4$ words, $M = 7$ features each, from our word table. (A trained network finds
# its own features, which nobody can name. Ours have names so that we can follow.)

# %%
sentence = ["cat", "drinks", "cold", "milk"]
X = table[sentence]  # (words, features)
assert X.shape == (4, 7)
pd.DataFrame(X.tolist(), index=sentence, columns=table.names).round(1)

# %% [markdown]
# ### Why not dot products of the embeddings themselves?
#
# The shortest way: let each word be query, key and value at once, and score two words by the dot product of their embeddings,
# $X X^\top$. By hand for *drinks* and *milk*: $0.2\cdot 0.9 + 0.2\cdot 1.0 = 0.38$. *What would attend to what?*

# %%
raw_scores = X @ X.T  # (queries, keys)
assert_close(raw_scores[1, 3], torch.tensor(0.38))
cu.show_heatmaps(
    raw_scores.softmax(-1),
    queries=sentence,
    keys=sentence,
    annotate=True,
    width=4.6,
    height=3.4,
    alt="Weights from dot products of the four embeddings: the diagonal is the darkest cell of each "
    "row; drinks gives milk and cat the same weight.",
)

# %% [markdown]
# Each word attends mostly to itself, which it knows already. *Drinks* gives *cat* and *milk* the same weight, though they play
# different parts. The reason is that a dot product measures **likeness**, and likeness is not **relevance**: a verb is unlike its
# object and still needs it. Worse, three facts hold for *all* embeddings, whatever a network learns:
#
# 1. The scores are **symmetric**, $s_{ij} = s_{ji}$. If *drinks* scores *milk* high, then *milk* scores *drinks* just as high.
# 2. The word with the **longest** embedding attends most to itself: $s_{ij} \le \lVert w_i\rVert \lVert w_j\rVert \le s_{ii}$ (Cauchy–Schwarz).
# 3. **No two words can look at each other more than at themselves**: $\alpha_{ij}\,\alpha_{ji} \le \alpha_{ii}\,\alpha_{jj}$. Because
#    $0 \le \lVert w_i - w_j\rVert^2 = s_{ii} + s_{jj} - 2 s_{ij}$; take exponentials, and divide by the two row sums.
#
# We test all three on a thousand random sentences.

# %%
E = torch.randn(1000, 6, 16)  # a thousand sentences of six words
E *= torch.rand(1000, 6, 1)  # with embeddings of all lengths
S = E @ E.mT
A = S.softmax(-1)
assert_close(S, S.mT)
longest = E.norm(dim=-1).argmax(-1)
assert (S.argmax(-1).gather(1, longest[:, None])[:, 0] == longest).all()
itself = A.diagonal(dim1=-2, dim2=-1)
assert (A * A.mT <= itself[:, :, None] * itself[:, None, :] + 1e-6).all()

# %% [markdown]
# And it gets worse with size. If the $d$ entries of an embedding are independent with variance 1, then
# $\lVert w\rVert^2 \approx d$, while the product with another word is only of size $\sqrt d$. Even after dividing all scores by
# $\sqrt d$, as [Scoring functions](03_scoring_functions.ipynb) will, a word leads by $\sqrt d$ with itself. *How much weight is left for the nine others of ten words?*

# %%
sizes = [4, 16, 64, 256]
left_over = []
for d in sizes:
    E = torch.randn(2000, 10, d)
    weights = (E @ E.mT / math.sqrt(d)).softmax(-1)
    left_over.append(1 - weights.diagonal(dim1=-2, dim2=-1).mean().item())
assert left_over[0] > 0.5 and left_over[2] < 0.02 and left_over[3] < 1e-4
pd.DataFrame(
    [[f"{100 * share:.0f} %" for share in left_over]],
    index=["weight on other words"],
    columns=[f"d = {d}" for d in sizes],
)

# %% [markdown]
# At 256 dimensions, a small size today, words with random embeddings talk to nobody but themselves.
#
# ### Word by word
#
# The way out, made popular by Vaswani et al. (2017), gives each word three vectors for three parts to play:
#
# - its **query** $q = w\,W_q$: what this word is looking for,
# - its **key** $k = w\,W_k$: what it can be found by,
# - its **value** $v = w\,W_v$: what it hands over when found.
#
# $W_q$, $W_k$ and $W_v$ are three **learnable matrices**, here of size $7 \times 7$, the same for each word. The words are rows, so the
# matrix stands on the right. We begin with matrices written by hand. In $W_q$ a row is a feature that a word *has*, and a column a
# feature that it then *looks for*: an action looks for something edible (10) and for somebody alive (8); something alive looks for
# an action; something edible for a quality, and a quality for something edible.

# %%
has = {name: place for place, name in enumerate(table.names)}
W_q = torch.zeros(7, 7)
W_q[has["action"], has["edible"]] = 10
W_q[has["action"], has["alive"]] = 8
W_q[has["alive"], has["action"]] = 8
W_q[has["edible"], has["quality"]] = 8
W_q[has["quality"], has["edible"]] = 8
W_k = torch.eye(7)  # a word is found by all its features
handed_over = torch.tensor([1.0, 0, 0, 0, 1, 1, 1])  # all but size, speed and home
W_v = torch.diag(handed_over)
pd.DataFrame(W_q.int().tolist(), index=table.names, columns=table.names)

# %% [markdown]
# *Whom does the word* drinks *look at?* Its embedding is $(0.1, 0, 0.2, 0.2, 0.2, 1, 0)$. By hand, column by column of $W_q$: it looks
# for alive with $1\cdot 8 = 8$, for edible with $1\cdot 10 = 10$, for action with $0.1\cdot 8 = 0.8$ and for quality with
# $0.2\cdot 8 = 1.6$. Its dot product with the key of *milk*, which is edible 1.0 and nothing else that is looked for, is 10.
# We divide by $\sqrt 7$, which is nothing but a temperature.

# %%
w = table["drinks"]
q = w @ W_q  # (7,)
assert_close(q, torch.tensor([8, 0, 0, 0, 10, 0.8, 1.6]))
scores = torch.stack([q @ (table[other] @ W_k) for other in sentence]) / math.sqrt(7)
assert_close(scores[3], torch.tensor(10 / math.sqrt(7)))
weights = scores.softmax(-1)
z = sum(weight * (table[other] @ W_v) for weight, other in zip(weights, sentence, strict=True))
pd.DataFrame([weights.tolist()], index=["drinks"], columns=sentence).round(2)

# %% [markdown]
# *Drinks* attends to *milk* (0.62) and to *cat* (0.29): to what is drunk and to who drinks.
#
# ### All words at once
#
# Stack the four embeddings to $X$, and the same three matrices give all queries, keys and values in three products:
#
# $$Q = X W_q,\qquad K = X W_k,\qquad V = X W_v .$$
#
# Row $i$ of $Q$ is the query of word $i$; entry $(i, j)$ of $Q K^\top$ is the dot product of query $i$ and key $j$. So one line computes
# attention for a whole sentence:
#
# $$Z = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{d}}\right) V ,$$
#
# with the softmax along each row, and $d = 7$ the size of a query. The division stands *inside* the softmax; some slides put it
# outside, and [Scoring functions](03_scoring_functions.ipynb) shows what that breaks.

# %%
Q, K, V = X @ W_q, X @ W_k, X @ W_v
scores = Q @ K.T / math.sqrt(Q.shape[-1])
weights = scores.softmax(dim=-1)
Z = weights @ V
assert_close(Z[1], z)  # the row of "drinks" is what we got word by word

# %% [markdown]
# All tensors, their shapes and what a row is:

# %%
tensors = {
    "X": (X, "the embedding of a word"),
    "W_q, W_k, W_v": (W_q, "a feature that a word has"),
    "Q": (Q, "what a word looks for"),
    "K": (K, "what a word is found by"),
    "V": (V, "what a word hands over"),
    "scores": (scores, "a query; a column is a key"),
    "weights": (weights, "a query: its distribution over the keys"),
    "Z": (Z, "the answer to a word's query"),
}
rows = {
    name: {"shape": tuple(tensor.shape), "a row is": meaning}
    for name, (tensor, meaning) in tensors.items()
}
pd.DataFrame.from_dict(rows, orient="index")

# %% [markdown]
# The queries $Q$: *cat* looks for an action, *drinks* above all for something edible, *cold* for something edible, *milk* for a
# quality.

# %%
pd.DataFrame(Q.tolist(), index=sentence, columns=table.names).round(1)

# %% [markdown]
# $K$ equals $X$ here, because $W_k$ is the identity. The values $V$ leave out three features:

# %%
assert_close(K, X)
pd.DataFrame(V.tolist(), index=sentence, columns=table.names).round(1)

# %% [markdown]
# The scores $QK^\top/\sqrt 7$. They are not symmetric: *drinks* scores *milk* with 3.78, *milk* scores *drinks* with 0.

# %%
assert (scores - scores.T).abs().max() > 3
pd.DataFrame(scores.tolist(), index=sentence, columns=sentence).round(2)

# %% [markdown]
# *What do the weights look like, next to those from the raw embeddings?*

# %%
cu.show_heatmaps(
    torch.stack([raw_scores.softmax(-1), weights]),
    queries=sentence,
    keys=sentence,
    titles=["from the embeddings", "from queries and keys"],
    annotate=True,
    alt="Two maps of weights. From the embeddings, each word attends most to itself. From queries and "
    "keys, cat attends to drinks, drinks to milk and less to cat, cold to milk, and milk to cold.",
)

# %% [markdown]
# On the right nobody looks at itself. *Cat* looks at *drinks*, *drinks* at *milk* and somewhat at *cat*, and *cold* and *milk* look
# at each other, which the third fact above forbids on the left. The answers $Z$ say what each word has gathered: the row of *milk* now
# holds 0.87 of quality. The milk has learned that it is cold.

# %%
assert weights.argmax(-1).tolist() == [1, 3, 3, 2]
assert weights.argmax(-1).tolist() != raw_scores.argmax(-1).tolist() == [0, 1, 2, 3]
assert weights[2, 3] * weights[3, 2] > weights[2, 2] * weights[3, 3]  # against fact 3
pd.DataFrame(Z.tolist(), index=sentence, columns=table.names).round(2)

# %% [markdown]
# Nothing forces the matrices to be square. Queries and keys must have the same size $d$, since they meet in a dot product; values
# may have any size, and so have the answers. When queries, keys and values come from the same words, as here, we speak of
# **self-attention**; when queries come from another sentence, of **cross-attention**. The formula is the same.
#
# ### Three matrices can learn it
#
# We wrote $W_q$ by hand. *Does gradient descent find such matrices, and does it need two of them for the scores?* We ask for the
# map above (*cat* → *drinks*, *drinks* → *milk*, *cold* → *milk*, *milk* → *cold*), minimize $-\log$ of the wanted weights, and
# compare three ways to score. (Here we may use that loss, for we know which weights we want. A real network is never told.)


# %%
wanted = F.one_hot(torch.tensor([1, 3, 3, 2])).float()  # (queries, keys)


def learn(scores_of, parameters, steps=1000, rate=0.2):
    """Gradient descent on the mean of −log(wanted weight); the last loss and the weights."""
    for _ in range(steps):
        scores = scores_of() / math.sqrt(7)
        weights = scores.detach().softmax(dim=-1)
        slope = (weights - wanted) / len(wanted)  # of the loss, by the scores
        slopes = torch.autograd.grad(scores, parameters, slope)
        with torch.no_grad():
            for parameter, downhill in zip(parameters, slopes, strict=True):
                parameter -= rate * downhill
    return -(weights * wanted).sum(-1).log().mean().item(), weights


def matrix():
    return (0.3 * torch.randn(7, 7)).requires_grad_()


# %%
log_factor = torch.zeros(1, requires_grad=True)  # embeddings alone leave a temperature to learn
W, W_query, W_key = matrix(), matrix(), matrix()
learned = {
    "embeddings": learn(lambda: log_factor.exp() * (X @ X.T), [log_factor]),
    "one matrix for both": learn(lambda: (X @ W) @ (X @ W).T, [W]),
    "two matrices": learn(lambda: (X @ W_query) @ (X @ W_key).T, [W_query, W_key]),
}
all_right = [(fit * wanted).sum(-1).min().item() > 0.5 for _, fit in learned.values()]
shown = pd.DataFrame({"mean loss": [round(loss, 1) for loss, _ in learned.values()]}, index=learned)
shown["each word looks where it should"] = ["yes" if right else "no" for right in all_right]
shown

# %% [markdown]
# Two matrices learn the map at once. One matrix for both gives the scores $(XW)(XW)^\top$, again dot products of vectors with
# themselves, so the three facts hold for it: *cold* and *milk* can't both prefer each other, however long we train. If they give each other
# the weights $\alpha$ and $\beta$, the third fact says $\alpha\beta \le (1 - \alpha)(1 - \beta)$, that is $\alpha + \beta \le 1$. So the mean loss over
# the four words can't fall below $\tfrac24\ln 2 \approx 0.35$. We assert these bounds, not the luck of one run.

# %%
loss_embeddings, loss_one, loss_two = (loss for loss, _ in learned.values())
assert loss_two < 0.05
assert loss_one > 0.5 * math.log(2) - 1e-3 and loss_embeddings > loss_one
assert all(fit[2, 3] + fit[3, 2] < 1 + 1e-4 for _, fit in list(learned.values())[:2])

# %% [markdown]
# ### Exercise 3 · Attention from embeddings
# *10 minutes · ★★*
#
# Write the whole way from embeddings to answers, for any number of axes before the words. $W_q$ and $W_k$ are $(M, d)$, and $W_v$ is
# $(M, d_v)$; none needs to be square. The scores are divided by $\sqrt d$.


# %% tags=["exercise"]
def self_attention(X, W_q, W_k, W_v):
    """softmax(QKᵀ/√d) V: (…, words, M), (M, d), (M, d), (M, d_v) → (…, words, d_v)."""
    ...


# %% tags=["check"]
cu.checks.self_attention(self_attention)


# %% tags=["solution"] jupyter={"source_hidden": true}
def self_attention(X, W_q, W_k, W_v):
    """softmax(QKᵀ/√d) V: (…, words, M), (M, d), (M, d), (M, d_v) → (…, words, d_v)."""
    queries, keys, values = X @ W_q, X @ W_k, X @ W_v
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    return scores.softmax(dim=-1) @ values


cu.checks.self_attention(self_attention)

# %% [markdown]
# ## A database of any size, in any order
#
# *What happens to the answer when the database grows, or is shuffled?* The code above has no number of pairs in it. It runs with one
# pair, with five, with a hundred thousand; the form of the answer stays.

# %%
questions = torch.randn(3, 8)
for m in (1, 5, 100_000):
    assert lookup(questions, torch.randn(m, 8), torch.randn(m, 2)).shape == (3, 2)

# %% [markdown]
# A sum does not care for the order of its terms. Shuffle the pairs, keys and values *together*, and the answer is the same, up to the
# rounding of a sum. Shuffle the keys alone, and the database says something else.

# %%
k, v = torch.randn(50, 8), torch.randn(50, 2)
order = torch.randperm(50)
assert_close(lookup(questions, k[order], v[order]), lookup(questions, k, v))
assert (lookup(questions, k[order], v) - lookup(questions, k, v)).abs().max() > 0.01

# %% [markdown]
# For a sentence this means: attention does not see the order of words. *Cat drinks cold milk* and *milk drinks cold cat* give each
# word the same answer, only in other rows. Formally $\operatorname{Att}(PX) = P\operatorname{Att}(X)$ for each permutation $P$. That word order
# counts after all is the business of position encodings, later in the course.

# %%
swapped = ["milk", "drinks", "cold", "cat"]
Y = table[swapped]
Z_swapped = ((Y @ W_q) @ (Y @ W_k).T / math.sqrt(7)).softmax(-1) @ (Y @ W_v)
assert_close(Z_swapped[[3, 1, 2, 0]], Z)

# %% [markdown]
# Two finer points that are easy to miss.
#
# **Copies count.** A database is a list, not a set. A pair that stands there twice has twice the weight, exactly as if its score were
# higher by $\ln 2$.

# %%
cat = 1
twice = lookup(
    kitten, torch.cat([keys, keys[[cat]]]), torch.cat([values, values[[cat]]]), temperature=0.1
)
raised = closeness(kitten, keys) / 0.1
raised[0, cat] += math.log(2)
assert_close(twice, raised.softmax(-1) @ values)

# %% [markdown]
# **Crowds dilute.** One key that leads $m - 1$ equal others by a gap $\Delta$ has the weight $1 / (1 + (m - 1)e^{-\Delta})$. To keep half
# of the attention it must lead by $\ln(m - 1)$: 2.2 among 10 keys, 9.2 among 10,000. A temperature that suits short sequences is
# too warm for long ones. *How fast does the weight fall?*

# %%
for m in (10, 10_000):
    scores = F.pad(torch.tensor([math.log(m - 1)]), (0, m - 1))  # ln(m − 1), then zeros
    assert_close(scores.softmax(-1)[0], torch.tensor(0.5), atol=1e-4, rtol=0)

numbers = torch.logspace(math.log10(2), 4, 80)
cu.show_curves(
    numbers,
    {f"lead of {gap}": 1 / (1 + (numbers - 1) * math.exp(-gap)) for gap in (8, 4, 2)},
    alt="Weight of the leading key against the number of keys from 2 to 10,000 on a logarithmic axis. "
    "All curves fall from near 1 towards 0; a lead of 2 is lost among 30 keys, a lead of 8 lasts until "
    "about 3,000.",
    xlabel="number of keys m",
    ylabel="weight of the leading key",
    logx=True,
)

# %% [markdown]
# Each curve crosses ½ where $m - 1 = e^\Delta$: at about 8, 56 and 3,000 keys.
#
# ## The same as the library's
#
# From now on the course uses `course_utils` (`cu`). *Does it compute what we built?* We write our version with one more argument: a **mask**,
# True where a query may use a pair. A pair that may not be used gets the score −∞, as if it were not in the database. We then compare
# outputs and gradients on random inputs, with and without masks, with ours and with PyTorch's own operator.


# %%
def attention(queries, keys, values, mask=None):
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1) @ values


def outputs_and_gradients(function, mask):
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(2, n, 8, generator=generator).requires_grad_() for n in (3, 5, 5)]
    output = function(*inputs, mask)
    target = torch.randn(output.shape, generator=generator)
    return output, *torch.autograd.grad((output * target).sum(), inputs)


mask = torch.rand(2, 3, 5) < 0.6
mask[..., 0] = True  # each query may use at least one pair; Scoring functions treats the empty row
for m in (None, mask):
    ours = outputs_and_gradients(attention, m)
    assert_close(outputs_and_gradients(cu.scaled_dot_product_attention, m), ours)
    assert_close(outputs_and_gradients(F.scaled_dot_product_attention, m), ours)

# %% [markdown]
# A masked pair has no influence at all: whatever we write into it, the answer stays the same to the last bit.

# %%
only_first_two = torch.tensor([[True, True, False, False, False]])
broken = values.clone()
broken[2:] = 1e6
inputs = (kitten, keys, values[:, None], only_first_two)
assert torch.equal(attention(*inputs), attention(kitten, keys, broken[:, None], only_first_two))
assert_close(attention(*inputs), attention(kitten, keys[:2], values[:2, None]))

# %% [markdown]
# ## What goes wrong
#
# ### The softmax runs over the wrong axis
#
# The function below has been in use for months, on one database at a time. Then somebody gives it a batch. *Which warning sign shows,
# without knowing the right answer?*


# %%
def buggy_lookup(queries, keys, values):
    scores = queries @ keys.transpose(-2, -1)
    weights = scores.softmax(dim=1)
    return weights @ values


years = values[:, None]  # (keys, 1)
asked = table[["kitten", "horse", "house"]][:, [size, home]]
one = buggy_lookup(asked, keys, years)
batch = buggy_lookup(asked[None], keys[None], years[None])
shown = {"alone": one[:, 0].tolist(), "in a batch": batch[0, :, 0].tolist()}
pd.DataFrame(shown, index=["kitten", "horse", "house"]).round(1)

# %% [markdown]
# The answers differ, and no error was raised: every shape fits. There are two signs. The weights of a query no longer sum to 1, and
# an answer may leave the hull. With a single query the sign can't be missed: all weights are 1, and a kitten lives for the *sum* of all
# years.

# %%
assert buggy_lookup(asked[None, :1], keys[None], years[None]).item() == values.sum() == 122
right = cu.scaled_dot_product_attention(asked, keys, years, scale=1.0)
assert_close(one, right)  # alone it is right
wrong = (asked[None] @ keys[None].mT).softmax(dim=1)
assert (wrong.sum(dim=-1) - 1).abs().min() > 0.05  # no row of weights sums to 1

# %% [markdown]
# ### Exercise 4 · Find the bug
# *5 minutes · ★*
#
# Mend `buggy_lookup`, so that it is right with and without a batch axis, and with heads in front of that.


# %% tags=["exercise"]
def fixed_lookup(queries, keys, values):
    """softmax(q·k) v: (…, queries, d), (…, keys, d), (…, keys, d_v) → (…, queries, d_v)."""
    ...


# %% tags=["check"]
cu.checks.fixed_lookup(fixed_lookup)


# %% tags=["solution"] jupyter={"source_hidden": true}
def fixed_lookup(queries, keys, values):
    """softmax(q·k) v: (…, queries, d), (…, keys, d), (…, keys, d_v) → (…, queries, d_v)."""
    scores = queries @ keys.transpose(-2, -1)
    weights = scores.softmax(dim=-1)  # dim=1 is the axis of the keys only where there is no batch
    return weights @ values


cu.checks.fixed_lookup(fixed_lookup)

# %% [markdown]
# ### The dot product does not find the nearest key
#
# In a dot product a long key beats a close one. *How many of the 24 words find themselves, if the words are queries and keys?*

# %%
words = table.features
best = (words @ words.T).argmax(-1)
assert table.words[best[table.words.index("cat")]] == "dog"
found_by_dot = best == torch.arange(24)
found_by_closeness = closeness(words, words).argmax(-1) == torch.arange(24)
unit = F.normalize(words, dim=-1)
found_by_cosine = (unit @ unit.T).argmax(-1) == torch.arange(24)
assert found_by_closeness.all() and found_by_cosine.all()
found = {
    "dot product": found_by_dot,
    "closeness": found_by_closeness,
    "dot product, length 1": found_by_cosine,
}
pd.DataFrame(
    {name: f"{hits.sum()} of 24" for name, hits in found.items()},
    index=["words that find themselves"],
)

# %% [markdown]
# *Cat* finds *dog*, because the dog has larger numbers. The missing term is the $-\tfrac12\lVert k\rVert^2$ from above. A
# network can learn around it, since it makes its own keys; a search over stored vectors can't, and should scale them to length 1.
#
# ### There is always an answer
#
# A database says "not found". Softmax can't: its weights sum to 1, so a query that fits nothing still gets an answer, and at a low
# temperature a decided one.

# %%
house = table["house"][[size, home]][None]
weights = (closeness(house, keys) / 0.01).softmax(-1)[0]
assert weights.max() > 0.8
pd.DataFrame([weights.tolist()], index=["house, T = 0.01"], columns=animals).round(2)

# %% [markdown]
# So a house "lives" for about as long as a dog, and the weights look as sure as ever. Trained models run into this, too: a layer that has
# nothing to say must put its attention somewhere, and often puts it on the first token, an **attention sink** (Xiao et al., 2024).
# One remedy is a pair that means "nothing": a fixed score and the value 0. It takes the attention whenever no real key beats it. Say
# that a key further away than 0.3 is as good as none, so that nothing scores $-\tfrac12\cdot 0.3^2 = -0.045$:

# %%
both = torch.cat([kitten, house])
with_nothing = F.pad(closeness(both, keys), (0, 1), value=-0.045)  # a sixth score for each query
weights = (with_nothing / 0.01).softmax(-1)
assert weights[0, -1] < 0.05 < 0.95 < weights[1, -1]
pd.DataFrame(weights.tolist(), index=["kitten", "house"], columns=[*animals, "nothing"]).round(2)

# %% [markdown]
# The kitten is found as before. The house is not, and its answer is close to 0 because "nothing" has the value 0. How much went
# there is an honest measure of "not found", and it is smooth, so it can be learned.
#
# ### Exercise 5 · An answer of "nothing"
# *15 minutes · ★★★*
#
# Write attention from scores over $m$ stored pairs *and* one extra pair with score `nothing` and value 0, without storing that pair among
# the values: $\;\sum_i \exp(a_i) v_i \big/ \big(\exp(\texttt{nothing}) + \sum_j \exp(a_j)\big)$. It must survive scores of ±1000.


# %% tags=["exercise"]
def attend_or_nothing(scores, values, nothing):
    """One more pair (score nothing, value 0): (…, queries, m), (…, m, d_v) → (…, queries, d_v)."""
    ...


# %% tags=["check"]
cu.checks.attend_or_nothing(attend_or_nothing)


# %% tags=["solution"] jupyter={"source_hidden": true}
def attend_or_nothing(scores, values, nothing):
    """One more pair (score nothing, value 0): (…, queries, m), (…, m, d_v) → (…, queries, d_v)."""
    extra = torch.full_like(scores[..., :1], nothing)
    weights = torch.cat([scores, extra], dim=-1).softmax(dim=-1)
    return weights[..., :-1] @ values  # the extra pair has taken its share, and adds 0


cu.checks.attend_or_nothing(attend_or_nothing)

# %% [markdown]
# ## Take-aways
#
# - Attention is one formula, a weighted sum of values. Exact, nearest, top-k and average look-up differ in the weights alone.
# - Convex weights keep the answer in the hull of the values; one-hot weights give a corner, uniform weights the mean.
# - Softmax makes convex weights from any scores. It ignores shifts, which saves it from overflow, and not factors: the temperature
#   leads from exact look-up to average pooling. Where it is sure, its gradient vanishes like $e^{-\Delta}$.
# - Dot products of embeddings with themselves are symmetric and self-centered, by Cauchy–Schwarz. Separate matrices for queries
#   and keys lift both limits, and a third one says what is handed over.
# - Attention takes any number of pairs in any order. It counts copies, thins out in crowds, and always answers.
#
# ## Quiz

# %%
cu.quiz("queries_keys_values")

# %% [markdown]
# ## References
#
# - Bahdanau, D., Cho, K. and Bengio, Y. (2015). [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473). ICLR. The weighted sum over a database of states.
# - Graves, A., Wayne, G. and Danihelka, I. (2014). [Neural Turing machines](https://arxiv.org/abs/1410.5401). Look-up by content, with a learned temperature.
# - Miller, A. et al. (2016). [Key-value memory networks for directly reading documents](https://arxiv.org/abs/1606.03126). EMNLP. Keys and values told apart.
# - Mnih, V., Heess, N., Graves, A. and Kavukcuoglu, K. (2014). [Recurrent models of visual attention](https://arxiv.org/abs/1406.6247). NeurIPS. Hard attention, trained by reinforcement learning.
# - Vaswani, A. et al. (2017). [Attention is all you need](https://arxiv.org/abs/1706.03762). NeurIPS. Queries, keys and values by three matrices, section 3.2.
# - Xiao, G. et al. (2024). [Efficient streaming language models with attention sinks](https://arxiv.org/abs/2309.17453). ICLR. Where attention goes that has nothing to say.
# - Zhang, A., Lipton, Z. C., Li, M. and Smola, A. J. (2023). [Dive into deep learning](https://d2l.ai). A textbook's way into the same matter, in its chapter on attention mechanisms and transformers.
