"""Sentence pairs: read, split, encode and batch them.

The course's own files are in data/translation/; the Tatoeba archives come through `registry`. Taught in
*Bahdanau attention: learning to align*.
"""

import io
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from course_utils.data.archives import read_member
from course_utils.data.loading import Loader
from course_utils.data.registry import fetch
from course_utils.data.text import BOS, EOS, Vocabulary, pad, tokenize
from course_utils.files import data_path

LANGUAGES = {"fr": "French", "es": "Spanish"}
TATOEBA = {"fr": "fra", "es": "spa"}  # as in `fra-eng` of the registry, and `fra.txt` there


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation, tokenized.

    Attributes:
        source, target: tokens.
        alignment: gold links (source position, target position), where they are known.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: frozenset[tuple[int, int]] | None = None


def load_sentences(language: str) -> list[Pair]:
    """The course's hand-written everyday sentences with every translation given, English → `language`.

    Raises:
        ValueError: `language` is neither "fr" nor "es".
    """
    column = 1 + _checked(language)
    pairs = []
    for row in _file_rows("sentences.tsv"):
        for translation in row[column].split(" | "):
            pairs.append(Pair(tuple(tokenize(row[0])), tuple(tokenize(translation))))
    return pairs


def load_grammar(language: str) -> list[Pair]:
    """The course's generated sentences with gold alignments, English → `language`.

    Raises:
        ValueError: `language` is neither "fr" nor "es".
    """
    _checked(language)
    return [
        Pair(tuple(source.split()), tuple(target.split()), parse_alignment(links))
        for source, target, links in _file_rows(f"grammar_{language}.tsv")
    ]


def parse_alignment(text: str) -> frozenset[tuple[int, int]]:
    """Links in Pharaoh format, "0-0 1-2": source position, hyphen, target position.

    Raises:
        ValueError: a link is not two whole numbers.
    """
    links = set()
    for link in text.split():
        source, hyphen, target = link.partition("-")
        if not (hyphen and source.isdigit() and target.isdigit()):
            raise ValueError(f"{link!r} is not a link in Pharaoh format, such as 0-1")
        links.add((int(source), int(target)))
    return frozenset(links)


def load_tatoeba(language: str, *, max_tokens: int | None = None) -> list[Pair]:
    """Real sentence pairs, English → `language`, from the archives at manythings.org/anki.

    They are made from Tatoeba's sentences, CC BY 2.0 FR: name both where you show them. The archive
    comes through `registry`; it is downloaded at the first call, unless it lies in the cache.

    Args:
        max_tokens: drop pairs with a longer side.

    Raises:
        ValueError: `language` is neither "fr" nor "es", or the archive is not what it should be.
        DataUnavailable: the archive is not in the cache and can't be downloaded; the message says
            where to put it by hand.
    """
    _checked(language)
    short = TATOEBA[language]
    archive = fetch(f"{short}-eng")
    text = read_member(archive, f"{short}.txt", f"{short}-eng/{short}.txt").decode("utf-8")
    lines = io.StringIO(text, newline=None)
    pairs = []
    for source, target, *_ in _rows(archive.name, lines, columns=2, notes=False):
        pair = Pair(tuple(tokenize(source)), tuple(tokenize(target)))
        if max_tokens is None or max(len(pair.source), len(pair.target)) <= max_tokens:
            pairs.append(pair)
    return pairs


def _checked(language: str) -> int:
    if language not in LANGUAGES:
        raise ValueError(f"language={language!r} is unknown; choose one of {', '.join(LANGUAGES)}")
    return list(LANGUAGES).index(language)


def _file_rows(name: str) -> Iterator[list[str]]:
    with data_path(f"translation/{name}").open(encoding="utf-8") as lines:
        yield from _rows(name, lines, columns=3, notes=True)


def _rows(name: str, lines: Iterable[str], *, columns: int, notes: bool) -> Iterator[list[str]]:
    """Tab-separated rows; where there are notes, they are lines that begin with #."""
    for number, line in enumerate(lines, start=1):
        if not line.strip() or (notes and line.startswith("#")):
            continue
        row = line.rstrip("\n").split("\t")
        if len(row) < columns:
            raise ValueError(
                f"{name}, line {number}: {len(row)} columns; {columns} tab-separated are needed"
            )
        yield row


# Splits -----------------------------------------------------------------------------------------


def split_by_source(
    pairs: Sequence[Pair], sizes: Sequence[int], *, seed: int = 0
) -> list[list[Pair]]:
    """Shuffle, then deal *source sentences* out, so that no two parts share one.

    Args:
        sizes: numbers of source sentences for all parts but the first, which gets the rest.

    Returns:
        The rest (for training), then a part for each size. A source's translations stay together.

    Raises:
        ValueError: there are not enough source sentences to leave one for training.
    """
    by_source: dict[tuple[str, ...], list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_source[pair.source].append(pair)
    sources = sorted(by_source)
    if sum(sizes) >= len(sources):
        raise ValueError(
            f"sizes={list(sizes)} take all {len(sources)} source sentences; none is left for training"
        )
    random.Random(seed).shuffle(sources)
    parts, end = [], len(sources)
    for size in reversed(sizes):
        parts.append(sources[end - size : end])
        end -= size
    parts.append(sources[:end])
    return [[pair for source in part for pair in by_source[source]] for part in reversed(parts)]


# Batches ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Sentence pairs as tensors, padded to the longest of the batch.

    Attributes:
        source: (batch, source length), ids, `<eos>` at the end.
        source_lens: (batch,), real tokens of each source.
        target_in: (batch, target length), ids that begin with `<bos>`: what the decoder reads.
        target_out: (batch, target length), ids that end with `<eos>`: what it has to say.
        target_lens: (batch,), real tokens of each target.
    """

    source: Tensor
    source_lens: Tensor
    target_in: Tensor
    target_out: Tensor
    target_lens: Tensor

    def to(self, device: torch.device | str) -> "Batch":
        """The batch on another device."""
        return Batch(*(getattr(self, field.name).to(device) for field in fields(self)))

    @property
    def num_tokens(self) -> int:
        """Number of real target tokens, `<eos>` included."""
        return int(self.target_lens.sum())


def collate(encoded: Sequence[tuple[list[int], list[int]]]) -> Batch:
    """A batch from pairs of ids without special tokens."""
    source, source_lens = pad([[*source, EOS] for source, _ in encoded])
    target_out, target_lens = pad([[*target, EOS] for _, target in encoded])
    target_in, _ = pad([[BOS, *target] for _, target in encoded])
    return Batch(source, source_lens, target_in, target_out, target_lens)


class PairLoader(Loader):
    """Batches of pairs of similar length, in an order of its own that can be saved and resumed.

    Each pass shuffles the pairs, sorts them by length within pools of many batches, and shuffles the
    batches: little padding, little order.

    Args:
        pairs: to be encoded once, here.
        source_vocab, target_vocab: made from the training data.
        batch_size: pairs per batch.
        shuffle: False keeps the pairs sorted by length, for evaluation.
        seed: of the loader's own generator.

    Raises:
        ValueError: there are no pairs, a sentence is empty, or `batch_size` is not positive.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        source_vocab: Vocabulary,
        target_vocab: Vocabulary,
        *,
        batch_size: int = 128,
        shuffle: bool = True,
        seed: int = 0,
    ):
        if not pairs:
            raise ValueError("pairs is empty; training and evaluation need sentence pairs")
        super().__init__(len(pairs), batch_size=batch_size, shuffle=shuffle, seed=seed)
        for pair in pairs:
            if not (pair.source and pair.target):
                raise ValueError(f"{pair} has an empty sentence")
        self.pairs = list(pairs)
        self._encoded = [
            (source_vocab.encode(pair.source), target_vocab.encode(pair.target)) for pair in pairs
        ]

    def _batch(self, rows: list[int], generator: torch.Generator) -> Batch:
        return collate([self._encoded[row] for row in rows])

    def _order(self, generator: torch.Generator) -> list[list[int]]:
        lengths = [(len(target), len(source)) for source, target in self._encoded]
        return self._order_by_length(lengths, generator)
