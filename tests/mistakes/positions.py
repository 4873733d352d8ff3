"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import torch
from mistakes.table import wrong

from course_utils.lessons.positions.rotary import turn


def _angles(x, frequency):
    return torch.arange(x.shape[-2])[:, None] * frequency


def _joined(a, b):
    return torch.stack([a, b], dim=-1).flatten(-2)


class my_rotate:
    along_the_batch = wrong("Takes the first axis for the positions.",
        lambda x, frequency: turn(x.transpose(0, -2), frequency).transpose(0, -2))
    even_columns_only = wrong("Gives back one column of each pair.",
        lambda x, frequency: x[..., 0::2] * _angles(x, frequency).cos())
    no_gradient = wrong("Right numbers, without a gradient.", lambda x, frequency: turn(x.detach(), frequency))

    def halves_as_pairs(x, frequency):
        """Pairs column j with column j + dim/2, as many libraries do."""
        a, b = x.chunk(2, dim=-1)
        angle = _angles(x, frequency)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def no_minus(x, frequency):
        """(a cos + b sin, a sin + b cos) is no rotation."""
        a, b, angle = x[..., 0::2], x[..., 1::2], _angles(x, frequency)
        return _joined(a * angle.cos() + b * angle.sin(), a * angle.sin() + b * angle.cos())

    def the_other_way_round(x, frequency):
        """Turns clockwise."""
        a, b, angle = x[..., 0::2], x[..., 1::2], _angles(x, frequency)
        return _joined(a * angle.cos() + b * angle.sin(), b * angle.cos() - a * angle.sin())

    def one_frequency(x, frequency):
        """The same angle for all pairs."""
        a, b = x[..., 0::2], x[..., 1::2]
        angle = torch.arange(x.shape[-2])[:, None].float()
        return _joined(a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())

    def a_base_of_its_own(x, frequency):
        """Computes the frequencies anew, whatever it is given."""
        own = 10_000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        a, b, angle = x[..., 0::2], x[..., 1::2], _angles(x, own)
        return _joined(a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())

    def writes_into_its_input(x, frequency):
        """Right numbers, in the caller's memory."""
        x[...] = turn(x, frequency)
        return x

    def divides_by_the_position(x, frequency):
        """0 / 0 at position 0."""
        place = torch.arange(x.shape[-2])[:, None]
        return turn(x, frequency) * place / place

    def forgets_the_type(x, frequency):
        """Angles in float64, as in the table of sinusoids, and nothing turned back: the next product fails."""
        a, b, angle = x[..., 0::2], x[..., 1::2], _angles(x, frequency).double()
        return _joined(a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())

    def one_position_at_a_time(x, frequency):
        """Right numbers, in a loop over positions: seven minutes in place of seconds for the chapter's readers."""
        return torch.stack([turn(x, frequency)[..., i, :] for i in range(x.shape[-2])], dim=-2)


class fixed_add:
    still_by_sequence = wrong("No longer in place, but row b for all tokens of sequence b.",
        lambda x, table: x + table[: x.shape[0], None])
    transposes_for_good = wrong("Made for (length, batch, d), and not turned back.",
        lambda x, table: x.transpose(0, 1) + table[: x.shape[1], None])

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
        "a": 0,  # takes cos 0 for 0
        "b": 14,  # thinks that later positions are longer vectors
        "c": 2.0,  # the cosine of one degree
        "d": 9.24,  # thinks that later positions are longer vectors
        "e": 6,  # the period of the fast pair
    },
}


ANSWERS = {
    "a_base_of_its_own": ("its own frequency", "position times entry j"),
}
