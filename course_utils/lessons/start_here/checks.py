"""Checks of *Start here*: a matrix of weights, shapes on paper, rows that sum to 1."""

import torch

from course_utils.lessons.check import (
    Check,
    WrongKind,
    expect,
    expect_close,
    expect_shape,
    expect_sums_to_one,
)

# Average pooling --------------------------------------------------------------------------------

average_weights = Check("average_weights")


@average_weights.must(
    "the shape is (queries, keys)",
    hint="One row for each query, one column for each key: which size comes first? Write it as (rows, columns).",
)
def _(candidate):
    for shape in ((2, 5), (4, 1), (1, 3)):
        expect_shape(candidate(*shape), shape)


@average_weights.must(
    "all keys of a query get the same weight",
    hint="A mean prefers no key. Does one of your keys get more than the others?",
)
def _(candidate):
    weights = expect_shape(candidate(3, 4), (3, 4))
    expect_close(weights, weights[:, :1].expand(3, 4), "every key against the first key")


@average_weights.must(
    "each row sums to 1",
    hint=(
        "The keys of a row share a total of 1. Among how many keys is it shared?",
        "With five keys, each gets 1/5, however many queries there are. Which of the two numbers divides?",
    ),
)
def _(candidate):
    for shape in ((2, 5), (4, 1), (6, 3)):
        expect_sums_to_one(candidate(*shape), shape)


# Six shapes on paper ------------------------------------------------------------------------------

six_shapes = Check("six_shapes", judge_all=True)


SHAPES: dict[str, tuple | str] = {
    "a": (5, 5), "b": (4, 2, 3), "c": "error", "d": (4,), "e": (1, 6, 1), "f": (7, 5, 4),
}  # fmt: skip


def _expect_answer(candidate, letter: str) -> None:
    """Fail unless the answer to one of the six is right; capitals in "Error" do not count."""
    answers = candidate()
    if not isinstance(answers, list | tuple):
        raise WrongKind(f"a list of six answers is expected, got {type(answers).__name__}")
    expect(len(answers) == 6, f"{len(answers)} entries; expected six answers, for a to f")
    answer = answers["abcdef".index(letter)]
    answer = answer.lower().strip() if isinstance(answer, str) else answer
    answer = tuple(answer) if isinstance(answer, list | tuple) else answer
    said = f"your answer to ({letter}) is {answer!r}"
    if not isinstance(answer, int | tuple) and answer != "error":
        raise WrongKind(f'{said}; a tuple or "error" is expected')
    if isinstance(answer, int):
        said += ", a number; a shape with one axis is written with a comma, as (9,)"
    expect(answer == SHAPES[letter], said)


@six_shapes.must(
    "(a) is what the sum of (5, 1) and (5,) has",
    hint=(
        "Write the two shapes one below the other, flush right. What stands above the 5 of (5,)?",
        "The missing axis counts as 1, so it is (5, 1) and (1, 5). In each place a 1 is repeated.",
    ),
)
def _(candidate):
    _expect_answer(candidate, "a")


@six_shapes.must(
    "(b) is what three axes and two give",
    hint="Compare from the right: 3 with 3, then 1 with 2. What becomes of the 4?",
)
def _(candidate):
    _expect_answer(candidate, "b")


@six_shapes.must(
    "(c) is what (2, 3) times (2,) gives",
    hint="Compare from the right. Is one of the first two sizes that meet a 1?",
)
def _(candidate):
    _expect_answer(candidate, "c")


@six_shapes.must(
    "(d) is what an entry along the first axis has",
    hint=(
        "A number as an index takes one entry out of its axis. Which axes are left?",
        "One axis is left, the last. A shape with one axis is written with a comma, as (9,).",
    ),
)
def _(candidate):
    _expect_answer(candidate, "d")


@six_shapes.must(
    "(e) is what two new axes give",
    hint="`None` makes an axis of size 1 where it stands. Where do the two stand?",
)
def _(candidate):
    _expect_answer(candidate, "e")


@six_shapes.must(
    "(f) is what each with each gives",
    hint=(
        "With the new axis the first has the shape (7, 1, 4). Compare this with (5, 4) from the right.",
        "4 with 4, then 1 with 5, then 7 with nothing: what is repeated?",
    ),
)
def _(candidate):
    _expect_answer(candidate, "f")


# Nearness: find the bug -------------------------------------------------------------------------

nearness_weights = Check("nearness_weights")


@nearness_weights.must(
    "the shape is (length, length)", hint="Every word is a query once and a key once."
)
def _(candidate):
    for length in (1, 2, 5):
        expect_shape(candidate(length), (length, length))


@nearness_weights.must(
    "each row sums to 1",
    hint=(
        "What is the shape of the sums? By which of them is the entry in row i, column j divided?",
        "A shape (length,) meets the last axis, the columns. Which shape would meet the rows?",
    ),
)
def _(candidate):
    for length in (1, 3, 6):
        expect_sums_to_one(candidate(length), (length, length))


@nearness_weights.must(
    "at a distance of d, the weight is 1/(1 + d) of the weight at distance 0",
    hint="Only the division has a bug. Compare the entries before it with the formula 1/(1 + |i − j|).",
)
def _(candidate):
    weights = expect_shape(candidate(5), (5, 5))
    positions = torch.arange(5)
    distance = (positions[:, None] - positions).abs()
    expect_close(
        weights * (1 + distance),
        weights.diagonal()[:, None].expand(5, 5),
        "each weight times 1 + d, against the weight at distance 0",
    )


@nearness_weights.must(
    "words to the left and to the right count the same",
    hint="Is the distance from i to j always the distance from j to i?",
)
def _(candidate):
    weights = expect_shape(candidate(5), (5, 5))
    expect_close(weights, weights.flip(0, 1), "the weights against those of the reversed sentence")
