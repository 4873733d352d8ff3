"""Masks: which key each query may attend to, and the softmax that keeps to it.

A mask is boolean and True means *may attend*, the convention of
`torch.nn.functional.scaled_dot_product_attention`. Its axes are, from the right, keys, queries, heads and
batch, and it broadcasts to (batch, heads, queries, keys), so its meaning depends on its shape alone. A query
with no permitted key gets zeros, and finite gradients. Nothing is changed in place. Taught in *Masks*.
"""

import math

import torch
from torch import Tensor

from course_utils import arguments


def padding_mask(valid_lens: Tensor, length: int) -> Tensor:
    """Mask that permits the first `valid_lens` keys, for each sequence or for each query.

    Args:
        valid_lens: whole numbers between 0 and `length`; (batch,) gives one length per sequence,
            (batch, queries) one per query. The values are checked on a CPU only, since elsewhere the
            check would wait for the device, and not under `torch.vmap` or while a graph is traced.
        length: number of keys after padding.

    Returns:
        Boolean mask, (batch, 1, 1, length) or (batch, 1, queries, length).

    Raises:
        TypeError: `valid_lens` is not an integer tensor.
        ValueError: `valid_lens` has another number of axes, or a length below 0 or above `length`.
    """
    _check_lengths(valid_lens, length)
    mask = torch.arange(length, device=valid_lens.device) < valid_lens.unsqueeze(-1)
    return mask[:, None, None, :] if valid_lens.ndim == 1 else mask[:, None, :, :]


def causal_mask(
    length: int, *, queries: int | None = None, device: torch.device | str | None = None
) -> Tensor:
    """Mask that permits position i the positions 0 … i.

    Args:
        length: number of positions, the keys.
        queries: number of queries, which are the last of the positions; all of them by default.
        device: where the mask is made.

    Returns:
        Boolean mask, (queries, length); for all positions its lower triangle is True.

    Raises:
        ValueError: `length` is negative, or smaller than `queries`.
    """
    if length < 0:
        raise ValueError(f"length={length}; a length is at least 0")
    queries = length if queries is None else queries
    if queries > length:
        raise ValueError(
            f"{queries} queries and only {length} keys; a causal mask takes the queries for the last "
            "of the keys"
        )
    return torch.ones(queries, length, dtype=torch.bool, device=device).tril(length - queries)


def masked_softmax(scores: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """Softmax over the keys (the last axis) that a mask permits; a row without any gives zeros.

    Args:
        scores: (…, queries, keys), floating point.
        attn_mask: boolean, True = may attend, broadcastable to `scores`. Scores without a head
            axis, (batch, queries, keys), take masks with a head axis of size 1 as well.

    Returns:
        Weights like `scores`. Each row sums to 1, or to 0 where no key is permitted. As in PyTorch, a row
        whose permitted scores are all −inf is NaN, so forbid keys by the mask and not by their scores.

    Raises:
        TypeError: the scores are no floating-point tensor, or the mask is not boolean.
        ValueError: the mask does not broadcast to the scores.
    """
    arguments.require_floating("scores", scores)
    if attn_mask is None:
        return scores.softmax(dim=-1)
    forbidden = ~fit_mask(attn_mask, scores.shape)
    empty = forbidden.all(dim=-1, keepdim=True)
    # The softmax of a row of −inf only is NaN, so an empty row is filled with zeros before the
    # softmax and cleared after it.
    filled = scores.masked_fill(forbidden, -math.inf).masked_fill(empty, 0.0)
    return filled.softmax(dim=-1).masked_fill(forbidden, 0.0)


def fit_mask(attn_mask: Tensor, shape: torch.Size) -> Tensor:
    """The mask, checked against the shape of the scores it belongs to.

    Args:
        attn_mask: boolean, True = may attend.
        shape: of the scores, (…, queries, keys).

    Returns:
        The mask; without its head axis of size 1 where the scores, (batch, queries, keys), have none.

    Raises:
        TypeError: the mask is not a boolean tensor.
        ValueError: it does not broadcast to the scores.
    """
    arguments.require_tensor("attn_mask", attn_mask)
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


def fit_mask_to_heads(attn_mask: Tensor, shape: torch.Size) -> Tensor:
    """`fit_mask` for scores (batch, heads, queries, keys): one axis, two or four, but not three.

    Raises:
        TypeError, ValueError: as in `fit_mask`, and where the mask has three axes, of which the first
            could be the batch's or the heads'.
    """
    if isinstance(attn_mask, Tensor) and attn_mask.ndim == 3:
        raise ValueError(
            f"attn_mask has shape {tuple(attn_mask.shape)}, which can be read in two ways: for "
            "(batch, queries, keys) write attn_mask[:, None], for (heads, queries, keys) "
            "attn_mask[None]"
        )
    return fit_mask(attn_mask, shape)


def _check_lengths(valid_lens: Tensor, length: int) -> None:
    """Raise unless these are whole numbers from 0 to `length`, (batch,) or (batch, queries)."""
    arguments.require_tensor("valid_lens", valid_lens)
    if valid_lens.is_floating_point() or valid_lens.is_complex() or valid_lens.dtype == torch.bool:
        raise TypeError(f"valid_lens has dtype {valid_lens.dtype}; an integer dtype is needed")
    if valid_lens.ndim not in (1, 2):
        raise ValueError(
            f"valid_lens has shape {tuple(valid_lens.shape)}; (batch,) or (batch, queries) is needed"
        )
    if valid_lens.numel() == 0 or not _has_values(valid_lens):
        return
    if valid_lens.min() < 0:
        raise ValueError(f"valid_lens contains {valid_lens.min()}; a length is at least 0")
    if valid_lens.max() > length:
        raise ValueError(
            f"valid_lens contains {valid_lens.max()}, longer than the sequence: length={length}"
        )


def _has_values(tensor: Tensor) -> bool:
    """Whether the tensor's values can be read here and now, without waiting for a device.

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
