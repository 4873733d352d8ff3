"""Small worlds for translators: the commonest words of the grammar, and all that the stored translator has read.

A laptop learns the small one in seconds, and its gold alignments show whether attention learned to align.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from course_utils.data.text import Vocabulary, tokenize
from course_utils.data.translation import (
    Batch,
    Pair,
    PairLoader,
    collate,
    load_grammar,
    load_sentences,
    split_by_source,
)
from course_utils.decoding import translate
from course_utils.metrics import bleu

Vocabularies = tuple[Vocabulary, Vocabulary]

FOUR = ("go .", "i lost .", "he's calm .", "i'm home .")
"""Short sentences that many lectures translate. They are in the training data."""


def vocabularies_of(pairs: Sequence[Pair], *, min_freq: int = 1) -> Vocabularies:
    """The words that the pairs have at least `min_freq` times: of the source, of the target."""
    return (
        Vocabulary((pair.source for pair in pairs), min_freq=min_freq),
        Vocabulary((pair.target for pair in pairs), min_freq=min_freq),
    )


def batch_of(pairs: Sequence[Pair], vocabularies: Vocabularies) -> Batch:
    """The pairs as ids, padded, in their order."""
    source, target = vocabularies
    return collate([(source.encode(pair.source), target.encode(pair.target)) for pair in pairs])


@dataclass(frozen=True)
class SmallWorld:
    """Sentence pairs and what belongs to them.

    Attributes:
        train: grammar pairs, and hand-written ones (four times, since they are few).
        val, test: grammar pairs with gold alignments; no source sentence of theirs is in `train`.
        source_vocab, target_vocab: of the words in `train`.
        references: source sentence → all its translations that we know, as strings.
        batch_size: pairs of a batch, unless another number is asked for.
        max_len: of a translation.
    """

    train: list[Pair]
    val: list[Pair]
    test: list[Pair]
    source_vocab: Vocabulary
    target_vocab: Vocabulary
    references: dict[str, set[str]] = field(default_factory=dict)
    batch_size: int = 48
    max_len: int = 20

    def loader(
        self, pairs: Sequence[Pair], *, batch_size: int = 0, shuffle: bool = True, seed: int = 0
    ) -> PairLoader:
        """Batches of `pairs` in this world's ids."""
        words, size = (self.source_vocab, self.target_vocab), batch_size or self.batch_size
        return PairLoader(pairs, *words, batch_size=size, shuffle=shuffle, seed=seed)

    def batches(self, steps: int, *, seed: int = 0) -> Iterator[Batch]:
        """`steps` batches of the training pairs, pass after pass, each shuffled anew."""
        loader = self.loader(self.train, seed=seed)
        passes = itertools.chain.from_iterable(itertools.repeat(loader))
        return itertools.islice(passes, steps)

    def whole(self, pairs: Sequence[Pair]) -> Batch:
        """These pairs as one batch, sorted by length."""
        return next(iter(self.loader(pairs, batch_size=len(pairs), shuffle=False)))

    def say(self, model: Any, pairs: Sequence[Pair]) -> list[str]:
        """Greedy translations of the pairs' sources."""
        sources = [" ".join(pair.source) for pair in pairs]
        return translate(model, sources, self.source_vocab, self.target_vocab, max_len=self.max_len)

    def bleu(self, model: Any, pairs: Sequence[Pair]) -> float:
        """Corpus BLEU of greedy translations."""
        return bleu(self.say(model, pairs), [" ".join(pair.target) for pair in pairs])


def references_of(pairs: Iterable[Pair]) -> dict[str, set[str]]:
    """Source sentence → its translations, as strings."""
    references: dict[str, set[str]] = {}
    for pair in pairs:
        references.setdefault(" ".join(pair.source), set()).add(" ".join(pair.target))
    return references


def common_words(pairs: Sequence[Pair], count: int) -> set[str]:
    """The `count` commonest source words of the pairs."""
    counts = Counter(token for pair in pairs for token in pair.source)
    return set(sorted(counts, key=lambda token: (-counts[token], token))[:count])


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
    common = common_words(grammar, words)
    inside = [pair for pair in grammar if common.issuperset(pair.source)]
    validation = held_out // 3
    train, val, test = split_by_source(inside, [validation, held_out - validation])
    ours: dict[tuple[str, ...], Pair] = {}  # the preferred translation of each sentence
    for pair in load_sentences(language):
        if common.issuperset(pair.source) or " ".join(pair.source) in FOUR:
            ours.setdefault(pair.source, pair)
    held_out_sources = {pair.source for pair in val + test}
    train += 4 * [pair for pair in ours.values() if pair.source not in held_out_sources]
    references = references_of([*load_sentences(language), *inside])
    return SmallWorld(train, val, test, *vocabularies_of(train), references)


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
    references = references_of([*load_sentences("fr"), *grammar, *val, *test])
    unread = ([pair for pair in part if pair.source not in trained_sources] for part in (val, test))
    return SmallWorld(train, *unread, *vocabularies_of(train), references)
