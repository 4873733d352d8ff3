"""Seeded mistakes for the exercises of *Start here*: each must fail its check with a hint."""

import torch


def queries_and_keys_swapped(num_queries, num_keys):
    """One row for each key."""
    return torch.full((num_keys, num_queries), 1 / num_keys)


def shared_among_queries(num_queries, num_keys):
    """Columns, not rows, sum to 1."""
    return torch.full((num_queries, num_keys), 1 / num_queries)


def not_shared_at_all(num_queries, num_keys):
    """Each weight is 1."""
    return torch.ones(num_queries, num_keys)


def shared_by_whole_division(num_queries, num_keys):
    """`//` rounds the weights down to 0."""
    return torch.full((num_queries, num_keys), float(1 // num_keys))


def the_first_key_takes_all(num_queries, num_keys):
    """Rows sum to 1, but only one key counts."""
    weights = torch.zeros(num_queries, num_keys)
    weights[:, 0] = 1
    return weights


def random_weights(num_queries, num_keys):
    """Rows sum to 1, by chance of different sizes."""
    return torch.rand(num_queries, num_keys).softmax(dim=-1)


def only_one_row(num_queries, num_keys):
    """The weights of one query, without an axis for the queries."""
    return torch.full((num_keys,), 1 / num_keys)


def _raw(length):
    positions = torch.arange(length)
    return 1 / (1 + (positions[:, None] - positions).abs())


def without_keepdim(length):
    """The bug as it stands in the chapter: the sums meet the columns."""
    raw = _raw(length)
    return raw / raw.sum(dim=-1)


def wrong_axis(length):
    """Each column sums to 1."""
    raw = _raw(length)
    return raw / raw.sum(dim=0, keepdim=True)


def whole_sum(length):
    """All weights together sum to 1."""
    raw = _raw(length)
    return raw / raw.sum()


def softmax_instead(length):
    """Rows sum to 1, with other proportions."""
    return _raw(length).softmax(dim=-1)


def looks_back_only(length):
    """Keys to the right get nothing, so the first row is its own."""
    raw = _raw(length).tril()
    return raw / raw.sum(dim=-1, keepdim=True)


def signed_distance(length):
    """Keys to the left count as if they were at distance 0."""
    positions = torch.arange(length)
    raw = 1 / (1 + (positions - positions[:, None]).clamp(min=0))
    return raw / raw.sum(dim=-1, keepdim=True)


def words_in_the_middle_look_at_neighbors_only(length):
    """Distances above 1 count in the first and the last row only."""
    raw = _raw(length)
    raw[1:-1] = raw[1:-1] * (raw[1:-1] > 0.4)
    return raw / raw.sum(dim=-1, keepdim=True)


def one_weight_changed(length):
    """A single pair of words, apart by two, has a weight of its own; so has its mirror image."""
    raw = _raw(length)
    if length > 4:
        raw[1, 3] = raw[-2, -4] = 0.9
    return raw / raw.sum(dim=-1, keepdim=True)


def without_queries(length):
    """The row of the first word alone."""
    return _raw(length)[0] / _raw(length)[0].sum()


RIGHT_SHAPES = [(5, 5), (4, 2, 3), "error", (4,), (1, 6, 1), (7, 5, 4)]


def _shapes(letter, answer):
    """The right six answers but for one."""
    answers = list(RIGHT_SHAPES)
    answers["abcdef".index(letter)] = answer

    def shapes():
        """One of the six is wrong."""
        return answers

    return shapes


def nothing_right():
    """Each answer is the example of the stub."""
    return [(1, 2), (3,), "a mistake", (5,), (5, 6), (7, 8, 9)]


MISTAKES = {
    "six_shapes": [
        _shapes("a", (5, 1)),
        _shapes("b", (4, 1, 3)),
        _shapes("c", (2, 3)),
        _shapes("d", (1, 4)),
        _shapes("d", 4),
        _shapes("e", (6, 1)),
        _shapes("f", (7, 4)),
        nothing_right,
    ],
    "average_weights": [
        queries_and_keys_swapped,
        shared_among_queries,
        not_shared_at_all,
        shared_by_whole_division,
        the_first_key_takes_all,
        random_weights,
        only_one_row,
    ],
    "nearness_weights": [
        without_keepdim,
        wrong_axis,
        whole_sum,
        softmax_instead,
        looks_back_only,
        signed_distance,
        without_queries,
        words_in_the_middle_look_at_neighbors_only,
        one_weight_changed,
    ],
}
