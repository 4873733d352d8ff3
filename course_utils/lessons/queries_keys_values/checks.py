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
        "a": (1 / 8, "the weight of the first key as it is",
             "Which of the three exponentials belongs to the first key? Divide it by the sum of all three."),
        "b": (2 / 9, "its weight with a higher score",
             "What is the first exponential now? The sum changes with it, so add all three again."),
        "c": (1 / 30, "its weight after doubling",
             "What is exp(2 ln 5)? It isn't 2 · 5: twice a logarithm is the logarithm of the square."),
        "d": (1 / 16, "its weight among four keys",
             "What is the fourth exponential? Add it to the sum that we had in (a)."),
        "e": (1 / 3, "its weight at a huge temperature",
             "What is a score divided by a huge number? Nearly 0 for all three, so compare their exponentials."),
    }, within=0.006,
)  # fmt: skip


# Safe softmax -----------------------------------------------------------------------------------

SOFTMAXES = (
    "softmax", "log_softmax", "softmin", "special_softmax", "special_log_softmax", "_softmax", "softmax.int",
    "scaled_dot_product_attention",
)  # fmt: skip

safe_softmax = Check("safe_softmax", forbids=SOFTMAXES)


@safe_softmax.must("turns a matrix of scores into a matrix of weights of the same shape")
def _(candidate):
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
def _(candidate):
    """What is exp of each of these scores? Add them up by hand, and compare with the sum that your code divides by.

    If you see NaN, all exponentials of a row became 0. Which shift makes the largest of them 1?
    """
    scores = torch.tensor([[0.0, math.log(2), math.log(5)], [1.0, 1.0, 1.0]])
    expected = torch.tensor([[1 / 8, 2 / 8, 5 / 8], [1 / 3, 1 / 3, 1 / 3]])
    expect_close(candidate(scores), expected, "scores (0, ln 2, ln 5) and (1, 1, 1)")
    hint = "Which step cuts off the way back for a part of the formula? Look for `.detach()` or `no_grad`."
    expect_same_gradients(candidate, partial(F.softmax, dim=-1), scores=scores, hint=hint)


@safe_softmax.must("works along the last axis, however many axes there are")
def _(candidate):
    """Which number names the last axis of every tensor? Use it for the maximum and for the sum, and let both keep their
    axis.
    """
    for shape in ((4,), (2, 3, 4), (2, 2, 3, 4)):
        scores = torch.randn(shape)
        expect_close(candidate(scores), F.softmax(scores, dim=-1), f"scores of shape {shape}")


@safe_softmax.must("gives ordinary weights for scores of 1000 and of −1000")
def _(candidate):
    """Softmax doesn't change when we shift a whole row. Which shift makes exp safe at both ends? After it, the largest
    score of each row should be 0.
    """
    expected = torch.tensor([[0.731059, 0.268941, 0.0]])
    for scores in ([1000.0, 999.0, 0.0], [-1000.0, -1001.0, -2000.0]):
        expect_close(candidate(torch.tensor([scores])), expected, f"scores {scores}")


@safe_softmax.must("treats rows with very different scores separately")
def _(candidate):
    """Is your shift one number for the whole tensor, or one for each row? Here one row is near 500 and the other near
    −500, so a common shift sends one of them out of range.
    """
    scores = torch.tensor([[500.0, 501.0], [-500.0, -501.0]])
    expect_close(candidate(scores), F.softmax(scores, dim=-1), "rows (500, 501) and (−500, −501)")


@safe_softmax.must("gives a score of −∞ the weight 0")
def _(candidate):
    """What is exp(−∞)? It is exactly 0, so −∞ can stay in the scores; a large negative number is not the same."""
    scores = torch.tensor([[0.0, -math.inf, 0.0], [-math.inf, -2e6, -math.inf]])
    expected = torch.tensor([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    expect_close(candidate(scores), expected, "rows (0, −∞, 0) and (−∞, −2000000, −∞)")


# Soft top-k -------------------------------------------------------------------------------------

soft_top_k = Check("soft_top_k")


@soft_top_k.must("gives each row exactly k weights that are not 0")
def _(candidate):
    """Does each row choose its own k best scores? Take them along the last axis, and return a tensor as large as the
    scores.
    """
    scores = torch.randperm(20).reshape(2, 10).float()
    weights = expect_shape(candidate(scores, 3), (2, 10))
    expect_equal((weights != 0).sum(-1).tolist(), [3, 3], "k = 3, weights per row that are not 0")


@soft_top_k.must("puts the weights at the k best scores")
def _(candidate):
    """`topk` returns values and indices. What do the indices tell you? They say where each weight belongs."""
    weights = expect_shape(candidate(torch.tensor([[-1.0, 3.0, 0.0, 2.0]]), 2), (1, 4))
    positions = (weights[0] != 0).nonzero()[:, 0].tolist()
    expect_equal(positions, [1, 3], "scores (−1, 3, 0, 2), positions with a weight")


@soft_top_k.must("gives the softmax of the k best scores")
def _(candidate):
    """Do the weights of a row sum to 1? Compare also the ratio of two of them: it should be exp of the difference of
    their scores.
    """
    expected = torch.tensor([[0.0, 0.731059, 0.0, 0.268941]])
    weights = candidate(torch.tensor([[-1.0, 3.0, 0.0, 2.0]]), 2)
    expect_close(weights, expected, "scores (−1, 3, 0, 2)")


@soft_top_k.must("gives ordinary weights for scores around ±1000")
def _(candidate):
    """What do you compute first, the exponentials or the k best? Choose the scores first, then use a softmax that is
    stable.
    """
    expected = torch.tensor([[0.0, 0.731059, 0.268941], [0.731059, 0.268941, 0.0]])
    scores = torch.tensor([[0.0, 1000.0, 999.0], [-1000.0, -1001.0, -1002.0]])
    expect_close(candidate(scores, 2), expected, "scores around ±1000")


@soft_top_k.must("gives one-hot weights for k = 1 and plain softmax for k = m, with a batch axis")
def _(candidate):
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
def _(candidate):
    """Which step forgets where its numbers come from? Look for `.detach()`, `.data`, `.item()` or `torch.tensor(…)`."""

    def softmax_of_two(scores):
        return F.pad(scores[:, 1::2].softmax(dim=-1)[..., None], (1, 0)).flatten(1)

    scores = torch.tensor([[-1.0, 3.0, 0.0, 2.0]])
    expect_same_gradients(lambda scores: candidate(scores, 2), softmax_of_two, scores=scores)


# Attend or nothing ------------------------------------------------------------------------------

attend_or_nothing = Check("attend_or_nothing")


@attend_or_nothing.must("gives each query an answer as long as a value")
def _(candidate):
    """What shape does the extra score need to fit next to scores of shape (queries, keys)? It has to be a column, and a
    tensor. Afterwards drop its weight, because it has no stored value.

    `torch.full_like(scores[..., :1], nothing)` is such a column, for `torch.cat`.
    """
    expect_shape(candidate(torch.randn(4, 3), torch.randn(3, 2), 0.5), (4, 2))


@attend_or_nothing.must("answers 0 if all scores are far below that of nothing")
def _(candidate):
    """Are the weights of the stored pairs still forced to sum to 1? The extra pair should take nearly all of it. If you
    shift the scores, shift `nothing` as well.
    """
    answer = candidate(torch.full((2, 3), -50.0), torch.randn(3, 2) + 5, 0.0)
    expect_close(answer, torch.zeros(2, 2), "scores of −50 against 0 for nothing")


@attend_or_nothing.must("equals plain attention if all scores are far above that of nothing")
def _(candidate):
    """Does each query have a sum of its own? Sum along the last axis only; exp(nothing) is negligible here, so what
    remains is an ordinary softmax.
    """
    scores, values = torch.randn(2, 3), torch.randn(3, 2)
    expect_close(candidate(scores, values, -60.0), scores.softmax(-1) @ values, "−60 for nothing")


@attend_or_nothing.must(
    "follows the formula in between, where values 4, 8, 12 that score as much as nothing give 24 / 4"
)
def _(candidate):
    """Where is the extra pair in the formula, above or below the line? There is no threshold: it only adds exp(nothing)
    to the sum that we divide by.
    """
    answer = candidate(torch.zeros(1, 3), torch.tensor([[4.0], [8.0], [12.0]]), 0.0)
    expect_close(answer, torch.tensor([[6.0]]), "values 4, 8, 12, all scores 0: 24 / 4")
    scores, values = torch.randn(4, 3), torch.randn(3, 2)
    expected = scores.exp() @ values / (math.exp(0.7) + scores.exp().sum(-1, keepdim=True))
    expect_close(candidate(scores, values, 0.7), expected, "0.7 for nothing")


@attend_or_nothing.must("stores no extra pair")
def _(candidate):
    """Its value is 0. What does it add to the weighted sum? Nothing, so only the sum of the exponentials needs it."""
    with Shapes() as shapes:
        candidate(torch.randn(2, 3), torch.randn(3, 7), 0.7)
    expect(not shapes.made & {(4, 7), (7, 4)}, "3 values of length 7 became a table of 4")


@attend_or_nothing.must("gives finite, ordinary answers for scores of 1000 and −1000")
def _(candidate):
    """The exponential of 1000 is infinite, so shift first, as in Exercise 2. Which is the largest number of a row? It
    may be the score of nothing.
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
def _(candidate):
    """Does each step work along the last axis? Use `dim=-1` and `[..., :-1]`, and give the extra score as many axes as
    the scores have.
    """
    scores, values = torch.randn(2, 3, 4), torch.randn(2, 4, 2)
    weights = torch.cat([scores, torch.full((2, 3, 1), 0.5)], -1).softmax(-1)
    expect_close(candidate(scores, values, 0.5), weights[..., :-1] @ values, "a batch of two")
