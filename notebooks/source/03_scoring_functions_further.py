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
# What a first reader of [Scoring functions](03_scoring_functions.ipynb) may skip, and what a second reader will ask.
# When does a dot product equal a distance?
# What keeps scores from growing in training?
# Is $e^{q\cdot k}$ a kernel, and can its sum be taken in linear time?
# Where do the gradients come from?
# How large are scores at the default initialization, and when are vectors not independent?
# What does a score cost, in operations and seconds?
# Each section stands on its own.

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
# ## Keys of one length: layer norm
#
# If all keys have the same length, the term $-\tfrac12\lVert k\rVert^2$ is one more constant, and dot products give exactly the weights of a Gaussian kernel.
# **Layer norm** (Ba et al., 2016) makes them so: it takes a vector to mean 0 and variance 1, so that $\lVert k\rVert^2 = \sum_j k_j^2 = d$.
# With width $\sigma$ the Gaussian score is $q\cdot k/\sigma^2$ plus constants, and dividing by $\sqrt d$ is the width $\sigma = d^{1/4}$.
#
# In a transformer, though, the keys are not the normalized vectors but these times $W_K$, and layer norm has a learned factor for each coordinate.

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
# After a random $W_K$ the lengths are spread, and weights differ.
#
# Do trained heads use this?
# The stored translator of [Start here](00_start_here.ipynb), its encoder, one sentence: how far apart are the priors $e^{\lVert k\rVert^2/2\sqrt d}$ of its words, and how much weight moves when the term is taken out of the scores?

# %%
stored = cu.load_model("translator_fr")
translator = cu.Transformer(**stored.config).eval()
translator.load_state_dict(stored.state)
sentence = "the teacher is going to read this book in the garden ."
ids = [stored.vocabularies["source"].index(word) for word in sentence.split()]
prior_rows = {}
for number, (q_h, k_h) in enumerate(scores.encoder_heads(translator, ids)):
    raw, halves = q_h @ k_h.mT / 4, k_h.square().sum(dim=-1) / (2 * 4)
    without = (raw - halves[:, None]).softmax(dim=-1)
    moved = (raw.softmax(dim=-1) - without).abs().sum(dim=-1) / 2
    ratio = (halves.amax(dim=-1) - halves.amin(dim=-1)).exp()
    for head in range(4):
        prior_rows[f"layer {number}, head {head}"] = {
            "largest prior / smallest": ratio[head].item(),
            "weight that moves": moved[head].mean().item(),
        }
priors = pd.DataFrame(prior_rows).T
priors.round(2)

# %% [markdown]
# They do: within one sentence the longest key counts several times as much as the shortest, in one head more than twenty times, and a sixth to a third of the weight hangs on it.
#
# **Does D, the key that never wins, get no weight, then?**
# It does: $e^{q\cdot D} > 0$, and at most $\sum_i\beta_i e^{q\cdot k_i}$, the average of the others' exponentials, as the exponential function is convex.

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
    assert priors["largest prior / smallest"].min() > 2 and priors["weight that moves"].min() > 0.05

# %% [markdown]
# ## Normalizing queries and keys: QK-norm
#
# Nothing keeps $W_Q$ and $W_K$ from growing in training, and scores grow with their product.
# Henry et al. (2020) therefore normalize queries and keys *after* the projection, to length 1, and learn one factor in place of $1/\sqrt d$.
# Dehghani et al. (2023) saw training diverge when they enlarged vision transformers, in models of about 8 billion parameters, with scores so large that the weights were almost one-hot; layer norm on queries and keys prevented it, and their model of 22 billion parameters was trained with it.
# What it does to the scores can be seen without training:

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
# Plain scores grow with the square of the factor, and of 8 bits (256 keys) next to nothing is left.
# With QK-norm the size of the matrices does not matter.
# By construction: with layer norm (without its learned factors), as in the code, $\lVert q\rVert=\lVert k\rVert=\sqrt d$, hence $|q\cdot k|/\sqrt d\le\sqrt d = 8$.
# The price: a query can no longer choose its temperature by its length, and no score exceeds the bound.
# Henry et al. make queries and keys 1 long, so that scores stay in $\pm1$, and no softmax over many keys could be sharp: hence their learned factor.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Plain scores grow with the matrices, and with QK-norm they don't."):
    plain, qk = with_norm["plain: largest score"], with_norm["QK-norm: largest score"]
    assert abs(plain.iloc[3] / plain.iloc[0] - 64) < 0.1
    assert qk.max() <= 8 and qk.max() - qk.min() < 0.01
    assert with_norm["plain: bits"].iloc[3] < 1 < 6 < with_norm["QK-norm: bits"].min()

# %% [markdown]
# ## exp(q·k) as a kernel, and linear attention
#
# Tsai et al. (2019) read attention as a kernel smoother with the kernel $e^{q\cdot k}$.
# As a function of two vectors of one space it is a proper kernel: symmetric, and **positive definite**, which means that the table of all pairs has no negative eigenvalue.
# With the same matrix for queries and keys it stays one.
# With two matrices it is in general neither.
# Take two words, *milk* = (1, 0) and *cold* = (0, 1), a $W_Q$ that changes nothing and a $W_K$ that takes *milk* to (0, 1) and *cold* to (0, 0).
# By hand the table $T$ of $e^{q\cdot k}$ is
#
# | | key *milk*: (0, 1) | key *cold*: (0, 0) |
# |---|---|---|
# | query *milk*: (1, 0) | $e^0 = 1$ | $e^0 = 1$ |
# | query *cold*: (0, 1) | $e^1 = 2.72$ | $e^0 = 1$ |
#
# *Cold* looks for *milk*, *milk* not for *cold*.
# Twelve random inputs; a table $T$ that is not symmetric is judged by its symmetric part $(T+T^\top)/2$, since $vTv^\top$ sees nothing else:

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
# A positive definite kernel is a dot product of features: $e^{q\cdot k} = \varphi(q)\cdot\varphi(k)$ with infinitely many of them.
# Suppose that $r$ features are enough.
# Then
#
# $$\sum_j \varphi(q)\cdot\varphi(k_j)\,v_j = \varphi(q)\cdot\Big(\sum_j \varphi(k_j)^\top v_j\Big),$$
#
# and the bracket is computed once for all queries: twice $nrd_v$ multiplications, and twice $nrd$ for the features, in place of $n^2(d+d_v)$.
# No table of $n\times n$ is formed.
# Performers (Choromanski et al., 2021) draw the features at random: for $\omega$ standard normal,
#
# $$e^{q\cdot k} = \mathrm E_\omega\!\left[e^{\omega\cdot q-\lVert q\rVert^2/2}\;e^{\omega\cdot k-\lVert k\rVert^2/2}\right],$$
#
# because the mean of $e^{\omega\cdot(q+k)}$ is $e^{\lVert q+k\rVert^2/2}$.
# The features are positive, so that no weight is negative.


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
# The errors are those of 20 draws of the features, beside that of the dullest answer, the plain mean of all values.
# For scores of size 0.25 the error halves with four times as many features, and 256 of them are clearly better than the mean.
# For scores of size 1, as for vectors of variance 1, even 4,096 are hardly: the features of a long vector vary too much.
# (`nn.MultiheadAttention` starts with scores of size 1/2, a pair of `nn.Linear` with 1/3, see below.)
# Choromanski et al. draw directions at right angles to each other, and train with the features in place; neither is shown here.

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
# ## The gradients, derived
#
# Take the logarithm of $\alpha_i = e^{a_i}/\sum_l e^{a_l}$ and differentiate by $a_j$: with $\delta_{ij}$ = 1 for $i=j$ and 0 otherwise,
#
# $$\frac{\partial\log\alpha_i}{\partial a_j} = \delta_{ij} - \frac{e^{a_j}}{\sum_l e^{a_l}} = \delta_{ij}-\alpha_j
# \quad\Longrightarrow\quad J_{ij} = \frac{\partial\alpha_i}{\partial a_j} = \alpha_i(\delta_{ij}-\alpha_j).$$
#
# With $a_j = s\,q\cdot k_j$ the chain rule gives $\partial\alpha/\partial q = s\,JK$.
# Row $i$ of it can be read: $s\,\alpha_i\,(k_i - \bar k)$ with the average key $\bar k = \sum_j\alpha_jk_j$.
# To raise weight $i$, move the query toward key $i$ and away from the average.


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
# All weights are 0.2 here and $s = 0.354$, so that on the diagonal stands $0.354\cdot0.2\cdot(1-0.2) = 0.057$: the query moves toward key $i$.
# Formula and autograd agree.
#
# How large is all of it without the divisor ($s = 1$), in sizes with it?
# The medians of 300 draws:

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
# With 4 keys it vanishes, and these heads learn all the same.
# With 64 it is *larger*, also where they hardly learn: a small gradient is not the trouble; one about the wrong keys fits what the chapter saw.
#
# ### A whole head
#
# In an attention head queries, keys and values are products of the inputs with learned matrices, $Q = XW_Q$, $K = XW_K$, $V = XW_V$, and the answers are $Z = AV$ with the weights $A$ of the scores $S = sQK^\top$.
# Let $G = \partial L/\partial Z$.
# Backwards through mix, normalize, scale, score and project:
#
# $$\frac{\partial L}{\partial V} = A^\top G,\qquad \frac{\partial L}{\partial S_{ij}} = \alpha_{ij}\Big(g_{ij}-\sum_l\alpha_{il}\,g_{il}\Big)\;\text{ with } g = GV^\top,\qquad
# \frac{\partial L}{\partial Q} = s\,\frac{\partial L}{\partial S}K,\qquad \frac{\partial L}{\partial K} = s\,\frac{\partial L}{\partial S}^{\!\top}Q,$$
#
# and $\partial L/\partial W_Q = X^\top\,\partial L/\partial Q$, for $W_K$ and $W_V$ likewise.
# With these lines the head below learns in your browser: nine words, $d = 2$, $d_v = 1$.
# An adjective has to find its noun among three.
# If all weights were equal, the three nouns could only vote, 18 of 24 sentences right.
# Guess before you play: six of the nine rows of $W_Q$ do not change in 300 steps.
# Which, and why?

# %% jupyter={"source_hidden": true}
cu.live.learned_head(1, 0)

# %% [markdown]
# With rate 1 and seed 0 the loss is 0.606 after 50 steps, and 19 sentences are right.
# The values have grown by then, from −0.41 to 0.62 for *apple* and from −0.07 to −0.99 for *desk*; the weights have hardly moved, all are 0.20 to 0.31.
# The nouns vote.
# Then the adjectives begin to ask: after 84 steps the loss is below the line, after 131 all sentences are right.
# Rate 3 needs 45 steps for this, and for rate 0.3 300 are too few.
# The rows of $W_Q$ that do not change are those of the nouns: they ask nothing that the loss depends on.
#
# At step 300 *ripe* gives *apple* 0.95 and *varnished* gives *desk* 0.99, but *hungry* gives *cat* only 0.03.
# It is right nevertheless: its own value is negative, masculine, and it looks at *mouse* where there is one.
# Choose *mouse*, and choose another seed: a weight shows where a head looks, not all that it knows.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Our formula for ∂α/∂q agrees with autograd, and with many keys it is larger without √d."
):
    assert off < 1e-6 and abs(found[0, 0] - 0.057) < 1e-3
    assert times[4][64] < 0.6 < 3 < times[64][64] and times[4][256] < 0.1 < 1 < times[64][256]

# %% [markdown]
# ## At the default initialization
#
# `nn.Linear` draws its weights evenly from $\pm1/\sqrt{d_{\mathrm{in}}}$, which have variance $1/(3d_{\mathrm{in}})$.
# For inputs of variance 1 queries and keys then have variance $\tfrac13$, and scaled scores begin with $\tfrac13\cdot\tfrac13=\tfrac19$, not 1: the weights are flatter at the start than the rule says.
# `nn.MultiheadAttention` draws from Xavier's range for its joint matrix of shape $(3d, d)$, and begins with another number.
# 2,000 tokens, $d = 64$, five seeds:

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
# (For the joint matrix the range is $\sqrt{6/(d+3d)}$, the variance of a weight $2/(4d)$, that of a query $\tfrac12$, and that of a score $\tfrac14$.)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At the start the variance of scaled scores is 1/9, 1/4 or 1, depending on the initialization."
):
    assert ((at_start.iloc[:5].mean() / at_start.loc["expected"] - 1).abs() < 0.1).all()

# %% [markdown]
# ## When vectors are not independent
#
# The root in $1/\sqrt d$ is for **independent** vectors.
# If queries and keys have become aligned, with a correlation $\rho$ in each coordinate, the products no longer cancel: the mean of $q\cdot k$ is $\rho d$, and divided by $\sqrt d$ it still grows, like $\rho\sqrt d$.
# Yang et al. (2022), who transfer learning rates from narrow to wide models, therefore divide by $d$.

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

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("For aligned vectors scaled scores grow like ρ√d, while q·k/d stays at ρ."):
    assert (growing["mean of q·k/√d"] - growing["ρ√d"]).abs().max() < 0.2
    assert (growing["mean of q·k/d"] - rho).abs().max() < 0.03

# %% [markdown]
# ## Additive scores and a matrix in between
#
# An additive score is a small network without biases: join query and key to one vector, one hidden layer with tanh, one output.
# Its first matrix is $W_Q$ on top of $W_K$.
#
# So $|a|\le\sum_j|w_j|$, however long the vectors are.
# Multiply 400 queries and keys by 10, 100, 10,000: which gradient reaches a query?

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
# Bounded, because flat: the hidden units [saturate](C_glossary.ipynb#saturation), and additive scores have the problem of large scores in another place.
#
# **A matrix in between** can compare vectors of different sizes, too: $qMk^\top$ with a learned $M$ (Luong et al., 2015).
# It is a dot product again, $(qW_Q)(kW_K)^\top$ with $M = W_QW_K^\top$, whose rank is $h$ at most.
# Four queries of 20 numbers, six keys of 10:

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

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Additive scores saturate, and the matrix M = W_Q W_Kᵀ has rank h."):
    assert (saturated["largest |a|"] <= saturated["bound Σ|w|"]).all()
    assert saturated["∂a/∂q exactly 0"].iloc[-1] > 0.5 > saturated["∂a/∂q exactly 0"].iloc[0]
    assert rank == h <= free_rank == 10

# %% [markdown]
# ## What a score costs
#
# For each pair of a query and a key, projections apart:
#
# | score | additions and subtractions | multiplications | other | numbers a pair in memory |
# |---|---|---|---|---|
# | dot product | $d-1$ | $d$ | none | 1 |
# | distance, by differences | $2d-1$ | $d$ | none | $d$ |
# | distance, by one product | $d$ | $d$ | none | 1 |
# | additive, $h$ units | $2h-1$ | $h$ | $h$ tanh | $h$ |
#
# By differences a distance needs $d$ subtractions more than a dot product; by the expansion one, and the norms, $d$ multiplications for each *key*, not for each pair.
# An additive score has as many multiplications as a dot product if $h = d$, and a tanh for each.
#
# Four ways to the weights, $d = h = 64$: how many numbers does PyTorch keep for the backward pass to queries and keys?


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
# A dot product keeps queries, keys and weights, $n^2 + 2nd$ numbers, 1.5 for each pair, and so does a distance by one product.
# Differences and additive scores keep a whole vector for each pair, 65.0 and 65.1 numbers.
#
# How long does it take?
# One thread, measured in turn, 25 rounds:

# %% tags=["nbval-ignore-output"]
timed = scores.milliseconds(four_ways, *torch.randn(2, n, 64))
timed.quantile([0.1, 0.5, 0.9]).T.round(2).add_prefix("ms, quantile ")

# %% [markdown]
# Seconds depend on the machine, and the 0.9 quantile on what else it was doing: compare the medians (0.5).
# A count of multiplications is a poor guide: a dot product and a distance by one product are *one* matrix product, for which processors are built; the other two write an array of $n\cdot n\cdot64$ numbers to memory and read it again.
#
# **History.**
# Britz et al. (2017) compared both in translation, without $1/\sqrt d$: additive scores were slightly but consistently better.
# Vaswani et al. (2017) cite them for their scale: for large $d$, they say, additive attention outperforms *unscaled* dot products.

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
# - Choromanski, K. et al. (2021).
#   [Rethinking attention with Performers](https://arxiv.org/abs/2009.14794).
#   ICLR.
# - Dehghani, M. et al. (2023).
#   [Scaling vision transformers to 22 billion parameters](https://arxiv.org/abs/2302.05442).
#   ICML.
# - Henry, A., Dachapally, P. R., Pawar, S. & Chen, Y. (2020).
#   [Query-key normalization for transformers](https://arxiv.org/abs/2010.04245).
#   Findings of EMNLP.
# - Luong, M.-T., Pham, H. & Manning, C. D. (2015).
#   [Effective approaches to attention-based neural machine translation](https://arxiv.org/abs/1508.04025).
#   EMNLP.
#   Section 3.1: dot, general, concat.
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
