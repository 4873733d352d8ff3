"""Checks: splitting into heads, what each head adds, ablation, and a broken merge."""

import math

import torch

from course_utils.attention import MultiHeadAttention, causal_mask, merge_heads, split_heads
from course_utils.lessons.check import Check, expect, expect_close, expect_shape

# Splitting --------------------------------------------------------------------------------------


split_into_heads = Check("split into heads")


@split_into_heads.must(
    "(batch, length, embed_dim) becomes (batch, heads, length, head_dim)",
    hint="the order of the axes is batch, heads, length, head_dim; head_dim = embed_dim / heads",
)
def _(candidate):
    expect_shape(candidate(torch.randn(2, 5, 12), 3), (2, 3, 5, 4))


@split_into_heads.must(
    "changing one token changes that token only, in every head",
    hint="a reshape reads numbers in memory order; first cut the last axis only, then exchange axes",
)
def _(candidate):
    x = torch.randn(1, 4, 6)
    changed = x.clone()
    changed[:, 2] += 1
    moved = (candidate(changed, 3) != candidate(x, 3)).any(dim=-1)  # (1, heads, length)
    expect(
        moved[0].any(dim=0).tolist() == [False, False, True, False],
        "changing token 2 changed other tokens, or did not change token 2",
    )


@split_into_heads.must(
    "head i gets the i-th block of neighboring columns",
    hint="which of the two new axes runs faster: the head, or the column within a head?",
)
def _(candidate):
    x = torch.arange(24.0).view(1, 3, 8)
    split = candidate(x, 2)
    expect_shape(split, (1, 2, 3, 4))
    for head in range(2):
        expect_close(
            split[:, head], x[..., 4 * head : 4 * head + 4], f"head {head} of columns 0 to 7"
        )


@split_into_heads.must(
    "it agrees for 1, 2, 4 and 12 heads and three sequences",
    hint="is a size written into the code that should come from the arguments?",
)
def _(candidate):
    x = torch.randn(3, 4, 12)
    for num_heads in (1, 2, 4, 12):
        expect_close(candidate(x, num_heads), split_heads(x, num_heads), f"num_heads={num_heads}")


# What each head adds ----------------------------------------------------------------------------


head_contributions = Check("what each head adds")


@head_contributions.must(
    "each head gives a vector of embed_dim numbers per query",
    hint="every head writes to all output dimensions: the result is (batch, heads, queries, embed_dim)",
)
def _(candidate):
    expect_shape(candidate(torch.randn(2, 3, 5, 4), torch.randn(12, 12)), (2, 3, 5, 12))


@head_contributions.must(
    "summed over the heads, they are W_O times the joined heads",
    hint="nn.Linear computes x Wᵀ: which block of the weight meets head i, rows or columns?",
)
def _(candidate):
    heads, weight = torch.randn(2, 3, 5, 4), torch.randn(12, 12)
    expect_close(
        candidate(heads, weight).sum(dim=1),
        merge_heads(heads) @ weight.T,
        "sum over the heads",
        atol=1e-4,
    )


@head_contributions.must(
    "a head's contribution is the output with all other heads at zero",
    hint="the sum is right but the shares are not: does head i meet its own block?",
)
def _(candidate):
    heads, weight = torch.randn(1, 2, 3, 4), torch.randn(8, 8)
    only = heads.clone()
    only[:, 0] = 0
    expect_close(
        candidate(heads, weight)[:, 1], merge_heads(only) @ weight.T, "head 1 alone", atol=1e-4
    )


@head_contributions.must(
    "the output may have another size than the joined heads",
    hint="only the columns of the weight belong to heads; its rows are output dimensions",
)
def _(candidate):
    heads, weight = torch.randn(2, 3, 5, 4), torch.randn(7, 12)
    answer = candidate(heads, weight)
    expect_shape(answer, (2, 3, 5, 7))
    expect_close(answer.sum(dim=1), merge_heads(heads) @ weight.T, "seven outputs", atol=1e-4)


# A broken merge ---------------------------------------------------------------------------------


def _random_call(batch=2, length=5, embed_dim=12):
    x = torch.randn(batch, length, embed_dim)
    weights = [torch.randn(embed_dim, embed_dim) / math.sqrt(embed_dim) for _ in range(4)]
    return x, weights


def _reference(x, weights, num_heads, attn_mask=None):
    layer = MultiHeadAttention(x.shape[-1], num_heads, bias=False)
    projections = (layer.query_proj, layer.key_proj, layer.value_proj, layer.out_proj)
    with torch.no_grad():
        for projection, weight in zip(projections, weights, strict=True):
            projection.weight.copy_(weight)
    return layer(x, x, x, attn_mask).detach()


fixed_multi_head = Check("fixed multi-head attention")


@fixed_multi_head.must(
    "the output has the shape of the input",
    hint="(batch, length, embed_dim) comes in and must come out",
)
def _(candidate):
    x, weights = _random_call()
    expect_shape(candidate(x, *weights, 3, causal_mask(5)), (2, 5, 12))


@fixed_multi_head.must(
    "with one head it is right, as it was",
    hint="something that worked before no longer does: what did you change besides the bug?",
)
def _(candidate):
    x, weights = _random_call()
    expect_close(
        candidate(x, *weights, 1, causal_mask(5)), _reference(x, weights, 1, causal_mask(5))
    )


@fixed_multi_head.must(
    "under a causal mask, a later token changes no earlier output",
    hint="the mask is right and the weights are right; follow one token's numbers after that",
)
def _(candidate):
    x, weights = _random_call()
    later = x.clone()
    later[:, 3] += 1
    before, after = (candidate(each, *weights, 3, causal_mask(5)) for each in (x, later))
    expect_close(after[:, :3], before[:, :3], "token 3 changed, and outputs before it too")
    expect(not torch.allclose(after[:, 3], before[:, 3]), "token 3 changed, but its output did not")


@fixed_multi_head.must(
    "it agrees with cu.MultiHeadAttention for 2 and 4 heads",
    hint="is each head scaled by its own size, and does each meet its own columns of W_O?",
)
def _(candidate):
    x, weights = _random_call()
    for num_heads in (2, 4):
        expect_close(
            candidate(x, *weights, num_heads, causal_mask(5)),
            _reference(x, weights, num_heads, causal_mask(5)),
            f"num_heads={num_heads}",
        )


# Ablation ---------------------------------------------------------------------------------------


def _layer():
    return MultiHeadAttention(12, 3), torch.randn(2, 5, 12)


def _merged(layer, x):
    q, k, v = (split_heads(p(x), 3) for p in (layer.query_proj, layer.key_proj, layer.value_proj))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


without_head = Check("a layer without one head")


@without_head.must(
    "the result is a layer that can be called", hint="return a module, with all its sizes unchanged"
)
def _(candidate):
    layer, x = _layer()
    expect_shape(candidate(layer, 1)(x, x, x), (2, 5, 12))


@without_head.must(
    "the layer that was handed in does not change",
    hint="assigning to weights changes the caller's layer; work on a copy (copy.deepcopy)",
)
def _(candidate):
    layer, x = _layer()
    before = layer(x, x, x).detach()
    candidate(layer, 1)
    expect_close(layer(x, x, x), before, "the layer that was handed in")


@without_head.must(
    "the output is that of the other heads, bias included",
    hint="where does head i enter out_proj: through which rows or columns of its weight?",
)
def _(candidate):
    layer, x = _layer()
    for head in range(3):
        heads = _merged(layer, x)
        heads[:, head] = 0
        expected = layer.out_proj(merge_heads(heads)).detach()
        expect_close(candidate(layer, head)(x, x, x), expected, f"head {head} at zero")
