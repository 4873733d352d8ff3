"""The copying task of *Sequence to sequence*: random strings of twelve letters, of which nothing can be guessed.

Batches of strings, batches that also look at the copies during a training, and what a copier writes.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import eq
from typing import Any

import torch
from torch import Tensor

from course_utils.data.text import BOS, EOS, SPECIALS
from course_utils.data.translation import Batch, collate
from course_utils.decoding import Translator, greedy

LETTERS = "abcdefghijkl"
TOKENS = [*SPECIALS, *LETTERS]
VOCABULARY = len(TOKENS)
"""Number of tokens, special ones included."""
OPENING = "jbkaelfchgdi"
"""The string that the chapter begins with."""
COPIED = (2, 4, 6, 8, 10, 12)
"""Lengths of the strings on which a copier is measured."""

Draw = Callable[[int, int, torch.Generator], tuple[Tensor, Tensor, Tensor]]
"""(count, length, generator) → source, target_in, target_out, as `random_strings` gives them."""


def random_strings(
    count: int, length: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Random strings as ids.

    Args:
        count: number of strings.
        length: letters of each string.
        generator: draws the letters.

    Returns:
        source, with `<eos>` last; target_in, with `<bos>` first; target_out, the same as source: (count, length + 1).
    """
    drawn = torch.randint(len(SPECIALS), VOCABULARY, (count, length), generator=generator)
    begin, end = torch.full((count, 1), BOS), torch.full((count, 1), EOS)
    source = torch.cat([drawn, end], dim=1)
    return source, torch.cat([begin, drawn], dim=1), source


class Strings:
    """Batches of new random strings at each epoch; all strings of a batch have one length, from 2 to 12."""

    def __init__(
        self, seed: int, *, batches: int = 1, batch_size: int = 64, draw: Draw = random_strings
    ):
        """An epoch has `batches` batches of `batch_size` strings.

        Args:
            seed: of lengths and letters.
            batches, batch_size: as above.
            draw: makes the strings of a batch.
        """
        self.numbers = torch.Generator().manual_seed(seed)
        self.batches, self.batch_size, self.draw = batches, batch_size, draw

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[Batch]:
        for length in torch.randint(2, 13, (self.batches,), generator=self.numbers).tolist():
            yield self.of_length(length)

    def of_length(self, length: int) -> Batch:
        """A batch of strings with `length` letters, as source and as target."""
        source, target_in, target_out = self.draw(self.batch_size, length, self.numbers)
        lens = torch.full((self.batch_size,), length + 1)
        return Batch(source, lens, target_in, target_out, lens)


class Watched(Strings):
    """Strings for a training, which measure at the end of an epoch how well the model copies.

    Attributes:
        shares: length → points [epochs, share of strings copied without a mistake], for each length in `COPIED`.
        copies: {"passes": …, "copies": …} for each measurement: what the model writes for the beginnings of `OPENING`,
            one for each length in `COPIED`.
    """

    def __init__(self, model: Translator, seed: int, *, looks: Sequence[int] = (), **options: Any):
        """Strings as of `Strings(seed, **options)`.

        Args:
            model: the copier in training.
            seed: of lengths and letters.
            looks: numbers of epochs after which it measures; after each epoch by default.
            options: those of `Strings`.
        """
        super().__init__(seed, **options)
        self.model, self.looks, self.passes = model, looks, 0
        self.shares: dict[int, list[list[float]]] = {length: [] for length in COPIED}
        self.copies: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[Batch]:
        """The batches of an epoch; after the last one, when the training asks for one more, the model is measured."""
        yield from super().__iter__()
        self.passes += 1
        if not self.looks or self.passes in self.looks:
            for length, share in shares_copied(self.model).items():
                self.shares[length].append([self.passes, share])
            copies = [copied(self.model, OPENING[:length]) for length in COPIED]
            self.copies.append({"passes": self.passes, "copies": copies})


def copied(model: Translator, string: str, decode: Callable[..., list[list[int]]] = greedy) -> str:
    """The copy that a model writes of a string.

    Args:
        model: the copier.
        string: of the twelve letters.
        decode: a function that is called as `decoding.greedy` is.

    Raises:
        ValueError: the string is empty, or has another letter.
    """
    if not string or set(string) - set(LETTERS):
        raise ValueError(f"got {string!r}, expected a word of the letters a to l")
    ids = [TOKENS.index(letter) for letter in string]
    batch = collate([(ids, ids)])
    (written,) = decode(model, batch.source, batch.source_lens, max_len=20)
    return "".join(TOKENS[token] for token in written)


def shares_copied(model: Translator, count: int = 200, seed: int = 2000) -> dict[int, float]:
    """The share of `count` random strings that a model copies without a mistake, for each length in `COPIED`."""
    strings, shares = Strings(seed, batch_size=count), {}
    for length in COPIED:
        batch = strings.of_length(length)
        copies = greedy(model, batch.source, batch.source_lens, max_len=length + 1)
        originals = batch.source[:, :-1].tolist()  # without <eos>
        shares[length] = sum(map(eq, copies, originals)) / count
    return shares
