"""Checks of *The Transformer*: the decoder block's sublayers, a count on paper, a decoder block with two bugs."""

from contextlib import suppress
from itertools import permutations

import torch
from torch import Tensor

from course_utils.kit.check import Check
from course_utils.kit.expect import expect, expect_close, expect_shape, unchanged
from course_utils.kit.on_paper import on_paper
from course_utils.layers import DecoderLayer
from course_utils.lessons.transformer.blocks import around_sublayers
from course_utils.masks import causal_mask, padding_mask


def _decoder_and_inputs(*, norm_first: bool = True):
    """A block with random norms and biases, six target tokens, four of the source; two of these are padding once."""
    block = around_sublayers(DecoderLayer(12, 3, 24, dropout=0.0, norm_first=norm_first))
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    memory_mask = padding_mask(torch.tensor([2, 4]), 4)
    return block, torch.randn(2, 6, 12), torch.randn(2, 4, 12), memory_mask


def _silence(block):
    """Make each sublayer give zeros."""
    lasts = block.self_attention.out_proj, block.cross_attention.out_proj, block.feed_forward[3]
    with torch.no_grad():
        for last in lasts:
            last.weight.zero_()
            last.bias.zero_()


# The three sublayers of a decoder block ---------------------------------------------------------

my_sublayers = Check(forbids=["three_sublayers", "DecoderLayer.forward"])


@my_sublayers.must("runs with masks and without")
def runs_with_masks_and_without(candidate):
    """Which line does the error name? A residual wants x and then a *function*. In a cross-attention, who asks and who
    answers? Its queries come from y, and its keys and values both from the memory.

    A function for a residual has one argument: `def look_back(y): return block.self_attention(y, y, y, attn_mask)`.
    """
    block, x, memory, mask = _decoder_and_inputs()
    try:
        candidate(block, x.clone(), memory.clone(), causal_mask(6), mask)
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        if "not callable" in str(error):
            error.hint = "Which line does the error name? A residual wants x and then a *function*, not what it gives."
            raise
        for masks in ((mask, causal_mask(6)), (None, mask)):  # exchanged; attn_mask for both
            with suppress(Exception):
                candidate(block, x.clone(), memory.clone(), *masks)
                error.hint = (
                    "Which mask has the memory's length? `attn_mask` is (n, n), for x that looks at itself, and "
                    "`memory_mask` has a place for each token of the memory."
                )
        raise
    candidate(block, x.clone(), memory.clone())


@my_sublayers.must("gives an output of the shape of x, even if the memory has another length")
def gives_output_of_shape_of_x_for_memory_of_any_length(candidate):
    """Whose rows does the decoder pass on? An attention gives one row for each query, so look at your queries.

    In the cross-attention x asks, and the memory gives keys and values.
    """
    block, x, memory, mask = _decoder_and_inputs()
    answer = candidate(block, x.clone(), memory.clone(), causal_mask(6), mask)
    expect_shape(answer, (2, 6, 12))


@my_sublayers.must("keeps earlier outputs as they are when a later target token changes")
def hides_later_target_tokens(candidate):
    """Which sublayer lets target tokens look at each other? That is where `attn_mask` belongs."""
    block, x, memory, mask = _decoder_and_inputs()
    _expect_no_later_token(
        lambda y: candidate(block, y.clone(), memory.clone(), causal_mask(6), mask), x
    )


def _expect_no_later_token(call, x: Tensor) -> None:
    later = x.clone()
    later[:, 4] = torch.randn(12)
    before, after = call(x), call(later)
    expect_close(after[:, :4], before[:, :4], "token 4 was changed, outputs before it")
    expect(not torch.allclose(after[:, 4], before[:, 4]), "token 4 was changed, its output was not")


@my_sublayers.must("lets a target token hear the earlier ones")
def lets_target_token_hear_earlier_ones(candidate):
    """What does each residual get as its x? It should be what the residual before it has returned.

    If a line is still `y = around_cross(x, …)`, the work of the line above is lost.
    """
    block, x, memory, mask = _decoder_and_inputs()
    earlier = x.clone()
    earlier[:, 1] = torch.randn(12)
    before, after = (
        candidate(block, each.clone(), memory.clone(), causal_mask(6), mask)
        for each in (x, earlier)
    )
    heard = not torch.allclose(after[:, 4], before[:, 4])
    expect(heard, "token 1 was changed, and the output of token 4 stayed as it was")


@my_sublayers.must("reads the source, but not its padding")
def reads_source_but_not_its_padding(candidate):
    """Which sublayer looks at the source? It needs `memory` as keys and values, and `memory_mask`."""
    block, x, memory, mask = _decoder_and_inputs()
    _expect_no_padding(
        lambda other: candidate(block, x.clone(), other.clone(), causal_mask(6), mask), memory
    )


def _expect_no_padding(call, memory: Tensor) -> None:
    other = memory.clone()
    other[0, 2:] = torch.randn(2, 12)
    before, after = call(memory), call(other)
    expect_close(after, before, "the padding of the source was changed, the output")
    other[0, 1] = torch.randn(12)
    again = call(other)
    expect(not torch.allclose(again[0], before[0]), "a real token was changed, the output was not")


@my_sublayers.must("sees later target tokens and padding if it gets no masks")
def sees_later_target_tokens_and_padding_if_it_gets_no_masks(candidate):
    """Does your function make a mask of its own? Hand on the two that it gets, which may be None."""
    block, x, memory, _ = _decoder_and_inputs()
    later, other = x.clone(), memory.clone()
    later[:, 4], other[0, 3] = torch.randn(12), torch.randn(12)
    before = candidate(block, x.clone(), memory.clone())
    after = candidate(block, later, memory.clone())
    expect(not torch.allclose(after[:, :4], before[:, :4]), "no causal mask, and yet one works")
    after = candidate(block, x.clone(), other)
    expect(not torch.allclose(after[0], before[0]), "no mask of the memory, and yet one works")


@my_sublayers.must("lets x pass unchanged if every sublayer gives zeros (norm before)")
def lets_x_pass_unchanged_if_every_sublayer_gives_zeros(candidate):
    """Who adds x to what a sublayer gives? Call each sublayer through its residual, as in `around(x, sublayer)`."""
    block, x, memory, mask = _decoder_and_inputs()
    _silence(block)
    answer = candidate(block, x.clone(), memory.clone(), causal_mask(6), mask)
    expect_close(answer, x, "all sublayers give zeros, the output against x")


@my_sublayers.must("agrees with PyTorch's order of sublayers, with either place of the norm")
def agrees_with_order_of_sublayers_in_pytorch(candidate):
    """What does each sublayer read, the y that its residual hands it, or x itself? Only y may have been normalized, so
    a plain `x + …` or a function that reads x leaves the norm out.

    Does each sublayer have its own residual, such as `around_cross` for `cross_attention`?
    """
    for norm_first in (True, False):
        block, x, memory, mask = _decoder_and_inputs(norm_first=norm_first)
        expected = block(x, memory, causal_mask(6), mask)
        answer = candidate(block, x.clone(), memory.clone(), causal_mask(6), mask)
        expect_shape(answer, tuple(x.shape))
        for order in set(permutations(range(3))) - {(0, 1, 2)}:
            other = _output_in_order(order, block, x, memory, mask)
            expect(
                not torch.allclose(answer, other, atol=1e-4),
                f"norm_first={norm_first}, the sublayers run in another order than PyTorch's",
                "In which order do your three sublayers run? The decoder first looks back at its own words, then "
                "at the memory, and the network comes last.",
            )
        slips = (
            (
                _output_in_order((0, 1, 2), block, x, memory, mask, same_residual=True),
                _OWN_RESIDUAL,
            ),
            (
                _output_in_order((0, 1, 2), block, x, block.around_cross.norm(memory), mask),
                _NORMED_MEMORY,
            ),
        )
        hints = (hint for other, hint in slips if torch.allclose(answer, other, atol=1e-4))
        hint = next(hints, "")
        expect_close(answer, expected, f"norm_first={norm_first}, the output", atol=1e-4, hint=hint)


_OWN_RESIDUAL = (
    "Which residual does each of your sublayers go through? Each has its own norm: `around_self`, `around_cross`, and "
    "`around_feed_forward`."
)
_NORMED_MEMORY = (
    "What happens to the memory in your function? It has had its norm at the encoder's end, so hand it on "
    "as it is."
)


def _output_in_order(
    order: tuple[int, ...], block, x: Tensor, memory: Tensor, mask: Tensor, *, same_residual=False
) -> Tensor:
    """What the three sublayers give if they run in this order, each through its own residual or all through one."""
    steps = (
        (block.around_self, lambda y: block.self_attention(y, y, y, causal_mask(6))),
        (block.around_cross, lambda y: block.cross_attention(y, memory, memory, mask)),
        (block.around_feed_forward, block.feed_forward),
    )
    for step in order:
        around, sublayer = steps[step]
        x = (block.around_self if same_residual else around)(x, sublayer)
    return x


# Counting on paper ------------------------------------------------------------------------------

counted = on_paper({
    "a": (904, "the parameters of one decoder block",
         "How many attentions does a decoder block have? Each has 4 · (64 + 8) parameters. Add network and norms.",
         "Two attentions of 288, one network of 280, three norms of 2 · 8."),
    "b": (0, "what two more heads cost",
         "Which of the four matrices becomes larger? Think of the split, where the heads share the d columns."),
    "c": (4862, "the parameters of the whole model",
         "What is there besides three blocks on each side? Look for a norm that belongs to no block.",
         "An encoder block has 600. Then 2 last norms, 10 and 14 rows of 8, and the output layer with biases."),
})  # fmt: skip


# A decoder block with two bugs ------------------------------------------------------------------

fixed_block = Check(forbids=["DecoderLayer.forward"])


@fixed_block.must("gives an output of the shape of x")
def gives_output_of_shape_of_x(candidate):
    """Which lines of `buggy_block` don't do what `Residual` does? Begin with it and change only these.

    Whose rows are passed on, the target's or the memory's? They have different lengths, and x asks.
    """
    block, x, memory, mask = _decoder_and_inputs()
    expect_shape(candidate(block, x.clone(), memory.clone(), mask), (2, 6, 12))


def _expect_no_later_token_in_mode(candidate, training: bool) -> None:
    block, x, memory, mask = _decoder_and_inputs()
    block.train(training)
    _expect_no_later_token(lambda y: candidate(block, y.clone(), memory.clone(), mask), x)
    expect(block.training == training, "the call has switched the block's mode")


@fixed_block.must("hides later tokens in training mode")
def hides_later_tokens_in_training_mode(candidate):
    """What happened to the causal mask? In training mode `buggy_block` is right, so compare your line with its."""
    _expect_no_later_token_in_mode(candidate, training=True)


@fixed_block.must("hides later tokens in eval mode")
def hides_later_tokens_in_eval_mode(candidate):
    """Which line asks for the mode? There is no dropout, so no line needs to."""
    _expect_no_later_token_in_mode(candidate, training=False)


@fixed_block.must("reads the source, but not its padding")
def block_reads_source_but_not_its_padding(candidate):
    """What did you change in the cross-attention? Keys, values, and mask were right in `buggy_block`."""
    block, x, memory, mask = _decoder_and_inputs()
    _expect_no_padding(lambda other: candidate(block, x.clone(), other.clone(), mask), memory)


@fixed_block.must("lets x pass unchanged if every sublayer gives zeros")
def block_lets_x_pass_if_every_sublayer_gives_zeros(candidate):
    """What is done to x besides the sums? Follow it past three sublayers that add nothing.

    To what is the sublayer's output added? With the norm before, only the sublayer reads the norm, so give it a name
    of its own.
    """
    block, x, memory, mask = _decoder_and_inputs()
    _silence(block)
    answer = candidate(block, x.clone(), memory.clone(), mask)
    expect_close(answer, x, "all sublayers give zeros, the output against x")


@fixed_block.must("agrees with DecoderLayer")
def agrees_with_decoderlayer(candidate):
    """Through which norm does each sublayer read? Each has its own, in its residual: `block.around_….norm`."""
    block, x, memory, mask = _decoder_and_inputs()
    expected = block(x, memory, causal_mask(6), mask)
    expect_close(candidate(block, x.clone(), memory.clone(), mask), expected, atol=1e-4)


@fixed_block.must("leaves x and the memory as they were")
def leaves_x_and_memory_as_they_were(candidate):
    """Does a line write into x? `x += …` changes the caller's tensor, and a norm that still needs the old x for its
    gradient then raises an error in training. Write `x = x + …`.
    """
    block, x, memory, mask = _decoder_and_inputs()
    with unchanged(x, memory):
        candidate(block, x, memory, mask)
