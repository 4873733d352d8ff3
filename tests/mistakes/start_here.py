"""Seeded mistakes for the exercises of *Start here*: each must fail its check with a hint."""


class answers_without:
    def forgets_the_product(weights, values, key):
        """Gives the weights back."""
        kept = weights.clone()
        kept[:, key] = 0
        return kept / kept.sum(dim=1, keepdim=True)

    def forbids_a_query(weights, values, key):
        """A row is set to 0, not a column."""
        kept = weights.clone()
        kept[min(key, len(kept) - 1)] = 0
        return kept / (kept.sum(dim=1, keepdim=True) + 1e-9) @ values

    def does_not_share(weights, values, key):
        """The rows sum to less than 1."""
        kept = weights.clone()
        kept[:, key] = 0
        return kept @ values

    def zeroes_the_value(weights, values, key):
        """The key keeps its weight, on a value of 0."""
        values = values.clone()
        values[key] = 0
        return weights @ values

    def without_keepdim(weights, values, key):
        """The sums of the rows meet the columns, or nothing."""
        kept = weights.clone()
        kept[:, key] = 0
        return kept / kept.sum(dim=1) @ values

    def sums_of_columns(weights, values, key):
        """Divides by the sums of the columns."""
        kept = weights.clone()
        kept[:, key] = 0
        return kept / kept.sum(dim=0).clamp(min=1e-9) @ values

    def softmax_of_the_rest(weights, values, key):
        """A softmax gives the 0 a weight again."""
        kept = weights.clone()
        kept[:, key] = 0
        return kept.softmax(dim=1) @ values

    def equal_parts(weights, values, key):
        """All others get the same."""
        kept = (weights > 0).float()
        kept[:, key] = 0
        return kept / kept.sum(dim=1, keepdim=True) @ values

    def adds_equal_parts(weights, values, key):
        """The forbidden weight is shared in equal parts, not in proportion."""
        kept = weights + weights[:, key, None] / (weights.shape[1] - 1)
        kept[:, key] = 0
        return kept @ values


ANSWERS = {
    "does_not_share": ("where all values are 1", "What do the weights of a row sum to"),
    "zeroes_the_value": ("where all values are 1", "What do the weights of a row sum to"),
    "forbids_a_query": ("changes nothing", "a row, or a column"),
    "softmax_of_the_rest": ("changes nothing", "exp(0) = 1"),
    "adds_equal_parts": ("keep the ratios", "divided by one number for each row"),
    "without_keepdim": ("where all values are 1", "Do the sums of the rows meet the rows?"),
}
"""What catches the likeliest, and the hint that comes first."""

ON_PAPER = {
    "one_word": {
        "a": "like",  # without it: I do not want the house
        "b": "book",  # without it: my flat
        "c": "old",  # without it: the woman sleeps
    },
}
