"""Checks of *Queries, keys and values*: weights on paper, softmax, its k largest, an answer of nothing.

The references are PyTorch's operators, or sums written out.
"""

import math
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from course_utils.kit.check import Check
from course_utils.kit.expect import (
    Unmet,
    WrongKind,
    expect,
    expect_close,
    expect_equal,
    expect_same_gradients,
    expect_shape,
    kind_of,
)
from course_utils.kit.on_paper import on_paper, read_number
from course_utils.kit.tracing import Shapes
from course_utils.lessons.queries_keys_values import walks

# Five weights on paper ----------------------------------------------------------------------------


def _read_weight(answer: Any) -> float:
    """The share of 1 in an answer, which some write in percent."""
    share = read_number(answer)
    if share > 1:
        raise WrongKind(f"got {share:g}, expected a share of 1; write 12.5% as 0.125 or 1 / 8")
    return share


predicted_weights = on_paper({
    "a": (1 / 8, "the weight of the first key as it is",
         "Which of the three exponentials belongs to the first key? Divide it by the sum of all three."),
    "b": (2 / 9, "its weight with a higher score",
         "What is the first exponential now? The sum changes with it, so add all three again."),
    "c": (1 / 30, "its weight after doubling",
         "What is exp(2 ln 5)? It isn't 2 · 5: twice a logarithm is the logarithm of the square."),
    "d": (1 / 16, "its weight among four keys",
         "What is the fourth exponential? Add it to the sum that we had in (a)."),
    "e": (1 / 3, "its weight at a huge temperature",
         "What is a score divided by a huge number? Nearly 0 for all of them, so compare their exponentials. And how "
         "many keys are there now?"),
}, read=_read_weight, within=0.006)  # fmt: skip


# One step of the walk -----------------------------------------------------------------------------

one_step = Check()


def _look_up(queries):
    """A softmax look-up of the animals, at T = 0.1."""
    keys = torch.tensor([[0.1, 0.1], [0.3, 0.8], [0.4, 1.0], [0.8, 0.4], [1.0, 0.0]])
    scores = -(queries[:, None] - keys).square().sum(-1) / 2
    return (scores / 0.1).softmax(-1) @ torch.tensor([2.0, 15.0, 12.0, 28.0, 65.0])


def _kitten():
    return torch.tensor([[0.2, 0.9]])


@one_step.must("returns a query of the same shape")
def returns_query_of_same_shape(candidate):
    """What do you return, the loss, the slope or the new query? The new query is the old one minus `rate` times the
    slope, and `torch.autograd.grad` returns a tuple, so unpack it.
    """
    try:
        step = candidate(_look_up, _kitten(), 20.0, 1e-4)
    except RuntimeError as error:
        for words, reason, hint in _NOT_FOLLOWED:
            if words in str(error):
                raise Unmet(reason, hint) from error
        raise
    expect_shape(step, (1, 2))


_NOT_FOLLOWED = (
    (
        "does not require grad",
        "PyTorch didn't track the query on its way to the loss",
        "Did you ask PyTorch to track the query? `query.clone().requires_grad_()` does, as in `slopes`; then compute "
        "the loss from this query.",
    ),
    (
        "in-place operation",
        "a line writes into the query that PyTorch tracks",
        "Which line changes the query itself? Return a new tensor instead, `query.detach()` minus the step.",
    ),
)
"""Words of PyTorch's error, what they mean here, and a hint."""


@one_step.must("brings the answer nearer to the wanted one, from below and from above")
def brings_answer_nearer_to_wanted_one(candidate):
    """In which direction does the loss fall, along its slope or against it? The slope points uphill, so subtract it."""
    before = _look_up(_kitten()).item()
    after = {
        wanted: _look_up(
            expect_shape(candidate(_look_up, _kitten(), wanted, 3e-4), (1, 2)).detach()
        ).item()
        for wanted in (20.0, 5.0)
    }
    same_way = (after[20.0] > before) == (after[5.0] > before)
    for wanted, reached in after.items():
        expect(
            abs(reached - wanted) < abs(before - wanted),
            f"{wanted:g} years are wanted; the answer was {before:.4g}, and after your step it is {reached:.4g}",
            "Your step goes the same way, whatever is wanted. Is it the slope of the *loss*? The wanted answer has to "
            "be in it."
            if same_way
            else "",
        )


@one_step.must("stays where it is if the answer is the wanted one")
def stays_where_it_is_if_answer_is_wanted_one(candidate):
    """Which function do you take the slope of? The answer has a slope even here, but ½(answer − wanted)² has none."""
    wanted = _look_up(_kitten()).item()
    expect_close(candidate(_look_up, _kitten(), wanted, 1e-3), _kitten(), "no step is needed")


@one_step.must("goes against the slope of ½(answer − wanted)², times the rate")
def goes_against_slope_of_half_squared_times_rate(candidate):
    """Do you have the ½ and the square? Here the answer is the sum of two features, 3, and 5 is wanted, so the slope of
    the loss is 3 − 5 for each feature.
    """
    step = candidate(lambda query: query.sum(-1), torch.tensor([[1.0, 2.0]]), 5.0, 0.1)
    expect_close(step, torch.tensor([[1.2, 2.2]]), "from (1, 2) with the rate 0.1")


@one_step.must("moves each of several queries by its own slope")
def moves_each_of_several_queries_by_its_own_slope(candidate):
    """How do you make one number of several losses? With `mean` each slope is divided by the number of queries; with
    `sum` each query keeps its own.
    """
    queries = torch.tensor([[1.0, 2.0], [4.0, 4.0]])
    expected = torch.tensor([[1.2, 2.2], [3.7, 3.7]])
    step = candidate(lambda query: query.sum(-1), queries.clone(), 5.0, 0.1)
    off = queries.sum(-1) - 5
    crossed = torch.is_tensor(step) and step.shape == queries.shape
    crossed = crossed and torch.allclose(step.detach(), queries - 0.1 * off)
    expect_close(
        step,
        expected,
        "from (1, 2) and (4, 4) with the rate 0.1",
        hint="Over which axis do the queries' errors spread? `answer - wanted` has one number for each query, but "
        "broadcasting gives one to each *feature*. A new axis, `[:, None]`, makes it a column."
        if crossed
        else "",
    )


one_step.must_keep_inputs(
    lambda: [_look_up, _kitten(), 20.0, 1e-4],
    "Does a line write into the query that was handed in? Look for `-=` or a method that ends in _, and work on a "
    "`query.clone()`.",
    "leaves the query that it is given unchanged",
)


@one_step.must("returns a query without a history")
def returns_query_without_history(candidate):
    """After 3,000 steps, how long is the way back through all of them? Begin the result with `query.detach()`."""
    step = candidate(_look_up, _kitten(), 20.0, 1e-4)
    expect(not step.requires_grad, "the new query still remembers how it was computed")


# A table of one's own -----------------------------------------------------------------------------

my_table = Check()


def _numbers_of_table(candidate):
    """Keys, values, query, wanted answer and temperature, all as numbers."""
    answer = candidate()
    expect(
        isinstance(answer, tuple | list) and len(answer) == 4,
        f"got {len(answer) if isinstance(answer, tuple | list) else kind_of(answer)}, expected four things",
        "Which four things does the walk need? The table, the query, the wanted answer and T, in this order.",
    )
    table, query, wanted, T = answer
    if not isinstance(table, dict):
        raise WrongKind(f"the table is a {type(table).__name__}, expected a dictionary")
    try:
        rows = torch.tensor([list(row) for row in table.values()]).float().reshape(len(table), -1)
        query, wanted, T = torch.tensor(query).float().flatten(), float(wanted), float(T)
    except (TypeError, ValueError, RuntimeError):
        raise WrongKind(
            "an entry, the query, the wanted answer or T is not made of numbers"
        ) from None
    return rows, query, wanted, T


@my_table.must("has three entries or more, each with two features and a value")
def has_three_entries_or_more_each_with_two_features_and_value(candidate):
    """How many numbers does a row need? A name leads to three of them, as in `"soup": (0.2, 0.9, 30)`. The query has
    the two features only.
    """
    rows, query, _, T = _numbers_of_table(candidate)
    expect(
        len(rows) >= 3 and rows.shape[1] == 3,
        f"the table has {len(rows)} rows of {rows.shape[1] if rows.numel() else 0} numbers",
    )
    expect(
        len(query) == 2,
        f"the query has {len(query)} features",
        "The query has no value; that is what we ask for.",
    )
    expect(
        not any(hasattr(one, "__len__") for one in candidate()[1]),
        "the query is a list in a list",
        "How many numbers is it? Two, such as `(0.5, 0.8)`, without a second pair of brackets.",
    )
    expect(T > 0, f"T is {T:g}", "We divide by T. Take 0.1 to begin with.")


@my_table.must("keeps all features between 0 and 1")
def keeps_all_features_between_0_and_1(candidate):
    """In which units do you measure? A feature in the hundreds would outvote one between 0 and 1, so divide each by
    the largest that you can think of.
    """
    rows, query, *_ = _numbers_of_table(candidate)
    features = torch.cat([rows[:, :2].flatten(), query])
    outside = features[(features < 0) | (features > 1)]
    expect(len(outside) == 0, f"a feature is {outside[0].item() if len(outside) else 0:g}")


@my_table.must("asks for something that is not in the table")
def asks_for_something_that_is_not_in_table(candidate):
    """Is your query one of the keys? A dictionary could answer that. Move it a little."""
    rows, query, *_ = _numbers_of_table(candidate)
    expect(not (rows[:, :2] == query).all(-1).any(), "the query is the key of an entry")


@my_table.must("wants an answer between the smallest and the largest value")
def wants_answer_between_smallest_and_largest_value(candidate):
    """Which answers can a weighted average give? None beyond the values, however far the query walks."""
    rows, _, wanted, _ = _numbers_of_table(candidate)
    low, high = rows[:, 2].min().item(), rows[:, 2].max().item()
    expect(low < wanted < high, f"{wanted:g} is wanted, and the values go from {low:g} to {high:g}")


@my_table.must("wants an answer that no entry has, and that isn't the first one")
def wants_answer_that_no_entry_has_and_that_isnt_first_one(candidate):
    """How far is the wanted answer from each value, and from what the query gets before its walk? Leave a twentieth of
    the range, so there is something to see.
    """
    rows, query, wanted, T = _numbers_of_table(candidate)
    keys, values = rows[:, :2], rows[:, 2]
    room = 0.05 * (values.max() - values.min()).item()
    gap = (values - wanted).abs().min().item()
    away = f"a value only {gap:.2g} away" if gap else "just this value"
    expect(gap >= room, f"{wanted:g} is wanted, and an entry has {away}")
    scores = -(query - keys).square().sum(-1) / 2
    first = ((scores / T).softmax(-1) @ values).item()
    expect(
        abs(first - wanted) >= room, f"{wanted:g} is wanted, and the first answer is {first:.2f}"
    )


@my_table.must("walks to the wanted answer by small steps")
def walks_to_wanted_answer_by_small_steps(candidate):
    """Which way does the slope lead? Look at it in the widget: `cu.live.look_up(table, {"mine": query})`, and try
    another temperature or another beginning.
    """
    rows, query, wanted, T = _numbers_of_table(candidate)
    places, end = walks.walk(rows[:, :2], rows[:, 2], query, T, wanted)
    reasons = {
        "left": (
            f"after {len(places) - 1} steps the query leaves the picture",
            "Is it cold or hot? A cold softmax sees only the nearest entries, and a hot one hardly sees a difference, "
            "so change T toward 0.1, or begin nearer to an entry with such a value.",
        ),
        "stays": (
            "the slope is 0 where the query begins",
            "How much weight do the other entries have there? At so low a T one entry has it all, so raise T.",
        ),
        "late": (
            f"it has not arrived after {walks.MOST_STEPS} steps",
            "Begin nearer, or raise T a little.",
        ),
    }
    expect(end == "arrived", *reasons.get(end, ("", "")))


# Safe softmax -----------------------------------------------------------------------------------

SOFTMAXES = (
    "softmax", "log_softmax", "softmin", "special_softmax", "special_log_softmax", "_softmax", "softmax.int",
    "scaled_dot_product_attention",
)  # fmt: skip

safe_softmax = Check(forbids=SOFTMAXES)


@safe_softmax.must("turns a matrix of scores into a matrix of weights of the same shape")
def keeps_shape_of_scores(candidate):
    """Do the largest scores and the sums still have their axis? `keepdim=True` keeps it. And `x.max(dim=…)` returns
    values and indices, so take its `.values`.
    """
    expect_shape(candidate(torch.randn(2, 3)), (2, 3))


safe_softmax.must_keep_inputs(
    lambda: [torch.tensor([[1.0, -math.inf], [2.0, 0.0]])],
    (
        "Does a line write into the scores of the caller? Look for a method that ends in _, or an assignment to a "
        "part of the argument."
    ),
    "leaves its input unchanged",
)


@safe_softmax.must("turns (0, ln 2, ln 5) into weights of 1/8, 2/8 and 5/8")
def gives_weights_of_example_by_hand(candidate):
    """What is exp of each of these scores? Add them up by hand, and compare with the sum that your code divides by.

    If you see NaN, all exponentials of a row became 0. Which shift makes the largest of them 1?
    """
    scores = torch.tensor([[0.0, math.log(2), math.log(5)], [1.0, 1.0, 1.0]])
    expected = torch.tensor([[1 / 8, 2 / 8, 5 / 8], [1 / 3, 1 / 3, 1 / 3]])
    expect_close(candidate(scores), expected, "scores (0, ln 2, ln 5) and (1, 1, 1)")
    hint = "Which step cuts off the way back for a part of the formula? Look for `.detach()` or `no_grad`."
    expect_same_gradients(candidate, partial(F.softmax, dim=-1), scores=scores, hint=hint)


@safe_softmax.must("works along the last axis, however many axes there are")
def works_along_last_axis_however_many_axes_there_are(candidate):
    """Which number names the last axis of every tensor? Use it for the maximum and for the sum, and let both keep their
    axis.
    """
    for shape in ((4,), (2, 3, 4), (2, 2, 3, 4)):
        scores = torch.randn(shape)
        expect_close(candidate(scores), F.softmax(scores, dim=-1), f"scores of shape {shape}")


@safe_softmax.must("gives ordinary weights for scores of 1000 and of −1000")
def gives_ordinary_weights_for_huge_scores(candidate):
    """Softmax doesn't change when we shift a whole row. Which shift makes exp safe at both ends? After it, the largest
    score of each row should be 0.
    """
    expected = torch.tensor([[0.731059, 0.268941, 0.0]])
    for scores in ([1000.0, 999.0, 0.0], [-1000.0, -1001.0, -2000.0]):
        expect_close(candidate(torch.tensor([scores])), expected, f"scores {scores}")


@safe_softmax.must("treats rows with very different scores separately")
def treats_rows_with_very_different_scores_separately(candidate):
    """Is your shift one number for the whole tensor, or one for each row? Here one row is near 500 and the other near
    −500, so a common shift sends one of them out of range.
    """
    scores = torch.tensor([[500.0, 501.0], [-500.0, -501.0]])
    expect_close(candidate(scores), F.softmax(scores, dim=-1), "rows (500, 501) and (−500, −501)")


@safe_softmax.must("gives a score of −∞ the weight 0")
def gives_score_of_minus_infinity_weight_0(candidate):
    """What is exp(−∞)? It is exactly 0, so −∞ can stay in the scores; a large negative number is not the same."""
    scores = torch.tensor([[0.0, -math.inf, 0.0], [-math.inf, -2e6, -math.inf]])
    expected = torch.tensor([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    expect_close(candidate(scores), expected, "rows (0, −∞, 0) and (−∞, −2000000, −∞)")


# Soft top-k -------------------------------------------------------------------------------------

soft_top_k = Check()


@soft_top_k.must("gives each row exactly k weights that are not 0")
def gives_each_row_exactly_k_weights_that_are_not_0(candidate):
    """Does each row choose its own k best scores? Take them along the last axis, and return a tensor as large as the
    scores.

    A score of 0 still gets a weight, because its exponential is 1. Which score has the exponential 0?
    """
    scores = torch.randperm(20).reshape(2, 10).float()
    weights = expect_shape(candidate(scores, 3), (2, 10))
    expect_equal((weights != 0).sum(-1).tolist(), [3, 3], "k = 3, weights per row that are not 0")


@soft_top_k.must("puts the weights at the k best scores")
def puts_weights_at_k_best_scores(candidate):
    """`topk` returns values and indices. What do the indices tell you? They say where each weight belongs."""
    weights = expect_shape(candidate(torch.tensor([[-1.0, 3.0, 0.0, 2.0]]), 2), (1, 4))
    positions = (weights[0] != 0).nonzero()[:, 0].tolist()
    expect_equal(positions, [1, 3], "scores (−1, 3, 0, 2), positions with a weight")


@soft_top_k.must("gives the softmax of the k best scores")
def gives_softmax_of_k_best_scores(candidate):
    """Do the weights of a row sum to 1? Compare also the ratio of two of them: it should be exp of the difference of
    their scores.
    """
    expected = torch.tensor([[0.0, 0.731059, 0.0, 0.268941]])
    weights = candidate(torch.tensor([[-1.0, 3.0, 0.0, 2.0]]), 2)
    expect_close(weights, expected, "scores (−1, 3, 0, 2)")


@soft_top_k.must("gives ordinary weights for scores around ±1000")
def top_k_gives_ordinary_weights_for_huge_scores(candidate):
    """What do you compute first, the exponentials or the k best? Choose the scores first, then use a softmax that is
    stable.
    """
    expected = torch.tensor([[0.0, 0.731059, 0.268941], [0.731059, 0.268941, 0.0]])
    scores = torch.tensor([[0.0, 1000.0, 999.0], [-1000.0, -1001.0, -1002.0]])
    expect_close(candidate(scores, 2), expected, "scores around ±1000")


@soft_top_k.must("gives one-hot weights for k = 1 and plain softmax for k = m, with a batch axis")
def gives_one_hot_for_k_1_and_softmax_for_all_keys(candidate):
    """Does a step assume that there are exactly two axes? Let every step work along the last one, `dim=-1`."""
    scores = torch.randn(2, 3, 5)
    expect_close(candidate(scores, 5), scores.softmax(-1), "k = m")
    expect_close(candidate(scores, 1), F.one_hot(scores.argmax(-1), 5).float(), "k = 1")


soft_top_k.must_keep_inputs(
    lambda: [torch.tensor([[-1.0, 3.0, 0.0, 2.0]]), 2],
    (
        "Does a line write into the caller's scores? `scores[…] = …` and methods that end in _ do, so make a new "
        "tensor."
    ),
    "leaves the scores unchanged",
)


@soft_top_k.must("lets the gradient through to the k best scores")
def lets_gradient_through_to_k_best_scores(candidate):
    """Which step forgets where its numbers come from? Look for `.detach()`, `.data`, `.item()` or `torch.tensor(…)`."""

    def softmax_of_two(scores):
        return F.pad(scores[:, 1::2].softmax(dim=-1)[..., None], (1, 0)).flatten(1)

    scores = torch.tensor([[-1.0, 3.0, 0.0, 2.0]])
    expect_same_gradients(lambda scores: candidate(scores, 2), softmax_of_two, scores=scores)


# Attend or nothing ------------------------------------------------------------------------------

attend_or_nothing = Check()


@attend_or_nothing.must("gives each query an answer as long as a value")
def gives_each_query_answer_as_long_as_value(candidate):
    """What shape does the extra score need to fit next to scores of shape (queries, keys)? It has to be a column, and a
    tensor. Afterwards drop its weight, because it has no stored value.

    `torch.full_like(scores[..., :1], nothing)` is such a column, for `torch.cat`.
    """
    expect_shape(candidate(torch.randn(4, 3), torch.randn(3, 2), 0.5), (4, 2))


@attend_or_nothing.must("answers 0 if all scores are far below that of nothing")
def answers_0_if_all_scores_are_far_below_that_of_nothing(candidate):
    """Are the weights of the stored pairs still forced to sum to 1? The extra pair should take nearly all of it. If you
    shift the scores, shift `nothing` as well.
    """
    answer = candidate(torch.full((2, 3), -50.0), torch.randn(3, 2) + 5, 0.0)
    expect_close(answer, torch.zeros(2, 2), "scores of −50 against 0 for nothing")


@attend_or_nothing.must("equals plain attention if all scores are far above that of nothing")
def equals_plain_attention_if_scores_are_far_above_nothing(candidate):
    """Does each query have a sum of its own? Sum along the last axis only; exp(nothing) is negligible here, so what
    remains is an ordinary softmax.
    """
    scores, values = torch.randn(2, 3), torch.randn(3, 2)
    expect_close(candidate(scores, values, -60.0), scores.softmax(-1) @ values, "−60 for nothing")


@attend_or_nothing.must(
    "follows the formula in between, where values 4, 8, 12 that score as much as nothing give 24 / 4"
)
def shares_weight_with_nothing_in_between(candidate):
    """Where is the extra pair in the formula, above or below the line? There is no threshold: it only adds exp(nothing)
    to the sum that we divide by.
    """
    answer = candidate(torch.zeros(1, 3), torch.tensor([[4.0], [8.0], [12.0]]), 0.0)
    expect_close(answer, torch.tensor([[6.0]]), "values 4, 8, 12, all scores 0: 24 / 4")
    scores, values = torch.randn(4, 3), torch.randn(3, 2)
    expected = scores.exp() @ values / (math.exp(0.7) + scores.exp().sum(-1, keepdim=True))
    expect_close(candidate(scores, values, 0.7), expected, "0.7 for nothing")


@attend_or_nothing.must("stores no extra pair")
def stores_no_extra_pair(candidate):
    """Its value is 0. What does it add to the weighted sum? Nothing, so only the sum of the exponentials needs it."""
    with Shapes() as shapes:
        candidate(torch.randn(2, 3), torch.randn(3, 7), 0.7)
    expect(not shapes.made & {(4, 7), (7, 4)}, "3 values of length 7 became a table of 4")


@attend_or_nothing.must("gives finite, ordinary answers for scores of 1000 and −1000")
def gives_finite_answers_for_huge_scores(candidate):
    """The exponential of 1000 is infinite, so shift first, as in *A softmax for large scores*. Which is the
    largest number of a row? It may be the score of nothing.
    """
    scores, values = torch.tensor([[1000.0, 999.0], [-1000.0, -1000.0]]), torch.eye(2)[:, :1]
    answer = candidate(scores, values, 0.0)
    expect_close(answer, torch.tensor([[0.731059], [0.0]]), "scores of ±1000, 0 for nothing")
    answer = candidate(-scores.abs(), values, -1000.0)
    expected = torch.tensor([[1 / (2 + math.e)], [1 / 3]])
    expect_close(answer, expected, "scores near −1000, −1000 for nothing")
    expect_same_gradients(
        lambda scores: candidate(scores, values, 0.0),
        lambda scores: F.pad(scores, (0, 1)).softmax(-1)[..., :-1] @ values,
        scores=scores,
        hint="The largest score may be that of nothing. Which exponential is infinite then? Include it in the shift.",
    )


@attend_or_nothing.must("answers a batch of databases one by one")
def answers_batch_of_databases_one_by_one(candidate):
    """Does each step work along the last axis? Use `dim=-1` and `[..., :-1]`, and give the extra score as many axes as
    the scores have.
    """
    scores, values = torch.randn(2, 3, 4), torch.randn(2, 4, 2)
    weights = torch.cat([scores, torch.full((2, 3, 1), 0.5)], -1).softmax(-1)
    expect_close(candidate(scores, values, 0.5), weights[..., :-1] @ values, "a batch of two")
