"""What every loader does: batches in an order of its own that can be saved and resumed.

Above: `runtime`. Below: `translation`, `images` and `prose`, whose loaders say what a batch is.
"""

from collections.abc import Iterator

import torch


class Loader:
    """Batches of rows; a pass shuffles them with the loader's own generator.

    A subclass gives the number of rows, `_batch(rows)`, and, where batches are more than chunks of a
    random order, `_order()`.

    Args:
        rows: how many things there are.
        batch_size: things per batch.
        shuffle: False keeps the order, for evaluation.
        seed: of the loader's own generator.

    Raises:
        ValueError: there is nothing to load, or `batch_size` is not positive.
    """

    def __init__(self, rows: int, *, batch_size: int, shuffle: bool, seed: int):
        if rows < 1:
            raise ValueError("there is nothing to load; training and evaluation need examples")
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size}; at least 1 is needed")
        self.rows, self.batch_size, self.shuffle = rows, batch_size, shuffle
        self._generator = torch.Generator().manual_seed(seed)
        self._pass_state = self._generator.get_state()  # at the beginning of the current pass
        self._position = 0  # batches of the current pass that were handed out

    def __len__(self) -> int:
        return -(-self.rows // self.batch_size)

    def __iter__(self) -> Iterator:
        """The rest of the current pass: all of it, unless a state in its middle was loaded."""
        self._generator.set_state(self._pass_state)
        for number, rows in enumerate(self._order()):
            batch = self._batch(rows)  # also of what was handed out: making it may draw numbers
            if number >= self._position:
                self._position += 1
                yield batch
        self._pass_state, self._position = self._generator.get_state(), 0

    def state_dict(self) -> dict:
        """Where the loader stands, for a checkpoint."""
        return {"pass_state": self._pass_state, "position": self._position}

    def load_state_dict(self, state: dict) -> None:
        """Go on from where another loader over the same things stood."""
        self._pass_state, self._position = state["pass_state"], state["position"]

    def _order(self) -> list[list[int]]:
        """The rows of each batch of a pass."""
        if not self.shuffle:
            return chunks(range(self.rows), self.batch_size)
        order = torch.randperm(self.rows, generator=self._generator).tolist()
        return chunks(order, self.batch_size)

    def _batch(self, rows: list[int]):
        raise NotImplementedError


def chunks(items, size: int) -> list[list]:
    """Runs of `size` items; the last may be shorter."""
    return [list(items[start : start + size]) for start in range(0, len(items), size)]
