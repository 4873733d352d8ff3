"""Seeded mistakes for the exercises of *Start here*: each must fail its check with a hint."""

import torch
from mistakes.table import wrong


def _without(weights, key):
    return weights.index_fill(1, torch.tensor(key), 0)


def _shared(weights):
    return weights / weights.sum(dim=1, keepdim=True)


class answers_without:
    adds_equal_parts = wrong("The forbidden weight is shared in equal parts, not in proportion.",
        lambda weights, values, key: _without(weights + weights[:, key, None] / (weights.shape[1] - 1), key) @ values)

    forgets_the_product = wrong("Gives the weights back.",
        lambda weights, values, key: _shared(_without(weights, key)))
    does_not_share = wrong("The rows sum to less than 1.",
        lambda weights, values, key: _without(weights, key) @ values)
    zeroes_the_value = wrong("The key keeps its weight, on a value of 0.",
        lambda weights, values, key: weights @ values.index_fill(0, torch.tensor(key), 0))
    without_keepdim = wrong("The sums of the rows meet the columns, or nothing.",
        lambda weights, values, key: _without(weights, key) / _without(weights, key).sum(dim=1) @ values)
    softmax_of_the_rest = wrong("A softmax gives the 0 a weight again.",
        lambda weights, values, key: _without(weights, key).softmax(dim=1) @ values)
    equal_parts = wrong("All others get the same.",
        lambda weights, values, key: _shared(_without((weights > 0).float(), key)) @ values)

    def forbids_a_query(weights, values, key):
        """A row is set to 0, not a column."""
        kept = weights.index_fill(0, torch.tensor(min(key, len(weights) - 1)), 0)
        return kept / (kept.sum(dim=1, keepdim=True) + 1e-9) @ values

    def sums_of_columns(weights, values, key):
        """Divides by the sums of the columns."""
        kept = _without(weights, key)
        return kept / kept.sum(dim=0).clamp(min=1e-9) @ values


ANSWERS = {
    "does_not_share": ("if all values are 1", "What do the weights of a row sum to"),
    "zeroes_the_value": ("if all values are 1", "What do the weights of a row sum to"),
    "forbids_a_query": ("ignores the value", "a row, or a column"),
    "softmax_of_the_rest": ("ignores the value", "exp(0) = 1"),
    "adds_equal_parts": ("keeps the ratios", "divided by one number for each row"),
    "without_keepdim": ("if all values are 1", "Do the sums of the rows meet the rows?"),
}
"""What catches the likeliest, and the hint that comes first."""

ON_PAPER = {
    "one_word": {
        "a": "like",  # without it: I do not want the house
        "b": "book",  # without it: my flat
        "c": "old",  # without it: the woman sleeps
    },
}
