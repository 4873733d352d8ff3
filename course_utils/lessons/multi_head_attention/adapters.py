"""Layers as functions of their weights, so that `cu.equal` compares the gradients of the weights as well.

*Multi-head attention* holds its loop, its class and PyTorch's layer against each other with them.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call

ROLES = ("query", "key", "value", "out")


def as_functions(
    loop: Callable, mine: nn.Module, torchs: nn.MultiheadAttention
) -> tuple[Callable, Callable, Callable]:
    """Three functions of the same arguments: the chapter's loop, its class, and PyTorch's layer.

    Args:
        loop: called as `loop(q, k, v, W_Q, W_K, W_V, W_O, mask)`, with lists of (embed_dim, head_dim).
        mine: with the linear layers `query_proj`, `key_proj`, `value_proj`, `out_proj`.
        torchs: of the same sizes, with `batch_first=True`.

    Returns:
        Functions of queries, keys and values, (batch, n, embed_dim), of W, (4, embed_dim, embed_dim), and of a mask,
        True where a query may attend; the last two also of biases b, (4, embed_dim). W holds W_Q, W_K, W_V and W_O,
        which rows are multiplied by.
    """
    num_heads, embed_dim = torchs.num_heads, torchs.embed_dim

    def by_loop(q: Tensor, k: Tensor, v: Tensor, W: Tensor, mask: Tensor) -> Tensor:
        in_heads = (w.chunk(num_heads, dim=1) for w in W[:3])
        return loop(q, k, v, *in_heads, W[3], mask)

    def by_class(
        q: Tensor, k: Tensor, v: Tensor, W: Tensor, mask: Tensor, b: Tensor | None = None
    ) -> Tensor:
        b = torch.zeros(4, embed_dim) if b is None else b
        names = {f"{role}_proj.weight": w.T for role, w in zip(ROLES, W, strict=True)}
        names |= {f"{role}_proj.bias": bias for role, bias in zip(ROLES, b, strict=True)}
        return functional_call(mine, names, (q, k, v, mask))

    def by_torch(
        q: Tensor, k: Tensor, v: Tensor, W: Tensor, mask: Tensor, b: Tensor
    ) -> Tensor:  # W_Q, W_K, W_V are one table there, and True forbids
        names = {"in_proj_weight": W[:3].mT.flatten(0, 1), "out_proj.weight": W[3].T}
        names |= {"in_proj_bias": b[:3].flatten(), "out_proj.bias": b[3]}
        forbidden = ~mask.expand(len(q), num_heads, q.shape[1], k.shape[1]).flatten(0, 1)
        return functional_call(torchs, names, (q, k, v), {"attn_mask": forbidden})[0]

    by_loop.__name__ = loop.__name__  # as `cu.equal` says it
    by_loop.__module__ = by_class.__module__ = loop.__module__
    by_torch.__module__ = nn.__name__
    return by_loop, by_class, by_torch
