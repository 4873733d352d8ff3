# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Positions: decay, caches and silent mistakes
#
# This page answers what you may have asked yourself while reading [Positions](09_positions.ipynb).
# Why may we add a position to a word?
# How do T5's buckets work, and what does YaRN add to slower pairs?
# And what can go wrong without anybody noticing?
# You can read the sections in any order.

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
# A word and a position go into the same numbers, so how can a layer ever tell them apart?
# We expand the score of $x_i + p_i$ and $x_j + p_j$, with $M = W_QW_K^\top$.
#
# $$(x_i + p_i)\,M\,(x_j + p_j)^\top = \underbrace{x_iMx_j^\top}_{\text{word, word}} + \underbrace{x_iMp_j^\top}_{\text{word, position}} + \underbrace{p_iMx_j^\top}_{\text{position, word}} + \underbrace{p_iMp_j^\top}_{\text{position, position}} .$$
#
# With the last term a layer can look at positions, whatever words are there.
# All it needs is room, which means directions that the words don't use.
# How many of 512 directions do the first 128 positions take up?

# %%
P = sinusoidal_table(128, 512).double()
energy = torch.linalg.svdvals(P).square()
share = energy.cumsum(0) / energy.sum()
for part in (0.9, 0.99, 0.999):
    needed = int((share < part).sum()) + 1
    print(f"{part:.1%} of the squares lie in {needed} of 512 directions")

# %% [markdown]
# The positions take up hardly any of the 512 directions, so a matrix can read the 39 that hold 99% of the positions and leave all others to the words.
#
# ### Floats or bits?
#
# In the chapter the waves took the place of binary numbers.
# *Dive into Deep Learning* (Zhang et al., 2023, section 11.6) calls them more space-efficient, because a float holds more than a bit.
# But 2,000 positions fit into 11 bits, while a row of 32 floats has 1,024.
# So what do we get for all this room?
# We measure how far apart the positions are, neighbors and any other two.

# %%
rows = sinusoidal_table(2000, 32).double()
apart = torch.cdist(rows, rows)
steps = apart.diagonal(offset=1)
nearest_others = apart[torch.ones(2000, 2000).triu(2).bool()].min()
print(f"neighbors: {steps.min():.3f} to {steps.max():.3f}")
print(f"the nearest other two: {nearest_others:.3f}")

# %% [markdown]
# The floats buy smooth steps.
# Every step has the same length, and no other two of the 2,000 positions are nearer, whereas in binary 7 and 8 differ in four bits and 7 and 6 in one.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard("All neighbors are equally far apart, and all other positions farther."):
    assert steps.max() - steps.min() < 1e-3 and nearest_others > 1.5 * steps.max()

# %% [markdown]
# ## Kinds of decay
#
# In the chapter the dot product of two sinusoidal positions fell with their distance.
# How fast does it fall?
# At the distance $k$ it is $\sum_j \cos k\omega_j$, and for many pairs and $1 \ll k \ll 10000$ this sum is close to an integral over $\ln\omega$, whose value is a logarithm:
#
# $$p_i\cdot p_{i+k} \approx \frac d2\Big(1 - \frac{\ln k + \gamma}{\ln 10000}\Big),\qquad \gamma = 0.577\dots$$
#
# For example, with $d = 512$ and $k = 100$ we get $256\,(1 - (4.605 + 0.577)/9.210) = 112$.
# A layer sees it through $W_Q$ and $W_K$, so we also ask how much two *random* matrices leave of it.

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
# With 512 columns the law is close, and with 16 the curve climbs again and again.
# The weight that ALiBi leaves to a key, $e^{-mk}$, soon forgets what is far, while the logarithm remembers it.
# Through random matrices nothing is left of the fall, as [Yan et al. (2019)](https://arxiv.org/abs/1911.04474) showed.
# So sinusoids don't prefer near tokens, but they let a layer learn to.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "At 512 columns the product follows the law, and with random matrices it follows none."
):
    assert d < 512 or abs(products[100] - 112) < 1
    assert gaps.std() > 2 * gaps.mean().abs()

# %% [markdown]
# ## Shaw's vectors and T5's buckets
#
# The chapter shows that models with either of these do well in longer texts if what is far shares an entry that training has visited.
# Here is how the sharing is done.
# Shaw's layer picks a vector from a table by the offset, after clipping the offset at the limit.
# T5 gives each of the first eight distances a number of its own.
# A distance $o$ from 8 on falls into bucket $8 + \lfloor 8\ln(o/8)/\ln 16\rfloor$, and from 91 on all share bucket 15.
# For example, 16 falls into bucket $8 + 8\ln 2/\ln 16 = 10$.
# These are the buckets of T5's encoder, 16 to each side, and our models take them.
# Its decoder looks only to the left and has all 32 buckets there, so the last one begins at 113.
# T5 also leaves out the division by $\sqrt d$, which our models keep, and starts with smaller weights instead.


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
# ## NTK-aware scaling and YaRN
#
# In the chapter we divided the slow pairs of a trained rotary model by 64, and left the fast ones alone.
# Where is the border, and can we do better?
#
# - **NTK-aware scaling** ([bloc97, 2023](https://www.reddit.com/r/LocalLLaMA/comments/14lz7j5/ntkaware_scaled_rope_allows_llama_models_to_have/)) draws no border and takes a larger base.
#   That hardly touches the fast pairs, slows the slow ones more, and the slowest by the full factor of 64.
# - **YaRN** ([Peng et al., 2023](https://arxiv.org/abs/2309.00071)) has two parts.
#   The first, *NTK-by-parts*, joins the slow pairs, which are divided, and the fast ones, which are not, by a ramp.
#   The second is a **temperature** $t$ that makes the softmax sharper, the more so the larger the factor $s$ by which the text has grown.
#   All scores are multiplied by $1/t = (0.1\ln s + 1)^2$, which for $s = 64$ is 2.
#
# The table has the mean accuracy among 64, 256, and 1,024 tokens, over nine models that were trained on 16.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
names = {"trained": "as trained", "larger base": "larger base", "slow pairs": "slow pairs / 64", "by parts": "the same with a ramp",
         "slow pairs, sharper": "slow pairs / 64, scores doubled", "yarn": "YaRN: ramp, scores doubled", "sharper": "scores doubled only"}  # fmt: skip
cured = pd.DataFrame([run.config | run.result for run in cu.stored_runs("positions", "cured")])
means = pd.DataFrame(
    {f"{n:,}": [cured[f"{c} {n}"].mean() for c in names] for n in (64, 256, 1024)},
    index=[*names.values()],
)
means.round(2)

# %% [markdown]
# A larger base helps only a little, because most slow pairs get less than the 64 that they need.
# Doubling the scores does little on its own, but together with slower pairs it helps a lot, probably because the key at −3 then scores higher than most unseen offsets, and doubling widens this lead.
# Doubling helps in this way at the two smaller learning rates.
# Training at the largest one has made the scores so sharp already that doubling them changes hardly anything.
#
# We chose the ramp, from half a turn to one and a half within the trained length, on two of these nine models, because the paper's range, from 1 to 32 turns, needs longer rows than 16 tokens.
# So we ask three models that had no part in the choice.
# Among 1,024 tokens their accuracy is 0.70 with YaRN, and 0.76 with the plain step and doubled scores.
# Here it is the temperature that helps, and the ramp adds nothing.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "A larger base helps less than slower pairs, and doubled scores add to slower pairs at the smaller rates; on fresh models YaRN's ramp adds nothing to that."
):
    assert (cured["larger base 256"] > cured["trained 256"] - 0.02).all()
    assert (cured["slow pairs 1024"] > cured["larger base 1024"] + 0.05).all()
    gentle = cured[cured["rate"] < 0.01]
    assert (gentle["yarn 1024"] > gentle["slow pairs 1024"] + 0.1).all()
    assert min(cured[f"{c} 16"].min() for c in ("larger base", "slow pairs", "yarn")) > 0.97
    fresh = pd.DataFrame([run.result for run in cu.stored_runs("positions", "cured_afresh")])
    assert (fresh["slow pairs, sharper 1024"] > fresh["slow pairs 1024"]).all()
    means_of = fresh.mean().round(2)
    assert means_of[["yarn 1024", "slow pairs, sharper 1024"]].tolist() == [0.70, 0.76]

# %% [markdown]
# ## Two rotary pairings
#
# There is a shorter way to write a rotation.
# Take a pair of numbers as *one* complex number, and turning it becomes multiplication by $e^{\mathrm i\,n\omega}$.
# With $q$ and $k$ as complex numbers, the score is the real part of $q e^{\mathrm i\,n\omega}\,\overline{k e^{\mathrm i\,m\omega}} = q\overline k\,e^{\mathrm i(n-m)\omega}$.
# That is the whole proof that it depends only on the offset.
# The code has it first, and next to it the other pairing that you will meet in libraries.


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
# The paper pairs neighboring columns, but many libraries pair column $j$ with column $j + d/2$.
# The two differ only by the order of the columns, and a dot product doesn't notice the order *if both sides have it*, as rows 2 and 3 show.
# What if somebody trains weights with one pairing and runs them with the other?
# No error is raised, the scores agree at offset 0, and they are wrong everywhere else (rows 1 and 2).
# That is why converted checkpoints come with reordered $W_Q$ and $W_K$.
#
# Sinusoids and rotary positions are the same movement.
# If we turn the constant vector $(1, 0, 1, 0, \dots)$, we get a cosine and a sine in each pair, which is our table $P$ with the two columns of each pair swapped.

# %%
constant = torch.tensor([1.0, 0.0]).repeat(16).expand(60, 32)
exchanged = sinusoidal_table(60, 32).unflatten(1, (16, 2)).flip(-1).flatten(1)
print(f"largest difference: {(rotate(constant) - exchanged).abs().max():.6f}")

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "The two pairings agree at offset 0 and after the columns are reordered, and nowhere else."
):
    paper, halves, reordered = scores_of.values()
    assert torch.allclose(halves, reordered, atol=1e-4)
    assert torch.allclose(paper.diagonal(), halves.diagonal(), atol=1e-4)
    assert (paper - halves).abs().mean() > 0.5
    assert torch.allclose(rotate(constant), exchanged, atol=1e-5)

# %% [markdown]
# ## Positions in a cache
#
# A decoder writes token by token and keeps the keys and values of earlier tokens in a **cache**, which the further page of [Translating](11_translating_further.ipynb#The-cache) builds.
# Each new token has to get *its own* position, and here a mistake is easy.
# The new token is a sequence of length 1, so `table[:1]` gives it position 0, again and again, and no error is raised.
#
# With rotary positions, keys usually go into the cache after they have been turned, so each is turned only once.
# We can also keep them unturned and turn them all at each step, which allows new positions for old keys ([Xiao et al., 2023](https://arxiv.org/abs/2309.17453)).
# The table compares both, and the mistake, with a pass over all tokens at once.

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
# The two ways to keep keys agree with the single pass.
# With the mistake only token 0 is right.
#
# ## A mask is a hint
#
# Can a decoder do without positions (**NoPE**)?
# Its causal mask depends on the order, so it may give away something about it.
# Suppose the first token `<bos>` has the value 1, all others have 0, and all scores are equal.
# Then token $i$ averages $i + 1$ values, one of which is 1, and its output $1/(i + 1)$ says where it is.
# But **one** causal layer still treats everything before the last token as a set.
# We shuffle the tokens before the last one and ask one layer and then two.

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
# The order changes the answer of two layers, because the second one reads outputs that differ already.
# Language models without any positions do learn where they are ([Haviv et al., 2022](https://arxiv.org/abs/2203.16634)), and in a comparison on reasoning tasks they did best on longer inputs ([Kazemnejad et al., 2023](https://arxiv.org/abs/2305.19466)).

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
# *bug · 8 minutes*
#
# This function adds a table of positions to a batch.
# It was written for tensors of shape (n, batch, d), but ours are (batch, n, d).
# Look at what sequence 1 gets, and at what a second call does.
# Find the two mistakes, and write `fixed_add`, which should also raise an error for a sequence that is longer than the table.


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
# None of these raises an error, and we can see each of them in a line or two.
#
# - **Embeddings that are much larger than positions.**
#   A row of $P$ has the length $\sqrt{d/2}$.
#   Vaswani et al. multiply the embeddings by $\sqrt d$, which fits if their numbers have the standard deviation $1/\sqrt d$, but `nn.Embedding` starts with 1.
# - **Positions in half precision.**
#   With its 8 significant bits bfloat16 has all whole numbers up to 256, but only some of those beyond.
# - **A table that is a plain attribute.**
#   `model.to(device)` leaves it behind, as the device "meta" shows without a GPU.

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
# An embedding that is 32 times as long drowns out the position, although a model may still learn, as [The Transformer](10_transformer.ipynb) shows for rows that are too large.
# In bfloat16 most positions share their number with another one, which is why the package computes angles in float64 and rounds at the end.
# And the plain table stays on the CPU.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Embeddings with a standard deviation of 1 are 32 times as long as a position's vector, and bfloat16 tells 641 of 2048 positions apart."
):
    assert abs(ratio - 32) < 0.5 and whole == 641

# %% [markdown]
# Back to [Positions](09_positions.ipynb), or on to [The Transformer](10_transformer.ipynb).

# %% [markdown]
# ## References
#
# - bloc97 (2023).
#   [NTK-aware scaled RoPE allows LLaMA models to have extended (8k+) context size without any fine-tuning and minimal perplexity degradation](https://www.reddit.com/r/LocalLLaMA/comments/14lz7j5/ntkaware_scaled_rope_allows_llama_models_to_have/).
#   A note, cited in YaRN's paper.
# - Haviv, A., Ram, O., Press, O., Izsak, P. and Levy, O. (2022).
#   [Transformer language models without positional encodings still learn positional information](https://arxiv.org/abs/2203.16634).
#   Findings of EMNLP.
# - Kazemnejad, A., Padhi, I., Natesan Ramamurthy, K., Das, P. and Reddy, S. (2023).
#   [The impact of positional encoding on length generalization in transformers](https://arxiv.org/abs/2305.19466).
#   NeurIPS.
# - Peng, B., Quesnelle, J., Fan, H. and Shippole, E. (2023).
#   [YaRN: Efficient context window extension of large language models](https://arxiv.org/abs/2309.00071).
# - Vaswani, A. et al. (2017).
#   [Attention is all you need](https://arxiv.org/abs/1706.03762).
#   NeurIPS.
#   Section 3.4: the factor √d.
# - Xiao, G., Tian, Y., Chen, B., Han, S. and Lewis, M. (2023).
#   [Efficient streaming language models with attention sinks](https://arxiv.org/abs/2309.17453).
# - Yan, H., Deng, B., Li, X. and Qiu, X. (2019).
#   [TENER: Adapting transformer encoder for named entity recognition](https://arxiv.org/abs/1911.04474).
# - Zhang, A., Lipton, Z. C., Li, M. and Smola, A. J. (2023).
#   [Dive into Deep Learning](https://d2l.ai).
#   Cambridge University Press.
#   Section 11.6.
