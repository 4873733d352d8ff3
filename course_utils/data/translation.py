"""Sentence pairs for translation: reading, splitting, encoding and batching.

The course's own files are in data/translation/, the Tatoeba archives come through `registry`, and `load_pairs` reads
files of yours. Taught in
*Bahdanau attention: learning to align*.
"""

import csv
import io
import json
import random
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor

from course_utils.data.archives import read_member
from course_utils.data.loading import Loader
from course_utils.data.registry import fetch
from course_utils.data.text import (
    BOS,
    EOS,
    Vocabulary,
    normalize,
    pad,
    path_of,
    read_text,
    tokenize,
    tokenize_with_marks,
)
from course_utils.files import data_path

LANGUAGES = {"fr": "French", "es": "Spanish"}
Cut = Callable[[str], Iterable[str]]
"""A sentence → its tokens."""

TATOEBA = {"fr": "fra", "es": "spa"}  # as in `fra-eng` of the registry, and `fra.txt` there


@dataclass(frozen=True)
class Pair:
    """A tokenized sentence and its translation.

    Attributes:
        source, target: tokens.
        alignment: gold links (source position, target position), or None if unknown.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: frozenset[tuple[int, int]] | None = None


def load_sentences(language: str) -> list[Pair]:
    """The course's hand-written everyday sentences, English → `language`; one pair for each translation.

    Raises:
        ValueError: `language` is neither "fr" nor "es".
    """
    column = 1 + _language_index(language)
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
    _language_index(language)
    return [
        Pair(tuple(source.split()), tuple(target.split()), parse_alignment(links))
        for source, target, links in _file_rows(f"grammar_{language}.tsv")
    ]


def parse_alignment(text: str) -> frozenset[tuple[int, int]]:
    """The links of an alignment in Pharaoh format, such as "0-0 1-2": source position, hyphen, target position.

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
    """The sentence pairs of an archive at manythings.org/anki, English → `language`.

    The archives are made from Tatoeba's sentences, CC BY 2.0 FR: name both where you show them. `registry` downloads
    the archive at the first call, unless it is in the cache.

    Args:
        max_tokens: leave out pairs with a longer sentence; None keeps all.

    Raises:
        ValueError: `language` is neither "fr" nor "es", or the archive is damaged.
        DataUnavailable: the archive is not in the cache and can't be downloaded; the message says where to put it.
    """
    _language_index(language)
    short = TATOEBA[language]
    archive = fetch(f"{short}-eng")
    text = read_member(archive, f"{short}.txt", f"{short}-eng/{short}.txt").decode("utf-8")
    lines = io.StringIO(text, newline=None)
    rows = _rows(archive.name, lines, columns=2, notes=False)
    return _pairs(
        archive.name, rows, (0, 1), max_tokens, (tokenize_with_marks, tokenize_with_marks)
    )


def load_pairs(
    path: str | Path,
    *,
    columns: tuple[int, int] = (0, 1),
    max_tokens: int | None = None,
    cut: Cut | tuple[Cut, Cut] = tokenize,
) -> list[Pair]:
    """The sentence pairs of a text file of yours, a pair a line, in any two languages.

    The columns of a line are separated by tabs, as in files from tatoeba.org; in a file without tabs by commas or
    semicolons, as in a .csv, and a sentence that holds one stands in quotes. Empty lines are left out, and before tabs
    also notes: lines that begin with # and have no tab.

    Args:
        path: of the file, in an encoding that `data.text.read_text` reads.
        columns: those of the source and of the target, counted from 0.
        max_tokens: leave out pairs with a longer sentence; None keeps all.
        cut: what makes the tokens of a normalized sentence, or a pair of these for source and target: `tokenize` words
            and marks, `list` letters (for a language without spaces), and `Subwords(texts).pieces` subwords.

    Raises:
        UserWarning: some lines lack one of the two sentences, and are left out; or something isn't certain, such as
            whether the first line is a pair.
        ValueError: the file can't be read as text, it is JSON or XML, a line has too few columns, or no pair is left.
    """
    if any(not isinstance(column, int) or column < 0 for column in columns):
        raise ValueError(
            f"columns={columns}; two numbers, counted from 0, are needed: columns=(0, 1)"
        )
    name, text = path_of(path).name, read_text(path)
    rows = list(_own_rows(name, text, 1 + max(columns)))
    _doubt_columns(name, [row for _, row in rows], columns)
    cuts = cut if isinstance(cut, tuple) else (cut, cut)
    from_source, from_target = (_normalizing(each) for each in cuts)
    pairs = _pairs(name, rows, columns, max_tokens, (from_source, from_target))
    if not pairs:
        raise ValueError(
            f"{name} holds no pair of sentences{f' of at most {max_tokens} tokens' * bool(max_tokens)}"
        )
    return pairs


def _normalizing(cut: Cut) -> Cut:
    return lambda text: cut(normalize(text))


_NAMES = re.compile(
    r"(english|french|spanish|german|italian|portuguese|source|target|src|tgt|sentences?|translations?|texts?|en|fr|es"
    r"|de|it|pt|words?|phrases?|[\W\d_]| )+",
    re.IGNORECASE,
)
"""What a line of headings consists of."""


def _doubt_columns(name: str, rows: Sequence[Sequence[str]], columns: tuple[int, int]) -> None:
    """Say it where the first line looks like headings, or a column like numbers of lines."""
    width = min(map(len, rows), default=0)
    numbers = [all(row[column].strip().isdigit() for row in rows[1:]) for column in range(width)]
    if len(rows) > 1 and any(numbers[column] for column in columns):
        texts = tuple(column for column in range(width) if not numbers[column])[:2]
        remedy = f"; are the sentences in columns={texts}?" if len(texts) == 2 else ""
        warnings.warn(f"{name}: a column of the pairs holds only numbers{remedy}", stacklevel=3)
    if len(rows) > 1 and all(_NAMES.fullmatch(rows[0][column]) for column in columns):
        first = " and ".join(repr(rows[0][column]) for column in columns)
        warnings.warn(
            f"{name}: the first line, {first}, looks like headings, and is taken as a pair; remove it if it is none",
            stacklevel=3,
        )


_MARKUP = re.compile(r"\s*<(\?xml|!doctype|html|tmx)\b", re.IGNORECASE)

_EXCEL = re.compile(r'(?:(?:"(?:[^"]|"")*+"|[^"\t\n]*+)[\t\n])*+')
"""A table in which quotes are what Excel writes around a cell, and two of them one in it."""


def _own_rows(name: str, text: str, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Number and columns of each line that is not empty."""
    if kind := "JSON" if _is_json(text) else "XML or HTML" if _MARKUP.match(text) else "":
        raise ValueError(
            f"{name} is {kind}, and no table. Write a file with a pair a line, and a tab between its sentences"
            + "; pandas.read_json reads JSON, and to_csv(…, sep='\\t', index=False, header=False) writes it"
            * (kind == "JSON")
        )
    if "\t" in text:
        notes = {line for line in text.split("\n") if line.startswith("#") and "\t" not in line}
        lines = ["" if line in notes else line for line in text.split("\n")]
        quoted = sum(cell.startswith('"') for line in lines for cell in line.split("\t"))
        if not quoted or not _EXCEL.fullmatch("\n".join(lines) + "\n"):
            yield from _rows(name, lines, columns=columns, notes=False)
            return
        warnings.warn(
            f"{name}: quotes around whole cells ({quoted}) are left out, because Excel puts them around cells with a "
            "comma",
            stacklevel=3,
        )
        for number, row in _table(name, "\n".join(lines), "\t"):
            if len(row) < columns:
                raise ValueError(_too_few(name, number, row, columns))
            yield number, row
        return
    semicolons, commas = (_table(name, text, mark) for mark in ";,")
    rows = max(semicolons, commas, key=lambda rows: _fitting(rows, columns))
    needed = max(columns, _width(rows))
    for number, row in rows:
        if len(row) != needed:
            raise ValueError(
                f"{name}, line {number}: {len(row)} columns; {needed} are needed. Put a tab between the sentences of "
                "a line, or a comma, and then each sentence that holds a comma in quotes"
                + "; a quote that opens in this line ends in a later one"
                * any("\n" in cell for cell in row)
            )
    if rows is commas and '"' not in text and text.count(", ") == text.count(","):
        warnings.warn(
            f"{name}: each comma is followed by a space, as commas in a sentence are, and is taken for the end of a "
            "sentence. Are these pairs? Put a tab between the two sentences of a line",
            stacklevel=3,
        )
    yield from rows


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        found, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (json.JSONDecodeError, RecursionError):
        return False
    return isinstance(found, dict) or any(isinstance(item, dict | list) for item in found)


def _width(rows: Sequence[tuple[int, list[str]]]) -> int:
    """The number of columns that most rows have."""
    return Counter(len(row) for _, row in rows).most_common(1)[0][0] if rows else 0


def _fitting(rows: Sequence[tuple[int, list[str]]], columns: int) -> int:
    """The number of rows with the usual width, if that is enough."""
    width = _width(rows)
    return sum(len(row) == width for _, row in rows) if width >= columns else 0


def _table(name: str, text: str, mark: str) -> list[tuple[int, list[str]]]:
    """Each row that is not empty, and the number of the line in which it begins."""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=mark != "\t")
    rows, begin = [], 1
    try:
        for row in lines:
            if any(map(str.strip, row)):
                rows.append((begin, row))
            begin = lines.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{name}, line {begin}: {error}. Put a tab between the sentences of a line"
        ) from None
    return rows


def _pairs(
    name: str,
    rows: Iterable[tuple[int, list[str]]],
    columns: tuple[int, int],
    max_tokens: int | None,
    cuts: tuple[Cut, Cut],
) -> list[Pair]:
    """The pairs of two columns of numbered rows; those with an empty sentence are left out, which is said."""
    pairs, lacking = [], []
    for number, row in rows:
        source, target = (
            tuple(cut(row[column])) for cut, column in zip(cuts, columns, strict=True)
        )
        if not (source and target):
            lacking.append(number)
        elif max_tokens is None or max(len(source), len(target)) <= max_tokens:
            pairs.append(Pair(source, target))
    if lacking:
        warnings.warn(
            f"{name}: {len(lacking)} lines lack one of the two sentences, and are left out; the first is line "
            f"{lacking[0]}",
            stacklevel=3,
        )
    return pairs


def _language_index(language: str) -> int:
    if language not in LANGUAGES:
        raise ValueError(f"language={language!r} is unknown; choose one of {', '.join(LANGUAGES)}")
    return list(LANGUAGES).index(language)


def _file_rows(name: str) -> Iterator[list[str]]:
    with data_path(f"translation/{name}").open(encoding="utf-8") as lines:
        yield from (row for _, row in _rows(name, lines, columns=3, notes=True))


def _rows(
    name: str, lines: Iterable[str], *, columns: int, notes: bool
) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of tab-separated lines, without empty lines; with `notes`, without those that begin with #."""
    for number, line in enumerate(lines, start=1):
        if not line.strip() or (notes and line.startswith("#")):
            continue
        row = line.rstrip("\n").split("\t")
        if len(row) < columns:
            raise ValueError(_too_few(name, number, row, columns))
        yield number, row


def _too_few(name: str, number: int, row: Sequence[str], columns: int) -> str:
    return f"{name}, line {number}: {len(row)} columns; {columns} tab-separated are needed"


# Splits -----------------------------------------------------------------------------------------


def split_by_source(
    pairs: Sequence[Pair], sizes: Sequence[int], *, seed: int = 0
) -> list[list[Pair]]:
    """A random split into parts that share no source sentence.

    Args:
        pairs: the pairs; those with the same source come into the same part.
        sizes: numbers of source sentences of all parts but the first, such as those for validation and test.
        seed: of the random order.

    Returns:
        The remaining pairs (for training), then a part for each size.

    Raises:
        ValueError: `sizes` leave no source sentence for training.
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
    """A batch of sentence pairs, padded to the longest of the batch.

    Attributes:
        source: (batch, source length), ids, `<eos>` at the end.
        source_lens: (batch,), numbers of source ids without padding.
        target_in: (batch, target length), ids that begin with `<bos>`: the decoder's input.
        target_out: (batch, target length), ids that end with `<eos>`: the decoder's targets.
        target_lens: (batch,), numbers of target ids without padding.
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
        """The number of target ids without padding, `<eos>` included."""
        return int(self.target_lens.sum())


def collate(encoded: Sequence[tuple[list[int], list[int]]]) -> Batch:
    """The batch of pairs of source and target ids, which have no special tokens yet."""
    source, source_lens = pad([[*source, EOS] for source, _ in encoded])
    target_out, target_lens = pad([[*target, EOS] for _, target in encoded])
    target_in, _ = pad([[BOS, *target] for _, target in encoded])
    return Batch(source, source_lens, target_in, target_out, target_lens)


class PairLoader(Loader):
    """A loader of sentence pairs of similar length.

    Each pass shuffles the pairs, sorts them by length within pools of many batches, and shuffles the batches, which
    keeps padding short and the order random.

    Args:
        pairs: sentence pairs, which are encoded once.
        source_vocab, target_vocab: vocabularies of the training data.
        batch_size: pairs per batch.
        shuffle: False keeps the pairs sorted by length, for evaluation.
        seed: seed of the loader's own generators.

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
