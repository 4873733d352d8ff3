"""Self-attention, causal convolution and recurrence as functions of their weights, and a mask.

*Self-attention* uses the first and the mask; its further page compares all three layers, and so does the run
`milliseconds`.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def self_attention(X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Tensor:
    """softmax(QKᵀ/√d) V: (…, n, M), (M, d), (M, d), (M, d_v) → (…, n, d_v)."""
    queries, keys, values = X @ W_Q, X @ W_K, X @ W_V
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    return scores.softmax(dim=-1) @ values


def convolution(x: Tensor, kernel: Tensor, dilation: int = 1) -> Tensor:
    """Causal convolution: word i reads i, i − dilation, …, k words in all: (n, d), (d, d, k) → (n, d)."""
    padded = F.pad(x.T, (dilation * (kernel.shape[-1] - 1), 0))  # zeros in front
    return F.conv1d(padded[None], kernel, dilation=dilation)[0].T


def recurrence(x: Tensor, W_x: Tensor, W_h: Tensor) -> Tensor:
    """Hidden states h_t = tanh(x_t W_x + h_{t−1} W_h), one after the other: (n, d), (d, d), (d, d) → (n, d)."""
    states = [x.new_zeros(1, x.shape[1])]
    for inputs in (x @ W_x).split(1):
        states.append((inputs + states[-1] @ W_h).tanh())
    return torch.cat(states[1:])


def path(n: int, kernel: Tensor, grow: int = 1) -> int | None:
    """Number of layers of `convolution` after which the last of n outputs depends on the first word.

    Args:
        n: number of words, at least 2.
        kernel: (d, d, k), the same in all layers.
        grow: the factor by which the dilation grows from layer to layer.

    Returns:
        The number; None if n − 1 layers are not enough.
    """
    x = start = torch.randn(n, len(kernel), requires_grad=True)
    for count in range(1, n):
        x = convolution(x, kernel, dilation=grow ** (count - 1))
        (slope,) = torch.autograd.grad(x[-1].sum(), start, retain_graph=True)
        if slope[0].any():
            return count
    return None


def all_but_one(n: int, query: int, key: int) -> Tensor:
    """(n, n) mask, True where a query may attend to a key: everywhere but at one entry."""
    mask = torch.ones(n, n, dtype=torch.bool)
    mask[query, key] = False
    return mask
