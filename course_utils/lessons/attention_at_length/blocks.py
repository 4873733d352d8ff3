"""Causal attention of one head in three ways: with the whole matrix, block by block, and by PyTorch's operator.

Milakov and Gimelshein (2018) compute a softmax in one pass, Rabe and Staats (2021) attention without the matrix, and
Dao et al. (2022), "FlashAttention", Algorithm 1, both ways on a GPU. Taught in *Attention at length*.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


def scores_of(q: Tensor, k: Tensor, block: slice) -> Tensor:
    """Scores of all queries, (n, d), with the keys of a block: (n, block), −∞ where a key comes after the query."""
    at = torch.arange(len(q))
    scores = q @ k[block].T / math.sqrt(q.shape[1])
    return scores.masked_fill(at[:, None] < at[block], -math.inf)


def in_blocks(q: Tensor, k: Tensor, v: Tensor, size: int = 256) -> tuple[Tensor, Tensor]:
    """Answers (n, d_v) of a causal attention, and the log-sum-exp of each query's scores, (n, 1).

    It never has more than n · `size` scores. Gradients are PyTorch's, which keeps the weights of all blocks.
    """
    c = q.new_full((len(q), 1), -math.inf)
    s, y = torch.zeros_like(c), q.new_zeros(len(q), v.shape[1])
    for start in range(0, len(k), size):
        block = slice(start, start + size)
        scores = scores_of(q, k, block)
        old, c = c, torch.maximum(c, scores.amax(dim=1, keepdim=True))
        e, factor = (scores - c).exp(), (old - c).exp()
        s = s * factor + e.sum(dim=1, keepdim=True)
        y = y * factor + e @ v[block]
    return y / s, c + s.log()


class InBlocks(torch.autograd.Function):
    """`in_blocks` that keeps no weights for the way back, and computes them again."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, size: int) -> Tensor:
        """The answers, (n, d_v)."""
        answers, lse = in_blocks(q, k, v, size)
        ctx.save_for_backward(q, k, v, answers, lse)
        ctx.size = size
        return answers

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:  # type: ignore[override]
        """Gradients of q, k and v, a block at a time."""
        q, k, v, answers, lse = ctx.saved_tensors
        grad_q, grad_k, grad_v = (torch.zeros_like(each) for each in (q, k, v))
        mean = (grad * answers).sum(dim=1, keepdim=True)
        for start in range(0, len(k), ctx.size):
            block = slice(start, start + ctx.size)
            weights = (scores_of(q, k, block) - lse).exp()
            grad_v[block] = weights.T @ grad
            of_scores = weights * (grad @ v[block].T - mean) / math.sqrt(q.shape[1])
            grad_q += of_scores @ k[block]
            grad_k[block] = of_scores.T @ q
        return grad_q, grad_k, grad_v, None


def with_matrix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same answers from the whole matrix of weights, (n, n)."""
    return scores_of(q, k, slice(None)).softmax(dim=1) @ v


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same answers from PyTorch's operator."""
    q, k, v = (each[None, None] for each in (q, k, v))  # without these axes it computes the matrix
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)[0, 0]


def whole(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Softmax attention of all queries to all keys: (batch, n, d_v)."""
    return F.scaled_dot_product_attention(q, k, v)
