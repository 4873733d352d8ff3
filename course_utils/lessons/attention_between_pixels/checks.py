"""Checks of *Attention between pixels*: pixels as tokens, one convolution for q, k, v, half precision, a step back."""

import math

import torch
import torch.nn.functional as F

from course_utils.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from course_utils.lessons.check import Check, expect, expect_close, expect_equal, expect_shape

# Pixels as tokens -------------------------------------------------------------------------------

pixels_to_tokens = Check("pixels to tokens")


@pixels_to_tokens.must(
    "(batch, channels, height, width) becomes (batch, height · width, channels)",
    hint="A token is a pixel. What is its embedding?",
)
def _(candidate):
    expect_shape(candidate(torch.randn(2, 3, 4, 5)), (2, 20, 3))


@pixels_to_tokens.must(
    "changing one pixel changes one token, the one at row · width + column",
    hint="A reshape reads numbers in memory order. Which axis must move behind the pixels first?",
)
def _(candidate):
    x = torch.randn(1, 4, 3, 5)
    changed = x.clone()
    changed[0, :, 1, 3] += 1.0
    moved = (candidate(changed) != candidate(x)).any(dim=-1)[0].nonzero().flatten().tolist()
    expect_equal(
        moved, [1 * 5 + 3], "pixel (1, 3) of a 3 × 5 picture was changed, tokens that moved"
    )


@pixels_to_tokens.must(
    "a token holds the channels of its pixel, in order",
    hint="Which two axes make up the pixels? What happens to the axis of the channels?",
)
def _(candidate):
    x = torch.arange(24.0).view(1, 2, 3, 4)
    expect_equal(candidate(x)[0, 6].tolist(), [6.0, 18.0], "token 6, the channels of pixel (1, 2)")


@pixels_to_tokens.must(
    "it agrees for pictures of any shape",
    hint="Is a size written into the code that should come from x?",
)
def _(candidate):
    for shape in ((1, 1, 1, 1), (3, 2, 6, 2), (2, 5, 1, 7)):
        x = torch.randn(shape)
        expect_close(candidate(x), x.flatten(2).transpose(1, 2), f"shape {shape}")


# One convolution for queries, keys and values ---------------------------------------------------

joined_qkv = Check("one convolution for q, k, v")


def _projections(attention):
    return attention.query_proj, attention.key_proj, attention.value_proj


def _layer(candidate):
    attention = MultiHeadAttention(12, 3)
    conv = candidate(attention)
    kind = type(conv).__name__
    expect(isinstance(conv, torch.nn.Conv1d), f"an nn.Conv1d is expected, got a {kind}")
    return attention, conv


@joined_qkv.must(
    "a 1-D convolution of width 1, from C channels to 3C, with a bias",
    hint="How large is the kernel? Which axes does the weight of an nn.Conv1d have?",
)
def _(candidate):
    _, conv = _layer(candidate)
    expect_shape(conv.weight, (36, 12, 1))
    expect(conv.bias is not None, "there is no bias; each of the three projections has one")


@joined_qkv.must(
    "a pixel of zeros gives the three biases",
    hint="Are the biases copied as well as the weights, and in which order?",
)
def _(candidate):
    attention, conv = _layer(candidate)
    expected = torch.cat([projection.bias for projection in _projections(attention)])
    expect_close(conv(torch.zeros(1, 12, 4))[0, :, 0], expected, "the output for a pixel of zeros")


@joined_qkv.must(
    "it gives queries, then keys, then values",
    hint="Both nn.Linear and nn.Conv1d keep (out, in). Along which axis are the three joined?",
)
def _(candidate):
    attention, conv = _layer(candidate)
    x = torch.randn(2, 7, 12)
    parts = conv(x.transpose(1, 2)).transpose(1, 2).chunk(3, dim=-1)
    names = ("queries", "keys", "values")
    for part, projection, name in zip(parts, _projections(attention), names, strict=True):
        expect_close(part, projection(x), name)


@joined_qkv.must(
    "it has weights of its own",
    hint="Does the convolution share memory with the attention's parameters?",
)
def _(candidate):
    attention, conv = _layer(candidate)
    before = {name: p.detach().clone() for name, p in attention.named_parameters()}
    with torch.no_grad():
        conv.weight.add_(1.0)
    for name, parameter in attention.named_parameters():
        same = torch.equal(parameter, before[name])
        expect(same, f"{name} changes when the convolution is trained")


# Half precision ---------------------------------------------------------------------------------

half_precision_weights = Check("weights in half precision")


def _half(*shape):
    return torch.randn(shape).half()


def _weights(candidate, q, k, what, **tolerance):
    expected = (q.float() @ k.float().mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
    expect_close(candidate(q, k), expected.half(), what, **tolerance)


@half_precision_weights.must(
    "float16 goes in and float16 comes out, (batch, queries, keys)",
    hint="Does a line go to float32? The task is to do without it.",
)
def _(candidate):
    weights = expect_shape(candidate(_half(2, 3, 16), _half(2, 5, 16)), (2, 3, 5))
    expect_equal(weights.dtype, torch.float16, "dtype")


@half_precision_weights.must(
    "for d = 16 they are softmax(q·k / √d)",
    hint="Both factors are scaled. What must each one get so that the product gets 1/√d?",
)
def _(candidate):
    _weights(candidate, _half(2, 3, 16), _half(2, 5, 16), "d = 16", atol=3e-3, rtol=1e-2)


@half_precision_weights.must("for d = 100 as well", hint="Where does your d come from?")
def _(candidate):
    _weights(candidate, _half(1, 4, 100), _half(1, 6, 100), "d = 100", atol=5e-3, rtol=2e-2)


@half_precision_weights.must(
    "scores whose unscaled product is above 65,504 are finite",
    hint="What do you do first: scale, or multiply?",
)
def _(candidate):
    q = torch.full((1, 1, 64), 40.0).half()
    k = torch.stack([torch.full((64,), 40.0), torch.full((64,), 39.0)])[None].half()
    weights = expect_shape(candidate(q, k), (1, 1, 2))
    expect(bool(weights.isfinite().all()), "q·k is 102,400, more than float16 can hold")
    expect_close(weights[0, 0], torch.tensor([1.0, 0.0]).half(), "the larger score wins", atol=1e-3)


@half_precision_weights.must(
    "long queries with short keys are right, too",
    hint="Which share of the factor does each side get?",
)
def _(candidate):
    q, k = torch.full((1, 1, 64), 3000.0).half(), torch.full((1, 2, 64), 0.001).half()
    k[0, 1] = 0.0
    _weights(candidate, q, k, "q of 3,000 and k of 0.001", atol=1e-2, rtol=2e-2)


# A step back ------------------------------------------------------------------------------------

step_back = Check("a step back")


def _noised(*levels):
    """The noise, and one clean picture with that noise at each level."""
    clean, noise = torch.rand(2, 1, 4, 4) * 1.8 - 0.9, torch.randn(2, 1, 4, 4)
    return noise, *(math.sqrt(a) * clean + math.sqrt(1 - a) * noise for a in levels)


@step_back.must(
    "with the true noise, the step to ᾱ = 1 gives the clean picture",
    hint="The picture x is √a · clean + √(1 − a) · noise. What is clean then?",
)
def _(candidate):
    noise, x, clean = _noised(0.3, 1.0)
    expect_close(candidate(x, noise, 0.3, 1.0), clean, "the step to ᾱ = 1", atol=1e-4)


@step_back.must(
    "the step from a level to the same level changes nothing",
    hint="How much noise do you add to the guess of the clean picture, and which noise is it?",
)
def _(candidate):
    noise, x = _noised(0.3)
    expect_close(candidate(x, noise, 0.3, 0.3), x, "the step from 0.3 to 0.3", atol=1e-4)


@step_back.must(
    "with the true noise it gives the noised picture of the new level",
    hint="The new level is b. Which share does the picture have there, and which the noise?",
)
def _(candidate):
    noise, x, expected = _noised(0.2, 0.7)
    expect_close(candidate(x, noise, 0.2, 0.7), expected, "the step from 0.2 to 0.7", atol=1e-4)


@step_back.must(
    "two small steps with the same noise are one large step",
    hint="Does the second step start where the first one ended?",
)
def _(candidate):
    noise, x = _noised(0.1)
    two = candidate(candidate(x, noise, 0.1, 0.5), noise, 0.5, 0.9)
    expect_close(two, candidate(x, noise, 0.1, 0.9), "0.1 → 0.5 → 0.9 against 0.1 → 0.9", atol=1e-4)


@step_back.must("it draws no random numbers", hint="Which line adds fresh noise?")
def _(candidate):
    noise, x = _noised(0.4)
    once, again = candidate(x, noise, 0.4, 0.6), candidate(x, noise, 0.4, 0.6)
    expect(torch.equal(once, again), "two calls with the same arguments differ")


# Heads in order: find the bug -------------------------------------------------------------------

fixed_pixel_heads = Check("heads among pixels")


def _block(heads=3, channels=12):
    """An attention and its three projections as one weight and one bias."""
    attention = MultiHeadAttention(channels, heads).requires_grad_(False)
    weight = torch.cat([p.weight for p in _projections(attention)])[..., None]
    return attention, weight, torch.cat([p.bias for p in _projections(attention)])


def _agrees(candidate, heads, channels, what):
    """Joined heads of linear attention, before the output projection, as a picture."""
    attention, weight, bias = _block(heads, channels)
    x = torch.randn(2, channels, 3, 4)
    tokens = x.flatten(2).transpose(1, 2)
    q, k, v = (split_heads(p(tokens), heads) for p in _projections(attention))
    joined = merge_heads(scaled_dot_product_attention(q, k, v))
    expected = joined.transpose(1, 2).reshape(x.shape)
    expect_close(candidate(x, weight, bias, heads), expected, what, atol=1e-4, rtol=1e-3)


@fixed_pixel_heads.must(
    "pictures go in and pictures of the same shape come out",
    hint="What is the shape of your result: (batch, channels, height, width)?",
)
def _(candidate):
    _, weight, bias = _block()
    expect_shape(candidate(torch.randn(2, 12, 2, 5), weight, bias, 3), (2, 12, 2, 5))


@fixed_pixel_heads.must(
    "a picture does not see the other pictures of the batch",
    hint="Which numbers belong to one picture?",
)
def _(candidate):
    _, weight, bias = _block()
    x = torch.randn(2, 12, 3, 3)
    changed = x.clone()
    changed[1] += 1.0
    moved = (candidate(changed, weight, bias, 3) - candidate(x, weight, bias, 3)).abs()
    expect(moved[0].max().item() == 0, "changing the second picture changed the first")


@fixed_pixel_heads.must(
    "with one head it is attention over all pixels",
    hint="This was right before. What did you change besides the bug?",
)
def _(candidate):
    _agrees(candidate, 1, 8, "one head")


@fixed_pixel_heads.must(
    "with values equal to the pixels it is the fused operator",
    hint="Which channels are the queries of all heads?",
)
def _(candidate):
    weight, x = torch.cat([torch.randn(24, 12), torch.eye(12)])[..., None], torch.randn(1, 12, 2, 3)
    q, k, v = F.conv1d(x.flatten(2), weight).view(1, 3, 3, 4, 6).transpose(-2, -1).unbind(1)
    expected = F.scaled_dot_product_attention(q, k, v).transpose(-2, -1).reshape(x.shape)
    found = candidate(x, weight, torch.zeros(36), 3)
    expect_close(found, expected, "values = pixels", atol=1e-4)


@fixed_pixel_heads.must(
    "with 2, 3 and 6 heads it is multi-head attention with the same weights",
    hint="Print which channels end up in the queries of head 1. Are they the right ones?",
)
def _(candidate):
    for heads in (2, 3, 6):
        _agrees(candidate, heads, 12, f"{heads} heads")
