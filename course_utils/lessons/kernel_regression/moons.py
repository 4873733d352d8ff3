"""Points of two classes with a curved boundary between them."""

import math

import torch
from torch import Tensor


def two_moons(n: int = 200, *, noise: float = 0.2, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two interleaved half circles, the standard toy classification with a curved boundary.

    Args:
        n: number of points, at least 2; half of them (rounded down) belong to class 1.
        noise: standard deviation of the noise on both coordinates.

    Returns:
        Points (n, 2) and classes (n,), 0 or 1.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: `n` is below 2, or `noise` is negative or not finite.
    """
    if not isinstance(n, int):
        raise TypeError(f"n={n!r} is a {type(n).__name__}; an integer is needed")
    if n < 2:
        raise ValueError(f"n={n}; two moons need at least 2 points")
    if not (noise >= 0 and math.isfinite(noise)):
        raise ValueError(f"noise={noise}; a finite standard deviation of at least 0 is needed")
    generator = torch.Generator().manual_seed(seed)
    classes = (torch.arange(n) >= n - n // 2).long()
    angle = math.pi * torch.rand(n, generator=generator)
    upper = torch.stack([angle.cos(), angle.sin()], dim=1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], dim=1)
    points = torch.where(classes[:, None] == 0, upper, lower)
    return points + noise * torch.randn(n, 2, generator=generator), classes
