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
# **What makes a query fit a key, and how much?**
# [Kernel regression](02_kernel_regression.ipynb) answered with a distance: what is near fits.
# Transformers multiply instead, query times key, number by number, and add up.
# What do the lengths of the vectors do to this score, why is it divided by $\sqrt d$, and what did the older, additive score do better?
#
# After this chapter you can
#
# - say from signs and sizes what a dot product rewards, with a pencil;
# - derive it from the Gaussian kernel, and name what is left out on the way;
# - say what a longer query does to the weights, and what a longer key does;
# - explain $1/\sqrt d$, and which gradient vanishes without it;
# - write dot-product and additive scores that equal those of PyTorch and of the course's package.
#
# It needs [Queries, keys and values](01_queries_keys_values.ipynb) (softmax, temperature) and from [Kernel regression](02_kernel_regression.ipynb) the Gaussian kernel.

# %%
import itertools
import math

import pandas as pd
import torch
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.scoring_functions import planes, scores

cu.seed_everything(0)

# %%
cu.recall("kernel_regression", "queries_keys_values")

# %% [markdown]
# ## A dot product is a match
#
# *Section 1 of 6*
#
# A guest sits down at a table with five dishes.
# Three numbers describe a dish: how sweet it is, how hot, how crunchy; 0 is ordinary, and a negative number is the opposite (mild is negative hot).
# The same three numbers describe the guest: what she likes, and, where they are negative, what she dislikes.
# How well does each dish fit?
# Multiply feature by feature and add up.
# This is the **dot product** of the query $q$ (the guest) and a key $k$ (a dish):
#
# $$q\cdot k = \sum_{j=0}^{d-1} q_j k_j .$$

# %%
sweet = 2.0  # try -2.0 … 2.0
hot = -1.0  # try -2.0 … 2.0
guest = torch.tensor([sweet, hot, 1.0])  # the query
names = ["pancake", "chili", "brittle", "half a brittle", "bread"]
dishes = torch.tensor([[1, 0, 0], [-1, 2, 0], [2, 0, 2], [1, 0, 1], [0, 0, 1.0]])
products = [f"{feature}: q × k" for feature in ("sweet", "hot", "crunchy")]
tastes = pd.DataFrame(guest * dishes + 0.0, names, products)
tastes["score"] = tastes.sum(axis=1)
tastes["cos θ"] = F.cosine_similarity(dishes, guest, dim=1)
tastes["weight"] = (dishes @ guest).softmax(dim=0)
tastes.round(3)

# %% [markdown]
# **Signs:** where guest and dish have the same sign, the product is positive; where they differ, it is negative.
# The guest (2, −1, 1) dislikes hot and likes sweet, and chili is the opposite in both: −2 −2 = −4.
# A zero on either side does not count.
# **Sizes:** the guest's numbers say how much each feature matters to her, those of the dish how much of it there is.
# Half a brittle points in the same direction as brittle and gets half its score, 3 in place of 6, and after the softmax not half its weight but a twentieth: 0.046 against 0.930.
# Change the two marked numbers until chili wins.
#
# In one formula: $q\cdot k = \lVert q\rVert\,\lVert k\rVert\cos\theta$, with $\theta$ the angle between them.
# Both brittles have the same $\cos\theta$, 0.87.
# A dot product rewards the same *direction*, and multiplies by both *lengths*.

# %%
cu.quiz("scoring_functions", "signs")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Half a brittle: the same direction, half the score, another weight."):
    brittle, half_brittle = tastes.loc["brittle"], tastes.loc["half a brittle"]
    assert abs(brittle["cos θ"] - half_brittle["cos θ"]) < 1e-6
    assert brittle["score"] == 2 * half_brittle["score"]
    ratio = math.exp(-half_brittle["score"])  # the scores differ by this much
    assert abs(half_brittle["weight"] - ratio * brittle["weight"]) < 1e-6
    assert brittle["score"] == 0 or half_brittle["weight"] != brittle["weight"] / 2

# %% [markdown]
# ## From distance to dot product
#
# *Section 2 of 6*
#
# In [Kernel regression](02_kernel_regression.ipynb) we multiplied out $(q-k_i)^2$, for numbers: a product and a bias for each key.
# With vectors, too, and width 1:
#
# $$-\tfrac12\lVert q-k\rVert^2 \;=\; q\cdot k \;-\; \tfrac12\lVert q\rVert^2 \;-\; \tfrac12\lVert k\rVert^2 .$$
#
# By hand: for $q=(1,2)$ and $k=(1,1)$ the distance is 1, so on the left stands $-\tfrac12$; on the right $3-2.5-1=-\tfrac12$.
# The term in $\lVert q\rVert^2$ is the same for all keys, and a softmax does not see it.
# Now leave out the bias as well: the score is $q\cdot k$ alone.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The query (1, 2) is at distance 1 from the keys (1, 1) and (2, 2). By q·k alone, which gets more weight?",
    [
        "both the same, as they are equally near",
        "(2, 2), about twice as much",
        "(2, 2), about 20 times as much",
        "(1, 1), as it is shorter",
    ],
    answer="(2, 2), about 20 times as much",
    wrong={
        "both the same, as they are equally near": "By distance they do. Compute the two dot products.",
        "(2, 2), about twice as much": "Twice is the ratio of the scores, 6 and 3. Then comes a softmax.",
        "(1, 1), as it is shorter": "Compute the two dot products. What was −½‖k‖² for a long key?",
    },
    why="The products are 3 and 6, and a softmax turns a difference of 3 into a ratio of e³ = 20.",
)

# %%
query = torch.tensor([1.0, 2.0])
keys = torch.tensor([[1.0, 1.0], [2.0, 2.0], [0.0, 1.0]])
match, key_half, query_half = keys @ query, keys.square().sum(1) / 2, query @ query / 2
distance_half = (query - keys).square().sum(dim=1) / 2
by_distance, prior = (-distance_half).softmax(dim=0), key_half.exp()
rows = {
    "q·k": match, "−½‖q‖²": -query_half.expand(3), "−½‖k‖²": -key_half,
    "−½‖q−k‖²": -distance_half,
    "α by distance": by_distance,
    "α without −½‖q‖²": (match - key_half).softmax(dim=0),
    "α by q·k alone": match.softmax(dim=0),
    "prior exp(½‖k‖²)": prior,
    "α by distance × prior, / sum": by_distance * prior / (by_distance @ prior),
}  # fmt: skip
shown_keys = ["(1, 1)", "(2, 2)", "(0, 1)"]
terms = pd.DataFrame(rows, shown_keys).T.astype(float)
terms.round(2)

# %% [markdown]
# The first three rows add up to the fourth.
# Leave out the term in $\lVert q\rVert^2$: the weights stay, 0.38, 0.38, 0.23.
# Leave out the one in $\lVert k\rVert^2$, too: the first two keys are equally near, and now they have 0.05 and 0.94.
# A dot product is not a distance in disguise.
# Take the exponential of both sides and sort:
#
# $$e^{\,q\cdot k} \;=\; e^{\lVert q\rVert^2/2}\;\cdot\; \underbrace{e^{-\lVert q-k\rVert^2/2}}_{G(q,\,k)}\;\cdot\; e^{\lVert k\rVert^2/2} .$$
#
# The first factor is the same for all keys and cancels in the weights.
# What is left is the **Gaussian kernel $G$, with a prior weight $e^{\lVert k\rVert^2/2}$ on each key**: dot-product attention is the kernel regression of the last chapter in which a key with the prior 20 counts like 20 copies of itself.
# The last two rows show it: the key (2, 2) counts $54.6/2.72 = 20$ times as often as (1, 1), and this turns 0.38, 0.38, 0.23 into 0.05, 0.94, 0.02.
#
# One thing more is given up.
# A Gaussian treats its two vectors alike.
# In [self-attention](07_self_attention.ipynb), queries and keys come from the same words by two matrices, and then *cold* can look for *milk* without *milk* looking for *cold* (an example is on the further page).
#
# ### Exercise 1 · A Gaussian without differences
#
# *bug · 8 minutes*
#
# Forming $q-k$ for all pairs takes an array (n, m, d).
# A colleague used the expansion: one matrix product and a correction.
# With as many queries as keys his function raises no error.
# Below the three keys are their own queries, at distance 0 to themselves, so that the largest weight of each row must stand on the diagonal.
# Find his mistake, and write `fixed_gaussian_weights`, with one matrix product and no function for distances.


# %%
def buggy_gaussian_weights(queries, keys):
    half_norms = keys.square().sum(dim=-1, keepdim=True) / 2
    return (queries @ keys.T - half_norms).softmax(dim=-1)


pd.DataFrame(buggy_gaussian_weights(keys, keys), shown_keys, shown_keys).round(2)


# %% tags=["exercise", "bug"]
def fixed_gaussian_weights(queries, keys):
    """(n, d), (m, d) → (n, m): softmax of −½‖q − k‖² over the keys."""
    ...  # to play with: fixed_gaussian_weights(keys, keys)


# %% tags=["check"]
cu.checks.fixed_gaussian_weights(fixed_gaussian_weights)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_gaussian_weights_solution(queries, keys):
    """keepdim made a column, (m, 1): one number a row, which the softmax does not see. It was a plain q·k."""
    half_norms = keys.square().sum(dim=-1) / 2  # (m,): one number a column
    return (queries @ keys.T - half_norms).softmax(dim=-1)


cu.checks.fixed_gaussian_weights(fixed_gaussian_weights_solution)

# %%
cu.quiz("scoring_functions", "prior")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The softmax sees the key's term and not the query's: a Gaussian with priors."):
    assert (terms.loc["α without −½‖q‖²"] - terms.loc["α by distance"]).abs().max() < 1e-6
    assert abs(terms.loc["α by distance"].iloc[0] - terms.loc["α by distance"].iloc[1]) < 1e-6
    assert terms.loc["α by q·k alone"].iloc[1] > 0.9
    gap = terms.loc["α by q·k alone"] - terms.loc["α by distance × prior, / sum"]
    assert gap.abs().max() < 1e-6

# %% [markdown]
# ## Long queries, long keys
#
# *Section 3 of 6*
#
# The term in $\lVert q\rVert^2$ has dropped out.
# Is the *length* of a query free, then?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "The query (1, 2) becomes (3, 6). Its weights by q·k were 0.05, 0.94, 0.02. What do they become?",
    ["they stay", "sharper, as the gaps grow", "flatter"],
    answer="sharper, as the gaps grow",
    wrong={
        "they stay": "What happens to the three scores 3, 6 and 2? And to their gaps?",
        "flatter": "The scores are three times as far apart. Which way does a softmax go then?",
    },
    why="All scores are multiplied by 3, which is a temperature divided by 3.",
)

# %%
stretch = 3.0  # try 0.1 … 10.0
factors = sorted({0.1, 1.0, stretch})
longer = torch.tensor(factors)[:, None] * query  # one query a row
stretched = (longer @ keys.T).softmax(dim=1)
pd.DataFrame(stretched, [f"{c:g} · q" for c in factors], shown_keys).round(3)

# %% [markdown]
# No: $\mathrm{softmax}(c\,q\cdot k)$ is the softmax at the [temperature](C_glossary.ipynb#temperature) $1/c$: **the length of a query is an inverse temperature**.
# At 0.1 the weights are nearly equal, 0.31, 0.42, 0.28; at 3 the second key has all of it.
# The direction of a query says *who* wins, its length *how clearly*.
#
# And the length of a key?
# Color each point of the plane, taken as a query, by the key that wins it.
# Five keys; D lies near the origin, inside the polygon of the others.

# %%
d_length = 0.5  # try 0.1 … 3.0
five = torch.tensor([[2.0, 1.0], [-1.5, 1.5], [-1.0, -2.0], [0.4, 0.9], [1.7, -1.6]])
five[3] *= d_length / five[3].norm()  # D
one_length = 2 * five / five.norm(dim=1, keepdim=True)
plane = planes.grid()  # queries all over the square from −3 to 3
won = {
    "−½‖q − k‖²": (five, (plane @ five.T - five.square().sum(dim=1) / 2).argmax(dim=1)),
    "q · k": (five, (plane @ five.T).argmax(dim=1)),
    "q · k, keys of one length": (one_length, (plane @ one_length.T).argmax(dim=1)),
}
planes.show_winners(won)

# %% [markdown]
# By distance each key has a **cell** around it.
# By dot product the regions are **wedges**, because the winner depends on the query's direction only, and D wins nowhere.
# On the right all keys have the same length, so that the term in $\lVert k\rVert^2$ is one more constant: each key has a wedge, D too.
# Make D longer with the marked number: when does it get its first query?
#
# ### Exercise 2 · A key that never wins
#
# *open · 6 minutes*
#
# D lies inside the polygon of A, B, C and E (up to a length of 1.32), so that it is an average of them: $D = \sum_i \beta_i k_i$ with $\beta_i \ge 0$ that sum to 1.
# Show that no query has a larger dot product with D than with all the others.
# (What is $q\cdot D$ in terms of the other scores?
# What can't an average do?)
# Then: does D get no *weight*, either?
# (The further page answers both.)
# And is a model hurt by a key that never wins?
# Say which experiment would show that you are wrong.

# %%
cu.quiz("scoring_functions", "longer")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The query's length is an inverse temperature; a key inside the others' polygon never wins."
):
    warmth = 1 / torch.tensor(factors)[:, None]
    assert (stretched - (match / warmth).softmax(dim=1)).abs().max() < 1e-5
    assert (stretched.max(dim=1).values.diff() >= 0).all()
    wins = {rule: winner.bincount(minlength=5) for rule, (_, winner) in won.items()}
    assert (d_length > 1.32 or wins["q · k"][3] == 0) and (wins["−½‖q − k‖²"] > 0).all()
    assert (wins["q · k, keys of one length"] > 0).all()

# %% [markdown]
# ## Why divide by √d?
#
# *Section 4 of 6*
#
# Vectors also get longer by having more features.
# Begin with a pencil: all coordinates are +1 or −1, all combinations equally likely.
# For $d=2$ the dot product is $-2$, $0$, $0$ or $2$, and its mean square $(4+0+0+4)/4 = 2$.
# The reason holds for all coordinates that are independent, with mean 0 and variance 1: each product $q_jk_j$ has mean 0 and variance 1, a dot product adds $d$ of them, and variances of independent terms add up:
#
# $$\mathrm E[q\cdot k] = 0,\qquad \mathrm{Var}[q\cdot k] = d .$$
#
# How often $q\cdot k$ has each value, over all pairs of ±1 vectors; the mean is 0, the mean square exactly $d$:

# %% tags=["hide-input"] jupyter={"source_hidden": true}
sign_rows = {}
for size in range(1, 5):
    corners = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=size)))  # all 2^d vectors
    both = (corners @ corners.T).flatten()  # all pairs
    row = {f"{v}": (both == v).float().mean().item() for v in range(-4, 5)}
    sign_rows[f"d = {size}"] = row | {
        "mean": both.mean().item(),
        "mean square": both.square().mean().item(),
    }
by_signs = pd.DataFrame(sign_rows).T
by_signs.round(3)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Normal vectors with d = 1024: what is a typical size of q·k (the root of its mean square)?",
    (0, 1100),
    answer=32,
    wrong={
        "less": "Each of 1,024 products is about ±1. How far from 0 does their sum get?",
        "more": "The signs differ, and most of the products cancel. What is the variance of their sum?",
        1024: "This is the variance. A typical size is its root.",
    },
    why="The variance of the sum is 1,024, and its root is 32.",
    within=6,
)

# %%
pairs = 4000  # try 500 … 8000
dims = [2**power for power in range(11)]  # 1, 2, 4, …, 1024
dots, sizes = {}, {}
for d in dims:
    q, k = torch.randn(2, pairs, d)
    dots[d] = (q * k).sum(dim=1)
    sizes[d] = {
        "variance of q·k": dots[d].var(),
        "typical size": dots[d].square().mean().sqrt(),
        "variance of q·k/√d": (dots[d] / math.sqrt(d)).var(),
    }
measured = pd.DataFrame(sizes).T.astype(float).rename_axis("d")
measured.loc[[1, 4, 16, 64, 256, 1024]].round(2)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, (left, right) = cu.subplots(
    1, 2, width=8.4, height=3,
    alt="Left: histograms of dot products, narrow for d = 4, wide for d = 64, flat for d = 1024. Right, "
    "log axes: the variance follows the line d; after division by the root of d it stays at 1.",
)  # fmt: skip
for d, dash in ((4, "-"), (64, "--"), (1024, ":")):
    counts, edges = dots[d].histogram(bins=128, range=(-128, 128), density=True)
    left.stairs(counts, edges, linestyle=dash, linewidth=1.6, label=f"d = {d}")
left.set(xlabel="q · k", ylabel="density", xlim=(-128, 128))
left.legend()
right.loglog(dims, dims, "-", color="0.75", label="d")
right.loglog(dims, measured["variance of q·k"], "o", label="variance of q·k")
right.loglog(dims, measured["variance of q·k/√d"], "s--", label="variance of q·k/√d")
right.set(xlabel="dimension d", ylabel="variance")
right.legend()
fig

# %% [markdown]
# With normal vectors, too, the variance of $q\cdot k$ follows $d$ (at 1024 a typical size is 31.8; on the left it is the flat curve), and after division by $\sqrt d$ it stays near 1.
# This is [scaled dot-product attention](C_glossary.ipynb#scaled-dot-product-attention) (Vaswani et al., 2017):
#
# $$a(q,k) = \frac{q\cdot k}{\sqrt d} .$$
#
# ### The whole of it
#
# Between *scale* and *normalize* a step is missing: a mask, the subject of the next chapter.
# The cell after the drawing compares the four lines with PyTorch's operator, gradients of queries, keys and values included.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.Drawing(
    """
    Q      K      V
    score  score  .
    scale  scale  .
    norm   norm   .
    A      A      .
    mix    mix    mix
    O      O      O
    """,
    nodes={
        "Q": cu.Cells(2, 4, "queries", shape="(n, d)", color="query"),
        "K": cu.Cells(3, 4, "keys", shape="(m, d)", color="key"),
        "V": cu.Cells(3, 2, "values", shape="(m, d_v)", color="value"),
        "score": cu.Box("score: each query times each key", shape="(n, m)"),
        "scale": cu.Box("scale: divide by √d"),
        "norm": cu.Box("normalize: softmax over the keys"),
        "A": cu.Cells(2, 3, "weights", shape="(n, m)", color="wash"),
        "mix": cu.Box("mix: weights times values"),
        "O": cu.Cells(2, 2, "outputs", shape="(n, d_v)", color="value"),
    },
    arrows=["Q, K -> score -> scale -> norm -> A -> mix -> O", "V -> mix"],
    alt="Scaled dot-product attention: n queries and m keys of d numbers give n times m scores; these "
    "are divided by the root of d and normalized by a softmax over the keys; the weights mix the m values "
    "to n outputs.",
    gap=(26, 18),
)  # fmt: skip

# %%
features = 64  # try 1 … 256


def attention(queries, keys, values):
    """(…, n, d), (…, m, d), (…, m, d_v) → (…, n, d_v)."""
    scores = queries @ keys.transpose(-2, -1)  # score
    scores = scores / math.sqrt(queries.shape[-1])  # scale
    weights = scores.softmax(dim=-1)  # normalize
    return weights @ values  # mix


inputs = torch.randn(2, 3, features), torch.randn(2, 5, features), torch.randn(2, 5, 7)
cu.equal(attention, F.scaled_dot_product_attention, *inputs)

# %%
cu.quiz("scoring_functions", "root")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The variance of a dot product is d, and the root makes it 1."):
    assert by_signs["mean square"].tolist() == [1, 2, 3, 4] and (by_signs["mean"] == 0).all()
    assert ((measured["variance of q·k"] / measured.index).sub(1).abs() < 0.2).all()
    assert ((measured["variance of q·k/√d"] - 1).abs() < 0.2).all()

# %% [markdown]
# ## What large scores do
#
# *Section 5 of 6*
#
# How spread out are weights?
# Their [entropy](C_glossary.ipynb#entropy) $-\sum_i\alpha_i\log_2\alpha_i$ says it in bits: 0 if one key has all the weight, $\log_2 m$ if $m$ keys share equally.
# By hand: $(\tfrac12,\tfrac14,\tfrac14)$ has $\tfrac12+\tfrac24+\tfrac24 = 1.5$ bits.
# Four random queries and six keys; at most 2.58 bits.
# Predict, then move $d$ to the right.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "d = 256, not scaled. What do the rows of weights look like?",
    ["nearly equal weights", "two or three keys share", "nearly all on one key"],
    answer="nearly all on one key",
    wrong={
        "nearly equal weights": "A typical score is 16 then. How far apart are the largest and the next?",
        "two or three keys share": "For that their scores would have to lie within 1 or 2 of each other, and they spread over ±16.",
    },
    why="Scores spread over ±16, so the largest is mostly several units ahead of the next, and e to the power of that is large.",
)

# %%
cu.explore.dot_products()

# %% [markdown]
# At $d = 256$ the mean entropy is 0.19 bits.
# Tick the box: 2.32.
# Then multiply the queries by $16 = \sqrt{256}$: 0.19 again.
# Scale and length are one and the same knob.
#
# ### Which gradient vanishes?
#
# If a softmax is nearly one-hot, its weights hardly react to the scores.
# With two keys the slope is $\alpha(1-\alpha)$, at most $\tfrac14$; for scores 8 apart it is 0.0003.
# For $m$ keys it is a matrix, $J_{ij} = \partial\alpha_i/\partial a_j$ (see the further page).
# This is what Vaswani et al. suspect.
# But training does not change scores, it changes queries and keys.
# The scores are $a_j = s\,q\cdot k_j$, with $s = 1$ or $1/\sqrt d$, and the chain rule gives
#
# $$\frac{\partial\alpha}{\partial q} = s\,J\,K ,\qquad K \text{ with the keys as rows, each about } \sqrt d \text{ long} .$$
#
# Without the scale, $J$ gets smaller with $d$, and nothing takes back the keys' length.
# Which is stronger?
# 1,000 queries with 16 keys each; of each gradient the size (the root of the sum of all squares), and of 1,000 sizes the median and the range from 10 % to 90 %.

# %%
records = {}
for scaled, d in itertools.product([False, True], dims):
    Q, K = torch.randn(1000, 1, d).double(), torch.randn(1000, 16, d).double()
    s = 1 / math.sqrt(d) if scaled else 1.0
    alpha = (s * Q @ K.mT).softmax(dim=-1).squeeze(1)  # (1000, 16)
    J = torch.diag_embed(alpha) - alpha[:, :, None] * alpha[:, None, :]  # (…, 16, 16)
    record = {"bits": (torch.special.entr(alpha).sum(1) / math.log(2)).mean().item()}
    for name, gradient in {"∂α/∂a": J, "∂α/∂q": s * J @ K}.items():
        lengths = gradient.flatten(1).norm(dim=1)
        for level in (0.1, 0.5, 0.9):
            record[f"{name} {level:.0%}"] = lengths.quantile(level).item()
    records["q·k/√d" if scaled else "q·k", d] = record
reactions = pd.DataFrame(records).T.rename_axis(["score", "d"])
reactions.loc[(slice(None), [1, 16, 64, 256, 1024]), :].round(3)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
fig, axes = cu.subplots(
    1, 3, width=9, height=3.1,
    alt="Over d from 1 to 1024, scaled in blue and unscaled in red. Entropy: scaled it stays near 3.4 bits, "
    "unscaled it falls to near 0. Size of the gradient of the weights by the scores: scaled flat at 0.3, "
    "unscaled it collapses. By the query: scaled flat, unscaled first larger, then it collapses, "
    "with a very wide band.",
)  # fmt: skip
for score, color, line in (("q·k/√d", "key", "s--"), ("q·k", "query", "o-")):
    part, color = reactions.loc[score], cu.COLORS[color]
    axes[0].semilogx(part.index, part["bits"], line, color=color, markersize=4)
    for ax, of in zip(axes[1:], ("∂α/∂a", "∂α/∂q"), strict=True):
        low, mid, high = (part[f"{of} {level}"] for level in ("10%", "50%", "90%"))
        ax.loglog(part.index, mid, line, color=color, markersize=4, label=score)
        ax.fill_between(part.index, low.clip(lower=1e-6), high, color=color, alpha=0.2, linewidth=0)
        ax.set(title=f"size of {of}: median, 10 % to 90 %", ylim=(1e-5, 20))
axes[0].axhline(4, color="0.6", linewidth=1)
axes[0].text(1, 3.85, "16 equal weights", color="0.35", fontsize=9, va="top")
axes[0].set(title="mean entropy (bits)", ylim=(0, 4.2))
axes[1].legend(loc="lower left")
for ax in axes:
    ax.set_xlabel("dimension d")
fig

# %% [markdown]
# Entropy: without the scale 3.5 bits at $d=1$ become 0.1 at 1024; with it they stay near 3.4. **∂α/∂a** is 0.30 with the scale from $d = 16$ on; without it, it falls to 0.10 at 64 and to 0.01 at 256.
# This gradient vanishes. **∂α/∂q** does not, at first: at $d = 64$ it is nearly *three times as large* without the scale, 0.8 against 0.3.
# $J$ is a third, but $s$ is 1 in place of 1/8: $8/3 = 2.7$.
# But look at the band: at 64, a tenth of the queries gets 0.003 or less and a tenth 3.5 or more.
# So without the scale the gradients of the queries are *badly spread* long before the middle one is small.
#
# ### Scaled after the softmax
#
# $\mathrm{softmax}(QK^\top)/\sqrt d\;V$ looks almost like the right formula.
# By hand, with $d=64$ and the scores 8 and 0: before the softmax we get softmax(1, 0) = (0.73, 0.27); after it, (0.9997, 0.0003)/8 = (0.125, 0.00004).

# %% tags=["hide-input"] jupyter={"source_hidden": true}
six_queries, six_keys = torch.randn(2, 6, 64)
right_way = (six_queries @ six_keys.T / 8).softmax(dim=-1)
never = (six_queries @ six_keys.T).softmax(dim=-1)
late = never / 8
cu.show_heatmaps(
    torch.stack([right_way, never, late]), width=8.6, height=2.8,
    titles=["before the softmax: right", "not at all", "after it: rows sum to 1/8"],
    alt="Three maps of six queries and keys. Scaled before the softmax the weights are spread; not "
    "scaled nearly one-hot; scaled after it, the same one-hot pattern, eight times paler.",
)  # fmt: skip

# %% [markdown]
# On the right the choice is as hard as without any scale; only the output is eight times too small.
#
# ### Exercise 3 · Five gaps
#
# *predict · 6 minutes*
#
# The query (1, 2) has the score 6 with the key (2, 2) and 3 with (1, 1): a gap of 3.
# The weights depend on the gap alone.
# What does it become?
# Write down five numbers, then let the check compare.
#
# (a) The query is multiplied by 3. (b) Both keys are halved. (c) (5, −1) is added to both keys. (d) (1, 1) is added to the query. (e) Now with $1/\sqrt d$: the gap is $3/\sqrt2 = 2.12$.
# Each vector is written twice in a row, (1, 2) as (1, 2, 1, 2), so that $d = 4$.


# %% tags=["exercise", "predict"]
def predicted_gaps():
    """Five numbers, for (a) to (e), without running anything."""
    return ...  # such as [1, 2, 3, 4, 5]


# %% tags=["check"]
cu.checks.predicted_gaps(predicted_gaps)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def predicted_gaps_solution():
    """(c) q·(5, −1) is added to both. (e) 6/√4: copies are not independent, and √d is not enough for them."""
    return [9, 1.5, 3, 5, 3]


cu.checks.predicted_gaps(predicted_gaps_solution)

# %%
cu.quiz("scoring_functions", "which_gradient", "after")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Without the scale ∂α/∂a vanishes; ∂α/∂q is larger at d = 64, and badly spread."):
    unscaled, with_scale = reactions.loc["q·k"], reactions.loc["q·k/√d"]
    assert unscaled["bits"][1024] < 0.3 and with_scale["bits"].between(3.3, 3.6).all()
    assert (
        unscaled["∂α/∂a 50%"][256] < 0.03
        and with_scale["∂α/∂a 50%"].loc[16:].between(0.28, 0.32).all()
    )
    assert unscaled["∂α/∂q 50%"][64] > 1.3 * with_scale["∂α/∂q 50%"][64]
    assert unscaled["∂α/∂q 50%"][1024] < 0.05 < with_scale["∂α/∂q 50%"][1024]
    assert unscaled["∂α/∂q 10%"][64] < 0.02 < 2 < unscaled["∂α/∂q 90%"][64]

# %% [markdown]
# ## Additive scores
#
# *Section 6 of 6*
#
# A dot product needs queries and keys of one size.
# The score with which translation learned to attend (Bahdanau et al., 2015) does not: it takes both to $h$ hidden units, *adds*, applies tanh (a smooth step from −1 to 1), and multiplies by $w$.
# With rows,
#
# $$a(q,k) = \tanh(qW_Q + kW_K)\cdot w,\qquad W_Q\in\mathbb R^{d_q\times h},\ W_K\in\mathbb R^{d_k\times h},\ w\in\mathbb R^h .$$
#
# By hand, with $d_q=1$, $d_k=2$, $h=2$: let $W_Q = (1\ \ 0)$, $W_K = \begin{pmatrix}0&1\\1&0\end{pmatrix}$, $w=(1,-1)$ and $q = 0.5$.
#
# | key | $qW_Q$ | $kW_K$ | sum | tanh of it | score |
# |---|---|---|---|---|---|
# | (1, −0.5) | (0.5, 0) | (−0.5, 1) | (0, 1) | (0, 0.76) | **−0.76** |
# | (0, 0.5) | (0.5, 0) | (0.5, 0) | (1, 0) | (0.76, 0) | **0.76** |
#
# ### Exercise 4 · All pairs at once
#
# *build · 10 minutes*
#
# Write it for all pairs, without a loop: every row of $QW_Q$ has to meet every row of $KW_K$, so that the sum has the axes (queries, keys, hidden units).
# A batch may stand in front.
# Once it passes, the chapter goes on with your function, and first compares it with the course's package, for queries of 20 numbers and keys of 10.
# (PyTorch keeps the matrix of a linear layer transposed, hence the `.T`.)


# %% tags=["exercise", "build"]
def my_additive_scores(queries, keys, w_q, w_k, w):
    """(…, n, d_q), (…, m, d_k), (d_q, h), (d_k, h), (h,) → (…, n, m)."""
    ...


# %% tags=["check"]
cu.checks.my_additive_scores(my_additive_scores)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_additive_scores_solution(queries, keys, w_q, w_k, w):
    """(…, n, 1, h) and (…, 1, m, h) broadcast to (…, n, m, h); the product with w removes the last axis."""
    added = (queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)
    return added.tanh() @ w


cu.checks.my_additive_scores(my_additive_scores_solution)

# %%
hidden = 64  # try 1 … 512
additive = cu.choose(my_additive_scores, scores.additive_scores)
layer = cu.AdditiveAttention(query_dim=20, key_dim=10, hidden_dim=hidden)
W_Q, W_K, w = (weight.detach().T for weight in layer.parameters())
w = w[:, 0]  # one output: a column becomes a vector
few = torch.randn(3, 20), torch.randn(5, 10)
cu.equal(lambda q, k: additive(q, k, W_Q, W_K, w), layer.scores, *few)

# %% [markdown]
# ### Bounded, and flat
#
# So $|a|\le\sum_j|w_j|$, however long the vectors are.
# Multiply 400 queries and keys by 10, 100, 10,000, and look at the gradient that reaches a query.

# %%
grown = {}
for c in (1, 10, 100, 10_000):
    wide_q, wide_k = c * torch.randn(400, 1, 20), c * torch.randn(400, 1, 10)
    a = additive(wide_q.requires_grad_(), wide_k, W_Q, W_K, w)
    (slope,) = torch.autograd.grad(a.sum(), wide_q)
    units = (wide_q @ W_Q + wide_k @ W_K).tanh()
    grown[f"inputs × {c:,}"] = {
        "largest |a|": a.abs().max().item(),
        "bound Σ|w|": w.abs().sum().item(),
        "units at ±1": (units.abs() == 1).float().mean().item(),
        "∂a/∂q exactly 0": (slope == 0).all(dim=-1).float().mean().item(),
    }
saturated = pd.DataFrame(grown).T
saturated.round(3)

# %% [markdown]
# The scores stay below 2.
# But the hidden units [saturate](C_glossary.ipynb#saturation): at × 10,000, 99.9 % of them are ±1 in single precision, and 94 % of the queries get a gradient of exactly 0.
# Bounded, because flat: additive scores have the same problem in another place.
#
# They cost memory, too: the sums of all pairs are $nmh$ numbers, where the dot products are $nm$, and PyTorch keeps them for the gradient.
#
# **The tanh is essential.**
# Without it, $a = qW_Q\cdot w + kW_K\cdot w$; the first term is the same for all keys, and every query gets the same weights.
# **A matrix in between** can compare vectors of different sizes, too: $qMk^\top$ with a learned $M$ of shape $(d_q, d_k)$ (Luong et al., 2015).
# It is a dot product again: $(qW_Q)(kW_K)^\top = q\,W_QW_K^\top k^\top$, with $M = W_QW_K^\top$.

# %%
cu.quiz("scoring_functions", "hidden_layer")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Additive scores are bounded, and saturate."):
    assert (saturated["largest |a|"] <= saturated["bound Σ|w|"]).all()
    assert saturated["∂a/∂q exactly 0"].iloc[-1] > 0.5 > saturated["∂a/∂q exactly 0"].iloc[0]
    assert saturated["units at ±1"].iloc[-1] > 0.99

# %% [markdown]
# ## Take-aways
#
# - A dot product rewards agreement of signs, times both lengths.
#   It is a Gaussian kernel with the prior weight $e^{\lVert k\rVert^2/2}$ on each key.
# - The term in $\lVert q\rVert^2$ drops out of the softmax.
#   The query's length does not: it is an inverse temperature.
# - For independent features with variance 1, $q\cdot k$ has variance $d$; $1/\sqrt d$, *before* the softmax, makes it 1.
# - Without the scale the weights stop reacting to the scores, and the gradients of the queries are badly spread.
# - Additive scores take vectors of different sizes, are bounded because they saturate, and keep a hidden layer for each pair.
#
# Next: [Masks](04_masks.ipynb), which say what a query may look at.
# For layer norm, exp(q·k) as a kernel, gradients in detail, initialization, memory and seconds there is a further page: [Scoring functions: norms, kernels and gradients](03_scoring_functions_further.ipynb).
#
# ## Quiz

# %%
cu.quiz("scoring_functions")

# %% [markdown]
# ## References
#
# - Bahdanau, D., Cho, K. & Bengio, Y. (2015).
#   [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473).
#   ICLR.
#   The tanh formula is in appendix A.1.2; the name "additive" is later.
# - Luong, M.-T., Pham, H. & Manning, C. D. (2015).
#   [Effective approaches to attention-based neural machine translation](https://arxiv.org/abs/1508.04025).
#   EMNLP.
#   Section 3.1: dot, general, concat.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.2.1: scaled dot-product attention.
