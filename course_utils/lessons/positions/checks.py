"""Checks: order, path length, rotation by an offset, rotary encodings, and decoding in steps."""

import math

import torch

from course_utils.attention import MultiHeadAttention, causal_mask
from course_utils.lessons.check import Check, expect, expect_close, expect_shape
from course_utils.positions import rotate, sinusoidal_table

# Does a layer ignore the order? -----------------------------------------------------------------


def _attend(x, mask=None):
    scores = x @ x.transpose(-2, -1) / math.sqrt(x.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1) @ x


def _answers(candidate, layer, x, expected: bool, what: str):
    verdict = candidate(layer, x)
    expect(
        isinstance(verdict, bool),
        f"the answer is a {type(verdict).__name__}; True or False is expected",
    )
    expect(verdict == expected, f"{what}: answered {verdict}; {expected} is right")


ignores_order = Check("a test for order")


@ignores_order.must(
    "plain self-attention ignores the order",
    hint=(
        "the outputs are not the same in another order of the inputs; they are the same outputs "
        "in that other order. The tokens lie along axis 1"
    ),
)
def _(candidate):
    _answers(candidate, _attend, torch.randn(2, 6, 4), True, "plain self-attention")


@ignores_order.must(
    "rounding errors are forgiven",
    hint="sums in another order differ in the last digits; torch.equal is too strict",
)
def _(candidate):
    def layer(x):
        return 100 * _attend(x)

    _answers(candidate, layer, torch.randn(2, 60, 48), True, "self-attention over 60 tokens")


@ignores_order.must(
    "positions in the input are noticed",
    hint="does the layer see the tokens in another order, or does it see the same input twice?",
)
def _(candidate):
    def layer(x):
        return _attend(x + sinusoidal_table(x.shape[1], x.shape[2]))

    _answers(candidate, layer, torch.randn(2, 6, 4), False, "self-attention with positions added")


@ignores_order.must(
    "a causal mask is noticed",
    hint="compare every output, not one of them only, and not a mean over the tokens",
)
def _(candidate):
    def layer(x):
        return _attend(x, causal_mask(x.shape[1]))

    _answers(candidate, layer, torch.randn(2, 6, 4), False, "causal self-attention")


@ignores_order.must(
    "layers that ignore some orders only are noticed",
    hint="reversing is one order of many, and so is a cyclic shift; torch.randperm gives any",
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
    "an output that stays where it was is noticed",
    hint="if token 5 moves to place 0, its output has to move to place 0 as well",
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


def _counts(candidate, dilated: bool, cases):
    for n, kernel, layers in cases:
        answer = candidate(n, kernel, dilated=dilated)
        expect(
            isinstance(answer, int) and not isinstance(answer, bool),
            f"the answer is a {type(answer).__name__}; a whole number (int) is expected",
        )
        expect(
            answer == layers,
            f"n = {n}, kernel = {kernel}, dilated = {dilated}: {answer} layers; {layers} are needed",
        )


layers_needed = Check("layers needed")


@layers_needed.must(
    "a sequence no longer than the kernel needs one layer",
    hint="the last token reads itself and the kernel − 1 tokens before it",
)
def _(candidate):
    _counts(candidate, False, [(3, 3, 1), (2, 3, 1), (5, 5, 1)])


@layers_needed.must(
    "ordinary layers reach kernel − 1 tokens further each",
    hint=(
        "how many steps is it from the last token to the first, and how many does a layer take? "
        "A rest needs a layer of its own"
    ),
)
def _(candidate):
    _counts(candidate, False, [(4, 3, 2), (5, 3, 2), (6, 3, 3), (64, 2, 63), (101, 5, 25)])


@layers_needed.must(
    "dilated layers multiply what is seen by the kernel's width",
    hint="draw it for kernel 2: one layer sees 2 tokens, two layers 4, three layers 8",
)
def _(candidate):
    _counts(candidate, True, [(3, 3, 1), (4, 3, 2), (9, 3, 2), (10, 3, 3), (64, 2, 6), (65, 2, 7)])


@layers_needed.must(
    "exact powers are exact",
    hint="print math.log(125, 5) with all its digits; whole numbers can be multiplied instead",
)
def _(candidate):
    _counts(candidate, True, [(125, 5, 3), (243, 3, 5), (1000, 10, 3), (3**20, 3, 20)])


@layers_needed.must(
    "a single token needs no layer", hint="from the first token to itself there is nothing to cross"
)
def _(candidate):
    _counts(candidate, False, [(1, 3, 0)])
    _counts(candidate, True, [(1, 3, 0)])


# The rotation that moves a position by an offset ------------------------------------------------


offset_matrix = Check("rotation by an offset")


@offset_matrix.must(
    "the matrix is square, one row and one column per column of the table",
    hint="embed_dim columns are embed_dim / 2 pairs, each with its own 2 × 2 block",
)
def _(candidate):
    expect_shape(candidate(3, 8), (8, 8))


@offset_matrix.must(
    "offset 0 changes nothing",
    hint="with angle 0 each block has to be the identity; which entries hold the cosine?",
)
def _(candidate):
    expect_close(candidate(0, 6), torch.eye(6), "offset 0")


@offset_matrix.must(
    "pairs are not mixed",
    hint="column 2j stands beside column 2j + 1: the blocks lie along the diagonal",
)
def _(candidate):
    matrix = candidate(2, 6)
    expect_shape(matrix, (6, 6))
    pairs = torch.arange(6) // 2
    outside = matrix[pairs[:, None] != pairs]
    expect(bool((outside == 0).all()), "a column is mixed with a column of another pair")


@offset_matrix.must("no length is changed", hint="in each block one of the two sines has a minus")
def _(candidate):
    matrix = candidate(5, 8)
    expect_shape(matrix, (8, 8))
    matrix = matrix.detach().double()
    expect_close(
        matrix @ matrix.T, torch.eye(8, dtype=torch.float64), "M times its transpose", atol=1e-4
    )


@offset_matrix.must(
    "it carries every position forward by the offset",
    hint=(
        "the sine stands first in each pair: write down sin(a + b) and cos(a + b), with the known pair "
        "on the right, and check the frequency of each pair, too"
    ),
)
def _(candidate):
    table = sinusoidal_table(40, 8)
    for offset in (1, 7):
        matrix = candidate(offset, 8)
        expect_shape(matrix, (8, 8))
        matrix = matrix.detach().to(table.dtype)
        expect_close(
            table[:-offset] @ matrix.T,
            table[offset:],
            f"every position moved by {offset}",
            atol=1e-4,
        )


@offset_matrix.must(
    "a negative offset carries it back",
    hint="sines change their sign with the offset, cosines do not",
)
def _(candidate):
    table = sinusoidal_table(40, 8)
    matrix = candidate(-4, 8)
    expect_shape(matrix, (8, 8))
    matrix = matrix.detach().to(table.dtype)
    expect_close(table[4:] @ matrix.T, table[:-4], "every position moved by −4", atol=1e-4)


# Rotary encoding with halves as pairs -----------------------------------------------------------


def _halves_to_neighbors(dim: int) -> torch.Tensor:
    """Order of columns that brings column j and column j + dim/2 side by side."""
    return torch.arange(dim).view(2, -1).T.flatten()


rotate_halves = Check("rotary encoding by halves")


@rotate_halves.must(
    "the shape is kept",
    hint="angles (length, dim / 2) broadcast against each half of the columns, (…, length, dim / 2)",
)
def _(candidate):
    for shape in ((5, 4), (2, 3, 5, 8)):
        expect_shape(candidate(torch.randn(shape)), shape)


@rotate_halves.must(
    "position 0 is not turned",
    hint=(
        "positions count from 0, and the angle 0 leaves a vector as it is; are the halves put back "
        "in their places?"
    ),
)
def _(candidate):
    x = torch.randn(2, 5, 8)
    outputs = candidate(x)
    expect_shape(outputs, (2, 5, 8))
    expect_close(outputs[:, 0], x[:, 0], "position 0")


@rotate_halves.must(
    "column j and column j + dim/2 form a pair",
    hint="x[..., : dim // 2] holds the first members of all pairs",
)
def _(candidate):
    x = torch.zeros(6, 8)
    x[:, 1] = 1.0
    outputs = candidate(x)
    expect_shape(outputs, (6, 8))
    moved = [column for column in range(8) if outputs[1:, column].abs().max() > 1e-6]
    expect(moved == [1, 5], f"a one in column 1 went to the columns {moved}; [1, 5] is due")


@rotate_halves.must(
    "each pair keeps its length",
    hint="(a cos − b sin, a sin + b cos): one minus, and both new values from the old a and b",
)
def _(candidate):
    x = torch.randn(7, 6)
    outputs = candidate(x)
    expect_shape(outputs, (7, 6))
    before, after = (y.unflatten(-1, (2, 3)).norm(dim=-2) for y in (x, outputs.detach()))
    expect_close(after, before, "length of each pair", atol=1e-4)


@rotate_halves.must(
    "the dot product depends on the distance alone",
    hint=(
        "each pair needs one angle per position, the same for both of its columns, and proportional to "
        "the position"
    ),
)
def _(candidate):
    x = torch.randn(2, 1, 8).repeat(1, 12, 1)
    outputs = candidate(x)
    expect_shape(outputs, (2, 12, 8))
    scores = outputs[0] @ outputs[1].T
    expect_close(
        scores[1:, 1:].detach(), scores[:-1, :-1].detach(), "scores one place on", atol=1e-4
    )


@rotate_halves.must(
    "it is cu.rotate in another order of the columns",
    hint="base 10,000, the fastest pair first, and every pair turned the same way round",
)
def _(candidate):
    x = torch.randn(2, 9, 8)
    order = _halves_to_neighbors(8)
    expected = torch.empty_like(x)
    expected[..., order] = rotate(x[..., order])
    expect_close(candidate(x), expected, "against cu.rotate with columns reordered", atol=1e-4)


@rotate_halves.must(
    "the input is not changed", hint="assignments with [] write into the caller's memory"
)
def _(candidate):
    x = torch.randn(4, 6)
    before = x.clone()
    candidate(x)
    expect(torch.equal(x, before), "the input is another after the call")


# Decoding in steps ------------------------------------------------------------------------------


def _setting(length: int = 6):
    return torch.randn(2, length, 8), MultiHeadAttention(8, 2), sinusoidal_table(16, 8)


def _at_once(x, attention, table):
    placed = x + table[: x.shape[1]]
    return attention(placed, placed, placed, causal_mask(x.shape[1])).detach()


def _run(candidate, x, attention, table):
    with torch.no_grad():
        return candidate(x, attention, table)


fixed_step_by_step = Check("decoding in steps")


@fixed_step_by_step.must(
    "there is one output for each token",
    hint="each step gives (batch, 1, embed_dim); join them along the tokens' axis",
)
def _(candidate):
    x, attention, table = _setting()
    expect_shape(_run(candidate, x, attention, table), (2, 6, 8))


@fixed_step_by_step.must(
    "the first token's output is right", hint="it stands at position 0, and sees itself only"
)
def _(candidate):
    x, attention, table = _setting()
    outputs = _run(candidate, x.clone(), attention, table)
    expect_shape(outputs, (2, 6, 8))
    expect_close(outputs[:, 0], _at_once(x, attention, table)[:, 0], "first token")


@fixed_step_by_step.must(
    "in steps comes out what comes out at once",
    hint="which row of the table does the token of step 3 get, and how many keys does it see?",
)
def _(candidate):
    x, attention, table = _setting()
    outputs = _run(candidate, x.clone(), attention, table)
    expect_close(outputs, _at_once(x, attention, table), "in steps against at once")


@fixed_step_by_step.must(
    "embedded tokens and table are not changed",
    hint="y += p writes into y, and a slice of x shares its memory with x",
)
def _(candidate):
    x, attention, table = _setting()
    tokens, rows = x.clone(), table.clone()
    _run(candidate, x, attention, table)
    expect(torch.equal(x, tokens), "the embedded tokens are others after the call")
    expect(torch.equal(table, rows), "the table is another after the call")


@fixed_step_by_step.must(
    "a second call gives the same", hint="what is left over from the call before?"
)
def _(candidate):
    x, attention, table = _setting()
    first = _run(candidate, x.clone(), attention, table)
    again = _run(candidate, x.clone(), attention, table)
    expect_close(again, first.detach(), "a second call with the same sentence")


@fixed_step_by_step.must(
    "each token goes through the attention once",
    hint="the keys and values of earlier tokens are in the cache; do not compute them again",
)
def _(candidate):
    x, attention, table = _setting()
    seen = []
    handle = attention.query_proj.register_forward_pre_hook(
        lambda module, inputs: seen.append(inputs[0].shape[1])
    )
    try:
        _run(candidate, x, attention, table)
    finally:
        handle.remove()
    expect(seen == [1] * 6, f"the attention was asked for {seen} tokens; six times 1 is due")
