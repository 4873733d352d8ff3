"""Random strings of letters to copy: nothing in them can be guessed, so that all has to be kept."""

from collections.abc import Iterator

import torch

from course_utils.data.text import SPECIALS
from course_utils.data.translation import Batch, collate

LETTERS = "abcdefghijkl"
VOCABULARY = len(SPECIALS) + len(LETTERS)


class Strings:
    """Batches of fresh strings; all strings of a batch have one length, from 2 to 12."""

    def __init__(self, seed: int, *, batches: int = 1, batch_size: int = 64):
        """An endless supply, `batches` at a time."""
        self.numbers = torch.Generator().manual_seed(seed)
        self.batches, self.batch_size = batches, batch_size

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[Batch]:
        for length in torch.randint(2, 13, (self.batches,), generator=self.numbers).tolist():
            yield self.of_length(length)

    def of_length(self, length: int) -> Batch:
        """Strings of so many letters, as source and as target."""
        shape = self.batch_size, length
        drawn = torch.randint(len(SPECIALS), VOCABULARY, shape, generator=self.numbers)
        return collate([(row, row) for row in drawn.tolist()])
