"""What softmax weights and look-ups must satisfy: the exercises of *Queries, keys and values*.

Each property is tried on a learner's function; the references are PyTorch's operators or sums written out.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.lessons.check import Check, Property, expect, expect_close, expect_shape

__all__ = ["attend_or_nothing", "fixed_lookup", "safe_softmax", "self_attention", "soft_top_k"]

# safe_softmax(scores) ---------------------------------------------------------------------------


def _softmax_of_ordinary_scores(candidate):
    scores = torch.tensor([[0.0, math.log(2), math.log(5)], [1.0, 1.0, 1.0]])
    expected = torch.tensor([[1 / 8, 2 / 8, 5 / 8], [1 / 3, 1 / 3, 1 / 3]])
    expect_close(candidate(scores), expected, "scores (0, ln 2, ln 5) and (1, 1, 1)")


def _softmax_of_more_axes(candidate):
    for shape in ((4,), (2, 3, 4), (2, 2, 3, 4)):
        scores = torch.randn(shape)
        expect_close(candidate(scores), F.softmax(scores, dim=-1), f"scores of shape {shape}")


def _softmax_of_large_scores(candidate):
    expected = torch.tensor([[0.731059, 0.268941, 0.0]])
    for scores in ([1000.0, 999.0, 0.0], [-1000.0, -1001.0, -2000.0]):
        expect_close(candidate(torch.tensor([scores])), expected, f"scores {scores}")


def _softmax_of_rows_far_apart(candidate):
    scores = torch.tensor([[500.0, 501.0], [-500.0, -501.0]])
    expect_close(candidate(scores), F.softmax(scores, dim=-1), "rows (500, 501) and (−500, −501)")


def _softmax_with_missing_keys(candidate):
    scores = torch.tensor([[0.0, -math.inf, 0.0], [-math.inf, -2e6, -math.inf]])
    expected = torch.tensor([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    expect_close(candidate(scores), expected, "rows (0, −∞, 0) and (−∞, −2000000, −∞)")


def _softmax_of_an_empty_row(candidate):
    scores = torch.tensor([[1.0, 2.0], [-math.inf, -math.inf]])
    expected = torch.tensor([[0.268941, 0.731059], [0.0, 0.0]])
    expect_close(candidate(scores), expected, "rows (1, 2) and (−∞, −∞)")


def _softmax_keeps_its_argument(candidate):
    scores = torch.tensor([[1.0, -math.inf], [-math.inf, -math.inf]])
    before = scores.clone()
    candidate(scores)
    expect(torch.equal(scores, before), "the scores were changed")


safe_softmax = Check(
    "safe_softmax",
    [
        Property(
            "(0, ln 2, ln 5) gives weights of 1/8, 2/8 and 5/8",
            _softmax_of_ordinary_scores,
            "take the exponential of each score, then divide by the sum of its row.",
        ),
        Property(
            "it runs over the last axis, however many there are",
            _softmax_of_more_axes,
            "counted from the end an axis has the same number everywhere; keepdim=True keeps shapes fitting.",
        ),
        Property(
            "scores of 1000 and of −1000 give ordinary weights",
            _softmax_of_large_scores,
            "softmax does not change when a row is shifted. Which shift makes exp safe at both ends?",
        ),
        Property(
            "rows with very different scores do not disturb each other",
            _softmax_of_rows_far_apart,
            "each row needs a shift of its own.",
        ),
        Property(
            "a score of −∞ gives a weight of 0",
            _softmax_with_missing_keys,
            "exp(−∞) is 0 by itself, and −∞ is not a large finite number.",
        ),
        Property(
            "a row of −∞ only gives zeros",
            _softmax_of_an_empty_row,
            "look at what the largest score of such a row is, and at what −∞ − (−∞) and 0 / 0 give.",
        ),
        Property(
            "the scores that are given are not changed",
            _softmax_keeps_its_argument,
            "look for a method that ends in _ or an assignment to part of the argument.",
        ),
    ],
)


# soft_top_k(scores, k) --------------------------------------------------------------------------


def _top_k_keeps_k(candidate):
    scores = torch.randperm(20).reshape(2, 10).float()
    weights = candidate(scores, 3)
    expect_shape(weights, (2, 10))
    kept = (weights != 0).sum(-1).tolist()
    expect(kept == [3, 3], f"for k = 3 the two rows have {kept} weights that are not 0")


def _top_k_keeps_the_best(candidate):
    weights = candidate(torch.tensor([[-1.0, 3.0, 0.0, 2.0]]), 2)
    expect_shape(weights, (1, 4))
    kept = (weights[0] != 0).nonzero()[:, 0].tolist()
    expect(kept == [1, 3], f"scores (−1, 3, 0, 2): positions {kept} have weight, not [1, 3]")


def _top_k_is_softmax_of_the_kept(candidate):
    expected = torch.tensor([[0.0, 0.731059, 0.0, 0.268941]])
    expect_close(
        candidate(torch.tensor([[-1.0, 3.0, 0.0, 2.0]]), 2), expected, "scores (−1, 3, 0, 2)"
    )


def _top_k_survives_large_scores(candidate):
    expected = torch.tensor([[0.0, 0.731059, 0.268941], [0.731059, 0.268941, 0.0]])
    scores = torch.tensor([[0.0, 1000.0, 999.0], [-1000.0, -1001.0, -1002.0]])
    expect_close(candidate(scores, 2), expected, "scores around ±1000")


def _top_k_at_its_ends(candidate):
    scores = torch.randn(2, 3, 5)
    expect_close(candidate(scores, 5), scores.softmax(-1), "k = m")
    expect_close(candidate(scores, 1), F.one_hot(scores.argmax(-1), 5).float(), "k = 1")


soft_top_k = Check(
    "soft_top_k",
    [
        Property(
            "each row has k weights that are not 0",
            _top_k_keeps_k,
            "each row has its own k best; the result is as large as the scores.",
        ),
        Property(
            "they stand where the k best scores stand",
            _top_k_keeps_the_best,
            "topk gives values and indices; the indices say where to put the weights.",
        ),
        Property(
            "they are the softmax of the k best scores",
            _top_k_is_softmax_of_the_kept,
            "the weights of a row sum to 1, and their ratio is exp of the difference of the scores.",
        ),
        Property(
            "scores around ±1000 give ordinary weights",
            _top_k_survives_large_scores,
            "choose before you exponentiate, and let a stable softmax do the exponentials.",
        ),
        Property(
            "k = 1 gives one-hot weights and k = m plain softmax, with a batch axis too",
            _top_k_at_its_ends,
            "is each step taken along the last axis, and does nothing assume two axes?",
        ),
    ],
)


# self_attention(X, W_q, W_k, W_v) ---------------------------------------------------------------


def _matrices(M: int = 6, d: int = 4, d_v: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(M, d), torch.randn(M, d), torch.randn(M, d_v)


def _attention_by_hand(X: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    """One word after the other, with sums written out: (words, M) → (words, d_v)."""
    answers = []
    for word in X:
        scores = torch.stack([(word @ W_q) @ (other @ W_k) for other in X]) / math.sqrt(
            W_q.shape[1]
        )
        answers.append(
            sum(a * (other @ W_v) for a, other in zip(scores.softmax(-1), X, strict=True))
        )
    return torch.stack(answers)


def _attention_has_its_shape(candidate):
    expect_shape(candidate(torch.randn(5, 6), *_matrices()), (5, 3))


def _attention_averages_when_nothing_is_sought(candidate):
    X, (W_q, W_k, W_v) = torch.randn(5, 6), _matrices()
    expected = (X @ W_v).mean(0).expand(5, 3)
    expect_close(
        candidate(X, 0 * W_q, W_k, W_v), expected, "W_q = 0: each answer is the mean value"
    )


def _attention_asks_with_queries(candidate):
    X = torch.eye(2)
    W_q = torch.tensor([[90.0, 0.0], [90.0, 0.0]])
    expected = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    answers = candidate(X, W_q, torch.eye(2), torch.eye(2))
    expect_close(answers, expected, "two words that both look for the first")


def _attention_is_scaled(candidate):
    X, matrices = torch.randn(5, 6), _matrices(d=2)
    expect_close(candidate(X, *matrices), _attention_by_hand(X, *matrices), "six features, d = 2")


def _attention_of_a_batch(candidate):
    X, matrices = torch.randn(2, 3, 4, 6), _matrices()
    one_by_one = torch.stack([_attention_by_hand(x, *matrices) for x in X.flatten(0, 1)])
    expect_close(
        candidate(X, *matrices), one_by_one.reshape(2, 3, 4, 3), "sentences in two more axes"
    )


self_attention = Check(
    "self_attention",
    [
        Property(
            "five words and W_v of size (6, 3) give five answers of size 3",
            _attention_has_its_shape,
            "words are rows: X stands on the left of each matrix, and the answers are sums of values.",
        ),
        Property(
            "with W_q = 0 each answer is the mean of the values",
            _attention_averages_when_nothing_is_sought,
            "equal scores have to become weights of 1/m; which axis do the weights sum to 1 along, and what is summed?",
        ),
        Property(
            "a row of the scores belongs to a query",
            _attention_asks_with_queries,
            "entry (i, j) is query i times key j; which of the two factors is transposed?",
        ),
        Property(
            "the scores are divided by √d, d being the size of a query",
            _attention_is_scaled,
            "d is the last axis of Q, not of X, and the division comes before the softmax.",
        ),
        Property(
            "sentences in a batch are answered one by one",
            _attention_of_a_batch,
            ".T turns all axes around and dim=1 counts from the front; say which axes you mean from the end.",
        ),
    ],
)


# fixed_lookup(queries, keys, values) ------------------------------------------------------------


def _lookup_alone(candidate):
    queries, keys, values = torch.randn(3, 2), torch.randn(5, 2), torch.randn(5, 4)
    expected = (queries @ keys.T).softmax(-1) @ values
    expect_close(candidate(queries, keys, values), expected, "3 queries, 5 pairs, no batch axis")


def _lookup_of_constants(candidate):
    answers = candidate(torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.full((2, 5, 1), 7.0))
    expect_close(answers, torch.full((2, 3, 1), 7.0), "where each value is 7, each answer is 7")


def _lookup_in_a_batch(candidate):
    queries, keys, values = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 2)
    expected = torch.stack(
        [(q @ k.T).softmax(-1) @ v for q, k, v in zip(queries, keys, values, strict=True)]
    )
    expect_close(candidate(queries, keys, values), expected, "a batch of two databases")


def _lookup_with_heads(candidate):
    queries, keys, values = (torch.randn(2, 3, n, 4) for n in (4, 5, 5))
    expected = (queries @ keys.mT).softmax(-1) @ values
    expect_close(candidate(queries, keys, values), expected, "axes (batch, heads, queries, d)")


fixed_lookup = Check(
    "fixed_lookup",
    [
        Property(
            "without a batch axis it answers as before",
            _lookup_alone,
            "that case was right; change nothing about the scores and the order of the products.",
        ),
        Property(
            "in a batch the weights of each query sum to 1",
            _lookup_of_constants,
            "with (batch, queries, keys), what does dim=1 count along?",
        ),
        Property(
            "each database of a batch is asked by its own queries",
            _lookup_in_a_batch,
            "transpose the last two axes only, and let @ take the batch in step.",
        ),
        Property(
            "it works with heads in front as well",
            _lookup_with_heads,
            "an axis counted from the end stays right when axes are put in front.",
        ),
    ],
)


# attend_or_nothing(scores, values, nothing) -----------------------------------------------------


def _or_nothing_finds_nothing(candidate):
    answer = candidate(torch.full((2, 3), -50.0), torch.randn(3, 2) + 5, 0.0)
    expect_close(answer, torch.zeros(2, 2), "scores of −50 against 0 for nothing")


def _or_nothing_is_attention_otherwise(candidate):
    scores, values = torch.randn(2, 3), torch.randn(3, 2)
    expect_close(candidate(scores, values, -60.0), scores.softmax(-1) @ values, "−60 for nothing")


def _or_nothing_follows_the_formula(candidate):
    answer = candidate(torch.zeros(1, 3), torch.tensor([[4.0], [8.0], [12.0]]), 0.0)
    expect_close(answer, torch.tensor([[6.0]]), "values 4, 8, 12, all scores 0: 24 / 4")
    scores, values = torch.randn(4, 3), torch.randn(3, 2)
    expected = scores.exp() @ values / (math.exp(0.7) + scores.exp().sum(-1, keepdim=True))
    expect_close(candidate(scores, values, 0.7), expected, "0.7 for nothing")


def _or_nothing_survives_large_scores(candidate):
    scores = torch.tensor([[1000.0, 999.0], [-1000.0, -1000.0]])
    values = torch.tensor([[1.0], [0.0]])
    answer = candidate(scores, values, 0.0)
    expect_close(answer, torch.tensor([[0.731059], [0.0]]), "scores of ±1000, 0 for nothing")
    answer = candidate(-scores.abs(), values, -1000.0)
    third = torch.tensor([[1 / (2 + math.e)], [1 / 3]])
    expect_close(answer, third, "scores near −1000, −1000 for nothing")


def _or_nothing_in_a_batch(candidate):
    scores, values = torch.randn(2, 3, 4), torch.randn(2, 4, 2)
    weights = torch.cat([scores, torch.full((2, 3, 1), 0.5)], -1).softmax(-1)
    expect_close(candidate(scores, values, 0.5), weights[..., :-1] @ values, "a batch of two")


attend_or_nothing = Check(
    "attend_or_nothing",
    [
        Property(
            "scores far below that of nothing give 0",
            _or_nothing_finds_nothing,
            "are the weights of the stored pairs still forced to sum to 1?",
        ),
        Property(
            "scores far above it give plain attention",
            _or_nothing_is_attention_otherwise,
            "when exp(nothing) is negligible, nothing of it may be left in the answer.",
        ),
        Property(
            "in between it follows the formula: values 4, 8, 12 that score as much as nothing give 24 / 4",
            _or_nothing_follows_the_formula,
            "there is no threshold; the extra pair takes its share of the denominator like any other.",
        ),
        Property(
            "scores of 1000 and −1000 give finite, ordinary answers",
            _or_nothing_survives_large_scores,
            "the largest score may be that of nothing or of a pair; shift by the largest of all, or let softmax do it.",
        ),
        Property(
            "a batch of databases is answered one by one",
            _or_nothing_in_a_batch,
            "count axes from the end, and make the extra score fit all axes before the keys.",
        ),
    ],
)
