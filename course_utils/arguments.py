"""Checks of what attention is given, so that a mistake is named where it is made.

Each message names the argument, what it was, and what would be right. *Scoring functions* asks for the
same checks.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def require_tensor(name: str, value: object) -> None:
    """Raise TypeError unless the value is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} is a {type(value).__name__}; a torch.Tensor is needed")


def refuse_text(name: str, value: object, wanted: str) -> None:
    """Raise TypeError for a `str`, which Python would take for a list of its letters."""
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


def refuse_vectors(name: str, tensor: Any, size: int) -> None:
    """Say that this is no tensor (…, length, size)."""
    require_tensor(name, tensor)
    raise ValueError(f"{name} has shape {tuple(tensor.shape)}; (…, {name}, {size}) is needed")


def can_be_read(tensor: Tensor) -> bool:
    """Whether a check can read the tensor's values without waiting for a device.

    There are none to read while a graph is traced (`torch.compile`, `torch.export`), or under
    `torch.vmap`, where each sample has values of its own.
    """
    if torch.compiler.is_compiling() or not tensor.is_cpu:
        return False
    try:
        bool(tensor.any())
    except RuntimeError:
        return False
    return True


def check_lengths(valid_lens: Tensor, length: int) -> None:
    """Raise unless these are whole numbers from 0 to `length`, (batch,) or (batch, queries).

    The values are checked where they `can_be_read`.
    """
    require_tensor("valid_lens", valid_lens)
    if valid_lens.is_floating_point() or valid_lens.is_complex() or valid_lens.dtype == torch.bool:
        raise TypeError(f"valid_lens has dtype {valid_lens.dtype}; an integer dtype is needed")
    if valid_lens.ndim not in (1, 2):
        raise ValueError(
            f"valid_lens has shape {tuple(valid_lens.shape)}; (batch,) or (batch, queries) is needed"
        )
    if not can_be_read(valid_lens) or valid_lens.numel() == 0:
        return
    if valid_lens.min() < 0:
        raise ValueError(f"valid_lens contains {valid_lens.min()}; a length is at least 0")
    if valid_lens.max() > length:
        raise ValueError(
            f"valid_lens contains {valid_lens.max()}, longer than the sequence: length={length}"
        )


def check_positive(**numbers: int) -> None:
    """Raise ValueError unless each size or count is at least 1."""
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name}={number}; at least 1 is needed")


def check_divides(**sizes: int) -> None:
    """Raise ValueError unless the second of two sizes divides the first."""
    (name, size), (divisor_name, divisor) = sizes.items()
    if size < 1 or divisor < 1:
        raise ValueError(f"{name}={size}, {divisor_name}={divisor}; both are at least 1")
    if size % divisor:
        raise ValueError(f"{name}={size} is not divisible by {divisor_name}={divisor}")


def chosen(table: Mapping[str, Any], **argument: str) -> Any:
    """What a table has under the name that an argument gives; raise ValueError where it has none."""
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
    """Shape of q·k, (…, queries, keys); raise where the queries and keys do not fit."""
    for name, tensor in (("queries", queries), ("keys", keys)):
        require_floating(name, tensor)
        if tensor.ndim < 2:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}; (…, {name}, dim) is needed")
    if queries.dtype != keys.dtype and not _cast(queries):
        raise TypeError(f"queries are {queries.dtype}, keys {keys.dtype}; one dtype is needed")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"queries have {queries.shape[-1]} features, keys {keys.shape[-1]}; a dot product needs "
            "the same number (AdditiveAttention takes different ones)"
        )
    try:
        # Of tensors, here empty ones: torch.broadcast_shapes would load sympy, for seconds.
        leading = torch.broadcast_tensors(queries[..., :0, :0], keys[..., :0, :0])[0].shape[:-2]
    except RuntimeError:
        raise ValueError(
            f"queries have shape {tuple(queries.shape)}, keys {tuple(keys.shape)}; "
            "the axes before the last two must agree"
        ) from None
    return torch.Size((*leading, queries.shape[-2], keys.shape[-2]))


def _cast(tensor: Tensor) -> bool:
    """Whether autocast brings products on this device to one dtype."""
    kind = tensor.device.type
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


def check_keys_values(keys: Tensor, values: Tensor) -> None:
    """Raise unless each key has one value, of the same dtype."""
    require_floating("values", values)
    if values.dtype != keys.dtype and not _cast(keys):
        raise TypeError(f"keys are {keys.dtype}, values {values.dtype}; one dtype is needed")
    if values.ndim < 2 or keys.shape[-2] != values.shape[-2]:
        raise ValueError(
            f"keys have shape {tuple(keys.shape)}, values {tuple(values.shape)}; "
            "each key needs one value"
        )


def fit_mask(attn_mask: Tensor, shape: torch.Size, *, is_causal: bool = False) -> Tensor:
    """The mask for scores of this shape, without its head axis where the scores have none.

    Raises:
        TypeError: the mask is not a boolean tensor.
        ValueError: it does not broadcast to the scores, or comes together with `is_causal`.
    """
    if is_causal:
        raise ValueError(
            "attn_mask and is_causal=True are both given; one is needed "
            "(attn_mask & causal_mask(length) permits what both permit)"
        )
    require_tensor("attn_mask", attn_mask)
    if attn_mask.dtype != torch.bool:
        raise TypeError(
            f"attn_mask has dtype {attn_mask.dtype}; a boolean mask is needed, True = may attend"
        )
    mask = attn_mask
    if mask.ndim == 4 and len(shape) == 3 and mask.shape[1] == 1:
        mask = mask.squeeze(1)
    try:
        mask.expand(shape)
    except RuntimeError:
        per_sequence = len(shape) > 2 and mask.shape == (shape[0], shape[-1])
        hint = f"; for (batch, keys) write attn_mask[:{', None' * (len(shape) - 2)}]"
        raise ValueError(
            f"attn_mask has shape {tuple(attn_mask.shape)}, which does not broadcast to the "
            f"scores' shape {tuple(shape)}{hint if per_sequence else ''}"
        ) from None
    return mask


def mask_for_heads(attn_mask: Tensor, shape: torch.Size, *, is_causal: bool) -> Tensor:
    """`fit_mask` for several heads, which could read some masks in two ways.

    With two axes that is so where there are as many queries as rows in the batch, but for a causal mask.
    Which mask it is, is checked where it `can_be_read`.
    """
    if isinstance(attn_mask, Tensor) and attn_mask.ndim == 3:
        raise ValueError(
            f"attn_mask has shape {tuple(attn_mask.shape)}, which can be read in two ways: for "
            "(batch, queries, keys) write attn_mask[:, None], for (heads, queries, keys) "
            "attn_mask[None]"
        )
    mask = fit_mask(attn_mask, shape, is_causal=is_causal)
    if mask.ndim != 2 or torch.compiler.is_compiling():  # in a graph the batch may have any size
        return mask
    if shape[0] == len(mask) > 1 and can_be_read(mask) and not _looks_back(mask):
        raise ValueError(
            f"attn_mask has shape {tuple(mask.shape)}, which can be read in two ways, as there are as "
            "many queries as rows in the batch: for (queries, keys) write attn_mask[None, None], for "
            "(batch, keys) attn_mask[:, None, None]"
        )
    return mask


def _looks_back(mask: Tensor) -> bool:
    """Whether a mask (queries, keys) is causal, the queries being the last of the keys."""
    return torch.equal(mask, torch.ones_like(mask).tril(mask.shape[1] - mask.shape[0]))
