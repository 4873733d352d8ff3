"""One step of Bahdanau's attention, and alignments of words: links, their error rate, guesses, the order of the words.

The chapter and its *Going further* page use all of it; *Translating* measures its alignments in the same way.
"""

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
        query: (batch, hidden), the decoder's previous state, projected.
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
"""(source position, target position) of words that translate each other."""


def links_of(weights: Tensor) -> Links:
    """A link from each target token to the source token with its largest weight, of weights (target, source)."""
    return frozenset((int(source), target) for target, source in enumerate(weights.argmax(dim=-1)))


def alignment_error_rate(links: Sequence[Links], gold: Sequence[Links]) -> float:
    """Alignment error rate 1 − 2 |found ∩ gold| / (|found| + |gold|), over all sentences together.

    Och and Ney (2003), "A systematic comparison of various statistical alignment models", section
    5.1, where every gold link is a sure one.

    Args:
        links: those found, of each sentence.
        gold: the right ones.

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


# The order of the French words; the gold links move with them -------------------------------------

Rule = Callable[[list[str]], Sequence[int]]
"""French words → the positions of these words, in the order in which they are to be written."""


def second_half_first(words: list[str]) -> list[int]:
    """The rule that writes the second half first; of an odd number of words it has one more than the first half."""
    half = len(words) // 2
    return [*range(half, len(words)), *range(half)]


def as_in_french(words: list[str]) -> list[int]:
    """The rule that changes nothing."""
    return list(range(len(words)))


def backwards(words: list[str]) -> list[int]:
    """The rule that writes the last word first."""
    return list(range(len(words)))[::-1]


def alphabetical(words: list[str]) -> list[int]:
    """The rule that sorts the words of a sentence."""
    return sorted(range(len(words)), key=lambda position: words[position])


def shuffled(words: list[str]) -> list[int]:
    """The rule that shuffles the words of each sentence anew, and the same sentence always in the same way."""
    return random.Random(" ".join(words)).sample(range(len(words)), len(words))


ORDERS: dict[str, Rule] = {
    "French": as_in_french,
    "backwards": backwards,
    "alphabetical": alphabetical,
    "shuffled": shuffled,
}


SHOWN = (314, 111, 395)
"""Numbers of three long test sentences: those with the median error and the two quartiles in `learning`, backwards."""


def reorder(pair: Pair, rule: Rule) -> Pair:
    """A pair with its target in another order."""
    positions = rule(list(pair.target))
    target = tuple(pair.target[position] for position in positions)
    if not pair.alignment:
        return Pair(pair.source, target, pair.alignment)
    new_position = {old: new for new, old in enumerate(positions)}
    links = frozenset((source, new_position[old]) for source, old in pair.alignment)
    return Pair(pair.source, target, links)


@cache
def world_in(order: str | Rule) -> SmallWorld:
    """The small world, its French written in one of `ORDERS`, or by a rule of one's own."""
    world = small_world("fr")
    rule = ORDERS[order] if isinstance(order, str) else order
    train, val, test = (
        [reorder(pair, rule) for pair in pairs] for pairs in (world.train, world.val, world.test)
    )
    return replace(world, train=train, val=val, test=test)


# Guesses that have no network ---------------------------------------------------------------------


def diagonal(pair: Pair) -> Tensor:
    """Weights (target, source) of the guess on the diagonal: each target word looks at the same share of the source."""
    step = (len(pair.source) - 1) / max(len(pair.target) - 1, 1)
    positions = [round(t * step) for t in range(len(pair.target))]
    return torch.eye(len(pair.source))[positions]


def best_by_position(train: Sequence[Pair]) -> Callable[[Pair], Tensor]:
    """The best guess by positions alone: the position that is linked most often, as counted in `train`.

    It is counted for each target position and both lengths; where nothing was counted, the guess is the diagonal.

    Returns:
        A function pair → weights (target, source).
    """
    counts: dict[tuple[int, int, int], Counter[int]] = defaultdict(Counter)
    for pair in train:
        for source, target in pair.alignment or ():
            counts[target, len(pair.target), len(pair.source)][source] += 1

    def guess(pair: Pair) -> Tensor:
        positions = []
        for target, on_diagonal in enumerate(diagonal(pair).argmax(dim=-1).tolist()):
            counted = counts[target, len(pair.target), len(pair.source)]
            positions.append(max(counted, key=counted.__getitem__, default=on_diagonal))
        return torch.eye(len(pair.source))[positions]

    return guess


def crossings(pair: Pair) -> int:
    """How many pairs of links cross: the one that is earlier in the source is later in the target."""
    links = sorted(pair.alignment or ())
    return sum(b < d for a, d in links for c, b in links if a < c)


# What single words need of attention --------------------------------------------------------------


@torch.no_grad()
def word_by_word(model: nn.Module, pairs: Sequence[Pair], batch: Batch) -> pd.DataFrame:
    """The probability of each target word with attention, and with the plain average of the memory at its step.

    For the plain average all keys are zero at this one step, so that all scores are equal.

    Args:
        model: a translator with attention.
        pairs: sentences with their translations.
        batch: the same, as ids.

    Returns:
        A row for each target word: "word", "attention" and "plain average".
    """
    with_attention: list[list[float]] = []  # for each step, the probabilities of the batch
    with_average: list[list[float]] = []
    with evaluating(model):
        state = model.start(batch.source, batch.source_lens)
        for tokens, right in zip(batch.target_in.T, batch.target_out.T, strict=True):
            blind = copy.copy(state)
            blind.keys = torch.zeros_like(state.keys)
            for probabilities, at in ((with_attention, state), (with_average, blind)):
                p = model.step(tokens, at).softmax(dim=-1)
                probabilities.append(p.gather(1, right[:, None])[:, 0].tolist())
    rows = [
        (word, with_attention[step][index], with_average[step][index])
        for index, pair in enumerate(pairs)
        for step, word in enumerate(pair.target)
    ]
    return pd.DataFrame(rows, columns=["word", "attention", "plain average"])
