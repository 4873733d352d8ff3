"""Random curves for *Kernel regression*, the best width of a fixed kernel on them, and the best weights that exist.

Each value of a curve is predicted from its 39 others. The chapter draws the curves; its *Going further* page shows the
best rules, and classifies two moons.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from course_utils.pooling import kernel_values

Curves = tuple[Tensor, Tensor, Tensor]
"""Places, noisy values, values without noise: (n, 40) each."""
Missed = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Scores (n, 40, 40), noisy values, values without noise → squared errors (n, 40), each from the 39 others."""


def random_curves(n: int, waves: float, numbers: torch.Generator) -> Curves:
    """n curves 2a sin(waves · x + phase) + bx at 40 places each, with standard normal noise.

    Args:
        n: number of curves.
        waves: the speed of the sine; a and b are standard normal, and the phase is any.
        numbers: draws places, curves and noise.
    """
    x = 5 * torch.rand(n, 40, generator=numbers)
    a, b = torch.randn(2, n, 1, generator=numbers)
    phase = 2 * math.pi * torch.rand(n, 1, generator=numbers)
    curve = 2 * a * torch.sin(waves * x + phase) + b * x
    return x, curve + torch.randn(n, 40, generator=numbers), curve


def judged_on(waves: float) -> list[Curves]:
    """500 curves for validation, and 2,000 for the test."""
    validation = random_curves(500, waves, torch.Generator().manual_seed(1001))
    test = random_curves(2000, waves, torch.Generator().manual_seed(1002))
    return [validation, test]


def tuned(kernel: str, waves: float, missed: Missed) -> tuple[float, Tensor]:
    """The width of a fixed kernel that is best on validation curves, and its squared errors (2000, 40) on test curves.

    Args:
        kernel: as in `pooling.kernel_values`.
        waves: of the curves.
        missed: the squared errors for some scores; the score of any kernel is its logarithm.
    """

    def errors(width: float, x: Tensor, *values: Tensor) -> Tensor:
        u = (x[:, :, None] - x[:, None, :]) / width
        return missed(kernel_values(u, kernel=kernel).log(), *values)

    validation, test = judged_on(waves)
    means = {w / 100: errors(w / 100, *validation).nanmean().item() for w in range(16, 120, 4)}
    width = min(means, key=means.__getitem__)
    return width, errors(width, *test)


# The best weights for these curves ------------------------------------------------------------------


def _second_moments(places: Tensor, waves: float) -> tuple[Tensor, Tensor]:
    """Second moments (n, 40, 40) of the curves at (n, 40) places, without noise and with it.

    Without noise they are 2 cos(waves · distance) + xx'; with it the diagonal has 1 more.
    """
    x = places.double()
    of_curves = 2 * torch.cos(waves * (x[:, :, None] - x[:, None, :]))
    of_curves = of_curves + x[:, :, None] * x[:, None, :]
    return of_curves, of_curves + torch.eye(x.shape[1], dtype=x.dtype)


def best_linear(places: Tensor, waves: float) -> Tensor:
    """The weights (n, 40, 40), of any sign, with the smallest expected squared error, at (n, 40) places.

    Each row predicts a value from the 39 others, so the diagonal is 0.
    """
    _, of_values = _second_moments(places, waves)
    inverse = of_values.inverse()
    weights = -inverse / inverse.diagonal(dim1=1, dim2=2)[:, :, None]
    return weights.masked_fill(torch.eye(places.shape[1], dtype=torch.bool), 0)


def best_of_sum_one(places: Tensor, waves: float) -> Tensor:
    """As `best_linear`, among weights of any sign that sum to 1 in each row.

    They are those of `best_linear`, shifted along C⁻¹1, where C are the second moments of the 39 other values.
    """
    _, of_values = _second_moments(places, waves)
    inverse, linear = of_values.inverse(), best_linear(places, waves)
    itself = torch.eye(places.shape[1], dtype=torch.bool)
    # For row i, the inverse of the 39 others' moments is C⁻¹ − cᵢcᵢᵀ/cᵢᵢ, so its row sums are these.
    sums, diagonal = inverse.sum(-1), inverse.diagonal(dim1=1, dim2=2)
    others = sums[:, None, :] - inverse * (sums / diagonal)[:, :, None]
    others = others.masked_fill(itself, 0)
    missing = 1 - linear.sum(-1, keepdim=True)
    return linear + missing / others.sum(-1, keepdim=True) * others


def best_average(places: Tensor, waves: float, steps: int = 200) -> Tensor:
    """As `best_linear`, among weights that are not negative and sum to 1."""
    return _descend(places, waves, steps, _nearest_average)


def best_not_negative(places: Tensor, waves: float, steps: int = 400) -> Tensor:
    """As `best_linear`, among weights that are not negative, whatever they sum to."""
    itself = torch.eye(places.shape[1], dtype=torch.bool)
    return _descend(places, waves, steps, lambda some: some.masked_fill(itself, 0).clamp(min=0))


def _descend(
    places: Tensor, waves: float, steps: int, nearest: Callable[[Tensor], Tensor]
) -> Tensor:
    """The best weights among those allowed, by accelerated projected gradient descent.

    Beck and Teboulle (2009), "A fast iterative shrinkage-thresholding algorithm for linear inverse
    problems", section 4.

    Args:
        places: (n, 40).
        waves: of the curves.
        steps: of the descent.
        nearest: any weights → the nearest ones that are allowed.
    """
    of_curves, of_values = _second_moments(places, waves)
    steepest = torch.linalg.matrix_norm(of_values, 2)[:, None, None]
    weights = ahead = nearest(torch.zeros_like(of_curves))
    momentum = 1.0
    for _ in range(steps):
        previous = weights
        weights = nearest(ahead - (ahead @ of_values - of_curves) / steepest)
        next_momentum = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = weights + (momentum - 1) / next_momentum * (weights - previous)
        momentum = next_momentum
    return weights


def _nearest_average(weights: Tensor) -> Tensor:
    """The nearest weights that are not negative, sum to 1 in each row and are 0 on the diagonal.

    Duchi, Shalev-Shwartz, Singer and Chandra (2008), "Efficient projections onto the ℓ1-ball for learning in high
    dimensions", figure 1.
    """
    count = weights.shape[-1]
    weights = weights.masked_fill(torch.eye(count, dtype=torch.bool), -1e9)
    descending = weights.sort(dim=-1, descending=True).values
    thresholds = (descending.cumsum(dim=-1) - 1) / torch.arange(1, count + 1)
    num_positive = (descending > thresholds).sum(dim=-1, keepdim=True)
    return (weights - thresholds.gather(-1, num_positive - 1)).clamp(min=0)


def one_peak() -> list[tuple[float, float]]:
    """Points (place, value) on the line 0, and among them one at 2.5 with the value 4."""
    places = (0, 0.5, 1, 1.5, 2, 2.3, 2.5, 2.7, 3, 3.5, 4, 4.5, 5)
    return [(place, 4 if place == 2.5 else 0) for place in places]


# Two classes with a curved boundary between them --------------------------------------------------


def two_moons(n: int = 200, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two interleaved half circles, the standard toy classification with a curved boundary.

    Args:
        n: number of points, at least 2; half of them (rounded down) belong to class 1.
        seed: of the points, and of noise with the standard deviation 0.2 on both coordinates.

    Returns:
        Points (n, 2) and classes (n,), 0 or 1.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: `n` is below 2.
    """
    if not isinstance(n, int):
        raise TypeError(f"n={n!r} is a {type(n).__name__}; an integer is needed")
    if n < 2:
        raise ValueError(f"n={n}; two moons need at least 2 points")
    generator = torch.Generator().manual_seed(seed)
    classes = (torch.arange(n) >= n - n // 2).long()
    angle = math.pi * torch.rand(n, generator=generator)
    upper = torch.stack([angle.cos(), angle.sin()], dim=1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], dim=1)
    points = torch.where(classes[:, None] == 0, upper, lower)
    return points + 0.2 * torch.randn(n, 2, generator=generator), classes
