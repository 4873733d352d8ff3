"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import torch

from course_utils.positions import rotate

# predicted_products -----------------------------------------------------------------------------


def forgets_the_cosines():
    """Takes cos 0 for 0."""
    return [0, 2, 1.54, 1.54, 628]


def one_pair():
    """Looks at the fast pair only."""
    return [1, 1, 0.54, 0.54, 628]


def fast_period():
    """The period of the fast pair."""
    return [2, 2, 1.54, 1.54, 6]


def grows_with_the_position():
    """Thinks that later positions are longer vectors."""
    return [2, 14, 1.54, 9.24, 628]


def degrees():
    """The cosine of one degree."""
    return [2, 2, 2.0, 2.0, 36000]


# my_rotate --------------------------------------------------------------------------------------


def _angles(x, first=0, base=10_000.0):
    pairs = torch.arange(0, x.shape[-1], 2) / x.shape[-1]
    return (torch.arange(x.shape[-2]) + first)[:, None] * base**-pairs


def _joined(a, b):
    return torch.stack([a, b], dim=-1).flatten(-2)


def halves_as_pairs(x):
    """Pairs column j with column j + dim/2, as many libraries do."""
    a, b = x.chunk(2, dim=-1)
    angle = _angles(x)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def counts_from_one(x):
    """Positions 1, 2, 3, …"""
    a, b, angle = x[..., 0::2], x[..., 1::2], _angles(x, first=1)
    return _joined(a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())


def no_minus(x):
    """(a cos + b sin, a sin + b cos) is no rotation."""
    a, b, angle = x[..., 0::2], x[..., 1::2], _angles(x)
    return _joined(a * angle.cos() + b * angle.sin(), a * angle.sin() + b * angle.cos())


def the_other_way_round(x):
    """Turns clockwise."""
    a, b, angle = x[..., 0::2], x[..., 1::2], _angles(x)
    return _joined(a * angle.cos() + b * angle.sin(), b * angle.cos() - a * angle.sin())


def not_interleaved(x):
    """Turns the right pairs and joins them as halves."""
    a, b, angle = x[..., 0::2], x[..., 1::2], _angles(x)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def another_base(x):
    """Base 1,000."""
    return rotate(x, base=1_000.0)


def half_the_exponent(x):
    """10,000^(−j/dim)."""
    return rotate(x, base=100.0)


def one_frequency(x):
    """The same angle for all pairs."""
    a, b = x[..., 0::2], x[..., 1::2]
    angle = torch.arange(x.shape[-2])[:, None].float()
    return _joined(a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())


def second_from_the_new_first(x):
    """Overwrites a before b needs it."""
    a, b, angle = x[..., 0::2], x[..., 1::2], _angles(x)
    a = a * angle.cos() - b * angle.sin()
    return _joined(a, a * angle.sin() + b * angle.cos())


def writes_into_its_input(x):
    """Right numbers, in the caller's memory."""
    x[...] = rotate(x)
    return x


def along_the_batch(x):
    """Takes the first axis for the positions."""
    return rotate(x.transpose(0, -2)).transpose(0, -2)


def even_columns_only(x):
    """Gives back one column of each pair."""
    return x[..., 0::2] * _angles(x).cos()


def no_gradient(x):
    """Right numbers, without a gradient."""
    return rotate(x.detach())


def divides_by_the_position(x):
    """0 / 0 at position 0."""
    place = torch.arange(x.shape[-2])[:, None]
    return rotate(x) * place / place


def forgets_the_type(x):
    """Angles in float64, as in the table of sinusoids, and nothing turned back: the next product fails."""
    a, b, angle = x[..., 0::2], x[..., 1::2], _angles(x).double()
    return _joined(a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())


def one_position_at_a_time(x):
    """Right numbers, in a loop over positions: seven minutes in place of seconds for the chapter's readers."""
    return torch.cat([rotate(x[..., [i], :], start=i) for i in range(x.shape[-2])], dim=-2)


# fixed_add --------------------------------------------------------------------------------------


def still_by_sequence(x, table):
    """No longer in place, but row b for all tokens of sequence b."""
    return x + table[: x.shape[0], None]


def still_in_place(x, table):
    """The right rows, in the caller's memory."""
    x += table[: x.shape[1]]
    return x


def row_zero_for_all(x, table):
    """The first row for each token."""
    return x + table[:1]


def the_other_end(x, table):
    """The last rows of the table."""
    return x + table[-x.shape[1] :]


def from_one(x, table):
    """Off by one."""
    return x + table[1 : x.shape[1] + 1]


def cut_to_the_table(x, table):
    """Tokens that have no row are dropped without a word."""
    n = min(x.shape[1], len(table))
    return x[:, :n] + table[:n]


def repeats_the_table(x, table):
    """Begins again at row 0 beyond the table."""
    return x + table[torch.arange(x.shape[1]) % len(table)]


def writes_into_the_table(x, table):
    """Adds the tokens to the table."""
    rows = table[: x.shape[1]]
    answer = x + rows
    rows += 1
    return answer


def transposes_for_good(x, table):
    """Made for (length, batch, d), and not turned back."""
    return x.transpose(0, 1) + table[: x.shape[1], None]


def says_it_and_goes_on(x, table):
    """Prints what is wrong, and raises nothing."""
    if x.shape[1] > len(table):
        return print("too long")
    return x + table[: x.shape[1]]


def needs_batch_rows(x, table):
    """Right, as long as there are no more sequences than rows."""
    table[x.shape[0] - 1]
    return x + table[: x.shape[1]]


MISTAKES = {
    "predicted_products": [
        forgets_the_cosines,
        one_pair,
        fast_period,
        grows_with_the_position,
        degrees,
    ],
    "my_rotate": [
        halves_as_pairs,
        counts_from_one,
        no_minus,
        the_other_way_round,
        not_interleaved,
        another_base,
        half_the_exponent,
        one_frequency,
        second_from_the_new_first,
        writes_into_its_input,
        along_the_batch,
        even_columns_only,
        no_gradient,
        divides_by_the_position,
        forgets_the_type,
        one_position_at_a_time,
    ],
    "fixed_add": [
        still_by_sequence,
        still_in_place,
        row_zero_for_all,
        the_other_end,
        from_one,
        cut_to_the_table,
        repeats_the_table,
        writes_into_the_table,
        transposes_for_good,
        needs_batch_rows,
        says_it_and_goes_on,
    ],
}
