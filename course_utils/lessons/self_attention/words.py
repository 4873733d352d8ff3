"""A small table of words with features written by hand, so that every score can be checked."""

import csv
from typing import NamedTuple

import torch
from torch import Tensor, nn

from course_utils.data.text import BOS, EOS, Vocabulary
from course_utils.data.translation import load_grammar
from course_utils.files import data_path


class WordTable(NamedTuple):
    """Words and their features.

    Attributes:
        words: n different words.
        names: d names of features.
        features: (n, d), each between 0 (not at all) and 1 (entirely).
    """

    words: tuple[str, ...]
    names: tuple[str, ...]
    features: Tensor


def load_words() -> WordTable:
    """The table in data/words.csv: a word and its features a line.

    Raises:
        FileNotFoundError: the file is missing; the message says how to restore it.
    """
    with data_path("words.csv").open(encoding="utf-8", newline="") as file:
        (_, *names), *lines = csv.reader(file)
    rows = [[float(feature) for feature in features] for _, *features in lines]
    return WordTable(tuple(word for word, *_ in lines), tuple(names), torch.tensor(rows))


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
