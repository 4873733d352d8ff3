"""Attention pooling with kernels: Nadaraya–Watson regression and the choice of its width.

The answer to a query is an average of the values, weighted by how near their keys are, which makes it the
oldest attention there is. Taught in *Kernel regression*.
"""

import math
from collections.abc import Callable
from numbers import Real

import torch
from torch import Tensor

from course_utils.arguments import chosen, require_floating, require_tensor

Kernel = Callable[[Tensor], Tensor]


def _gaussian(squared: Tensor) -> Tensor:
    return (-0.5 * squared).exp()


def _boxcar(squared: Tensor) -> Tensor:
    return (squared <= 1).to(squared.dtype)


def _constant(squared: Tensor) -> Tensor:
    return torch.ones_like(squared)


def _triangular(squared: Tensor) -> Tensor:
    # The square root has no derivative at 0, where a query is at a key: there the gradient is set to 0.
    zero = squared == 0
    return (1 - squared.masked_fill(zero, 1).sqrt().masked_fill(zero, 0)).clamp(min=0)


def _epanechnikov(squared: Tensor) -> Tensor:
    return (1 - squared).clamp(min=0)


KERNELS: dict[str, Kernel] = {
    "gaussian": _gaussian,
    "boxcar": _boxcar,
    "constant": _constant,
    "triangular": _triangular,
    "epanechnikov": _epanechnikov,
}
"""Each kernel as a function of the squared scaled distance u², up to a constant factor.

Gaussian exp(−u²/2), boxcar 1 for u ≤ 1, constant 1, triangular max(0, 1 − u), Epanechnikov
max(0, 1 − u²). Some lecture notes call the triangular kernel Epanechnikov; it is not.
"""


def kernel_values(u: Tensor, *, kernel: str = "gaussian") -> Tensor:
    """Values of a kernel, K(|u|), with K(0) = 1.

    Args:
        u: scaled distances of any shape, floating point.
        kernel: a name in `KERNELS`.

    Returns:
        Like `u`.

    Raises:
        TypeError: `u` is not a floating-point tensor.
        ValueError: no kernel has this name.
    """
    require_floating("u", u)
    return chosen(KERNELS, kernel=kernel)(u.square())


def kernel_weights(
    queries: Tensor, keys: Tensor, *, kernel: str = "gaussian", width: float | Tensor = 1.0
) -> Tensor:
    """Attention weights α(q, kᵢ) = K(‖(q − kᵢ) / width‖) / Σⱼ K(‖(q − kⱼ) / width‖).

    The Gaussian kernel is normalized as a softmax of −u²/2 with the nearest key's score at 0, so
    its weights are finite at every width, in every precision. A compact kernel (boxcar, triangular,
    Epanechnikov) with no key in reach is 0/0: that query's weights are NaN, a gap in a plot.

    Args:
        queries: (queries,) or (queries, dim), floating point.
        keys: (keys,) or (keys, dim), of the same dtype; at least one.
        kernel: a name in `KERNELS`.
        width: positive; a number, or (dim,) for one width per coordinate. May require gradients.

    Returns:
        (queries, keys); each row sums to 1, or is NaN.

    Raises:
        TypeError: queries or keys are not floating-point tensors of one dtype, or the width is
            neither a number nor a tensor.
        ValueError: unknown kernel, empty keys, sizes that do not fit, width ≤ 0 or not finite.
    """
    queries, keys = _points("queries", queries), _points("keys", keys)
    if queries.shape[1] != keys.shape[1]:
        raise ValueError(
            f"queries have {queries.shape[1]} coordinates, keys {keys.shape[1]}; the same is needed"
        )
    if queries.dtype != keys.dtype:
        raise TypeError(f"queries are {queries.dtype}, keys {keys.dtype}; one dtype is needed")
    if len(keys) == 0:
        raise ValueError("keys is empty; at least one key is needed")
    allowed = torch.ones(len(queries), len(keys), dtype=torch.bool, device=keys.device)
    return _weights(queries, keys, allowed, kernel, width)


def nadaraya_watson(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    kernel: str = "gaussian",
    width: float | Tensor = 1.0,
) -> Tensor:
    """Kernel regression: Σᵢ α(q, kᵢ) vᵢ (Nadaraya, 1964; Watson, 1964).

    Args:
        queries: (queries,) or (queries, dim).
        keys: (keys,) or (keys, dim).
        values: (keys,) for regression, (keys, classes) one-hot for classification; the keys' dtype.
        kernel, width: as in `kernel_weights`.

    Returns:
        (queries,) or (queries, classes); NaN where a compact kernel reaches no key.

    Raises:
        TypeError, ValueError: as in `kernel_weights`, and when keys and values differ in number.
    """
    _check_values(keys, values)
    return kernel_weights(queries, keys, kernel=kernel, width=width) @ values


def leave_one_out(
    keys: Tensor, values: Tensor, *, kernel: str = "gaussian", width: float | Tensor = 1.0
) -> Tensor:
    """Prediction of each value from all the others, which tests a width without a second data set.

    Args:
        keys: (keys,) or (keys, dim), at least two.
        values: (keys,) or (keys, classes).
        kernel, width: as in `kernel_weights`.

    Returns:
        Predictions like `values`; NaN where a compact kernel reaches no other key.

    Raises:
        TypeError, ValueError: as in `nadaraya_watson`, and when there are fewer than two keys.
    """
    _check_values(keys, values)
    points = _points("keys", keys)
    if len(points) < 2:
        raise ValueError(f"keys has length {len(points)}; leaving one out needs at least 2")
    others = ~torch.eye(len(points), dtype=torch.bool, device=points.device)
    return _weights(points, points, others, kernel, width) @ values


def leave_one_out_error(
    keys: Tensor, values: Tensor, *, kernel: str = "gaussian", width: float | Tensor = 1.0
) -> Tensor:
    """Mean squared error of `leave_one_out`, a scalar, in the square of the values' unit.

    It is infinite when some point has no other in reach, since such a width can't predict every point.
    Arguments and errors are those of `leave_one_out`.
    """
    errors = (leave_one_out(keys, values, kernel=kernel, width=width) - values).square().mean()
    return torch.where(errors.isnan(), math.inf, errors)


def best_width(
    keys: Tensor, values: Tensor, widths: Tensor, *, kernel: str = "gaussian"
) -> tuple[float, Tensor]:
    """Width with the smallest leave-one-out error.

    Args:
        keys, values, kernel: as in `leave_one_out`.
        widths: the candidates, (candidates,), positive.

    Returns:
        The best width, and the errors (candidates,).

    Raises:
        TypeError, ValueError: as in `leave_one_out`, when `widths` is not a tensor (candidates,) or
            is empty, and when no width reaches another point from every point.
    """
    require_tensor("widths", widths)
    if widths.ndim != 1 or len(widths) == 0:
        raise ValueError(
            f"widths has shape {tuple(widths.shape)}; (candidates,) is needed, not empty"
        )
    errors = torch.stack(
        [leave_one_out_error(keys, values, kernel=kernel, width=width.item()) for width in widths]
    )
    if not errors.isfinite().any():
        raise ValueError(
            f"no width up to {widths.max().item():g} reaches another point from every point; "
            "try larger widths"
        )
    return widths[errors.argmin()].item(), errors


def _weights(
    queries: Tensor, keys: Tensor, allowed: Tensor, kernel: str, width: float | Tensor
) -> Tensor:
    """Weights over the keys that are `allowed`, (queries, keys) and boolean; the others get 0."""
    kernel_of = chosen(KERNELS, kernel=kernel)
    width = _checked_width(width, like=keys)
    if kernel == "gaussian":
        return _gaussian_scores(queries, keys, allowed, width).softmax(dim=-1)
    values = kernel_of(_squared_distances(queries, keys, width)).masked_fill(~allowed, 0)
    return values / values.sum(dim=-1, keepdim=True)


def _gaussian_scores(queries: Tensor, keys: Tensor, allowed: Tensor, width: Tensor) -> Tensor:
    """Scores −u²/2, shifted so that each query's nearest key has 0; −inf where not allowed.

    The shift does not change a softmax. Since it comes before the division by the width, no row can overflow
    as a whole, as that of u² does in fp16 from u = 256 on.
    """
    unit = width.min()
    squared = _squared_distances(queries, keys, width / unit)
    nearest = squared.detach().masked_fill(~allowed, math.inf).amin(dim=-1, keepdim=True)
    return ((nearest - squared) / unit / unit / 2).masked_fill(~allowed, -math.inf)


def _squared_distances(queries: Tensor, keys: Tensor, width: Tensor) -> Tensor:
    """Squared scaled distances ‖(q − k) / width‖²: (queries, dim), (keys, dim) → (queries, keys)."""
    return ((queries[:, None, :] - keys[None, :, :]) / width).square().sum(dim=-1)


def _points(name: str, points: Tensor) -> Tensor:
    """Points as rows: (n,) or (n, dim) → (n, dim)."""
    require_floating(name, points)
    if points.ndim not in (1, 2):
        raise ValueError(f"{name} has shape {tuple(points.shape)}; (n,) or (n, dim) is needed")
    return points if points.ndim == 2 else points[:, None]


def _checked_width(width: float | Tensor, *, like: Tensor) -> Tensor:
    """The width as a tensor, () or (dim,), with the dtype and device of the keys `like`."""
    if not isinstance(width, Real | Tensor):
        raise TypeError(f"width is a {type(width).__name__}; a number or a torch.Tensor is needed")
    width = torch.as_tensor(width, dtype=like.dtype, device=like.device)
    if not (width.isfinite() & (width > 0)).all():
        raise ValueError(f"width={width.tolist()}; a positive, finite width is needed")
    if width.ndim and width.shape not in [(1,), (like.shape[1],)]:
        raise ValueError(
            f"width has shape {tuple(width.shape)}; a number or ({like.shape[1]},) is needed"
        )
    return width


def _check_values(keys: Tensor, values: Tensor) -> None:
    """Raise TypeError or ValueError unless each key has one value, of the same dtype."""
    require_floating("values", values)
    if values.ndim not in (1, 2):
        raise ValueError(
            f"values has shape {tuple(values.shape)}; (keys,) or (keys, classes) is needed"
        )
    points = _points("keys", keys)
    if len(points) != len(values):
        raise ValueError(f"{len(points)} keys, {len(values)} values; each key needs one value")
    if points.dtype != values.dtype:
        raise TypeError(f"keys are {points.dtype}, values {values.dtype}; one dtype is needed")
