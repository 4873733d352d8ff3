"""What the stored translator has read: 14,000 sentences of the grammar, and everyday ones written by hand."""

from functools import cache

from course_utils.data.text import Vocabulary, tokenize
from course_utils.data.translation import load_grammar, load_sentences, split_by_source
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, SmallWorld

TRAIN = 14_000  # sentences of the grammar
TIMES = 8  # in each pass, of an everyday sentence: they are few
READ = 96  # everyday sentences that are read, beside the four


@cache
def larger_world() -> SmallWorld:
    """English → French: all words of the grammar; `test` holds 500 of its sentences, none of them in `train`.

    The everyday sentences have two words at most and a full stop; the four of `FOUR` are in `train`.
    """
    everyday = {}
    for pair in load_sentences("fr"):
        if len(pair.source) <= 3:
            everyday.setdefault(pair.source, pair)  # the preferred translation comes first
    asked = [everyday.pop(tuple(tokenize(sentence))) for sentence in FOUR]
    seen, _ = split_by_source(list(everyday.values()), [len(everyday) - READ], seed=2017)
    grammar, val, test = split_by_source(load_grammar("fr"), [300, 500], seed=2017)
    train = grammar[:TRAIN] + TIMES * (seen + asked)
    known = {pair.source for pair in train}
    references: dict[str, set[str]] = {}
    for pair in [*load_sentences("fr"), *grammar, *val, *test]:
        references.setdefault(" ".join(pair.source), set()).add(" ".join(pair.target))
    return SmallWorld(
        train=train,
        val=[pair for pair in val if pair.source not in known],
        test=[pair for pair in test if pair.source not in known],
        source_vocab=Vocabulary(pair.source for pair in train),
        target_vocab=Vocabulary(pair.target for pair in train),
        references=references,
    )
