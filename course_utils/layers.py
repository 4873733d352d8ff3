"""The blocks of Transformers: position-wise networks, residual connections, encoder and decoder layers.

Taught in *The Transformer* and *Training transformers* (the norm before or after a sublayer), and in *GPT*
(rotary positions, RMSNorm, SwiGLU and grouped heads).
"""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.arguments import chosen
from course_utils.attention import MultiHeadAttention
from course_utils.cache import KVCache
from course_utils.positions import Rotation

ACTIVATIONS = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": partial(nn.GELU, approximate="tanh"),
}
NORMS = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}


class FeedForward(nn.Sequential):
    """Position-wise network max(0, x W_1 + b_1) W_2 + b_2: (…, embed_dim) → (…, embed_dim).

    Vaswani et al. (2017), "Attention is all you need", section 3.3.

    Args:
        embed_dim: size of inputs and outputs.
        ffn_dim: size of the hidden layer.
        dropout: probability with which a hidden number is dropped in training.
        activation: "relu" as above, "gelu" as in BERT, GPT and ViT, or "gelu_tanh", its approximation by a
            tanh, as in OpenAI's GPT-2.

    Raises:
        ValueError: no activation has this name.
    """

    def __init__(
        self, embed_dim: int, ffn_dim: int, *, dropout: float = 0.0, activation: str = "relu"
    ):
        super().__init__(
            nn.Linear(embed_dim, ffn_dim),
            chosen(ACTIVATIONS, activation=activation)(),
            nn.Dropout(dropout),
            nn.Linear(ffn_dim, embed_dim),
        )


class SwiGLU(nn.Module):
    """Gated position-wise network down(silu(gate(x)) · up(x)), without biases.

    It has three matrices where `FeedForward` has two, so with two thirds of its `ffn_dim` it has as many
    parameters. Shazeer (2020), "GLU variants improve Transformer", section 2.

    Args:
        embed_dim, ffn_dim, dropout: as in `FeedForward`.
    """

    def __init__(self, embed_dim: int, ffn_dim: int, *, dropout: float = 0.0):
        super().__init__()
        self.gate = nn.Linear(embed_dim, ffn_dim, bias=False)
        self.up = nn.Linear(embed_dim, ffn_dim, bias=False)
        self.down = nn.Linear(ffn_dim, embed_dim, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(…, embed_dim) → the same shape."""
        return self.down(self.dropout(F.silu(self.gate(x)) * self.up(x)))


def residual(
    x: Tensor,
    sublayer: Callable[[Tensor], Tensor],
    norm: nn.Module,
    *,
    dropout: nn.Module,
    norm_first: bool,
) -> Tensor:
    """Output of a sublayer, with dropout, added to its input; the norm stands before the sublayer or after the sum.

    Args:
        x: (…, embed_dim).
        sublayer: (…, embed_dim) → the same shape.
        norm, dropout: modules that keep this shape.
        norm_first: as in `Residual`.
    """
    if norm_first:
        return x + dropout(sublayer(norm(x)))
    return norm(x + dropout(sublayer(x)))


class Residual(nn.Module):
    """Residual connection around a sublayer f, with the norm before the sublayer or after the sum.

        x + f(norm(x)) with `norm_first`; Xiong et al. (2020), "On layer normalization in the Transformer
        architecture"
        norm(x + f(x)) otherwise; Vaswani et al. (2017), "Attention is all you need", section 3.1

    Args:
        embed_dim: size of x.
        dropout: probability with which an output of the sublayer is dropped in training.
        norm_first: whether the norm stands before the sublayer.
    """

    def __init__(self, embed_dim: int, *, dropout: float = 0.0, norm_first: bool = True):
        super().__init__()
        self.norm = nn.LayerNorm(embed_dim)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(…, embed_dim) → the same shape, which `sublayer` keeps, too."""
        return residual(x, sublayer, self.norm, dropout=self.dropout, norm_first=self.norm_first)


class EncoderLayer(nn.Module):
    """Self-attention, then the position-wise network, each with a residual connection and a norm.

    Vaswani et al. (2017), "Attention is all you need", section 3.1. Dropout applies to the outputs of both
    sublayers and inside the position-wise network, but not to the attention's weights (section 5.4). Called
    with `is_causal` the layer is the block of GPT.

    Args:
        embed_dim, num_heads, ffn_dim: as in `nn.TransformerEncoderLayer`.
        dropout: probability with which a number is dropped in training.
        norm_first: whether the norm stands before each sublayer, as in GPT-2 and ViT, or after the
            sum, as in Vaswani et al. (2017) and by default in `nn.TransformerEncoderLayer`.
        activation: of the position-wise network: "relu", "gelu", "gelu_tanh", or "swiglu" for a gated one.
        norm: "layer" (LayerNorm), or "rms" (RMSNorm; Zhang and Sennrich, 2019).
        eps: what the norms add to the variance before the square root.
        rotary: whether queries and keys are rotated by their positions (`positions.Rotation`).
        rotary_base: sets the slowest frequency of the rotation; 10,000 in Su et al. (2021), section 3.4.3, and
            more in models of long texts, such as 500,000 in Llama 3 (Grattafiori et al., 2024, section 3.2).
        num_kv_heads: heads of keys and values, for grouped-query attention; `num_heads` by default.
        bias: whether the attention's projections have biases.

    Raises:
        ValueError: a size or `rotary_base` is out of range, a name is unknown, or the size of a rotary head is odd.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        ffn_dim: int,
        *,
        dropout: float = 0.1,
        norm_first: bool = True,
        activation: str = "relu",
        norm: str = "layer",
        eps: float = 1e-5,
        rotary: bool = False,
        rotary_base: float = 10_000.0,
        num_kv_heads: int | None = None,
        bias: bool = True,
    ):
        super().__init__()
        self.attention = MultiHeadAttention(
            embed_dim, num_heads, bias=bias, num_kv_heads=num_kv_heads
        )
        self.rotary_dim = embed_dim // num_heads if rotary else None
        if rotary and (embed_dim // num_heads) % 2:
            raise ValueError(
                f"embed_dim={embed_dim}, num_heads={num_heads}: a head has {embed_dim // num_heads} features; "
                "rotary=True needs an even number"
            )
        if not 0 < rotary_base < math.inf:
            raise ValueError(f"rotary_base={rotary_base}; a positive, finite number is needed")
        self.rotary_base = rotary_base
        self.feed_forward = make_feed_forward(
            embed_dim, ffn_dim, dropout=dropout, activation=activation
        )
        self.attention_norm = make_norm(norm, embed_dim, eps=eps)
        self.feed_forward_norm = make_norm(norm, embed_dim, eps=eps)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(
        self,
        x: Tensor,
        attn_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: KVCache | None = None,
        rotation: Rotation | None = None,
    ) -> Tensor:
        """Outputs of the layer, (batch, length, embed_dim).

        Args:
            x: (batch, length, embed_dim); with a `cache`, the new tokens.
            attn_mask, is_causal, cache: as in `MultiHeadAttention`.
            rotation: of queries and keys at these positions, where a model shares it among its layers; a
                rotary layer makes its own by default.
        """
        if self.rotary_dim is not None and rotation is None:
            start = 0 if cache is None else cache.length
            rotation = Rotation(
                x.shape[1], self.rotary_dim, start=start, base=self.rotary_base, device=x.device
            )

        def attend(x: Tensor) -> Tensor:
            return self.attention(
                x, x, x, attn_mask, is_causal=is_causal, cache=cache, encode=rotation
            )

        add = partial(residual, dropout=self.dropout, norm_first=self.norm_first)
        x = add(x, attend, self.attention_norm)
        return add(x, self.feed_forward, self.feed_forward_norm)


@dataclass
class LayerCache:
    """Keys and values that a decoder layer keeps between steps: the target's and the source's."""

    target: KVCache = field(default_factory=KVCache)
    source: KVCache = field(default_factory=KVCache)

    @property
    def length(self) -> int:
        """Number of target tokens so far."""
        return self.target.length

    def repeat(self, times: int) -> None:
        """Replace each row of the batch by `times` copies, side by side."""
        self.target.repeat(times)
        self.source.repeat(times)

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from row `rows[i]`, a beam of the same sentence; (batch,)."""
        self.target.reorder(rows)

    def __copy__(self) -> "LayerCache":
        return LayerCache(copy(self.target), copy(self.source))


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention to the source, then the position-wise network.

    Each sublayer has a residual connection and a norm. Vaswani et al. (2017), "Attention is all you need",
    section 3.1.

    Args:
        embed_dim, num_heads, ffn_dim, dropout, norm_first: as in `EncoderLayer`.

    Raises:
        ValueError: a size is out of range.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        ffn_dim: int,
        *,
        dropout: float = 0.1,
        norm_first: bool = True,
    ):
        super().__init__()
        self.self_attention = MultiHeadAttention(embed_dim, num_heads)
        self.cross_attention = MultiHeadAttention(embed_dim, num_heads)
        self.feed_forward = FeedForward(embed_dim, ffn_dim, dropout=dropout)
        self.self_attention_norm = nn.LayerNorm(embed_dim)
        self.cross_attention_norm = nn.LayerNorm(embed_dim)
        self.feed_forward_norm = nn.LayerNorm(embed_dim)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        attn_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """Outputs of the layer, (batch, length, embed_dim).

        Args:
            x: target, (batch, length, embed_dim); with a `cache`, the new tokens.
            memory: encoded source, (batch, source length, embed_dim).
            attn_mask: which target tokens a target token may attend to, as in `MultiHeadAttention`.
            memory_mask: which source tokens it may attend to, likewise.
            is_causal: instead of `attn_mask`.
            cache: keys and values of earlier tokens and of the source.
        """
        target, source = (cache.target, cache.source) if cache else (None, None)

        def self_attend(x: Tensor) -> Tensor:
            return self.self_attention(x, x, x, attn_mask, is_causal=is_causal, cache=target)

        def cross_attend(x: Tensor) -> Tensor:
            # The source's keys and values are projected once, at the first step.
            new = memory if source is None or source.length == 0 else None
            return self.cross_attention(x, new, new, memory_mask, cache=source)

        add = partial(residual, dropout=self.dropout, norm_first=self.norm_first)
        x = add(x, self_attend, self.self_attention_norm)
        x = add(x, cross_attend, self.cross_attention_norm)
        return add(x, self.feed_forward, self.feed_forward_norm)


def make_norm(name: str, embed_dim: int, *, eps: float = 1e-5) -> nn.Module:
    """Norm of vectors of size `embed_dim`: `nn.LayerNorm` for "layer", `nn.RMSNorm` for "rms".

    Raises:
        ValueError: no norm has this name.
    """
    return chosen(NORMS, norm=name)(embed_dim, eps=eps)


def make_feed_forward(
    embed_dim: int, ffn_dim: int, *, dropout: float = 0.0, activation: str = "relu"
) -> nn.Module:
    """Position-wise network: `FeedForward` with this activation, or `SwiGLU` for "swiglu".

    Raises:
        ValueError: no activation has this name.
    """
    if activation == "swiglu":
        return SwiGLU(embed_dim, ffn_dim, dropout=dropout)
    return FeedForward(embed_dim, ffn_dim, dropout=dropout, activation=activation)
