"""Rotary positions: pairs of columns turned by their position, and changes of their frequencies after training.

*Positions* calls `turn` and `slowed` where a reader's own have not passed; its explorer and its stored runs try all
changes of `RETUNED`.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor


def turn(x: Tensor, frequency: Tensor) -> Tensor:
    """Rows whose pair j of columns is turned counterclockwise, in row i by i times frequency j.

    (…, length, dim), (dim / 2,) → (…, length, dim). Columns 2j and 2j + 1 are a pair.
    Rotary positions: Su et al. (2021), "RoFormer: Enhanced transformer with rotary position embedding", section 3.2.
    """
    angles = torch.arange(x.shape[-2])[:, None] * frequency
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


# Frequencies changed after training, so that longer texts can be read -----------------------------

SEEN = 16
"""Number of tokens in training, which has the offsets 0 … −15."""
LENGTHS = (16, 64, 256, 1024)
"""Numbers of tokens in the tests."""
STRETCH = LENGTHS[-1] / SEEN
"""How many times longer than in training the longest text is."""


def interpolated(frequency: Tensor) -> Tensor:
    """Frequencies of positions divided by 64, so that 1,024 of them lie where 16 lay: (pairs,) → (pairs,).

    Position interpolation: Chen et al. (2023), "Extending context window of large language models via positional
    interpolation".
    """
    return frequency / STRETCH


def larger_base(frequency: Tensor) -> Tensor:
    """Frequencies of which the slowest is divided by 64 and the fastest stays: (pairs,) → (pairs,).

    NTK-aware scaling (bloc97, 2023), which takes the base 10,000 · 64^(d / (d − 2)) in place of 10,000.
    """
    pairs = torch.arange(len(frequency)) / (len(frequency) - 1)
    return frequency * STRETCH**-pairs


def by_parts(frequency: Tensor, alpha: float = 0.5, beta: float = 1.5) -> Tensor:
    """Frequencies of which the slow ones are divided by 64 and the fast ones stay: (pairs,) → (pairs,).

    NTK-by-parts (Peng et al., 2023, "YaRN: Efficient context window extension of large language models", section 3.2).
    A pair is slow if it made at most `alpha` turns within the trained length, and fast from `beta` turns on, with a
    linear ramp between them. The paper takes 1 and 32 for Llama; among 16 tokens the fastest pair makes 2.5 turns.
    """
    turns = SEEN * frequency / (2 * math.pi)
    kept = ((turns - alpha) / (beta - alpha)).clamp(0, 1)
    return kept * frequency + (1 - kept) * frequency / STRETCH


def slowed(frequency: Tensor, length: int = SEEN, factor: float = STRETCH) -> Tensor:
    """Frequencies of which those below one turn within `length` are divided by `factor`: (pairs,) → (pairs,).

    It is NTK-by-parts with a step in place of its ramp.
    """
    return torch.where(2 * math.pi / frequency > length, frequency / factor, frequency)


RETUNED: dict[str, Callable[[Tensor], Tensor]] = {
    "trained": lambda frequency: frequency,
    "interpolated": interpolated,
    "larger base": larger_base,
    "slow pairs": slowed,
    "by parts": by_parts,
}
"""Name of a change → the changed frequencies as a function of the trained ones."""

SHARPER = (0.1 * math.log(STRETCH) + 1) ** 2
"""YaRN's temperature as a factor on the scores, for 64 times the length: about 2 (Peng et al., 2023, section 3.4)."""
