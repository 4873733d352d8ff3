"""Sentence pairs for translators: a small world of the grammar's commonest words, and a larger one of all its words.

A laptop learns the small world in seconds, and its gold alignments show whether attention learned to align. The stored
translator, `translator_fr`, has read the larger one. Used from *Sequence to sequence* on.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

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
from course_utils.decoding import Translator, translate
from course_utils.metrics import bleu

Vocabularies = tuple[Vocabulary, Vocabulary]
"""Of the source, and of the target."""

FOUR = ("go .", "i lost .", "he's calm .", "i'm home .")
"""Short sentences that many lectures translate. They are in the training data."""


def source_sentences(pairs: Iterable[Pair]) -> list[str]:
    """The source sentence of each pair, its tokens joined by spaces."""
    return [" ".join(pair.source) for pair in pairs]


def target_sentences(pairs: Iterable[Pair]) -> list[str]:
    """The target sentence of each pair, its tokens joined by spaces."""
    return [" ".join(pair.target) for pair in pairs]


def vocabularies_of(pairs: Sequence[Pair], *, min_freq: int = 1) -> Vocabularies:
    """Vocabularies of the words that stand at least `min_freq` times in the pairs."""
    return (
        Vocabulary((pair.source for pair in pairs), min_freq=min_freq),
        Vocabulary((pair.target for pair in pairs), min_freq=min_freq),
    )


def batch_of(pairs: Sequence[Pair], vocabularies: Vocabularies) -> Batch:
    """The pairs as one batch of padded ids, in their order."""
    source, target = vocabularies
    return collate([(source.encode(pair.source), target.encode(pair.target)) for pair in pairs])


@dataclass(frozen=True)
class SmallWorld:
    """Sentence pairs and what belongs to them.

    Attributes:
        train: grammar pairs, and hand-written ones (four times, since they are few).
        val, test: grammar pairs with gold alignments; no source sentence of theirs is in `train`.
        source_vocab, target_vocab: the words of `train`.
        references: source sentence → all its translations that we know, as strings.
        batch_size: pairs in a batch, unless `loader` is asked for another number.
        max_len: the most tokens of a translation.
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
        """`steps` batches of the training pairs, epoch after epoch, each shuffled anew."""
        loader = self.loader(self.train, seed=seed)
        passes = itertools.chain.from_iterable(itertools.repeat(loader))
        return itertools.islice(passes, steps)

    def whole(self, pairs: Sequence[Pair]) -> Batch:
        """These pairs as one batch, sorted by length."""
        return next(iter(self.loader(pairs, batch_size=len(pairs), shuffle=False)))

    def say(self, model: Translator, pairs: Sequence[Pair]) -> list[str]:
        """Greedy translations of the pairs' sources."""
        sources, words = source_sentences(pairs), (self.source_vocab, self.target_vocab)
        return translate(model, sources, *words, max_len=self.max_len)

    def bleu(self, model: Translator, pairs: Sequence[Pair]) -> float:
        """Corpus BLEU of greedy translations."""
        return bleu(self.say(model, pairs), target_sentences(pairs))

    def right_of_four(self, model: Translator) -> int:
        """How many sentences of `FOUR` a model translates as one of the references."""
        translations = translate(model, FOUR, self.source_vocab, self.target_vocab)
        pairs = zip(FOUR, translations, strict=True)
        return sum(translation in self.references[sentence] for sentence, translation in pairs)


def references_of(pairs: Iterable[Pair]) -> dict[str, list[str]]:
    """Source sentence → its translations, as strings, in the order of the pairs."""
    references: dict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        references[" ".join(pair.source)].append(" ".join(pair.target))
    return dict(references)


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
    by_hand, held_out_sources = [], {pair.source for pair in val + test}
    for pair in _preferred(load_sentences(language)):
        known = common.issuperset(pair.source) or " ".join(pair.source) in FOUR
        if known and pair.source not in held_out_sources:
            by_hand.append(pair)
    train += 4 * by_hand
    references = _known_translations([*load_sentences(language), *inside])
    return SmallWorld(train, val, test, *vocabularies_of(train), references)


def _preferred(pairs: Iterable[Pair]) -> list[Pair]:
    """The first pair of each source sentence: the preferred translation comes first."""
    first: dict[tuple[str, ...], Pair] = {}
    for pair in pairs:
        first.setdefault(pair.source, pair)
    return list(first.values())


def _known_translations(pairs: Iterable[Pair]) -> dict[str, set[str]]:
    """Source sentence → its translations, each once."""
    return {source: set(targets) for source, targets in references_of(pairs).items()}


# What the stored translator has read: 14,000 sentences of the grammar, and everyday ones written by hand

GRAMMAR_SENTENCES = 14_000
EVERYDAY_SENTENCES = 96
"""Everyday sentences in the training data, beside the four of `FOUR`."""
REPETITIONS = 8
"""How often an epoch has each everyday sentence: they are few."""


@cache
def larger_world() -> SmallWorld:
    """English → French: all words of the grammar; `test` holds 500 of its sentences, none of them in `train`.

    The everyday sentences have two words at most and a full stop; the four of `FOUR` are in `train`.
    """
    short = [pair for pair in load_sentences("fr") if len(pair.source) <= 3]
    everyday = {pair.source: pair for pair in _preferred(short)}
    four = [everyday.pop(tuple(tokenize(sentence))) for sentence in FOUR]
    others = list(everyday.values())
    read, _ = split_by_source(others, [len(others) - EVERYDAY_SENTENCES], seed=2017)
    grammar, val, test = split_by_source(load_grammar("fr"), [300, 500], seed=2017)
    train = grammar[:GRAMMAR_SENTENCES] + REPETITIONS * (read + four)
    references = _known_translations([*load_sentences("fr"), *grammar, *val, *test])
    trained = {pair.source for pair in train}
    val, test = ([pair for pair in part if pair.source not in trained] for part in (val, test))
    return SmallWorld(train, val, test, *vocabularies_of(train), references)
