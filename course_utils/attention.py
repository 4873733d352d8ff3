"""Attention: scaled dot products, additive attention, and several heads side by side.

Vectors are the rows of matrices, masks those of `masks` (True = may attend). A query with no permitted key
gets zeros, and finite gradients. Taught in *Scoring functions* (scores), *Masks* and *Multi-head attention*.
"""

import contextlib
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_utils import arguments, fused
from course_utils.arguments import checked_vectors
from course_utils.cache import KVCache
from course_utils.masks import causal_mask, fit_mask, fit_mask_to_heads, masked_softmax
from course_utils.recording import Attention


def dot_product_weights(
    queries: Tensor,
    keys: Tensor,
    attn_mask: Tensor | None = None,
    *,
    scale: float | None = None,
) -> Tensor:
    """Weights of scaled dot-product attention, softmax(q·k · scale), to look at: (…, queries, keys).

    Arguments and errors are those of `scaled_dot_product_attention`, which computes no weights of its own. As there,
    half precision is computed in float32: scores above 65,504 do not fit float16, and bfloat16 rounds them to 3 digits.

    Returns:
        Weights in the dtype of the queries; zeros for a query with no permitted key.
    """
    arguments.scores_shape(queries, keys)
    scale = 1 / math.sqrt(queries.shape[-1]) if scale is None else scale
    precise = torch.promote_types(queries.dtype, torch.float32)
    autocasts, kind = arguments.autocasts(queries), queries.device.type
    with torch.autocast(kind, enabled=False) if autocasts else contextlib.nullcontext():
        scores = (queries.to(precise) * scale) @ keys.to(precise).transpose(-2, -1)
        return masked_softmax(scores, attn_mask).to(queries.dtype)


def scaled_dot_product_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    attn_mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    dropout_p: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """Averages of the values with weights softmax(q·k / √dim), by PyTorch's fused operator.

    Vaswani et al. (2017), "Attention is all you need", section 3.2.1.

    Forward-mode derivatives work, and with them `torch.func.hessian`. For a second one in backward mode, as in a
    gradient penalty, compute the attention inside `with torch.nn.attention.sdpa_kernel(SDPBackend.MATH):`.

    Args:
        queries, keys, values: (…, queries, dim), (…, keys, dim) and (…, keys, value_dim), floating
            point and of one dtype.
        attn_mask: boolean, True = may attend, broadcastable to (…, queries, keys), such as (keys,).
            Inputs without a head axis take masks with a head axis of size 1 as well.
        is_causal: mask with `causal_mask`, the queries being the last of the keys, but faster and with
            less memory; instead of `attn_mask`.
        dropout_p: probability with which a weight is dropped; give 0 outside training.
        scale: factor on the scores; 1/√dim by default.

    Returns:
        (…, queries, value_dim); zeros for a query with no permitted key.

    Raises:
        TypeError: an argument is no tensor, has another dtype than the rest, or the mask is not
            boolean.
        ValueError: queries and keys differ in dim, keys and values in number, the mask does not
            broadcast to the scores or comes with `is_causal`, that comes with fewer keys than queries,
            or `dropout_p` is not in [0, 1].
    """
    arguments.checked_probability("dropout_p", dropout_p)
    shape = arguments.scores_shape(queries, keys)
    arguments.check_keys_values(keys, values)
    if attn_mask is not None:
        attn_mask = fit_mask(attn_mask, shape)
    options: dict[str, Any] = {"is_causal": is_causal, "dropout_p": dropout_p, "scale": scale}
    if queries.ndim == keys.ndim == values.ndim == 3:
        # Without a head axis PyTorch would fall back to a kernel that keeps all scores in memory.
        if attn_mask is not None and attn_mask.ndim == 3:
            attn_mask = attn_mask.unsqueeze(1)
        q, k, v = (tensor.unsqueeze(1) for tensor in (queries, keys, values))
        return fused.sdpa(q, k, v, attn_mask, **options).squeeze(1)
    return fused.sdpa(queries, keys, values, attn_mask, **options)


class AdditiveAttention(Attention):
    """Additive attention: a(q, k) = wᵀ tanh(W_q q + W_k k); queries and keys may differ in size.

    Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning to align and
    translate", section 3.1 and appendix A.1.2.

    Attributes:
        query_proj: its weight is W_q, (hidden_dim, query_dim).
        key_proj: its weight is W_k, (hidden_dim, key_dim).
        score_proj: its weight is wᵀ, (1, hidden_dim).

    Args:
        query_dim, key_dim: sizes of a query and of a key.
        hidden_dim: size in which they are added.
        dropout: probability with which a weight is dropped in training.

    Raises:
        ValueError: a size is not positive, or `dropout` is not in [0, 1].
    """

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int, *, dropout: float = 0.0):
        super().__init__()
        arguments.check_positive(query_dim=query_dim, key_dim=key_dim, hidden_dim=hidden_dim)
        self.query_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.key_proj = nn.Linear(key_dim, hidden_dim, bias=False)
        self.score_proj = nn.Linear(hidden_dim, 1, bias=False)
        self.dropout = nn.Dropout(arguments.checked_probability("dropout", dropout))

    def scores(
        self, queries: Tensor, keys: Tensor, *, projected_keys: Tensor | None = None
    ) -> Tensor:
        """Scores a(q, k) of each query with each key.

        Args:
            queries: (…, queries, query_dim).
            keys: (…, keys, key_dim).
            projected_keys: `key_proj(keys)`, computed once for queries that come one by one.

        Returns:
            (…, queries, keys).

        Raises:
            TypeError: queries or keys are no tensors.
            ValueError: their last axes have other sizes.
        """
        checked_vectors("queries", queries, self.query_proj.in_features)
        checked_vectors("keys", keys, self.key_proj.in_features)
        projected_keys = self.key_proj(keys) if projected_keys is None else projected_keys
        # (…, queries, 1, hidden) + (…, 1, keys, hidden)
        added = self.query_proj(queries).unsqueeze(-2) + projected_keys.unsqueeze(-3)
        return self.score_proj(added.tanh()).squeeze(-1)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        attn_mask: Tensor | None = None,
        *,
        projected_keys: Tensor | None = None,
        start: int | None = None,
    ) -> Tensor:
        """Averages of the values, weighted by the softmax of the scores.

        Args:
            queries: (…, queries, query_dim).
            keys: (…, keys, key_dim).
            values: (…, keys, value_dim).
            attn_mask: boolean, True = may attend, broadcastable to (…, queries, keys).
            projected_keys: as in `scores`.
            start: position of the first query, where they come one by one; read by `interventions` only.

        Returns:
            (…, queries, value_dim); zeros for a query with no permitted key.

        Raises:
            TypeError, ValueError: as in `scores` and `masks.masked_softmax`, and when keys and values differ
                in number.
        """
        arguments.check_keys_values(keys, values)
        scores = self.scores(queries, keys, projected_keys=projected_keys)
        weights = masked_softmax(scores, attn_mask)
        self.record(lambda: weights)
        return self.dropout(weights) @ values


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Each vector cut into heads: (batch, length, embed_dim) → (batch, heads, length, embed_dim / heads).

    Raises:
        ValueError: `num_heads` is not positive or does not divide the last axis.
    """
    if num_heads < 1 or x.shape[-1] % num_heads:
        raise ValueError(f"embed_dim={x.shape[-1]} is not divisible by num_heads={num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """The heads side by side, (batch, heads, length, head_dim) → (batch, length, embed_dim); undoes `split_heads`."""
    return x.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(Attention):
    """Several scaled dot-product attentions side by side, each on its own projection.

    For queries q, keys k and values v, the rows of matrices, with head_dim = embed_dim / num_heads:

        head_i = softmax((q W_Q,i) (k W_K,i)ᵀ / √head_dim) (v W_V,i)
        output = [head_0, …, head_(h−1)] W_O

    W_Q,i are columns i · head_dim … (i + 1) · head_dim − 1 of W_Q; W_K,i and W_V,i likewise, counted
    by head of keys and values. For equal weights it equals `torch.nn.MultiheadAttention`. For its derivatives
    see `scaled_dot_product_attention`.

    Vaswani et al. (2017), "Attention is all you need", section 3.2.2.

    Attributes:
        query_proj: its weight is W_Q transposed, (embed_dim, embed_dim).
        key_proj, value_proj: W_K and W_V transposed, (num_kv_heads · head_dim, key_dim or value_dim).
        out_proj: W_O transposed, (embed_dim, embed_dim).

    Args:
        embed_dim: size of queries and output.
        num_heads: number of heads h; divides `embed_dim`.
        key_dim, value_dim: sizes of keys and values; `embed_dim` by default.
        dropout: probability with which a weight is dropped in training.
        bias: whether a bias is added after each of the four projections.
        num_kv_heads: number of heads of keys and values, each shared by a group of query heads
            (grouped-query attention; Ainslie et al., 2023); divides `num_heads`, its default.

    Raises:
        ValueError: a size is not positive, or does not divide what it should.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        num_kv_heads: int | None = None,
    ):
        super().__init__()
        arguments.check_divides(embed_dim=embed_dim, num_heads=num_heads)
        key_dim = embed_dim if key_dim is None else key_dim
        value_dim = embed_dim if value_dim is None else value_dim
        arguments.check_positive(key_dim=key_dim, value_dim=value_dim)
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        arguments.check_divides(num_heads=num_heads, num_kv_heads=self.num_kv_heads)
        self.dropout = arguments.checked_probability("dropout", dropout)
        self.head_dim = embed_dim // num_heads
        kv_size = self.num_kv_heads * self.head_dim
        self.query_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.key_proj = nn.Linear(key_dim, kv_size, bias=bias)
        self.value_proj = nn.Linear(value_dim, kv_size, bias=bias)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor | None,
        values: Tensor | None,
        attn_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: KVCache | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Output of the heads for each query, (batch, queries, embed_dim).

        Args:
            queries: (batch, queries, embed_dim).
            keys: (batch, keys, key_dim). With a `cache`, those of the new tokens, which are
                appended; None where the cache holds them all (cross-attention while decoding).
            values: (batch, keys, value_dim), or None with the keys.
            attn_mask: boolean, True = may attend: (keys,), (queries, keys), or four axes that broadcast
                to (batch, heads, queries, keys).
            is_causal: as in `scaled_dot_product_attention`.
            cache: keys and values of earlier tokens.
            encode: applied to projected queries and new keys to encode their positions, such as
                `positions.Rotation`: (batch, heads, length, head_dim) → the same shape.

        Raises:
            TypeError: an argument is no tensor, or the mask is not boolean.
            ValueError: a shape does not fit, a mask has three axes, or it comes with `is_causal`.
        """
        q, k, v = self.project(queries, keys, values, cache=cache, encode=encode)
        if attn_mask is not None:
            attn_mask = fit_mask_to_heads(attn_mask, torch.Size((*q.shape[:-1], k.shape[-2])))
        heads = self.attend(q, k, v, attn_mask, is_causal=is_causal)
        return self.out_proj(merge_heads(heads))

    def project(
        self,
        queries: Tensor,
        keys: Tensor | None,
        values: Tensor | None,
        *,
        cache: KVCache | None,
        encode: Callable[[Tensor], Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The projections q W_Q, k W_K and v W_V, split into heads; with a cache, of all tokens so far.

        Arguments as in `forward`.

        Returns:
            (batch, num_heads, queries, head_dim), and twice (batch, num_kv_heads, keys, head_dim).
        """
        queries = checked_vectors("queries", queries, self.query_proj.in_features)
        if cache is not None and keys is None and values is None:
            q = split_heads(self.query_proj(queries), self.num_heads)
            # In their dtype, since they may have been kept under autocast.
            return (
                q if encode is None else encode(q),
                cache.keys.to(q.dtype),
                cache.values.to(q.dtype),
            )
        keys = checked_vectors("keys", keys, self.key_proj.in_features)
        values = checked_vectors("values", values, self.value_proj.in_features)
        layers = [self.query_proj, self.key_proj, self.value_proj]
        q, k, v = fused.apply_linears([queries, keys, values], layers)
        q = split_heads(q, self.num_heads)
        k, v = split_heads(k, self.num_kv_heads), split_heads(v, self.num_kv_heads)
        if encode is not None:
            q, k = encode(q), encode(k)
        return q, *((k, v) if cache is None else cache.append(k, v))

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None, *, is_causal: bool
    ) -> Tensor:
        """softmax(q kᵀ / √head_dim) v in each head.

        Args:
            q: (batch, num_heads, queries, head_dim).
            k, v: (batch, num_kv_heads, keys, head_dim).
            attn_mask, is_causal: as in `scaled_dot_product_attention`.

        Returns:
            (batch, num_heads, queries, head_dim).
        """
        queries, keys, group = q.shape[-2], k.shape[-2], self.num_heads // self.num_kv_heads

        def weights() -> Tensor:
            mask = causal_mask(keys, queries=queries, device=q.device) if is_causal else attn_mask
            return dot_product_weights(q, k.repeat_interleave(group, dim=1), mask)

        self.record(weights)
        dropout_p = self.dropout if self.training else 0.0
        options: dict[str, Any] = {"dropout_p": dropout_p, "enable_gqa": group > 1}
        return fused.sdpa(q, k, v, attn_mask, is_causal=is_causal, **options)
