"""PyTorch's fused operator for what it does not do itself: any mask, queries without keys, derivatives.

Taught in *Masks*, where it is held against products written out.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel


def attend(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None, *, is_causal: bool, **options: Any
) -> Tensor:
    """softmax(q kᵀ · scale) v, and zeros for a query with no permitted key, on which PyTorch's kernels differ.

    By the operator at every size: with products written out, on a CPU, a step took 4 % less for the 17 tokens
    of a ViT, as long for a Transformer 256 wide, and 4 % more for one 64 wide.

    Args:
        q, k, v: (…, queries, dim), (…, keys, dim) and (…, keys, value_dim).
        attn_mask: boolean, True = may attend, broadcastable to (…, queries, keys).
        is_causal: the queries are the last of the keys, and each attends up to its own place.
        options: the operator's `dropout_p`, `scale` and `enable_gqa`.

    Raises:
        ValueError: `is_causal` comes with fewer keys than queries.
        RuntimeError: later, from PyTorch, when a second derivative is asked for in backward mode.
    """
    if is_causal and q.shape[-2] != k.shape[-2]:
        # The operator's own flag would take the queries for the first of the keys.
        mask = look_back(q, k) if q.shape[-2] > 1 else None
        return _operator(q, k, v, attn_mask=mask, **options)
    if attn_mask is None:
        return _operator(q, k, v, is_causal=is_causal, **options)
    attn_mask = torch.atleast_2d(attn_mask)  # the operator takes no mask (keys,)
    looks = attn_mask.any(dim=-1, keepdim=True)
    averages = _operator(q, k, v, attn_mask=attn_mask | ~looks, **options)
    return averages * looks


def look_back(q: Tensor, k: Tensor) -> Tensor:
    """The mask that `is_causal` stands for, (queries, keys): the queries are the last of the keys."""
    queries, keys = q.shape[-2], k.shape[-2]
    if keys < queries:
        raise ValueError(f"is_causal=True with {queries} queries and only {keys} keys")
    return torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)


def _operator(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """PyTorch's operator; where its fused kernels have no derivative in forward mode, by products written out."""
    try:
        return F.scaled_dot_product_attention(q, k, v, **options)
    except NotImplementedError:  # as in torch.func.jvp
        with sdpa_kernel(SDPBackend.MATH):
            return F.scaled_dot_product_attention(q, k, v, **options)
