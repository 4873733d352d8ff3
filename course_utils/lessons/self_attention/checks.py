"""Checks of *Self-attention*: from embeddings to answers, from two sentences, in any order, and a look-up with a bug.

The references are sums written out.
"""

import math

import torch
from torch import Tensor

from course_utils.lessons.check import Check, expect_close, expect_shape

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


# Cross-attention ----------------------------------------------------------------------------------

cross_attention = Check("cross_attention")


@cross_attention.must(
    "two words that ask five get two answers",
    hint="Which sentence makes the queries? How many answers has a query?",
)
def _(candidate):
    expect_shape(candidate(torch.randn(2, 6), torch.randn(5, 6), *_matrices()), (2, 3))


@cross_attention.must(
    "with the same sentence twice it is self-attention",
    hint="Compare with your self-attention: what is the scale, and what do the weights sum to?",
)
def _(candidate):
    X, matrices = torch.randn(5, 6), _matrices()
    expect_close(candidate(X, X, *matrices), _by_hand(X, *matrices), "Y = X")


@cross_attention.must(
    "the values come from the second sentence",
    hint="Whose content is handed over: that of the sentence that asks, or of the one that is asked?",
)
def _(candidate):
    Y, X, (W_q, W_k, W_v) = torch.randn(5, 6), torch.randn(5, 6), _matrices()
    expected = (X @ W_v).mean(0).expand(5, 3)
    expect_close(candidate(Y, X, 0 * W_q, W_k, W_v), expected, "W_q = 0, the mean of X's values")


# Undo a shuffle -----------------------------------------------------------------------------------

restored = Check("restored")


@restored.must(
    "no answer is lost", hint="Each answer has one place. Which indices does your result use?"
)
def _(candidate):
    answers = torch.arange(5.0)[:, None]
    found = expect_shape(candidate(answers, torch.tensor([2, 0, 3, 1, 4])), (5, 1))
    expect_close(found.sort(dim=0).values, answers, "the answers, sorted")


@restored.must(
    "each answer is where its word was",
    hint="Indexing with `order` shuffles once more. Which permutation brings place order[i] back to i?",
)
def _(candidate):
    answers, order = torch.randn(5, 3), torch.tensor([2, 0, 3, 1, 4])
    expect_close(candidate(answers[order], order), answers, "order (2, 0, 3, 1, 4)")
