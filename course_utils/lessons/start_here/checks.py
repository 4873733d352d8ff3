"""Checks: a matrix of weights, its shape and its rows."""

import torch

from course_utils.lessons.check import Check, Property, expect_close, expect_shape

__all__ = ["average_weights", "nearness_weights"]

# Average pooling ----------------------------------------------------------------------------------


def _has_queries_down_and_keys_across(candidate):
    for num_queries, num_keys in ((2, 5), (4, 1), (1, 3)):
        expect_shape(candidate(num_queries, num_keys), (num_queries, num_keys))


def _equal_within_a_row(candidate):
    weights = candidate(3, 4)
    expect_close(
        weights, weights[:, :1].expand(3, 4), "the keys of one query get different weights"
    )


def _rows_sum_to_one(candidate):
    for num_queries, num_keys in ((2, 5), (4, 1), (6, 3)):
        sums = candidate(num_queries, num_keys).sum(dim=-1)
        expect_close(sums, torch.ones(num_queries), "the sums of the rows are not 1")


average_weights = Check(
    "average_weights",
    [
        Property(
            "the shape is (queries, keys)",
            _has_queries_down_and_keys_across,
            "One row for each query, one column for each key: which of the two sizes comes first?",
        ),
        Property(
            "all keys of a query get the same weight",
            _equal_within_a_row,
            "An ordinary mean prefers nobody. Does one of your keys get more than the others?",
        ),
        Property(
            "each row sums to 1",
            _rows_sum_to_one,
            "The keys of a row share a total of 1. Among how many keys is it shared?",
        ),
    ],
)


# Nearness: find the bug -----------------------------------------------------------------------------


def _is_square(candidate):
    for length in (1, 2, 5):
        expect_shape(candidate(length), (length, length))


def _each_query_shares_out_one(candidate):
    for length in (1, 3, 6):
        sums = candidate(length).sum(dim=-1)
        expect_close(sums, torch.ones(length), "the sums of the rows are not 1")


def _twice_the_weight_of_a_neighbour(candidate):
    weights = candidate(5)
    itself, neighbour = weights.diagonal()[:-1], weights.diagonal(1)
    expect_close(itself, 2 * neighbour, "a word should get twice the weight of the next word")
    expect_close(weights[0] * torch.arange(1.0, 6.0), weights[0, :1].expand(5), "in the first row")


def _looks_both_ways(candidate):
    weights = candidate(5)
    expect_close(weights, weights.flip(0, 1), "read from its end, the sentence gets other weights")


nearness_weights = Check(
    "nearness_weights",
    [
        Property(
            "the shape is (length, length)",
            _is_square,
            "Every word is a query once and a key once.",
        ),
        Property(
            "each row sums to 1",
            _each_query_shares_out_one,
            "Look at the shape of the sums: by which of them is the entry in row i, column j divided?",
        ),
        Property(
            "at a distance of d, the weight is 1/(1 + d) of the weight at distance 0",
            _twice_the_weight_of_a_neighbour,
            "Only the division has a bug. Compare the entries before it with the formula 1/(1 + |i − j|).",
        ),
        Property(
            "words to the left and to the right count alike",
            _looks_both_ways,
            "The distance from i to j is the distance from j to i.",
        ),
    ],
)
