"""The file format GGUF: metadata, and tensors whose numbers are stored in blocks of a few bits.

All numbers are little-endian. First come the letters GGUF, a version, the number of tensors and of entries of
metadata; then the entries (key, kind, value); for each tensor its name, its sizes (the fastest axis first), its type
and its place; and at the next multiple of the alignment the tensors themselves. Specification: ggml-org/ggml,
docs/gguf.md.
"""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

KINDS = ("B", "b", "H", "h", "I", "i", "f", "?", "string", "array", "Q", "q", "d")
"""Kinds of metadata values, in the order of their numbers; a single letter is one of `struct`'s."""


def float16(raw: Tensor) -> Tensor:
    """The float16 of each two bytes, as float32: (blocks, 2) bytes → (blocks, 1)."""
    return raw.contiguous().view(torch.float16).float()


def q4_1(raw: Tensor) -> Tensor:
    """Blocks of Q4_1: (blocks, 20) bytes → (blocks, 32) float32.

    A scale d and a least value m, float16 both, then 32 numbers n from 0 to 15, two in a byte, the low halves first.
    Each stands for d · n + m.
    """
    n = torch.cat([raw[:, 4:] & 15, raw[:, 4:] >> 4], dim=1)
    return float16(raw[:, :2]) * n + float16(raw[:, 2:4])


def q8_0(raw: Tensor) -> Tensor:
    """Blocks of Q8_0: (blocks, 34) bytes → (blocks, 32) float32.

    A scale d, float16, then 32 numbers n from −128 to 127. Each stands for d · n.
    """
    return float16(raw[:, :2]) * raw[:, 2:].contiguous().view(torch.int8)


def float32(raw: Tensor) -> Tensor:
    """The float32 of each four bytes: (numbers, 4) bytes → (numbers, 1)."""
    return raw.contiguous().view(torch.float32)


TYPES = {0: (1, 4), 1: (1, 2), 3: (32, 20), 8: (32, 34)}
"""Number of a type → numbers in a block, and bytes of a block: float32, float16, Q4_1, Q8_0."""


class GGUF:
    """An open GGUF file; a tensor's numbers are read when they are asked for.

    Attributes:
        metadata: key → value.
        tensors: name → (type, shape, place).

    Args:
        path: of the file.
        decode_q4_1: (blocks, 20) bytes → (blocks, 32) float32; `q4_1`, or a reader's own.

    Raises:
        ValueError: it is no GGUF file of version 2 or 3, or ends too early.
    """

    def __init__(self, path: str | Path, decode_q4_1: Callable[[Tensor], Tensor] = q4_1):
        self._decoders = {0: float32, 1: float16, 3: decode_q4_1, 8: q8_0}
        self._path, self._place = path, 4
        self._bytes = np.memmap(path, np.uint8, "r")
        if self._bytes[:4].tobytes() != b"GGUF" or self._next("I") not in (2, 3):
            raise ValueError(f"{path} is no GGUF file of version 2 or 3")
        try:
            tensors, entries = self._next("Q"), self._next("Q")
            self.metadata: dict[str, Any] = {}
            for _ in range(entries):
                key = self._next("string")
                self.metadata[key] = self._value(self._next("I"))
            self.tensors = {}
            for _ in range(tensors):
                name = self._next("string")
                shape = [self._next("Q") for _ in range(self._next("I"))][::-1]
                self.tensors[name] = self._next("I"), shape, self._next("Q")
        except struct.error as error:
            raise ValueError(f"{path} ends in the middle of its metadata") from error
        alignment = self.metadata.get("general.alignment", 32)
        self._start = -(-self._place // alignment) * alignment
        del self._bytes  # no file stays open

    def _next(self, letter: str) -> Any:
        """The next number, of `struct`'s kind, or the next string."""
        if letter == "string":
            size = self._next("Q")
            self._place += size
            return self._bytes[self._place - size : self._place].tobytes().decode()
        (number,) = struct.unpack_from("<" + letter, self._bytes, self._place)
        self._place += struct.calcsize("<" + letter)
        return number

    def _value(self, kind: int) -> Any:
        """The next value: a number, a string, or a list of either."""
        if KINDS[kind] != "array":
            return self._next(KINDS[kind])
        kind, count = self._next("I"), self._next("Q")
        return [self._value(kind) for _ in range(count)]

    def blocks(self, name: str) -> Tensor:
        """A tensor as it is stored: (blocks, bytes of a block) uint8."""
        kind, shape, place = self.tensors[name]
        if kind not in TYPES:
            raise ValueError(f"{name} has the type {kind}; there are decoders for {list(TYPES)}")
        numbers, size = TYPES[kind]
        count = int(np.prod(shape)) // numbers
        raw = np.fromfile(self._path, np.uint8, count * size, offset=self._start + place)
        if raw.size < count * size:
            raise ValueError(f"{self._path} ends in the middle of {name}")
        return torch.from_numpy(raw).view(count, size)

    def read(self, name: str) -> Tensor:
        """A tensor of float32, its numbers made again from the bits that stand for them."""
        raw, (kind, shape, _) = self.blocks(name), self.tensors[name]
        return self._decoders[kind](raw).reshape(shape)
