"""The grammar's pairs with the French words in another order; the gold links move with them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from course_utils.data.translation import Pair
from course_utils.lessons.sequence_to_sequence.small_world import SmallWorld, small_world

ORDERS: dict[str, Callable[[Sequence[str]], list[int]]] = {
    "French": lambda words: list(range(len(words))),
    "backwards": lambda words: list(range(len(words)))[::-1],
    "alphabetical": lambda words: sorted(range(len(words)), key=lambda place: words[place]),
}
"""French words → their places, in the order in which they are written."""


def reordered(pair: Pair, order: str) -> Pair:
    """The same words and links; written in one of `ORDERS`."""
    old = ORDERS[order](pair.target)
    new = {place: t for t, place in enumerate(old)}
    links = None if pair.alignment is None else {(s, new[t]) for s, t in pair.alignment}
    return Pair(pair.source, tuple(pair.target[place] for place in old), links and frozenset(links))


@cache
def world_in(order: str) -> SmallWorld:
    """The small world, whose French is written in one of `ORDERS`."""
    world = small_world("fr")
    parts = {
        part: [reordered(pair, order) for pair in getattr(world, part)]
        for part in ("train", "val", "test")
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
