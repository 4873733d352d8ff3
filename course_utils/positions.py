"""Where a token stands: sinusoidal, learned and rotary position encodings.

Attention itself sees a set, not a sequence; these tell it the order. Taught in *Self-attention and
positions*.
"""

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
    if length < 0:
        raise ValueError(f"length={length}; a length is at least 0")
    angles = _angles(torch.arange(length), embed_dim, base)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


def rotate(x: Tensor, *, start: int = 0, base: float = 10_000.0) -> Tensor:
    """Turn each pair of features by an angle proportional to the position (rotary encoding).

    Columns 2j and 2j + 1 of row i turn by (start + i) / base^(2j / dim). The dot product of two
    rotated vectors depends on their distance alone. Su et al. (2021), "RoFormer: Enhanced transformer
    with rotary position embedding", section 3.2.

    Args:
        x: (…, length, dim), queries or keys of one head; pairs are neighboring columns.
        start: position of the first vector.

    Raises:
        ValueError: dim is odd, or `start` is negative.
    """
    if start < 0:
        raise ValueError(f"start={start}; a position is at least 0")
    positions = torch.arange(start, start + x.shape[-2], device=x.device)
    angles = _angles(positions, x.shape[-1], base)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def _angles(positions: Tensor, dim: int, base: float) -> Tensor:
    """(length, dim / 2): position i times the frequency of column pair j."""
    if dim < 1 or dim % 2:
        raise ValueError(f"embed_dim={dim}; a positive, even size is needed")
    # In float64 late positions keep their digits; Apple's GPUs have no float64.
    dtype = torch.float32 if positions.device.type == "mps" else torch.float64
    pairs = torch.arange(0, dim, 2, dtype=dtype, device=positions.device)
    return positions[:, None] * base ** -(pairs / dim)


class SinusoidalPositions(nn.Module):
    """Add the sinusoidal table to embeddings (batch, length, embed_dim).

    Args:
        embed_dim: even.
        max_len: number of positions in the table.

    Raises:
        ValueError: at construction, `embed_dim` is odd; when called, the sequence is longer than the
            table.
    """

    table: Tensor

    def __init__(self, embed_dim: int, *, max_len: int = 512):
        super().__init__()
        self.register_buffer("table", sinusoidal_table(max_len, embed_dim), persistent=False)

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """x plus its positions; the first vector stands at position `start`."""
        return x + _rows(self.table, start, x.shape[-2]).to(x.dtype)


class LearnedPositions(nn.Module):
    """Add a learned vector per position to embeddings (batch, length, embed_dim).

    Args:
        embed_dim: size of a vector.
        max_len: number of positions in the table.

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
