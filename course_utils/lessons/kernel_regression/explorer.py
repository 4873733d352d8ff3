"""The fit, the weights behind it and the leave-one-out error, side by side."""

from collections.abc import Callable, Sequence

import matplotlib as mpl
import torch
from torch import Tensor

from course_utils.data import noisy_sine
from course_utils.figures import COLORS, heatmap, subplots, to_numpy
from course_utils.lessons.explorer import Choice, Explorer, Slider
from course_utils.pooling import kernel_weights, leave_one_out_error

__all__ = ["kernel_width"]

KERNELS = ("gaussian", "boxcar", "triangular", "epanechnikov")
WIDTHS = (
    0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.25, 0.33, 0.4, 0.5, 0.7, 0.85, 1.0, 1.4, 2.0, 3.0, 10.0,
)  # fmt: skip
QUERIES = 60
TOP = 0.5
"""Weight at the dark end of the map's scale; larger ones are as dark."""


def kernel_width(
    x: Tensor | None = None,
    y: Tensor | None = None,
    *,
    truth: Callable[[Tensor], Tensor] | None = None,
    widths: Sequence[float] = WIDTHS,
) -> Explorer:
    """Kernel regression of `y` on `x` with four kernels at any of `widths`.

    Args:
        x, y: (n,) each, at least two points; by default the 40 points of *Kernel regression*.
        truth: the function without noise, if it is known.
        widths: in the unit of x, increasing.
    """
    if x is None or y is None:
        data = noisy_sine(40)
        x, y, truth = data.x, data.y, data.truth
    order = x.argsort()
    x, y = x[order], y[order]
    queries = torch.linspace(x[0].item(), x[-1].item(), QUERIES)
    errors = {kernel: [_error(x, y, kernel, width) for width in widths] for kernel in KERNELS}
    finite = [error for row in errors.values() for error in row if error < float("inf")]

    def picture():
        fig, (left, middle, right) = subplots(
            1, 3, alt="Fit, weights and error", width=8.5, height=2.75, width_ratios=[1.15, 1, 1]
        )
        left.plot(x, y, "o", color="0.6", markersize=4, label="data")
        if truth is not None:
            left.plot(queries, truth(queries), "--", color="black", linewidth=1.2, label="truth")
        (fit,) = left.plot(queries, queries, color=COLORS["vermilion"], label="fit")
        margin = 0.08 * (y.max() - y.min()).item()
        left.set(title="Fit", xlabel="x", ylabel="y")
        left.set_ylim(y.min().item() - margin, y.max().item() + 2.5 * margin)
        left.legend(loc="upper center", ncols=3, columnspacing=0.8, handlelength=1.2, fontsize=8)

        colors = mpl.colormaps["Blues"].with_extremes(bad="0.6")  # a row that is NaN
        image = heatmap(
            middle,
            torch.zeros(QUERIES, len(x)),
            title="Weights (gray: NaN)",
            xlabel="keys, from left to right",
            ylabel="queries",
            vmax=TOP,
        )
        image.set_cmap(colors)
        middle.set(xticks=[], yticks=[])
        bar = fig.colorbar(image, ax=middle, ticks=[0, TOP], pad=0.03)
        bar.ax.set_yticklabels(["0", f"≥ {TOP:g}"])
        bar.outline.set_visible(False)

        (curve,) = right.plot(widths, widths, ".-", color=COLORS["blue"], linewidth=1.2)
        (here,) = right.plot([], [], "o", color=COLORS["vermilion"], markersize=8)
        position = right.axvline(widths[0], color=COLORS["vermilion"], linewidth=0.9)
        ticks = [0.1, 1, 10]
        right.set(title="Leave-one-out error: 0.000", xlabel="width σ", xscale="log")
        right.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        right.set_xticks([], minor=True)
        spread = max(finite) - min(finite)
        right.set_ylim(min(finite) - 0.1 * spread, max(finite) + 0.1 * spread)

        def draw(kernel: str, width: float) -> str:
            weights = kernel_weights(queries, x, kernel=kernel, width=width)
            error = errors[kernel][widths.index(width)]
            known = error < float("inf")
            fit.set_ydata(weights @ y)
            image.set_data(to_numpy(weights))
            curve.set_ydata([e if e < float("inf") else float("nan") for e in errors[kernel]])
            here.set_data([width] if known else [], [error] if known else [])
            position.set_xdata([width, width])
            right.set_title(
                f"Leave-one-out error: {error:.2f}" if known else "A point has no neighbor"
            )
            return _sentence(kernel, width, weights, error)

        return fig, draw

    controls = {
        "kernel": Choice(list(KERNELS), "gaussian", label="Kernel"),
        "width": Slider(
            widths,
            0.5 if 0.5 in widths else widths[len(widths) // 2],
            label="Width σ",
            format="{:g}",
        ),
    }
    return Explorer("kernel_width", picture, controls)


def _error(x: Tensor, y: Tensor, kernel: str, width: float) -> float:
    return leave_one_out_error(x, y, kernel=kernel, width=width).item()


def _sentence(kernel: str, width: float, weights: Tensor, error: float) -> str:
    gaps = weights.isnan().any(dim=1)
    keys = (1 / weights[~gaps].square().sum(dim=1)).mean().item()
    about = f"about {keys:.0f} keys" if keys > 1.5 else "about one key"
    missing = (
        f" For {100 * gaps.float().mean().item():.0f} % of the queries no key is in reach: gaps."
        if gaps.any()
        else ""
    )
    verdict = (
        f"The leave-one-out error is {error:.2f}."
        if error < float("inf")
        else "Leave-one-out has no error here: a point has no neighbor in reach."
    )
    return (
        f"{kernel.capitalize()} kernel of width {width:g}: each query averages {about}, "
        f"so the fit is {_looks(keys)}.{missing} {verdict}"
    )


def _looks(keys: float) -> str:
    return "ragged" if keys < 8 else "smooth" if keys < 16 else "too flat"
