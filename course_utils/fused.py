"""Attention at PyTorch's own speed: its fused operator for any mask, and projections as one product.

Both compute what a few plain lines would, which their docstrings give. Taught in *Masks*, where the operator is
compared with products written out.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_utils.masks import causal_mask


def sdpa(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None, *, is_causal: bool, **options: Any
) -> Tensor:
    """softmax(q kᵀ · scale) v, and zeros for a query with no permitted key, where PyTorch's kernels differ.

    Args:
        q, k, v: (…, queries, dim), (…, keys, dim) and (…, keys, value_dim).
        attn_mask: boolean, True = may attend, broadcastable to (…, queries, keys).
        is_causal: the mask is `causal_mask`, the queries being the last of the keys; instead of `attn_mask`.
        options: the operator's `dropout_p`, `scale` and `enable_gqa`.

    Returns:
        (…, queries, value_dim).

    Raises:
        ValueError: `is_causal` comes with a mask, or with fewer keys than queries.
        RuntimeError: later, from PyTorch, when a second derivative is asked for in backward mode.
    """
    if is_causal and attn_mask is not None:
        raise ValueError(
            "attn_mask and is_causal=True are both given; one is needed "
            "(attn_mask & causal_mask(length) permits what both permit)"
        )
    queries, keys = q.shape[-2], k.shape[-2]
    if is_causal and queries != keys:
        # The operator's own flag would take the queries for the first of the keys.
        mask = causal_mask(keys, queries=queries, device=q.device) if queries > 1 else None
        return _operator(q, k, v, attn_mask=mask, **options)
    if attn_mask is None:
        return _operator(q, k, v, is_causal=is_causal, **options)
    attn_mask = torch.atleast_2d(attn_mask)  # the operator takes no mask (keys,)
    any_key = attn_mask.any(dim=-1, keepdim=True)
    averages = _operator(q, k, v, attn_mask=attn_mask | ~any_key, **options)
    return averages * any_key


def _operator(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """PyTorch's operator; where its fused kernels have no forward-mode derivative, its plain one."""
    try:
        return F.scaled_dot_product_attention(q, k, v, **options)
    except NotImplementedError:  # as in torch.func.jvp
        with sdpa_kernel(SDPBackend.MATH):
            return F.scaled_dot_product_attention(q, k, v, **options)


def apply_linears(inputs: Sequence[Tensor], layers: Sequence[nn.Module]) -> list[Tensor]:
    """Each layer applied to its input: `[layer(x) for x, layer in zip(inputs, layers)]`.

    A GPU takes longer to start three small products than to compute a large one. There, and while gradients
    are recorded, neighbors that read the same tensor are one product with their weights joined, if they are
    `nn.Linear` and have no hooks, which such a product would not call.

    Args:
        inputs: one for each layer, (…, in_features).
        layers: linear layers, or what has taken their place.

    Returns:
        One output for each layer, (…, out_features).
    """
    if not _joining_pays(inputs[0]):
        return [layer(x) for x, layer in zip(inputs, layers, strict=True)]
    groups: list[tuple[Tensor, list[nn.Module]]] = []
    for x, layer in zip(inputs, layers, strict=True):
        if groups and groups[-1][0] is x:
            groups[-1][1].append(layer)
        else:
            groups.append((x, [layer]))
    outputs: list[Tensor] = []
    for x, readers in groups:
        joins = len(readers) > 1 and _can_be_joined(readers)
        outputs += _joined(x, readers) if joins else [layer(x) for layer in readers]
    return outputs


def _joining_pays(x: Tensor) -> bool:
    """Whether one large product is faster: on a GPU, where the joined weights serve a whole batch."""
    return not x.is_cpu and torch.is_grad_enabled()


def _can_be_joined(layers: Iterable[nn.Module]) -> bool:
    """Whether the layers are plain `nn.Linear` without hooks, and all have a bias or none has."""
    for layer in layers:
        hooks = (
            layer._forward_pre_hooks,
            layer._forward_hooks,
            layer._backward_pre_hooks,
            layer._backward_hooks,
        )
        if type(layer) is not nn.Linear or any(hooks):
            return False
    return len({layer.bias is None for layer in layers}) == 1


def _joined(x: Tensor, layers: Sequence[Any]) -> Sequence[Tensor]:
    """What the layers make of the same x, by one product with their weights one below the other."""
    weight = torch.cat([layer.weight for layer in layers])
    bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
    return F.linear(x, weight, bias).split([layer.out_features for layer in layers], dim=-1)
