"""Checks of *PyTorch in an hour*: a matrix of weights, shapes on paper, rows that sum to 1."""

from typing import Any

import torch

from course_utils.kit.check import (
    Check,
    WrongKind,
    expect,
    expect_close,
    expect_shape,
    expect_sums_to_one,
)
from course_utils.kit.on_paper import on_paper

# Equal weights ----------------------------------------------------------------------------------

average_weights = Check("average_weights")


@average_weights.must("the shape is (queries, keys)")
def _(candidate):
    """One row for each query, one column for each key: which size comes first? Write it as (rows, columns)."""
    for shape in ((2, 5), (4, 1), (1, 3)):
        expect_shape(candidate(*shape), shape)


@average_weights.must("all keys of a query get the same weight")
def _(candidate):
    """A mean prefers no key. Does one of your keys get more than the others?"""
    weights = expect_shape(candidate(3, 4), (3, 4))
    expect_close(weights, weights[:, :1].expand(3, 4), "every key against the first key")


@average_weights.must("each row sums to 1")
def _(candidate):
    """The keys of a row share a total of 1. Among how many keys is it shared?

    With five keys, each gets 1/5, however many queries there are. Which of the two numbers divides?
    """
    for shape in ((2, 5), (4, 1), (6, 3)):
        expect_sums_to_one(candidate(*shape), shape)


# Six shapes on paper ------------------------------------------------------------------------------


def _a_shape(answer: Any) -> tuple | str:
    """A shape, or "error", however it is written."""
    answer = answer.lower().strip() if isinstance(answer, str) else answer
    answer = tuple(answer) if isinstance(answer, list | tuple) else answer
    number = f"{answer!r} is a number; a shape with one axis is written with a comma, as (9,)"
    expect(not isinstance(answer, int), number)
    if not isinstance(answer, tuple) and answer != "error":
        raise WrongKind(f'{answer!r} is no shape; a tuple or "error" is expected')
    return answer


six_shapes = on_paper(
    "six_shapes", __name__, {
        "a": ((5, 5), "what the sum of (5, 1) and (5,) has",
             "Write the two shapes one below the other, flush right. What stands above the 5 of (5,)?",
             "The missing axis counts as 1, so it is (5, 1) and (1, 5). In each place a 1 is repeated."),
        "b": ((4, 2, 3), "what three axes and two give",
             "Compare from the right: 3 with 3, then 1 with 2. What becomes of the 4?"),
        "c": ("error", "what (2, 3) times (2,) gives",
             "Compare from the right. Is one of the first two sizes that meet a 1?"),
        "d": ((4,), "what an entry along the first axis has",
             "A number as an index takes one entry out of its axis. Which axes are left?",
             "One axis is left, the last. A shape with one axis is written with a comma, as (9,)."),
        "e": ((1, 6, 1), "what two new axes give",
             "`None` makes an axis of size 1 where it stands. Where do the two stand?"),
        "f": ((7, 5, 4), "what each with each gives",
             "With the new axis the first has the shape (7, 1, 4). Compare this with (5, 4) from the right.",
             "4 with 4, then 1 with 5, then 7 with nothing: what is repeated?"),
    }, read=_a_shape,
)  # fmt: skip

# Nearness: find the bug -------------------------------------------------------------------------

nearness_weights = Check("nearness_weights")


@nearness_weights.must("the shape is (length, length)")
def _(candidate):
    """Every word is a query once and a key once."""
    for length in (1, 2, 5):
        expect_shape(candidate(length), (length, length))


@nearness_weights.must("each row sums to 1")
def _(candidate):
    """What is the shape of the sums? By which of them is the entry in row i, column j divided?

    A shape (length,) meets the last axis, the columns. Which shape would meet the rows?
    """
    for length in (1, 3, 6):
        expect_sums_to_one(candidate(length), (length, length))


@nearness_weights.must("at a distance of d, the weight is 1/(1 + d) of the weight at distance 0")
def _(candidate):
    """Only the division has a bug. Compare the entries before it with the formula 1/(1 + |i − j|)."""
    weights = expect_shape(candidate(5), (5, 5))
    positions = torch.arange(5)
    distance = (positions[:, None] - positions).abs()
    expect_close(
        weights * (1 + distance),
        weights.diagonal()[:, None].expand(5, 5),
        "each weight times 1 + d, against the weight at distance 0",
    )


@nearness_weights.must("words to the left and to the right count the same")
def _(candidate):
    """Is the distance from i to j always the distance from j to i?"""
    weights = expect_shape(candidate(5), (5, 5))
    expect_close(weights, weights.flip(0, 1), "the weights against those of the reversed sentence")
