"""Seeded mistakes for the exercises of *PyTorch in an hour*: each must fail its check with a hint."""

import torch
from mistakes.table import wrong


class average_weights:
    shared_by_whole_division = wrong("`//` rounds the weights down to 0.",
        lambda num_queries, num_keys: torch.full((num_queries, num_keys), float(1 // num_keys)))
    random_weights = wrong("Rows sum to 1, by chance of different sizes.",
        lambda num_queries, num_keys: torch.rand(num_queries, num_keys).softmax(dim=-1))
    only_one_row = wrong("The weights of one query, without an axis for the queries.",
        lambda num_queries, num_keys: torch.full((num_keys,), 1 / num_keys))


def _raw(length):
    positions = torch.arange(length)
    return 1 / (1 + (positions[:, None] - positions).abs())


class nearness_weights:
    without_queries = wrong("The row of the first word alone.", lambda length: _raw(length)[0] / _raw(length)[0].sum())

    def without_keepdim(length):
        """The bug as it stands on the page: the sums meet the columns."""
        raw = _raw(length)
        return raw / raw.sum(dim=-1)

    def signed_distance(length):
        """Keys to the left count as if they were at distance 0."""
        positions = torch.arange(length)
        raw = 1 / (1 + (positions - positions[:, None]).clamp(min=0))
        return raw / raw.sum(dim=-1, keepdim=True)

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
