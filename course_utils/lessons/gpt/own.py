"""The reader's own text in *GPT*: from any file, in letters or in pieces of words, with the loss of n-grams on it."""

import math
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from course_utils.data.prose import Subwords
from course_utils.data.text import path_of, read_text
from course_utils.kit.stored_model import load_model
from course_utils.lessons.gpt.ngrams import kneser_ney_probs

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LARGEST = 5_000_000
"""The most letters that are taken of a file."""

WINDOWS = 100
"""The most windows on which a loss is measured; they are spread evenly over the text, however long it is."""

COUNTED = 300_000
"""The most letters in which n-grams are counted, just before the validation tenth; in a short training fewer."""

ORDERS = 7
"""Letters of the longest n-grams."""

PART = 100_000
"""Letters that are cut into pieces at a time, so that little memory is used."""

READER = "gpt_plays"
"""The stored GPT that has read Shakespeare's plays."""

BEGINNINGS = "nothing", "Shakespeare"
"""Texts that a GPT may have read before the reader's own."""

# Letters and pieces -------------------------------------------------------------------------------


class Letters:
    """The letters of a text, numbered in their order."""

    def __init__(self, text: str):
        self.letters = sorted(set(text))
        self._codes = np.array([ord(letter) for letter in self.letters], dtype=np.uint32)

    def __len__(self) -> int:
        return len(self.letters)

    def encode(self, text: str) -> Tensor:
        """(letters,) ids; all of them must be known."""
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        return torch.from_numpy(np.searchsorted(self._codes, codes))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids."""
        return "".join(self.letters[index] for index in ids)


class Pieces:
    """Byte-level pieces of words, which give back every text: those of the stored GPT, or learned from a text."""

    def __init__(self, tokens: Sequence[str], merges: Sequence[str]):
        from tokenizers import Tokenizer, models

        ids = {token: index for index, token in enumerate(tokens)}
        pairs = [tuple(merge.split(" ")) for merge in merges]
        self.tokens, self.merges = list(tokens), list(merges)
        self._tokenizer = _by_bytes(Tokenizer(models.BPE(ids, pairs)))

    @classmethod
    def learned(cls, text: str, size: int) -> "Pieces":
        """`size` pieces of a text, learned by byte-pair encoding."""
        import json

        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        tokenizer = _by_bytes(Tokenizer(models.BPE()))
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        trainer = trainers.BpeTrainer(
            vocab_size=size, initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
        ids = tokenizer.get_vocab()
        merges = json.loads(tokenizer.to_str())["model"]["merges"]
        return cls(sorted(ids, key=ids.get), [" ".join(merge) for merge in merges])

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> Tensor:
        """(pieces,) ids."""
        parts = [text[start : start + PART] for start in range(0, len(text), PART)]
        ids = [np.array(self._tokenizer.encode(part).ids, dtype=np.int64) for part in parts]
        return torch.from_numpy(np.concatenate(ids or [np.zeros(0, dtype=np.int64)]))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids; bytes that make no letter become "\N{REPLACEMENT CHARACTER}"."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)


def _by_bytes(tokenizer: "Tokenizer") -> "Tokenizer":
    """The same tokenizer, set to cut a text into bytes."""
    from tokenizers import decoders, pre_tokenizers

    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def pieces_of_reader() -> Pieces:
    """The pieces that the stored GPT reads."""
    vocabularies = load_model(READER).vocabularies
    return Pieces(vocabularies["tokens"], vocabularies["merges"])


def has_read_plays(begin: str) -> bool:
    """Whether `begin`, one of `BEGINNINGS`, names Shakespeare, so that a training begins with the stored GPT.

    Raises:
        ValueError: it is another word.
    """
    words = [word.lower() for word in BEGINNINGS]
    if str(begin).lower() not in words:
        raise ValueError(f'begin is {begin!r}; put in "nothing" or "Shakespeare"')
    return str(begin).lower() == words[1]


def until(minutes: float) -> Callable[[int], float]:
    """A function, step → share of these minutes that is over, counted from now on.

    Raises:
        ValueError: there are none to train for.
    """
    if not minutes > 0:
        raise ValueError(f"minutes is {minutes}; put in 0.1 or more")
    began = time.monotonic()
    return lambda _step: (time.monotonic() - began) / 60 / minutes


# A text to train on -------------------------------------------------------------------------------


class OwnText:
    """The text of a file: nine tenths to train on, and the last tenth for validation.

    Args:
        path: of the file.
        length: tokens of a window.
        pieces: whether the tokens are the stored GPT's pieces of words; letters otherwise.

    Attributes:
        text: the whole text.
        tokens: what encodes and decodes it.
        train: (tokens,) ids of the training text.
        val, again: (windows, length + 1) windows of the validation and of the training text, at most `WINDOWS` each.
            They overlap by half, and the second half of each is asked.

    Raises:
        ValueError: the file is no text, or too short.
    """

    def __init__(self, path: str | Path, length: int, pieces: bool = False):
        self.text, self.name, self.length = (
            read_text(path, most=LARGEST),
            path_of(path).name,
            length,
        )
        self.tokens = pieces_of_reader() if pieces else Letters(self.text)
        cut, half = int(0.9 * len(self.text)), length // 2
        self.train, val = map(self.tokens.encode, (self.text[:cut], self.text[cut:]))
        if len(self.train) <= length or len(val) < half:
            per_token = len(self.text) / (len(self.train) + len(val)) if self.text else 1
            needed = math.ceil(1.1 * half * per_token) * 10 if pieces else 10 * half + 10
            raise ValueError(
                f"{self.name} has {len(self.text):,} letters, and its last tenth is too short to judge by. "
                f"Put in a text of about {needed:,.0f} letters or more."
            )
        self.val, self.again = (
            spread(ids, length) for ids in (torch.cat([self.train[-half - 1 :], val]), self.train)
        )

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        asked = self.val[:, self.length // 2 + 1 :].numel()
        tokens = "letters" if isinstance(self.tokens, Letters) else "pieces of words"
        said = (
            f"{self.name}: {len(self.text):,} letters. The training text has {len(self.train):,} {tokens} "
            f"of {len(self):,} kinds, and the validation loss is a mean over {asked:,}."
        )
        in_bytes = len(self.train) > int(0.9 * len(self.text))  # more pieces than letters
        return f"{said} This text's letters are cut into bytes." if in_bytes else said

    @cached_property
    def asked(self) -> list[tuple[str, str]]:
        """The first half of each validation window, in letters, and its second half, whose loss is measured."""
        middle = self.length // 2 + 1
        rows = self.val.tolist()
        return [(self.decode(row[:middle]), self.decode(row[middle:])) for row in rows]

    @cached_property
    def measured(self) -> list[tuple[Tensor, float]]:
        """The windows on which a loss is measured, of the validation text first, and the tokens per letter of each.

        A loss per token times this is the loss per letter.
        """
        return [(windows, self._per_letter(windows)) for windows in (self.val, self.again)]

    def _per_letter(self, windows: Tensor) -> float:
        """Tokens per letter of the second halves of windows."""
        asked = windows[:, self.length // 2 + 1 :]
        return asked.numel() / sum(len(self.decode(row)) for row in asked.tolist())

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids."""
        return self.tokens.decode(ids)

    def counted(self, minutes: float) -> float:
        """The least loss per letter of n-grams of up to `ORDERS` letters, on the halves whose loss is measured.

        With modified Kneser–Ney smoothing, from the last letters that are read: `COUNTED` at most, and in a training
        of less than a minute fewer.
        """
        cut, most = int(0.9 * len(self.text)), int(COUNTED * min(1.0, minutes))
        counts, asked = self.text[max(0, cut - most) : cut], "".join(map("".join, self.asked))
        letters = Letters(counts + asked)
        is_asked = torch.tensor(
            [after for pair in self.asked for after, part in enumerate(pair) for _ in part],
            dtype=torch.bool,
        )
        rows = kneser_ney_probs(
            letters.encode(counts).tolist(), letters.encode(asked).tolist(), ORDERS, len(letters)
        )
        return min(-torch.tensor(row).log()[is_asked].mean().item() for row in rows)


def pieces_per_letter(texts: Sequence[str]) -> float:
    """Pieces of the live GPT per letter of some sentences, each with its end."""
    vocabularies = load_model("gpt").vocabularies
    merges = [tuple(merge.split(" ")) for merge in vocabularies["merges"]]
    subwords = Subwords.from_merges(vocabularies["tokens"], merges)
    return sum(len(subwords.encode(text)) + 1 for text in texts) / sum(len(t) + 1 for t in texts)


def spread(ids: Tensor, length: int) -> Tensor:
    """Windows of a text that overlap by half, (windows, length + 1): all, or `WINDOWS` of them, evenly spread."""
    every = ids.unfold(0, length + 1, length // 2)
    if len(every) <= WINDOWS:
        return every
    return every[torch.linspace(0, len(every) - 1, WINDOWS).long()]
