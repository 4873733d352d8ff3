"""Checks of *Queries, keys and values*: softmax, its k largest, self-attention and look-ups.

The references are PyTorch's operators, or sums written out.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.lessons.check import Check, expect_close, expect_equal, expect_shape, unchanged

# Safe softmax -----------------------------------------------------------------------------------

safe_softmax = Check("safe_softmax")


@safe_softmax.must(
    "(0, ln 2, ln 5) gives weights of 1/8, 2/8 and 5/8",
    hint="What is exp of each of these scores, and what is their sum?",
)
def _(candidate):
    scores = torch.tensor([[0.0, math.log(2), math.log(5)], [1.0, 1.0, 1.0]])
    expected = torch.tensor([[1 / 8, 2 / 8, 5 / 8], [1 / 3, 1 / 3, 1 / 3]])
    expect_close(candidate(scores), expected, "scores (0, ln 2, ln 5) and (1, 1, 1)")


@safe_softmax.must(
    "it works along the last axis, however many axes there are",
    hint="Which number names the last axis of every tensor? Does each sum keep its axis?",
)
def _(candidate):
    for shape in ((4,), (2, 3, 4), (2, 2, 3, 4)):
        scores = torch.randn(shape)
        expect_close(candidate(scores), F.softmax(scores, dim=-1), f"scores of shape {shape}")


@safe_softmax.must(
    "scores of 1000 and of −1000 give ordinary weights",
    hint="Softmax does not change when a row is shifted. Which shift makes exp safe at both ends?",
)
def _(candidate):
    expected = torch.tensor([[0.731059, 0.268941, 0.0]])
    for scores in ([1000.0, 999.0, 0.0], [-1000.0, -1001.0, -2000.0]):
        expect_close(candidate(torch.tensor([scores])), expected, f"scores {scores}")


@safe_softmax.must(
    "rows with very different scores do not disturb each other",
    hint="Is your shift one number for the whole tensor, or one for each row?",
)
def _(candidate):
    scores = torch.tensor([[500.0, 501.0], [-500.0, -501.0]])
    expect_close(candidate(scores), F.softmax(scores, dim=-1), "rows (500, 501) and (−500, −501)")


@safe_softmax.must(
    "a score of −∞ gives a weight of 0",
    hint="What is exp(−∞)? And is a large negative number the same as −∞?",
)
def _(candidate):
    scores = torch.tensor([[0.0, -math.inf, 0.0], [-math.inf, -2e6, -math.inf]])
    expected = torch.tensor([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    expect_close(candidate(scores), expected, "rows (0, −∞, 0) and (−∞, −2000000, −∞)")


@safe_softmax.must(
    "a row with nothing but −∞ gives zeros",
    hint="What is the largest score of such a row? What do −∞ − (−∞) and 0 / 0 give?",
)
def _(candidate):
    scores = torch.tensor([[1.0, 2.0], [-math.inf, -math.inf]])
    expected = torch.tensor([[0.268941, 0.731059], [0.0, 0.0]])
    expect_close(candidate(scores), expected, "rows (1, 2) and (−∞, −∞)")


@safe_softmax.must(
    "the input is not changed",
    hint="Look for a method that ends in _, or an assignment to a part of the argument.",
)
def _(candidate):
    scores = torch.tensor([[1.0, -math.inf], [-math.inf, -math.inf]])
    with unchanged(scores):
        candidate(scores)


# Soft top-k -------------------------------------------------------------------------------------

soft_top_k = Check("soft_top_k")


@soft_top_k.must(
    "each row has k weights that are not 0",
    hint="Each row has its own k best scores. Is the result as large as the scores?",
)
def _(candidate):
    scores = torch.randperm(20).reshape(2, 10).float()
    weights = expect_shape(candidate(scores, 3), (2, 10))
    expect_equal((weights != 0).sum(-1).tolist(), [3, 3], "k = 3, weights that are not 0 by row")


@soft_top_k.must(
    "they stand where the k best scores stand",
    hint="`topk` gives values and indices. What do the indices tell you?",
)
def _(candidate):
    weights = expect_shape(candidate(torch.tensor([[-1.0, 3.0, 0.0, 2.0]]), 2), (1, 4))
    kept = (weights[0] != 0).nonzero()[:, 0].tolist()
    expect_equal(kept, [1, 3], "scores (−1, 3, 0, 2), positions with a weight")


@soft_top_k.must(
    "they are the softmax of the k best scores",
    hint="Do the weights of a row sum to 1? Is their ratio exp of the difference of the scores?",
)
def _(candidate):
    expected = torch.tensor([[0.0, 0.731059, 0.0, 0.268941]])
    weights = candidate(torch.tensor([[-1.0, 3.0, 0.0, 2.0]]), 2)
    expect_close(weights, expected, "scores (−1, 3, 0, 2)")


@soft_top_k.must(
    "scores around ±1000 give ordinary weights",
    hint="What do you compute first, the exponentials or the k best? Is your softmax stable?",
)
def _(candidate):
    expected = torch.tensor([[0.0, 0.731059, 0.268941], [0.731059, 0.268941, 0.0]])
    scores = torch.tensor([[0.0, 1000.0, 999.0], [-1000.0, -1001.0, -1002.0]])
    expect_close(candidate(scores, 2), expected, "scores around ±1000")


@soft_top_k.must(
    "k = 1 gives one-hot weights and k = m plain softmax, with a batch axis too",
    hint="Does each step work along the last axis? Does one assume two axes?",
)
def _(candidate):
    scores = torch.randn(2, 3, 5)
    expect_close(candidate(scores, 5), scores.softmax(-1), "k = m")
    expect_close(candidate(scores, 1), F.one_hot(scores.argmax(-1), 5).float(), "k = 1")


# Self-attention ---------------------------------------------------------------------------------

self_attention = Check("self_attention")


def _matrices(M: int = 6, d: int = 4, d_v: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(M, d), torch.randn(M, d), torch.randn(M, d_v)


def _by_hand(X: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    """One word after the other: (words, M) → (words, d_v)."""
    answers = []
    for word in X:
        scores = torch.stack([(word @ W_q) @ (other @ W_k) for other in X])
        weights = (scores / math.sqrt(W_q.shape[1])).softmax(-1)
        answers.append(sum(a * (other @ W_v) for a, other in zip(weights, X, strict=True)))
    return torch.stack(answers)


@self_attention.must(
    "five words and W_v of size (6, 3) give five answers of size 3",
    hint="Words are rows. On which side of each matrix does X stand, and what is averaged?",
)
def _(candidate):
    expect_shape(candidate(torch.randn(5, 6), *_matrices()), (5, 3))


@self_attention.must(
    "with W_q = 0 each answer is the mean of the values",
    hint="Equal scores give equal weights. Along which axis do your weights sum to 1, and what do they average?",
)
def _(candidate):
    X, (W_q, W_k, W_v) = torch.randn(5, 6), _matrices()
    expected = (X @ W_v).mean(0).expand(5, 3)
    expect_close(candidate(X, 0 * W_q, W_k, W_v), expected, "W_q = 0, the answers against the mean")


@self_attention.must(
    "a row of the scores belongs to a query",
    hint="Entry (i, j) is query i times key j. Which of the two factors is transposed?",
)
def _(candidate):
    W_q = torch.tensor([[90.0, 0.0], [90.0, 0.0]])
    expected = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    answers = candidate(torch.eye(2), W_q, torch.eye(2), torch.eye(2))
    expect_close(answers, expected, "two words that both look for the first")


@self_attention.must(
    "the scores are divided by √d, where d is the size of a query",
    hint="Which tensor has d as its last axis? Does the division come before the softmax?",
)
def _(candidate):
    X, matrices = torch.randn(5, 6), _matrices(d=2)
    expect_close(candidate(X, *matrices), _by_hand(X, *matrices), "six features, d = 2")


@self_attention.must(
    "sentences in a batch are answered one by one",
    hint="What do `.T` and `dim=1` mean when there are more axes in front?",
)
def _(candidate):
    X, matrices = torch.randn(2, 3, 4, 6), _matrices()
    expected = torch.stack([_by_hand(x, *matrices) for x in X.flatten(0, 1)]).view(2, 3, 4, 3)
    expect_close(candidate(X, *matrices), expected, "sentences in two more axes")


# A look-up: find the bug ------------------------------------------------------------------------

fixed_lookup = Check("fixed_lookup")


@fixed_lookup.must(
    "without a batch axis it answers as before",
    hint="This case was right before. What did you change in the scores or in the products?",
)
def _(candidate):
    queries, keys, values = torch.randn(3, 2), torch.randn(5, 2), torch.randn(5, 4)
    expected = (queries @ keys.T).softmax(-1) @ values
    expect_close(candidate(queries, keys, values), expected, "3 queries, 5 pairs, no batch axis")


@fixed_lookup.must(
    "in a batch the weights of each query sum to 1",
    hint="With axes (batch, queries, keys), which axis is dim=1?",
)
def _(candidate):
    answers = candidate(torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.full((2, 5, 1), 7.0))
    expect_close(answers, torch.full((2, 3, 1), 7.0), "every value is 7, so every answer is 7")


@fixed_lookup.must(
    "each database of a batch gets its own queries",
    hint="Which two axes have to be exchanged, and which must stay where they are?",
)
def _(candidate):
    queries, keys, values = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 2)
    triples = zip(queries, keys, values, strict=True)
    expected = torch.stack([(q @ k.T).softmax(-1) @ v for q, k, v in triples])
    expect_close(candidate(queries, keys, values), expected, "a batch of two databases")


@fixed_lookup.must(
    "it works with heads in front as well",
    hint="Which axis numbers stay right when more axes are put in front?",
)
def _(candidate):
    queries, keys, values = (torch.randn(2, 3, n, 4) for n in (4, 5, 5))
    expected = (queries @ keys.mT).softmax(-1) @ values
    expect_close(candidate(queries, keys, values), expected, "axes (batch, heads, queries, d)")


# Attend or nothing ------------------------------------------------------------------------------

attend_or_nothing = Check("attend_or_nothing")


@attend_or_nothing.must(
    "scores far below that of nothing give 0",
    hint="Are the weights of the stored pairs still forced to sum to 1?",
)
def _(candidate):
    answer = candidate(torch.full((2, 3), -50.0), torch.randn(3, 2) + 5, 0.0)
    expect_close(answer, torch.zeros(2, 2), "scores of −50 against 0 for nothing")


@attend_or_nothing.must(
    "scores far above it give plain attention",
    hint="What is left of the extra pair in the answer when exp(nothing) is negligible?",
)
def _(candidate):
    scores, values = torch.randn(2, 3), torch.randn(3, 2)
    expect_close(candidate(scores, values, -60.0), scores.softmax(-1) @ values, "−60 for nothing")


@attend_or_nothing.must(
    "in between it follows the formula: values 4, 8, 12 that score as much as nothing give 24 / 4",
    hint="There is no threshold. Where does the extra pair stand in the formula, above or below the line?",
)
def _(candidate):
    answer = candidate(torch.zeros(1, 3), torch.tensor([[4.0], [8.0], [12.0]]), 0.0)
    expect_close(answer, torch.tensor([[6.0]]), "values 4, 8, 12, all scores 0: 24 / 4")
    scores, values = torch.randn(4, 3), torch.randn(3, 2)
    expected = scores.exp() @ values / (math.exp(0.7) + scores.exp().sum(-1, keepdim=True))
    expect_close(candidate(scores, values, 0.7), expected, "0.7 for nothing")


@attend_or_nothing.must(
    "scores of 1000 and −1000 give finite, ordinary answers",
    hint="The largest score may be that of nothing, or that of a pair. Is your shift safe in both cases?",
)
def _(candidate):
    scores, values = torch.tensor([[1000.0, 999.0], [-1000.0, -1000.0]]), torch.eye(2)[:, :1]
    answer = candidate(scores, values, 0.0)
    expect_close(answer, torch.tensor([[0.731059], [0.0]]), "scores of ±1000, 0 for nothing")
    answer = candidate(-scores.abs(), values, -1000.0)
    expected = torch.tensor([[1 / (2 + math.e)], [1 / 3]])
    expect_close(answer, expected, "scores near −1000, −1000 for nothing")


@attend_or_nothing.must(
    "a batch of databases is answered one by one",
    hint="What shape must the extra score have to stand beside (batch, queries, keys)?",
)
def _(candidate):
    scores, values = torch.randn(2, 3, 4), torch.randn(2, 4, 2)
    weights = torch.cat([scores, torch.full((2, 3, 1), 0.5)], -1).softmax(-1)
    expect_close(candidate(scores, values, 0.5), weights[..., :-1] @ values, "a batch of two")
