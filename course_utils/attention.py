"""Attention: masks, masked softmax, scoring functions, and several heads side by side.

A mask is boolean and True means *may attend*, the convention of
`torch.nn.functional.scaled_dot_product_attention`; masks broadcast to (batch, heads, queries, keys).
A query with no permitted key gets zeros, and finite gradients. Nothing is changed in place. Taught in
*Scoring functions* (scores), *Masks* and *Multi-head attention* (heads).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils import arguments, fused
from course_utils.cache import Attention, KVCache


def padding_mask(valid_lens: Tensor, length: int) -> Tensor:
    """Let each sequence, or each query, attend to its first `valid_lens` keys.

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
    arguments.check_lengths(valid_lens, length)
    mask = torch.arange(length, device=valid_lens.device) < valid_lens.unsqueeze(-1)
    return mask[:, None, None, :] if valid_lens.ndim == 1 else mask[:, None, :, :]


def causal_mask(length: int, *, device: torch.device | str | None = None) -> Tensor:
    """Let position i attend to positions 0 … i: boolean (length, length), lower triangle True.

    Raises:
        ValueError: `length` is negative.
    """
    if length < 0:
        raise ValueError(f"length={length}; a length is at least 0")
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


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
    forbidden = ~arguments.fit_mask(attn_mask, scores.shape)
    empty = forbidden.all(dim=-1, keepdim=True)
    # The softmax of a row of −inf only is NaN, so an empty row is filled with zeros before the
    # softmax and cleared after it.
    filled = scores.masked_fill(forbidden, -math.inf).masked_fill(empty, 0.0)
    return filled.softmax(dim=-1).masked_fill(forbidden, 0.0)


def dot_product_weights(
    queries: Tensor,
    keys: Tensor,
    attn_mask: Tensor | None = None,
    *,
    scale: float | None = None,
) -> Tensor:
    """Weights of scaled dot-product attention, softmax(q·k · scale), for looking at.

    Arguments and errors are those of `scaled_dot_product_attention`.

    Returns:
        (…, queries, keys).
    """
    arguments.scores_shape(queries, keys)
    scale = 1 / math.sqrt(queries.shape[-1]) if scale is None else scale
    return masked_softmax(queries @ keys.transpose(-2, -1) * scale, attn_mask)


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
    """Average the values with weights softmax(q·k / √dim), by PyTorch's fused operator.

    Vaswani et al. (2017), "Attention is all you need", section 3.2.1.

    Forward-mode derivatives work, and with them `torch.func.hessian`. For a second one in backward mode, as in a
    gradient penalty, compute the attention inside `with torch.nn.attention.sdpa_kernel(SDPBackend.MATH):`.

    Args:
        queries, keys, values: (…, queries, dim), (…, keys, dim) and (…, keys, value_dim), floating
            point and of one dtype.
        attn_mask: boolean, True = may attend, broadcastable to (…, queries, keys), such as (keys,).
            Inputs without a head axis take masks with a head axis of size 1 as well.
        is_causal: the queries are the last of the keys, and each attends up to its own place: what
            `causal_mask` does, sooner and with less memory. Instead of `attn_mask`.
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
        attn_mask = arguments.fit_mask(attn_mask, shape, is_causal=is_causal)
    options: dict[str, Any] = {"is_causal": is_causal, "dropout_p": dropout_p, "scale": scale}
    if queries.ndim == keys.ndim == values.ndim == 3:
        # Without a head axis PyTorch would fall back to a kernel that keeps all scores in memory.
        if attn_mask is not None and attn_mask.ndim == 3:
            attn_mask = attn_mask.unsqueeze(1)
        q, k, v = (tensor.unsqueeze(1) for tensor in (queries, keys, values))
        return fused.attend(q, k, v, attn_mask, **options).squeeze(1)
    return fused.attend(queries, keys, values, attn_mask, **options)


class AdditiveAttention(Attention):
    """Additive attention: a(q, k) = wᵀ tanh(W_q q + W_k k); queries and keys may differ in size.

    Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning to align and
    translate", section 3.1 and appendix A.1.2.

    The weight of `query_proj` is W_q, (hidden_dim, query_dim), that of `key_proj` W_k, (hidden_dim,
    key_dim), and that of `score_proj` wᵀ, (1, hidden_dim).

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
        """(…, queries, query_dim), (…, keys, key_dim) → (…, queries, keys).

        `projected_keys`: `key_proj(keys)`, where many queries that come one by one share it.
        """
        _check_size("queries", queries, self.query_proj.in_features)
        _check_size("keys", keys, self.key_proj.in_features)
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
        """(…, queries, query_dim), (…, keys, key_dim), (…, keys, value_dim) → (…, queries, value_dim).

        `start`, for `interventions`: position of the first query, where they come one by one.
        """
        arguments.check_keys_values(keys, values)
        scores = self.scores(queries, keys, projected_keys=projected_keys)
        weights = masked_softmax(scores, attn_mask)
        self.note(lambda: weights)
        return self.dropout(weights) @ values


def _check_size(name: str, tensor: Tensor | None, size: int) -> None:
    if not isinstance(tensor, Tensor) or tensor.ndim < 2 or tensor.shape[-1] != size:
        arguments.refuse_vectors(name, tensor, size)


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(batch, length, embed_dim) → (batch, heads, length, embed_dim / heads).

    Raises:
        ValueError: `num_heads` is not positive or does not divide the last axis.
    """
    if num_heads < 1 or x.shape[-1] % num_heads:
        raise ValueError(f"embed_dim={x.shape[-1]} is not divisible by num_heads={num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def _joining_pays(x: Tensor) -> bool:
    """A GPU takes longer to start three small products than to compute a large one; a CPU does not."""
    return not x.is_cpu


def _is_plain(layer: nn.Module) -> bool:
    """Whether this is a linear layer without hooks, which a product of our own would pass by."""
    hooked = (
        layer._forward_pre_hooks
        or layer._forward_hooks
        or layer._backward_pre_hooks
        or layer._backward_hooks
    )
    return type(layer) is nn.Linear and not hooked


def _can_be_joined(layers: Sequence[nn.Linear]) -> bool:
    """Whether one product can stand for these layers: all are plain, and all have a bias or none has."""
    return all(map(_is_plain, layers)) and len({layer.bias is None for layer in layers}) == 1


def _joined(layers: Sequence[nn.Linear], cache: KVCache | None) -> tuple[Tensor, Tensor | None]:
    """Weight and bias of linear layers one below the other."""
    if cache is not None and cache.joined is not None:
        return cache.joined
    weight = torch.cat([layer.weight for layer in layers])
    bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
    if cache is not None and not torch.is_grad_enabled():
        cache.joined = weight, bias
    return weight, bias


def merge_heads(x: Tensor) -> Tensor:
    """(batch, heads, length, head_dim) → (batch, length, heads · head_dim); undoes `split_heads`."""
    return x.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(Attention):
    """Several scaled dot-product attentions side by side, each on its own projection.

    For queries q, keys k and values v, the rows of matrices, with head_dim = embed_dim / num_heads:

        head_i = softmax((q W_Q,i) (k W_K,i)ᵀ / √head_dim) (v W_V,i)
        output = [head_0, …, head_(h−1)] W_O

    W_Q,i are columns i · head_dim … (i + 1) · head_dim − 1 of W_Q; W_K,i and W_V,i likewise, counted
    by head of keys and values. Vaswani et al. (2017), "Attention is all you need", section 3.2.2; equal
    to `torch.nn.MultiheadAttention` for equal weights. Derivatives: see `scaled_dot_product_attention`.

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
        """Let queries (batch, queries, embed_dim) attend to keys; give back the same shape.

        Args:
            queries: (batch, queries, embed_dim).
            keys: (batch, keys, key_dim). With a `cache`, those of the new tokens, which are
                appended; None where the cache holds them all (cross-attention while decoding).
            values: (batch, keys, value_dim), or None with the keys.
            attn_mask: boolean, True = may attend: (keys,), (queries, keys), or four axes that broadcast
                to (batch, heads, queries, keys).
            is_causal: as in `scaled_dot_product_attention`.
            cache: keys and values of earlier tokens.
            encode: what tells queries and new keys their positions after the projection, such as
                `positions.Rotation`: (batch, heads, length, head_dim) → the same shape.

        Raises:
            TypeError: an argument is no tensor, or the mask is not boolean.
            ValueError: a shape does not fit, or a mask can be read in two ways.
        """
        q, k, v = self.project(queries, keys, values, cache=cache, encode=encode)
        if attn_mask is not None:
            shape = torch.Size((*q.shape[:-1], k.shape[-2]))
            attn_mask = arguments.mask_for_heads(attn_mask, shape, is_causal=is_causal)
        return self.out_proj(merge_heads(self.attend(q, k, v, attn_mask, is_causal=is_causal)))

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None, *, is_causal: bool
    ) -> Tensor:
        """softmax(q kᵀ / √head_dim) v in each head: (batch, heads, queries, head_dim)."""
        group = self.num_heads // self.num_kv_heads

        def weights() -> Tensor:
            mask = fused.look_back(q, k) if is_causal else attn_mask
            return dot_product_weights(q, k.repeat_interleave(group, dim=1), mask)

        self.note(weights)
        dropout_p = self.dropout if self.training else 0.0
        options: dict[str, Any] = {"dropout_p": dropout_p, "enable_gqa": group > 1}
        return fused.attend(q, k, v, attn_mask, is_causal=is_causal, **options)

    def project(
        self,
        queries: Tensor,
        keys: Tensor | None,
        values: Tensor | None,
        *,
        cache: KVCache | None,
        encode: Callable[[Tensor], Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of each head, with their positions, and with those of the cache.

        (batch, heads, queries, head_dim), and twice (batch, num_kv_heads, keys, head_dim).
        """
        _check_size("queries", queries, self.query_proj.in_features)
        if cache is not None and keys is None and values is None:
            (q,) = self._heads(queries, self.query_proj)
            return q if encode is None else encode(q), cache.keys, cache.values
        _check_size("keys", keys, self.key_proj.in_features)
        _check_size("values", values, self.value_proj.in_features)
        if queries is keys is values:
            layers = (self.query_proj, self.key_proj, self.value_proj)
            q, k, v = self._heads(queries, *layers, cache=cache)
        else:
            (q,) = self._heads(queries, self.query_proj)
            if keys is values:
                k, v = self._heads(keys, self.key_proj, self.value_proj)
            else:
                (k,), (v,) = self._heads(keys, self.key_proj), self._heads(values, self.value_proj)
        if encode is not None:
            q, k = encode(q), encode(k)
        return q, *((k, v) if cache is None else cache.append(k, v))

    def _heads(self, x: Any, *layers: nn.Linear, cache: KVCache | None = None) -> list[Tensor]:
        """What each of these layers makes of the same x, in heads: (batch, heads, length, head_dim).

        On a GPU it is one product with their weights joined, which a `cache` keeps for the next token.
        """
        if len(layers) > 1 and _joining_pays(x) and _can_be_joined(layers):
            together = F.linear(x, *_joined(layers, cache)).unflatten(-1, (-1, self.head_dim))
            sizes = [layer.out_features // self.head_dim for layer in layers]
            parts = together.split(sizes, dim=-2)
        else:
            parts = [layer(x).unflatten(-1, (-1, self.head_dim)) for layer in layers]
        return [part.transpose(-3, -2) for part in parts]
