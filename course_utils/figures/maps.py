"""Heatmaps of attention weights: one color scale for all maps of a figure, queries downwards, keys to the right."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.image import AxesImage

from course_utils.figures.picture import MAX_WIDTH, ArrayLike, Picture, subplots, to_numpy
from course_utils.figures.style import COLORS


def heatmap(
    ax: Axes,
    matrix: ArrayLike,
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    xlabel: str | None = "Keys",
    ylabel: str | None = "Queries",
    title: str | None = None,
    vmin: float = 0.0,
    vmax: float = 1.0,
    cmap: str = "heat",
    annotate: bool = False,
) -> AxesImage:
    """Draw one map on given axes: queries downwards, keys to the right.

    Args:
        ax: where it is drawn.
        matrix: (queries, keys).
        queries, keys: tokens that label the rows and the columns.
        xlabel, ylabel, title: text on the axes and above them.
        vmin, vmax: the values at the two ends of the color scale; weights lie in 0–1.
        cmap: name of a color map; "heat" for weights, "signs" for numbers of both signs.
        annotate: write each value into its cell; for maps of up to about 10 × 10.

    Returns:
        The image artist, whose `set_data` redraws the map.

    Raises:
        ValueError: `matrix` is not two-dimensional, or the labels do not fit it.
    """
    matrix = to_numpy(matrix)
    if matrix.ndim != 2:
        raise ValueError(f"matrix has shape {matrix.shape}; (queries, keys) is needed")
    for name, labels, count in (("queries", queries, len(matrix)), ("keys", keys, matrix.shape[1])):
        if labels is not None and len(labels) != count:
            raise ValueError(f"{name} has {len(labels)} labels; the matrix needs {count}")
    square = max(matrix.shape) <= 4 * min(matrix.shape)
    image = ax.imshow(
        matrix,
        cmap=cmap,
        vmin=vmin,
        vmax=vmax,
        aspect="equal" if square else "auto",
        interpolation="nearest",
    )
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    text: dict[str, Any] = {"parse_math": False}  # a token is no formula: "$5-$9" is a price
    if keys is not None:
        slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        rotation: dict[str, Any] = slanted if len("".join(map(str, keys))) > 30 else {}
        ax.set_xticks(range(len(keys)), keys, **text, **rotation)
    if queries is not None:
        ax.set_yticks(range(len(queries)), queries, **text)
    ax.set(xlabel=xlabel or "", ylabel=ylabel or "", title=title or "")
    if annotate:
        _write_values(ax, matrix, vmin, vmax)
    return image


def _write_values(ax: Axes, matrix: np.ndarray, vmin: float, vmax: float) -> None:
    """Write each value into its cell, light on dark cells."""
    for (row, column), value in np.ndenumerate(matrix):
        color = COLORS["paper" if (value - vmin) / (vmax - vmin) > 0.6 else "ink"]
        ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=color)


def show_heatmaps(
    matrices: ArrayLike,
    *,
    alt: str,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    xlabel: str = "Keys",
    ylabel: str = "Queries",
    vmin: float = 0.0,
    vmax: float = 1.0,
    cmap: str = "heat",
    annotate: bool = False,
    width: float | None = None,
    height: float | None = None,
) -> Picture:
    """Maps in rows and columns under one color scale.

    Args:
        matrices: (queries, keys), or (columns, queries, keys), or (rows, columns, queries, keys).
        alt: what a reader who cannot see the picture needs to know.
        queries, keys: tokens that label both axes, the same for each map.
        titles: one for each column, or one for each map.
        vmin, vmax: ends of the one color scale. Weights lie in 0–1; where all are small, a smaller `vmax`
            shows them. Values beyond an end have its color, and the bar says so: "0.3 or more".
        width, height: inches; by default each map is about 2.6 wide and keeps its proportions.

    Raises:
        ValueError: `matrices` has another number of axes, or labels or titles do not fit.
    """
    matrices = to_numpy(matrices)
    if not 2 <= matrices.ndim <= 4:
        raise ValueError(f"matrices has shape {matrices.shape}; (…, queries, keys), 2 to 4 axes")
    if not matrices.size:
        raise ValueError(f"matrices has shape {matrices.shape}; there is nothing to show")
    matrices = matrices.reshape((1,) * (4 - matrices.ndim) + matrices.shape)
    rows, columns, num_queries, num_keys = matrices.shape
    if titles is not None and len(titles) not in (columns, rows * columns):
        raise ValueError(f"titles has {len(titles)} entries; {columns} columns need {columns}")
    width = width or min(MAX_WIDTH, 2.6 * columns + 1.2)
    map_height = min(max((width - 1.2) / columns * num_queries / num_keys, 1.2), 3.6)
    height = height or rows * (map_height + 0.45) + 0.35
    picture, axes = subplots(
        rows, columns, alt=alt, width=width, height=height, squeeze=False, sharex=True, sharey=True
    )
    shared: dict[str, Any] = {"queries": queries, "keys": keys, "annotate": annotate}
    for index, ax in enumerate(axes.flat):
        row, column = divmod(index, columns)
        image = heatmap(
            ax, matrices[row, column], **shared, vmin=vmin, vmax=vmax, cmap=cmap,
            xlabel=xlabel if row == rows - 1 else None,
            ylabel=ylabel if column == 0 else None,
            title=titles[index] if titles and (row == 0 or len(titles) > columns) else None,
        )  # fmt: skip
    if keys is not None and _crowded(keys, 72 * (width - 1.2) / columns / num_keys):
        for ax in axes.flat:
            ax.tick_params(axis="x", labelsize=8)
    if annotate:
        return picture  # with numbers in the cells, no color bar is needed
    bar = picture.colorbar(image, ax=axes, shrink=0.8, pad=0.02)
    bar.outline.set_visible(False)
    _name_ends(bar, matrices, vmin, vmax)
    return picture


def _crowded(labels: Sequence[str], room: float) -> bool:
    """Whether two neighboring labels are less than a letter apart, with columns of `room` points."""
    return any(
        5.2 * (len(str(left)) + len(str(right)) + 2) / 2 > room for left, right in pairwise(labels)
    )


def _name_ends(bar: Colorbar, matrices: np.ndarray, vmin: float, vmax: float) -> None:
    """Label an end of the scale "or more" or "or less" where values lie beyond it."""
    rounding = 1e-6 * (vmax - vmin)
    ends = {}
    if np.nanmin(matrices) < vmin - rounding:
        ends[vmin] = f"{vmin:g} or less"
    if np.nanmax(matrices) > vmax + rounding:
        ends[vmax] = f"{vmax:g} or more"
    if ends:
        room = 0.05 * (vmax - vmin)
        inner = [
            tick
            for tick in bar.get_ticks()
            if vmin <= tick <= vmax and all(abs(tick - end) > room for end in ends)
        ]
        bar.set_ticks([*ends, *inner], labels=[*ends.values(), *(f"{tick:g}" for tick in inner)])
