"""The Transformer for translation: encoder, decoder, and decoding step by step on a cache.

Vaswani et al. (2017), "Attention is all you need". Above: `attention`, `positions`, `layers`. Below:
`training` and `decoding`. Taught in *The Transformer* and *Training transformers*.
"""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from course_utils.attention import KVCache, MultiHeadAttention, causal_mask, padding_mask
from course_utils.layers import FeedForward, Residual, make_feed_forward
from course_utils.positions import SinusoidalPositions, rotate


class EncoderLayer(nn.Module):
    """Self-attention, then the position-wise network, each with its residual and norm.

    With a causal mask it is the block of GPT; what later models changed are arguments (*Pretraining*).

    Args:
        embed_dim, num_heads, ffn_dim, dropout, norm_first: as in `nn.TransformerEncoderLayer`.
        activation: of the position-wise network: "relu", "gelu", or "swiglu" for a gated one.
        norm: "layer" or "rms".
        rotary: whether queries and keys are turned by their positions (`positions.rotate`).
        num_kv_heads: heads of keys and values, for grouped-query attention; `num_heads` by default.
        bias: whether the attention's projections have biases.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        ffn_dim: int,
        *,
        dropout: float = 0.1,
        norm_first: bool = False,
        activation: str = "relu",
        norm: str = "layer",
        rotary: bool = False,
        num_kv_heads: int | None = None,
        bias: bool = True,
    ):
        super().__init__()
        self.attention = MultiHeadAttention(
            embed_dim,
            num_heads,
            dropout=dropout,
            bias=bias,
            num_kv_heads=num_kv_heads,
            encode=rotate if rotary else None,
        )
        self.feed_forward = make_feed_forward(
            embed_dim, ffn_dim, dropout=dropout, activation=activation
        )
        around = {"dropout": dropout, "norm_first": norm_first, "norm": norm}
        self.around_attention = Residual(embed_dim, **around)
        self.around_feed_forward = Residual(embed_dim, **around)

    def forward(
        self, x: Tensor, attn_mask: Tensor | None = None, *, cache: KVCache | None = None
    ) -> Tensor:
        """(batch, length, embed_dim) → the same shape; with a `cache`, x are the new tokens."""
        x = self.around_attention(x, lambda x: self.attention(x, x, x, attn_mask, cache=cache))
        return self.around_feed_forward(x, self.feed_forward)


@dataclass
class LayerCache:
    """What one decoder layer keeps between steps: the target's keys and values, and the source's."""

    target: KVCache = field(default_factory=KVCache)
    source: KVCache = field(default_factory=KVCache)

    def repeat(self, times: int) -> None:
        """Keep each row of the batch `times` times, side by side."""
        self.target.repeat(times)
        self.source.repeat(times)

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from row `rows[i]`, a beam of the same sentence; (batch,)."""
        self.target.reorder(rows)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the source, then the position-wise network."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        ffn_dim: int,
        *,
        dropout: float = 0.1,
        norm_first: bool = False,
    ):
        super().__init__()
        self.self_attention = MultiHeadAttention(embed_dim, num_heads, dropout=dropout)
        self.cross_attention = MultiHeadAttention(embed_dim, num_heads, dropout=dropout)
        self.feed_forward = FeedForward(embed_dim, ffn_dim, dropout=dropout)
        self.around_self = Residual(embed_dim, dropout=dropout, norm_first=norm_first)
        self.around_cross = Residual(embed_dim, dropout=dropout, norm_first=norm_first)
        self.around_feed_forward = Residual(embed_dim, dropout=dropout, norm_first=norm_first)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        attn_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """(batch, length, embed_dim), memory (batch, source length, embed_dim) → like x."""
        past = cache.target if cache else None
        x = self.around_self(x, lambda x: self.self_attention(x, x, x, attn_mask, cache=past))
        x = self.around_cross(x, lambda x: self._cross(x, memory, memory_mask, cache))
        return self.around_feed_forward(x, self.feed_forward)

    def _cross(
        self, x: Tensor, memory: Tensor, memory_mask: Tensor | None, cache: LayerCache | None
    ) -> Tensor:
        if cache is None:
            return self.cross_attention(x, memory, memory, memory_mask)
        if cache.source.length == 0:
            return self.cross_attention(x, memory, memory, memory_mask, cache=cache.source)
        return self.cross_attention.look_up(x, cache.source, memory_mask)


@dataclass
class TransformerState:
    """A translation under way: the encoded source, and a cache per decoder layer."""

    memory: Tensor
    memory_mask: Tensor
    caches: list[LayerCache]

    @property
    def length(self) -> int:
        """Number of target tokens seen so far."""
        return self.caches[0].target.length

    def repeat(self, times: int) -> None:
        """Keep each sentence `times` times, side by side: a row of the batch for each beam."""
        self.memory = self.memory.repeat_interleave(times, dim=0)
        self.memory_mask = self.memory_mask.repeat_interleave(times, dim=0)
        for cache in self.caches:
            cache.repeat(times)

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from row `rows[i]`, a beam of the same sentence; (batch,).

        What comes from the source is the same for all beams of a sentence and stays where it is.
        """
        for cache in self.caches:
            cache.reorder(rows)


class Transformer(nn.Module):
    """Encoder–decoder for translation.

    Args:
        source_size, target_size: numbers of tokens in the two vocabularies.
        embed_dim, num_heads, ffn_dim, num_layers, dropout, norm_first: as in `nn.Transformer`;
            `num_layers` counts encoder layers, and decoder layers again.
        max_len: longest sentence in tokens.
        pad: id of the padding token.

    Raises:
        ValueError: `num_heads` does not divide `embed_dim`, `embed_dim` is odd, or, when called, a
            sentence is longer than `max_len`.
    """

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        embed_dim: int = 256,
        num_heads: int = 4,
        ffn_dim: int = 512,
        num_layers: int = 2,
        dropout: float = 0.1,
        norm_first: bool = True,
        max_len: int = 128,
        pad: int = 0,
    ):
        super().__init__()
        self.pad = pad
        self.source_embedding = _embedding(source_size, embed_dim, pad)
        self.target_embedding = _embedding(target_size, embed_dim, pad)
        self.positions = SinusoidalPositions(embed_dim, max_len=max_len)
        self.dropout = nn.Dropout(dropout)
        sizes = (embed_dim, num_heads, ffn_dim)
        options = {"dropout": dropout, "norm_first": norm_first}
        self.encoder = nn.ModuleList(EncoderLayer(*sizes, **options) for _ in range(num_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*sizes, **options) for _ in range(num_layers))
        self.encoder_norm = nn.LayerNorm(embed_dim) if norm_first else nn.Identity()
        self.decoder_norm = nn.LayerNorm(embed_dim) if norm_first else nn.Identity()
        self.head = nn.Linear(embed_dim, target_size)

    def forward(self, source: Tensor, source_lens: Tensor, target: Tensor) -> Tensor:
        """Logits for teacher forcing.

        Args:
            source: (batch, source length) token ids.
            source_lens: (batch,) numbers of real tokens.
            target: (batch, target length) token ids, shifted right: begins with `<bos>`.

        Returns:
            (batch, target length, target_size).
        """
        return self.head(self.features(source, source_lens, target))

    def features(self, source: Tensor, source_lens: Tensor, target: Tensor) -> Tensor:
        """What `head` turns into logits: (batch, target length, embed_dim)."""
        memory, memory_mask = self.encode(source, source_lens)
        mask = causal_mask(target.shape[1], device=target.device)
        return self._decode(target, memory, mask, memory_mask)

    def encode(self, source: Tensor, source_lens: Tensor) -> tuple[Tensor, Tensor]:
        """Memory (batch, source length, embed_dim) and its mask (batch, 1, 1, source length)."""
        mask = padding_mask(source_lens, source.shape[1])
        x = self._embed(self.source_embedding, source)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x), mask

    def start(self, source: Tensor, source_lens: Tensor) -> TransformerState:
        """Encode the source once, before the first `step`."""
        memory, mask = self.encode(source, source_lens)
        return TransformerState(memory, mask, [LayerCache() for _ in self.decoder])

    def step(self, tokens: Tensor, state: TransformerState) -> Tensor:
        """Logits (batch, target_size) of the token after `tokens` (batch,); the state moves on."""
        hidden = self._decode(tokens[:, None], state.memory, None, state.memory_mask, state)
        return self.head(hidden[:, 0])

    def _decode(
        self,
        target: Tensor,
        memory: Tensor,
        attn_mask: Tensor | None,
        memory_mask: Tensor,
        state: TransformerState | None = None,
    ) -> Tensor:
        x = self._embed(self.target_embedding, target, start=state.length if state else 0)
        caches = state.caches if state else [None] * len(self.decoder)
        for layer, cache in zip(self.decoder, caches, strict=True):
            x = layer(x, memory, attn_mask, memory_mask, cache=cache)
        return self.decoder_norm(x)

    def _embed(self, embedding: nn.Embedding, tokens: Tensor, *, start: int = 0) -> Tensor:
        scaled = embedding(tokens) * math.sqrt(embedding.embedding_dim)
        return self.dropout(self.positions(scaled, start=start))


def _embedding(size: int, embed_dim: int, pad: int) -> nn.Embedding:
    """Rows of standard deviation 1/√embed_dim: scaled by √embed_dim they match the positions."""
    embedding = nn.Embedding(size, embed_dim, padding_idx=pad)
    nn.init.normal_(embedding.weight, std=1 / math.sqrt(embed_dim))
    with torch.no_grad():
        embedding.weight[pad].zero_()
    return embedding
