"""Values between the judge and the worker.

From the worker come JSON and raw bytes of tensors, and nothing is unpickled. What JSON lacks has a tag:

    {"t": "tensor", "i": 0}                      the first of the tensors that follow
    {"t": "tuple", "of": […]}, {"t": "dict", "of": [[key, value], …]}, {"t": "..."}
    {"t": "given", "i": 0}                       a tensor that the judge has sent
    {"t": "handle", "i": 3}                      an object that stays in the judge
    {"t": "module", "i": 0}                      a torch.nn.Module that stays in the worker
    {"t": "other", "kind": "set"}                anything else: only what it is called
"""

import json
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

LARGEST = 64 * 2**20
"""Bytes of a message from a worker."""
HEAVIER = 4  # a list of JSON takes thirty times its text in memory, a tensor its bytes
DEEPEST = 40  # lists in lists

_HEAD = struct.Struct(">QQ")
_DTYPES = {
    str(dtype): dtype
    for dtype in (
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.bool, torch.complex64, torch.complex128),
    )
}


class Lost(Exception):
    """The other side has gone, or says what cannot be read."""


# Messages ---------------------------------------------------------------------------------------


def send(connection: socket.socket, head: bytes, blob: bytes = b"") -> None:
    """Send one message.

    Raises:
        Lost: nobody listens.
    """
    try:
        connection.sendall(_HEAD.pack(len(head), len(blob)) + head)
        connection.sendall(blob)
    except OSError as error:
        raise Lost(str(error)) from error


def receive(
    connection: socket.socket, largest: int = LARGEST, seconds: float | None = None
) -> tuple[bytes, bytes]:
    """The next message, its head and its blob, within so many seconds from the first byte to the last.

    Raises:
        Lost: the other side has closed, or sends more than is allowed.
        TimeoutError: it does not say all of it in time.
    """
    until = None if seconds is None else time.monotonic() + seconds
    head, blob = _HEAD.unpack(_exactly(connection, _HEAD.size, until))
    if head > largest // HEAVIER or head + blob > largest:
        most = largest // 2**20
        raise Lost(
            f"an answer of {(head + blob) / 2**20:,.0f} MB; {most} are allowed, {most // HEAVIER} outside tensors"
        )
    return _exactly(connection, head, until), _exactly(connection, blob, until)


def _exactly(connection: socket.socket, count: int, until: float | None) -> bytes:
    found = bytearray(count)
    view = memoryview(found)
    while view:
        if until is not None:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
        try:
            got = connection.recv_into(view)
        except TimeoutError:
            raise
        except OSError as error:
            raise Lost(str(error)) from error
        if not got:
            raise Lost("its process has ended")
        view = view[got:]
    return bytes(found)


# Tensors ----------------------------------------------------------------------------------------

Spec = list[Any]
"""Of a tensor: dtype, shape, whether it has a gradient."""


def flat(tensor: Tensor) -> tuple[Spec, bytes]:
    """What describes a tensor, and its bytes.

    Raises:
        TypeError: it is of a kind that is not sent, such as a sparse one.
    """
    if str(tensor.dtype) not in _DTYPES or tensor.layout != torch.strided:
        raise TypeError(f"a tensor of {tensor.dtype}, {tensor.layout}")
    data = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().flatten()
    raw = data.view(torch.uint8).numpy().tobytes() if len(data) else b""
    return [str(tensor.dtype), list(tensor.shape), tensor.requires_grad], raw


def tensors(specs: list[Spec], blob: bytes) -> list[Tensor]:
    """The tensors that these specs describe, without gradients.

    Raises:
        Lost: the bytes are too few, or too many.
    """
    found, at = [], 0
    for name, shape, _ in specs:
        dtype, numbers, extent = _DTYPES[name], 1, 1
        for size in shape:
            if not isinstance(size, int) or size < 0:
                raise Lost(f"a tensor of shape {shape}")
            numbers, extent = numbers * size, extent * max(1, size)
        if extent > LARGEST:  # of no bytes, perhaps, and yet of as many lists
            raise Lost(f"a tensor of shape {shape}")
        end = at + numbers * dtype.itemsize
        if end > len(blob):
            raise Lost("a tensor is cut off")
        part = bytearray(blob[at:end])
        one = torch.frombuffer(part, dtype=dtype) if part else torch.empty(0, dtype=dtype)
        found.append(one.reshape(shape))
        at = end
    if at != len(blob):
        raise Lost("more bytes than tensors")
    return found


# Values -----------------------------------------------------------------------------------------


class Packing:
    """Values on their way from the worker.

    Args:
        special: gives the tag of an object that only the worker knows, or None.
    """

    def __init__(self, special: Callable[[Any], dict | None]):
        self.special = special
        self.tensors: list[Tensor] = []
        self.specs: list[Spec] = []
        self.raw: list[bytes] = []

    def value(self, thing: Any, depth: int = 0) -> Any:
        """In the form of JSON; its tensors are added to those that follow."""
        if depth > DEEPEST:
            return _other(thing)
        if (tag := self.special(thing)) is not None:
            return tag
        if isinstance(thing, Tensor):
            return self.tensor(thing)
        if isinstance(thing, np.ndarray | np.generic) and thing.dtype.kind in "biuf":
            return self.numpy(np.asarray(thing))
        if isinstance(thing, list | tuple | dict):
            return self._container(thing, depth + 1)
        return _plain(thing)

    def _container(self, thing: list | tuple | dict, depth: int) -> Any:
        if isinstance(thing, dict):
            pairs = [[self.value(one, depth) for one in pair] for pair in thing.items()]
            return {"t": "dict", "of": pairs}
        of = [self.value(one, depth) for one in thing]
        return of if isinstance(thing, list) else {"t": "tuple", "of": of}

    def tensor(self, thing: Tensor) -> dict:
        """A tensor's tag."""
        try:
            spec, raw = flat(thing)
        except (TypeError, RuntimeError):
            return _other(thing)
        self.tensors.append(thing)
        self.specs.append(spec)
        self.raw.append(raw)
        return {"t": "tensor", "i": len(self.specs) - 1}

    def numpy(self, thing: np.ndarray) -> dict:
        """An array's tag: it travels as a tensor."""
        try:
            tag = self.tensor(torch.from_numpy(np.array(thing)))
        except TypeError:
            return _other(thing)
        return tag | ({"t": "numpy"} if tag["t"] == "tensor" else {})

    def message(self, **more: Any) -> tuple[bytes, bytes]:
        """Head and blob of a message that says this, and brings the tensors so far."""
        return json.dumps({**more, "tensors": self.specs}).encode(), b"".join(self.raw)


def _plain(thing: Any) -> Any:
    """None, truth values, numbers and texts, without what a subclass of theirs may do."""
    if thing is None or isinstance(thing, bool):
        return thing
    if thing is ...:
        return {"t": "..."}
    own = {str: str.__str__, int: int.__int__, float: float.__float__}
    for kind, as_it_is in own.items():
        if isinstance(thing, kind):
            return as_it_is(thing)
    return _other(thing)


def _other(thing: Any) -> dict:
    return {"t": "other", "kind": type(thing).__name__[:80]}


def unpacked(form: Any, special: Callable[[dict], Any], found: list[Any], depth: int = 0) -> Any:
    """The value behind a form of JSON.

    Args:
        form: what `Packing.value` gave.
        special: gives the object behind a tag that only the judge knows.
        found: the tensors of the message.
        depth: how many lists this one stands in.

    Raises:
        Lost: it is no such form.
    """
    if depth > 2 * DEEPEST:
        raise Lost("an answer of too many lists in lists")
    if isinstance(form, list):
        return [unpacked(one, special, found, depth + 1) for one in form]
    if not isinstance(form, dict):
        return form
    try:
        return _tagged(form, special, found, depth + 1)
    except Lost:
        raise
    except Exception as error:  # whatever was sent instead
        raise Lost("an answer that cannot be read") from error


def _tagged(form: dict, special: Callable[[dict], Any], found: list[Any], depth: int) -> Any:
    kind = form["t"]
    if kind == "...":
        return ...
    if kind == "tensor":
        return found[form["i"]]
    if kind == "numpy":
        array = found[form["i"]].numpy()
        return array[()] if array.ndim == 0 else array
    if kind == "tuple":
        return tuple(unpacked(form["of"], special, found, depth))
    if kind == "dict":
        return dict(unpacked(pair, special, found, depth) for pair in form["of"])
    if kind == "other":
        return type(str(form["kind"]) or "object", (), {})()
    return special(form)
