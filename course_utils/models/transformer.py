"""The Transformer for translation: encoder, decoder, and decoding step by step on a cache.

Vaswani et al. (2017), "Attention is all you need". Taught in *The Transformer* and *Training
transformers*.
"""

import math
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from course_utils.layers import DecoderLayer, EncoderLayer, LayerCache
from course_utils.masks import padding_mask
from course_utils.positions import SinusoidalPositions


@dataclass
class TransformerState:
    """A translation under way: the encoded source, and a cache per decoder layer.

    Attributes:
        memory: (batch, source length, embed_dim).
        memory_mask: (batch, 1, 1, source length), True at real source tokens; None where all are real.
        caches: keys and values of the target tokens so far, and of the source.
    """

    memory: Tensor
    memory_mask: Tensor | None
    caches: list[LayerCache]

    def repeat(self, times: int) -> None:
        """Replace each sentence by `times` copies, side by side: a row of the batch for each beam."""
        self.memory = self.memory.repeat_interleave(times, dim=0)
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask.repeat_interleave(times, dim=0)
        for cache in self.caches:
            cache.repeat(times)

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from row `rows[i]`, a beam of the same sentence; (batch,).

        What comes from the source is the same for all beams of a sentence and stays where it is.
        """
        for cache in self.caches:
            cache.reorder(rows)

    def __copy__(self) -> "TransformerState":
        """A translation that goes on from the same tokens, independent of this one."""
        return TransformerState(
            self.memory, self.memory_mask, [copy(cache) for cache in self.caches]
        )


class Transformer(nn.Module):
    """Encoder–decoder for translation, a stack of `EncoderLayer` and one of `DecoderLayer`.

    Vaswani et al. (2017), "Attention is all you need", section 3.

    Args:
        source_size, target_size: numbers of tokens in the two vocabularies.
        embed_dim, num_heads, ffn_dim: as in `nn.Transformer`.
        dropout: on embeddings and on the output of each sublayer, as in `layers.EncoderLayer`.
        num_layers: number of encoder layers, and of decoder layers.
        norm_first: as in `layers.EncoderLayer`; both halves then end with one more norm.
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
        self.source_embedding = nn.Embedding(source_size, embed_dim, padding_idx=pad)
        self.target_embedding = nn.Embedding(target_size, embed_dim, padding_idx=pad)
        self.positions = SinusoidalPositions(embed_dim, max_len=max_len)
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.ModuleList(
            EncoderLayer(embed_dim, num_heads, ffn_dim, dropout=dropout, norm_first=norm_first)
            for _ in range(num_layers)
        )
        self.encoder_norm = nn.LayerNorm(embed_dim) if norm_first else nn.Identity()
        self.decoder = nn.ModuleList(
            DecoderLayer(embed_dim, num_heads, ffn_dim, dropout=dropout, norm_first=norm_first)
            for _ in range(num_layers)
        )
        self.decoder_norm = nn.LayerNorm(embed_dim) if norm_first else nn.Identity()
        self.output = nn.Linear(embed_dim, target_size)
        # Scaled by √embed_dim in `embed`, the rows are as large as the positions.
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=1 / math.sqrt(embed_dim))
            with torch.no_grad():
                embedding.weight[pad].zero_()

    def forward(self, source: Tensor, source_lens: Tensor, target: Tensor) -> Tensor:
        """Logits for teacher forcing.

        Args:
            source: (batch, source length) token ids.
            source_lens: (batch,) numbers of real tokens.
            target: (batch, target length) token ids, shifted right: begins with `<bos>`.

        Returns:
            (batch, target length, target_size).
        """
        return self.output(self.features(source, source_lens, target))

    def features(self, source: Tensor, source_lens: Tensor, target: Tensor) -> Tensor:
        """Vectors that `output` maps to logits, (batch, target length, embed_dim); as in `forward`."""
        return self.decode(target, *self.encode(source, source_lens))

    def encode(self, source: Tensor, source_lens: Tensor) -> tuple[Tensor, Tensor]:
        """Encoded source, (batch, source length, embed_dim), and its mask, (batch, 1, 1, source length).

        Args:
            source, source_lens: as in `forward`.
        """
        mask = padding_mask(source_lens, source.shape[1])
        x = self.embed(self.source_embedding, source)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x), mask

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None,
        caches: list[LayerCache] | None = None,
    ) -> Tensor:
        """Features of target tokens, (batch, length, embed_dim).

        Args:
            target: (batch, length) token ids.
            memory: encoded source, (batch, source length, embed_dim).
            memory_mask: (batch, 1, 1, source length), True at real source tokens.
            caches: one per layer; the target tokens then follow those in the caches.
        """
        x = self.embed(self.target_embedding, target, caches[0].length if caches else 0)
        for i, layer in enumerate(self.decoder):
            cache = caches[i] if caches else None
            x = layer(x, memory, memory_mask=memory_mask, is_causal=True, cache=cache)
        return self.decoder_norm(x)

    def embed(self, embedding: nn.Embedding, tokens: Tensor, start: int = 0) -> Tensor:
        """Embeddings with positions, (batch, length, embed_dim), of ids (batch, length) from `start` on."""
        scaled = embedding(tokens) * math.sqrt(embedding.embedding_dim)
        return self.dropout(self.positions(scaled, start=start))

    def start(self, source: Tensor, source_lens: Tensor) -> TransformerState:
        """State before the first `step`: the encoded source, and empty caches."""
        memory, mask = self.encode(source, source_lens)
        # Without padding no step needs the mask.
        memory_mask = None if mask.all() else mask
        return TransformerState(memory, memory_mask, [LayerCache() for _ in self.decoder])

    def step(self, tokens: Tensor, state: TransformerState) -> Tensor:
        """Logits (batch, target_size) of the token after `tokens`, (batch,) ids; updates the state."""
        features = self.decode(tokens[:, None], state.memory, state.memory_mask, state.caches)
        return self.output(features[:, 0])
