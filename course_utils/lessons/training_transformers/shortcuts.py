"""Shortcuts of a first-generation implementation, put into a Transformer one at a time.

They are here to be measured against the standard form, not to be used.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention import MultiHeadAttention, causal_mask, masked_softmax
from course_utils.layers import DecoderLayer
from course_utils.models.transformer import Transformer


class ScaledAfterSoftmax(MultiHeadAttention):
    """softmax(q·k) / √head_dim: the weights of a row sum to 1/√head_dim, and long queries saturate."""

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None, *, is_causal: bool
    ) -> Tensor:
        """In each head: (batch, heads, queries, head_dim)."""
        if is_causal:  # the queries are the last of the keys
            attn_mask = causal_mask(k.shape[-2], device=q.device)[-q.shape[-2] :]
        weights = masked_softmax(q @ k.transpose(-2, -1), attn_mask)
        self.note(lambda: weights)
        return weights @ v / math.sqrt(q.shape[-1])


class ZeroedMask(MultiHeadAttention):
    """What is masked is set to zero before the projections, and takes part in the softmax.

    Only a mask that is the same for all queries, such as padding, can be had so.
    """

    def forward(self, queries, keys, values, attn_mask=None, **options):
        """As `MultiHeadAttention.forward`."""
        if attn_mask is not None and attn_mask.ndim == 4:  # padding: (batch, 1, 1, keys)
            real, attn_mask = attn_mask[:, 0, 0, :, None], None
            if keys is not None:
                keys, values = keys * real, values * real
        return super().forward(queries, keys, values, attn_mask, **options)


class Sliced(nn.Linear):
    """A projection that is block-diagonal: head i reads slice i of the embedding and nothing else."""

    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__(embed_dim, embed_dim)
        self.num_heads, size = num_heads, embed_dim // num_heads
        bound = 1 / math.sqrt(size)
        self.weight = nn.Parameter(torch.empty(num_heads, size, size).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """(…, embed_dim) → (…, embed_dim)."""
        return F.linear(x, torch.block_diag(*self.weight), self.bias)


class WithoutShortcut(DecoderLayer):
    """Around the cross-attention norm(f(x)) where norm(x + f(x)) should be."""

    def forward(self, x, memory, attn_mask=None, memory_mask=None, *, is_causal=False, cache=None):
        """As `DecoderLayer.forward`, with the norm after the sum."""
        seen, source = (cache.target, cache.source) if cache else (None, None)
        said = self.self_attention(x, x, x, attn_mask, is_causal=is_causal, cache=seen)
        x = self.self_attention_norm(x + self.dropout(said))
        new = memory if source is None or source.length == 0 else None
        read = self.cross_attention(x, new, new, memory_mask, cache=source)
        x = self.cross_attention_norm(read)
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))


SHORTCUTS = ("sliced heads", "scaled after softmax", "zeroed mask", "no residual around cross")


def take_shortcut(model: Transformer, shortcut: str) -> Transformer:
    """The same model, changed in place, with one shortcut in every layer.

    Raises:
        ValueError: no shortcut has this name.
    """
    if shortcut not in SHORTCUTS:
        raise ValueError(f"shortcut={shortcut!r} is unknown; there are {', '.join(SHORTCUTS)}")
    if shortcut == "no residual around cross":
        for layer in model.decoder:
            layer.__class__ = WithoutShortcut
    for layer in [*model.encoder, *model.decoder]:
        for name, part in list(layer.named_children()):
            if isinstance(part, MultiHeadAttention) and shortcut == "sliced heads":
                _slice(part)
            elif isinstance(part, MultiHeadAttention) and shortcut == "scaled after softmax":
                setattr(layer, name, _remade(part, ScaledAfterSoftmax))
            elif isinstance(part, MultiHeadAttention) and shortcut == "zeroed mask":
                setattr(layer, name, _remade(part, ZeroedMask))
    return model


def _slice(attention: MultiHeadAttention) -> None:
    """Sliced projections in place of the three, and none at the end."""
    for name in ("query_proj", "key_proj", "value_proj"):
        embed_dim = getattr(attention, name).in_features
        setattr(attention, name, Sliced(embed_dim, attention.num_heads))
    attention.out_proj = nn.Identity()


def _remade(attention: MultiHeadAttention, kind: type[MultiHeadAttention]) -> MultiHeadAttention:
    """Another kind of attention with the same sizes and weights."""
    embed_dim = attention.query_proj.in_features
    made = kind(embed_dim, attention.num_heads, dropout=attention.dropout)
    made.load_state_dict(attention.state_dict())
    return made
