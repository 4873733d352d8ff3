"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import math

import torch

from course_utils.lessons.scoring_functions import scores
from course_utils.pooling import kernel_weights

# fixed_gaussian_weights -------------------------------------------------------------------------


def drops_the_keys_term(queries, keys):
    """Scores q·k alone: long keys win."""
    return (queries @ keys.T).softmax(dim=-1)


def wrong_sign_of_the_keys_term(queries, keys):
    """Adds half the squared norm where it has to be subtracted."""
    return (queries @ keys.T + keys.square().sum(-1) / 2).softmax(dim=-1)


def forgets_the_half(queries, keys):
    """Subtracts the squared norm, not half of it."""
    return (queries @ keys.T - keys.square().sum(-1)).softmax(dim=-1)


def keys_term_on_the_wrong_axis(queries, keys):
    """The keys' norms stand in a column, so that they meet the queries' axis."""
    return (queries @ keys.T - keys.square().sum(-1, keepdim=True) / 2).softmax(dim=-1)


def softmax_over_the_queries(queries, keys):
    """Normalizes over the queries, not over the keys."""
    return (queries @ keys.T - keys.square().sum(-1) / 2).softmax(dim=0)


def divides_by_root_d(queries, keys):
    """Scales by 1/√d as well: a Gaussian of another width, right only for equal distances."""
    scores = queries @ keys.T - keys.square().sum(-1) / 2
    return (scores / math.sqrt(queries.shape[-1])).softmax(dim=-1)


def overflows(queries, keys):
    """Exponentials divided by their sum: infinity over infinity for far points."""
    weights = (queries @ keys.T - keys.square().sum(-1) / 2).exp()
    return weights / weights.sum(dim=-1, keepdim=True)


def forms_all_differences(queries, keys):
    """The right weights, from an array (n, m, d)."""
    return (-(queries[:, None] - keys).square().sum(-1) / 2).softmax(dim=-1)


def asks_the_package(queries, keys):
    """The right weights, from the differences in the package."""
    return kernel_weights(queries, keys)


def asks_for_distances(queries, keys):
    """The right weights, without the expansion that the exercise is about."""
    return (-torch.cdist(queries, keys).square() / 2).softmax(dim=-1)


# predicted_gaps ---------------------------------------------------------------------------------


def only_the_direction_counts():
    """Believes that the length of a query does not matter."""
    return [3, 1.5, 3, 5, 3]


def lengths_squared():
    """Halves both keys and takes a quarter."""
    return [9, 0.75, 3, 5, 3]


def a_shift_of_the_keys_counts():
    """Adds q · (5, −1) to one of the scores only."""
    return [9, 1.5, 6, 5, 3]


def a_shift_of_the_query_drops_out():
    """Takes the query for a key."""
    return [9, 1.5, 3, 3, 3]


def the_root_takes_care():
    """Believes that 1/√d makes any number of features harmless: 3/√2."""
    return [9, 1.5, 3, 5, 2.12]


# my_additive_scores -----------------------------------------------------------------------------


def query_meets_its_own_key(queries, keys, w_q, w_k, w):
    """Adds row i to row i: fits only where there are as many keys as queries."""
    return (queries @ w_q + keys @ w_k).tanh() @ w


def keys_down_queries_across(queries, keys, w_q, w_k, w):
    """(m, n) in place of (n, m)."""
    return ((queries @ w_q).unsqueeze(-3) + (keys @ w_k).unsqueeze(-2)).tanh() @ w


def turned_around(queries, keys, w_q, w_k, w):
    """The right shape, with queries and keys changed over where their numbers are equal."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return scores.mT if scores.shape[-1] == scores.shape[-2] else scores


def without_tanh(queries, keys, w_q, w_k, w):
    """A sum of two parts: every query would get the same weights."""
    return ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)) @ w


def tanh_at_the_end(queries, keys, w_q, w_k, w):
    """The tanh around the score."""
    return (((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)) @ w).tanh()


def tanh_before_the_sum(queries, keys, w_q, w_k, w):
    """tanh of each part, then the sum."""
    return ((queries @ w_q).tanh().unsqueeze(-2) + (keys @ w_k).tanh().unsqueeze(-3)) @ w


def scaled_by_root_h(queries, keys, w_q, w_k, w):
    """Divides by √h, which was not asked for."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return scores / math.sqrt(len(w))


def already_weights(queries, keys, w_q, w_k, w):
    """Returns weights, not scores."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return scores.softmax(dim=-1)


def without_a_batch(queries, keys, w_q, w_k, w):
    """Counts the new axes from the front."""
    return ((queries @ w_q)[:, None] + (keys @ w_k)[None]).tanh() @ w


def numbers_collected(queries, keys, w_q, w_k, w):
    """Collects plain numbers in a new tensor."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return torch.tensor(scores.tolist())


def pair_by_pair(queries, keys, w_q, w_k, w):
    """The right scores, in two loops over the pairs."""
    rows = [torch.stack([(q @ w_q + k @ w_k).tanh() @ w for k in keys]) for q in queries]
    return torch.stack(rows)


def gradient_of_zero(queries, keys, w_q, w_k, w):
    """A graph that leads to each input, with nothing coming back on it."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return scores.detach() + 0 * sum(part.sum() for part in (queries, keys, w_q, w_k, w))


def borrowed_weights(queries, keys):
    """Wraps the solution that the chapter's own module holds."""
    return scores.gaussian_weights(queries, keys)


def borrowed_scores(queries, keys, w_q, w_k, w):
    """Wraps the solution that the chapter's own module holds."""
    return scores.additive_scores(queries, keys, w_q, w_k, w)


MISTAKES = {
    "fixed_gaussian_weights": [
        borrowed_weights,
        drops_the_keys_term,
        wrong_sign_of_the_keys_term,
        forgets_the_half,
        keys_term_on_the_wrong_axis,
        softmax_over_the_queries,
        divides_by_root_d,
        overflows,
        forms_all_differences,
        asks_the_package,
        asks_for_distances,
    ],
    "predicted_gaps": [
        only_the_direction_counts,
        lengths_squared,
        a_shift_of_the_keys_counts,
        a_shift_of_the_query_drops_out,
        the_root_takes_care,
    ],
    "my_additive_scores": [
        borrowed_scores,
        query_meets_its_own_key,
        keys_down_queries_across,
        turned_around,
        without_tanh,
        tanh_at_the_end,
        tanh_before_the_sum,
        scaled_by_root_h,
        already_weights,
        without_a_batch,
        numbers_collected,
        pair_by_pair,
        gradient_of_zero,
    ],
}

ANSWERS = {
    "borrowed_scores": ("it calls additive_scores", "step by step"),
    "borrowed_weights": ("it calls gaussian_weights", "step by step"),
}
