"""The masked softmax of the clinic of *Masks*, and seven mistakes that one can make in it.

Each is a function of scores (batch, n, m), of the newest n of m positions, and of words (batch, m), which says what
positions hold words, and gives weights (batch, n, m).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from course_utils.masks import causal_mask, masked_softmax

Weigh = Callable[[Tensor, Tensor], Tensor]
"""(scores, words) → weights, as above."""
Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(queries (batch, n, d), keys (batch, m, d), values (batch, m, d), words (batch, m)) → answers (batch, n, d)."""


def permitted(scores: Tensor, words: Tensor) -> Tensor:
    """The right mask, (batch, n, m): words up to the query's position; queries are the last n of m positions."""
    n, m = scores.shape[-2:]
    return words[:, None] & causal_mask(m, queries=n)


def right(scores: Tensor, words: Tensor) -> Tensor:
    """The right weights: the softmax over what is permitted."""
    return masked_softmax(scores, permitted(scores, words))


def off_by_one(scores: Tensor, words: Tensor) -> Tensor:
    """The causal mask permits one position too many: each query attends to the next word, too."""
    n, m = scores.shape[-2:]
    return masked_softmax(scores, words[:, None] & torch.ones(m, m).tril(1).bool()[-n:])


def polarity(scores: Tensor, words: Tensor) -> Tensor:
    """The mask is the wrong way around: True is taken for forbidden."""
    return masked_softmax(scores, ~permitted(scores, words))


def zeros_and_ones(scores: Tensor, words: Tensor) -> Tensor:
    """The mask is added as a number, 0 for a forbidden score and 1 for a permitted one."""
    return (scores + permitted(scores, words)).softmax(dim=-1)


def zero_the_scores(scores: Tensor, words: Tensor) -> Tensor:
    """A forbidden score is multiplied by 0 before the softmax; but 0 is a score like any other."""
    return (scores * permitted(scores, words)).softmax(dim=-1)


def no_axis(scores: Tensor, words: Tensor) -> Tensor:
    """The padding mask lacks its axis of queries: (batch, keys) is taken for (queries, keys).

    It fits only where a batch has as many rows as positions.
    """
    n, m = scores.shape[-2:]
    return masked_softmax(scores, (words & causal_mask(m))[-n:])


def over_queries(scores: Tensor, words: Tensor) -> Tensor:
    """The softmax runs over the queries instead of the keys."""
    return masked_softmax(scores.mT, permitted(scores, words).mT).mT


def upper_left(scores: Tensor, words: Tensor) -> Tensor:
    """The newest n queries get the first n rows of the causal mask, as with `is_causal=True` of PyTorch's operator."""
    n, m = scores.shape[-2:]
    return masked_softmax(scores, words[:, None] & causal_mask(m)[:n])


MISTAKES: dict[str, Weigh] = {
    "polarity": polarity,
    "zeros and ones": zeros_and_ones,
    "zero the scores": zero_the_scores,
    "no axis": no_axis,
    "off by one": off_by_one,
    "over the queries": over_queries,
    "upper left": upper_left,
}


def attention(weigh: Weigh) -> Attend:
    """Scaled dot-product attention with these weights."""

    def attend(queries: Tensor, keys: Tensor, values: Tensor, words: Tensor) -> Tensor:
        return weigh(queries @ keys.mT / math.sqrt(queries.shape[-1]), words) @ values

    return attend
