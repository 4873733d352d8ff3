"""Checks of *Multi-head attention*: splitting into heads, what each head adds, ablation, a broken merge."""

import math

import torch
from torch.nn.functional import scaled_dot_product_attention

from course_utils.attention import MultiHeadAttention, causal_mask, merge_heads, split_heads
from course_utils.lessons.check import Check, expect, expect_close, expect_equal, expect_shape

# Splitting --------------------------------------------------------------------------------------

split_into_heads = Check("split into heads")


@split_into_heads.must(
    "(batch, length, embed_dim) becomes (batch, heads, length, head_dim)",
    hint="What is head_dim, and where does the axis of the heads stand?",
)
def _(candidate):
    expect_shape(candidate(torch.randn(2, 5, 12), 3), (2, 3, 5, 4))


@split_into_heads.must(
    "changing one token changes that token only, in every head",
    hint="A reshape reads numbers in memory order. Which axis may be cut, and which axes are exchanged after that?",
)
def _(candidate):
    x = torch.randn(1, 4, 6)
    changed = x.clone()
    changed[:, 2] += 1
    moved = (candidate(changed, 3) != candidate(x, 3)).any(dim=-1)  # (1, heads, length)
    which = moved[0].any(dim=0).nonzero().flatten().tolist()
    expect_equal(which, [2], "token 2 was changed, tokens that changed in the result")


@split_into_heads.must(
    "head i gets the i-th block of neighboring columns",
    hint="Which of the two new axes runs faster: the head, or the column within a head?",
)
def _(candidate):
    x = torch.arange(24.0).view(1, 3, 8)
    split = expect_shape(candidate(x, 2), (1, 2, 3, 4))
    for head, block in enumerate(x.chunk(2, dim=-1)):
        expect_close(split[:, head], block, f"head {head} of columns 0 to 7")


@split_into_heads.must(
    "it agrees for 1, 2, 4 and 12 heads and three sequences",
    hint="Is a size written into the code that should come from the arguments?",
)
def _(candidate):
    x = torch.randn(3, 4, 12)
    for num_heads in (1, 2, 4, 12):
        expect_close(candidate(x, num_heads), split_heads(x, num_heads), f"num_heads={num_heads}")


# What each head adds ----------------------------------------------------------------------------

head_contributions = Check("what each head adds")


@head_contributions.must(
    "each head gives a vector of embed_dim numbers per query",
    hint="Every head writes to all output dimensions. Which axis of the result counts the heads?",
)
def _(candidate):
    expect_shape(candidate(torch.randn(2, 3, 5, 4), torch.randn(12, 12)), (2, 3, 5, 12))


@head_contributions.must(
    "summed over the heads, they are W_O times the joined heads",
    hint="A linear layer computes x Wᵀ. Which block of the weight meets head i, rows or columns?",
)
def _(candidate):
    heads, weight = torch.randn(2, 3, 5, 4), torch.randn(12, 12)
    answer = expect_shape(candidate(heads, weight), (2, 3, 5, 12))
    expect_close(answer.sum(dim=1), merge_heads(heads) @ weight.T, "sum over the heads", atol=1e-4)


@head_contributions.must(
    "a head's contribution is the output with all other heads at zero",
    hint="The sum is right, but the shares are not. Does head i meet its own block?",
)
def _(candidate):
    heads, weight = torch.randn(1, 2, 3, 4), torch.randn(8, 8)
    only = heads.clone()
    only[:, 0] = 0
    expected = merge_heads(only) @ weight.T
    expect_close(candidate(heads, weight)[:, 1], expected, "head 1 alone", atol=1e-4)


@head_contributions.must(
    "the output may have another size than the joined heads",
    hint="The weight has one axis for the heads' columns and one for the outputs. Which one do you cut?",
)
def _(candidate):
    heads, weight = torch.randn(2, 3, 5, 4), torch.randn(7, 12)
    answer = expect_shape(candidate(heads, weight), (2, 3, 5, 7))
    expect_close(answer.sum(dim=1), merge_heads(heads) @ weight.T, "seven outputs", atol=1e-4)


# A broken merge: find the bug -------------------------------------------------------------------

fixed_multi_head = Check("fixed multi-head attention")


def _call():
    return torch.randn(2, 5, 12), [torch.randn(12, 12) / math.sqrt(12) for _ in range(4)]


def _reference(x, weights, num_heads):
    layer = MultiHeadAttention(12, num_heads, bias=False)
    projections = (layer.query_proj, layer.key_proj, layer.value_proj, layer.out_proj)
    with torch.no_grad():
        for projection, weight in zip(projections, weights, strict=True):
            projection.weight.copy_(weight)
        return layer(x, x, x, causal_mask(5))


@fixed_multi_head.must(
    "the output has the shape of the input",
    hint="(batch, length, embed_dim) comes in. In which line does the shape become another one?",
)
def _(candidate):
    x, weights = _call()
    expect_shape(candidate(x, *weights, 3, causal_mask(5)), (2, 5, 12))


@fixed_multi_head.must(
    "with one head it is right, as it was",
    hint="This worked before. What did you change besides the bug?",
)
def _(candidate):
    x, weights = _call()
    expect_close(candidate(x, *weights, 1, causal_mask(5)), _reference(x, weights, 1))


@fixed_multi_head.must(
    "under a causal mask, a later token changes no earlier output",
    hint="The mask and the weights are right. Where do the numbers of one token go after that?",
)
def _(candidate):
    x, weights = _call()
    later = x.clone()
    later[:, 3] += 1
    before, after = (candidate(each, *weights, 3, causal_mask(5)) for each in (x, later))
    expect_close(after[:, :3], before[:, :3], "token 3 was changed, outputs before it")
    expect(not torch.allclose(after[:, 3], before[:, 3]), "token 3 was changed, its output was not")


@fixed_multi_head.must(
    "it agrees with cu.MultiHeadAttention for 2 and 4 heads",
    hint="Which size scales the scores of a head? Which columns of W_O does each head meet?",
)
def _(candidate):
    x, weights = _call()
    for heads in (2, 4):
        actual = candidate(x, *weights, heads, causal_mask(5))
        expect_close(actual, _reference(x, weights, heads), f"num_heads={heads}")


# Ablation ---------------------------------------------------------------------------------------

without_head = Check("a layer without one head")


def _layer():
    return MultiHeadAttention(12, 3), torch.randn(2, 5, 12)


@without_head.must(
    "the result is a layer that can be called",
    hint="What type does your function return? Are all sizes of the layer the same as before?",
)
def _(candidate):
    layer, x = _layer()
    expect_shape(candidate(layer, 1)(x, x, x), (2, 5, 12))


@without_head.must(
    "the caller's layer does not change",
    hint="Whose weights does your assignment change: the caller's layer, or a copy of it?",
)
def _(candidate):
    layer, x = _layer()
    before = layer(x, x, x).detach()
    candidate(layer, 1)
    expect_close(layer(x, x, x), before, "the caller's layer before and after")


@without_head.must(
    "the output is that of the other heads, bias included",
    hint="Where does head i enter out_proj: through which rows or columns of its weight?",
)
def _(candidate):
    layer, x = _layer()
    q, k, v = (split_heads(p(x), 3) for p in (layer.query_proj, layer.key_proj, layer.value_proj))
    for head in range(3):
        heads = scaled_dot_product_attention(q, k, v)
        heads[:, head] = 0
        expected = layer.out_proj(merge_heads(heads)).detach()
        expect_close(candidate(layer, head)(x, x, x), expected, f"head {head} at zero")
