"""Self-attention as one function of four matrices, for readers whose own has not passed yet."""

import math

from torch import Tensor


def self_attention(X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Tensor:
    """softmax(QKᵀ/√d) V: (…, n, M), (M, d), (M, d), (M, d_v) → (…, n, d_v)."""
    queries, keys, values = X @ W_Q, X @ W_K, X @ W_V
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    return scores.softmax(dim=-1) @ values
