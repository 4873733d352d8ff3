"""Checks of arguments, with messages that name the argument, what arrived and what is needed.

Functions called `checked_…` return the value, so that it can be checked where it is used. *Scoring
functions* asks for some of these checks.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def require_tensor(name: str, value: object) -> Tensor:
    """The value; raise TypeError unless it is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} is a {type(value).__name__}; a torch.Tensor is needed")
    return value


def refuse_text(name: str, value: object, wanted: str) -> None:
    """Raise TypeError for a `str`, which would pass for a sequence of its letters."""
    if isinstance(value, str):
        raise TypeError(f"{name} is the str {value[:40]!r}; {wanted} is needed")


def require_floating(name: str, tensor: Tensor) -> None:
    """Raise TypeError unless the value is a floating-point tensor."""
    require_tensor(name, tensor)
    if not tensor.is_floating_point():
        raise TypeError(
            f"{name} has dtype {tensor.dtype}; a floating-point dtype is needed, "
            f"for instance {name}.float()"
        )


def checked_vectors(name: str, tensor: object, size: int) -> Tensor:
    """The tensor; raise TypeError or ValueError unless it holds vectors of this size, (…, length, size)."""
    if isinstance(tensor, Tensor) and tensor.ndim >= 2 and tensor.shape[-1] == size:
        return tensor
    shape = tuple(require_tensor(name, tensor).shape)
    raise ValueError(f"{name} has shape {shape}; (…, {name}, {size}) is needed")


def check_positive(**numbers: int) -> None:
    """Raise ValueError unless each size or count is at least 1."""
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name}={number}; at least 1 is needed")


def check_even(**sizes: int) -> None:
    """Raise ValueError unless each size is a positive, even number."""
    for name, size in sizes.items():
        if size < 1 or size % 2:
            raise ValueError(f"{name}={size}; a positive, even size is needed")


def check_divides(**sizes: int) -> None:
    """Raise ValueError unless the second of two sizes divides the first."""
    (name, size), (divisor_name, divisor) = sizes.items()
    if size < 1 or divisor < 1:
        raise ValueError(f"{name}={size}, {divisor_name}={divisor}; both are at least 1")
    if size % divisor:
        raise ValueError(f"{name}={size} is not divisible by {divisor_name}={divisor}")


def chosen(table: Mapping[str, Any], **argument: str) -> Any:
    """The entry of a table under a name, as in `chosen(NORMS, norm="layer")`.

    Raises:
        ValueError: the table has no such name; the message lists those it has.
    """
    ((name, key),) = argument.items()
    if key not in table:
        raise ValueError(f"{name}={key!r} is unknown; choose one of {', '.join(table)}")
    return table[key]


def checked_probability(name: str, value: float) -> float:
    """The value; raise ValueError unless it lies between 0 and 1."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name}={value}; a probability between 0 and 1 is needed")
    return value


def scores_shape(queries: Tensor, keys: Tensor) -> torch.Size:
    """Shape of the scores, (…, queries, keys), of (…, queries, dim) and (…, keys, dim).

    Raises:
        TypeError: queries or keys are not floating-point tensors of one dtype.
        ValueError: their shapes do not fit.
    """
    for name, tensor in (("queries", queries), ("keys", keys)):
        require_floating(name, tensor)
        if tensor.ndim < 2:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}; (…, {name}, dim) is needed")
    if queries.dtype != keys.dtype and not autocasts(queries):
        raise TypeError(f"queries are {queries.dtype}, keys {keys.dtype}; one dtype is needed")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"queries have {queries.shape[-1]} features, keys {keys.shape[-1]}; a dot product needs "
            "the same number (AdditiveAttention takes different ones)"
        )
    try:
        # Empty tensors are broadcast, since torch.broadcast_shapes would import sympy, which takes seconds.
        leading = torch.broadcast_tensors(queries[..., :0, :0], keys[..., :0, :0])[0].shape[:-2]
    except RuntimeError:
        raise ValueError(
            f"queries have shape {tuple(queries.shape)}, keys {tuple(keys.shape)}; "
            "the axes before the last two must agree"
        ) from None
    return torch.Size((*leading, queries.shape[-2], keys.shape[-2]))


def autocasts(tensor: Tensor) -> bool:
    """Whether autocast is on for the tensor's device, and gives products one dtype."""
    kind = tensor.device.type
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


def check_keys_values(keys: Tensor, values: Tensor) -> None:
    """Raise TypeError or ValueError unless each key has one value, of the same dtype."""
    require_floating("values", values)
    if values.dtype != keys.dtype and not autocasts(keys):
        raise TypeError(f"keys are {keys.dtype}, values {values.dtype}; one dtype is needed")
    if values.ndim < 2 or keys.shape[-2] != values.shape[-2]:
        raise ValueError(
            f"keys have shape {tuple(keys.shape)}, values {tuple(values.shape)}; "
            "each key needs one value"
        )
