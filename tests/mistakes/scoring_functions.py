"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import math

import torch
from mistakes.table import wrong

from course_utils.attention import AdditiveAttention
from course_utils.lessons.scoring_functions import scores


class fixed_gaussian_weights:
    forgets_the_half = wrong("Subtracts the squared norm, not half of it.",
        lambda queries, keys: (queries @ keys.T - keys.square().sum(-1)).softmax(dim=-1))
    softmax_over_the_queries = wrong("Normalizes over the queries, not over the keys.",
        lambda queries, keys: (queries @ keys.T - keys.square().sum(-1) / 2).softmax(dim=0))
    forms_all_differences = wrong("The right weights, from an array (n, m, d).",
        lambda queries, keys: (-(queries[:, None] - keys).square().sum(-1) / 2).softmax(dim=-1))
    asks_for_distances = wrong("The right weights, without the expansion that the exercise is about.",
        lambda queries, keys: (-torch.cdist(queries, keys).square() / 2).softmax(dim=-1))
    detached_norms = wrong("The right weights; the term in ‖k‖² has no gradient.",
        lambda queries, keys: (queries @ keys.T - keys.detach().square().sum(-1) / 2).softmax(dim=-1))
    borrowed_weights = wrong("Wraps the solution that the chapter's own module holds.",
        lambda queries, keys: scores.gaussian_weights(queries, keys))

    def divides_by_root_d(queries, keys):
        """Scales by 1/√d as well: a Gaussian of another width, right only for equal distances."""
        scores = queries @ keys.T - keys.square().sum(-1) / 2
        return (scores / math.sqrt(queries.shape[-1])).softmax(dim=-1)

    def overflows(queries, keys):
        """Exponentials divided by their sum: infinity over infinity for far points."""
        weights = (queries @ keys.T - keys.square().sum(-1) / 2).exp()
        return weights / weights.sum(dim=-1, keepdim=True)


class my_additive_scores:
    keys_down_queries_across = wrong("(m, n) in place of (n, m).",
        lambda queries, keys, w_q, w_k, w: ((queries @ w_q).unsqueeze(-3) + (keys @ w_k).unsqueeze(-2)).tanh() @ w)
    tanh_at_the_end = wrong("The tanh around the score.",
        lambda queries, keys, w_q, w_k, w: (((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)) @ w).tanh())
    without_a_batch = wrong("Counts the new axes from the front.",
        lambda queries, keys, w_q, w_k, w: ((queries @ w_q)[:, None] + (keys @ w_k)[None]).tanh() @ w)
    borrowed_scores = wrong("Wraps the solution that the chapter's own module holds.",
        lambda queries, keys, w_q, w_k, w: scores.additive_scores(queries, keys, w_q, w_k, w))

    def turned_around(queries, keys, w_q, w_k, w):
        """The right shape, with queries and keys changed over where their numbers are equal."""
        scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
        return scores.mT if scores.shape[-1] == scores.shape[-2] else scores

    def already_weights(queries, keys, w_q, w_k, w):
        """Returns weights, not scores."""
        scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
        return scores.softmax(dim=-1)

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

    def borrowed_layer(queries, keys, w_q, w_k, w):
        """Lets the course's layer compute the scores, with these weights."""
        layer = AdditiveAttention(queries.shape[-1], keys.shape[-1], len(w))
        for part, weight in ((layer.query_proj, w_q), (layer.key_proj, w_k), (layer.score_proj, w)):
            part.weight = torch.nn.Parameter(weight.T.reshape(part.weight.shape))
        return layer.scores(queries, keys)


ANSWERS = {
    "detached_norms": ("gradients", "detach()"),
    "softmax_over_the_queries": ("sum to 1", "over which axis"),
    "forgets_the_half": ("the same distance", "q·k − ½‖k‖² is 2"),
    "borrowed_layer": ("it calls AdditiveAttention.scores", "step by step"),
    "borrowed_scores": ("it calls additive_scores", "step by step"),
    "borrowed_weights": ("it calls gaussian_weights", "step by step"),
}
