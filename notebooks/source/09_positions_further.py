# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Positions: decay, twins and caches
#
# What a first reader of [Positions](09_positions.ipynb) may skip.
# Each section stands on its own.

# %%
import math

import pandas as pd
import torch
from torch import nn

import course_utils as cu
from course_utils.positions import RelativeKeys, offset_buckets, rotate, sinusoidal_table

cu.seed_everything(0)

# %% [markdown]
# ## Why may we add?
#
# Expand a score of $x_i + p_i$ and $x_j + p_j$, with $M = W_QW_K^\top$:
#
# $$(x_i + p_i)\,M\,(x_j + p_j)^\top = \underbrace{x_iMx_j^\top}_{\text{word, word}} + \underbrace{x_iMp_j^\top}_{\text{word, place}} + \underbrace{p_iMx_j^\top}_{\text{place, word}} + \underbrace{p_iMp_j^\top}_{\text{place, place}} .$$
#
# The last term is what a layer needs to look at places, whatever words stand there.
# And there is room for it: how many of 512 directions do the first 128 positions use?

# %%
P = sinusoidal_table(128, 512).double()
energy = torch.linalg.svdvals(P).square()
share = energy.cumsum(0) / energy.sum()
for part in (0.9, 0.99, 0.999):
    needed = int((share < part).sum()) + 1
    print(f"{part:.1%} of the squares lie in {needed} of 512 directions")

# %% [markdown]
# A matrix can read the 39 directions that hold 99 % and leave the others to the words.
#
# ## Kinds of decay
#
# The dot product of two sinusoidal positions at the distance $k$ is $\sum_j \cos k\omega_j$.
# For many pairs and $1 \ll k \ll 10000$ the sum is close to an integral over $\ln\omega$, whose value is a logarithm:
#
# $$p_i\cdot p_{i+k} \approx \frac d2\Big(1 - \frac{\ln k + \gamma}{\ln 10000}\Big),\qquad \gamma = 0.577\dots$$
#
# By hand for $d = 512$, $k = 100$: $256\,(1 - (4.605 + 0.577)/9.210) = 112$.
# And what does a layer see of the logarithm before training, through two random matrices?

# %%
d = 512  # try 16 | 64 | 512
table = sinusoidal_table(1000, d).double()
k = torch.arange(200)
products = table[:200] @ table[0]
law = d / 2 * (1 - (k[1:].log() + 0.5772) / math.log(10_000))
climbs = products.diff().clamp(min=0).sum() / (d / 2)
print(f"at 100: {products[100]:.1f}, by the law {law[99]:.1f}; climbs {climbs:.2f}")
gaps = []
for _ in range(20):
    W_Q, W_K = torch.randn(2, d, d, dtype=torch.float64) / math.sqrt(d)
    scores = (table[:200] @ W_Q) @ (table[:200] @ W_K).T
    near, far = (scores.diagonal(n).mean() for n in (1, 100))
    gaps.append(((near - far) / scores.abs().mean()).item())
gaps = torch.tensor(gaps)
print(f"near − far, random matrices: {gaps.mean():.2f}, deviation {gaps.std():.2f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
curves = {"d = 16": 16, "d = 512": 512}
cu.show_curves(
    k[1:], {
        **{name: (t := sinusoidal_table(200, size).double())[1:] @ t[0] / (size / 2) for name, size in curves.items()},
        "law": law / (d / 2), "ALiBi, exp(−k/8)": torch.exp(-k[1:] / 8),
    },
    xlabel="distance k", ylabel="share of the largest", width=7, height=3,
    alt="Four curves over distances 1 to 199: the dot product for 512 columns falls like the logarithmic law, that for 16 "
    "columns falls and climbs in large ripples, and ALiBi's exponential is near 0 from 30 on.",
)  # fmt: skip

# %% [markdown]
# With 512 columns the law is close, though the curve climbs here and there; with 16 it climbs again and again.
# ALiBi, $e^{-mk}$, forgets what is far, and the logarithm does not.
# Through random matrices nothing of it is left on average: the mean gap is 0.00, and single pairs of matrices deviate by 0.48 to either side.
# [Yan et al. (2019)](https://arxiv.org/abs/1911.04474) show both.
# What sinusoids give is not a preference for near tokens but the possibility to learn one.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At 512 columns the product follows the law, and with random matrices it follows none."
):
    assert d < 512 or abs(products[100] - 112) < 1
    assert gaps.std() > 2 * gaps.mean().abs()

# %% [markdown]
# ## Twins
#
# One pair repeats: 44 is close to $7\cdot 2\pi = 43.98$, so that positions 0 and 44 are nearly the same to the fastest pair.
# Are there twins for all pairs together, among 2,000 positions?

# %%
rows = sinusoidal_table(2000, 32).double()
apart = torch.cdist(rows, rows)
by_one = (rows[44, :2] - rows[0, :2]).norm()
print(f"0 and 44: {by_one:.3f} by one pair, {apart[0, 44]:.2f} by all")
steps = apart.diagonal(offset=1)
print(f"neighbors: {steps.min():.3f} to {steps.max():.3f}")
others = apart.fill_diagonal_(math.inf).triu(2) + torch.ones(2000, 2000).tril(1) * 99
print(f"the nearest other two: {others.min():.3f}")

# %% [markdown]
# None: every step has the same length, 1.172, and no other two of the 2,000 positions are nearer than 2.131.
# *Dive into Deep Learning* (Zhang et al., 2023, section 11.6) calls sinusoids more space-efficient than binary numbers, as they are floats.
# They are not: 2,000 positions fit into 11 bits, and here each has 32 floats.
# What the floats give is smoothness, and rotation.

# %% [markdown]
# ## Shaw's vectors and T5's buckets
#
# Shaw's scores need a vector for each pair of positions, picked from a table by the offset.
# T5 gives each of the first eight distances a number of its own; a distance $o$ from 8 on has the bucket $8 + \lfloor 8\ln(o/8)/\ln 16\rfloor$, and from 91 on all share number 15.
# By hand for 16: $8 + 8\ln 2/\ln 16 = 10$.
# (T5 does not divide its scores by $\sqrt d$; smaller first weights do the same.)


# %%
def offsets(n):
    return torch.arange(n) - torch.arange(n)[:, None]  # (n, n): j − i


def shaw(Q, table):
    """Q (…, n, d), vectors for offsets −r … r (2r + 1, d) → added to Q Kᵀ."""
    r = len(table) // 2
    vectors = table[offsets(Q.shape[-2]).clamp(-r, r) + r]  # (n, n, d)
    return (Q[..., :, None, :] * vectors).sum(dim=-1)


def bucket(offset):
    """T5: offsets up to 7 have a bucket each, others share; + 16 to the right."""
    distance = offset.abs()
    shared = 8 + (8 * (distance.clamp(min=8) / 8).log() / math.log(128 / 8)).long()
    return torch.where(distance < 8, distance, shared.clamp(max=15)) + 16 * (offset > 0)


# %%
relative, asked = RelativeKeys(8, farthest=2), torch.randn(2, 5, 8)
same_shaw = torch.allclose(shaw(asked, relative.table), relative(asked), atol=1e-6)
same_buckets = torch.equal(bucket(offsets(500)), offset_buckets(offsets(500)))
lefts = [1, 7, 8, 11, 12, 15, 16, 32, 90, 91, 999]
print(dict(zip(lefts, bucket(-torch.tensor(lefts)).tolist(), strict=True)))
print("equal to course_utils: Shaw", same_shaw, "buckets", same_buckets)

# %% [markdown]
# ## Two rotary pairings
#
# A pair of numbers is a complex number, and turning it is multiplication by $e^{\mathrm i\,n\omega}$.
# With $q$ and $k$ as complex numbers, the score is the real part of $q e^{\mathrm i\,n\omega}\,\overline{k e^{\mathrm i\,m\omega}} = q\overline k\,e^{\mathrm i(n-m)\omega}$: this is the whole proof that it depends on the offset alone.
# As code:


# %%
def rotate_complex(x):
    """(…, length, dim): the pair j of position n times exp(i n ω_j)."""
    length, dim = x.shape[-2:]
    frequency = 10_000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = torch.arange(length)[:, None] * frequency
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    turned = torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle))
    return turned.flatten(-2).to(x.dtype)


def rotate_halves(x):
    """The same, but the pairs are columns j and j + dim / 2."""
    length, dim = x.shape[-2:]
    angle = torch.arange(length)[:, None] * 10_000.0 ** (-torch.arange(0, dim, 2) / dim)
    a, b = x.chunk(2, dim=-1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


cu.equal(rotate_complex, rotate, torch.randn(2, 20, 16))

# %%
Q, K = torch.randn(2, 20, 16)
order = torch.arange(16).view(2, 8).T.flatten()  # 0, 8, 1, 9, …: halves side by side
scores_of = {
    "neighbors": rotate(Q) @ rotate(K).T,
    "halves": rotate_halves(Q) @ rotate_halves(K).T,
    "halves, columns reordered": rotate(Q[:, order]) @ rotate(K[:, order]).T,
}
picked = {n: s[[0, 5, 19], [0, 3, 0]].tolist() for n, s in scores_of.items()}
pd.DataFrame(picked, index=["offset 0", "offset 2", "offset 19"]).T.round(3)

# %% [markdown]
# The paper pairs neighboring columns; many libraries pair column $j$ with column $j + d/2$.
# The two differ by an order of columns, which a dot product does not notice *if both sides have it* (lines 2 and 3).
# Weights that were trained with one kind and run with the other raise no error, agree at offset 0, and are wrong elsewhere (lines 1 and 2).
# Converted checkpoints therefore come with reordered $W_Q$ and $W_K$.
#
# Sinusoids and rotary positions are the same movement.
# Turn the constant vector $(1, 0, 1, 0, \dots)$: out comes the pair (cosine, sine), the table $P$ with the columns of each pair exchanged.
# This is why the minus stands in the other corner.

# %%
constant = torch.tensor([1.0, 0.0]).repeat(16).expand(60, 32)
exchanged = sinusoidal_table(60, 32).unflatten(1, (16, 2)).flip(-1).flatten(1)
print(f"largest difference: {(rotate(constant) - exchanged).abs().max():.6f}")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The two pairings agree at offset 0 and after the columns are reordered, and nowhere else."
):
    one, two, three = scores_of.values()
    assert torch.allclose(two, three, atol=1e-4)
    assert torch.allclose(one.diagonal(), two.diagonal(), atol=1e-4)
    assert (one - two).abs().mean() > 0.5
    assert torch.allclose(rotate(constant), exchanged, atol=1e-5)

# %% [markdown]
# ## Positions in a cache
#
# A decoder writes token by token and keeps the keys and values of earlier tokens in a **cache**; the further page of [Translating](11_translating_further.ipynb#The-cache) builds one.
# Each new token has to get *its own* position.
# A mistake that raises no error: the new token is a sequence of length 1, so `table[:1]` gives it position 0, again and again.
#
# With rotary positions, keys usually go into the cache after they have been turned: then they need not be turned again.
# Unturned keys work as well, if all are turned at each step; this allows new positions for old keys ([Xiao et al., 2023](https://arxiv.org/abs/2309.17453)).

# %%
tokens = torch.randn(6, 16)
every = torch.arange(6)
turned = rotate(tokens)
at_once = cu.scaled_dot_product_attention(turned, turned, tokens, is_causal=True)


def step_by_step(turn_query, turn_keys):
    """Token t asks the tokens 0 … t: (6, 16)."""
    answers = []
    for t in every.tolist():
        q, keys = turn_query(tokens[t : t + 1], t), turn_keys(tokens[: t + 1])
        answers.append(cu.scaled_dot_product_attention(q, keys, tokens[: t + 1]))
    return torch.cat(answers)


turned_once = torch.cat([rotate(tokens[t : t + 1], start=t) for t in every.tolist()])
at_t = lambda q, t: rotate(q, start=t)  # noqa: E731
ways = {
    "keys kept turned": step_by_step(at_t, lambda x: turned_once[: len(x)]),
    "keys turned at each step": step_by_step(at_t, rotate),
    "every query at position 0": step_by_step(lambda q, t: rotate(q), rotate),
}
off = {name: (y - at_once).abs().max(dim=1).values for name, y in ways.items()}
pd.DataFrame({n: y.tolist() for n, y in off.items()}).T.add_prefix("token ").round(3)

# %% [markdown]
# The first two lines are 0: in steps as at once.
# In the last, only token 0 is right.
#
# ## A mask is a hint
#
# Is a decoder without positions blind?
# Its causal mask says who may look at whom, and this depends on the order.
# Take a first token `<bos>` with the value 1, all others 0, and equal scores: token $i$ averages $i + 1$ values, one of which is 1.
# Its output is $1/(i + 1)$, and the position can be read off.
# But **one** causal layer still treats everything before the last token as a set.
# Two layers?

# %%
first_value = torch.tensor([1.0, 0, 0, 0, 0, 0])[:, None]
read_off = cu.masked_softmax(torch.zeros(6, 6), cu.causal_mask(6)) @ first_value
print("1 / output:", (1 / read_off[:, 0]).round(decimals=3).tolist())
seven = torch.randn(7, 16)
shuffled = torch.cat([seven[[3, 0, 5, 1, 4, 2]], seven[6:]])  # the last token stays


def causal(x):
    return cu.scaled_dot_product_attention(x, x, x, is_causal=True)


after_one = (causal(shuffled)[-1] - causal(seven)[-1]).abs().max()
after_two = (causal(causal(shuffled))[-1] - causal(causal(seven))[-1]).abs().max()
print(f"the last output changes by {after_one:.4f}, with two layers by {after_two:.4f}")

# %% [markdown]
# The second layer reads outputs that differ already.
# Language models without any positions do learn where they are ([Haviv et al., 2022](https://arxiv.org/abs/2203.16634)), and in a comparison on reasoning tasks they generalized best to longer inputs ([Kazemnejad et al., 2023](https://arxiv.org/abs/2305.19466)).

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "A causal mask tells a position, but one layer doesn't see the order of the tokens before the last."
):
    assert torch.allclose(1 / read_off[:, 0], torch.arange(1.0, 7.0))
    assert after_one < 1e-5 and after_two > 1e-3

# %% [markdown]
# ## A table and a batch
#
# ### Exercise 1 · Find the bug
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
    print(call, buggy_add(zeros, sinusoidal_table(20, 4))[1, :, 0].numpy().round(3))


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
# ## Three more silent mistakes
#
# **Embeddings much larger than positions.**
# A row of $P$ has the length $\sqrt{d/2}$.
# Vaswani et al. multiply embeddings by $\sqrt d$.
# This fits embeddings whose numbers have the standard deviation $1/\sqrt d$; `nn.Embedding` starts with 1.
# **Positions in half precision.** bfloat16 has 8 significant bits: all whole numbers up to 256, and not all beyond.
# **A table that is a plain attribute**: `model.to(device)` leaves it behind.
# The device "meta" shows it without a GPU.

# %%
wide, deviation = 512, 1.0
embedded = deviation * torch.randn(1000, wide) * math.sqrt(wide)
lengths = embedded.norm(dim=1), sinusoidal_table(50, wide).norm(dim=1)
ratio = (lengths[0].mean() / lengths[1].mean()).item()
print(f"an embedding is {ratio:.1f} times as long as a position")
counts = torch.arange(2048).bfloat16().unique(return_counts=True)[1]
whole, sharing = len(counts), counts[counts > 1].sum().item()
print(f"2048 positions in bfloat16: {whole} numbers, {sharing} positions share theirs")


class PlainTable(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.table = sinusoidal_table(100, dim)  # right: self.register_buffer


for module in (PlainTable(16), cu.SinusoidalPositions(16)):
    print(f"{type(module).__name__}: {module.to('meta').table.device.type}")

# %% [markdown]
# A position is a thirty-second of the embedding to which it is added; with the deviation $1/\sqrt{512} = 0.044$ the ratio would be 1.4.
# In bfloat16 only 641 numbers are left of 2048, and 1,728 positions share theirs with another one, so the package computes angles in float64 and rounds at the end.
# The plain table stays on the CPU.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Embeddings with a standard deviation of 1 are 32 times as long as a position's vector, and bfloat16 tells 641 of 2048 positions apart."
):
    assert abs(ratio - 32) < 0.5 and whole == 641

# %% [markdown]
# Back to the chapter: [Positions](09_positions.ipynb).
# Next: [The Transformer](10_transformer.ipynb).

# %% [markdown]
# ## References
#
# - Haviv, A., Ram, O., Press, O., Izsak, P. and Levy, O. (2022).
#   [Transformer language models without positional encodings still learn positional information](https://arxiv.org/abs/2203.16634).
#   Findings of EMNLP.
# - Kazemnejad, A., Padhi, I., Natesan Ramamurthy, K., Das, P. and Reddy, S. (2023).
#   [The impact of positional encoding on length generalization in transformers](https://arxiv.org/abs/2305.19466).
#   NeurIPS.
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.4: the factor √d.
# - Xiao, G., Tian, Y., Chen, B., Han, S. and Lewis, M. (2023).
#   [Efficient streaming language models with attention sinks](https://arxiv.org/abs/2309.17453).
# - Yan, H., Deng, B., Li, X. and Qiu, X. (2019).
#   [TENER: Adapting transformer encoder for named entity recognition](https://arxiv.org/abs/1911.04474).
# - Zhang, A., Lipton, Z. C., Li, M. & Smola, A. J. (2023).
#   [Dive into Deep Learning](https://d2l.ai).
#   Cambridge University Press.
#   Section 11.6: positions.
