"""Links between words: read off maps of attention, and held against gold links."""

from collections.abc import Sequence

from torch import Tensor

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


def alignment_error_rate(found: Sequence[Links], gold: Sequence[Links]) -> float:
    """1 − 2 |found ∩ gold| / (|found| + |gold|), over all sentences; every gold link is sure.

    Och and Ney (2003), "A systematic comparison of various statistical alignment models", section
    5.1, with sure links alone.

    Raises:
        ValueError: numbers of sentences differ, or there are no links at all.
    """
    if len(found) != len(gold):
        raise ValueError(f"{len(found)} sentences found, {len(gold)} gold; the same is needed")
    size = sum(map(len, found)) + sum(map(len, gold))
    if size == 0:
        raise ValueError("there are no links; nothing can be scored")
    hits = sum(len(a & b) for a, b in zip(found, gold, strict=True))
    return 1 - 2 * hits / size
