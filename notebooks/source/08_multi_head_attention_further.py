# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Multi-head attention: proofs, slices and other heads
#
# This page answers what you may ask on a second reading of [Multi-head attention](08_multi_head_attention.ipynb).
# Why do $k$ look-ups of the same feature take $k$ heads?
# Which weights solve two look-ups?
# How narrow may a head be?
# What is lost if heads see slices of the embedding?
# Which sizes may queries, keys, and values have, and do heads have to use dot products?
# You can read each section by itself, but run the cells in order.

# %%
import itertools
import math

import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.lessons.multi_head_attention import cabinet

cu.seed_everything(0)

# %% [markdown]
# ## Why k look-ups take k heads
#
# Let the values lie along one direction, so each value is a number, the ball, times the same vector.
# Then each of $h$ heads hands on just one number.
# A query asks for $k$ balls $b \in \{-1, 1\}^k$, while the other drawers keep their balls, which only add a constant.
# So the heads return $m = Bb$ plus a constant, with a matrix $B$ of $h$ rows, and a linear readout gives $k$ answers.
# Altogether they are $\operatorname{sign}(Ab + c)$, where $A = CB$ has a rank of at most $h$ and all constants are in $c$.
# The weights, and so $B$, don't depend on $b$, because the keys don't show the balls.
#
# Suppose that all answers are right for every $b$.
# Take answer $i$ in its hardest case, where the other balls pull it in the wrong direction as far as they can.
# With ball $i$ white, $A_{ii} - \sum_{j\ne i}|A_{ij}| + c_i > 0$.
# With ball $i$ black and all others of the opposite color, $-A_{ii} + \sum_{j\ne i}|A_{ij}| + c_i \le 0$.
# If we subtract the second from the first, we get $A_{ii} > \sum_{j \ne i} |A_{ij}|$ for each $i$.
# Such a matrix is called **strictly diagonally dominant**, and it is invertible.
# Indeed, if $Ax = 0$ and $|x_i|$ is the largest entry of $x$, then $|A_{ii}x_i| = |\sum_{j\ne i} A_{ij}x_j| \le |x_i|\sum_{j\ne i}|A_{ij}|$, which is possible only for $x = 0$.
# So its rank is $k$, and **$h \ge k$**.
#
# How many answers can fewer heads get right?
# We can go on with the chapter's argument about pieces.
# Each rule cuts the space of $m$, which has $h$ dimensions, by one plane, and between the planes no answer changes.
# $k$ planes make at most $\sum_{i \le h} \binom{k}{i}$ pieces.
# With $k = 2$ and one head there are 3 pieces, but we need 4.
# Let's check this bound for $k = 4$, with a thousand dominant matrices, and with twenty thousand products through fewer heads.

# %%
k = 4
fillings = torch.tensor(list(itertools.product([1.0, -1.0], repeat=k))).T  # (k, 2ᵏ)
off = torch.randn(1000, k, k) * (1 - torch.eye(k))
dominant = off + torch.diag_embed(off.abs().sum(dim=-1) + 0.01)
tried = {4: (dominant, torch.zeros(k, 1))}
for h in (1, 2, 3):
    products = torch.randn(20_000, k, h) @ torch.randn(20_000, h, k)
    tried[h] = products, torch.randn(20_000, k, 1)
table = {}
for h, (A, c) in sorted(tried.items()):
    hits = ((A @ fillings + c).sign() == fillings).all(dim=1).sum(dim=1)
    pieces = sum(math.comb(k, i) for i in range(h + 1))
    table[h] = [torch.linalg.matrix_rank(A).min().item(), pieces, hits.max().item()]
columns = ["least rank", "pieces, at most", "most fillings right, of 16"]
pd.DataFrame(table, index=columns).T.rename_axis("heads")

# %% [markdown]
# The dominant matrices (four heads) have full rank and are right for all 16 fillings.
# With fewer heads, chance never finds more right fillings than there are pieces.
# The condition on the values is essential.
# If they have several directions, a head returns an average *vector*, so $Bb$ has $h \cdot d/h$ entries and the argument says nothing.
# The chapter's cell with two features is the counter-example.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Dominant matrices are always right, and with fewer heads at most one filling of each piece is right."
):
    assert table[4] == [4, 16, 16]
    assert all(table[h][2] <= table[h][1] < 16 for h in (1, 2, 3))
    assert [table[h][0] for h in (1, 2, 3)] == [1, 2, 3]

# %% [markdown]
# ## Weights for two look-ups, by hand
#
# In the chapter's cabinet a request has the label of its first drawer in features 0–7 and the label of its second drawer in features 8–15.
# A drawer has its label once, in features 0–7, and its value is the ball in feature 0.
# Head 0 has to compare features 0–7 with the label, and head 1 has to compare features 8–15 with the *same* label.
# So $W_K$ copies the label into both halves, $W_Q$ is a number times the identity, and $W_V$ copies the ball to features 0 and 8.
# With the number 30 the right drawer has the score $30/\sqrt 8 = 10.6$ and the seven others have 0, so its weight is $e^{10.6}/(e^{10.6}+7) = 0.9998$.

# %%
sharpness = 30.0  # try 0.0 … 60.0
task = cabinet.two_lookups()
network = cabinet.LookupNetwork(16, 2)
copied = torch.zeros(16, 16)
copied[:8] = torch.eye(8).repeat(1, 2)  # W_K and W_V: features 0–7 to both heads
by_hand = network.attention
with torch.no_grad():
    for parameter in network.parameters():
        parameter.zero_()
    by_hand.query_proj.weight.copy_(sharpness * torch.eye(16))
    by_hand.key_proj.weight.copy_(copied.T)  # `weight` is W transposed
    by_hand.value_proj.weight.copy_(copied.T)
    by_hand.out_proj.weight.copy_(torch.eye(16))
    network.readout.weight[0, 0] = network.readout.weight[1, 8] = 1.0
with cu.record_attention(network) as maps:
    network(*task.inputs(task.balls[:1]))
on_c, on_f = maps["attention"][0, [0, 1], task.requests.index("CF"), [2, 5]].tolist()
right = cabinet.lookup_accuracy(network).tolist()
print(f"request CF: head 0 gives C {on_c:.4f}, head 1 gives F {on_f:.4f}")
print("accuracy: first, second, both", [round(share, 3) for share in right])

# %% [markdown]
# Both weights are 0.9998, and every case is right.
# Try smaller numbers, because the largest weight only has to be larger than all others together.
#
# Now play with such weights for any number of look-ups and heads.
# Head $j \bmod h$ does look-up $j$, and a head with several look-ups returns the mean of their balls.
# Ask for CF with one head and with two, and then ask for three and four drawers.
# The last line compares the result with the bound of the first section.
# One head reaches the bound, for example 75% for two look-ups.
# Two heads with two look-ups each don't, because they reach 56% and the bound is 69%.

# %% jupyter={"source_hidden": true}
cu.live.heads("CF", 2)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With the number 30 the weights are 0.9998, and all answers are right.", given=sharpness == 30.0
):
    assert abs(on_c - 0.9998) < 1e-4 and abs(on_f - 0.9998) < 1e-4
    assert right == [1, 1, 1]

# %% [markdown]
# ## How narrow may a head be?
#
# More heads are narrower heads.
# With $d/h$ numbers, the matrix $W_Q^{(i)} W_K^{(i)\top}$ that compares queries with keys has rank at most $d/h$ ([Bhojanapalli et al., 2020](https://arxiv.org/abs/2002.07028)).
# In the extreme case, with width 1, the scores are $q\,k_j$, so the largest key wins for $q > 0$, and the smallest for $q < 0$.
# This means that of $n$ keys only two can ever win.
# With width 2, keys on a circle can all win.
# The table counts the winners among eight keys for a thousand random queries.

# %%
line = torch.randn(8, 1)
angle = torch.arange(8) * 2 * math.pi / 8
circle = torch.stack([angle.cos(), angle.sin()], dim=1)
winners = {}
for name, keys in (("width 1, random keys", line), ("width 2, a circle", circle)):
    scores = torch.randn(1000, keys.shape[1]) @ keys.T
    winners[name] = scores.argmax(dim=1).bincount(minlength=8).tolist()
pd.DataFrame(winners, index=[f"key {j}" for j in range(8)]).T

# %% [markdown]
# In the first row only two columns aren't zero, the largest key and the smallest.
# In the second row each key wins for about an eighth of the queries.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("With width 1 only two keys ever win, and with width 2 all eight do."):
    first_row, second_row = winners.values()
    ends = {line.argmin().item(), line.argmax().item()}
    assert {j for j, wins in enumerate(first_row) if wins} == ends
    assert min(second_row) > 60

# %% [markdown]
# ## Heads as slices
#
# There is a cheaper way to have $h$ heads.
# We cut the *embedding* into $h$ slices and give each head one of them, with matrices of size $d/h \times d/h$ and no $W_O$.
# Kak's lecture (2025) defines multi-head attention in this way.


# %%
class SlicedAttention(nn.Module):
    """Head i sees slice i of the embedding and nothing else; the outputs are joined."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads, size = num_heads, embed_dim // num_heads
        shape = (3, num_heads, size, size)  # three roles
        self.matrices = nn.Parameter(torch.randn(shape) / math.sqrt(size))

    def forward(self, queries, keys, values, attn_mask=None):
        q, k, v = (
            cu.split_heads(x, self.num_heads) @ W
            for x, W in zip((queries, keys, values), self.matrices, strict=True)
        )
        return cu.merge_heads(cu.scaled_dot_product_attention(q, k, v, attn_mask))


# %% [markdown]
# Slice $i$ times its small matrix is part $i$ of $xW$, if $W$ has the small matrices on its diagonal and zeros elsewhere.
# So slicing *is* multi-head attention, with **block-diagonal** projections and $W_O = I$.
# It is a special case with $3d^2/h$ numbers instead of $4d^2$.


# %%
def multi_head(queries, keys, values, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
    """The functional form: weights as arguments, all heads' columns side by side."""
    q, k, v = queries @ W_Q, keys @ W_K, values @ W_V  # project
    q, k, v = (cu.split_heads(x, num_heads) for x in (q, k, v))
    return cu.merge_heads(cu.scaled_dot_product_attention(q, k, v, attn_mask)) @ W_O


def block_diagonal(x, matrices, mask):
    W_Q, W_K, W_V = (torch.block_diag(*blocks) for blocks in matrices)
    return multi_head(x, x, x, W_Q, W_K, W_V, torch.eye(embed_dim), num_heads, mask)


def in_slices(x, matrices, mask):
    return torch.func.functional_call(sliced, {"matrices": matrices}, (x, x, x, mask))


def moved(attention):
    """How many of the outputs notice a change of features 4 to 7 of all tokens."""
    change = torch.zeros(2, 5, embed_dim)
    change[..., 4:8] = 1.0
    difference = attention(*[x + change] * 3) - attention(x, x, x)
    return (difference.abs().amax(dim=(0, 1)) > 1e-6).sum().item()


def in_another_basis(x, W):
    turned, R_ = x @ R.to(x), R.to(x)
    return multi_head(turned, turned, turned, *R_.T @ W[:3], W[3], num_heads)


# %%
embed_dim, num_heads = 12, 3
sliced = SlicedAttention(embed_dim, num_heads)
full = cu.MultiHeadAttention(embed_dim, num_heads)
x = torch.randn(2, 5, embed_dim)
cu.equal(in_slices, block_diagonal, x, sliced.matrices, cu.causal_mask(5))
R = torch.linalg.qr(torch.randn(embed_dim, embed_dim))[0]  # a rotation of the embedding
W = torch.randn(4, embed_dim, embed_dim) / 3
cu.equal(in_another_basis, lambda x, W: multi_head(x, x, x, *W, num_heads), x, W)
noticing = moved(sliced), moved(full)
print("outputs that notice slice 1: sliced {}, projected {} of 12".format(*noticing))

# %% [markdown]
# The first line shows that sliced and block-diagonal heads are the same.
# In the second line we turn all embeddings by a rotation $R$ and the weights by $R^\top$.
# Projected heads give the same as before, because they may choose their basis, but slices can't, because what a head sees depends on the order of the features.
# In the third line, only the four outputs of head 1 notice a change of slice 1, whereas all twelve outputs of projected heads do.
# However many sliced layers we stack, slice 0 never learns about slice 1.
# In a Transformer the feed-forward layers between them do mix the slices.
#
# To see what slices cost, we go back to the cabinet, in which a drawer has label and ball in features 0–7 only.
# A head that sees features 8–15 has keys and values of zero.
# So only one head is left, and this head can't do two look-ups of the same feature.
# But if label and ball happen to be in both halves, slices can do it.


# %% tags=["nbval-ignore-output"]
class LaidOut(nn.Module):
    """Copies features 0–7 of keys and values into both halves before a layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, queries, keys, values):
        return self.layer(queries, keys @ copied, values @ copied)


laid_out = {}
for name, wrap in (
    ("as they are", lambda layer: layer),
    ("label and ball in both halves", LaidOut),
):
    for seed in (0, 1, 2):
        cu.seed_everything(seed)
        one = cabinet.LookupNetwork(16, 2, attention=wrap(SlicedAttention(16, 2)))
        cabinet.train_lookups(one, seed=seed)
        laid_out[name, f"seed {seed}"] = cabinet.lookup_accuracy(one)[2].item()
pd.Series(laid_out).unstack(sort=False).round(2)

# %% [markdown]
# The table shows the accuracy, with both balls right, after 300 steps.
# Slices do well if somebody has laid out the features for them, whereas a projection learns the layout.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Slices can do two look-ups only if both halves hold the features."):
    shares = pd.Series(laid_out).unstack(sort=False)
    assert (shares.loc["as they are"] <= 0.75).all()
    assert (shares.loc["label and ball in both halves"] > 0.97).all()
    assert (moved(sliced), moved(full)) == (4, 12)

# %% [markdown]
# ## Sizes of their own
#
# Not all sizes have to be $d$.
# Queries, keys, and values may have sizes $d_q$, $d_k$, and $d_v$.
# A head may compare with $p$ numbers and return $p_v$, and the output has a size $d_o$.
# Then $W_Q$ is $d_q \times hp$, $W_K$ is $d_k \times hp$, $W_V$ is $d_v \times hp_v$, and $W_O$ is $hp_v \times d_o$.
# The functional form of the last section stays as it is, because it takes all sizes from the matrices.
# A translator whose encoder has states of another size than its decoder needs this.

# %%
d_q, d_k, d_v, p, p_v, d_o, h4 = 10, 6, 7, 5, 3, 8, 4
Q, K, V = torch.randn(2, 5, d_q), torch.randn(2, 9, d_k), torch.randn(2, 9, d_v)
shapes = (d_q, h4 * p), (d_k, h4 * p), (d_v, h4 * p_v), (h4 * p_v, d_o)
four = [torch.randn(shape) for shape in shapes]
print("output:", tuple(multi_head(Q, K, V, *four, h4).shape))

theirs = nn.MultiheadAttention(12, 4, kdim=6, vdim=7, bias=False, batch_first=True)
ours = cu.MultiHeadAttention(12, 4, key_dim=6, value_dim=7, bias=False)


def by_torch(q, k, v, W_Q, W_K, W_V, W_O):
    names = {"q_proj_weight": W_Q.T, "k_proj_weight": W_K.T, "v_proj_weight": W_V.T}
    names["out_proj.weight"] = W_O.T
    return torch.func.functional_call(theirs, names, (q, k, v))[0]


def by_package(q, k, v, *weights):
    roles = ("query", "key", "value", "out")
    names = {f"{role}_proj.weight": W.T for role, W in zip(roles, weights, strict=True)}
    return torch.func.functional_call(ours, names, (q, k, v))


q12 = torch.randn(2, 5, 12)
twelve = [torch.randn(size, 12) for size in (12, 6, 7, 12)]
functional = lambda q, k, v, *weights: multi_head(q, k, v, *weights, 4)  # noqa: E731
cu.equal(functional, by_torch, q12, K, V, *twelve)
cu.equal(functional, by_package, q12, K, V, *twelve)

# %% [markdown]
# The layers of PyTorch (`kdim`, `vdim`) and of the package (`key_dim`, `value_dim`) have sizes of their own for keys and values, while the heads and the output take their width from the queries.
# Outputs and seven gradients are equal in both comparisons.

# %% [markdown]
# ## Heads by additive attention
#
# A head needs a score, and this may be any of [Scoring functions](03_scoring_functions.ipynb).
# With additive attention each head has matrices for queries and keys and a vector $w^{(i)}$: $a = w^{(i)\top}\tanh(q W_Q^{(i)} + k W_K^{(i)})$.
# We split as before, change only the *score*, and don't scale it.


# %%
class AdditiveHeads(nn.Module):
    """num_heads additive attentions side by side."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query_proj, self.key_proj, self.value_proj, self.out_proj = (
            nn.Linear(embed_dim, embed_dim, bias=False) for _ in range(4)
        )
        self.w = nn.Parameter(torch.randn(num_heads, embed_dim // num_heads))

    def forward(self, queries, keys, values, attn_mask=None):
        q = cu.split_heads(self.query_proj(queries), self.num_heads)  # project, split
        k = cu.split_heads(self.key_proj(keys), self.num_heads)
        v = cu.split_heads(self.value_proj(values), self.num_heads)
        added = (q[..., :, None, :] + k[..., None, :, :]).tanh()  # (…, n, m, p)
        scores = (added * self.w[:, None, None]).sum(dim=-1)  # score
        weights = cu.masked_softmax(scores, attn_mask)  # mask, normalize
        return self.out_proj(cu.merge_heads(weights @ v))  # mix, join, merge


# %% tags=["nbval-ignore-output"]
one_head = AdditiveHeads(12, 1)
reference = cu.AdditiveAttention(12, 12, 12)
with torch.no_grad():
    reference.query_proj.weight.copy_(one_head.query_proj.weight)
    reference.key_proj.weight.copy_(one_head.key_proj.weight)
    reference.score_proj.weight.copy_(one_head.w)
    q5, k7 = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    expected = one_head.out_proj(reference(q5, k7, one_head.value_proj(k7)))
    apart = one_head(q5, k7, k7) - expected
same = (apart.abs().max() < 1e-6).item()
print(f"one head: equal to cu.AdditiveAttention, to 1e-6: {same}")
additive = {}
for h in (1, 2):
    for seed in (0, 1, 2):
        cu.seed_everything(seed)
        other = cabinet.LookupNetwork(16, h, attention=AdditiveHeads(16, h))
        cabinet.train_lookups(other, seed=seed)
        accuracy = cabinet.lookup_accuracy(other)[2].item()
        additive[f"{h} head(s)", f"seed {seed}"] = accuracy
pd.Series(additive).unstack(sort=False).round(2)

# %% [markdown]
# With one head the layer is the package's additive attention between two linear maps.
# On the two look-ups additive heads behave as dot products do, because the proof of the first section doesn't care where the weights come from.
# But additive heads cost memory, because for each pair of a query and a key, `added` has $d$ numbers, whereas a dot product leaves only $h$.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("One additive head isn't enough, whatever its score, and two are."):
    share = pd.Series(additive).unstack(sort=False)
    assert (share.iloc[0] <= 0.75).all() and (share.iloc[1] > 0.9).all()
    assert apart.abs().max() < 1e-5

# %% [markdown]
# ## What goes wrong
#
# Here are four mistakes, none of which raises an error.
#
# - **The same matrices** for each head, in a loop that forgets the index.
# - **$\sqrt d$ instead of $\sqrt{d/h}$**.
# - **No $W_O$**.
# - **Lengths in the wrong order**.
#
# The last mistake happens in code that folds heads into the batch, (batch · heads, length, head_dim), as *Dive into Deep Learning* (Zhang et al., 2023) does.
# There the valid length of each sequence has to come $h$ times *in a row*, as `repeat_interleave` makes it, whereas `repeat` repeats the whole list.
# The table has a number that gives each mistake away.


# %%
def joined(matrices):
    """(heads, 3, 12, 4) → (30, 12)."""
    heads = [cu.scaled_dot_product_attention(*(tokens @ three)) for three in matrices]
    return torch.cat(heads, dim=-1)


# %%
tokens = torch.randn(30, 12)
own = joined(torch.randn(3, 3, 12, 4))
shared = joined(torch.randn(1, 3, 12, 4).expand(3, -1, -1, -1))
q16, k16 = (cu.split_heads(torch.randn(64, 20, 256), 16) for _ in range(2))  # width 16
without = own * (torch.arange(12) // 4 != 1)  # without head 1
W_O, rank = torch.randn(12, 12), torch.linalg.matrix_rank
both = (own @ W_O, without @ W_O), (own, without)
noticed = [(before != after).any(dim=0).sum().item() for before, after in both]
valid = torch.tensor([4, 2])  # two sequences, three heads
signs = {
    "rank of 30 joined rows": [rank(own).item(), rank(shared).item()],
    "variance of the scores": [
        round((q16 @ k16.mT / math.sqrt(size)).var().item(), 2) for size in (16, 256)
    ],
    "outputs that change if head 1 is ablated": noticed,
    "lengths of sequence 0 in its three heads": [
        valid.repeat_interleave(3)[:3].tolist(), valid.repeat(3)[:3].tolist(),
    ],
}  # fmt: skip
pd.DataFrame(signs, index=["right", "wrong"]).T

# %% [markdown]
# Shared matrices make copies of one head, so the joined rows of 12 numbers have only rank 4.
# With $\sqrt{256}$ instead of $\sqrt{16}$ the variance is $1/16$ although it has to be 1, and all heads are nearly uniform at the start.
# If only the four outputs of head 1 change when we ablate it, nothing has mixed the heads.
# And with `repeat` the second head of sequence 0 loses two tokens.
# A mask with four axes that broadcasts, (batch, 1, 1, keys), leaves no room for this last mistake.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("Each of the four mistakes can be seen in a number of its own."):
    assert signs["rank of 30 joined rows"] == [12, 4]
    assert abs(signs["variance of the scores"][0] - 1) < 0.05
    assert signs["variance of the scores"][1] == 0.06
    assert signs["outputs that change if head 1 is ablated"] == [12, 4]
    assert signs["lengths of sequence 0 in its three heads"] == [[4, 4, 4], [4, 2, 4]]

# %% [markdown]
# Back to [Multi-head attention](08_multi_head_attention.ipynb), or on to [Positions](09_positions.ipynb).

# %% [markdown]
# ## References
#
# - Bhojanapalli, S. et al. (2020).
#   [Low-rank bottleneck in multi-head attention models](https://arxiv.org/abs/2002.07028).
#   ICML.
# - Kak, A. (2025).
#   [Transformers: Learning with Purely Attention Based Networks](https://engineering.purdue.edu/DeepLearn/).
#   Lecture slides, Purdue University: heads as slices of the embedding.
# - Zhang, A., Lipton, Z. C., Li, M. and Smola, A. J. (2023).
#   [Dive into Deep Learning](https://d2l.ai).
#   Cambridge University Press.
#   Section 11.5: heads folded into the batch.
