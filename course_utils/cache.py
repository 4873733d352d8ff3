"""The key–value cache: what attention keeps of earlier tokens while a model decodes.

Taught in *The Transformer*.
"""

import torch
from torch import Tensor


class KVCache:
    """Keys and values of one attention module, kept between decoding steps.

    Self-attention appends those of the newest token and reads all so far; cross-attention fills the cache
    once and only reads it afterwards. Without gradients the storage doubles when it is full, so that
    appending costs the same at every length; with gradients each step makes a new tensor, since the backward
    pass needs the old one unchanged. A copy (`copy.copy`, also of a model's state) has storage of its own, so that two
    continuations of one text do not meet.

    Attributes:
        length: number of tokens so far.
    """

    def __init__(self) -> None:
        self.length = 0
        self._stored: tuple[Tensor, Tensor] | None = None

    @property
    def keys(self) -> Tensor:
        """Keys of all tokens so far, (batch, heads, length, head_dim).

        Raises:
            ValueError: the cache is empty.
        """
        return self._filled()[0][..., : self.length, :]

    @property
    def values(self) -> Tensor:
        """Values of all tokens so far, (batch, heads, length, head_dim).

        Raises:
            ValueError: the cache is empty.
        """
        return self._filled()[1][..., : self.length, :]

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and all values, after those of new tokens, (batch, heads, new, head_dim), are added.

        They have the dtype of the new ones. What is kept has that of the first, such as bfloat16 if a prompt was read
        under autocast.
        """
        old_keys, old_values = self._stored or (None, None)
        self._stored = (
            _extended(old_keys, self.length, keys),
            _extended(old_values, self.length, values),
        )
        self.length += keys.shape[-2]
        return self.keys.to(keys.dtype), self.values.to(values.dtype)

    def repeat(self, times: int) -> None:
        """Replace each row of the batch by `times` copies, side by side: a row for each beam."""
        if self._stored is not None:
            keys, values = self._stored
            self._stored = keys.repeat_interleave(times, 0), values.repeat_interleave(times, 0)

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch, (new batch,), in this order, as beam search needs it."""
        if self._stored is not None:
            keys, values = self._stored
            self._stored = keys[rows], values[rows]

    def __copy__(self) -> "KVCache":
        """A cache with the same tokens, and its own storage: what is appended to one is not in the other."""
        other = KVCache()
        other.length = self.length
        if self._stored is not None:
            other._stored = self.keys.clone(), self.values.clone()
        return other

    def _filled(self) -> tuple[Tensor, Tensor]:
        if self._stored is None:
            raise ValueError("the cache is empty; append keys and values first")
        return self._stored


def _extended(stored: Tensor | None, length: int, new: Tensor) -> Tensor:
    """The first `length` rows of `stored`, then the new ones, then perhaps unused rows for later steps."""
    if torch.is_grad_enabled():
        return (
            new
            if stored is None
            else torch.cat([stored[..., :length, :], new.to(stored.dtype)], dim=-2)
        )
    end = length + new.shape[-2]
    # A tensor made in inference mode cannot be written outside it.
    frozen = stored is not None and stored.is_inference() and not torch.is_inference_mode_enabled()
    if stored is None or stored.shape[-2] < end or frozen:
        kept = new if stored is None else stored
        grown = kept.new_empty(*new.shape[:-2], max(16, 2 * end), new.shape[-1])
        if stored is not None:
            grown[..., :length, :] = stored[..., :length, :]
        stored = grown
    stored[..., length:end, :] = new
    return stored
