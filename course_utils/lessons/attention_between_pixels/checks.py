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
from course_utils.lessons.check import Check, Property, expect, expect_close, expect_shape

__all__ = [
    "fixed_pixel_heads",
    "half_precision_weights",
    "joined_qkv",
    "pixels_to_tokens",
    "step_back",
]

# Pixels as tokens -------------------------------------------------------------------------------


def _one_token_per_pixel(candidate):
    expect_shape(candidate(torch.randn(2, 3, 4, 5)), (2, 20, 3))


def _one_pixel_is_one_token(candidate):
    x = torch.randn(1, 4, 3, 5)
    changed = x.clone()
    changed[0, :, 1, 3] += 1.0
    moved = (candidate(changed) != candidate(x)).any(dim=-1)[0]
    expect(
        moved.nonzero().flatten().tolist() == [1 * 5 + 3],
        f"pixel (1, 3) of a 3 × 5 picture was changed; tokens {moved.nonzero().flatten().tolist()} moved",
    )


def _channels_in_order(candidate):
    x = torch.arange(24.0).view(1, 2, 3, 4)
    expect(
        candidate(x)[0, 6].tolist() == [6.0, 18.0],
        f"token 6 should hold channels 0 and 1 of pixel (1, 2): 6 and 18, not {candidate(x)[0, 6].tolist()}",
    )


def _any_picture(candidate):
    for shape in ((1, 1, 1, 1), (3, 2, 6, 2), (2, 5, 1, 7)):
        x = torch.randn(shape)
        expect_close(candidate(x), x.flatten(2).transpose(1, 2), f"shape {shape}")


pixels_to_tokens = Check(
    "pixels to tokens",
    [
        Property(
            "(batch, channels, height, width) becomes (batch, height · width, channels)",
            _one_token_per_pixel,
            "a token is a pixel; its embedding is the pixel's channels",
        ),
        Property(
            "changing one pixel changes one token, the one at row · width + column",
            _one_pixel_is_one_token,
            "view and reshape read numbers in memory order; which axis must move behind the pixels first?",
        ),
        Property(
            "a token holds the channels of its pixel, in order",
            _channels_in_order,
            "flatten the two axes of the picture only, then exchange two axes",
        ),
        Property(
            "it agrees for pictures of any shape",
            _any_picture,
            "is a size written into the code that should come from x?",
        ),
    ],
)

# One convolution for queries, keys and values ---------------------------------------------------


def _layer(candidate, channels=12, heads=3):
    attention = MultiHeadAttention(channels, heads)
    answer = candidate(attention)
    expect(
        isinstance(answer, torch.nn.Conv1d),
        f"an nn.Conv1d is expected, got {type(answer).__name__}",
    )
    return attention, answer


def _is_a_convolution_of_width_one(candidate):
    _, conv = _layer(candidate)
    expect_shape(conv.weight, (36, 12, 1))
    expect(conv.bias is not None, "it has no bias, and the three projections have one each")


def _gives_queries_keys_values(candidate):
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


def _biases_count(candidate):
    attention, conv = _layer(candidate)
    zero = torch.zeros(1, 12, 4)
    expected = torch.cat(
        [attention.query_proj.bias, attention.key_proj.bias, attention.value_proj.bias]
    )
    expect_close(conv(zero)[0, :, 0], expected, "what a pixel of zeros gives")


def _leaves_the_attention_alone(candidate):
    attention = MultiHeadAttention(8, 2)
    before = {name: p.detach().clone() for name, p in attention.named_parameters()}
    conv = candidate(attention)
    with torch.no_grad():
        conv.weight.add_(1.0)
    for name, parameter in attention.named_parameters():
        expect(
            torch.equal(parameter, before[name]), f"{name} moves when the convolution is trained"
        )


joined_qkv = Check(
    "one convolution for q, k, v",
    [
        Property(
            "a 1-D convolution of width 1, from C channels to 3C, with a bias",
            _is_a_convolution_of_width_one,
            "kernel_size=1; its weight has a third axis of size 1",
        ),
        Property(
            "a pixel of zeros gives the three biases",
            _biases_count,
            "copy weights and biases, in the order queries, keys, values",
        ),
        Property(
            "it gives queries, then keys, then values",
            _gives_queries_keys_values,
            "nn.Linear and nn.Conv1d both keep (out, in): join the three along the first axis",
        ),
        Property(
            "it has weights of its own",
            _leaves_the_attention_alone,
            "copy into the convolution's parameters; do not share them",
        ),
    ],
)

# Half precision ---------------------------------------------------------------------------------


def _in_half(candidate):
    q, k = torch.randn(2, 3, 16).half(), torch.randn(2, 5, 16).half()
    weights = candidate(q, k)
    expect_shape(weights, (2, 3, 5))
    expect(weights.dtype == torch.float16, f"dtype {weights.dtype}; stay in float16")


def _weights_of_small_scores(candidate):
    q, k = torch.randn(2, 3, 16).half(), torch.randn(2, 5, 16).half()
    expected = (q.float() @ k.float().mT / 4).softmax(dim=-1)
    expect_close(candidate(q, k), expected.half(), "d = 16", atol=3e-3, rtol=1e-2)


def _another_width(candidate):
    q, k = torch.randn(1, 4, 100).half(), torch.randn(1, 6, 100).half()
    expected = (q.float() @ k.float().mT / 10).softmax(dim=-1)
    expect_close(candidate(q, k), expected.half(), "d = 100", atol=5e-3, rtol=2e-2)


def _scores_above_65504(candidate):
    q = torch.full((1, 1, 64), 40.0).half()
    k = torch.stack([torch.full((64,), 40.0), torch.full((64,), 39.0)])[None].half()
    weights = candidate(q, k)
    expect(bool(weights.isfinite().all()), "q·k is 102,400: more than float16 can hold")
    expect_close(weights[0, 0], torch.tensor([1.0, 0.0]).half(), "the larger score wins", atol=1e-3)


def _long_queries_short_keys(candidate):
    q, k = torch.full((1, 1, 64), 3000.0).half(), torch.full((1, 2, 64), 0.001).half()
    k[0, 1] = 0.0
    expected = (q.float() @ k.float().mT / 8).softmax(dim=-1)
    expect_close(
        candidate(q, k), expected.half(), "q of 3,000 and k of 0.001", atol=1e-2, rtol=2e-2
    )


half_precision_weights = Check(
    "weights in half precision",
    [
        Property(
            "float16 goes in and float16 comes out, (batch, queries, keys)",
            _in_half,
            "no .float(): the point is to need none",
        ),
        Property(
            "for d = 16 they are softmax(q·k / √d)",
            _weights_of_small_scores,
            "both factors are scaled: what must each get so that the product gets 1/√d?",
        ),
        Property(
            "for d = 100 as well",
            _another_width,
            "take d from the last axis of the queries",
        ),
        Property(
            "scores whose unscaled product is above 65,504 are finite",
            _scores_above_65504,
            "scaling comes before the product, not after it",
        ),
        Property(
            "long queries with short keys are right, too",
            _long_queries_short_keys,
            "share the factor evenly: each side by the same power of d",
        ),
    ],
)

# A step back ------------------------------------------------------------------------------------


def _noisy(a):
    clean = torch.rand(2, 1, 4, 4) * 1.8 - 0.9
    noise = torch.randn(2, 1, 4, 4)
    return clean, noise, math.sqrt(a) * clean + math.sqrt(1 - a) * noise


def _ends_at_the_picture(candidate):
    clean, noise, x = _noisy(0.3)
    expect_close(candidate(x, noise, 0.3, 1.0), clean, "the step to ᾱ = 1", atol=1e-4)


def _stays(candidate):
    _, noise, x = _noisy(0.3)
    expect_close(candidate(x, noise, 0.3, 0.3), x, "the step from 0.3 to 0.3", atol=1e-4)


def _lands_on_the_level(candidate):
    clean, noise, x = _noisy(0.2)
    expected = math.sqrt(0.7) * clean + math.sqrt(0.3) * noise
    expect_close(candidate(x, noise, 0.2, 0.7), expected, "the step from 0.2 to 0.7", atol=1e-4)


def _two_steps_are_one(candidate):
    _, noise, x = _noisy(0.1)
    two = candidate(candidate(x, noise, 0.1, 0.5), noise, 0.5, 0.9)
    expect_close(two, candidate(x, noise, 0.1, 0.9), "0.1 → 0.5 → 0.9 against 0.1 → 0.9", atol=1e-4)


def _adds_no_noise(candidate):
    _, noise, x = _noisy(0.4)
    once, again = candidate(x, noise, 0.4, 0.6), candidate(x, noise, 0.4, 0.6)
    expect(torch.equal(once, again), "two calls differ: this sampler draws nothing")


step_back = Check(
    "a step back",
    [
        Property(
            "with the true noise, the step to ᾱ = 1 gives the clean picture",
            _ends_at_the_picture,
            "solve x = √a · clean + √(1 − a) · noise for clean",
        ),
        Property(
            "the step to the level one stands on changes nothing",
            _stays,
            "guess the clean picture, then add the same noise again, as much as the new level has",
        ),
        Property(
            "with the true noise it lands on the noised picture of the new level",
            _lands_on_the_level,
            "the new level is b: which shares has the picture there, and which the noise?",
        ),
        Property(
            "two small steps with the same noise are one large step",
            _two_steps_are_one,
            "does the second step start where the first ended?",
        ),
        Property("it draws no random numbers", _adds_no_noise, "this sampler adds no fresh noise"),
    ],
)

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


def _one_head(candidate):
    _compare(candidate, 8, 1, (3, 4), "one head")


def _several_heads(candidate):
    for heads in (2, 3, 6):
        _compare(candidate, 12, heads, (3, 4), f"{heads} heads")


def _keeps_the_shape(candidate):
    _, weight, bias = _random_block(12, 3)
    expect_shape(candidate(torch.randn(2, 12, 2, 5), weight, bias, 3), (2, 12, 2, 5))


def _pictures_stay_apart(candidate):
    _, weight, bias = _random_block(12, 3)
    x = torch.randn(2, 12, 3, 3)
    changed = x.clone()
    changed[1] += 1.0
    moved = (candidate(changed, weight, bias, 3) - candidate(x, weight, bias, 3)).abs()
    expect(moved[0].max().item() == 0, "changing the second picture changed the first")


def _weights_come_from_queries_and_keys(candidate):
    """Only values of one pixel are not zero: what is returned are the weights on that pixel."""
    channels, heads = 12, 3
    weight = torch.cat([torch.randn(24, 12), torch.eye(12)])[..., None]
    x = torch.randn(1, channels, 2, 3)
    q, k, v = F.conv1d(x.flatten(2), weight).view(1, 3, heads, 4, 6).transpose(-2, -1).unbind(1)
    expected = F.scaled_dot_product_attention(q, k, v).transpose(-2, -1).reshape(x.shape)
    expect_close(
        candidate(x, weight, torch.zeros(36), heads), expected, "values = pixels", atol=1e-4
    )


fixed_pixel_heads = Check(
    "heads among pixels",
    [
        Property(
            "pictures go in and pictures of the same shape come out",
            _keeps_the_shape,
            "(batch, channels, height, width)",
        ),
        Property(
            "a picture does not see the other pictures of the batch",
            _pictures_stay_apart,
            "which numbers belong to one picture?",
        ),
        Property(
            "with one head it is linear attention",
            _one_head,
            "something that was right has been broken",
        ),
        Property(
            "with values equal to the pixels it is the fused operator",
            _weights_come_from_queries_and_keys,
            "the first third of the channels are all queries, of all heads",
        ),
        Property(
            "with 2, 3 and 6 heads it is linear multi-head attention with the same weights",
            _several_heads,
            "print which channels land in the queries of head 1",
        ),
    ],
)
