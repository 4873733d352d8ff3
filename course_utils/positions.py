"""Where a token stands: sinusoidal, learned and rotary position encodings.

Attention itself sees a set, not a sequence; these tell it the order. Above: `attention`. Below:
`layers` and `models`. Taught in *Self-attention and positions*.
"""

import functools

import torch
from torch import Tensor, nn


def sinusoidal_table(length: int, embed_dim: int, *, base: float = 10_000.0) -> Tensor:
    """Sines in the even columns, cosines in the odd ones, of angle i / base^(2j / embed_dim).

    Vaswani et al. (2017), "Attention is all you need", section 3.5; i is the position and j the pair
    of columns. Computed in float64, so that late positions keep their digits.

    Returns:
        (length, embed_dim), float32.

    Raises:
        ValueError: `embed_dim` is odd or not positive, or `length` is negative.
    """
    angles = _angles(length, embed_dim, base)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


def rotate(x: Tensor, *, start: int = 0, base: float = 10_000.0) -> Tensor:
    """Turn each pair of features by an angle proportional to the position (rotary encoding).

    The dot product of two rotated vectors depends on their distance alone. Su et al. (2021),
    "RoFormer: Enhanced transformer with rotary position embedding", section 3.2.

    Args:
        x: (…, length, dim), queries or keys of one head; pairs are neighbouring columns.
        start: position of the first vector.

    Raises:
        ValueError: dim is odd, or `start` is negative.
    """
    if start < 0:
        raise ValueError(f"start={start}; a position is at least 0")
    cos, sin = _turns(start, x.shape[-2], x.shape[-1], base, x.dtype, x.device)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


@functools.lru_cache(maxsize=64)
def _turns(start: int, length: int, dim: int, base: float, dtype, device) -> tuple[Tensor, Tensor]:
    """Cosines and sines (length, dim / 2) of positions start, start + 1, …; kept, as layers share them."""
    with torch.inference_mode(False):  # what is kept may be used in training later
        angles = _angles(start + length, dim, base)[start:]
        return angles.cos().to(device, dtype), angles.sin().to(device, dtype)


def _angles(length: int, embed_dim: int, base: float) -> Tensor:
    """(length, embed_dim / 2), float64: position i times the frequency of column pair j."""
    if embed_dim < 1 or embed_dim % 2:
        raise ValueError(f"embed_dim={embed_dim}; a positive, even size is needed")
    if length < 0:
        raise ValueError(f"length={length}; a length is at least 0")
    frequencies = base ** -(torch.arange(0, embed_dim, 2, dtype=torch.float64) / embed_dim)
    return torch.arange(length, dtype=torch.float64)[:, None] * frequencies


class SinusoidalPositions(nn.Module):
    """Add the sinusoidal table to embeddings (batch, length, embed_dim).

    Args:
        embed_dim: even.
        max_len: number of positions in the table.

    Raises:
        ValueError: at construction, `embed_dim` is odd; when called, the sequence is longer than the
            table.
    """

    def __init__(self, embed_dim: int, *, max_len: int = 512):
        super().__init__()
        self.register_buffer("table", sinusoidal_table(max_len, embed_dim), persistent=False)

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """x plus its positions; the first vector stands at position `start`."""
        return x + _rows(self.table, start, x.shape[-2]).to(x.dtype)


class LearnedPositions(nn.Module):
    """Add a learned vector per position to embeddings (batch, length, embed_dim).

    Raises:
        ValueError: when called, the sequence is longer than the table.
    """

    def __init__(self, embed_dim: int, *, max_len: int = 512):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_len, embed_dim).normal_(std=0.02))

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """x plus its positions; the first vector stands at position `start`."""
        return x + _rows(self.table, start, x.shape[-2])


def _rows(table: Tensor, start: int, length: int) -> Tensor:
    if start < 0 or start + length > len(table):
        raise ValueError(
            f"positions {start} to {start + length - 1} do not fit a table of max_len={len(table)}"
        )
    return table[start : start + length]
