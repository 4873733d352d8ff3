"""Mistakes in the exercises of *Start here*, each with the property that catches it and its hint."""

import torch
from mistakes.table import mistake


def _without(weights, key):
    return weights.index_fill(1, torch.tensor(key), 0)


def _shared(weights):
    return weights / weights.sum(dim=1, keepdim=True)


@mistake("answers_without", caught_by="keeps the ratios", hint="divided by one number for each row")
def adds_equal_parts(weights, values, key):
    """The forbidden weight is shared in equal parts, not in proportion."""
    return _without(weights + weights[:, key, None] / (weights.shape[1] - 1), key) @ values


@mistake(
    "answers_without",
    caught_by="returns one answer for each query",
    hint="What shape does this product",
)
def forgets_the_product(weights, values, key):
    """Gives the weights back."""
    return _shared(_without(weights, key))


@mistake(
    "answers_without",
    caught_by="returns 1 everywhere if all values",
    hint="What do the weights of a row sum to",
)
def does_not_share(weights, values, key):
    """The rows sum to less than 1."""
    return _without(weights, key) @ values


@mistake(
    "answers_without",
    caught_by="returns 1 everywhere if all values",
    hint="What do the weights of a row sum to",
)
def zeroes_the_value(weights, values, key):
    """The key keeps its weight, on a value of 0."""
    return weights @ values.index_fill(0, torch.tensor(key), 0)


@mistake(
    "answers_without",
    caught_by="returns 1 everywhere if all values",
    hint="Do the sums of the rows meet the rows?",
)
def without_keepdim(weights, values, key):
    """The sums of the rows meet the columns, or nothing."""
    return _without(weights, key) / _without(weights, key).sum(dim=1) @ values


@mistake("answers_without", caught_by="ignores the value", hint="exp(0) = 1")
def softmax_of_the_rest(weights, values, key):
    """A softmax gives the 0 a weight again."""
    return _without(weights, key).softmax(dim=1) @ values


@mistake("answers_without", caught_by="keeps the ratios", hint="Does anything happen")
def equal_parts(weights, values, key):
    """All others get the same."""
    return _shared(_without((weights > 0).float(), key)) @ values


@mistake("answers_without", caught_by="ignores the value", hint="a row, or a column")
def forbids_a_query(weights, values, key):
    """A row is set to 0, not a column."""
    kept = weights.index_fill(0, torch.tensor(min(key, len(weights) - 1)), 0)
    return kept / (kept.sum(dim=1, keepdim=True) + 1e-9) @ values


@mistake(
    "answers_without",
    caught_by="returns 1 everywhere if all values",
    hint="What do the weights of a row sum",
)
def sums_of_columns(weights, values, key):
    """Divides by the sums of the columns."""
    kept = _without(weights, key)
    return kept / kept.sum(dim=0).clamp(min=1e-9) @ values


ON_PAPER = {
    "one_word": {
        "a": "like",  # without it: I do not want the house
        "b": "book",  # without it: my flat
        "c": "old",  # without it: the woman sleeps
    },
}
