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
    """NTK-aware scaling (bloc97, 2023): the slowest pair is slower by 64, the fastest is as before.

    It is the base 10,000 · 64^(d / (d − 2)) in place of 10,000.
    """
    pairs = torch.arange(len(frequency)) / (len(frequency) - 1)
    return frequency * STRETCH**-pairs


def by_parts(frequency: Tensor, alpha: float = 0.5, beta: float = 1.5) -> Tensor:
    """NTK-by-parts (Peng et al., 2023, section 3.2): slow pairs are slowed by 64, fast ones stay.

    A pair is slow if it made at most `alpha` turns within the trained length, and fast from `beta` turns on, with a
    linear ramp between them. The paper takes 1 and 32 for Llama; among 16 tokens the fastest pair makes 2.5 turns.
    """
    turns = SEEN * frequency / (2 * math.pi)
    kept = ((turns - alpha) / (beta - alpha)).clamp(0, 1)
    return kept * frequency + (1 - kept) * frequency / STRETCH


def slowed(frequency: Tensor, length: int = SEEN, factor: float = STRETCH) -> Tensor:
    """Divide the frequency of the slow pairs, those that did not go round once within the trained length.

    NTK-by-parts with a step in place of its ramp.
    """
    return torch.where(2 * math.pi / frequency > length, frequency / factor, frequency)


RETUNED = {
    "trained": lambda frequency: frequency,
    "interpolated": interpolated,
    "larger base": larger_base,
    "slow pairs": slowed,
    "by parts": by_parts,
}

SHARPER = (0.1 * math.log(STRETCH) + 1) ** 2
"""YaRN's temperature as a factor on the scores, for 64 times the length: about 2 (Peng et al., 2023, section 3.4)."""
