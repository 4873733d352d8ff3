"""Small data drawn from formulas, for kernel regression. Taught in *Kernel regression*."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class RegressionData:
    """Noisy observations of a known function, and the function itself.

    Attributes:
        x: (n,), sorted inputs.
        y: (n,), `truth(x)` plus noise.
        truth: the function without noise.
        noise: standard deviation of the noise, in units of y.
    """

    x: Tensor
    y: Tensor
    truth: Callable[[Tensor], Tensor]
    noise: float


def noisy_sine(
    n: int = 40, *, noise: float = 1.0, power: float = 1.0, upper: float = 5.0, seed: int = 0
) -> RegressionData:
    """Draw y = 2 sin x + x^power + ε at n sorted uniform inputs in [0, upper), ε ~ N(0, noise²).

    Raises:
        TypeError: `n` is not an integer.
        ValueError: `n` is not positive (empty data), or `noise`, `power` or `upper` is out of range.
    """
    _check_count(n)
    if n < 1:
        raise ValueError(f"n={n} gives empty data; at least one point is needed")
    _check_noise(noise)
    if not (power >= 0 and math.isfinite(power)):
        raise ValueError(f"power={power}; a finite power of at least 0 is needed")
    if not (upper > 0 and math.isfinite(upper)):
        raise ValueError(f"upper={upper}; a positive, finite bound is needed")
    generator = torch.Generator().manual_seed(seed)
    x = (upper * torch.rand(n, generator=generator)).sort().values

    def truth(x: Tensor) -> Tensor:
        return 2 * x.sin() + x**power

    return RegressionData(x, truth(x) + noise * torch.randn(n, generator=generator), truth, noise)


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
    _check_count(n)
    if n < 2:
        raise ValueError(f"n={n}; two moons need at least 2 points")
    _check_noise(noise)
    generator = torch.Generator().manual_seed(seed)
    classes = (torch.arange(n) >= n - n // 2).long()
    angle = math.pi * torch.rand(n, generator=generator)
    upper = torch.stack([angle.cos(), angle.sin()], dim=1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], dim=1)
    points = torch.where(classes[:, None] == 0, upper, lower)
    return points + noise * torch.randn(n, 2, generator=generator), classes


def _check_count(n: int) -> None:
    if not isinstance(n, int):
        raise TypeError(f"n={n!r} is a {type(n).__name__}; an integer is needed")


def _check_noise(noise: float) -> None:
    if not (noise >= 0 and math.isfinite(noise)):
        raise ValueError(f"noise={noise}; a finite standard deviation of at least 0 is needed")
