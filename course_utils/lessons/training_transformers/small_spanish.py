"""The small English–Spanish corpus that the trainings of *Training transformers* share."""

from collections import Counter
from collections.abc import Sequence

from course_utils.data.translation import Pair, load_grammar, split_by_source

HELD_OUT = (200, 200)
"""Source sentences for validation and for the test."""


def common_pairs(pairs: Sequence[Pair], *, words: int, max_tokens: int) -> list[Pair]:
    """Pairs whose source has none but the `words` commonest source words, and whose target is short.

    Raises:
        ValueError: nothing is left.
    """
    counts = Counter(token for pair in pairs for token in pair.source)
    common = {word for word, _ in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[:words]}
    left = [p for p in pairs if common.issuperset(p.source) and len(p.target) <= max_tokens]
    if not left:
        raise ValueError(f"words={words}, max_tokens={max_tokens} leave no pair; allow more")
    return left


def small_spanish() -> list[list[Pair]]:
    """English–Spanish for trainings of seconds: training, validation and test pairs.

    Generated sentences of at most 8 Spanish tokens in the 200 commonest English words. No English
    sentence stands in two parts.
    """
    pairs = common_pairs(load_grammar("es"), words=200, max_tokens=8)
    return split_by_source(pairs, HELD_OUT)
