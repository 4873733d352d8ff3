"""Maps of words against gold links, by the two rules of *Bahdanau attention*."""

from collections.abc import Sequence

from torch import Tensor

from course_utils.data.translation import Pair
from course_utils.lessons.bahdanau_attention.alignment import (
    alignment_error_rate,
    crossings,
    links_both_ways,
)
from course_utils.lessons.bahdanau_attention.alignment import diagonal as diagonal


def errors(found: Sequence[Tensor], pairs: Sequence[Pair]) -> tuple[float, float]:
    """Alignment error rate of one map (target, source) for each pair: of all, of those whose links cross."""
    links = [links_both_ways(words) for words in found]
    gold = [pair.alignment or frozenset() for pair in pairs]
    crossed = [place for place, pair in enumerate(pairs) if crossings(pair)]
    return alignment_error_rate(links, gold), alignment_error_rate(
        [links[place] for place in crossed], [gold[place] for place in crossed]
    )
