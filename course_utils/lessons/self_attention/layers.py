"""Self-attention, convolution and recurrence as functions, and what they cost."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def self_attention(X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Tensor:
    """softmax(QKᵀ/√d) V: (…, n, M), (M, d), (M, d), (M, d_v) → (…, n, d_v)."""
    queries, keys, values = X @ W_Q, X @ W_K, X @ W_V
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    return scores.softmax(dim=-1) @ values


def convolution(x, kernel, dilation=1):
    """Word i reads i, i − dilation, …, k words in all: (n, d), (d, d, k) → (n, d)."""
    padded = F.pad(x.T, (dilation * (kernel.shape[-1] - 1), 0))  # zeros in front
    return F.conv1d(padded[None], kernel, dilation=dilation)[0].T


def recurrence(x, W_x, W_h):
    """h_t = tanh(x_t W_x + h_{t−1} W_h), one after the other: (n, d) → (n, d)."""
    states = [x.new_zeros(1, x.shape[1])]
    for inputs in (x @ W_x).split(1):
        states.append((inputs + states[-1] @ W_h).tanh())
    return torch.cat(states[1:])


def path(n, kernel, grow=1):
    """Layers of convolution until the last output depends on the first word."""
    x = start = torch.randn(n, len(kernel), requires_grad=True)
    for count in range(1, n):
        x = convolution(x, kernel, dilation=grow ** (count - 1))
        (slope,) = torch.autograd.grad(x[-1].sum(), start, retain_graph=True)
        if slope[0].any():
            return count


# How many matrix products wait for each other -----------------------------------------------------

PRODUCTS = {
    "MmBackward": 1, "BmmBackward": 1, "AddmmBackward": 1, "BaddbmmBackward": 1, "MvBackward": 1,
    "ConvolutionBackward": 1, "ScaledDotProduct": 2,
}  # fmt: skip
"""Matrix products in a node of autograd's graph, by the beginning of its name."""


def waiting_products(output: Tensor) -> int:
    """Matrix products that wait for each other: how many lie on the longest way from an input to `output`.

    This is read off the graph that autograd keeps, so an input or a weight has to require gradients.
    However many processors there are, these products can only be computed one after the other. A
    convolution is one product; PyTorch's fused attention is two (scores, mixing).

    Raises:
        ValueError: `output` was computed without gradients.
    """
    if output.grad_fn is None:
        raise ValueError("output has no graph; compute it from tensors that require gradients")
    longest: dict[Any, int] = {None: 0}
    todo: list[Any] = [output.grad_fn]
    while todo:
        node = todo[-1]
        parents = [parent for parent, _ in node.next_functions]
        missing = [parent for parent in parents if parent not in longest]
        if missing:
            todo += missing
            continue
        own = next((count for name, count in PRODUCTS.items() if node.name().startswith(name)), 0)
        longest[node] = own + max((longest[parent] for parent in parents), default=0)
        todo.pop()
    return longest[output.grad_fn]


def waits(model: nn.Module, length: int) -> tuple[int, int]:
    """Products that wait for each other: in training, and in translating with `start` and `step`.

    In translating each word is chosen from the logits of the step before. A choice has no gradient, so the
    next word's embedding is joined to those logits by hand, with a factor of zero.

    Args:
        model: a translator with dropout off; it is left as it was.
        length: number of source tokens and of target tokens.
    """
    source, lens = torch.full((1, length), 5), torch.tensor([length])
    training = waiting_products(model(source, lens, source))
    logits = [torch.zeros(())]
    embedding = model.target_embedding
    handle = embedding.register_forward_hook(lambda module, given, out: out + 0 * logits[-1].sum())
    try:
        state = model.start(source, lens)
        for _ in range(length):
            logits.append(model.step(source[:, 0], state))
    finally:
        handle.remove()
    return training, waiting_products(logits[-1])


def all_but_one(n: int, query: int, key: int) -> Tensor:
    """(n, n) mask, True where a query may look at a key: everywhere but once."""
    mask = torch.ones(n, n, dtype=torch.bool)
    mask[query, key] = False
    return mask
