"""One step of Bahdanau's attention, and word alignments: links, word order, what single words need of attention."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pandas as pd
import torch
from torch import Tensor, nn

from course_utils.data.translation import Batch, Pair
from course_utils.lessons.sequence_to_sequence.small_world import SmallWorld, small_world
from course_utils.runtime import evaluating
from course_utils.train.losses import translation_loss


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


def links_both_ways(weights: Tensor) -> Links:
    """Links (source, target) of a map (target, source), so that no word is left without one.

    Each target word is linked to the source word it looks at most. Each source word that none of them
    chose is linked to the target word that looks at it most.
    """
    links = {(int(source), target) for target, source in enumerate(weights.argmax(dim=1))}
    chosen = {source for source, _ in links}
    for source, target in enumerate(weights.argmax(dim=0).tolist()):
        if source not in chosen:
            links.add((source, target))
    return frozenset(links)


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

ORDERS: dict[str, Callable[[Sequence[str]], list[int]]] = {
    "French": lambda words: list(range(len(words))),
    "backwards": lambda words: list(range(len(words)))[::-1],
    "alphabetical": lambda words: sorted(range(len(words)), key=lambda place: words[place]),
}
"""French words → their places, in the order in which they are written."""


def reordered(pair: Pair, order: str) -> Pair:
    """The same words and links; written in one of `ORDERS`."""
    old = ORDERS[order](pair.target)
    new = {index: t for t, index in enumerate(old)}
    links = None if pair.alignment is None else {(s, new[t]) for s, t in pair.alignment}
    return Pair(pair.source, tuple(pair.target[index] for index in old), links and frozenset(links))


@cache
def world_in(order: str) -> SmallWorld:
    """The small world, whose French is written in one of `ORDERS`."""
    world = small_world("fr")
    parts = {
        split: [reordered(pair, order) for pair in getattr(world, split)]
        for split in ("train", "val", "test")
    }
    return replace(world, **parts)


def diagonal(pair: Pair) -> Tensor:
    """The guess that has learned nothing: all weight of each target word at the same share of the source."""
    step = (len(pair.source) - 1) / max(len(pair.target) - 1, 1)
    return torch.eye(len(pair.source))[[round(t * step) for t in range(len(pair.target))]]


def crossings(pair: Pair) -> int:
    """How many pairs of links change their order."""
    links = sorted(pair.alignment)
    return sum(b < d for a, d in links for c, b in links if a < c)


def errors(maps: Sequence[Tensor], pairs: Sequence[Pair]) -> tuple[float, float]:
    """Alignment error rate of one map (target, source) for each pair: of all, of those whose links cross."""
    links = [links_both_ways(words) for words in maps]
    gold = [pair.alignment or frozenset() for pair in pairs]
    crossed = [index for index, pair in enumerate(pairs) if crossings(pair)]
    return alignment_error_rate(links, gold), alignment_error_rate(
        [links[index] for index in crossed], [gold[index] for index in crossed]
    )


# What single words need of attention --------------------------------------------------------------


@torch.no_grad()
def word_by_word(
    model: nn.Module, pairs: Sequence[Pair], batch: Batch, maps: Sequence[Tensor]
) -> pd.DataFrame:
    """A row per target word: is its largest weight on gold, and its probability with attention and without.

    Without: at this one step all keys are zero, so that all scores are equal.
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
        (word, (int(maps[i][t].argmax()), t) in pair.alignment, both[t][0][i], both[t][1][i])
        for i, pair in enumerate(pairs)
        for t, word in enumerate(pair.target)
    ]
    return pd.DataFrame(rows, columns=["word", "on gold", "attention", "all keys zero"])


def pull(model: nn.Module, batch: Batch) -> Tensor:
    """How strongly the loss pulls at each step's scores, (batch, steps): the sum of |∂loss/∂score| over the source."""
    outputs: list[Tensor] = []

    def hook_outputs(_module, _inputs, scores: Tensor) -> None:
        scores.retain_grad()
        outputs.append(scores)

    hook = model.attention.score_proj.register_forward_hook(hook_outputs)
    try:
        loss, _ = translation_loss()(model, batch)
        loss.backward()
    finally:
        hook.remove()
        model.zero_grad()
    return torch.stack([scores.grad.flatten(1).abs().sum(dim=1) for scores in outputs], dim=1)
