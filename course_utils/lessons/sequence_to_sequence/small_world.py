"""Small worlds for translators: the commonest words of the grammar, and all that the stored translator has read.

A laptop learns the small one in seconds, and its gold alignments show whether attention learned to align.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache

from course_utils.data.text import Vocabulary, tokenize
from course_utils.data.translation import (
    Pair,
    PairLoader,
    load_grammar,
    load_sentences,
    split_by_source,
)

FOUR = ("go .", "i lost .", "he's calm .", "i'm home .")
"""Short sentences that many lectures translate. They are in the training data."""


@dataclass(frozen=True)
class SmallWorld:
    """Sentence pairs and what belongs to them.

    Attributes:
        train: grammar pairs, and hand-written ones (four times, since they are few).
        val, test: grammar pairs with gold alignments; no source sentence of theirs is in `train`.
        source_vocab, target_vocab: of the words in `train`.
        references: source sentence → all its translations that we know, as strings.
    """

    train: list[Pair]
    val: list[Pair]
    test: list[Pair]
    source_vocab: Vocabulary
    target_vocab: Vocabulary
    references: dict[str, set[str]]

    def loader(
        self, pairs: list[Pair], *, batch_size: int = 48, shuffle: bool = True, seed: int = 0
    ) -> PairLoader:
        """Batches of `pairs` in this world's ids."""
        return PairLoader(
            pairs,
            self.source_vocab,
            self.target_vocab,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
        )


def small_world(language: str = "fr", *, words: int = 200, held_out: int = 600) -> SmallWorld:
    """English → `language` in the `words` commonest words of the grammar's English.

    Args:
        language: "fr" or "es".
        words: so many English words, counted by how often the grammar's sentences have them.
        held_out: so many source sentences are kept for testing (two thirds) and validation.

    Raises:
        ValueError: `language` is unknown, or there are too few sentences to hold out so many.
    """
    grammar = load_grammar(language)
    counts = Counter(token for pair in grammar for token in pair.source)
    common = set(sorted(counts, key=lambda token: (-counts[token], token))[:words])
    inside = [pair for pair in grammar if common.issuperset(pair.source)]
    validation = held_out // 3
    train, val, test = split_by_source(inside, [validation, held_out - validation])

    references: dict[str, set[str]] = {}
    ours: dict[tuple[str, ...], Pair] = {}  # the preferred translation of each sentence
    for pair in load_sentences(language):
        references.setdefault(" ".join(pair.source), set()).add(" ".join(pair.target))
        if common.issuperset(pair.source) or " ".join(pair.source) in FOUR:
            ours.setdefault(pair.source, pair)
    for pair in inside:
        references.setdefault(" ".join(pair.source), set()).add(" ".join(pair.target))
    held_out_sources = {pair.source for pair in val + test}
    train += 4 * [pair for pair in ours.values() if pair.source not in held_out_sources]
    return SmallWorld(
        train=train,
        val=val,
        test=test,
        source_vocab=Vocabulary(pair.source for pair in train),
        target_vocab=Vocabulary(pair.target for pair in train),
        references=references,
    )


# What the stored translator has read: 14,000 sentences of the grammar, and everyday ones written by hand

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
    trained_sources = {pair.source for pair in train}
    references: dict[str, set[str]] = {}
    for pair in [*load_sentences("fr"), *grammar, *val, *test]:
        references.setdefault(" ".join(pair.source), set()).add(" ".join(pair.target))
    return SmallWorld(
        train=train,
        val=[pair for pair in val if pair.source not in trained_sources],
        test=[pair for pair in test if pair.source not in trained_sources],
        source_vocab=Vocabulary(pair.source for pair in train),
        target_vocab=Vocabulary(pair.target for pair in train),
        references=references,
    )
