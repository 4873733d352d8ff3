"""Attention: masks, masked softmax, scoring functions, and a way to look at the weights.

A mask is boolean and True means *may attend*, the convention of
`torch.nn.functional.scaled_dot_product_attention`; masks broadcast to (batch, heads, queries, keys).
A query with no permitted key gets zeros, and finite gradients. Nothing is changed in place.
Above: `pooling`, where weights come from kernels. Below: `layers` and `models`. Taught in
*Scoring functions* (scores, masks) and *Multi-head attention* (heads).
"""

import contextlib
import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Masks ------------------------------------------------------------------------------------------


def padding_mask(valid_lens: Tensor, length: int) -> Tensor:
    """Let each sequence, or each query, attend to its first `valid_lens` keys.

    Args:
        valid_lens: whole numbers between 0 and `length`; (batch,) gives one length per sequence,
            (batch, queries) one per query.
        length: number of keys after padding.

    Returns:
        Boolean mask, (batch, 1, 1, length) or (batch, 1, queries, length).

    Raises:
        TypeError: `valid_lens` is not an integer tensor.
        ValueError: `valid_lens` has another number of axes, or a length below 0 or above `length`.
    """
    _require_tensor("valid_lens", valid_lens)
    if valid_lens.is_floating_point() or valid_lens.is_complex() or valid_lens.dtype == torch.bool:
        raise TypeError(f"valid_lens has dtype {valid_lens.dtype}; an integer dtype is needed")
    if valid_lens.ndim not in (1, 2):
        raise ValueError(
            f"valid_lens has shape {tuple(valid_lens.shape)}; (batch,) or (batch, queries) is needed"
        )
    if valid_lens.numel() and valid_lens.min() < 0:
        raise ValueError(f"valid_lens contains {valid_lens.min().item()}; a length is at least 0")
    if valid_lens.numel() and valid_lens.max() > length:
        raise ValueError(
            f"valid_lens contains {valid_lens.max().item()}, longer than the sequence: length={length}"
        )
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


# Weights ----------------------------------------------------------------------------------------


def masked_softmax(scores: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """Softmax over the keys (the last axis) that a mask permits; a row without any gives zeros.

    Args:
        scores: (…, queries, keys), floating point.
        attn_mask: boolean, True = may attend, broadcastable to `scores`. Scores without a head
            axis, (batch, queries, keys), take masks with a head axis of size 1 as well.

    Returns:
        Weights like `scores`. Each row sums to 1, or to 0 where no key is permitted.

    Raises:
        TypeError: an argument is not a tensor, the scores are not floating point, or the mask is
            not boolean.
        ValueError: the mask does not broadcast to the scores.
    """
    _require_floating("scores", scores)
    if attn_mask is None:
        return scores.softmax(dim=-1)
    forbidden = ~_fit_mask(attn_mask, scores.shape)
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

    Args:
        queries: (…, queries, dim).
        keys: (…, keys, dim).
        attn_mask: boolean, True = may attend, broadcastable to (…, queries, keys).
        scale: factor on the scores; 1/√dim by default.

    Returns:
        (…, queries, keys).

    Raises:
        TypeError, ValueError: as in `scaled_dot_product_attention`.
    """
    _check_queries_keys(queries, keys)
    scale = 1 / math.sqrt(queries.shape[-1]) if scale is None else scale
    return masked_softmax(queries @ keys.transpose(-2, -1) * scale, attn_mask)


def scaled_dot_product_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    attn_mask: Tensor | None = None,
    *,
    dropout_p: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """Average the values with weights softmax(q·k / √dim), by PyTorch's fused operator.

    Vaswani et al. (2017), "Attention is all you need", section 3.2.1.

    Args:
        queries: (…, queries, dim), floating point.
        keys: (…, keys, dim).
        values: (…, keys, value_dim).
        attn_mask: boolean, True = may attend, broadcastable to (…, queries, keys). Inputs without
            a head axis take masks with a head axis of size 1 as well.
        dropout_p: probability with which a weight is dropped; give 0 outside training.
        scale: factor on the scores; 1/√dim by default.

    Returns:
        (…, queries, value_dim); zeros for a query with no permitted key.

    Raises:
        TypeError: an argument is not a tensor, is not floating point or of another dtype than the
            rest, or the mask is not boolean.
        ValueError: queries and keys differ in dim, keys and values in number, or the mask does not
            broadcast to the scores.
    """
    _check_queries_keys(queries, keys)
    _check_keys_values(keys, values)
    if attn_mask is not None:
        attn_mask = _fit_mask(attn_mask, _scores_shape(queries, keys))
    options = {"dropout_p": dropout_p, "scale": scale}
    if queries.ndim == keys.ndim == values.ndim == 3:
        # Without a head axis PyTorch would fall back to a kernel that keeps all scores in memory.
        queries, keys, values = (tensor.unsqueeze(1) for tensor in (queries, keys, values))
        if attn_mask is not None and attn_mask.ndim == 3:
            attn_mask = attn_mask.unsqueeze(1)
        return F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=attn_mask, **options
        ).squeeze(1)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=attn_mask, **options)


# Modules that can be looked into ----------------------------------------------------------------


class Attention(nn.Module):
    """Base of the attention modules: knows how to hand its weights to `record_attention`."""

    _record = None

    def note(self, weights) -> None:
        """Call `weights()` and pass the result on, but only while somebody looks."""
        if self._record is not None:
            with torch.no_grad():
                self._record(weights().detach())


@contextlib.contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the attention weights of every module inside `model` while the block runs.

    The weights are computed only inside the block: before dropout, detached, (batch, heads,
    queries, keys) for multi-head and (batch, queries, keys) for single modules, keyed by the
    module's name in `model`. A module that is called again replaces what it left before.

        with record_attention(model) as maps:
            model(tokens)
        maps["encoder.layers.0.attention"]

    Raises:
        ValueError: `model` contains no attention module of ours.
    """
    modules = {
        name: module for name, module in model.named_modules() if isinstance(module, Attention)
    }
    if not modules:
        raise ValueError(f"{type(model).__name__} contains no course_utils attention module")
    maps: dict[str, Tensor] = {}
    outer = {name: module._record for name, module in modules.items()}
    try:
        for name, module in modules.items():
            module._record = _keeper(maps, name)
        yield maps
    finally:
        for name, module in modules.items():
            module._record = outer[name]


def _keeper(maps: dict[str, Tensor], name: str):
    def keep(weights: Tensor) -> None:
        maps[name] = weights

    return keep


class DotProductAttention(Attention):
    """Scaled dot-product attention as a module, softmax(q·k / √dim) over the keys.

    Args:
        dropout: probability with which a weight is dropped in training.
    """

    def __init__(self, *, dropout: float = 0.0):
        super().__init__()
        self.dropout = _probability("dropout", dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, attn_mask: Tensor | None = None
    ) -> Tensor:
        """(…, queries, dim), (…, keys, dim), (…, keys, value_dim) → (…, queries, value_dim)."""
        self.note(lambda: dot_product_weights(queries, keys, attn_mask))
        dropout_p = self.dropout if self.training else 0.0
        return scaled_dot_product_attention(queries, keys, values, attn_mask, dropout_p=dropout_p)


class AdditiveAttention(Attention):
    """Additive attention: a(q, k) = wᵀ tanh(W_q q + W_k k); queries and keys may differ in size.

    Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning to align and
    translate", section 3.1 and appendix A.1.2.

    Args:
        query_dim, key_dim: sizes of a query and of a key.
        hidden_dim: size in which they are added.
        dropout: probability with which a weight is dropped in training.

    Raises:
        ValueError: a size is not positive, or `dropout` is not in [0, 1].
    """

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int, *, dropout: float = 0.0):
        super().__init__()
        for name, size in (
            ("query_dim", query_dim),
            ("key_dim", key_dim),
            ("hidden_dim", hidden_dim),
        ):
            if size <= 0:
                raise ValueError(f"{name}={size}; a size is at least 1")
        self.query_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.key_proj = nn.Linear(key_dim, hidden_dim, bias=False)
        self.score_proj = nn.Linear(hidden_dim, 1, bias=False)
        self.dropout = nn.Dropout(_probability("dropout", dropout))

    def scores(
        self, queries: Tensor, keys: Tensor, *, projected_keys: Tensor | None = None
    ) -> Tensor:
        """(…, queries, query_dim), (…, keys, key_dim) → (…, queries, keys).

        Args:
            queries, keys: what is compared.
            projected_keys: W_k k for these keys, (…, keys, hidden_dim), where they were projected
                before: once for many queries that come one after the other.
        """
        _check_size("queries", queries, self.query_proj.in_features)
        _check_size("keys", keys, self.key_proj.in_features)
        projected_keys = self.key_proj(keys) if projected_keys is None else projected_keys
        # (…, queries, 1, hidden) + (…, 1, keys, hidden)
        added = self.query_proj(queries).unsqueeze(-2) + projected_keys.unsqueeze(-3)
        return self.score_proj(added.tanh()).squeeze(-1)

    def weights(
        self,
        queries: Tensor,
        keys: Tensor,
        attn_mask: Tensor | None = None,
        *,
        projected_keys: Tensor | None = None,
    ) -> Tensor:
        """Softmax of the `scores` over the permitted keys: (…, queries, keys)."""
        return masked_softmax(self.scores(queries, keys, projected_keys=projected_keys), attn_mask)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        attn_mask: Tensor | None = None,
        *,
        projected_keys: Tensor | None = None,
    ) -> Tensor:
        """(…, queries, query_dim), (…, keys, key_dim), (…, keys, value_dim) → (…, queries, value_dim)."""
        _check_keys_values(keys, values)
        weights = self.weights(queries, keys, attn_mask, projected_keys=projected_keys)
        self.note(lambda: weights)
        return self.dropout(weights) @ values


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(batch, length, embed_dim) → (batch, heads, length, embed_dim / heads).

    Raises:
        ValueError: `num_heads` is not positive or does not divide the last axis.
    """
    _check_divides(x.shape[-1], num_heads)
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """(batch, heads, length, head_dim) → (batch, length, heads · head_dim); undoes `split_heads`."""
    return x.transpose(-3, -2).flatten(-2)


class KVCache:
    """Keys and values of one attention module, kept between decoding steps.

    Self-attention appends the newest token's and reads all so far; cross-attention fills the cache
    once and only reads it afterwards. Storage grows by doubling, so a step costs the same at every
    length but for the attention itself.
    """

    def __init__(self):
        self.length = 0
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    @property
    def keys(self) -> Tensor:
        """(batch, heads, length, head_dim)."""
        return self._keys[..., : self.length, :]

    @property
    def values(self) -> Tensor:
        """(batch, heads, length, head_dim)."""
        return self._values[..., : self.length, :]

    def append(self, keys: Tensor, values: Tensor) -> None:
        """Add (batch, heads, new, head_dim) behind what is there."""
        end = self.length + keys.shape[-2]
        self._keys = self._with_room(self._keys, end, keys)
        self._values = self._with_room(self._values, end, values)
        self._keys[..., self.length : end, :] = keys
        self._values[..., self.length : end, :] = values
        self.length = end

    def repeat(self, times: int) -> None:
        """Keep each row of the batch `times` times, side by side, as a beam search begins."""
        if self._keys is not None:
            self._keys = self._keys.repeat_interleave(times, dim=0)
            self._values = self._values.repeat_interleave(times, dim=0)

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order: (new batch,), as beam search needs it."""
        if self._keys is not None:
            self._keys, self._values = self._keys[rows], self._values[rows]

    def _with_room(self, storage: Tensor | None, end: int, like: Tensor) -> Tensor:
        if storage is not None and storage.shape[-2] >= end:
            return storage
        grown = like.new_empty(*like.shape[:-2], max(16, 2 * end), like.shape[-1])
        if storage is not None:
            grown[..., : self.length, :] = storage[..., : self.length, :]
        return grown


class MultiHeadAttention(Attention):
    """Several scaled dot-product attentions side by side, each on its own projection.

    Vaswani et al. (2017), section 3.2.2; equal to `torch.nn.MultiheadAttention` for equal weights.

    Args:
        embed_dim: size of queries, keys, values and output.
        num_heads: number of heads; divides `embed_dim`.
        dropout: probability with which a weight is dropped in training.
        bias: whether the four projections have a bias.
        num_kv_heads: number of heads of keys and values, each shared by a group of query heads
            (grouped-query attention; Ainslie et al., 2023); divides `num_heads`, its default.
        encode: what tells queries and keys their positions after the projection, called as
            `encode(heads, start=position of the first)`: `positions.rotate`, or None.

    Raises:
        ValueError: `num_heads` does not divide `embed_dim`, `num_kv_heads` does not divide
            `num_heads`, or a size is not positive.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        dropout: float = 0.0,
        bias: bool = True,
        num_kv_heads: int | None = None,
        encode: Callable[..., Tensor] | None = None,
    ):
        super().__init__()
        _check_divides(embed_dim, num_heads)
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if self.num_kv_heads < 1 or num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads={num_heads} is not divisible by num_kv_heads={num_kv_heads}"
            )
        self.encode = encode
        self.dropout = _probability("dropout", dropout)
        kv_dim = embed_dim // num_heads * self.num_kv_heads
        self.query_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.key_proj = nn.Linear(embed_dim, kv_dim, bias=bias)
        self.value_proj = nn.Linear(embed_dim, kv_dim, bias=bias)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        attn_mask: Tensor | None = None,
        *,
        cache: KVCache | None = None,
    ) -> Tensor:
        """(batch, queries, embed_dim), (batch, keys, embed_dim) twice → (batch, queries, embed_dim).

        With a `cache`, keys and values are those of the new tokens; they are appended, and the
        queries look at all so far.
        """
        embed_dim = self.query_proj.in_features
        for name, tensor in (("queries", queries), ("keys", keys), ("values", values)):
            _check_size(name, tensor, embed_dim)
        start = cache.length if cache is not None else 0
        q = self._placed(split_heads(self.query_proj(queries), self.num_heads), start)
        k = self._placed(split_heads(self.key_proj(keys), self.num_kv_heads), start)
        v = split_heads(self.value_proj(values), self.num_kv_heads)
        if cache is not None:
            cache.append(k, v)
            k, v = cache.keys, cache.values
        return self._attend(q, k, v, attn_mask)

    def look_up(self, queries: Tensor, cache: KVCache, attn_mask: Tensor | None = None) -> Tensor:
        """Attend to what the cache holds and add nothing to it: cross-attention while decoding."""
        _check_size("queries", queries, self.query_proj.in_features)
        q = self._placed(split_heads(self.query_proj(queries), self.num_heads), 0)
        return self._attend(q, cache.keys, cache.values, attn_mask)

    def _placed(self, heads: Tensor, start: int) -> Tensor:
        return heads if self.encode is None else self.encode(heads, start=start)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None) -> Tensor:
        if self.num_kv_heads < self.num_heads:
            k, v = (x.repeat_interleave(self.num_heads // self.num_kv_heads, dim=1) for x in (k, v))
        self.note(lambda: dot_product_weights(q, k, attn_mask))
        dropout_p = self.dropout if self.training else 0.0
        heads = scaled_dot_product_attention(q, k, v, attn_mask, dropout_p=dropout_p)
        return self.out_proj(merge_heads(heads))


# Arguments --------------------------------------------------------------------------------------


def _require_tensor(name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} is a {type(value).__name__}; a torch.Tensor is needed")


def _require_floating(name: str, tensor: Tensor) -> None:
    _require_tensor(name, tensor)
    if not tensor.is_floating_point():
        raise TypeError(
            f"{name} has dtype {tensor.dtype}; a floating-point dtype is needed, "
            f"for instance {name}.float()"
        )


def _check_size(name: str, tensor: Tensor, size: int) -> None:
    _require_floating(name, tensor)
    if tensor.ndim < 2 or tensor.shape[-1] != size:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; (…, {name}, {size}) is needed")


def _check_queries_keys(queries: Tensor, keys: Tensor) -> None:
    for name, tensor in (("queries", queries), ("keys", keys)):
        _require_floating(name, tensor)
        if tensor.ndim < 2:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}; (…, {name}, dim) is needed")
    if queries.dtype != keys.dtype:
        raise TypeError(f"queries are {queries.dtype}, keys {keys.dtype}; one dtype is needed")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"queries have {queries.shape[-1]} features, keys {keys.shape[-1]}; a dot product needs "
            "the same number (AdditiveAttention takes different ones)"
        )
    _scores_shape(queries, keys)


def _check_keys_values(keys: Tensor, values: Tensor) -> None:
    _require_floating("values", values)
    if values.dtype != keys.dtype:
        raise TypeError(f"keys are {keys.dtype}, values {values.dtype}; one dtype is needed")
    if values.ndim < 2 or keys.shape[-2] != values.shape[-2]:
        raise ValueError(
            f"keys have shape {tuple(keys.shape)}, values {tuple(values.shape)}; "
            "each key needs one value"
        )


def _scores_shape(queries: Tensor, keys: Tensor) -> torch.Size:
    """Shape of q·k for these queries and keys: (…, queries, keys)."""
    try:
        leading = torch.broadcast_shapes(queries.shape[:-2], keys.shape[:-2])
    except RuntimeError:
        raise ValueError(
            f"queries have shape {tuple(queries.shape)}, keys {tuple(keys.shape)}; "
            "the axes before the last two must agree"
        ) from None
    return leading + (queries.shape[-2], keys.shape[-2])


def _fit_mask(attn_mask: Tensor, shape: torch.Size) -> Tensor:
    """The mask, without its head axis where the scores have none, after checking that it fits."""
    _require_tensor("attn_mask", attn_mask)
    if attn_mask.dtype != torch.bool:
        raise TypeError(
            f"attn_mask has dtype {attn_mask.dtype}; a boolean mask is needed, True = may attend"
        )
    mask = attn_mask
    if mask.ndim == 4 and len(shape) == 3 and mask.shape[1] == 1:
        mask = mask.squeeze(1)
    try:
        fits = torch.broadcast_shapes(mask.shape, shape) == shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"attn_mask has shape {tuple(attn_mask.shape)}, which does not broadcast to the "
            f"scores' shape {tuple(shape)}"
        )
    return mask


def _check_divides(embed_dim: int, num_heads: int) -> None:
    if num_heads < 1 or embed_dim < 1:
        raise ValueError(f"embed_dim={embed_dim}, num_heads={num_heads}; both are at least 1")
    if embed_dim % num_heads:
        raise ValueError(f"embed_dim={embed_dim} is not divisible by num_heads={num_heads}")


def _probability(name: str, value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name}={value}; a probability between 0 and 1 is needed")
    return value
