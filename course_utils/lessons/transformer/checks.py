"""Checks of *The Transformer*: the decoder block's sublayers, a count on paper, a decoder block with two bugs."""

import torch
from torch import Tensor

from course_utils.attention import causal_mask, padding_mask
from course_utils.kit.check import Check, expect, expect_close, expect_shape
from course_utils.kit.on_paper import on_paper
from course_utils.layers import DecoderLayer
from course_utils.lessons.transformer.blocks import around_sublayers


def _decoder(*, norm_first: bool = True):
    """A block with random norms and biases, six target tokens, four of the source; two of these are padding once."""
    block = around_sublayers(DecoderLayer(12, 3, 24, dropout=0.0, norm_first=norm_first))
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    memory_mask = padding_mask(torch.tensor([2, 4]), 4)
    return block, torch.randn(2, 6, 12), torch.randn(2, 4, 12), memory_mask


def _silent(block):
    """Each sublayer gives zeros, whatever it reads."""
    lasts = block.self_attention.out_proj, block.cross_attention.out_proj, block.feed_forward[3]
    with torch.no_grad():
        for last in lasts:
            last.weight.zero_()
            last.bias.zero_()


# The three sublayers of a decoder block ---------------------------------------------------------

my_sublayers = Check("my_sublayers", forbids=["three_sublayers", "DecoderLayer.forward"])


@my_sublayers.must("it runs with masks and without")
def _(candidate):
    """Which line does the error name? A residual wants a function; and which mask has 6 rows and 6 columns?

    `around(x, lambda y: …)`: y is what the sublayer reads. Which mask has 6 rows and 6 columns, which 4 columns?
    """
    block, x, memory, mask = _decoder()
    candidate(block, x, memory, causal_mask(6), mask)
    candidate(block, x, memory)


@my_sublayers.must("the output has the shape of x, also where the memory has another length")
def _(candidate):
    """An attention gives a row for each query. Whose rows does the decoder pass on?

    In the cross-attention x asks, and the memory is keys and values.
    """
    block, x, memory, mask = _decoder()
    expect_shape(candidate(block, x, memory, causal_mask(6), mask), (2, 6, 12))


@my_sublayers.must("a later target token changes no earlier output")
def _(candidate):
    """Which of the three sublayers lets target tokens look at each other, and which mask belongs to it?"""
    block, x, memory, mask = _decoder()
    _no_later_token(lambda y: candidate(block, y, memory, causal_mask(6), mask), x)


def _no_later_token(call, x: Tensor) -> None:
    later = x.clone()
    later[:, 4] = torch.randn(12)
    before, after = call(x), call(later)
    expect_close(after[:, :4], before[:, :4], "token 4 was changed, outputs before it")
    expect(not torch.allclose(after[:, 4], before[:, 4]), "token 4 was changed, its output was not")


@my_sublayers.must("the source is read, and its padding is not")
def _(candidate):
    """Which mask says where the source has real tokens? Where do its keys come from?"""
    block, x, memory, mask = _decoder()
    _reads_no_padding(lambda memory: candidate(block, x, memory, causal_mask(6), mask), memory)


def _reads_no_padding(call, memory: Tensor) -> None:
    other = memory.clone()
    other[0, 2:] = torch.randn(2, 12)
    before, after = call(memory), call(other)
    expect_close(after, before, "the padding of the source was changed, the output")
    other[0, 1] = torch.randn(12)
    again = call(other)
    expect(not torch.allclose(again[0], before[0]), "a real token was changed, the output was not")


@my_sublayers.must("without masks, later target tokens and the padding of the source are seen")
def _(candidate):
    """The masks are arguments, and may be None. Does your function make one of its own?"""
    block, x, memory, _ = _decoder()
    later, other = x.clone(), memory.clone()
    later[:, 4], other[0, 3] = torch.randn(12), torch.randn(12)
    before = candidate(block, x, memory)
    after = candidate(block, later, memory)
    expect(not torch.allclose(after[:, :4], before[:, :4]), "no causal mask, and yet one works")
    after = candidate(block, x, other)
    expect(not torch.allclose(after[0], before[0]), "no mask of the memory, and yet one works")


@my_sublayers.must("if every sublayer gives zeros, x passes unchanged (norm before)")
def _(candidate):
    """The residuals add. Is each sublayer called by its own residual, as in `around(x, sublayer)`?"""
    block, x, memory, mask = _decoder()
    _silent(block)
    answer = candidate(block, x, memory, causal_mask(6), mask)
    expect_close(answer, x, "all sublayers give zeros, the output against x")


@my_sublayers.must("it agrees with PyTorch's order of sublayers, with either place of the norm")
def _(candidate):
    """A sublayer gets from its residual what it has to read, normalized or not. Does yours read that, or x itself?

    First what was written, then the source, then the network. Has each its own weights, and its own residual?
    """
    for norm_first in (True, False):
        block, x, memory, mask = _decoder(norm_first=norm_first)
        expected = block(x, memory, causal_mask(6), mask)
        answer = candidate(block, x, memory, causal_mask(6), mask)
        expect_close(answer, expected, f"norm_first={norm_first}, the output", atol=1e-4)


# Counting on paper ------------------------------------------------------------------------------

counted = on_paper(
    "counted", __name__, {
        "a": (904, "the parameters of one decoder block",
             "How many attentions does it have, and how many norms? An attention has 4 · (64 + 8) parameters.",
             "Two attentions of 288, one network of 280, three norms of 2 · 8."),
        "b": (0, "what two more heads cost", "Which of the matrices becomes larger?"),
        "c": (4862, "the parameters of the whole model",
             "Three blocks on each side, and what else? Look for a norm that belongs to no block.",
             "An encoder block has 600. Then 2 last norms, 10 and 14 rows of 8, and the output layer with biases."),
    },
)  # fmt: skip


# A decoder block with two bugs ------------------------------------------------------------------

fixed_block = Check("fixed_block", forbids=["DecoderLayer.forward"])


@fixed_block.must("the output has the shape of x")
def _(candidate):
    """Begin with her lines. Each has a sublayer, a norm and a sum: which of them are not as in `Residual`?

    Target and memory have different lengths. Rows of which of the two are passed on?
    """
    block, x, memory, mask = _decoder()
    expect_shape(candidate(block, x, memory, mask), (2, 6, 12))


def _no_later_token_in_mode(candidate, training: bool) -> None:
    block, x, memory, mask = _decoder()
    block.train(training)
    _no_later_token(lambda y: candidate(block, y, memory, mask), x)
    expect(block.training == training, "the call has switched the block's mode")


@fixed_block.must("in training mode a later token changes no earlier output")
def _(candidate):
    """This was right before. What happened to the causal mask?"""
    _no_later_token_in_mode(candidate, training=True)


@fixed_block.must("in eval mode a later token changes no earlier output")
def _(candidate):
    """There is no dropout, and yet the two modes differ. Which line asks for the mode?"""
    _no_later_token_in_mode(candidate, training=False)


@fixed_block.must("the padding of the source has no influence, the source has")
def _(candidate):
    """Queries, keys, values and mask of the cross-attention were right before. What did you change?"""
    block, x, memory, mask = _decoder()
    _reads_no_padding(lambda memory: candidate(block, x, memory, mask), memory)


@fixed_block.must("if every sublayer gives zeros, x passes unchanged")
def _(candidate):
    """Follow x past three sublayers that add nothing. What else is done to it on the way?

    With the norm before, the norm is for the sublayer only. To what is the sublayer's output added?
    """
    block, x, memory, mask = _decoder()
    _silent(block)
    answer = candidate(block, x, memory, mask)
    expect_close(answer, x, "all sublayers give zeros, the output against x")


@fixed_block.must("it agrees with DecoderLayer")
def _(candidate):
    """What does each sublayer read, and through which norm? To what is its output added?"""
    block, x, memory, mask = _decoder()
    expected = block(x, memory, causal_mask(6), mask)
    expect_close(candidate(block, x, memory, mask), expected, atol=1e-4)
