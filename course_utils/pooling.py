"""Attention pooling with kernels: Nadaraya–Watson regression and the choice of its width.

The oldest attention there is: a query is answered by an average of the values, weighted by how near
their keys are. Below: `attention`, where scores take the kernel's place. Taught in chapter 02.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

Kernel = Callable[[Tensor], Tensor]


def _gaussian(squared: Tensor) -> Tensor:
    return (-0.5 * squared).exp()


def _boxcar(squared: Tensor) -> Tensor:
    return (squared <= 1).to(squared.dtype)


def _constant(squared: Tensor) -> Tensor:
    return torch.ones_like(squared)


def _triangular(squared: Tensor) -> Tensor:
    # The clamp keeps the gradient of the root finite where a query meets a key.
    return (1 - squared.clamp(min=torch.finfo(squared.dtype).tiny).sqrt()).clamp(min=0)


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
    """Kernel K(|u|) at scaled distances `u` of any shape; K(0) = 1.

    Raises:
        ValueError: no kernel has this name.
    """
    return _named(kernel)(u.square())


def kernel_weights(
    queries: Tensor, keys: Tensor, *, kernel: str = "gaussian", width: float | Tensor = 1.0
) -> Tensor:
    """Attention weights α(q, kᵢ) = K(‖(q − kᵢ) / width‖) / Σⱼ K(‖(q − kⱼ) / width‖).

    The Gaussian kernel is normalised as a softmax of −u²/2, so its weights are finite at every
    width. A compact kernel (boxcar, triangular, Epanechnikov) with no key in reach is 0/0: that
    query's weights are NaN, which a plot shows as a gap.

    Args:
        queries: (queries,) or (queries, dim), floating point.
        keys: (keys,) or (keys, dim).
        kernel: a name in `KERNELS`.
        width: positive; a number, or (dim,) for one width per coordinate. May require gradients.

    Returns:
        (queries, keys); each row sums to 1, or is NaN.

    Raises:
        TypeError: queries or keys are not floating-point tensors.
        ValueError: unknown kernel, empty keys, sizes that do not fit, width ≤ 0 or not finite.
    """
    _named(kernel)
    queries, keys = _points("queries", queries), _points("keys", keys)
    if queries.shape[1] != keys.shape[1]:
        raise ValueError(
            f"queries have {queries.shape[1]} coordinates, keys {keys.shape[1]}; the same is needed"
        )
    if len(keys) == 0:
        raise ValueError("keys is empty; at least one key is needed")
    return _normalised(_squared_distances(queries, keys, width), kernel)


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
        values: (keys,) for regression, (keys, classes) one-hot for classification.
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
    """Predict each value from all the others: the honest test of a width without a second data set.

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
        raise ValueError(f"keys has {len(points)} entries; leaving one out needs at least 2")
    _named(kernel)
    itself = torch.eye(len(points), dtype=torch.bool, device=points.device)
    squared = _squared_distances(points, points, width)
    return _normalised(squared, kernel, excluded=itself) @ values


def leave_one_out_error(
    keys: Tensor, values: Tensor, *, kernel: str = "gaussian", width: float | Tensor = 1.0
) -> Tensor:
    """Mean squared error of `leave_one_out`, in the values' unit squared; a scalar.

    Infinite when some point has no other in reach: such a width can't predict every point.
    """
    errors = (leave_one_out(keys, values, kernel=kernel, width=width) - values).square().mean()
    return torch.where(errors.isnan(), math.inf, errors)


def best_width(
    keys: Tensor, values: Tensor, widths: Tensor, *, kernel: str = "gaussian"
) -> tuple[float, Tensor]:
    """Choose the width with the smallest leave-one-out error.

    Args:
        keys, values: as in `leave_one_out`.
        widths: (candidates,), positive.

    Returns:
        The best width, and the errors (candidates,).

    Raises:
        ValueError: `widths` is empty, or no width reaches every point.
    """
    if len(widths) == 0:
        raise ValueError("widths is empty; give at least one candidate")
    errors = torch.stack(
        [leave_one_out_error(keys, values, kernel=kernel, width=width.item()) for width in widths]
    )
    if not errors.isfinite().any():
        raise ValueError(
            f"no width up to {widths.max().item():g} reaches another point from every point; "
            "try larger widths"
        )
    return widths[errors.argmin()].item(), errors


def _named(kernel: str) -> Kernel:
    if kernel not in KERNELS:
        raise ValueError(f"kernel={kernel!r} is unknown; choose one of {', '.join(KERNELS)}")
    return KERNELS[kernel]


def _squared_distances(queries: Tensor, keys: Tensor, width: float | Tensor) -> Tensor:
    """‖(q − k) / width‖² for (queries, dim) and (keys, dim): (queries, keys)."""
    offsets = (queries[:, None, :] - keys[None, :, :]) / _checked_width(width, like=keys)
    return offsets.square().sum(dim=-1)


def _normalised(squared: Tensor, kernel: str, *, excluded: Tensor | None = None) -> Tensor:
    """Kernel values divided by their sum over the keys; pairs that are `excluded` count 0."""
    if excluded is None:
        excluded = torch.zeros_like(squared, dtype=torch.bool)
    if kernel == "gaussian":
        return (-0.5 * squared).masked_fill(excluded, -math.inf).softmax(dim=-1)
    values = _named(kernel)(squared).masked_fill(excluded, 0.0)
    return values / values.sum(dim=-1, keepdim=True)


def _points(name: str, points: Tensor) -> Tensor:
    """(n,) or (n, dim) → (n, dim)."""
    if not isinstance(points, Tensor):
        raise TypeError(f"{name} is a {type(points).__name__}; a torch.Tensor is needed")
    if not points.is_floating_point():
        raise TypeError(f"{name} has dtype {points.dtype}; a floating-point dtype is needed")
    if points.ndim not in (1, 2):
        raise ValueError(f"{name} has shape {tuple(points.shape)}; (n,) or (n, dim) is needed")
    return points if points.ndim == 2 else points[:, None]


def _checked_width(width: float | Tensor, *, like: Tensor) -> Tensor:
    width = torch.as_tensor(width, dtype=like.dtype, device=like.device)
    if not (width.isfinite() & (width > 0)).all():
        raise ValueError(f"width={width.tolist()}; a positive, finite width is needed")
    if width.ndim and width.shape not in [(1,), (like.shape[1],)]:
        raise ValueError(
            f"width has shape {tuple(width.shape)}; a number or ({like.shape[1]},) is needed"
        )
    return width


def _check_values(keys: Tensor, values: Tensor) -> None:
    if not isinstance(values, Tensor):
        raise TypeError(f"values is a {type(values).__name__}; a torch.Tensor is needed")
    if isinstance(keys, Tensor) and len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys, {len(values)} values; each key needs one value")
