"""Mistakes that learners make in the exercises of *Self-attention*; each must fail its check with a hint."""

import math

# self_attention ---------------------------------------------------------------------------------


def returns_the_weights(X, W_q, W_k, W_v):
    """Stops before the values."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-1)


def no_softmax(X, W_q, W_k, W_v):
    """Scores times values."""
    return (X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1]) @ (X @ W_v)


def scaled_after_the_softmax(X, W_q, W_k, W_v):
    """The division stands outside the softmax."""
    return ((X @ W_q) @ (X @ W_k).mT).softmax(-1) @ (X @ W_v) / math.sqrt(W_q.shape[1])


def keys_ask(X, W_q, W_k, W_v):
    """The transposed scores: keys ask and queries are found."""
    return ((X @ W_k) @ (X @ W_q).mT / math.sqrt(W_q.shape[1])).softmax(-1) @ (X @ W_v)


def softmax_over_queries(X, W_q, W_k, W_v):
    """The columns sum to 1 instead of the rows."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-2) @ (X @ W_v)


def not_scaled(X, W_q, W_k, W_v):
    """No √d."""
    return ((X @ W_q) @ (X @ W_k).mT).softmax(-1) @ (X @ W_v)


def scaled_by_the_embedding(X, W_q, W_k, W_v):
    """√M of the embedding instead of √d of the query."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(X.shape[-1])).softmax(-1) @ (X @ W_v)


def for_one_sentence(X, W_q, W_k, W_v):
    """dim=1 counts from the front: wrong as soon as there is a batch."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(1) @ (X @ W_v)


# fixed_lookup -----------------------------------------------------------------------------------


def scaled_as_well(queries, keys, values):
    """Something else was changed too: the scores are divided by √d."""
    return (queries @ keys.mT / math.sqrt(keys.shape[-1])).softmax(-1) @ values


def over_the_first_axis_of_three(queries, keys, values):
    """dim=0, which is the queries without a batch."""
    return (queries @ keys.mT).softmax(0) @ values


def still_axis_one(queries, keys, values):
    """The bug itself."""
    return (queries @ keys.mT).softmax(1) @ values


def first_database_for_all(queries, keys, values):
    """Each query of the batch asks the first database."""
    if queries.ndim == 2:
        return (queries @ keys.mT).softmax(-1) @ values
    return (queries @ keys[0].mT).softmax(-1) @ values[0]


def axis_two(queries, keys, values):
    """dim=2 is right with a batch, and wrong again with heads."""
    return (queries @ keys.mT).softmax(min(2, queries.ndim - 1)) @ values


# cross_attention --------------------------------------------------------------------------------


def roles_swapped(Y, X, W_q, W_k, W_v):
    """The second sentence asks the first."""
    return ((X @ W_q) @ (Y @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-1) @ (Y @ W_v)


def values_of_the_asking(Y, X, W_q, W_k, W_v):
    """Each word that asks hands over its own value."""
    weights = ((Y @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-1)
    return weights.sum(-1, keepdim=True) * (Y @ W_v)


def scale_forgotten(Y, X, W_q, W_k, W_v):
    """No √d."""
    return ((Y @ W_q) @ (X @ W_k).mT).softmax(-1) @ (X @ W_v)


# restored ---------------------------------------------------------------------------------------


def as_it_came(answers, order):
    """Leaves the shuffled order."""
    return answers


def shuffled_again(answers, order):
    """Applies the shuffle once more."""
    return answers[order]


def first_for_all(answers, order):
    """Repeats one answer."""
    return answers[:1].expand_as(answers)


MISTAKES = {
    "self_attention": [
        returns_the_weights,
        no_softmax,
        scaled_after_the_softmax,
        keys_ask,
        softmax_over_queries,
        not_scaled,
        scaled_by_the_embedding,
        for_one_sentence,
    ],
    "fixed_lookup": [
        scaled_as_well,
        over_the_first_axis_of_three,
        still_axis_one,
        first_database_for_all,
        axis_two,
    ],
    "cross_attention": [roles_swapped, values_of_the_asking, scale_forgotten],
    "restored": [as_it_came, shuffled_again, first_for_all],
}
