"""Random strings of twelve letters, to copy: nothing in them can be guessed."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.data.text import BOS, EOS, SPECIALS
from course_utils.data.translation import Batch, collate
from course_utils.decoding import greedy

LETTERS = "abcdefghijkl"
TOKENS = [*SPECIALS, *LETTERS]
VOCABULARY = len(TOKENS)
OPENING = "jbkaelfchgdi"
"""The string that the chapter begins with."""
COPIED = (2, 4, 6, 8, 10, 12)
"""Lengths of the strings on which a copier is judged."""

Draw = Callable[[int, int, torch.Generator], tuple[Tensor, Tensor, Tensor]]


def random_strings(
    count: int, length: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Strings of so many letters: source, target_in, target_out, each (count, length + 1)."""
    drawn = torch.randint(len(SPECIALS), VOCABULARY, (count, length), generator=generator)
    begin, end = torch.full((count, 1), BOS), torch.full((count, 1), EOS)
    source = torch.cat([drawn, end], dim=1)
    return source, torch.cat([begin, drawn], dim=1), source


class Strings:
    """Batches of fresh strings; all strings of a batch have one length, from 2 to 12."""

    def __init__(
        self, seed: int, *, batches: int = 1, batch_size: int = 64, draw: Draw = random_strings
    ):
        """An endless supply, `batches` at a time; `draw` makes the strings of a batch."""
        self.numbers = torch.Generator().manual_seed(seed)
        self.batches, self.batch_size, self.draw = batches, batch_size, draw

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[Batch]:
        for length in torch.randint(2, 13, (self.batches,), generator=self.numbers).tolist():
            yield self.of_length(length)

    def of_length(self, length: int) -> Batch:
        """Strings of so many letters, as source and as target."""
        source, target_in, target_out = self.draw(self.batch_size, length, self.numbers)
        lens = torch.full((self.batch_size,), length + 1)
        return Batch(source, lens, target_in, target_out, lens)


class Watched(Strings):
    """Strings for a training, with a look at the copies after each pass, or after so many as `looks` has.

    Attributes:
        shares: length → [passes, share of strings copied without a mistake], one entry a look.
        copies: {"passes": …, "copies": …}, one entry a look: what becomes of OPENING's beginnings, as long as COPIED.
    """

    def __init__(self, model, seed: int, *, looks: Sequence[int] = (), **options):
        """The model is the one in training; `options` are those of `Strings`."""
        super().__init__(seed, **options)
        self.model, self.looks, self.done = model, looks, 0
        self.shares: dict[int, list[list[float]]] = {length: [] for length in COPIED}
        self.copies: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[Batch]:
        """The batches of a pass, and then the look, when the training asks in vain for one more."""
        yield from super().__iter__()
        self.done += 1
        if not self.looks or self.done in self.looks:
            for length, share in shares_copied(self.model).items():
                self.shares[length].append([self.done, share])
            copies = [copied(self.model, OPENING[:length]) for length in COPIED]
            self.copies.append({"passes": self.done, "copies": copies})


def copied(model, string: str, decode: Callable[..., list[list[int]]] = greedy) -> str:
    """What a copier writes for a string of the twelve letters.

    Raises:
        ValueError: the string is empty, or has another letter.
    """
    if not string or set(string) - set(LETTERS):
        raise ValueError(f"got {string!r}, expected a word of the letters a to l")
    ids = [TOKENS.index(letter) for letter in string]
    batch = collate([(ids, ids)])
    (written,) = decode(model, batch.source, batch.source_lens, max_len=20)
    return "".join(TOKENS[token] for token in written)


def shares_copied(model, count: int = 200, seed: int = 2000) -> dict[int, float]:
    """Length → the share of random strings that a copier writes without a mistake."""
    strings, shares = Strings(seed, batch_size=count), {}
    for length in COPIED:
        batch = strings.of_length(length)
        copies = greedy(model, batch.source, batch.source_lens, max_len=length + 1)
        right = [ours == row[:-1] for ours, row in zip(copies, batch.source.tolist(), strict=True)]
        shares[length] = sum(right) / len(right)
    return shares
