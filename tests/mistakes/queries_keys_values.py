"""Mistakes in the exercises of *Queries, keys and values*, each with the property that catches it and its hint."""

import math

import torch
from mistakes.table import mistake


def _normalized(scores, shift):
    positive = (scores - shift).exp()
    return positive / positive.sum(-1, keepdim=True)


def _largest(scores):
    return scores.amax(-1, keepdim=True)


def _slope(ask, query, wanted, reduce=torch.sum):
    query = query.clone().requires_grad_()
    loss = reduce((ask(query) - wanted).square()) / 2
    return torch.autograd.grad(loss, query)[0]


@mistake("one_step", caught_by="brings the answer nearer", hint="In which direction does the loss")
def uphill(ask, query, wanted, rate):
    """Adds the slope of the loss."""
    return query + rate * _slope(ask, query, wanted)


@mistake(
    "one_step",
    caught_by="returns a query of the same shape",
    hint="What should the function return?",
)
def returns_the_slope(ask, query, wanted, rate):
    """The tuple of grad, not the query."""
    return (_slope(ask, query, wanted),)


@mistake("one_step", caught_by="goes against the slope", hint="Do you have the ½")
def without_the_half(ask, query, wanted, rate):
    """The slope of the square without ½."""
    return query - 2 * rate * _slope(ask, query, wanted)


@mistake("one_step", caught_by="moves each of several queries", hint="How do you make one number")
def mean_of_the_losses(ask, query, wanted, rate):
    """Each slope is divided by the number of queries."""
    return query - rate * _slope(ask, query, wanted, torch.mean)


@mistake(
    "one_step",
    caught_by="returns a query of the same shape",
    reason="PyTorch didn't track",
    hint="requires_grad_()",
)
def nobody_follows(ask, query, wanted, rate):
    """Asks for the slope of a tensor that PyTorch doesn't follow."""
    (slope,) = torch.autograd.grad((ask(query) - wanted).square().sum() / 2, query)
    return query - rate * slope


@mistake(
    "one_step",
    caught_by="brings the answer nearer",
    reason="20 years are wanted",
    hint="the same way",
)
def forgets_what_is_wanted(ask, query, wanted, rate):
    """Goes down the slope of the answer."""
    query = query.clone().requires_grad_()
    (slope,) = torch.autograd.grad(ask(query).sum(), query)
    return query.detach() - rate * slope


@mistake(
    "one_step",
    caught_by="stays where it is if the answer",
    reason="no step is needed",
    hint="Which function",
)
def slope_of_the_answer(ask, query, wanted, rate):
    """Goes up the answer, or down if it is too high, and doesn't stop at the wanted one."""
    query = query.clone().requires_grad_()
    answer = ask(query)
    (slope,) = torch.autograd.grad(answer.sum(), query)
    up = torch.where(answer.detach() > wanted, -1.0, 1.0)
    return query.detach() + rate * up[:, None] * slope


@mistake(
    "one_step", caught_by="moves each of several queries", hint="Over which axis do the queries'"
)
def error_along_the_features(ask, query, wanted, rate):
    """Multiplies the slopes of the answers by the errors, without an axis for the features."""
    query = query.clone().requires_grad_()
    answer = ask(query)
    (slope,) = torch.autograd.grad(answer.sum(), query)
    return query.detach() - rate * (answer - wanted).detach() * slope


@mistake("one_step", caught_by="leaves the query", hint="Which tensor do you call")
def follows_the_query_itself(ask, query, wanted, rate):
    """The caller's query, and so the beginning of the way, wants a gradient from now on."""
    query.requires_grad_()
    return (
        query.detach()
        - rate * torch.autograd.grad((ask(query) - wanted).square().sum() / 2, query)[0]
    )


@mistake("one_step", caught_by="leaves the query", hint="Does a line write into the query")
def writes_into_the_query(ask, query, wanted, rate):
    """The caller's query moves."""
    query -= rate * _slope(ask, query, wanted)
    return query


@mistake(
    "one_step", caught_by="returns a query without a history", hint="After 3,000 steps, how long"
)
def keeps_its_history(ask, query, wanted, rate):
    """Each step would remember all steps before it."""
    query = query.clone().requires_grad_()
    loss = (ask(query) - wanted).square().sum() / 2
    return query - rate * torch.autograd.grad(loss, query, create_graph=True)[0]


_DISHES = {"salad": (0.1, 0.1, 10), "stew": (0.1, 0.9, 120), "pancakes": (0.8, 0.8, 30)}


@mistake("my_table", caught_by="has three entries or more", hint="How many numbers does a row")
def two_entries():
    """One average of two is hardly a table."""
    return ({"salad": (0, 0, 1), "stew": (1, 1, 9)}, (0.2, 0.3), 5, 0.1)


@mistake("my_table", caught_by="has three entries or more", hint="What should the function return?")
def a_list():
    """Rows without names."""
    return (list(_DISHES.values()), (0.5, 0.5), 60, 0.1)


@mistake(
    "my_table", caught_by="has three entries or more", reason="3 features", hint="has no value"
)
def a_query_with_a_value():
    """The query has what it asks for."""
    return (_DISHES, (0.5, 0.5, 40), 60, 0.1)


@mistake(
    "my_table",
    caught_by="has three entries or more",
    reason="a list in a list",
    hint="second pair of brackets",
)
def a_query_in_two_brackets():
    """A matrix with one query, as in the chapter; the picture draws one."""
    return (_DISHES, [(0.5, 0.5)], 60, 0.1)


@mistake(
    "my_table",
    caught_by="keeps all features between 0 and 1",
    hint="In which units do you measure?",
)
def in_centimeters():
    """One feature outvotes the other."""
    return ({"cat": (30, 0.8, 15), "dog": (60, 1, 12), "horse": (160, 0.4, 28)}, (20, 0.9), 20, 0.1)


@mistake("my_table", caught_by="asks for something", hint="Is your query one of the keys?")
def asks_for_a_key():
    """A dictionary would do."""
    return (_DISHES, (0.1, 0.9), 60, 0.1)


@mistake(
    "my_table",
    caught_by="wants an answer between the smallest",
    hint="Which answers can a weighted",
)
def wants_too_much():
    """No average is above the largest value."""
    return (_DISHES, (0.5, 0.5), 150, 0.1)


@mistake("my_table", caught_by="wants an answer that no entry", hint="How far is the wanted answer")
def wants_a_value():
    """Nothing between the entries is asked for."""
    return (_DISHES, (0.5, 0.5), 30, 0.1)


@mistake(
    "my_table", caught_by="walks to the wanted answer", reason="the slope is 0", hint="raise T"
)
def too_cold():
    """The slope is 0 at the beginning."""
    return (_DISHES, (0.12, 0.12), 60, 1e-4)


@mistake(
    "my_table",
    caught_by="walks to the wanted answer",
    reason="leaves the picture",
    hint="cold softmax",
)
def runs_away():
    """A cold softmax sees the nearest entries only, and walks between two of them out of the picture."""
    return (
        {
            "mouse": (0.1, 0.1, 2),
            "cat": (0.3, 0.8, 15),
            "dog": (0.4, 1.0, 12),
            "horse": (0.8, 0.4, 28),
        },
        (0.2, 0.9),
        20,
        0.02,
    )


@mistake("my_table", caught_by="has three entries or more", hint="We divide by T")
def no_temperature():
    """Divides by 0."""
    return (_DISHES, (0.5, 0.5), 60, 0)


@mistake(
    "safe_softmax", caught_by="works along the last axis", hint="Which number names the last axis"
)
def over_axis_one(scores):
    """dim=1 is the last axis of a matrix, and of nothing else."""
    positive = (scores - scores.amax(1, keepdim=True)).exp()
    return positive / positive.sum(1, keepdim=True)


@mistake("safe_softmax", caught_by="gives a score of −∞ the weight 0", hint="What is exp(−∞)?")
def finite_minus_infinity(scores):
    """−∞ is replaced by −1,000,000, which a real score may undercut."""
    finite = scores.masked_fill(scores.isinf(), -1e6)
    return _normalized(finite, _largest(finite))


@mistake(
    "safe_softmax",
    caught_by="turns a matrix of scores into a matrix",
    reason="it calls softmax",
    hint="step by step",
)
def pytorchs_own(scores):
    """Calls what is to be built."""
    return torch.nn.functional.softmax(scores, dim=-1)


@mistake(
    "safe_softmax", caught_by="gives ordinary weights for scores", hint="Which shift makes exp safe"
)
def no_shift(scores):
    """The formula as it reads: exp(1000) overflows."""
    return _normalized(scores, 0)


@mistake(
    "safe_softmax", caught_by="gives ordinary weights for scores", hint="Which shift makes exp safe"
)
def absolute_shift(scores):
    """Shifts by the largest absolute value: right for 1000, all underflow for −1000."""
    return _normalized(scores, _largest(scores.abs()))


@mistake(
    "safe_softmax",
    caught_by="treats rows with very different scores",
    hint="Is your shift one number",
)
def one_shift_for_all_rows(scores):
    """Shifts by the largest score of the whole tensor, so that other rows underflow."""
    return _normalized(scores, scores.max())


@mistake("safe_softmax", caught_by="turns a matrix of scores into a matrix", hint=".values")
def forgets_the_values(scores):
    """max along an axis gives values and indices."""
    return _normalized(scores, scores.max(dim=-1, keepdim=True))


@mistake("safe_softmax", caught_by="turns a matrix of scores into a matrix", hint="keepdim=True")
def forgets_the_axis(scores):
    """Without keepdim the largest scores stand beside the wrong axis."""
    return _normalized(scores, scores.amax(-1))


@mistake(
    "safe_softmax",
    caught_by="turns (0, ln 2, ln 5) into weights",
    hint="What is exp of each of these",
)
def a_thousand_for_all(scores):
    """One fixed shift: right for 1000, and 0/0 for ordinary scores."""
    return _normalized(scores, 1000)


@mistake(
    "safe_softmax",
    caught_by="turns (0, ln 2, ln 5) into weights",
    reason="no gradient",
    hint="back",
)
def without_its_slope(scores):
    """Right numbers, and nothing to learn from."""
    return _normalized(scores, _largest(scores)).detach()


@mistake("safe_softmax", caught_by="leaves its input unchanged", hint="ends in _")
def changes_its_argument(scores):
    """The shift is written into the caller's tensor."""
    scores -= _largest(scores)
    return _normalized(scores, 0)


@mistake(
    "safe_softmax",
    caught_by="turns (0, ln 2, ln 5) into weights",
    reason="gradient of the scores",
    hint="back",
)
def detached_sum(scores):
    """The slope of the numerator alone."""
    positive = (scores - _largest(scores)).exp()
    return positive / positive.sum(-1, keepdim=True).detach()


@mistake(
    "soft_top_k",
    caught_by="gives each row exactly k weights",
    hint="Does each row choose its own k",
)
def softmax_of_all(scores, k):
    """k is ignored."""
    return scores.softmax(-1)


@mistake(
    "soft_top_k",
    caught_by="gives each row exactly k weights",
    hint="Does each row choose its own k",
)
def only_k_columns(scores, k):
    """The k weights themselves, without their places."""
    return scores.topk(k, dim=-1).values.softmax(-1)


@mistake("soft_top_k", caught_by="gives the softmax", hint="Do the weights of a row sum")
def uniform_top_k(scores, k):
    """1/k for each of the best, whatever their scores."""
    return torch.zeros_like(scores).scatter(-1, scores.topk(k, dim=-1).indices, 1 / k)


@mistake("soft_top_k", caught_by="puts the weights", hint="What do the indices tell you?")
def first_places(scores, k):
    """The k weights stand in the first k places."""
    weights = torch.zeros_like(scores)
    weights[..., :k] = scores.topk(k, dim=-1).values.softmax(-1)
    return weights


@mistake("soft_top_k", caught_by="gives ordinary weights", hint="What do you compute")
def exponential_of_raw_scores(scores, k):
    """exp before the choice: overflow and 0/0."""
    best = scores.topk(k, dim=-1)
    positive = best.values.exp()
    return torch.zeros_like(scores).scatter(
        -1, best.indices, positive / positive.sum(-1, keepdim=True)
    )


@mistake(
    "soft_top_k", caught_by="gives one-hot weights for k = 1", hint="Does a step assume that there"
)
def top_k_of_a_matrix(scores, k):
    """Right for a matrix; with a batch axis the softmax runs over the rows."""
    best = scores.topk(k, dim=-1)
    return torch.zeros_like(scores).scatter(-1, best.indices, best.values.softmax(1))


@mistake("soft_top_k", caught_by="leaves the scores unchanged", hint="Does a line write into")
def writes_into_the_scores(scores, k):
    """The caller's scores become −∞."""
    scores[scores < scores.topk(k, dim=-1).values[..., -1:]] = -math.inf
    return scores.softmax(-1)


@mistake("soft_top_k", caught_by="lets the gradient through", hint="Which step forgets")
def without_a_slope(scores, k):
    """Right numbers, and nothing to learn from."""
    kth = scores.topk(k, dim=-1).values[..., -1:]
    return scores.masked_fill(scores < kth, -math.inf).softmax(-1).detach()


@mistake(
    "attend_or_nothing",
    caught_by="equals plain attention if all scores",
    hint="Does each query have a sum",
)
def one_in_the_denominator(scores, values, nothing):
    """exp(0) = 1 is always added, whatever the score of nothing."""
    return scores.exp() @ values / (1 + scores.exp().sum(-1, keepdim=True))


@mistake(
    "attend_or_nothing", caught_by="equals plain attention if all scores", hint="a sum of its own"
)
def one_sum_for_all(scores, values, nothing):
    """The sum below the line runs over all queries."""
    return scores.exp() @ values / (math.exp(nothing) + scores.exp().sum())


@mistake(
    "attend_or_nothing",
    caught_by="gives each query an answer as long",
    hint="What shape does the extra score",
)
def a_lone_number(scores, values, nothing):
    """A tensor with one entry does not fit beside a matrix."""
    return torch.cat([scores, torch.tensor([nothing])], -1).softmax(-1)[..., :-1] @ values


@mistake(
    "attend_or_nothing",
    caught_by="stores no extra pair",
    reason="a table of 4",
    hint="Its value is 0",
)
def stores_the_pair(scores, values, nothing):
    """Right numbers, from a table with one row more."""
    extra = torch.full_like(scores[..., :1], nothing)
    zeros = torch.zeros_like(values[..., :1, :])
    return torch.cat([scores, extra], -1).softmax(-1) @ torch.cat([values, zeros], -2)


@mistake(
    "attend_or_nothing",
    caught_by="answers 0 if all scores are far below",
    hint="Are the weights of the stored",
)
def normalized_again(scores, values, nothing):
    """The share of the extra pair is taken away, and then given back."""
    extra = torch.full_like(scores[..., :1], nothing)
    weights = torch.cat([scores, extra], -1).softmax(-1)[..., :-1]
    return weights / weights.sum(-1, keepdim=True) @ values


@mistake(
    "attend_or_nothing", caught_by="follows the formula in between", hint="Where is the extra pair"
)
def hard_threshold(scores, values, nothing):
    """All or nothing: 0 where no score exceeds that of nothing."""
    found = scores.amax(-1, keepdim=True) > nothing
    return torch.where(found, scores.softmax(-1) @ values, 0.0)


@mistake("attend_or_nothing", caught_by="gives finite, ordinary answers", hint="shift first")
def formula_as_it_reads(scores, values, nothing):
    """exp(1000) overflows."""
    return scores.exp() @ values / (math.exp(nothing) + scores.exp().sum(-1, keepdim=True))


@mistake("attend_or_nothing", caught_by="answers a batch", hint="[..., :-1]")
def last_axis_of_a_matrix(scores, values, nothing):
    """[:, :-1] takes away the last key of a matrix, and the last query of a batch."""
    extra = torch.full_like(scores[..., :1], nothing)
    return torch.cat([scores, extra], -1).softmax(-1)[:, :-1] @ values


@mistake("attend_or_nothing", caught_by="answers a batch", hint="Does each step work along")
def for_a_matrix_only(scores, values, nothing):
    """The extra score is made for two axes; a batch is summed over the wrong one."""
    extra = torch.full_like(scores[..., :1], nothing)
    weights = torch.cat([scores, extra], -1).softmax(1)
    return weights[..., :-1] @ values


@mistake(
    "attend_or_nothing",
    caught_by="gives finite, ordinary answers",
    reason="gradient of the scores",
    hint="largest score",
)
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
        "e": 0.25,  # goes on with the four keys of (d)
    },
}
