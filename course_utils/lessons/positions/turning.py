"""Pairs of columns, turned by angles proportional to the position."""

import torch
from torch import Tensor


def turn(x: Tensor, frequency: Tensor) -> Tensor:
    """(…, length, dim), (dim / 2,) → the pair j of row i turned by i times frequency j, counterclockwise.

    Rotary positions: Su et al. (2021), "RoFormer: Enhanced transformer with rotary position embedding", section 3.2.
    """
    angles = torch.arange(x.shape[-2])[:, None] * frequency
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
