"""A GPT, a vision transformer and a Transformer as others write them, from PyTorch's modules alone.

The structure is that of nanoGPT's model.py, of timm's `VisionTransformer` and of `torch.nn.Transformer`: one product
for queries, keys and values, dropout where their authors put it, but none on the weights of the attention.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.data.text import PAD
from course_utils.positions import sinusoidal_table


class Block(nn.Module):
    """Self-attention and a network, each after a norm; `inner` is dropout inside the network, as timm has it."""

    def __init__(
        self, width: int, heads: int, ffn_dim: int, dropout: float, *, inner: bool, causal: bool
    ):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.network = nn.Sequential(
            nn.Linear(width, ffn_dim),
            nn.GELU(),
            nn.Dropout(dropout if inner else 0.0),
            nn.Linear(ffn_dim, width),
        )
        self.dropout = nn.Dropout(dropout)

    def attend(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.proj(heads.transpose(1, 2).contiguous().view(batch, length, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attend(self.norm1(x)))
        return x + self.dropout(self.network(self.norm2(x)))


class PlainGPT(nn.Module):
    """As in nanoGPT: tied output layer, logits of the last token alone when it generates."""

    def __init__(
        self, vocab_size: int, *, width: int, heads: int, layers: int, length: int, dropout: float
    ):
        super().__init__()
        self.length = length
        self.tokens, self.positions = nn.Embedding(vocab_size, width), nn.Embedding(length, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(width, heads, 4 * width, dropout, inner=False, causal=True) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, vocab_size, bias=False)
        self.output.weight = self.tokens.weight

    def features(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.dropout(self.tokens(tokens) + self.positions(positions))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.output(self.features(tokens))

    def next_logits(self, tokens: Tensor) -> Tensor:
        return self.output(self.features(tokens[:, -self.length :])[:, -1])


class PlainViT(nn.Module):
    """As in timm: patches by a convolution, a class token, all tokens in all layers."""

    def __init__(
        self,
        *,
        image_size: int,
        patch_size: int,
        channels: int,
        width: int,
        heads: int,
        ffn_dim: int,
        layers: int,
        dropout: float,
    ):
        super().__init__()
        self.patches = nn.Conv2d(channels, width, patch_size, patch_size)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 1 + (image_size // patch_size) ** 2, width))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(
            *(
                Block(width, heads, ffn_dim, dropout, inner=True, causal=False)
                for _ in range(layers)
            )
        )
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return self.output(self.norm(self.blocks(self.dropout(x + self.positions)))[:, 0])


class PlainTransformer(nn.Module):
    """torch.nn.Transformer with embeddings, positions and an output layer, as its user would write it."""

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        width: int,
        heads: int,
        ffn_dim: int,
        layers: int,
        dropout: float,
        norm_first: bool = False,
    ):
        super().__init__()
        self.source_embedding = nn.Embedding(source_size, width, padding_idx=PAD)
        self.target_embedding = nn.Embedding(target_size, width, padding_idx=PAD)
        self.register_buffer("table", sinusoidal_table(128, width))
        self.dropout = nn.Dropout(dropout)
        options = {"batch_first": True, "norm_first": norm_first}
        self.transformer = nn.Transformer(width, heads, layers, layers, ffn_dim, dropout, **options)
        self.output = nn.Linear(width, target_size)

    def embed(self, embedding: nn.Embedding, tokens: Tensor) -> Tensor:
        scaled = embedding(tokens) * math.sqrt(embedding.embedding_dim)
        return self.dropout(scaled + self.table[: tokens.shape[1]])

    def forward(self, source: Tensor, source_lens: Tensor, target: Tensor) -> Tensor:
        padding = torch.arange(source.shape[1], device=source.device) >= source_lens[:, None]
        causal = nn.Transformer.generate_square_subsequent_mask(
            target.shape[1], dtype=torch.bool, device=source.device
        )
        hidden = self.transformer(
            self.embed(self.source_embedding, source),
            self.embed(self.target_embedding, target),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.output(hidden)
