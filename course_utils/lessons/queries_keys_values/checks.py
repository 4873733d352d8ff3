"""Checks of *Queries, keys and values*: weights on paper, softmax, its k largest, an answer of nothing.

The references are PyTorch's operators, or sums written out.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F

from course_utils.kit.check import (
    Check,
    expect,
    expect_close,
    expect_equal,
    expect_same_gradients,
    expect_shape,
)
from course_utils.kit.on_paper import on_paper
from course_utils.kit.tracing import Shapes

# Five weights on paper ----------------------------------------------------------------------------

predicted_weights = on_paper(
    "predicted_weights", __name__, {
        "a": (1 / 8, "the weight of the first key as it stands",
             "Which of the three exponentials belongs to it, and what do all three sum to?"),
        "b": (2 / 9, "its weight with a higher score",
             "What is the first exponential now, and what do all three sum to?"),
        "c": (1 / 30, "its weight after doubling", "What is exp(2 ln 5)? It is not 2 · 5."),
        "d": (1 / 16, "its weight among four keys",
             "What is the fourth exponential, and what becomes of the sum?"),
        "e": (1 / 3, "its weight at a huge temperature",
             "What is a score divided by a huge number, and the exponential of that?"),
    }, within=0.006,
)  # fmt: skip


# Safe softmax -----------------------------------------------------------------------------------

SOFTMAXES = (
    "softmax", "log_softmax", "softmin", "special_softmax", "special_log_softmax", "_softmax", "softmax.int",
    "scaled_dot_product_attention",
)  # fmt: skip

safe_softmax = Check("safe_softmax", forbids=SOFTMAXES)


@safe_softmax.must("a matrix of scores gives a matrix of weights")
def _(candidate):
    """`x.max(dim=…)` gives values and indices: take `.values`. And the largest scores and the sums have to keep
    their axis: `keepdim=True`.
    """
    expect_shape(candidate(torch.randn(2, 3)), (2, 3))


safe_softmax.must_keep_inputs(
    lambda: [torch.tensor([[1.0, -math.inf], [2.0, 0.0]])],
    "Look for a method that ends in _, or an assignment to a part of the argument.",
    "the input is not changed",
)


@safe_softmax.must("(0, ln 2, ln 5) gives weights of 1/8, 2/8 and 5/8")
def _(candidate):
    """What is exp of each of these scores, and what is their sum?

    NaN? Then all exponentials of a row became 0: which shift makes the largest of them 1?
    """
    scores = torch.tensor([[0.0, math.log(2), math.log(5)], [1.0, 1.0, 1.0]])
    expected = torch.tensor([[1 / 8, 2 / 8, 5 / 8], [1 / 3, 1 / 3, 1 / 3]])
    expect_close(candidate(scores), expected, "scores (0, ln 2, ln 5) and (1, 1, 1)")
    hint = "Which step keeps a part of the formula from the way back: `.detach()`, or `no_grad`?"
    expect_same_gradients(candidate, partial(F.softmax, dim=-1), scores=scores, hint=hint)


@safe_softmax.must("it works along the last axis, however many axes there are")
def _(candidate):
    """Which number names the last axis of every tensor? Does each sum keep its axis?"""
    for shape in ((4,), (2, 3, 4), (2, 2, 3, 4)):
        scores = torch.randn(shape)
        expect_close(candidate(scores), F.softmax(scores, dim=-1), f"scores of shape {shape}")


@safe_softmax.must("scores of 1000 and of −1000 give ordinary weights")
def _(candidate):
    """Softmax does not change when a row is shifted. Which shift makes exp safe at both ends?"""
    expected = torch.tensor([[0.731059, 0.268941, 0.0]])
    for scores in ([1000.0, 999.0, 0.0], [-1000.0, -1001.0, -2000.0]):
        expect_close(candidate(torch.tensor([scores])), expected, f"scores {scores}")


@safe_softmax.must("rows with very different scores do not disturb each other")
def _(candidate):
    """Is your shift one number for the whole tensor, or one for each row?"""
    scores = torch.tensor([[500.0, 501.0], [-500.0, -501.0]])
    expect_close(candidate(scores), F.softmax(scores, dim=-1), "rows (500, 501) and (−500, −501)")


@safe_softmax.must("a score of −∞ gives a weight of 0")
def _(candidate):
    """What is exp(−∞)? And is a large negative number the same as −∞?"""
    scores = torch.tensor([[0.0, -math.inf, 0.0], [-math.inf, -2e6, -math.inf]])
    expected = torch.tensor([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    expect_close(candidate(scores), expected, "rows (0, −∞, 0) and (−∞, −2000000, −∞)")


# Soft top-k -------------------------------------------------------------------------------------

soft_top_k = Check("soft_top_k")


@soft_top_k.must("each row has k weights that are not 0")
def _(candidate):
    """Each row has its own k best scores. Is the result as large as the scores?"""
    scores = torch.randperm(20).reshape(2, 10).float()
    weights = expect_shape(candidate(scores, 3), (2, 10))
    expect_equal((weights != 0).sum(-1).tolist(), [3, 3], "k = 3, weights that are not 0 by row")


@soft_top_k.must("they stand where the k best scores stand")
def _(candidate):
    """`topk` gives values and indices. What do the indices tell you?"""
    weights = expect_shape(candidate(torch.tensor([[-1.0, 3.0, 0.0, 2.0]]), 2), (1, 4))
    positions = (weights[0] != 0).nonzero()[:, 0].tolist()
    expect_equal(positions, [1, 3], "scores (−1, 3, 0, 2), positions with a weight")


@soft_top_k.must("they are the softmax of the k best scores")
def _(candidate):
    """Do the weights of a row sum to 1? Is their ratio exp of the difference of the scores?"""
    expected = torch.tensor([[0.0, 0.731059, 0.0, 0.268941]])
    weights = candidate(torch.tensor([[-1.0, 3.0, 0.0, 2.0]]), 2)
    expect_close(weights, expected, "scores (−1, 3, 0, 2)")


@soft_top_k.must("scores around ±1000 give ordinary weights")
def _(candidate):
    """What do you compute first, the exponentials or the k best? Is your softmax stable?"""
    expected = torch.tensor([[0.0, 0.731059, 0.268941], [0.731059, 0.268941, 0.0]])
    scores = torch.tensor([[0.0, 1000.0, 999.0], [-1000.0, -1001.0, -1002.0]])
    expect_close(candidate(scores, 2), expected, "scores around ±1000")


@soft_top_k.must("k = 1 gives one-hot weights and k = m plain softmax, with a batch axis too")
def _(candidate):
    """Does each step work along the last axis? Does one assume two axes?"""
    scores = torch.randn(2, 3, 5)
    expect_close(candidate(scores, 5), scores.softmax(-1), "k = m")
    expect_close(candidate(scores, 1), F.one_hot(scores.argmax(-1), 5).float(), "k = 1")


soft_top_k.must_keep_inputs(
    lambda: [torch.tensor([[-1.0, 3.0, 0.0, 2.0]]), 2],
    "`scores[…] = …` and methods that end in _ write into the caller's scores. Which function makes a new tensor?",
    "the scores are not changed",
)


@soft_top_k.must("the gradient gets through to the k best scores")
def _(candidate):
    """Which step forgets where its numbers come from: `.detach()`, `.data`, `.item()`, `torch.tensor(…)`?"""

    def softmax_of_two(scores):
        return F.pad(scores[:, 1::2].softmax(dim=-1)[..., None], (1, 0)).flatten(1)

    scores = torch.tensor([[-1.0, 3.0, 0.0, 2.0]])
    expect_same_gradients(lambda scores: candidate(scores, 2), softmax_of_two, scores=scores)


# Attend or nothing ------------------------------------------------------------------------------

attend_or_nothing = Check("attend_or_nothing")


@attend_or_nothing.must("each query gets an answer as long as a value")
def _(candidate):
    """The extra score has to stand beside scores of shape (queries, keys): as a column, with as many axes. It is no
    tensor yet. And which of the weights belong to the stored pairs?

    `torch.full_like(scores[..., :1], nothing)` is such a column, for `torch.cat`.
    """
    expect_shape(candidate(torch.randn(4, 3), torch.randn(3, 2), 0.5), (4, 2))


@attend_or_nothing.must("scores far below that of nothing give 0")
def _(candidate):
    """Are the weights of the stored pairs still forced to sum to 1? If you shift the scores, shift `nothing`, too."""
    answer = candidate(torch.full((2, 3), -50.0), torch.randn(3, 2) + 5, 0.0)
    expect_close(answer, torch.zeros(2, 2), "scores of −50 against 0 for nothing")


@attend_or_nothing.must("scores far above it give plain attention")
def _(candidate):
    """What is left of the extra pair when exp(nothing) is negligible? And has each query a sum of its own?"""
    scores, values = torch.randn(2, 3), torch.randn(3, 2)
    expect_close(candidate(scores, values, -60.0), scores.softmax(-1) @ values, "−60 for nothing")


@attend_or_nothing.must(
    "in between it follows the formula: values 4, 8, 12 that score as much as nothing give 24 / 4"
)
def _(candidate):
    """There is no threshold. Where does the extra pair stand in the formula, above or below the line?"""
    answer = candidate(torch.zeros(1, 3), torch.tensor([[4.0], [8.0], [12.0]]), 0.0)
    expect_close(answer, torch.tensor([[6.0]]), "values 4, 8, 12, all scores 0: 24 / 4")
    scores, values = torch.randn(4, 3), torch.randn(3, 2)
    expected = scores.exp() @ values / (math.exp(0.7) + scores.exp().sum(-1, keepdim=True))
    expect_close(candidate(scores, values, 0.7), expected, "0.7 for nothing")


@attend_or_nothing.must("the pair is not stored: no table has a value more")
def _(candidate):
    """Its value is 0. What does it add to the weighted sum, and what to the sum of the exponentials?"""
    with Shapes() as shapes:
        candidate(torch.randn(2, 3), torch.randn(3, 7), 0.7)
    expect(not shapes.made & {(4, 7), (7, 4)}, "3 values of length 7 became a table of 4")


@attend_or_nothing.must("scores of 1000 and −1000 give finite, ordinary answers")
def _(candidate):
    """The exponential of 1000 is infinite: shift first, as in Exercise 2. The largest may be that of nothing."""
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
        hint="The largest score may be that of nothing: which exponential is infinite then?",
    )


@attend_or_nothing.must("a batch of databases is answered one by one")
def _(candidate):
    """Does each step work along the last axis, `dim=-1` and `[..., :-1]`? Has the extra score as many axes?"""
    scores, values = torch.randn(2, 3, 4), torch.randn(2, 4, 2)
    weights = torch.cat([scores, torch.full((2, 3, 1), 0.5)], -1).softmax(-1)
    expect_close(candidate(scores, values, 0.5), weights[..., :-1] @ values, "a batch of two")
