"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import math

import torch

from course_utils.attention import AdditiveAttention
from course_utils.lessons.scoring_functions import scores


class fixed_gaussian_weights:
    def forgets_the_half(queries, keys):
        """Subtracts the squared norm, not half of it."""
        return (queries @ keys.T - keys.square().sum(-1)).softmax(dim=-1)

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

    def asks_for_distances(queries, keys):
        """The right weights, without the expansion that the exercise is about."""
        return (-torch.cdist(queries, keys).square() / 2).softmax(dim=-1)

    def detached_norms(queries, keys):
        """The right weights; the term in ‖k‖² has no gradient."""
        return (queries @ keys.T - keys.detach().square().sum(-1) / 2).softmax(dim=-1)

    def borrowed_weights(queries, keys):
        """Wraps the solution that the chapter's own module holds."""
        return scores.gaussian_weights(queries, keys)


class my_additive_scores:
    def keys_down_queries_across(queries, keys, w_q, w_k, w):
        """(m, n) in place of (n, m)."""
        return ((queries @ w_q).unsqueeze(-3) + (keys @ w_k).unsqueeze(-2)).tanh() @ w

    def turned_around(queries, keys, w_q, w_k, w):
        """The right shape, with queries and keys changed over where their numbers are equal."""
        scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
        return scores.mT if scores.shape[-1] == scores.shape[-2] else scores

    def tanh_at_the_end(queries, keys, w_q, w_k, w):
        """The tanh around the score."""
        return (((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)) @ w).tanh()

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

    def borrowed_scores(queries, keys, w_q, w_k, w):
        """Wraps the solution that the chapter's own module holds."""
        return scores.additive_scores(queries, keys, w_q, w_k, w)

    def borrowed_layer(queries, keys, w_q, w_k, w):
        """Lets the course's layer compute the scores, with these weights."""
        layer = AdditiveAttention(queries.shape[-1], keys.shape[-1], len(w))
        for part, weight in ((layer.query_proj, w_q), (layer.key_proj, w_k), (layer.score_proj, w)):
            part.weight = torch.nn.Parameter(weight.T.reshape(part.weight.shape))
        return layer.scores(queries, keys)


ON_PAPER = {}


ANSWERS = {
    "detached_norms": ("gradients", "detach()"),
    "softmax_over_the_queries": ("sum to 1", "over which axis"),
    "forgets_the_half": ("equal distance", "q·k − ½‖k‖² is 2"),
    "borrowed_layer": ("it calls AdditiveAttention.scores", "step by step"),
    "borrowed_scores": ("it calls additive_scores", "step by step"),
    "borrowed_weights": ("it calls gaussian_weights", "step by step"),
}
