"""The explorer of *Kernel regression*: the fit, the weights behind it and the leave-one-out error, side by side."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import matplotlib as mpl
import torch
from matplotlib.axes import Axes
from torch import Tensor

from course_utils.data.regression import noisy_sine
from course_utils.figures import COLORS, heatmap, subplots, to_numpy
from course_utils.kit.controls import Choice, Slider
from course_utils.kit.explorer import Explorer
from course_utils.pooling import kernel_weights, leave_one_out_error

__all__ = ["kernel_width"]

KERNELS = ("gaussian", "boxcar", "triangular", "epanechnikov")
WIDTHS = (
    0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.25, 0.33, 0.4, 0.5, 0.7, 0.85, 1.0, 1.4, 2.0, 3.0, 10.0,
)  # fmt: skip
QUERIES = 60
DARKEST_WEIGHT = 0.5
"""The weight at the dark end of the map's scale; larger ones are as dark."""


def kernel_width(
    x: Tensor | None = None,
    y: Tensor | None = None,
    *,
    truth: Callable[[Tensor], Tensor] | None = None,
) -> Explorer:
    """Kernel regression of `y` on `x` with four kernels at any of `WIDTHS`.

    Args:
        x, y: (n,) each, at least two points; by default the 40 points of *Kernel regression*.
        truth: the function without noise, if it is known.
    """
    if x is None or y is None:
        data = noisy_sine(40)
        x, y, truth = data.x, data.y, data.truth
    order = x.argsort()
    x, y = x[order], y[order]
    regression = Regression(x, y, truth, errors_by_kernel(x, y))
    controls = {
        "kernel": Choice(KERNELS, "gaussian", label="Kernel"),
        "width": Slider(WIDTHS, 0.5, label="Width σ", format="{:g}"),
    }
    return Explorer("kernel_width", lambda: Fit(regression), controls)


@dataclass(frozen=True)
class Regression:
    """Points in order of x, and the leave-one-out error of each kernel at each width.

    Attributes:
        x, y: (n,) each.
        truth: the function without noise, if it is known.
        errors: those of `errors_by_kernel`.
    """

    x: Tensor
    y: Tensor
    truth: Callable[[Tensor], Tensor] | None
    errors: dict[str, list[float]]


def errors_by_kernel(x: Tensor, y: Tensor) -> dict[str, list[float]]:
    """Kernel → the leave-one-out error at each of `WIDTHS`, infinite where a point has no neighbor."""
    errors: dict[str, list[float]] = {kernel: [] for kernel in KERNELS}
    for kernel, of_kernel in errors.items():
        for width in WIDTHS:
            error = leave_one_out_error(x, y, kernel=kernel, width=width)
            of_kernel.append(error.item())
    return errors


class Fit:
    """Data and fit, the map of weights, and the curve of errors over the widths."""

    def __init__(self, regression: Regression):
        """The fit at 60 places from the first x to the last."""
        self.regression = regression
        first, last = regression.x[0].item(), regression.x[-1].item()
        self.queries = torch.linspace(first, last, QUERIES)
        self.picture, (left, middle, right) = subplots(
            1, 3, alt="Fit, weights and error", width=8.5, height=2.75, width_ratios=[1.15, 1, 1]
        )
        self._set_fit(left)
        self._set_weights(middle)
        self._set_errors(right)

    def _set_fit(self, ax: Axes) -> None:
        x, y, truth = self.regression.x, self.regression.y, self.regression.truth
        ax.plot(x, y, "o", color="0.6", markersize=4, label="data")
        if truth is not None:
            style = {"color": "black", "linewidth": 1.2, "label": "truth"}
            ax.plot(self.queries, truth(self.queries), "--", **style)
        (self.fit,) = ax.plot(self.queries, self.queries, color=COLORS["query"], label="fit")
        margin = 0.08 * (y.max() - y.min()).item()
        ax.set(title="Fit", xlabel="x", ylabel="y")
        ax.set_ylim(y.min().item() - margin, y.max().item() + 2.5 * margin)
        ax.legend(loc="upper center", ncols=3, columnspacing=0.8, handlelength=1.2, fontsize=8)

    def _set_weights(self, ax: Axes) -> None:
        self.weights = heatmap(
            ax,
            torch.zeros(QUERIES, len(self.regression.x)),
            title="Weights (gray: NaN)",
            xlabel="keys, from left to right",
            ylabel="queries",
            vmax=DARKEST_WEIGHT,
        )
        self.weights.set_cmap(mpl.colormaps["heat"].with_extremes(bad="0.6"))  # NaN is gray
        ax.set(xticks=[], yticks=[])
        bar = self.picture.colorbar(self.weights, ax=ax, ticks=[0, DARKEST_WEIGHT], pad=0.03)
        bar.ax.set_yticklabels(["0", f"≥ {DARKEST_WEIGHT:g}"])
        bar.outline.set_visible(False)

    def _set_errors(self, ax: Axes) -> None:
        (self.curve,) = ax.plot(WIDTHS, WIDTHS, ".-", color=COLORS["key"], linewidth=1.2)
        (self.here,) = ax.plot([], [], "o", color=COLORS["query"], markersize=8)
        self.width = ax.axvline(WIDTHS[0], color=COLORS["query"], linewidth=0.9)
        ax.set(xlabel="width σ", xscale="log")
        self.title = ax.set_title("Leave-one-out error: 0.000")
        ticks = [0.1, 1, 10]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.set_xticks([], minor=True)
        finite = [e for errors in self.regression.errors.values() for e in errors if e < math.inf]
        spread = max(finite) - min(finite)
        ax.set_ylim(min(finite) - 0.1 * spread, max(finite) + 0.1 * spread)

    def draw(self, kernel: str, width: float) -> str:
        """Fit with this kernel at this width."""
        x, y, errors = self.regression.x, self.regression.y, self.regression.errors[kernel]
        weights = kernel_weights(self.queries, x, kernel=kernel, width=width)
        error = errors[WIDTHS.index(width)]
        finite = error < math.inf
        self.fit.set_ydata(weights @ y)
        self.weights.set_data(to_numpy(weights))
        self.curve.set_ydata([e if e < math.inf else math.nan for e in errors])
        self.here.set_data([width] if finite else [], [error] if finite else [])
        self.width.set_xdata([width, width])
        self.title.set_text(
            f"Leave-one-out error: {error:.2f}" if finite else "A point has no neighbor"
        )
        return _sentence(kernel, width, weights, error)


def _sentence(kernel: str, width: float, weights: Tensor, error: float) -> str:
    """What the picture shows, in words."""
    gaps = weights.isnan().any(dim=1)
    num_keys = (1 / weights[~gaps].square().sum(dim=1)).mean().item()
    about = f"about {num_keys:.0f} keys" if num_keys > 1.5 else "about one key"
    parts = [f"{kernel.capitalize()} kernel of width {width:g}: each query averages {about}."]
    if gaps.any():
        share = gaps.float().mean().item()
        parts.append(f"For {share:.0%} of the queries no key is in reach: gaps.")
    if error < math.inf:
        parts.append(f"The leave-one-out error is {error:.2f}.")
    else:
        parts.append("There is no leave-one-out error here: a point has no neighbor in reach.")
    return " ".join(parts)
