"""Maps of words against gold links, by the two rules of *Bahdanau attention*."""

from collections.abc import Sequence

import torch
from torch import Tensor

from course_utils.data.translation import Pair
from course_utils.lessons.bahdanau_attention.alignment import alignment_error_rate, links_both_ways


def crossings(pair: Pair) -> int:
    """How many pairs of gold links change their order."""
    links = sorted(pair.alignment or ())
    return sum(b < d for a, d in links for c, b in links if a < c)


def diagonal(pair: Pair) -> Tensor:
    """(target, source): all weight of each target word at the same share of the source."""
    step = (len(pair.source) - 1) / max(len(pair.target) - 1, 1)
    return torch.eye(len(pair.source))[[round(t * step) for t in range(len(pair.target))]]


def errors(found: Sequence[Tensor], pairs: Sequence[Pair]) -> tuple[float, float]:
    """Alignment error rate of one map (target, source) for each pair: of all, of those whose links cross."""
    links = [links_both_ways(words) for words in found]
    gold = [pair.alignment or frozenset() for pair in pairs]
    crossed = [place for place, pair in enumerate(pairs) if crossings(pair)]
    return alignment_error_rate(links, gold), alignment_error_rate(
        [links[place] for place in crossed], [gold[place] for place in crossed]
    )
