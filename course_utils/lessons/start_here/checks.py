"""Checks of *Start here*: a matrix of weights, its shape and its rows."""

import torch

from course_utils.lessons.check import Check, expect_close, expect_shape, expect_sums_to_one

# Average pooling --------------------------------------------------------------------------------

average_weights = Check("average_weights")


@average_weights.must(
    "the shape is (queries, keys)",
    hint="One row for each query, one column for each key: which of the two sizes comes first?",
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
    hint="The keys of a row share a total of 1. Among how many keys is it shared?",
)
def _(candidate):
    for shape in ((2, 5), (4, 1), (6, 3)):
        expect_sums_to_one(candidate(*shape), shape)


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
    hint="Look at the shape of the sums. Which of them divides the entry in row i, column j?",
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
    itself, neighbor = weights.diagonal()[:-1], weights.diagonal(1)
    expect_close(itself, 2 * neighbor, "a word should get twice the weight of the next word")
    expect_close(weights[0] * torch.arange(1.0, 6.0), weights[0, :1].expand(5), "in the first row")


@nearness_weights.must(
    "words to the left and to the right count the same",
    hint="Is the distance from i to j always the distance from j to i?",
)
def _(candidate):
    weights = expect_shape(candidate(5), (5, 5))
    expect_close(weights, weights.flip(0, 1), "the weights against those of the reversed sentence")
