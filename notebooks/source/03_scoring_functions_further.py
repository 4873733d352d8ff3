# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Scoring functions: norms, kernels and gradients
#
# Here are the questions that a second reader of [Scoring functions](03_scoring_functions.ipynb) will ask.
# When does a dot product equal a distance, and what keeps scores from growing in training?
# Is $e^{q\cdot k}$ a kernel, and can we take its sum in linear time?
# At which sizes and rates does a head need the divisor, and what do its gradients look like?
# What does a score cost?
# Each section stands on its own, so you can start wherever you like.

# %%
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.lessons.scoring_functions import scores, trainings

cu.seed_everything(0)

# %% [markdown]
# ## A dot product is nearness with a prior
#
# How much does the length of a key count?
# We take the query $q=(1,2)$, with three keys.
# The first two, (1, 1) and (2, 2), are at the same distance from it, so a Gaussian gives them the same weight.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "And by the dot product, which of the two gets more weight?",
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
shown_keys = ["(1, 1)", "(2, 2)", "(0, 1)"]
match, key_half = keys @ query, keys.square().sum(dim=1) / 2
by_distance, prior = (match - key_half).softmax(dim=0), key_half.exp()
rows = {
    "q·k": match,
    "α by q·k": match.softmax(dim=0),
    "α by distance": by_distance,
    "prior exp(½‖k‖²)": prior,
    "α by distance × prior, / sum": by_distance * prior / (by_distance @ prior),
}
terms = pd.DataFrame(rows, shown_keys).T.astype(float)
terms.round(2)

# %% [markdown]
# The last row equals the second one, and here is why.
# Take the exponential of both sides of $-\tfrac12\lVert q-k\rVert^2 = q\cdot k - \tfrac12\lVert q\rVert^2 - \tfrac12\lVert k\rVert^2$, and sort:
#
# $$e^{\,q\cdot k} \;=\; e^{\lVert q\rVert^2/2}\;\cdot\; e^{-\lVert q-k\rVert^2/2}\;\cdot\; e^{\lVert k\rVert^2/2} .$$
#
# The first factor is the same for all keys, and the middle one is the Gaussian kernel of [Kernel regression](02_kernel_regression.ipynb).
# So a dot product is nearness with a **prior weight** $e^{\lVert k\rVert^2/2}$ on each key.
# A key with the prior 20 counts like 20 copies of itself.
#
# What about a key that never wins, like D in the chapter?
# D does get some weight, because $e^{q\cdot D} > 0$.
# But as the exponential function is convex, $e^{q\cdot D}$ is at most the same average of the others' exponentials.
#
# ### Exercise 1 · A Gaussian without differences
#
# *bug · 12 minutes*
#
# If we form $q-k$ for all pairs, we need an array (n, m, d).
# The formula above needs only one matrix product and a correction.
# Here the three keys are their own queries, each at distance 0 to itself, so the largest weight of each row should be on the diagonal.
# In the function below it doesn't.
# Find the mistake, and write `fixed_gaussian_weights` with one matrix product and no function for distances.


# %%
def buggy_gaussian_weights(queries, keys):
    half_norms = keys.square().sum(dim=-1, keepdim=True) / 2
    return (queries @ keys.T - half_norms).softmax(dim=-1)


pd.DataFrame(buggy_gaussian_weights(keys, keys), shown_keys, shown_keys).round(2)


# %% tags=["exercise", "bug"]
def fixed_gaussian_weights(queries, keys):
    """(n, d), (m, d) → (n, m): softmax of −½‖q − k‖² over the keys."""
    ...  # to play with: fixed_gaussian_weights(keys, keys)


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_gaussian_weights(fixed_gaussian_weights)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_gaussian_weights_solution(queries, keys):
    """keepdim made a column, (m, 1): one number a row, which the softmax does not see. It was a plain q·k."""
    half_norms = keys.square().sum(dim=-1) / 2  # (m,): one number a column
    return (queries @ keys.T - half_norms).softmax(dim=-1)


cu.checks.fixed_gaussian_weights(fixed_gaussian_weights_solution)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("The weights of a dot product are those of a distance, times a prior."):
    gap = terms.loc["α by q·k"] - terms.loc["α by distance × prior, / sum"]
    assert gap.abs().max() < 1e-6

# %% [markdown]
# ## Keys of one length: layer norm
#
# If all keys have the same length, their priors are equal, and dot products give exactly the weights of a Gaussian kernel.
# **Layer norm** (Ba et al., 2016) makes keys equally long: it takes a vector to mean 0 and variance 1, and then $\lVert k\rVert^2 = \sum_j k_j^2 = d$.
# With the width $\sigma$ a Gaussian's score is $q\cdot k/\sigma^2$ plus constants, so dividing by $\sqrt d$ means the width $\sigma = d^{1/4}$.
#
# In a transformer, though, the keys aren't the normalized vectors, but these times $W_K$, and layer norm has a learned factor for each coordinate.
# What does a matrix do to the equality?

# %%
d = 32
queries = torch.randn(8, d)
normed = F.layer_norm(5 * torch.randn(64, d) + 2, (d,), eps=1e-12)
projected = normed @ torch.randn(d, d) / math.sqrt(d)
length_rows = {}
both = {"after layer norm": normed, "after layer norm, times W_K": projected}
for name, keys in both.items():
    lengths = keys.norm(dim=1)
    by_dots = (queries @ keys.T / math.sqrt(d)).softmax(dim=-1)
    by_distance = cu.kernel_weights(queries, keys, width=d**0.25)
    length_rows[name] = {
        "mean length of a key": lengths.mean().item(),
        "spread of the lengths": lengths.std().item(),
        "largest difference of a weight": (by_dots - by_distance).abs().max().item(),
    }
by_lengths = pd.DataFrame(length_rows).T
by_lengths.round(3)

# %% [markdown]
# Right after the norm all keys are $\sqrt{32} = 5.66$ long, and the two kinds of weights agree.
# After a random $W_K$ the lengths are spread out, and the weights differ.
#
# How far do the lengths differ in trained heads?
# We take the encoder of the stored translator of [Start here](00_start_here.ipynb), and one sentence.
# How far apart are the priors $e^{\lVert k\rVert^2/2\sqrt d}$ of its words, and how much weight moves if we take the term out of the scores?
# Random matrices also make keys of different lengths, so we ask the same of this encoder before any training.

# %%
stored = cu.load_model("translator_fr")
sentence = "the teacher is going to read this book in the garden ."


def priors_of(translator, ids):
    """For each head: largest prior / smallest, and the weight that moves without the prior."""
    for_each_head = []
    for q_h, k_h in scores.encoder_heads(translator, ids):
        raw, halves = q_h @ k_h.mT / 4, k_h.square().sum(dim=-1) / (2 * 4)
        without = (raw - halves[:, None]).softmax(dim=-1)
        moved = (raw.softmax(dim=-1) - without).abs().sum(dim=-1) / 2
        ratio = (halves.amax(dim=-1) - halves.amin(dim=-1)).exp()
        for_each_head += zip(ratio.tolist(), moved.mean(dim=-1).tolist(), strict=True)
    return torch.tensor(for_each_head).T


def ids_of(text):
    return [stored.vocabularies["source"].index(word) for word in text.split()]


fresh, translator = (cu.Transformer(**stored.config).eval() for _ in range(2))
translator.load_state_dict(stored.state)
untrained, trained = (priors_of(one, ids_of(sentence)) for one in (fresh, translator))
measures = "largest prior / smallest", "weight that moves"
priors = pd.DataFrame(
    {
        (measure, state): found.tolist()
        for measure, *rows in zip(measures, untrained, trained, strict=True)
        for state, found in zip(("untrained", "trained"), rows, strict=True)
    },
    [f"layer {layer}, head {head}" for layer in range(2) for head in range(4)],
)
priors.round(2)

# %% [markdown]
# Within this sentence the longest key counts several times as much as the shortest, in one head more than twenty times.
# Without the prior a sixth to a third of the weight moves, and in most heads that is more than before the training.
# We asked the same of nine other sentences and of three untrained encoders, and both numbers were larger after the training in at least six of the eight heads.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "For keys of one length a dot product acts as a Gaussian kernel, but trained heads have keys of many lengths."
):
    assert by_lengths["largest difference of a weight"].iloc[0] < 1e-4
    assert (
        by_lengths["spread of the lengths"].iloc[1]
        > 0.05 * by_lengths["mean length of a key"].iloc[1]
    )
    assert by_lengths["largest difference of a weight"].iloc[1] > 0.01
    assert trained[0].max() > 20 and trained[0].min() > 2
    for text in (
        sentence,
        "we are not going to school today .",
        "do you want to go to the beach ?",
    ):
        both_states = [priors_of(one, ids_of(text)) for one in (fresh, translator)]
        assert ((both_states[1] > both_states[0]).sum(dim=1) >= 5).all()
    assert 0.15 < trained[1].min() < trained[1].max() < 0.34

# %% [markdown]
# ## Normalizing queries and keys: QK-norm
#
# The divisor keeps scores small at the start, but nothing keeps $W_Q$ and $W_K$ from growing in training, and scores grow with their product.
# Henry et al. (2020) therefore normalize queries and keys *after* the projection, to length 1, and learn one factor in place of $1/\sqrt d$.
# Dehghani et al. (2023) saw the training of vision transformers diverge at about 8 billion parameters, when weights had become almost one-hot.
# Layer norm on queries and keys prevented it, and their model of 22 billion parameters was trained with it.
# We can see what it does to the scores without any training, just by making the matrices larger.

# %%
inputs = torch.randn(256, 64)
W_Q, W_K = torch.randn(2, 64, 64) / 8
norm_rows = {}
for c in (1, 2, 4, 8):
    q_c, k_c = inputs @ (c * W_Q), inputs @ (c * W_K)
    kinds = {
        "plain": (q_c, k_c),
        "QK-norm": (F.layer_norm(q_c, (64,)), F.layer_norm(k_c, (64,))),
    }
    norm_rows[f"W_Q, W_K × {c}"] = row = {}
    for name, (one, other) in kinds.items():
        scored = one @ other.T / 8
        nats = torch.special.entr(scored.softmax(dim=-1)).sum(dim=-1).mean()
        row[f"{name}: largest score"] = scored.abs().max().item()
        row[f"{name}: bits"] = nats.item() / math.log(2)
with_norm = pd.DataFrame(norm_rows).T
with_norm.round(2)

# %% [markdown]
# Plain scores grow with the square of the factor, and next to nothing is left of the 8 bits that 256 keys can have, as their [entropy](#How-spread-out-are-the-weights?-Entropy) says.
# With QK-norm the size of the matrices doesn't matter, because layer norm makes $\lVert q\rVert=\lVert k\rVert=\sqrt d$, so no score exceeds $\sqrt d = 8$.
# The price is that a query can no longer choose its temperature by its length.
# If queries and keys are 1 long, as with Henry et al., scores stay within $\pm1$, and no softmax over many keys could be sharp.
# That is why Henry et al. learn a factor.
#
# ### Capped scores, and scores that grow with log n
#
# There are two more ways to control the size of scores.
# One **caps** them smoothly, $c\tanh(a/c)$, so that no score exceeds $c$, as in Gemma 2 (Gemma Team, 2024) with $c=50$, while Gemma 3 (2025) prefers QK-norm.
# The other looks at the number of keys $n$.
# A key that is ahead of all others by 5 has the weight 0.94 among ten keys, but only 0.13 among a thousand, so the scores are **multiplied by log n** (Chiang and Cholak, 2022), or by $s\log n$ with a learned $s$ (Nakanishi, 2025).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Plain scores grow with the matrices, and with QK-norm they don't."):
    plain, qk = with_norm["plain: largest score"], with_norm["QK-norm: largest score"]
    assert abs(plain.iloc[3] / plain.iloc[0] - 64) < 0.1
    assert qk.max() <= 8 and qk.max() - qk.min() < 0.01
    assert with_norm["plain: bits"].iloc[3] < 1 < 6 < with_norm["QK-norm: bits"].min()
    weight_of_best = [math.exp(5) / (math.exp(5) + n - 1) for n in (10, 1000)]
    assert [round(weight, 2) for weight in weight_of_best] == [0.94, 0.13]

# %% [markdown]
# ## exp(q·k) as a kernel, and linear attention
#
# Tsai et al. (2019) read attention as a kernel smoother with the kernel $e^{q\cdot k}$.
# Is it a proper kernel?
# As a function of two vectors of one space it is, because it is symmetric and **positive definite**, which means that the table of all pairs has no negative eigenvalue.
# With the same matrix for queries and keys it stays one, but with two matrices it is in general neither.
# For example, take two words, *milk* = (1, 0) and *cold* = (0, 1), a $W_Q$ that changes nothing, and a $W_K$ that takes *milk* to (0, 1) and *cold* to (0, 0).
# By hand the table $T$ of $e^{q\cdot k}$ is
#
# | | key *milk*: (0, 1) | key *cold*: (0, 0) |
# |---|---|---|
# | query *milk*: (1, 0) | $e^0 = 1$ | $e^0 = 1$ |
# | query *cold*: (0, 1) | $e^1 = 2.72$ | $e^0 = 1$ |
#
# So *cold* looks for *milk*, but *milk* doesn't look for *cold*.
# Here are twelve random inputs.
# A table that isn't symmetric is positive definite if its symmetric part $(T+T^\top)/2$ is, since $vTv^\top$ sees nothing else.

# %%
points = torch.randn(12, 4, dtype=torch.float64)
A, B = torch.randn(2, 4, 4, dtype=torch.float64) / 2
kernel_rows = {}
for name, (one, other) in {
    "x·y": (points, points),
    "W_Q = W_K": (points @ A, points @ A),
    "W_Q ≠ W_K": (points @ A, points @ B),
}.items():
    T = (one @ other.T).exp()
    kernel_rows[name] = {
        "largest |T − Tᵀ|": (T - T.T).abs().max().item(),
        "smallest eigenvalue": torch.linalg.eigvalsh((T + T.T) / 2)[0].item(),
    }
of_pairs = pd.DataFrame(kernel_rows).T
of_pairs.round(4)

# %% [markdown]
# ### Linear attention, in short
#
# What can we do with a kernel?
# A positive definite kernel is a dot product of features, $e^{q\cdot k} = \varphi(q)\cdot\varphi(k)$, though with infinitely many of them.
# Suppose that $r$ features are enough.
# Then
#
# $$\sum_j \varphi(q)\cdot\varphi(k_j)\,v_j = \varphi(q)\cdot\Big(\sum_j \varphi(k_j)^\top v_j\Big),$$
#
# and we compute the bracket once for all queries.
# This takes twice $nrd_v$ multiplications, and twice $nrd$ for the features, in place of $n^2(d+d_v)$, and we never form a table of $n\times n$.
# Performers (Choromanski et al., 2021) draw the features at random.
# For $\omega$ standard normal,
#
# $$e^{q\cdot k} = \mathrm E_\omega\!\left[e^{\omega\cdot q-\lVert q\rVert^2/2}\;e^{\omega\cdot k-\lVert k\rVert^2/2}\right],$$
#
# because the mean of $e^{\omega\cdot(q+k)}$ is $e^{\lVert q+k\rVert^2/2}$.
# These features are positive, so no weight becomes negative.


# %%
def features(vectors, directions):
    """(n, d), (d, r) → (n, r), positive: their products have the mean exp(q·k)."""
    lengths = vectors.square().sum(dim=-1, keepdim=True) / 2
    return (vectors @ directions - lengths).exp() / math.sqrt(directions.shape[1])


def all_pairs(queries, keys, values):
    weights = queries @ keys.T  # (n, n)
    return weights @ values / weights.sum(dim=-1, keepdim=True)


def linear(queries, keys, values):
    total = queries @ keys.sum(dim=0)  # (n,)
    return queries @ (keys.T @ values) / total[:, None]  # (r, d_v) comes first


q, k, v = torch.randn(3, 128, 16)
directions = torch.randn(16, 64)
cu.equal(linear, all_pairs, features(q / 2, directions), features(k / 2, directions), v)

# %%
missed = {}
for size in (0.25, 1.0):  # of a score q·k
    left, right = math.sqrt(size) / 2 * q, math.sqrt(size) / 2 * k
    exact = F.scaled_dot_product_attention(left, right, v, scale=1.0)
    plain_mean = (v.mean(dim=0) - exact).square().mean().sqrt().item()
    for r in (16, 64, 256, 1024, 4096):
        squares = []
        for _ in range(20):
            omega = torch.randn(16, r)
            answers = linear(features(left, omega), features(right, omega), v)
            squares.append((answers - exact).square().mean())
        missed[f"scores of size {size}", r] = torch.stack(squares).mean().sqrt().item()
    missed[f"scores of size {size}", "the plain mean"] = plain_mean
by_features = pd.Series(missed).unstack(0).rename_axis("features")
by_features.loc[[16, 64, 256, 1024, 4096, "the plain mean"]].round(3)

# %% [markdown]
# The two orders of multiplication agree.
# The table shows the error over 20 draws of the features, and in the last row the error of a baseline that always answers with the plain mean of all values.
# For scores of size 0.25 the error halves with four times as many features, and 256 of them are clearly better than the baseline.
# For scores of size 1, as for vectors of variance 1, even 4,096 are hardly better, because the features of a long vector vary too much.
# Choromanski et al. draw directions at right angles to each other and train with the features in place, which we don't try here.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With one matrix exp(q·k) is a kernel, with two it isn't, and random features approximate it."
):
    assert of_pairs["largest |T − Tᵀ|"].iloc[:2].max() < 1e-9 < of_pairs["largest |T − Tᵀ|"].iloc[2]
    lowest = of_pairs["smallest eigenvalue"]
    assert lowest.iloc[:2].min() > 0 > lowest.iloc[2]
    small, usual_size = by_features.iloc[:, 0], by_features.iloc[:, 1]
    assert small[16] > 2 * small[256] > 4 * small[4096]
    assert small[256] < small["the plain mean"] and usual_size[256] > usual_size["the plain mean"]

# %% [markdown]
# ## How spread out are the weights? Entropy
#
# One number says how evenly a query spreads its weight, the **entropy** $-\sum_i\alpha_i\log_2\alpha_i$, in bits.
# It is 0 if one key has all the weight, and $\log_2 m$ if $m$ keys share it equally.
# Here are four random queries and six keys.
# Move $d$ to the right, then tick the box, then multiply the queries by 16.

# %% jupyter={"source_hidden": true}
cu.explore.dot_products()

# %% [markdown]
# Large scores put nearly all weight on one key, and the entropy falls.
# The box undoes it, and long queries undo the box.
#
# ## All sizes and rates
#
# The chapter shows the memory test for words of 256 numbers.
# When does a head need the divisor, and does more training help a head that has none?
# Look at shorter words, too, and at the marks for longer training runs.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
chosen = trainings.best(cu.stored_runs("scoring_functions", "recall_by_one_head"))
trainings.show_best(chosen)

# %% [markdown]
# With 16 numbers a word, or with four words on the list, the head learns without a divisor as well, so it takes long vectors *and* long lists to see the difference.
# More steps help the words of 64 numbers, slowly, while 2,000 steps don't help the 64 words of 256 numbers.
# Each point is the mean of three training runs at the best of three to five learning rates, chosen on validation lists.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "It takes long vectors and long lists to need √d, and more steps make up for it only in part."
):
    share = chosen.set_index(["divided_by", "d", "keys", "steps"])["test"]
    assert share["√d"].min() > 0.97 and share["nothing", 16].min() > 0.97
    longer_trained = [share["nothing", 64, 64, steps] for steps in (500, 2000, 8000)]
    assert longer_trained[0] < 0.3 < longer_trained[1] < 0.6 < longer_trained[2] < 0.95
    assert share["nothing", 256, 64].max() < 0.3 and share["nothing", 256, 16, 500] < 0.95
    assert share["nothing, small start"].min() > 0.97

# %% [markdown]
# ## The gradients, derived
#
# Why does the right key stay silent, although gradients can be large?
# We follow them backwards, step by step.
# Take the logarithm of $\alpha_i = e^{a_i}/\sum_l e^{a_l}$ and differentiate by $a_j$.
# With $\delta_{ij}$ = 1 for $i=j$ and 0 otherwise,
#
# $$\frac{\partial\log\alpha_i}{\partial a_j} = \delta_{ij} - \frac{e^{a_j}}{\sum_l e^{a_l}} = \delta_{ij}-\alpha_j
# \quad\Longrightarrow\quad J_{ij} = \frac{\partial\alpha_i}{\partial a_j} = \alpha_i(\delta_{ij}-\alpha_j).$$
#
# With $a_j = s\,q\cdot k_j$ the chain rule gives $\partial\alpha/\partial q = s\,JK$.
# We can read row $i$ of it, which is $s\,\alpha_i\,(k_i - \bar k)$ with the average key $\bar k = \sum_j\alpha_jk_j$.
# So to raise weight $i$, we move the query toward key $i$ and away from the average.


# %%
def by_formula(query, keys):
    """(d,), (m, d) → ∂α/∂q, (m, d)."""
    scale = 1 / math.sqrt(len(query))
    alpha = (scale * keys @ query).softmax(dim=0)
    return scale * alpha[:, None] * (keys - alpha @ keys)


def by_autograd(query, keys):
    def weights(one):
        return (keys @ one / math.sqrt(len(one))).softmax(dim=0)

    return torch.autograd.functional.jacobian(weights, query)


ones, corners = torch.ones(8), torch.eye(8)[:5]
found = by_formula(ones, corners)
off = (found - by_autograd(ones, corners)).abs().max()
print(f"formula and autograd differ by less than 1e-6: {bool(off < 1e-6)}")
found.round(decimals=3)

# %% [markdown]
# All weights are 0.2 here and $s = 0.354$, so the diagonal holds $0.354\cdot0.2\cdot(1-0.2) = 0.057$, and the query moves toward key $i$.
# Formula and autograd agree.
#
# How large is the gradient without the divisor ($s = 1$), compared with its size with the divisor?
# The lines for many keys are the surprise.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
reactions = {}
torch.manual_seed(0)
for m in (4, 16, 64, 256):
    for size in (4, 16, 64, 256):
        asking, offered = torch.randn(300, 1, size), torch.randn(300, m, size)
        for divisor, s in {"√d": 1 / math.sqrt(size), "nothing": 1.0}.items():
            alpha = (s * asking @ offered.mT).softmax(dim=-1)  # (300, 1, m)
            moves = s * alpha.mT * (offered - alpha @ offered)  # ∂α/∂q, (300, m, size)
            reactions[divisor, m, size] = moves.flatten(1).norm(dim=1).median().item()
sensitivity = pd.Series(reactions)
times = sensitivity["nothing"] / sensitivity["√d"]
trainings.show_ratio(times)

# %% [markdown]
# With 4 keys the gradient vanishes, and yet these heads learn.
# With 64 keys the gradient is *larger*, even where heads hardly learn.
# So a small gradient isn't the trouble with long lists.
# The trouble is that the gradient is about the one or two keys at the top, and the right key is rarely one of them.
# Each point is a median of 300 draws.
#
# ### A whole head
#
# In an attention head queries, keys and values are products of the inputs with learned matrices, $Q = XW_Q$, $K = XW_K$, $V = XW_V$, and the answers are $Z = AV$ with the weights $A$ of the scores $S = sQK^\top$.
# Let $G = \partial L/\partial Z$.
# Backwards through mix, normalize, scale, score and project we get
#
# $$\frac{\partial L}{\partial V} = A^\top G,\qquad \frac{\partial L}{\partial S_{ij}} = \alpha_{ij}\Big(g_{ij}-\sum_l\alpha_{il}\,g_{il}\Big)\;\text{ with } g = GV^\top,\qquad
# \frac{\partial L}{\partial Q} = s\,\frac{\partial L}{\partial S}K,\qquad \frac{\partial L}{\partial K} = s\,\frac{\partial L}{\partial S}^{\!\top}Q,$$
#
# and $\partial L/\partial W_Q = X^\top\,\partial L/\partial Q$, and in the same way for $W_K$ and $W_V$.
# With these lines the head below learns in your browser.
# It has nine words, $d = 2$ and $d_v = 1$, and an adjective has to find its noun among three.
# If all weights were equal, the three nouns could only vote, and 18 of 24 sentences would be right.
# Guess before you play.
# Six of the nine rows of $W_Q$ don't change in 300 steps.
# Which ones, and why?

# %% jupyter={"source_hidden": true}
cu.live.learned_head(1, 0)

# %% [markdown]
# With rate 1 and seed 0 the loss is 0.606 after 50 steps, and 19 sentences are right.
# By then the values have grown, to 0.62 for *apple* and −0.99 for *desk*, but the weights have hardly moved and are still between 0.20 and 0.31.
# The nouns vote.
# Then the adjectives begin to ask.
# After 84 steps the loss is below the line, and after 131 all sentences are right.
# Rate 3 needs 45 steps for this, and for rate 0.3 our 300 steps are too few.
# The rows of $W_Q$ that don't change belong to the nouns, because they ask nothing that the loss depends on.
#
# At step 300 *ripe* gives *apple* 0.95 and *varnished* gives *desk* 0.99, but *hungry* gives *cat* only 0.03.
# *Hungry* is right nevertheless: its own value is negative, which means masculine, and it attends to *mouse* where there is one.
# Choose *mouse*, and choose another seed.
# A weight shows where a head looks, but it doesn't show all that the head knows.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Our formula for ∂α/∂q agrees with autograd, and with many keys it is larger without √d."
):
    assert off < 1e-6 and abs(found[0, 0] - 0.057) < 1e-3
    assert times[4][64] < 0.6 < 3 < times[64][64] and times[4][256] < 0.1 < 1 < times[64][256]

# %% [markdown]
# ## At the default initialization
#
# How large are scores in PyTorch, before any training?
# `nn.Linear` draws its weights evenly from $\pm1/\sqrt{d_{\mathrm{in}}}$, which have variance $1/(3d_{\mathrm{in}})$.
# For inputs of variance 1 our queries and keys then have variance $\tfrac13$, and scaled scores begin with $\tfrac13\cdot\tfrac13=\tfrac19$, not 1, so the weights are flatter than the rule says.
# `nn.MultiheadAttention` draws from Xavier's range for its joint matrix of shape $(3d, d)$, and begins with another number.
# We measure both with 2,000 tokens of 64 numbers, for five seeds.

# %%
init_rows = {}
for seed in range(5):
    torch.manual_seed(seed)
    tokens = torch.randn(2000, 64)
    default = nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False)
    joint = nn.MultiheadAttention(64, 1, bias=False).in_proj_weight.detach()
    xavier = [nn.init.xavier_uniform_(torch.empty(64, 64)) for _ in range(2)]
    with torch.no_grad():
        made = {
            "nn.Linear": [tokens @ layer.weight.T for layer in default],
            "nn.MultiheadAttention": [tokens @ joint[:64].T, tokens @ joint[64:128].T],
            "Xavier, each matrix alone": [tokens @ matrix.T for matrix in xavier],
        }
        init_rows[seed] = {
            name: (ours[:1000] @ theirs[1000:].T / 8).var().item()
            for name, (ours, theirs) in made.items()
        }
at_start = pd.DataFrame(init_rows).T.rename_axis("seed")
at_start.loc["expected"] = [1 / 9, 1 / 4, 1.0]
at_start.round(3)

# %% [markdown]
# The measured variances are close to the expected ones.
# For the joint matrix the range is $\sqrt{6/(d+3d)}$, so a weight has the variance $2/(4d)$, a query $\tfrac12$, and a score $\tfrac14$.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At the start the variance of scaled scores is 1/9, 1/4 or 1, depending on the initialization."
):
    assert ((at_start.iloc[:5].mean() / at_start.loc["expected"] - 1).abs() < 0.1).all()

# %% [markdown]
# ## When vectors are not independent
#
# The root in $1/\sqrt d$ is right for **independent** vectors.
# But training may align queries and keys, say with a correlation $\rho$ in each coordinate, and then the products no longer cancel.
# The mean of $q\cdot k$ is $\rho d$, and divided by $\sqrt d$ it still grows, like $\rho\sqrt d$.
# Yang et al. (2022), who transfer learning rates from narrow to wide models, therefore divide by $d$.
# Compare the two divisors.

# %%
rho = 0.5  # try 0.0 … 1.0
aligned = {}
for size_d in (16, 64, 256, 1024):
    k_d = torch.randn(4000, size_d)
    q_d = rho * k_d + math.sqrt(1 - rho**2) * torch.randn(4000, size_d)
    dots = (q_d * k_d).sum(dim=1)
    aligned[size_d] = {
        "mean of q·k/√d": (dots / math.sqrt(size_d)).mean().item(),
        "ρ√d": rho * math.sqrt(size_d),
        "mean of q·k/d": (dots / size_d).mean().item(),
    }
growing = pd.DataFrame(aligned).T.rename_axis("d")
growing.round(2)

# %% [markdown]
# With $\sqrt d$ the mean score grows with the size of the model, and with $d$ it stays.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("For aligned vectors scaled scores grow like ρ√d, while q·k/d stays at ρ."):
    assert (growing["mean of q·k/√d"] - growing["ρ√d"]).abs().max() < 0.2
    assert (growing["mean of q·k/d"] - rho).abs().max() < 0.03

# %% [markdown]
# ## Additive scores and a matrix in between
#
# An additive score $\tanh(qW_Q + kW_K)\cdot w$ is a small network without biases, which joins query and key to one vector and sends it through a hidden layer with tanh to one output.
# Its first matrix is $W_Q$ on top of $W_K$.
# For a pencil, take $d_q=1$, $d_k=2$, two hidden units, and $W_Q = (1\ \ 0)$, $W_K = \begin{pmatrix}0&1\\1&0\end{pmatrix}$, $w=(1,-1)$ and $q = 0.5$.
#
# | key | $qW_Q$ | $kW_K$ | sum | tanh of it | score |
# |---|---|---|---|---|---|
# | (1, −0.5) | (0.5, 0) | (−0.5, 1) | (0, 1) | (0, 0.76) | **−0.76** |
# | (0, 0.5) | (0.5, 0) | (0.5, 0) | (1, 0) | (0.76, 0) | **0.76** |
#
# **The tanh is essential.**
# Without it the score would be $qW_Q\cdot w + kW_K\cdot w$, where the first term is the same for all keys, so every query would get the same weights.
#
# ### Exercise 2 · All pairs at once
#
# *build · 15 minutes*
#
# Write the score for all pairs, without a loop.
# Every row of $QW_Q$ has to meet every row of $KW_K$, so the sum should have the axes (queries, keys, hidden units).
# A [batch](C_glossary.ipynb#batch) axis may come in front.


# %% tags=["exercise", "build"]
def my_additive_scores(queries, keys, w_q, w_k, w):
    """(…, n, d_q), (…, m, d_k), (d_q, h), (d_k, h), (h,) → (…, n, m)."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_additive_scores(my_additive_scores)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_additive_scores_solution(queries, keys, w_q, w_k, w):
    """(…, n, 1, h) and (…, 1, m, h) broadcast to (…, n, m, h); the product with w removes the last axis."""
    added = (queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)
    return added.tanh() @ w


cu.checks.my_additive_scores(my_additive_scores_solution)

# %% [markdown]
# ### A hump for each key
#
# How did the chapter choose the weights with which D wins?
# Two steps make a hump, $\tanh(x+1)-\tanh(x-1)$, which is highest at $x=0$.
# We take $x = k_1-q_1$ for one pair of hidden units and $x = k_2-q_2$ for another, so the score is highest where the key equals the query.
# A third coordinate that is always 1 supplies the $\pm1$.
# With your function, the score of a query at (0.5, 0) looks like this along the first coordinate of the key.

# %%
additive = cu.choose(my_additive_scores, scores.additive_scores)
step_K = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, -1, 1, -1]])
step_Q = torch.tensor([[-1.0, -1, 0, 0], [0, 0, -1, -1], [0, 0, 0, 0]])
up_down = torch.tensor([1.0, -1, 1, -1])
first = torch.linspace(-2, 3, 11)
along = torch.stack([first, torch.zeros(11), torch.ones(11)], dim=1)
hump = additive(torch.tensor([[0.5, 0.0, 1.0]]), along, step_Q, step_K, up_down)[0]
pd.DataFrame([hump.tolist()], ["score"], [f"{x:g}" for x in first]).round(2)

# %% [markdown]
# The score is highest at 0.5, and it falls on both sides.
#
# ### Bounded, but flat
#
# Since tanh lies between −1 and 1, an additive score is bounded, $|a|\le\sum_j|w_j|$, however long the vectors are.
# Has it no problem with large inputs, then?
# We multiply 400 queries and keys by 10, 100 and 10,000, and see which gradient reaches a query.

# %%
layer = cu.AdditiveAttention(query_dim=20, key_dim=10, hidden_dim=64)
saturation_rows = {}
for c in (1, 10, 100, 10_000):
    wide_q, wide_k = c * torch.randn(400, 1, 20), c * torch.randn(400, 1, 10)
    a = layer.scores(wide_q.requires_grad_(), wide_k)
    (slope,) = torch.autograd.grad(a.sum(), wide_q)
    saturation_rows[f"inputs × {c:,}"] = {
        "largest |a|": a.abs().max().item(),
        "bound Σ|w|": layer.score_proj.weight.abs().sum().item(),
        "∂a/∂q exactly 0": (slope == 0).all(dim=-1).float().mean().item(),
    }
saturated = pd.DataFrame(saturation_rows).T
saturated.round(2)

# %% [markdown]
# The hidden units [saturate](C_glossary.ipynb#saturation), so additive scores have the problem of large scores in another place.
#
# ### A matrix in between
#
# To compare vectors of different sizes, we can also put a learned matrix between them, $qMk^\top$ (Luong et al., 2015).
# If $M = W_QW_K^\top$, this is a dot product again, $(qW_Q)(kW_K)^\top$, and the rank of $M$ is at most $h$.
# We compare both forms for four queries of 20 numbers and six keys of 10.

# %%
h = 4  # try 1 … 10
some_queries, some_keys = torch.randn(4, 20), torch.randn(6, 10)
P_Q, P_K, free = torch.randn(20, h), torch.randn(10, h), torch.randn(20, 10)


def projected_scores(queries, keys, w_q, w_k):
    return (queries @ w_q) @ (keys @ w_k).T


def by_matrix(queries, keys, w_q, w_k):
    return queries @ (w_q @ w_k.T) @ keys.T


cu.equal(projected_scores, by_matrix, some_queries, some_keys, P_Q, P_K)
rank, free_rank = (torch.linalg.matrix_rank(M).item() for M in (P_Q @ P_K.T, free))
print(f"M = W_Q W_Kᵀ: rank {rank}, learned from {P_Q.numel() + P_K.numel()} numbers")
print(f"a free M: rank {free_rank}, learned from {free.numel()} numbers")

# %% [markdown]
# So a small $h$ saves numbers to learn, and the price is a lower rank.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Additive scores saturate, and the matrix M = W_Q W_Kᵀ has rank h."):
    assert (saturated["largest |a|"] <= saturated["bound Σ|w|"]).all()
    assert saturated["∂a/∂q exactly 0"].iloc[-1] > 0.5 > saturated["∂a/∂q exactly 0"].iloc[0]
    assert rank == h <= free_rank == 10
    assert first[hump.argmax()] == 0.5

# %% [markdown]
# ## What a score costs
#
# Which score is the cheapest?
# For each pair of a query and a key, projections apart, we count
#
# | score | additions and subtractions | multiplications | other | numbers a pair in memory |
# |---|---|---|---|---|
# | dot product | $d-1$ | $d$ | none | 1 |
# | distance, by differences | $2d-1$ | $d$ | none | $d$ |
# | distance, by one product | $d$ | $d$ | none | 1 |
# | additive, $h$ units | $2h-1$ | $h$ | $h$ tanh | $h$ |
#
# By differences a distance needs $d$ more subtractions than a dot product.
# By the expansion it needs a single one, and the norms take $d$ multiplications for each *key*, not for each pair.
# An additive score with $h = d$ has as many multiplications as a dot product, and a tanh for each.
#
# Memory differs more than arithmetic does.
# We compute the weights in four ways with $d = h = 64$, and ask how many numbers PyTorch keeps for the backward pass to queries and keys.


# %%
def by_differences(queries, keys):
    return (-(queries[:, None] - keys).square().sum(dim=-1) / 2).softmax(dim=-1)


n = 256  # try 32 … 512
V_Q, V_K, v_h = torch.randn(64, 64), torch.randn(64, 64), torch.randn(64)
four_ways = {
    "dot product": lambda q, k: (q @ k.T / 8).softmax(dim=-1),
    "distance, by one product": scores.gaussian_weights,
    "distance, by differences": by_differences,
    "additive": lambda q, k: scores.additive_scores(q, k, V_Q, V_K, v_h).softmax(-1),
}
vectors = [torch.randn(n, 64, requires_grad=True) for _ in range(2)]
kept = {name: scores.numbers_kept(way, *vectors) for name, way in four_ways.items()}
kept = pd.Series(kept)
pd.DataFrame({"numbers kept": kept, "for each pair": (kept / n**2).round(1)})

# %% [markdown]
# A dot product keeps queries, keys and weights, $n^2 + 2nd$ numbers or 1.5 for each pair, and so does a distance by one product.
# Differences and additive scores keep a whole vector for each pair, about 65 numbers.
#
# How long does it take?
# We measure on one thread, the four ways in turn, in 25 rounds.

# %% tags=["nbval-ignore-output"]
timed = scores.milliseconds(four_ways, *torch.randn(2, n, 64))
timed.quantile([0.1, 0.5, 0.9]).T.round(2).add_prefix("ms, quantile ")

# %% [markdown]
# Seconds depend on the machine and on what else it was doing, so compare the medians (0.5).
# A count of multiplications is a poor guide here.
# A dot product and a distance by one product are *one* matrix product, for which processors are built, whereas the other two write an array of $n\cdot n\cdot64$ numbers to memory and read it again.
#
# **A bit of history.**
# Britz et al. (2017) compared both scores in translation, without $1/\sqrt d$, and found additive scores slightly but consistently better.
# Vaswani et al. (2017) cite them where they introduce their scale, because for large $d$ additive attention outperforms *unscaled* dot products.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Differences and additive scores keep a vector for each pair, and a single product of matrices doesn't."
):
    assert kept["distance, by one product"] < 2 * kept["dot product"]
    assert min(kept["distance, by differences"], kept["additive"]) > 10 * kept["dot product"]

# %% [markdown]
# Back: [Scoring functions](03_scoring_functions.ipynb).

# %% [markdown]
# ## References
#
# - Ba, J. L., Kiros, J. R. & Hinton, G. E. (2016).
#   [Layer normalization](https://arxiv.org/abs/1607.06450).
# - Britz, D., Goldie, A., Luong, M.-T. & Le, Q. (2017).
#   [Massive exploration of neural machine translation architectures](https://arxiv.org/abs/1703.03906).
#   EMNLP.
# - Chiang, D. & Cholak, P. (2022).
#   [Overcoming a theoretical limitation of self-attention](https://arxiv.org/abs/2202.12172).
#   ACL.
# - Choromanski, K. et al. (2021).
#   [Rethinking attention with Performers](https://arxiv.org/abs/2009.14794).
#   ICLR.
# - Dehghani, M. et al. (2023).
#   [Scaling vision transformers to 22 billion parameters](https://arxiv.org/abs/2302.05442).
#   ICML.
# - Gemma Team (2024).
#   [Gemma 2: Improving open language models at a practical size](https://arxiv.org/abs/2408.00118).
#   Section 2, logit soft-capping.
# - Gemma Team (2025).
#   [Gemma 3 technical report](https://arxiv.org/abs/2503.19786).
# - Henry, A., Dachapally, P. R., Pawar, S. & Chen, Y. (2020).
#   [Query-key normalization for transformers](https://arxiv.org/abs/2010.04245).
#   Findings of EMNLP.
# - Luong, M.-T., Pham, H. & Manning, C. D. (2015).
#   [Effective approaches to attention-based neural machine translation](https://arxiv.org/abs/1508.04025).
#   EMNLP.
#   Section 3.1: dot, general, concat.
# - Nakanishi, K. M. (2025).
#   [Scalable-softmax is superior for attention](https://arxiv.org/abs/2501.19399).
# - Tsai, Y.-H.
#   H. et al. (2019).
#   [Transformer dissection: a unified understanding of transformer's attention via the lens of kernel](https://arxiv.org/abs/1908.11775).
#   EMNLP.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.2.1.
# - Yang, G. et al. (2022).
#   [Tensor programs V: Tuning large neural networks via zero-shot hyperparameter transfer](https://arxiv.org/abs/2203.03466).
