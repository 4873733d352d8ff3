"""Checks of *PyTorch in an hour*: a matrix of weights, shapes on paper, rows that sum to 1."""

from typing import Any

import torch

from course_utils.kit.check import Check
from course_utils.kit.expect import (
    WrongKind,
    expect,
    expect_close,
    expect_shape,
    expect_sums_to_one,
)
from course_utils.kit.on_paper import on_paper

# Equal weights ----------------------------------------------------------------------------------

average_weights = Check()


@average_weights.must("returns one weight for each pair, of shape (queries, keys)")
def returns_one_weight_for_each_pair_of_shape(candidate):
    """We want one row for each query and one column for each key. Which size comes first? Write the shape as (rows,
    columns).
    """
    for shape in ((2, 5), (4, 1), (1, 3)):
        expect_shape(candidate(*shape), shape)


@average_weights.must("gives all keys of a query the same weight")
def gives_all_keys_of_query_same_weight(candidate):
    """A mean prefers no key. Does one of your keys get more than the others? Print a 3 × 4 matrix."""
    weights = expect_shape(candidate(3, 4), (3, 4))
    expect_close(weights, weights[:, :1].expand(3, 4), "the weights of a query")


@average_weights.must("gives each query weights that sum to 1")
def gives_each_query_weights_that_sum_to_1(candidate):
    """The keys of a row share a total of 1. Among how many keys is it shared? Only one of your two numbers counts them.

    With five keys each gets 1/5, however many queries there are, so divide by the number of keys.
    """
    for shape in ((2, 5), (4, 1), (6, 3)):
        expect_sums_to_one(candidate(*shape), shape)


# Six shapes on paper ------------------------------------------------------------------------------


def _read_shape(answer: Any) -> tuple | str:
    """The shape in an answer, or "error", in any common spelling."""
    answer = answer.lower().strip() if isinstance(answer, str) else answer
    answer = tuple(answer) if isinstance(answer, list | tuple) else answer
    number = f"{answer!r} is a number; a shape with one axis is written with a comma, as (9,)"
    expect(not isinstance(answer, int), number)
    if not isinstance(answer, tuple) and answer != "error":
        raise WrongKind(f'got {answer!r}, expected a tuple or "error"')
    return answer


six_shapes = on_paper({
    "a": ((5, 5), "the shape of the sum of (5, 1) and (5,)",
         "Write the two shapes one below the other, flush right. What is above the 5 of (5,)?",
         "The missing axis counts as 1, so we have (5, 1) and (1, 5). In each place the 1 is repeated."),
    "b": ((4, 2, 3), "the shape that three axes and two give",
         "Compare from the right: 3 with 3, then 1 with 2. What happens to the 4, which has no partner?"),
    "c": ("error", "what (2, 3) times (2,) gives",
         "Compare from the right. Is one of the first two sizes that meet a 1? If not, they have to be equal."),
    "d": ((4,), "the shape of an entry along the first axis",
         "A number as an index takes one entry out of its axis. Which axes are left?",
         "One axis is left, the last. We write a shape with one axis with a comma, as (9,)."),
    "e": ((1, 6, 1), "the shape with two new axes",
         "`None` adds an axis of size 1 exactly where we write it. Where are the two here, before or after the old "
         "axis?"),
    "f": ((7, 5, 4), "the shape of each with each",
         "With the new axis the first tensor has the shape (7, 1, 4). What do you get if you compare this with (5, "
         "4) from the right?",
         "It is 4 with 4, then 1 with 5, then 7 with nothing. A 1 is repeated, and a missing axis counts as 1."),
}, read=_read_shape)  # fmt: skip

# Nearness: find the bug -------------------------------------------------------------------------

nearness_weights = Check()


@nearness_weights.must("returns a matrix of shape (length, length)")
def returns_matrix_of_shape(candidate):
    """How many queries and how many keys does a sentence of this length have? Every word is a query once and a key
    once.
    """
    for length in (1, 2, 5):
        expect_shape(candidate(length), (length, length))


@nearness_weights.must("gives each query weights that sum to 1")
def nearness_weights_sum_to_1(candidate):
    """What is the shape of the sums? A shape (length,) broadcasts along the last axis, so column j is divided by the
    sum of row j.

    We want to divide row i by its own sum, so the sums need the shape (length, 1). `keepdim=True` keeps that axis.
    """
    for length in (1, 3, 6):
        expect_sums_to_one(candidate(length), (length, length))


@nearness_weights.must("gives a key at distance d exactly 1/(1 + d) of the weight at distance 0")
def divides_weight_by_1_plus_distance(candidate):
    """What do the entries look like before you divide? Compare them with 1/(1 + |i − j|), because only the division has
    a bug.
    """
    weights = expect_shape(candidate(5), (5, 5))
    positions = torch.arange(5)
    distance = (positions[:, None] - positions).abs()
    expect_close(
        weights * (1 + distance),
        weights.diagonal()[:, None].expand(5, 5),
        "each weight times 1 + d",
    )


@nearness_weights.must("treats words to the left and to the right the same")
def treats_words_to_left_and_to_right_same(candidate):
    """Is the distance from i to j always the distance from j to i? Look for a missing absolute value."""
    weights = expect_shape(candidate(5), (5, 5))
    expect_close(
        weights, weights.flip(0, 1), "the weights of the sentence, compared with the reversed one"
    )
