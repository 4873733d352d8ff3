"""A small table of words with features written by hand, so that every score can be checked."""

import csv
import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from course_utils.data.text import BOS, EOS, Vocabulary
from course_utils.data.translation import load_grammar
from course_utils.files import data_path


@dataclass(frozen=True, repr=False)
class WordTable:
    """Words and their features; `table["cat"]` is one row, `table[["cat", "dog"]]` two.

    Attributes:
        words: n different words.
        names: d names of features.
        features: (n, d), each between 0 (not at all) and 1 (entirely).
    """

    words: tuple[str, ...]
    names: tuple[str, ...]
    features: Tensor

    def __getitem__(self, words: str | Sequence[str]) -> Tensor:
        """Features (d,) of one word, or (k, d) of k words.

        Raises:
            KeyError: a word is not in the table; the message names the nearest one.
        """
        if isinstance(words, str):
            return self.features[self._row(words)].clone()
        return self.features[[self._row(word) for word in words]]

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"WordTable({len(self.words)} words × {len(self.names)} features)"

    def _row(self, word: str) -> int:
        if word in self.words:
            return self.words.index(word)
        near = difflib.get_close_matches(word, self.words, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.words)}"
        raise KeyError(f"no word {word!r} in the table; {hint}")


def load_words(path: Path | str | None = None) -> WordTable:
    """Read the word table: a header `word,feature,…`, then a word and numbers between 0 and 1 per line.

    Raises:
        FileNotFoundError: the file is missing; the message says how to restore it.
        ValueError: the table is empty, a word is there twice, or a feature is missing, no number or
            outside 0–1; the message names the line.
    """
    path = Path(path) if path else data_path("words.csv")
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = list(csv.reader(file)) or [[]]
    if header[:1] != ["word"] or len(header) < 2:
        raise ValueError(f"{path.name}, line 1: {header}; 'word' and names of features are needed")
    if not lines:
        raise ValueError(f"{path.name} has no words; at least one line under the header is needed")
    words: list[str] = []
    rows: list[list[float]] = []
    for number, (word, *texts) in enumerate((line or [""] for line in lines), start=2):
        where = f"{path.name}, line {number}"
        if not word or word in words:
            raise ValueError(f"{where}: word {word!r} is empty or there twice")
        if len(texts) != len(header) - 1:
            raise ValueError(f"{where}: {word!r} has {len(texts)} features, not {len(header) - 1}")
        words.append(word)
        rows.append([_feature(where, word, text) for text in texts])
    return WordTable(tuple(words), tuple(header[1:]), torch.tensor(rows))


def _feature(where: str, word: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise ValueError(
            f"{where}: {word!r} has feature {text!r}; a number between 0 and 1 is needed"
        )
    return value


# A text to write on -------------------------------------------------------------------------------


def sentences() -> tuple[Tensor, Vocabulary]:
    """The grammar's English sentences, (sentences, n) tokens, −100 behind `<eos>`; and their words."""
    lines = sorted({pair.source for pair in load_grammar("fr")})
    vocabulary = Vocabulary(lines)
    rows = [torch.tensor([BOS, *vocabulary.encode(line), EOS]) for line in lines]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-100), vocabulary


def from_the_last_word(text: Tensor) -> float:
    """The least mean loss, over the words of `text`, of one who knows only the last word: H(next | last) in nats.

    Args:
        text: (sentences, n) tokens; those below 0 are past the end.
    """
    last, after = text[:, :-1], text[:, 1:]
    told = after >= 0
    size = int(text.max()) + 1
    pairs = torch.bincount(last[told] * size + after[told], minlength=size**2).view(size, size)
    chances = pairs / pairs.sum(1, keepdim=True)
    return -torch.special.xlogy(pairs, chances)[pairs > 0].sum().item() / pairs.sum().item()
