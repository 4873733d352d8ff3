"""What attention keeps: keys and values between decoding steps, and its weights while somebody looks.

Taught in *The Transformer* (the cache) and *Bahdanau attention* (looking at weights).
"""

import contextlib
import functools
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from course_utils.attention import Attention


class KVCache:
    """Keys and values of one attention module, kept between decoding steps.

    Self-attention appends the newest token's and reads all so far; cross-attention fills the cache
    once and only reads it afterwards. A new tensor is made each time: what was there before, and its
    gradient, stay as they are.
    """

    def __init__(self) -> None:
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    @property
    def length(self) -> int:
        """Number of tokens so far."""
        return 0 if self._keys is None else self._keys.shape[-2]

    @property
    def keys(self) -> Tensor:
        """(batch, heads, length, head_dim)."""
        return _filled(self._keys)

    @property
    def values(self) -> Tensor:
        """(batch, heads, length, head_dim)."""
        return _filled(self._values)

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add (batch, heads, new, head_dim) behind what is there; return all keys and all values."""
        if self._keys is None or self._values is None:
            self._keys, self._values = keys, values
        else:
            self._keys = torch.cat([self._keys, keys], dim=-2)
            self._values = torch.cat([self._values, values], dim=-2)
        return self._keys, self._values

    def repeat(self, times: int) -> None:
        """Keep each row of the batch `times` times, side by side: a row for each beam."""
        if self._keys is not None and self._values is not None:
            self._keys = self._keys.repeat_interleave(times, dim=0)
            self._values = self._values.repeat_interleave(times, dim=0)

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order: (new batch,), as beam search needs it."""
        if self._keys is not None and self._values is not None:
            self._keys, self._values = self._keys[rows], self._values[rows]


def _filled(stored: Tensor | None) -> Tensor:
    if stored is None:
        raise ValueError("the cache is empty; append keys and values first")
    return stored


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
        yield maps
    finally:
        for name, module in modules.items():
            module._record = before[name]
