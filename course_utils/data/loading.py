"""The base class of loaders: shuffled batches, in an order that can be saved and resumed.

Taught in *Bahdanau attention: learning to align*, where sentences are batched, and in *Training transformers*, where a
training is resumed.
"""

from collections.abc import Iterator, Sequence
from operator import index
from typing import Any

import numpy as np
import torch

from course_utils.arguments import check_positive

POOL = 50
"""The number of batches whose rows are sorted by length together, for little padding and little order."""


class Loader:
    """An iterable of batches of rows; each iteration is a pass over all rows.

    Each pass has a random generator of its own, seeded with the loader's seed and the number of the pass: a shuffled
    loader has another order in each pass, one that is not shuffled the same. So a pass may be left before its end, or
    run beside another, without changing a later one.

    A subclass defines `_batch`, and `_order` unless batches are pieces of a random order.

    Args:
        rows: number of rows.
        batch_size: rows per batch.
        shuffle: False keeps the order, for evaluation.
        seed: seed of the loader's own generators, at least 0.

    Raises:
        ValueError: there is nothing to load, `batch_size` is not positive, or `seed` is negative.
    """

    def __init__(self, rows: int, *, batch_size: int, shuffle: bool, seed: int):
        if rows < 1:
            raise ValueError("there is nothing to load; training and evaluation need examples")
        check_positive(batch_size=batch_size)
        if seed < 0:
            raise ValueError(f"seed={seed}; at least 0 is needed")
        # As Python's numbers, since a checkpoint with those of NumPy can't be read again.
        self.rows, self.batch_size, self.seed = index(rows), index(batch_size), index(seed)
        self.shuffle = bool(shuffle)
        self._go_to(0, 0)

    def _go_to(self, number: int, position: int) -> None:
        """Begin the next iteration in pass `number`, after its first `position` batches."""
        self._next_pass, self._handed_out = number, position
        self._progress = {"pass": number, "position": position}

    def __len__(self) -> int:
        """Batches per pass; the last one may be smaller."""
        return -(-self.rows // self.batch_size)

    def __iter__(self) -> Iterator:
        """Begin the next pass; after `load_state_dict`, go on with the rest of the saved pass."""
        progress = self._progress = {"pass": self._next_pass, "position": self._handed_out}
        self._next_pass, self._handed_out = self._next_pass + 1, 0
        return self._rest_of(progress)

    def _rest_of(self, progress: dict[str, int]) -> Iterator:
        number = progress["pass"] if self.shuffle else 0
        seed = int(np.random.SeedSequence((self.seed, number)).generate_state(1)[0])
        generator, handed_out = torch.Generator().manual_seed(seed), progress["position"]
        for position, rows in enumerate(self._order(generator), start=1):
            # A batch that is skipped is made as well, since it may draw random numbers.
            batch = self._batch(rows, generator)
            if position > handed_out:
                progress["position"] = position
                yield batch
        progress.update({"pass": progress["pass"] + 1, "position": 0})

    def restart(self) -> None:
        """Begin the next iteration with the first pass."""
        self._go_to(0, 0)

    def state_dict(self) -> dict[str, Any]:
        """The settings, and the number and position of the last pass that was begun, for a checkpoint."""
        settings = {name: getattr(self, name) for name in ("rows", "batch_size", "shuffle")}
        return {"seed": self.seed, **self._progress, **settings}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from the state of another loader over the same rows.

        Raises:
            ValueError: the saved loader had another number of rows, another batch size or another `shuffle`.
        """
        for name in ("rows", "batch_size", "shuffle"):
            if state.get(name) != getattr(self, name):
                raise ValueError(
                    f"the saved loader had {name}={state.get(name)}, this one has "
                    f"{name}={getattr(self, name)}; they would not hand out the same batches"
                )
        self.seed = state["seed"]
        self._go_to(state["pass"], state["position"])

    def _order(self, generator: torch.Generator) -> list[list[int]]:
        """The row numbers of each batch of a pass."""
        if not self.shuffle:
            return chunks(range(self.rows), self.batch_size)
        return chunks(torch.randperm(self.rows, generator=generator).tolist(), self.batch_size)

    def _order_by_length(self, lengths: Sequence, generator: torch.Generator) -> list[list[int]]:
        """Row numbers of batches of similar length: sorted within pools of batches, in random order if shuffled."""
        if not self.shuffle:
            return chunks(sorted(range(self.rows), key=lengths.__getitem__), self.batch_size)
        order = torch.randperm(self.rows, generator=generator).tolist()
        batches = []
        for pool in chunks(order, POOL * self.batch_size):
            batches += chunks(sorted(pool, key=lengths.__getitem__), self.batch_size)
        return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]

    def _batch(self, rows: list[int], generator: torch.Generator):
        """The batch of these row numbers."""
        raise NotImplementedError


def chunks(items: Sequence, size: int) -> list[list]:
    """Consecutive pieces of `size` items; the last may be shorter."""
    return [list(items[start : start + size]) for start in range(0, len(items), size)]
