"""Mistakes that learners make in the exercises of *Queries, keys and values*; each must fail its check with a hint."""

import math

import torch

# safe_softmax -----------------------------------------------------------------------------------


def plain_ratio(scores):
    """Scores are divided by their sum, without the exponential."""
    return scores / scores.sum(-1, keepdim=True)


def over_the_first_axis(scores):
    """Stable, but along the wrong axis."""
    return scores.softmax(0)


def over_axis_one(scores):
    """dim=1 is the last axis of a matrix, and of nothing else."""
    return scores.softmax(1)


def no_shift(scores):
    """The formula as it reads: exp(1000) overflows."""
    positive = scores.exp()
    return positive / positive.sum(-1, keepdim=True)


def absolute_shift(scores):
    """Shifts by the largest absolute value: right for 1000, all underflow for −1000."""
    positive = (scores - scores.abs().amax(-1, keepdim=True)).exp()
    return positive / positive.sum(-1, keepdim=True)


def one_shift_for_all_rows(scores):
    """Shifts by the largest score of the whole tensor, so that other rows underflow."""
    positive = (scores - scores.max()).exp()
    return positive / positive.sum(-1, keepdim=True)


def finite_minus_infinity(scores):
    """−∞ is replaced by −1,000,000, which a real score may undercut."""
    return scores.masked_fill(scores.isinf(), -1e6).softmax(-1)


def empty_row_is_nan(scores):
    """PyTorch's softmax: a row without keys is NaN."""
    return scores.softmax(-1)


def empty_row_is_uniform(scores):
    """A row without keys attends to all of them."""
    empty = scores.isinf().all(-1, keepdim=True)
    return scores.masked_fill(empty, 0).softmax(-1)


def changes_its_argument(scores):
    """The shift is written into the caller's tensor."""
    largest = scores.amax(-1, keepdim=True)
    scores -= torch.where(largest.isinf(), 0.0, largest)
    positive = scores.exp()
    return positive / positive.sum(-1, keepdim=True).clamp(min=1e-30)


# soft_top_k -------------------------------------------------------------------------------------


def softmax_of_all(scores, k):
    """k is ignored."""
    return scores.softmax(-1)


def only_k_columns(scores, k):
    """The k weights themselves, without their places."""
    return scores.topk(k, dim=-1).values.softmax(-1)


def the_smallest(scores, k):
    """The k worst scores are kept."""
    low = scores.topk(k, dim=-1, largest=False)
    return torch.zeros_like(scores).scatter(-1, low.indices, low.values.softmax(-1))


def first_places(scores, k):
    """The k weights stand in the first k places."""
    weights = torch.zeros_like(scores)
    weights[..., :k] = scores.topk(k, dim=-1).values.softmax(-1)
    return weights


def not_normalized_again(scores, k):
    """Softmax over all keys, then cut: the rows no longer sum to 1."""
    weights = scores.softmax(-1)
    return weights.masked_fill(weights < weights.topk(k, dim=-1).values[..., -1:], 0)


def uniform_top_k(scores, k):
    """1/k for each of the best, whatever their scores."""
    return torch.zeros_like(scores).scatter(-1, scores.topk(k, dim=-1).indices, 1 / k)


def exponential_of_raw_scores(scores, k):
    """exp before the choice: overflow and 0/0."""
    best = scores.topk(k, dim=-1)
    positive = best.values.exp()
    return torch.zeros_like(scores).scatter(
        -1, best.indices, positive / positive.sum(-1, keepdim=True)
    )


def top_k_of_a_matrix(scores, k):
    """Right for a matrix; with a batch axis the softmax runs over the rows."""
    best = scores.topk(k, dim=-1)
    return torch.zeros_like(scores).scatter(-1, best.indices, best.values.softmax(1))


# self_attention ---------------------------------------------------------------------------------


def returns_the_weights(X, W_q, W_k, W_v):
    """Stops before the values."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-1)


def no_softmax(X, W_q, W_k, W_v):
    """Scores times values."""
    return (X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1]) @ (X @ W_v)


def scaled_after_the_softmax(X, W_q, W_k, W_v):
    """The division stands outside the softmax, as on some slides."""
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


# attend_or_nothing ------------------------------------------------------------------------------


def plain_attention(scores, values, nothing):
    """The extra pair is left out."""
    return scores.softmax(-1) @ values


def value_one_for_nothing(scores, values, nothing):
    """The extra pair has the value 1 instead of 0."""
    extra = torch.full_like(scores[..., :1], nothing)
    ones = torch.ones_like(values[..., :1, :])
    return torch.cat([scores, extra], -1).softmax(-1) @ torch.cat([values, ones], -2)


def normalized_again(scores, values, nothing):
    """The share of the extra pair is taken away, and then given back."""
    extra = torch.full_like(scores[..., :1], nothing)
    weights = torch.cat([scores, extra], -1).softmax(-1)[..., :-1]
    return weights / weights.sum(-1, keepdim=True) @ values


def one_in_the_denominator(scores, values, nothing):
    """exp(0) = 1 is always added, whatever the score of nothing."""
    return scores.exp() @ values / (1 + scores.exp().sum(-1, keepdim=True))


def hard_threshold(scores, values, nothing):
    """All or nothing: 0 where no score exceeds that of nothing."""
    found = scores.amax(-1, keepdim=True) > nothing
    return torch.where(found, scores.softmax(-1) @ values, 0.0)


def formula_as_it_reads(scores, values, nothing):
    """exp(1000) overflows."""
    return scores.exp() @ values / (math.exp(nothing) + scores.exp().sum(-1, keepdim=True))


def for_a_matrix_only(scores, values, nothing):
    """The extra score is made for two axes; a batch is summed over the wrong one."""
    extra = torch.full_like(scores[..., :1], nothing)
    weights = torch.cat([scores, extra], -1).softmax(1)
    return weights[..., :-1] @ values


MISTAKES = {
    "safe_softmax": [
        plain_ratio,
        over_the_first_axis,
        over_axis_one,
        no_shift,
        absolute_shift,
        one_shift_for_all_rows,
        finite_minus_infinity,
        empty_row_is_nan,
        empty_row_is_uniform,
        changes_its_argument,
    ],
    "soft_top_k": [
        softmax_of_all,
        only_k_columns,
        the_smallest,
        first_places,
        not_normalized_again,
        uniform_top_k,
        exponential_of_raw_scores,
        top_k_of_a_matrix,
    ],
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
    "attend_or_nothing": [
        plain_attention,
        value_one_for_nothing,
        normalized_again,
        one_in_the_denominator,
        hard_threshold,
        formula_as_it_reads,
        for_a_matrix_only,
    ],
}
