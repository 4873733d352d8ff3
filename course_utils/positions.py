"""Positional encodings: sinusoidal, learned, rotary and relative.

Attention itself reads a set, not a sequence; these encode the order. Sinusoidal and learned positions are
added to the embeddings, rotary ones rotate queries and keys, and relative ones add to the score of query i
and key j a term that depends on the offset j − i. Taught in *Positions*.
"""

import math

import torch
from torch import Tensor, nn

from course_utils.arguments import check_even, check_positive


def sinusoidal_table(length: int, embed_dim: int, *, base: float = 10_000.0) -> Tensor:
    """Table of sines in columns 2j and cosines in columns 2j + 1, of angle i / base^(2j / embed_dim) in row i.

    Vaswani et al. (2017), "Attention is all you need", section 3.5. Computed in float64, so that late
    positions keep their digits.

    Args:
        length: number of positions.
        embed_dim: even.
        base: sets the slowest frequency.

    Returns:
        (length, embed_dim), float32.

    Raises:
        ValueError: `embed_dim` is odd or not positive, or `length` is negative.
    """
    if length < 0:
        raise ValueError(f"length={length}; a length is at least 0")
    check_even(embed_dim=embed_dim)
    angles = _angles(torch.arange(length), embed_dim, base)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


def rotate(x: Tensor, *, start: int = 0, base: float = 10_000.0) -> Tensor:
    """Rotary encoding: each pair of features, rotated by an angle proportional to the position.

    Columns 2j and 2j + 1 of row i turn by (start + i) / base^(2j / dim) radians. The dot product of two
    rotated vectors depends on their positions only through the distance. Su et al. (2021), "RoFormer:
    Enhanced transformer with rotary position embedding", section 3.2.

    Args:
        x: (…, length, dim), queries or keys of one head; pairs are neighboring columns.
        start: position of the first vector.
        base: sets the slowest frequency.

    Returns:
        Like `x`.

    Raises:
        ValueError: dim is odd, or `start` is negative.
    """
    return Rotation(*x.shape[-2:], start=start, base=base, device=x.device)(x)


class Rotation:
    """`rotate` for positions start … start + length − 1, with angles that are computed once for all layers.

    Args:
        length: number of positions.
        dim: size of a query or key of one head, even.
        start, base: as in `rotate`.
        device: where the angles are computed.

    Raises:
        ValueError: dim is odd, or `start` is negative.
    """

    def __init__(
        self,
        length: int,
        dim: int,
        *,
        start: int = 0,
        base: float = 10_000.0,
        device: torch.device | None = None,
    ):
        if start < 0:
            raise ValueError(f"start={start}; a position is at least 0")
        check_even(dim=dim)
        angles = _angles(torch.arange(start, start + length, device=device), dim, base)
        self.cos, self.sin = angles.cos(), angles.sin()

    def __call__(self, x: Tensor) -> Tensor:
        """(…, length, dim) → the same shape, each pair of columns rotated."""
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def _angles(positions: Tensor, dim: int, base: float) -> Tensor:
    """Angles (length, dim / 2) in radians: position i times the frequency of column pair j."""
    # In float64 late positions keep their digits; Apple's GPUs have no float64.
    dtype = torch.float32 if positions.device.type == "mps" else torch.float64
    pairs = torch.arange(0, dim, 2, dtype=dtype, device=positions.device)
    return positions[:, None] * base ** -(pairs / dim)


class SinusoidalPositions(nn.Module):
    """Embeddings (batch, length, embed_dim) plus the sinusoidal table of their positions.

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
        self.register_load_state_dict_post_hook(_make_table)

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """x plus its positions; the first vector stands at position `start`."""
        return x + _rows(self.table, start, x.shape[-2]).to(x.dtype)


def _make_table(positions: SinusoidalPositions, _: object) -> None:
    """Compute the table again after loading, for a model made on "meta": no state_dict holds the table."""
    old = positions.table
    table = sinusoidal_table(*old.shape).to(old.dtype)
    positions.table = table if old.is_meta else table.to(old.device)


class LearnedPositions(nn.Module):
    """Embeddings (batch, length, embed_dim) plus a learned vector for each position.

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


# Added to the scores ----------------------------------------------------------------------------


class RelativeKeys(nn.Module):
    """Scores q_i · a_(j − i), with a learned vector a for each offset up to ±`farthest`.

    Shaw et al. (2018), "Self-attention with relative position representations", section 3.1, keys only.

    Args:
        dim: size of a query.
        farthest: offsets are clipped to −farthest … farthest, so that longer ones share a vector.

    Raises:
        ValueError: at construction, `farthest` is below 1.
    """

    def __init__(self, dim: int, *, farthest: int = 16):
        super().__init__()
        check_positive(farthest=farthest)
        self.farthest = farthest
        self.table = nn.Parameter(torch.empty(2 * farthest + 1, dim).normal_(std=dim**-0.5))

    def forward(self, queries: Tensor) -> Tensor:
        """(…, length, dim) → (…, length, length), which is added to q kᵀ before it is scaled."""
        length = queries.shape[-2]
        rows = _offsets(length, queries.device).clamp(-self.farthest, self.farthest) + self.farthest
        for_each_offset = queries @ self.table.T  # (…, length, 2 farthest + 1)
        return for_each_offset.gather(-1, rows.expand(*queries.shape[:-1], length))


class RelativeBias(nn.Module):
    """Learned bias for each head and each bucket of offsets, which is added to the scaled scores.

    Raffel et al. (2020), "Exploring the limits of transfer learning with a unified text-to-text
    transformer" (T5), section 2.1.

    Args:
        num_heads: number of heads.
        buckets, farthest: as in `offset_buckets`.
    """

    def __init__(self, num_heads: int, *, buckets: int = 32, farthest: int = 128):
        super().__init__()
        self.buckets, self.farthest = buckets, farthest
        self.table = nn.Parameter(torch.zeros(buckets, num_heads))

    def forward(self, length: int) -> Tensor:
        """Biases of `length` queries and keys, (num_heads, length, length)."""
        offsets = _offsets(length, self.table.device)
        return self.table[offset_buckets(offsets, self.buckets, self.farthest)].permute(2, 0, 1)


def offset_buckets(offsets: Tensor, buckets: int = 32, farthest: int = 128) -> Tensor:
    """Bucket of each offset j − i, as in T5's encoder: half of the buckets for each direction.

    In each direction, offsets below `buckets / 4` have a bucket of their own. Those from there to `farthest`
    share the other `buckets / 4`, whose widths grow exponentially, and longer ones fall into the last.

    Args:
        offsets: whole numbers of any shape.
        buckets: number of buckets in both directions, a multiple of 4.
        farthest: offset from which on all share a bucket, above `buckets / 4`.

    Returns:
        Whole numbers from 0 to `buckets` − 1, like `offsets`; positive offsets have the upper half.

    Raises:
        ValueError: `buckets` or `farthest` is out of range.
    """
    per_side, exact = buckets // 2, buckets // 4
    if buckets < 4 or buckets % 4 or farthest <= exact:
        raise ValueError(
            f"buckets={buckets}, farthest={farthest}; a multiple of 4 is needed, and farthest above {exact}"
        )
    distance = offsets.abs()
    steps = (
        torch.log(distance.clamp(min=1) / exact) / math.log(farthest / exact) * (per_side - exact)
    )
    shared = (exact + steps.long()).clamp(max=per_side - 1)
    return torch.where(distance < exact, distance, shared) + per_side * (offsets > 0)


def _offsets(length: int, device: torch.device | None = None) -> Tensor:
    """Offsets j − i of key j from query i, (length, length)."""
    positions = torch.arange(length, device=device)
    return positions - positions[:, None]


def _rows(table: Tensor, start: int, length: int) -> Tensor:
    """Rows `start` … `start + length − 1` of a table of positions."""
    if start < 0 or start + length > len(table):
        raise ValueError(
            f"positions {start} to {start + length - 1} do not fit a table of max_len={len(table)}"
        )
    return table[start : start + length]
