"""Rotary positions: pairs of columns turned by their position, and their frequencies changed after training."""

import math

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


# Frequencies changed after training, so that longer texts can be read -----------------------------

SEEN = 16
"""Tokens in training: the offsets 0 … −15."""
LENGTHS = (16, 64, 256, 1024)
STRETCH = LENGTHS[-1] / SEEN


def interpolated(frequency: Tensor) -> Tensor:
    """Positions divided by 64, so that 1,024 lie where 16 lay. Chen et al. (2023)."""
    return frequency / STRETCH


def larger_base(frequency: Tensor) -> Tensor:
    """A base so much larger that the slowest pair is slower by 64, and the fastest as before ("NTK-aware")."""
    pairs = torch.arange(len(frequency)) / (len(frequency) - 1)
    return frequency * STRETCH**-pairs


def slow_interpolated(frequency: Tensor) -> Tensor:
    """Pairs that did not go round in training are slowed by 64: YaRN (Peng et al., 2023), less its ramp."""
    return torch.where(2 * math.pi / frequency > SEEN, frequency / STRETCH, frequency)


RETUNED = {
    "trained": lambda frequency: frequency,
    "interpolated": interpolated,
    "larger base": larger_base,
    "slow pairs": slow_interpolated,
}
