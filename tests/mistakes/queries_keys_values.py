"""Mistakes that learners make in the exercises of *Queries, keys and values*; each must fail its check with a hint."""

import math

import torch
from mistakes.table import wrong


def _normalized(scores, shift):
    positive = (scores - shift).exp()
    return positive / positive.sum(-1, keepdim=True)


def _largest(scores):
    return scores.amax(-1, keepdim=True)


def _slope(ask, query, wanted, reduce=torch.sum):
    query = query.clone().requires_grad_()
    loss = reduce((ask(query) - wanted).square()) / 2
    return torch.autograd.grad(loss, query)[0]


class one_step:
    uphill = wrong("Adds the slope of the loss.",
        lambda ask, query, wanted, rate: query + rate * _slope(ask, query, wanted))
    returns_the_slope = wrong("The tuple of grad, not the query.",
        lambda ask, query, wanted, rate: (_slope(ask, query, wanted),))
    without_the_half = wrong("The slope of the square without ½.",
        lambda ask, query, wanted, rate: query - 2 * rate * _slope(ask, query, wanted))
    mean_of_the_losses = wrong("Each slope is divided by the number of queries.",
        lambda ask, query, wanted, rate: query - rate * _slope(ask, query, wanted, torch.mean))

    def nobody_follows(ask, query, wanted, rate):
        """Asks for the slope of a tensor that PyTorch doesn't follow."""
        (slope,) = torch.autograd.grad((ask(query) - wanted).square().sum() / 2, query)
        return query - rate * slope

    def forgets_what_is_wanted(ask, query, wanted, rate):
        """Goes down the slope of the answer."""
        query = query.clone().requires_grad_()
        (slope,) = torch.autograd.grad(ask(query).sum(), query)
        return query.detach() - rate * slope

    def slope_of_the_answer(ask, query, wanted, rate):
        """Goes up the answer, or down if it is too high, and doesn't stop at the wanted one."""
        query = query.clone().requires_grad_()
        answer = ask(query)
        (slope,) = torch.autograd.grad(answer.sum(), query)
        up = torch.where(answer.detach() > wanted, -1.0, 1.0)
        return query.detach() + rate * up[:, None] * slope

    def error_along_the_features(ask, query, wanted, rate):
        """Multiplies the slopes of the answers by the errors, without an axis for the features."""
        query = query.clone().requires_grad_()
        answer = ask(query)
        (slope,) = torch.autograd.grad(answer.sum(), query)
        return query.detach() - rate * (answer - wanted).detach() * slope

    def follows_the_query_itself(ask, query, wanted, rate):
        """The caller's query, and so the beginning of the way, wants a gradient from now on."""
        query.requires_grad_()
        return query.detach() - rate * torch.autograd.grad((ask(query) - wanted).square().sum() / 2, query)[0]

    def writes_into_the_query(ask, query, wanted, rate):
        """The caller's query moves."""
        query -= rate * _slope(ask, query, wanted)
        return query

    def keeps_its_history(ask, query, wanted, rate):
        """Each step would remember all steps before it."""
        query = query.clone().requires_grad_()
        loss = (ask(query) - wanted).square().sum() / 2
        return query - rate * torch.autograd.grad(loss, query, create_graph=True)[0]


_DISHES = {"salad": (0.1, 0.1, 10), "stew": (0.1, 0.9, 120), "pancakes": (0.8, 0.8, 30)}


class my_table:
    two_entries = wrong("One average of two is hardly a table.",
        lambda: ({"salad": (0, 0, 1), "stew": (1, 1, 9)}, (0.2, 0.3), 5, 0.1))
    a_list = wrong("Rows without names.", lambda: (list(_DISHES.values()), (0.5, 0.5), 60, 0.1))
    a_query_with_a_value = wrong("The query has what it asks for.", lambda: (_DISHES, (0.5, 0.5, 40), 60, 0.1))
    a_query_in_two_brackets = wrong("A matrix with one query, as in the chapter; the picture draws one.",
        lambda: (_DISHES, [(0.5, 0.5)], 60, 0.1))
    in_centimeters = wrong("One feature outvotes the other.",
        lambda: ({"cat": (30, 0.8, 15), "dog": (60, 1, 12), "horse": (160, 0.4, 28)}, (20, 0.9), 20, 0.1))
    asks_for_a_key = wrong("A dictionary would do.", lambda: (_DISHES, (0.1, 0.9), 60, 0.1))
    wants_too_much = wrong("No average is above the largest value.", lambda: (_DISHES, (0.5, 0.5), 150, 0.1))
    wants_a_value = wrong("Nothing between the entries is asked for.", lambda: (_DISHES, (0.5, 0.5), 30, 0.1))
    too_cold = wrong("The slope is 0 at the beginning.", lambda: (_DISHES, (0.12, 0.12), 60, 1e-4))
    runs_away = wrong("A cold softmax sees the nearest entries only, and walks between two of them out of the picture.",
        lambda: ({"mouse": (0.1, 0.1, 2), "cat": (0.3, 0.8, 15), "dog": (0.4, 1.0, 12), "horse": (0.8, 0.4, 28)},
            (0.2, 0.9), 20, 0.02))
    no_temperature = wrong("Divides by 0.", lambda: (_DISHES, (0.5, 0.5), 60, 0))


class safe_softmax:
    over_axis_one = wrong("dim=1 is the last axis of a matrix, and of nothing else.", lambda scores: scores.softmax(1))
    finite_minus_infinity = wrong("−∞ is replaced by −1,000,000, which a real score may undercut.",
        lambda scores: scores.masked_fill(scores.isinf(), -1e6).softmax(-1))
    pytorchs_own = wrong("Calls what is to be built.", lambda scores: torch.nn.functional.softmax(scores, dim=-1))
    no_shift = wrong("The formula as it reads: exp(1000) overflows.", lambda scores: _normalized(scores, 0))
    absolute_shift = wrong("Shifts by the largest absolute value: right for 1000, all underflow for −1000.",
        lambda scores: _normalized(scores, _largest(scores.abs())))
    one_shift_for_all_rows = wrong("Shifts by the largest score of the whole tensor, so that other rows underflow.",
        lambda scores: _normalized(scores, scores.max()))
    forgets_the_values = wrong("max along an axis gives values and indices.",
        lambda scores: _normalized(scores, scores.max(dim=-1, keepdim=True)))
    forgets_the_axis = wrong("Without keepdim the largest scores stand beside the wrong axis.",
        lambda scores: _normalized(scores, scores.amax(-1)))
    a_thousand_for_all = wrong("One fixed shift: right for 1000, and 0/0 for ordinary scores.",
        lambda scores: _normalized(scores, 1000))
    without_its_slope = wrong("Right numbers, and nothing to learn from.",
        lambda scores: _normalized(scores, _largest(scores)).detach())

    def changes_its_argument(scores):
        """The shift is written into the caller's tensor."""
        scores -= _largest(scores)
        return _normalized(scores, 0)

    def detached_sum(scores):
        """The slope of the numerator alone."""
        positive = (scores - _largest(scores)).exp()
        return positive / positive.sum(-1, keepdim=True).detach()

class soft_top_k:
    softmax_of_all = wrong("k is ignored.", lambda scores, k: scores.softmax(-1))
    only_k_columns = wrong("The k weights themselves, without their places.",
        lambda scores, k: scores.topk(k, dim=-1).values.softmax(-1))
    uniform_top_k = wrong("1/k for each of the best, whatever their scores.",
        lambda scores, k: torch.zeros_like(scores).scatter(-1, scores.topk(k, dim=-1).indices, 1 / k))

    def first_places(scores, k):
        """The k weights stand in the first k places."""
        weights = torch.zeros_like(scores)
        weights[..., :k] = scores.topk(k, dim=-1).values.softmax(-1)
        return weights

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

    def writes_into_the_scores(scores, k):
        """The caller's scores become −∞."""
        scores[scores < scores.topk(k, dim=-1).values[..., -1:]] = -math.inf
        return scores.softmax(-1)

    def without_a_slope(scores, k):
        """Right numbers, and nothing to learn from."""
        kth = scores.topk(k, dim=-1).values[..., -1:]
        return scores.masked_fill(scores < kth, -math.inf).softmax(-1).detach()


class attend_or_nothing:
    one_in_the_denominator = wrong("exp(0) = 1 is always added, whatever the score of nothing.",
        lambda scores, values, nothing: scores.exp() @ values / (1 + scores.exp().sum(-1, keepdim=True)))
    one_sum_for_all = wrong("The sum below the line runs over all queries.",
        lambda scores, values, nothing: scores.exp() @ values / (math.exp(nothing) + scores.exp().sum()))
    a_lone_number = wrong("A tensor with one entry does not fit beside a matrix.",
        lambda scores, values, nothing: torch.cat([scores, torch.tensor([nothing])], -1).softmax(-1)[..., :-1] @ values)

    def stores_the_pair(scores, values, nothing):
        """Right numbers, from a table with one row more."""
        extra = torch.full_like(scores[..., :1], nothing)
        zeros = torch.zeros_like(values[..., :1, :])
        return torch.cat([scores, extra], -1).softmax(-1) @ torch.cat([values, zeros], -2)

    def normalized_again(scores, values, nothing):
        """The share of the extra pair is taken away, and then given back."""
        extra = torch.full_like(scores[..., :1], nothing)
        weights = torch.cat([scores, extra], -1).softmax(-1)[..., :-1]
        return weights / weights.sum(-1, keepdim=True) @ values

    def hard_threshold(scores, values, nothing):
        """All or nothing: 0 where no score exceeds that of nothing."""
        found = scores.amax(-1, keepdim=True) > nothing
        return torch.where(found, scores.softmax(-1) @ values, 0.0)

    def formula_as_it_reads(scores, values, nothing):
        """exp(1000) overflows."""
        return scores.exp() @ values / (math.exp(nothing) + scores.exp().sum(-1, keepdim=True))

    def last_axis_of_a_matrix(scores, values, nothing):
        """[:, :-1] takes away the last key of a matrix, and the last query of a batch."""
        extra = torch.full_like(scores[..., :1], nothing)
        return torch.cat([scores, extra], -1).softmax(-1)[:, :-1] @ values

    def for_a_matrix_only(scores, values, nothing):
        """The extra score is made for two axes; a batch is summed over the wrong one."""
        extra = torch.full_like(scores[..., :1], nothing)
        weights = torch.cat([scores, extra], -1).softmax(1)
        return weights[..., :-1] @ values

    def shifted_by_its_own_largest(scores, values, nothing):
        """The shift leaves nothing out of account: exp(1000) below the line is right at 0, and its slope is NaN."""
        top = scores.amax(-1, keepdim=True)
        positive = (scores - top).exp()
        return positive @ values / (positive.sum(-1, keepdim=True) + (nothing - top).exp())


ON_PAPER = {
    "predicted_weights": {
        "a": 0,  # takes the score of the first key for its weight
        "b": 0.25,  # doubles the exponential and forgets that the sum grows, too
        "c": 0.125,  # doubles the exponentials instead of the scores
        "d": 0.125,  # believes that a fourth key takes nothing from the first
        "e": 0,  # takes hot for cold
    },
}

ANSWERS = {
    "nobody_follows": ("PyTorch didn't follow", "requires_grad_()"),
    "forgets_what_is_wanted": ("20 years are wanted", "the same way"),
    "slope_of_the_answer": ("no step is needed", "Which function"),
    "runs_away": ("leaves the picture", "cold softmax"),
    "too_cold": ("the slope is 0", "raise T"),
    "a_query_with_a_value": ("3 features", "has no value"),
    "a_query_in_two_brackets": ("a list in a list", "second pair of brackets"),
    "pytorchs_own": ("it calls softmax", "step by step"),
    "without_its_slope": ("no gradient", "back"),
    "detached_sum": ("gradient of the scores", "back"),
    "stores_the_pair": ("a table of 4", "Its value is 0"),
    "shifted_by_its_own_largest": ("gradient of the scores", "largest score"),
    "forgets_the_values": ("a matrix of", ".values"),
    "forgets_the_axis": ("a matrix of", "keepdim=True"),
    "changes_its_argument": ("its input unchanged", "ends in _"),
    "formula_as_it_reads": ("scores of 1000", "shift first"),
    "one_sum_for_all": ("plain attention", "a sum of its own"),
    "last_axis_of_a_matrix": ("a batch", "[..., :-1]"),
}
