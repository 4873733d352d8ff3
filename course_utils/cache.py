"""What attention keeps: keys and values between decoding steps, and its weights while somebody looks.

Taught in *The Transformer* (the cache) and *Bahdanau attention* (looking at weights).
"""

import contextlib
import functools
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn


class KVCache:
    """Keys and values of one attention module, kept between decoding steps.

    Self-attention appends the newest token's and reads all so far; cross-attention fills the cache
    once and only reads it afterwards. Without gradients the storage grows by doubling, so that a step
    costs the same at every length but for the attention itself; with gradients a new tensor is made
    each time, since the old one is still needed as it was.

    Attributes:
        length: number of tokens so far.
    """

    def __init__(self) -> None:
        self.length = 0
        self._stored: tuple[Tensor, Tensor] | None = None

    @property
    def keys(self) -> Tensor:
        """(batch, heads, length, head_dim)."""
        return self._filled()[0][..., : self.length, :]

    @property
    def values(self) -> Tensor:
        """(batch, heads, length, head_dim)."""
        return self._filled()[1][..., : self.length, :]

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add (batch, heads, new, head_dim) behind what is there; return all keys and all values."""
        old_keys, old_values = self._stored or (None, None)
        self._stored = (
            _extended(old_keys, self.length, keys),
            _extended(old_values, self.length, values),
        )
        self.length += keys.shape[-2]
        return self.keys, self.values

    def repeat(self, times: int) -> None:
        """Keep each row of the batch `times` times, side by side: a row for each beam."""
        if self._stored is not None:
            keys, values = self._stored
            self._stored = keys.repeat_interleave(times, 0), values.repeat_interleave(times, 0)

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order: (new batch,), as beam search needs it."""
        if self._stored is not None:
            keys, values = self._stored
            self._stored = keys[rows], values[rows]

    def _filled(self) -> tuple[Tensor, Tensor]:
        if self._stored is None:
            raise ValueError("the cache is empty; append keys and values first")
        return self._stored


def _extended(stored: Tensor | None, length: int, new: Tensor) -> Tensor:
    """The first `length` rows of what is stored, then the new ones, then perhaps room for more."""
    if torch.is_grad_enabled():
        return new if stored is None else torch.cat([stored[..., :length, :], new], dim=-2)
    end = length + new.shape[-2]
    frozen = stored is not None and stored.is_inference() and not torch.is_inference_mode_enabled()
    if stored is None or stored.shape[-2] < end or frozen:
        grown = new.new_empty(*new.shape[:-2], max(16, 2 * end), new.shape[-1])
        if stored is not None:
            grown[..., :length, :] = stored[..., :length, :]
        stored = grown
    stored[..., length:end, :] = new
    return stored


class Attention(nn.Module):
    """Base of the attention modules: hands its weights to `record_attention`."""

    _record: Callable[[Tensor], None] | None = None

    def note(self, weights: Callable[[], Tensor]) -> None:
        """Call `weights()` and pass the result on, but only while somebody looks."""
        if self._record is not None:
            with torch.no_grad():
                self._record(weights().detach())

    def __getstate__(self) -> dict:
        """What is copied and pickled: everything but the recording."""
        return {name: value for name, value in self.__dict__.items() if name != "_record"}


_looks: list[None] = []  # one for each open block in which somebody looks


@contextlib.contextmanager
def looking() -> Iterator[None]:
    """In the block models compute all that they have to show, also what their results do not need."""
    _looks.append(None)
    try:
        yield
    finally:
        _looks.pop()


def somebody_looks() -> bool:
    """Whether such a block is open, of `record_attention` or of `interventions`."""
    return bool(_looks)


@contextlib.contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the attention weights of every module inside `model` while the block runs.

    The weights are computed only inside the block: before dropout, detached, (batch, heads,
    queries, keys) for multi-head and (batch, queries, keys) for single modules, keyed by the
    module's name in `model`. A module that is called again replaces what it left before. A copy of
    the model made inside the block does not record. One thread at a time may look at a model.

        with record_attention(model) as maps:
            model(tokens)
        maps["encoder.layers.0.attention"]

    Raises:
        ValueError: `model` contains no attention module of ours.
    """
    modules = {
        name: module for name, module in model.named_modules() if isinstance(module, Attention)
    }
    if not modules:
        raise ValueError(f"{type(model).__name__} contains no course_utils attention module")
    maps: dict[str, Tensor] = {}
    before = {name: module._record for name, module in modules.items()}
    try:
        for name, module in modules.items():
            module._record = functools.partial(maps.__setitem__, name)
        with looking():
            yield maps
    finally:
        for name, module in modules.items():
            module._record = before[name]
