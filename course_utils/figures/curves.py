"""Curves that are distinguished by color and dash pattern, with their names at their ends."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from course_utils.figures.picture import ArrayLike, Picture, subplots, to_numpy
from course_utils.figures.style import STYLE

LABEL_SIZE: float = STYLE["legend.fontsize"]


def show_curves(
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    alt: str,
    xlabel: str,
    ylabel: str,
    title: str | None = None,
    logx: bool = False,
    logy: bool = False,
    width: float = 6.0,
    height: float = 3.2,
) -> Picture:
    """Curves over a common x axis, distinguished by color and dash pattern, each with its name at its end.

    Args:
        x: (points,).
        curves: label → (points,).
        alt: what a reader who cannot see the picture needs to know.
        xlabel, ylabel, title: text on the axes and above them.
        logx, logy: use a logarithmic axis.
        width, height: inches.

    Raises:
        ValueError: a curve is not as long as `x`.
    """
    x = to_numpy(x)
    picture, ax = subplots(alt=alt, width=width, height=height)
    for index, (label, y) in enumerate(curves.items()):
        y = to_numpy(y)
        if y.shape != x.shape:
            raise ValueError(f"curve {label!r} has shape {y.shape}; x has {x.shape}")
        ax.plot(x, y, ["-", "--", "-.", ":"][index % 4], label=label)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title or "")
    ax.set(xscale="log" if logx else "linear", yscale="log" if logy else "linear")
    if len(curves) > 1:
        label_lines(ax)
    return picture


def label_lines(ax: Axes, *, gap: float = 4) -> None:
    """Write the label of each line at its right end, in its color, in place of a legend.

    Call it when all lines are drawn and the limits of the axes are set. Labels of ends that lie close together move
    apart. Lines without a label get none.

    Args:
        gap: points between a line and its label.
    """
    lines = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
    if not lines:
        return
    ax.get_xlim(), ax.get_ylim()  # matplotlib finds the limits when it is asked for them
    ends = []
    for line in lines:
        points = np.column_stack(line.get_data()).astype(float)
        ends.append(points[np.isfinite(points).all(axis=1)][-1])
    heights = [  # in points; the line of `axhline` has coordinates of its own
        line.get_transform().transform(end)[1] * 72 / ax.figure.dpi
        for line, end in zip(lines, ends, strict=True)
    ]
    for line, end, height, label_height in zip(lines, ends, heights, _apart(heights), strict=True):
        ax.annotate(
            str(line.get_label()), end, (gap, label_height - height), xycoords=line.get_transform(),
            textcoords="offset points", va="center", color=line.get_color(), fontsize=LABEL_SIZE,
        )  # fmt: skip


def _apart(heights: Sequence[float]) -> np.ndarray:
    """Heights in points near the given ones, in the same order, at least a label's height apart."""
    order = np.argsort(heights, kind="stable")
    spacing = 1.25 * LABEL_SIZE * np.arange(len(order))
    # Labels do not overlap where heights without the spacing never fall: the mean of both envelopes does not.
    shifted = np.take(heights, order) - spacing
    upper = np.maximum.accumulate(shifted)
    lower = np.minimum.accumulate(shifted[::-1])[::-1]
    moved = np.empty(len(order))
    moved[order] = (upper + lower) / 2 + spacing
    return moved
