"""Noisy observations of a known function, for *Kernel regression*."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from course_utils.arguments import check_positive


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
        ValueError: `n` is not positive, or `noise`, `power` or `upper` is out of range.
    """
    if not isinstance(n, int):
        raise TypeError(f"n={n!r} is a {type(n).__name__}; an integer is needed")
    check_positive(n=n)
    for name, value in (("noise", noise), ("power", power)):
        if not 0 <= value < math.inf:
            raise ValueError(f"{name}={value}; a finite number of at least 0 is needed")
    if not 0 < upper < math.inf:
        raise ValueError(f"upper={upper}; a positive, finite bound is needed")
    generator = torch.Generator().manual_seed(seed)
    x = (upper * torch.rand(n, generator=generator)).sort().values

    def truth(x: Tensor) -> Tensor:
        return 2 * x.sin() + x**power

    return RegressionData(x, truth(x) + noise * torch.randn(n, generator=generator), truth, noise)
