"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import math

import torch
from mistakes.table import wrong

from course_utils.lessons.positions.rotary import slowed, turn


def _angles(x, frequency):
    return torch.arange(x.shape[-2])[:, None] * frequency


def _turned(x, angle, minus=-1):
    a, b, cos, sin = x[..., 0::2], x[..., 1::2], angle.cos(), angle.sin()
    return torch.stack([a * cos + minus * b * sin, a * sin + b * cos], dim=-1).flatten(-2)


class my_rotate:
    along_the_batch = wrong(
        "Takes the first axis for the positions.",
        lambda x, frequency: turn(x.transpose(0, -2), frequency).transpose(0, -2),
    )
    even_columns_only = wrong(
        "Gives back one column of each pair.",
        lambda x, frequency: x[..., 0::2] * _angles(x, frequency).cos(),
    )
    no_gradient = wrong(
        "Right numbers, without a gradient.", lambda x, frequency: turn(x.detach(), frequency)
    )

    no_minus = wrong(
        "(a cos + b sin, a sin + b cos) is no rotation.",
        lambda x, frequency: _turned(x, _angles(x, frequency), minus=1),
    )
    the_other_way_round = wrong(
        "Turns clockwise.", lambda x, frequency: _turned(x, -_angles(x, frequency))
    )
    one_frequency = wrong(
        "The same angle for all pairs.",
        lambda x, frequency: _turned(x, torch.arange(x.shape[-2])[:, None].float()),
    )
    a_base_of_its_own = wrong(
        "Computes the frequencies anew, whatever it is given.",
        lambda x, frequency: turn(x, 10_000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])),
    )
    forgets_the_type = wrong(
        "Angles in float64, as in the table of sinusoids: the next product fails.",
        lambda x, frequency: _turned(x, _angles(x, frequency).double()),
    )

    clockwise_in_float64 = wrong(
        "Turns the wrong way, and in float64: the turn is told first.",
        lambda x, frequency: _turned(x.double(), -_angles(x, frequency.double())),
    )

    def halves_as_pairs(x, frequency):
        """Pairs column j with column j + dim/2, as many libraries do."""
        turned = _turned(x.unflatten(-1, (2, -1)).mT.flatten(-2), _angles(x, frequency))
        return turned.unflatten(-1, (-1, 2)).mT.flatten(-2)

    def writes_into_its_input(x, frequency):
        """Right numbers, in the caller's memory."""
        x[...] = turn(x, frequency)
        return x

    def divides_by_the_position(x, frequency):
        """0 / 0 at position 0."""
        place = torch.arange(x.shape[-2])[:, None]
        return turn(x, frequency) * place / place

    def one_position_at_a_time(x, frequency):
        """Right numbers, in a loop over positions: seven minutes in place of seconds for the chapter's readers."""
        return torch.stack([turn(x, frequency)[..., i, :] for i in range(x.shape[-2])], dim=-2)


class my_slowed:
    all_pairs = wrong(
        "Position interpolation: the fast pairs are slowed with the others.",
        lambda frequency, length, factor: frequency / factor,
    )
    the_fast_ones = wrong(
        "Slows the fast pairs.",
        lambda frequency, length, factor: torch.where(
            2 * math.pi / frequency > length, frequency, frequency / factor
        ),
    )
    frequency_for_period = wrong(
        "Compares the frequency with the length: no pair is slow.",
        lambda frequency, length, factor: torch.where(
            frequency > length, frequency / factor, frequency
        ),
    )
    without_two_pi = wrong(
        "Takes 1 / ω for the period.",
        lambda frequency, length, factor: torch.where(
            1 / frequency > length, frequency / factor, frequency
        ),
    )
    faster = wrong(
        "Multiplies by the factor.",
        lambda frequency, length, factor: torch.where(
            2 * math.pi / frequency > length, frequency * factor, frequency
        ),
    )
    always_64 = wrong(
        "The factor of the chapter, whatever is asked for.",
        lambda frequency, length, factor: slowed(frequency, length, 64),
    )
    always_16 = wrong(
        "The length of the chapter, whatever is asked for.",
        lambda frequency, length, factor: slowed(frequency, 16, factor),
    )
    only_the_slow_ones = wrong(
        "Leaves the fast pairs out.",
        lambda frequency, length, factor: frequency[2 * math.pi / frequency > length] / factor,
    )

    def in_place(frequency, length, factor):
        """Right numbers, in the caller's memory."""
        frequency[2 * math.pi / frequency > length] /= factor
        return frequency


class fixed_add:
    still_by_sequence = wrong(
        "No longer in place, but row b for all tokens of sequence b.",
        lambda x, table: x + table[: x.shape[0], None],
    )
    transposes_for_good = wrong(
        "Made for (length, batch, d), and not turned back.",
        lambda x, table: x.transpose(0, 1) + table[: x.shape[1], None],
    )

    def still_in_place(x, table):
        """The right rows, in the caller's memory."""
        x += table[: x.shape[1]]
        return x

    def says_it_and_goes_on(x, table):
        """Prints what is wrong, and raises nothing."""
        if x.shape[1] > len(table):
            return print("too long")
        return x + table[: x.shape[1]]

    def needs_batch_rows(x, table):
        """Right, as long as there are no more sequences than rows."""
        table[x.shape[0] - 1]
        return x + table[: x.shape[1]]


ON_PAPER = {
    "predicted_products": {
        "a": 14,  # thinks that later positions are longer vectors
        "b": 2.0,  # the cosine of one degree
        "c": 9.24,  # thinks that later positions are longer vectors
        "d": 6,  # the period of the fast pair
    },
}

ANSWERS = {
    "clockwise_in_float64": ("counterclockwise", "which of the two sines"),
    "forgets_the_type": ("keeps the dtype", "converts"),
    "one_position_at_a_time": ("without a loop over positions", "compute all angles at once"),
    "frequency_for_period": ("as fast as before", "a long period"),
    "a_base_of_its_own": ("its own frequency", "position times entry j"),
}
