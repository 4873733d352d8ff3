"""Mistakes in the exercises of *Positions*, each with the property that catches it and its hint."""

import math

import torch
from mistakes.table import mistake

from course_utils.lessons.positions.rotary import slowed, turn


def _angles(x, frequency):
    return torch.arange(x.shape[-2])[:, None] * frequency


def _turned(x, angle, minus=-1):
    a, b, cos, sin = x[..., 0::2], x[..., 1::2], angle.cos(), angle.sin()
    return torch.stack([a * cos + minus * b * sin, a * sin + b * cos], dim=-1).flatten(-2)


@mistake(
    "my_rotate", caught_by="leaves position 0 unturned", hint="Along which axis do your angles"
)
def along_the_batch(x, frequency):
    """Takes the first axis for the positions."""
    return turn(x.transpose(0, -2), frequency).transpose(0, -2)


@mistake("my_rotate", caught_by="keeps the shape", hint="What shape do your angles have?")
def even_columns_only(x, frequency):
    """Gives back one column of each pair."""
    return x[..., 0::2] * _angles(x, frequency).cos()


@mistake(
    "my_rotate", caught_by="lets gradients reach the input", hint="Which line leaves the graph?"
)
def no_gradient(x, frequency):
    """Right numbers, without a gradient."""
    return turn(x.detach(), frequency)


@mistake(
    "my_rotate", caught_by="keeps the length of each pair", hint="Are both new values computed"
)
def no_minus(x, frequency):
    """(a cos + b sin, a sin + b cos) is no rotation."""
    return _turned(x, _angles(x, frequency), minus=1)


@mistake(
    "my_rotate", caught_by="turns the first pair counterclockwise", hint="What becomes of (1, 0)"
)
def the_other_way_round(x, frequency):
    """Turns clockwise."""
    return _turned(x, -_angles(x, frequency))


@mistake("my_rotate", caught_by="gives every pair its own frequency", hint="Is the angle of pair j")
def one_frequency(x, frequency):
    """The same angle for all pairs."""
    return _turned(x, torch.arange(x.shape[-2])[:, None].float())


@mistake("my_rotate", caught_by="gives every pair its own frequency", hint="position times entry j")
def a_base_of_its_own(x, frequency):
    """Computes the frequencies anew, whatever it is given."""
    return turn(x, 10_000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1]))


@mistake("my_rotate", caught_by="keeps the dtype of its input", hint="converts")
def forgets_the_type(x, frequency):
    """Angles in float64, as in the table of sinusoids: the next product fails."""
    return _turned(x, _angles(x, frequency).double())


@mistake(
    "my_rotate", caught_by="turns the first pair counterclockwise", hint="which of the two sines"
)
def clockwise_in_float64(x, frequency):
    """Turns the wrong way, and in float64: the turn is told first."""
    return _turned(x.double(), -_angles(x, frequency.double()))


@mistake("my_rotate", caught_by="pairs neighboring columns", hint="Where are the first members")
def halves_as_pairs(x, frequency):
    """Pairs column j with column j + dim/2, as many libraries do."""
    turned = _turned(x.unflatten(-1, (2, -1)).mT.flatten(-2), _angles(x, frequency))
    return turned.unflatten(-1, (-1, 2)).mT.flatten(-2)


@mistake("my_rotate", caught_by="leaves its input unchanged", hint="Does a line write into")
def writes_into_its_input(x, frequency):
    """Right numbers, in the caller's memory."""
    x[...] = turn(x, frequency)
    return x


@mistake("my_rotate", caught_by="contains no NaN", hint="Is there a power or a division")
def divides_by_the_position(x, frequency):
    """0 / 0 at position 0."""
    place = torch.arange(x.shape[-2])[:, None]
    return turn(x, frequency) * place / place


@mistake(
    "my_rotate", caught_by="works without a loop over positions", hint="compute all angles at once"
)
def one_position_at_a_time(x, frequency):
    """Right numbers, in a loop over positions: seven minutes in place of seconds for the chapter's readers."""
    return torch.stack([turn(x, frequency)[..., i, :] for i in range(x.shape[-2])], dim=-2)


@mistake(
    "my_slowed",
    caught_by="leaves the fast pairs as they are",
    hint="Which pairs complete a turn within",
)
def all_pairs(frequency, length, factor):
    """Position interpolation: the fast pairs are slowed with the others."""
    return frequency / factor


@mistake(
    "my_slowed",
    caught_by="leaves the fast pairs as they are",
    hint="Which pairs complete a turn within",
)
def the_fast_ones(frequency, length, factor):
    """Slows the fast pairs."""
    return torch.where(2 * math.pi / frequency > length, frequency, frequency / factor)


@mistake(
    "my_slowed",
    caught_by="divides the frequencies",
    reason="as fast as before",
    hint="a long period",
)
def frequency_for_period(frequency, length, factor):
    """Compares the frequency with the length: no pair is slow."""
    return torch.where(frequency > length, frequency / factor, frequency)


@mistake("my_slowed", caught_by="divides the frequencies", hint="What do you compare")
def without_two_pi(frequency, length, factor):
    """Takes 1 / ω for the period."""
    return torch.where(1 / frequency > length, frequency / factor, frequency)


@mistake("my_slowed", caught_by="divides the frequencies", hint="Should a slow pair turn faster")
def faster(frequency, length, factor):
    """Multiplies by the factor."""
    return torch.where(2 * math.pi / frequency > length, frequency * factor, frequency)


@mistake("my_slowed", caught_by="divides the frequencies", hint="Is a factor written into")
def always_64(frequency, length, factor):
    """The factor of the chapter, whatever is asked for."""
    return slowed(frequency, length, 64)


@mistake("my_slowed", caught_by="finds the slow pairs", hint="Does your border between slow")
def always_16(frequency, length, factor):
    """The length of the chapter, whatever is asked for."""
    return slowed(frequency, 16, factor)


@mistake("my_slowed", caught_by="keeps the number of pairs", hint="What shape does your result")
def only_the_slow_ones(frequency, length, factor):
    """Leaves the fast pairs out."""
    return frequency[2 * math.pi / frequency > length] / factor


@mistake("my_slowed", caught_by="leaves its input unchanged", hint="Does a line write into")
def in_place(frequency, length, factor):
    """Right numbers, in the caller's memory."""
    frequency[2 * math.pi / frequency > length] /= factor
    return frequency


@mistake("fixed_add", caught_by="adds row i to token i", hint="What has been added")
def still_by_sequence(x, table):
    """No longer in place, but row b for all tokens of sequence b."""
    return x + table[: x.shape[0], None]


@mistake("fixed_add", caught_by="keeps the shape", hint="Which axis of x (batch, n, d)")
def transposes_for_good(x, table):
    """Made for (length, batch, d), and not turned back."""
    return x.transpose(0, 1) + table[: x.shape[1], None]


@mistake(
    "fixed_add",
    caught_by="leaves tokens and table unchanged",
    hint="What does `x += p` write into?",
)
def still_in_place(x, table):
    """The right rows, in the caller's memory."""
    x += table[: x.shape[1]]
    return x


@mistake(
    "fixed_add",
    caught_by="raises an error for a sequence longer",
    hint="Which operation complains if 21",
)
def says_it_and_goes_on(x, table):
    """Prints what is wrong, and raises nothing."""
    if x.shape[1] > len(table):
        return print("too long")
    return x + table[: x.shape[1]]


@mistake("fixed_add", caught_by="takes a batch that is larger", hint="Does the number of sequences")
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
