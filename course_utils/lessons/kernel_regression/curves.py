"""Curves and points to predict: random curves with the best width of a fixed kernel on them, and two moons."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from course_utils.pooling import kernel_values

Curves = tuple[Tensor, Tensor, Tensor]
Missed = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Scores, values, wanted → squared misses, each value predicted from the others."""


def random_curves(n: int, waves: float, numbers: torch.Generator) -> Curves:
    """n curves 2a sin(waves · x + phase) + bx at 40 places each: places, noisy values, values without noise."""
    x = 5 * torch.rand(n, 40, generator=numbers)
    a, b = torch.randn(2, n, 1, generator=numbers)
    phase = 2 * math.pi * torch.rand(n, 1, generator=numbers)
    curve = 2 * a * torch.sin(waves * x + phase) + b * x
    return x, curve + torch.randn(n, 40, generator=numbers), curve


def judged_on(waves: float) -> list[Curves]:
    """500 curves to choose by, 2,000 to report."""
    seeds = {1001: 500, 1002: 2000}
    return [random_curves(n, waves, torch.Generator().manual_seed(s)) for s, n in seeds.items()]


def tuned(kernel: str, waves: float, missed: Missed) -> tuple[float, Tensor]:
    """The width that is best on validation curves, and the misses on test curves."""

    def misses(width, x, *rest):
        u = (x[:, :, None] - x[:, None, :]) / width
        # the score of any kernel is its logarithm
        return missed(kernel_values(u, kernel=kernel).log(), *rest)

    validation, test = judged_on(waves)
    of_width = {w / 100: misses(w / 100, *validation).nanmean() for w in range(16, 120, 4)}
    width = min(of_width, key=of_width.get)
    return width, misses(width, *test)


# The best that is possible on these curves ---------------------------------------------------------


def _second_moments(places: Tensor, waves: float) -> tuple[Tensor, Tensor]:
    """Second moments of curves at (n, 40) places, without noise, 2 cos(waves · distance) + xx', and with it, plus 1."""
    x = places.double()
    of_curves = 2 * torch.cos(waves * (x[:, :, None] - x[:, None, :]))
    of_curves = of_curves + x[:, :, None] * x[:, None, :]
    return of_curves, of_curves + torch.eye(x.shape[1], dtype=x.dtype)


def best_linear(places: Tensor, waves: float) -> Tensor:
    """Weights (n, 40, 40) with the smallest expected squared error, each value from the 39 others, of any sign."""
    _, of_values = _second_moments(places, waves)
    inverse = of_values.inverse()
    weights = -inverse / inverse.diagonal(dim1=1, dim2=2)[:, :, None]
    return weights.masked_fill(torch.eye(places.shape[1], dtype=torch.bool), 0)


def best_of_sum_one(places: Tensor, waves: float) -> Tensor:
    """As `best_linear`, among weights of any sign that sum to 1 in each row: they are shifted along C⁻¹1."""
    _, of_values = _second_moments(places, waves)
    inverse, linear = of_values.inverse(), best_linear(places, waves)
    itself = torch.eye(places.shape[1], dtype=torch.bool)
    # For row i, the inverse of the 39 others' moments is C⁻¹ − cᵢcᵢᵀ/cᵢᵢ, so its row sums are these.
    sums, own = inverse.sum(-1), inverse.diagonal(dim1=1, dim2=2)
    others = sums[:, None, :] - inverse * (sums / own)[:, :, None]
    others = others.masked_fill(itself, 0)
    missing = 1 - linear.sum(-1, keepdim=True)
    return linear + missing / others.sum(-1, keepdim=True) * others


def best_average(places: Tensor, waves: float, steps: int = 200) -> Tensor:
    """As `best_linear`, among weights that are not negative and sum to 1."""
    return _descended(places, waves, steps, _nearest_average)


def best_not_negative(places: Tensor, waves: float, steps: int = 400) -> Tensor:
    """As `best_linear`, among weights that are not negative, whatever they sum to."""
    itself = torch.eye(places.shape[1], dtype=torch.bool)
    return _descended(places, waves, steps, lambda some: some.masked_fill(itself, 0).clamp(min=0))


def _descended(
    places: Tensor, waves: float, steps: int, nearest: Callable[[Tensor], Tensor]
) -> Tensor:
    """The best among the weights that `nearest` returns: accelerated projected gradient descent."""
    of_curves, of_values = _second_moments(places, waves)
    steepest = torch.linalg.matrix_norm(of_values, 2)[:, None, None]
    weights = ahead = nearest(torch.zeros_like(of_curves))
    momentum = 1.0
    for _ in range(steps):
        before = weights
        weights = nearest(ahead - (ahead @ of_values - of_curves) / steepest)
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = weights + (momentum - 1) / following * (weights - before)
        momentum = following
    return weights


def _nearest_average(weights: Tensor) -> Tensor:
    """The nearest weights that are not negative, sum to 1 in each row and are 0 on the diagonal."""
    count = weights.shape[-1]
    weights = weights.masked_fill(torch.eye(count, dtype=torch.bool), -1e9)
    falling = weights.sort(dim=-1, descending=True).values
    lines = (falling.cumsum(dim=-1) - 1) / torch.arange(1, count + 1)
    above = (falling > lines).sum(dim=-1, keepdim=True)
    return (weights - lines.gather(-1, above - 1)).clamp(min=0)


def one_peak() -> list[tuple[float, float]]:
    """Points (place, value) on a flat line with a peak of one point at 2.5."""
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
