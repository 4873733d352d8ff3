"""Checks of *Positions*: order, path length, rotation by an offset, rotary encodings, decoding in steps."""

import math

import torch

from course_utils.attention import MultiHeadAttention, causal_mask
from course_utils.lessons.check import (
    Check,
    expect,
    expect_close,
    expect_equal,
    expect_shape,
    expect_whole_number,
    unchanged,
)
from course_utils.positions import rotate, sinusoidal_table

# Does a layer ignore the order? -----------------------------------------------------------------

ignores_order = Check("a test for order")


def _attend(x, mask=None):
    scores = x @ x.transpose(-2, -1) / math.sqrt(x.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1) @ x


def _answers(candidate, layer, x, expected: bool, what: str):
    verdict = candidate(layer, x)
    kind = type(verdict).__name__
    expect(isinstance(verdict, bool), f"True or False is expected, got a {kind}")
    expect_equal(verdict, expected, what)


@ignores_order.must(
    "plain self-attention ignores the order",
    hint="The outputs of another order are the same outputs, in that order. Do you compare them so? "
    "The tokens lie along axis 1.",
)
def _(candidate):
    _answers(candidate, _attend, torch.randn(2, 6, 4), True, "plain self-attention")


@ignores_order.must(
    "rounding errors are forgiven",
    hint="Sums in another order differ in the last digits. Is your comparison too strict?",
)
def _(candidate):
    def layer(x):
        return 100 * _attend(x)

    _answers(candidate, layer, torch.randn(2, 60, 48), True, "self-attention over 60 tokens")


@ignores_order.must(
    "positions in the input are noticed",
    hint="Does the layer see the tokens in another order, or does it see the same input twice?",
)
def _(candidate):
    def layer(x):
        return _attend(x + sinusoidal_table(x.shape[1], x.shape[2]))

    _answers(candidate, layer, torch.randn(2, 6, 4), False, "self-attention with positions added")


@ignores_order.must(
    "a causal mask is noticed",
    hint="Do you compare every output, or one of them, or a mean over the tokens?",
)
def _(candidate):
    def layer(x):
        return _attend(x, causal_mask(x.shape[1]))

    _answers(candidate, layer, torch.randn(2, 6, 4), False, "causal self-attention")


@ignores_order.must(
    "layers that ignore only some orders are noticed",
    hint="A reversal is one order of many, and so is a cyclic shift. Which orders do you try?",
)
def _(candidate):
    def mirrored(x):
        place = torch.arange(x.shape[1])
        return _attend(x + torch.minimum(place, place.flip(0))[:, None])

    def in_a_ring(x):
        return x.roll(1, dims=1) + 2 * x + x.roll(-1, dims=1)

    x = torch.randn(2, 9, 4)
    _answers(candidate, mirrored, x, False, "positions that read the same from both ends")
    _answers(candidate, in_a_ring, x, False, "a convolution whose ends are joined")


@ignores_order.must(
    "an output that does not move with its token is noticed",
    hint="If token 5 moves to position 0, where do you look for its output?",
)
def _(candidate):
    def sorting(x):
        return x.sort(dim=1).values

    def constant(x):
        return torch.arange(x.shape[1])[None, :, None].expand(x.shape) + 0 * x

    x = torch.randn(2, 6, 4)
    _answers(candidate, sorting, x, False, "a layer that sorts its tokens")
    _answers(candidate, constant, x, False, "a layer that returns each token's position")


# Layers until the last token sees the first -----------------------------------------------------

layers_needed = Check("layers needed")


def _needs(candidate, *cases, dilated=False):
    for n, kernel, layers in cases:
        found = expect_whole_number(candidate(n, kernel, dilated=dilated))
        expect_equal(found, layers, f"layers for n = {n}, kernel = {kernel}, dilated = {dilated}")


@layers_needed.must(
    "a sequence no longer than the kernel needs one layer",
    hint="Which tokens does the last token read in one layer? It reads itself as well.",
)
def _(candidate):
    _needs(candidate, (3, 3, 1), (2, 3, 1), (5, 5, 1))


@layers_needed.must(
    "each ordinary layer reaches kernel − 1 tokens further",
    hint="How many steps is it from the last token to the first, and how many does a layer take? What "
    "happens to a remainder?",
)
def _(candidate):
    _needs(candidate, (4, 3, 2), (5, 3, 2), (6, 3, 3), (64, 2, 63), (101, 5, 25))


@layers_needed.must(
    "each dilated layer multiplies what is seen by the kernel's width",
    hint="Draw it for kernel 2. How many tokens do one layer, two layers and three layers see?",
)
def _(candidate):
    cases = (3, 3, 1), (4, 3, 2), (9, 3, 2), (10, 3, 3), (64, 2, 6), (65, 2, 7)
    _needs(candidate, *cases, dilated=True)


@layers_needed.must(
    "exact powers are exact",
    hint="Print math.log(125, 5) with all its digits. Can you do without the logarithm?",
)
def _(candidate):
    _needs(candidate, (125, 5, 3), (243, 3, 5), (1000, 10, 3), (3**20, 3, 20), dilated=True)


@layers_needed.must(
    "a single token needs no layer", hint="How far is it from the first token to itself?"
)
def _(candidate):
    for dilated in (False, True):
        _needs(candidate, (1, 3, 0), dilated=dilated)


# The rotation that moves a position by an offset ------------------------------------------------

offset_matrix = Check("rotation by an offset")


@offset_matrix.must(
    "the matrix is square, one row and one column per column of the table",
    hint="How many pairs do embed_dim columns make? How large is the block of a pair?",
)
def _(candidate):
    expect_shape(candidate(3, 8), (8, 8))


@offset_matrix.must(
    "offset 0 changes nothing",
    hint="What should each block be for the angle 0? Which entries hold the cosine?",
)
def _(candidate):
    expect_close(candidate(0, 6), torch.eye(6), "offset 0")


@offset_matrix.must(
    "pairs are not mixed",
    hint="Column 2j stands beside column 2j + 1. Where do the blocks lie then?",
)
def _(candidate):
    matrix = expect_shape(candidate(2, 6), (6, 6))
    pairs = torch.arange(6) // 2
    outside = matrix[pairs[:, None] != pairs]
    expect(bool((outside == 0).all()), "a column is mixed with a column of another pair")


@offset_matrix.must("no length is changed", hint="Look at the signs in a block. Is it a rotation?")
def _(candidate):
    matrix = expect_shape(candidate(5, 8), (8, 8)).detach().double()
    expected = torch.eye(8, dtype=torch.float64)
    expect_close(matrix @ matrix.T, expected, "M times its transpose", atol=1e-4)


def _carries(candidate, offset):
    table = sinusoidal_table(40, 8)
    start, end = (
        (table[:-offset], table[offset:]) if offset > 0 else (table[-offset:], table[:offset])
    )
    matrix = expect_shape(candidate(offset, 8), (8, 8)).detach().to(table.dtype)
    expect_close(start @ matrix.T, end, f"every position moved by {offset}", atol=1e-4)


@offset_matrix.must(
    "it carries every position forward by the offset",
    hint="The sine stands first in each pair. How do you write sin(a + b) and cos(a + b) with the known "
    "pair? Is the frequency of each pair right?",
)
def _(candidate):
    _carries(candidate, 1)
    _carries(candidate, 7)


@offset_matrix.must(
    "a negative offset carries it back",
    hint="What changes its sign with the offset, the sine or the cosine?",
)
def _(candidate):
    _carries(candidate, -4)


# Rotary encoding with halves as pairs -----------------------------------------------------------

rotate_halves = Check("rotary encoding by halves")


@rotate_halves.must(
    "the shape is kept",
    hint="What shape do your angles have? Do they broadcast against each half of the columns?",
)
def _(candidate):
    for shape in ((5, 4), (2, 3, 5, 8)):
        expect_shape(candidate(torch.randn(shape)), shape)


@rotate_halves.must(
    "position 0 is not turned",
    hint="What is the angle of position 0? Are the halves put back in their places?",
)
def _(candidate):
    x = torch.randn(2, 5, 8)
    expect_close(expect_shape(candidate(x), (2, 5, 8))[:, 0], x[:, 0], "position 0")


@rotate_halves.must(
    "column j and column j + dim/2 form a pair",
    hint="Where in the columns do the first members of all pairs stand?",
)
def _(candidate):
    x = torch.zeros(6, 8)
    x[:, 1] = 1.0
    outputs = expect_shape(candidate(x), (6, 8))
    reached = [column for column in range(8) if outputs[1:, column].abs().max() > 1e-6]
    expect_equal(reached, [1, 5], "columns that a one in column 1 goes to")


@rotate_halves.must(
    "each pair keeps its length",
    hint="Look at the signs. Are both new values computed from the old a and b?",
)
def _(candidate):
    x = torch.randn(7, 6)
    outputs = expect_shape(candidate(x), (7, 6)).detach()
    before, after = (y.unflatten(-1, (2, 3)).norm(dim=-2) for y in (x, outputs))
    expect_close(after, before, "length of each pair", atol=1e-4)


@rotate_halves.must(
    "the dot product depends on the distance alone",
    hint="How does the angle of a pair grow with the position? Is it the same for both columns of the pair?",
)
def _(candidate):
    x = torch.randn(2, 1, 8).repeat(1, 12, 1)
    outputs = expect_shape(candidate(x), (2, 12, 8)).detach()
    scores = outputs[0] @ outputs[1].T
    expect_close(scores[1:, 1:], scores[:-1, :-1], "scores moved by one position", atol=1e-4)


@rotate_halves.must(
    "it is cu.rotate in another order of the columns",
    hint="What is the base of your frequencies? Which pair turns fastest, and in which direction?",
)
def _(candidate):
    x = torch.randn(2, 9, 8)
    order = torch.arange(8).view(2, -1).T.flatten()  # column j and column j + 4 side by side
    expected = torch.empty_like(x)
    expected[..., order] = rotate(x[..., order])
    expect_close(candidate(x), expected, "against cu.rotate with columns reordered", atol=1e-4)


@rotate_halves.must(
    "the input is not changed", hint="Assignments with [] write into the caller's memory."
)
def _(candidate):
    x = torch.randn(4, 6)
    with unchanged(x):
        candidate(x)


# Decoding in steps: find the bug ----------------------------------------------------------------

fixed_step_by_step = Check("decoding in steps")


def _setting():
    return (
        torch.randn(2, 6, 8),
        MultiHeadAttention(8, 2).requires_grad_(False),
        sinusoidal_table(16, 8),
    )


def _at_once(x, attention, table):
    placed = x + table[: x.shape[1]]
    return attention(placed, placed, placed, causal_mask(x.shape[1]))


@fixed_step_by_step.must(
    "there is one output for each token",
    hint="Each step gives (batch, 1, embed_dim). Along which axis are the steps joined?",
)
def _(candidate):
    expect_shape(candidate(*_setting()), (2, 6, 8))


@fixed_step_by_step.must(
    "the first token's output is right",
    hint="Which row of the table does the first token get, and which keys does it see?",
)
def _(candidate):
    x, attention, table = _setting()
    outputs = expect_shape(candidate(x.clone(), attention, table), (2, 6, 8))
    expect_close(outputs[:, 0], _at_once(x, attention, table)[:, 0], "first token")


@fixed_step_by_step.must(
    "decoding in steps gives the same as decoding at once",
    hint="Which row of the table does the token of step 3 get, and how many keys does it see?",
)
def _(candidate):
    x, attention, table = _setting()
    outputs = candidate(x.clone(), attention, table)
    expect_close(outputs, _at_once(x, attention, table), "in steps against at once")


@fixed_step_by_step.must(
    "embedded tokens and table are not changed",
    hint="`y += p` writes into y. Does a slice of x have memory of its own?",
)
def _(candidate):
    x, attention, table = _setting()
    with unchanged(x, table):
        candidate(x, attention, table)


@fixed_step_by_step.must(
    "a second call gives the same", hint="What is left over from the call before?"
)
def _(candidate):
    x, attention, table = _setting()
    first = candidate(x.clone(), attention, table)
    again = candidate(x.clone(), attention, table)
    expect_close(again, first, "a second call with the same sentence")


@fixed_step_by_step.must(
    "each token goes through the attention once",
    hint="Where are the keys and values of earlier tokens kept? Are they computed again?",
)
def _(candidate):
    x, attention, table = _setting()
    seen = []
    attention.query_proj.register_forward_pre_hook(
        lambda _, inputs: seen.append(inputs[0].shape[1])
    )
    candidate(x, attention, table)
    expect_equal(seen, [1] * 6, "tokens that the attention was asked for, by call")
