"""Checks: pixels as tokens, one convolution for q, k, v, half precision, a step back, heads in order."""

import math

import torch
import torch.nn.functional as F

from course_utils.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from course_utils.lessons.check import Check, expect, expect_close, expect_shape

# Pixels as tokens -------------------------------------------------------------------------------


pixels_to_tokens = Check("pixels to tokens")


@pixels_to_tokens.must(
    "(batch, channels, height, width) becomes (batch, height · width, channels)",
    hint="a token is a pixel; its embedding is the pixel's channels",
)
def _(candidate):
    expect_shape(candidate(torch.randn(2, 3, 4, 5)), (2, 20, 3))


@pixels_to_tokens.must(
    "changing one pixel changes one token, the one at row · width + column",
    hint="view and reshape read numbers in memory order; which axis must move behind the pixels first?",
)
def _(candidate):
    x = torch.randn(1, 4, 3, 5)
    changed = x.clone()
    changed[0, :, 1, 3] += 1.0
    moved = (candidate(changed) != candidate(x)).any(dim=-1)[0]
    expect(
        moved.nonzero().flatten().tolist() == [1 * 5 + 3],
        f"pixel (1, 3) of a 3 × 5 picture was changed; tokens {moved.nonzero().flatten().tolist()} moved",
    )


@pixels_to_tokens.must(
    "a token holds the channels of its pixel, in order",
    hint="flatten the two axes of the picture only, then exchange two axes",
)
def _(candidate):
    x = torch.arange(24.0).view(1, 2, 3, 4)
    expect(
        candidate(x)[0, 6].tolist() == [6.0, 18.0],
        f"token 6 should hold channels 0 and 1 of pixel (1, 2): 6 and 18, not {candidate(x)[0, 6].tolist()}",
    )


@pixels_to_tokens.must(
    "it agrees for pictures of any shape",
    hint="is a size written into the code that should come from x?",
)
def _(candidate):
    for shape in ((1, 1, 1, 1), (3, 2, 6, 2), (2, 5, 1, 7)):
        x = torch.randn(shape)
        expect_close(candidate(x), x.flatten(2).transpose(1, 2), f"shape {shape}")


# One convolution for queries, keys and values ---------------------------------------------------


def _layer(candidate, channels=12, heads=3):
    attention = MultiHeadAttention(channels, heads)
    answer = candidate(attention)
    expect(
        isinstance(answer, torch.nn.Conv1d),
        f"an nn.Conv1d is expected, got {type(answer).__name__}",
    )
    return attention, answer


joined_qkv = Check("one convolution for q, k, v")


@joined_qkv.must(
    "a 1-D convolution of width 1, from C channels to 3C, with a bias",
    hint="kernel_size=1; its weight has a third axis of size 1",
)
def _(candidate):
    _, conv = _layer(candidate)
    expect_shape(conv.weight, (36, 12, 1))
    expect(conv.bias is not None, "it has no bias, and the three projections have one each")


@joined_qkv.must(
    "a pixel of zeros gives the three biases",
    hint="copy weights and biases, in the order queries, keys, values",
)
def _(candidate):
    attention, conv = _layer(candidate)
    zero = torch.zeros(1, 12, 4)
    expected = torch.cat(
        [attention.query_proj.bias, attention.key_proj.bias, attention.value_proj.bias]
    )
    expect_close(conv(zero)[0, :, 0], expected, "what a pixel of zeros gives")


@joined_qkv.must(
    "it gives queries, then keys, then values",
    hint="nn.Linear and nn.Conv1d both keep (out, in): join the three along the first axis",
)
def _(candidate):
    attention, conv = _layer(candidate)
    x = torch.randn(2, 7, 12)
    expected = torch.cat(
        [attention.query_proj(x), attention.key_proj(x), attention.value_proj(x)], dim=-1
    )
    actual = conv(x.transpose(1, 2)).transpose(1, 2)
    for role, one, other in zip(
        ("queries", "keys", "values"), actual.chunk(3, -1), expected.chunk(3, -1), strict=True
    ):
        expect_close(one, other, role)


@joined_qkv.must(
    "it has weights of its own", hint="copy into the convolution's parameters; do not share them"
)
def _(candidate):
    attention = MultiHeadAttention(8, 2)
    before = {name: p.detach().clone() for name, p in attention.named_parameters()}
    conv = candidate(attention)
    with torch.no_grad():
        conv.weight.add_(1.0)
    for name, parameter in attention.named_parameters():
        expect(
            torch.equal(parameter, before[name]), f"{name} moves when the convolution is trained"
        )


# Half precision ---------------------------------------------------------------------------------


half_precision_weights = Check("weights in half precision")


@half_precision_weights.must(
    "float16 goes in and float16 comes out, (batch, queries, keys)",
    hint="no .float(): the point is to need none",
)
def _(candidate):
    q, k = torch.randn(2, 3, 16).half(), torch.randn(2, 5, 16).half()
    weights = candidate(q, k)
    expect_shape(weights, (2, 3, 5))
    expect(weights.dtype == torch.float16, f"dtype {weights.dtype}; stay in float16")


@half_precision_weights.must(
    "for d = 16 they are softmax(q·k / √d)",
    hint="both factors are scaled: what must each get so that the product gets 1/√d?",
)
def _(candidate):
    q, k = torch.randn(2, 3, 16).half(), torch.randn(2, 5, 16).half()
    expected = (q.float() @ k.float().mT / 4).softmax(dim=-1)
    expect_close(candidate(q, k), expected.half(), "d = 16", atol=3e-3, rtol=1e-2)


@half_precision_weights.must("for d = 100 as well", hint="take d from the last axis of the queries")
def _(candidate):
    q, k = torch.randn(1, 4, 100).half(), torch.randn(1, 6, 100).half()
    expected = (q.float() @ k.float().mT / 10).softmax(dim=-1)
    expect_close(candidate(q, k), expected.half(), "d = 100", atol=5e-3, rtol=2e-2)


@half_precision_weights.must(
    "scores whose unscaled product is above 65,504 are finite",
    hint="scaling comes before the product, not after it",
)
def _(candidate):
    q = torch.full((1, 1, 64), 40.0).half()
    k = torch.stack([torch.full((64,), 40.0), torch.full((64,), 39.0)])[None].half()
    weights = candidate(q, k)
    expect(bool(weights.isfinite().all()), "q·k is 102,400: more than float16 can hold")
    expect_close(weights[0, 0], torch.tensor([1.0, 0.0]).half(), "the larger score wins", atol=1e-3)


@half_precision_weights.must(
    "long queries with short keys are right, too",
    hint="share the factor evenly: each side by the same power of d",
)
def _(candidate):
    q, k = torch.full((1, 1, 64), 3000.0).half(), torch.full((1, 2, 64), 0.001).half()
    k[0, 1] = 0.0
    expected = (q.float() @ k.float().mT / 8).softmax(dim=-1)
    expect_close(
        candidate(q, k), expected.half(), "q of 3,000 and k of 0.001", atol=1e-2, rtol=2e-2
    )


# A step back ------------------------------------------------------------------------------------


def _noisy(a):
    clean = torch.rand(2, 1, 4, 4) * 1.8 - 0.9
    noise = torch.randn(2, 1, 4, 4)
    return clean, noise, math.sqrt(a) * clean + math.sqrt(1 - a) * noise


step_back = Check("a step back")


@step_back.must(
    "with the true noise, the step to ᾱ = 1 gives the clean picture",
    hint="solve x = √a · clean + √(1 − a) · noise for clean",
)
def _(candidate):
    clean, noise, x = _noisy(0.3)
    expect_close(candidate(x, noise, 0.3, 1.0), clean, "the step to ᾱ = 1", atol=1e-4)


@step_back.must(
    "the step to the level one stands on changes nothing",
    hint="guess the clean picture, then add the same noise again, as much as the new level has",
)
def _(candidate):
    _, noise, x = _noisy(0.3)
    expect_close(candidate(x, noise, 0.3, 0.3), x, "the step from 0.3 to 0.3", atol=1e-4)


@step_back.must(
    "with the true noise it lands on the noised picture of the new level",
    hint="the new level is b: which shares has the picture there, and which the noise?",
)
def _(candidate):
    clean, noise, x = _noisy(0.2)
    expected = math.sqrt(0.7) * clean + math.sqrt(0.3) * noise
    expect_close(candidate(x, noise, 0.2, 0.7), expected, "the step from 0.2 to 0.7", atol=1e-4)


@step_back.must(
    "two small steps with the same noise are one large step",
    hint="does the second step start where the first ended?",
)
def _(candidate):
    _, noise, x = _noisy(0.1)
    two = candidate(candidate(x, noise, 0.1, 0.5), noise, 0.5, 0.9)
    expect_close(two, candidate(x, noise, 0.1, 0.9), "0.1 → 0.5 → 0.9 against 0.1 → 0.9", atol=1e-4)


@step_back.must("it draws no random numbers", hint="this sampler adds no fresh noise")
def _(candidate):
    _, noise, x = _noisy(0.4)
    once, again = candidate(x, noise, 0.4, 0.6), candidate(x, noise, 0.4, 0.6)
    expect(torch.equal(once, again), "two calls differ: this sampler draws nothing")


# Heads in order ---------------------------------------------------------------------------------


def _random_block(channels=12, heads=3):
    attention = MultiHeadAttention(channels, heads)
    projections = (attention.query_proj, attention.key_proj, attention.value_proj)
    weight = torch.cat([p.weight for p in projections])[..., None].detach()
    bias = torch.cat([p.bias for p in projections]).detach()
    return attention, weight, bias


def _expected(attention, x):
    """Joined heads of linear attention, before the output projection, as a picture."""
    tokens = x.flatten(2).transpose(1, 2)
    projections = (attention.query_proj, attention.key_proj, attention.value_proj)
    q, k, v = (split_heads(p(tokens), attention.num_heads) for p in projections)
    joined = merge_heads(scaled_dot_product_attention(q, k, v))
    return joined.transpose(1, 2).reshape(x.shape)


def _compare(candidate, channels, heads, shape, reason):
    attention, weight, bias = _random_block(channels, heads)
    x = torch.randn(2, channels, *shape)
    with torch.no_grad():
        expect_close(
            candidate(x, weight, bias, heads), _expected(attention, x), reason, atol=1e-4, rtol=1e-3
        )


fixed_pixel_heads = Check("heads among pixels")


@fixed_pixel_heads.must(
    "pictures go in and pictures of the same shape come out",
    hint="(batch, channels, height, width)",
)
def _(candidate):
    _, weight, bias = _random_block(12, 3)
    expect_shape(candidate(torch.randn(2, 12, 2, 5), weight, bias, 3), (2, 12, 2, 5))


@fixed_pixel_heads.must(
    "a picture does not see the other pictures of the batch",
    hint="which numbers belong to one picture?",
)
def _(candidate):
    _, weight, bias = _random_block(12, 3)
    x = torch.randn(2, 12, 3, 3)
    changed = x.clone()
    changed[1] += 1.0
    moved = (candidate(changed, weight, bias, 3) - candidate(x, weight, bias, 3)).abs()
    expect(moved[0].max().item() == 0, "changing the second picture changed the first")


@fixed_pixel_heads.must(
    "with one head it is linear attention", hint="something that was right has been broken"
)
def _(candidate):
    _compare(candidate, 8, 1, (3, 4), "one head")


@fixed_pixel_heads.must(
    "with values equal to the pixels it is the fused operator",
    hint="the first third of the channels are all queries, of all heads",
)
def _(candidate):
    """Only values of one pixel are not zero: what is returned are the weights on that pixel."""
    channels, heads = 12, 3
    weight = torch.cat([torch.randn(24, 12), torch.eye(12)])[..., None]
    x = torch.randn(1, channels, 2, 3)
    q, k, v = F.conv1d(x.flatten(2), weight).view(1, 3, heads, 4, 6).transpose(-2, -1).unbind(1)
    expected = F.scaled_dot_product_attention(q, k, v).transpose(-2, -1).reshape(x.shape)
    expect_close(
        candidate(x, weight, torch.zeros(36), heads), expected, "values = pixels", atol=1e-4
    )


@fixed_pixel_heads.must(
    "with 2, 3 and 6 heads it is linear multi-head attention with the same weights",
    hint="print which channels land in the queries of head 1",
)
def _(candidate):
    for heads in (2, 3, 6):
        _compare(candidate, 12, heads, (3, 4), f"{heads} heads")
