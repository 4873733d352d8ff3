"""One step of Bahdanau's attention, and word alignments: links, word order, what single words need of attention."""

import copy
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pandas as pd
import torch
from torch import Tensor, nn

from course_utils.data.translation import Batch, Pair
from course_utils.lessons.sequence_to_sequence.small_world import SmallWorld, small_world
from course_utils.runtime import evaluating


def attend(
    query: Tensor, keys: Tensor, memory: Tensor, mask: Tensor, w: Tensor
) -> tuple[Tensor, Tensor]:
    """Context and weights of one step, from projected query and keys: additive scores, masked.

    Bahdanau, Cho and Bengio (2015), section 3.1.

    Args:
        query: (batch, hidden), the decoder's last state, projected.
        keys: (batch, tokens, hidden), the memory, projected.
        memory: (batch, tokens, size), the encoder's states.
        mask: (batch, tokens), True at real tokens; at least one in each row.
        w: (hidden,).

    Returns:
        (batch, size) and (batch, tokens).
    """
    scores = (query[:, None] + keys).tanh() @ w
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return (weights[:, None] @ memory)[:, 0], weights


# Links between words ------------------------------------------------------------------------------

Links = frozenset[tuple[int, int]]


def links_of(weights: Tensor) -> Links:
    """The source position that each target token looks at most: (target, source) weights → links."""
    return frozenset((int(source), target) for target, source in enumerate(weights.argmax(dim=-1)))


def alignment_error_rate(links: Sequence[Links], gold: Sequence[Links]) -> float:
    """1 − 2 |found ∩ gold| / (|found| + |gold|), over all sentences; every gold link is sure.

    Och and Ney (2003), "A systematic comparison of various statistical alignment models", section
    5.1, with sure links alone.

    Raises:
        ValueError: numbers of sentences differ, or there are no links at all.
    """
    if len(links) != len(gold):
        raise ValueError(f"{len(links)} sentences found, {len(gold)} gold; the same is needed")
    size = sum(map(len, links)) + sum(map(len, gold))
    if size == 0:
        raise ValueError("there are no links; nothing can be scored")
    hits = sum(len(a & b) for a, b in zip(links, gold, strict=True))
    return 1 - 2 * hits / size


# The grammar's pairs with the French words in another order; the gold links move with them --------

Rule = Callable[[list[str]], Sequence[int]]
"""French words → their places, in the order in which they are written."""


def second_half_first(words: list[str]) -> list[int]:
    """Places of the words of the second half, then of the first, which is the shorter one if they differ."""
    half = len(words) // 2
    return [*range(half, len(words)), *range(half)]


ORDERS: dict[str, Rule] = {
    "French": lambda words: list(range(len(words))),
    "backwards": lambda words: list(range(len(words)))[::-1],
    "alphabetical": lambda words: sorted(range(len(words)), key=lambda place: words[place]),
    "shuffled": lambda words: random.Random(" ".join(words)).sample(range(len(words)), len(words)),
}


SHOWN = (314, 111, 395)
"""Numbers of three long test sentences: those with the median error and the two quartiles in `learning`, backwards."""


def reordered(pair: Pair, rule: Rule) -> Pair:
    """A pair with its target written in another order."""
    old = rule(list(pair.target))
    new = {index: t for t, index in enumerate(old)}
    links = None if pair.alignment is None else {(s, new[t]) for s, t in pair.alignment}
    return Pair(pair.source, tuple(pair.target[index] for index in old), links and frozenset(links))


@cache
def world_in(order: str | Rule) -> SmallWorld:
    """The small world, its French written in one of `ORDERS`, or by a rule of one's own."""
    world, rule = small_world("fr"), ORDERS.get(order, order)
    parts = {
        split: [reordered(pair, rule) for pair in getattr(world, split)]
        for split in ("train", "val", "test")
    }
    return replace(world, **parts)


def diagonal(pair: Pair) -> Tensor:
    """The guess that has learned nothing: all weight of each target word at the same share of the source."""
    step = (len(pair.source) - 1) / max(len(pair.target) - 1, 1)
    return torch.eye(len(pair.source))[[round(t * step) for t in range(len(pair.target))]]


def best_by_position(train: Sequence[Pair]) -> Callable[[Pair], Tensor]:
    """The guess that has counted in `train`, of each position and both lengths, which place is linked the most."""
    counts = defaultdict(Counter)
    for pair in train:
        for source, target in pair.alignment or ():
            counts[target, len(pair.target), len(pair.source)][source] += 1

    def guess(pair: Pair) -> Tensor:
        shapes = [(t, len(pair.target), len(pair.source)) for t in range(len(pair.target))]
        usual = diagonal(pair).argmax(dim=-1).tolist()  # where nothing was counted
        places = [max(counts[at], key=counts[at].get, default=usual[at[0]]) for at in shapes]
        return torch.eye(len(pair.source))[places]

    return guess


def crossings(pair: Pair) -> int:
    """Number of pairs of links that change their order."""
    links = sorted(pair.alignment)
    return sum(b < d for a, d in links for c, b in links if a < c)


# What single words need of attention --------------------------------------------------------------


@torch.no_grad()
def word_by_word(model: nn.Module, pairs: Sequence[Pair], batch: Batch) -> pd.DataFrame:
    """A row per target word: its probability with attention, and with the plain average of the memory at its step.

    All keys are zero at this one step, so all scores are equal.
    """
    both = []
    with evaluating(model):
        state = model.start(batch.source, batch.source_lens)
        for tokens, right in zip(batch.target_in.T, batch.target_out.T, strict=True):
            blind = copy.copy(state)
            blind.keys = torch.zeros_like(state.keys)
            p = [model.step(tokens, each).softmax(dim=-1) for each in (state, blind)]
            both.append([each.gather(1, right[:, None])[:, 0].tolist() for each in p])
    rows = [
        (word, both[t][0][i], both[t][1][i])
        for i, pair in enumerate(pairs)
        for t, word in enumerate(pair.target)
    ]
    return pd.DataFrame(rows, columns=["word", "attention", "plain average"])
