"""Checks of *Positions*: products of positions on paper, rotary encoding, slower pairs, positions added to a batch."""

import torch

from course_utils.kit.candidate import NothingReturned
from course_utils.kit.check import Check
from course_utils.kit.expect import (
    expect,
    expect_close,
    expect_equal,
    expect_same_gradients,
    expect_shape,
)
from course_utils.kit.on_paper import on_paper, read_number
from course_utils.kit.tracing import count_calls
from course_utils.lessons.positions.rotary import slowed, turn
from course_utils.positions import sinusoidal_table

# Four numbers on paper --------------------------------------------------------------------------


def _read_whole_period(answer):
    """The number in an answer; a period that is not rounded, as (d) asks, gets a hint of its own."""
    number = read_number(answer)
    expect(
        not 628.02 < number < 628.5,
        f"your answer to (d) is {number:g}, which is right",
        "Now round it to a whole number, as the task asks.",
    )
    return number


predicted_products = on_paper({
    "a": (2, "the product of p₇ with itself",
         "What is sin² a + cos² a, for any a? Each pair contributes that."),
    "b": (1.5403, "the product of p₀ and p₁",
         "With p₀ = (0, 1, 0, 1), which two entries of p₁ remain? Add them.",
         "They are cos 1 = 0.540 and cos 0.01, which is nearly 1."),
    "c": (1.5403, "the product of p₅ and p₆",
         "Use cos(a − b) = cos a cos b + sin a sin b. What are a and b in the first pair?",
         "Each pair contributes the cosine of the difference of its two angles. How far apart are 5 and 6?"),
    "d": (628, "the period of the slow pair, as a whole number",
         "By which angle does this pair turn from one position to the next? A full turn is 2π, so divide, and "
         "round to a whole number."),
}, read=_read_whole_period)  # fmt: skip

# Rotary encoding --------------------------------------------------------------------------------

my_rotate = Check()


def _frequencies(dim, base=10_000.0):
    return base ** (-torch.arange(0, dim, 2) / dim)


@my_rotate.must("keeps the shape")
def keeps_shape(candidate):
    """What shape do your angles have? They are a matrix of positions by pairs, (length, dim / 2), like the even
    columns. At the end we put the two columns of a pair side by side again.
    """
    for shape in ((5, 4), (2, 3, 5, 8)):
        expect_shape(candidate(torch.randn(shape), _frequencies(shape[-1])), shape)


@my_rotate.must("contains no NaN and no infinite entry")
def contains_no_nan_and_no_infinite_entry(candidate):
    """Is there a power or a division in your code? Look for one whose base or divisor can be 0."""
    turned = expect_shape(candidate(torch.randn(6, 8), _frequencies(8)), (6, 8))
    expect(bool(turned.isfinite().all()), "some entries are NaN or infinite")


@my_rotate.must("leaves position 0 unturned")
def leaves_position_0_unturned(candidate):
    """Along which axis do your angles run? The positions are the last axis but one, and the angle of position 0 is 0.

    If the angle is 0, check that the columns go back to their places.
    """
    x = torch.randn(2, 5, 8)
    turned = expect_shape(candidate(x.clone(), _frequencies(8)), (2, 5, 8))
    expect_close(turned[:, 0], x[:, 0], "position 0")


@my_rotate.must("pairs neighboring columns")
def pairs_neighboring_columns(candidate):
    """Where are the first members of the pairs? In columns 0, 2, 4, …, and each has its partner right after it."""
    x = torch.zeros(6, 8)
    x[:, 2] = 1.0
    outputs = expect_shape(candidate(x, _frequencies(8)), (6, 8))
    reached = [column for column in range(8) if outputs[1:, column].abs().max() > 1e-6]
    expect_equal(reached, [2, 3], "columns that a 1 in column 2 reaches")


@my_rotate.must("keeps the length of each pair")
def keeps_length_of_each_pair(candidate):
    """Are both new values computed from the *old* a and b? If so, look at the signs."""
    x = torch.randn(7, 6)
    outputs = expect_shape(candidate(x.clone(), _frequencies(6)), (7, 6)).detach()
    before, after = (y.unflatten(-1, (3, 2)).norm(dim=-1) for y in (x, outputs))
    expect_close(after, before, "length of each pair", atol=1e-4)


@my_rotate.must("turns the first pair counterclockwise, by one radian a position")
def turns_first_pair_by_one_radian_a_position(candidate):
    """What becomes of (1, 0) at position 1? Work it out with the formula, and see which of the two sines has the
    minus.

    At position 1 the pair (1, 0) becomes (cos 1, sin 1) = (0.540, 0.841).
    """
    x = torch.tensor([1.0, 0.0, 0.0, 0.0]).repeat(3, 1)
    angles = torch.arange(3.0)
    expected = torch.stack([angles.cos(), angles.sin()], dim=-1)
    turned = expect_shape(candidate(x, _frequencies(4)), (3, 4))
    expect_close(turned[:, :2], expected, "the pair (1, 0)", atol=1e-4)


@my_rotate.must("gives every pair its own frequency")
def gives_every_pair_its_own_frequency(candidate):
    """Is the angle of pair j the position times entry j of `frequency`? Print both for j = 1.

    The frequencies are given to you, so don't compute them, and don't use a base of your own.
    """
    for shape, base in (((9, 6), 10_000.0), ((2, 3, 30, 16), 10_000.0), ((9, 6), 50.0)):
        x, frequency = torch.randn(shape), _frequencies(shape[-1], base)
        answer = candidate(x.clone(), frequency.clone())
        expect_close(answer, turn(x, frequency), f"shape {shape}", atol=1e-4)


@my_rotate.must("keeps the dtype of its input")
def keeps_dtype_of_its_input(candidate):
    """Which dtype do your angles have? A float32 times a float64 is a float64, and `.to(x.dtype)` converts."""
    for dtype in (torch.float32, torch.float64):
        answer = expect_shape(
            candidate(torch.randn(5, 4, dtype=dtype), _frequencies(4).double()), (5, 4)
        ).dtype
        expect(answer == dtype, f"got {answer}, expected {dtype}, the dtype of x")


@my_rotate.must("works without a loop over positions")
def works_without_loop_over_positions(candidate):
    """Does a loop run over the positions? We can compute all angles at once, as a matrix of positions by pairs."""
    few, many = (
        count_calls(candidate, torch.randn(length, 8), _frequencies(8)).total()
        for length in (3, 20)
    )
    expect(many == few, f"PyTorch is called {few} times for 3 positions, but {many} times for 20")


my_rotate.must_keep_inputs(
    lambda: [torch.randn(4, 6), _frequencies(6)],
    "Does a line write into the caller's memory? Assignments with [] do, so make a new tensor.",
    "leaves its input unchanged",
)


@my_rotate.must("lets gradients reach the input")
def lets_gradients_reach_input(candidate):
    """Which line leaves the graph? Look for a `.detach()`, a `.data`, an `.item()` or a `no_grad`."""
    both = (lambda x, f=function: f(x, _frequencies(6)) for function in (candidate, turn))
    expect_same_gradients(*both, input=torch.randn(4, 6), atol=1e-4)


# Slow pairs made slower ---------------------------------------------------------------------------

my_slowed = Check()

_PERIOD = (
    "What do you compare with `length`? A slow pair has a long period, and the period is 2π/ω."
)


@my_slowed.must("keeps the number of pairs")
def keeps_number_of_pairs(candidate):
    """What shape does your result have? Each pair keeps its place, and `torch.where` chooses for each whether its
    number changes.
    """
    for dim in (6, 64):
        expect_shape(candidate(_frequencies(dim), 16, 64), (dim // 2,))


@my_slowed.must("leaves the fast pairs as they are")
def leaves_fast_pairs_as_they_are(candidate):
    """Which pairs complete a turn within `length`? Those with a *short* period 2π/ω, so with a large frequency.

    Compare the period with the length, `2 * math.pi / frequency > length`, and not the frequency itself.
    """
    frequency = _frequencies(64)
    result = expect_shape(candidate(frequency.clone(), 16, 64), (32,))
    expect_close(result[:4], frequency[:4], "frequencies of pairs 0 to 3, with a period below 16")


@my_slowed.must("divides the frequencies of the slow pairs by the factor")
def divides_frequencies_of_slow_pairs_by_factor(candidate):
    """Should a slow pair turn faster or slower from now on? Slower, so its frequency gets smaller."""
    frequency = _frequencies(64)
    for factor in (64, 4):
        result = expect_shape(candidate(frequency.clone(), 16, factor), (32,))
        same = int((result[5:] == frequency[5:]).sum())
        expect(not same, f"{same} of 27 slow pairs are as fast as before", _PERIOD)
        hint = "Is a factor written into your function? Here it is another than before, 4."
        expect_close(
            result[5:],
            frequency[5:] / factor,
            f"slow pairs, factor {factor}",
            atol=1e-7,
            hint=hint if factor == 4 else "",
        )


@my_slowed.must("finds the slow pairs at any trained length")
def finds_slow_pairs_at_any_trained_length(candidate):
    """Does your border between slow and fast move with `length`? A pair is slow if its period is longer than that.

    Within a length of 100 all pairs with a period up to 100 complete a turn, so more pairs stay as they are.
    """
    frequency = _frequencies(64)
    for length in (7, 100, 4096):
        expect_close(
            candidate(frequency.clone(), length, 8),
            slowed(frequency, length, 8),
            f"length {length}",
            atol=1e-7,
        )


my_slowed.must_keep_inputs(
    lambda: [_frequencies(8), 16, 64],
    "Does a line write into the caller's memory? `torch.where` makes a new tensor.",
    "leaves its input unchanged",
)

# Positions added to a batch: find the bug ---------------------------------------------------------

fixed_add = Check()


def _batch_and_table(batch: int = 4, length: int = 6, dim: int = 8):
    return torch.randn(batch, length, dim), sinusoidal_table(20, dim)


@fixed_add.must("keeps the shape")
def sum_keeps_shape(candidate):
    """Which axis of x (batch, n, d) do the rows of the table belong to? There is one row for each position."""
    x, table = _batch_and_table()
    expect_shape(candidate(x.clone(), table), (4, 6, 8))


@fixed_add.must("adds row i to token i of each sequence")
def adds_row_i_to_token_i_of_each_sequence(candidate):
    """What has been added to the tokens of sequence 1? Subtract x from the result for a batch of 2, and look.

    The size of axis 0 is the batch. How many rows does a sequence need? That is the size of another axis.
    """
    for batch, length in ((4, 6), (6, 6), (1, 5), (6, 3)):
        x, table = _batch_and_table(batch, length)
        expected = table[:length].expand(x.shape)
        expect_close(
            candidate(x.clone(), table.clone()) - x, expected, f"added for {batch} × {length}"
        )


@fixed_add.must("takes a batch that is larger than the table is long")
def takes_batch_that_is_larger_than_table_is_long(candidate):
    """Does the number of sequences still play a part? Only the length of a sequence should."""
    x, table = _batch_and_table(batch=30)
    expect_close(candidate(x.clone(), table.clone()) - x, table[:6].expand(x.shape), "30 sequences")


fixed_add.must_keep_inputs(
    _batch_and_table,
    "What does `x += p` write into? The caller's tokens, so make a new tensor.",
    "leaves tokens and table unchanged",
)


@fixed_add.must("raises an error for a sequence longer than the table")
def raises_error_for_sequence_longer_than_table(candidate):
    """Which operation complains if 21 tokens meet 20 rows? A sum of the two does, a slice doesn't."""
    x, table = _batch_and_table(length=21)
    try:
        candidate(x, table)
    except NothingReturned:
        pass  # it may have said something; it has to raise
    except (RuntimeError, ValueError, IndexError, AssertionError):
        return
    expect(False, "21 tokens and 20 rows raise no error")
