"""Mistakes in the exercises of *PyTorch in an hour*, each with the property that catches it and its hint."""

import torch
from mistakes.table import mistake


@mistake(
    "average_weights", caught_by="gives each query weights that sum", hint="Among how many keys"
)
def shared_by_whole_division(num_queries, num_keys):
    """`//` rounds the weights down to 0."""
    return torch.full((num_queries, num_keys), float(1 // num_keys))


@mistake("average_weights", caught_by="gives all keys", hint="Does one of your keys get more")
def random_weights(num_queries, num_keys):
    """Rows sum to 1, by chance of different sizes."""
    return torch.rand(num_queries, num_keys).softmax(dim=-1)


@mistake(
    "average_weights", caught_by="returns one weight for each pair", hint="Which size comes first?"
)
def only_one_row(num_queries, num_keys):
    """The weights of one query, without an axis for the queries."""
    return torch.full((num_keys,), 1 / num_keys)


def _raw(length):
    positions = torch.arange(length)
    return 1 / (1 + (positions[:, None] - positions).abs())


@mistake(
    "nearness_weights", caught_by="returns a matrix of shape", hint="How many queries and how many"
)
def without_queries(length):
    """The row of the first word alone."""
    return _raw(length)[0] / _raw(length)[0].sum()


@mistake(
    "nearness_weights",
    caught_by="gives each query weights that sum",
    hint="What is the shape of the sums?",
)
def without_keepdim(length):
    """The bug as it stands on the page: the sums meet the columns."""
    raw = _raw(length)
    return raw / raw.sum(dim=-1)


@mistake(
    "nearness_weights",
    caught_by="gives a key at distance d exactly",
    hint="What do the entries look like",
)
def signed_distance(length):
    """Keys to the left count as if they were at distance 0."""
    positions = torch.arange(length)
    raw = 1 / (1 + (positions - positions[:, None]).clamp(min=0))
    return raw / raw.sum(dim=-1, keepdim=True)


@mistake(
    "nearness_weights",
    caught_by="gives a key at distance d exactly",
    hint="What do the entries look like",
)
def one_weight_changed(length):
    """A single pair of words, apart by two, has a weight of its own; so has its mirror image."""
    raw = _raw(length)
    if length > 4:
        raw[1, 3] = raw[-2, -4] = 0.9
    return raw / raw.sum(dim=-1, keepdim=True)


ON_PAPER = {
    "six_shapes": {
        "a": (5, 1),  # the column stays one
        "b": (4, 1, 3),  # an axis of size 1 stays
        "c": (2, 3),  # broadcasts from the left
        "d": 4,  # a number for a shape
        "e": (6, 1),  # one new axis of two
        "f": (7, 4),  # forgets the last axis
    },
}
