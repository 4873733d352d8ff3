"""Pictures: functions from arrays to a figure, in one style, with one color scale and an alt text each.

Nothing here touches pyplot or the settings of the session: a `Picture` is a matplotlib figure that
displays itself, so a cell shows exactly the figure on its last line. Taught from *Queries, keys and
values* on.
"""

import functools
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from PIL import Image

COLORS = {
    "black": "#000000", "orange": "#E69F00", "sky": "#56B4E9", "green": "#009E73",
    "yellow": "#F0E442", "blue": "#0072B2", "vermilion": "#D55E00", "purple": "#CC79A7",
}  # fmt: skip
"""Eight colors that color-blind readers can tell apart (Okabe and Ito, 2008)."""

CYCLE = ["blue", "vermilion", "green", "purple", "orange", "sky", "black"]

STYLE: dict[Any, Any] = {
    "figure.dpi": 96, "figure.facecolor": "white", "font.size": 10,
    "axes.titlesize": 10, "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=[COLORS[name] for name in CYCLE]),
    "legend.frameon": False, "legend.fontsize": 9, "lines.linewidth": 1.8, "image.cmap": "Blues",
}  # fmt: skip
"""matplotlib's settings while something is added to a picture, and while it is drawn."""

MAX_WIDTH = 9.0
"""Inches; at 96 dots per inch 864 pixels, which fit the text column of Lab and of the book."""

ArrayLike = torch.Tensor | np.ndarray | Sequence


def _styled(method: Callable[..., Any]) -> Any:
    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        with mpl.rc_context(STYLE):
            return method(*args, **options)

    return call


class PictureAxes(Axes):
    """Axes whose additions follow `STYLE`, whatever the settings of the session are."""

    def __init__(self, *args: Any, **options: Any):
        with mpl.rc_context(STYLE):
            super().__init__(*args, **options)
        self.tick_params(labelsize=STYLE["xtick.labelsize"])  # also of ticks that come later


for _name in (
    "plot", "step", "errorbar", "axhline", "axvline", "hlines", "vlines", "contour", "scatter", "bar",
    "imshow", "text", "annotate", "legend", "set_title",
):  # fmt: skip
    setattr(PictureAxes, _name, _styled(getattr(Axes, _name)))


class Picture(Figure):
    """A matplotlib figure that displays itself, once, with an alt text.

    Args:
        alt: what a reader who cannot see the picture needs to know.
        width, height: inches; `width` is at most 9.

    Raises:
        ValueError: the alt text is empty, or the size is not positive or too wide.
    """

    canvas: FigureCanvasAgg

    def __init__(self, *, alt: str, width: float = 8.0, height: float = 3.0):
        if not alt.strip():
            raise ValueError("alt='' says nothing; describe the picture in one sentence")
        if not (0 < width <= MAX_WIDTH and height > 0):
            raise ValueError(
                f"width={width}, height={height}: inches are needed, 0 < width <= {MAX_WIDTH:g}, height > 0"
            )
        with mpl.rc_context(STYLE):
            super().__init__(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(self)
        self.alt = alt

    colorbar, draw = _styled(Figure.colorbar), _styled(Figure.draw)

    def png(self, *, dpi: float | None = None) -> bytes:
        """The picture as PNG bytes; the same picture gives the same bytes."""
        usual, buffer = self.dpi, io.BytesIO()
        try:
            self.set_dpi(dpi or usual)
            self.canvas.draw()
            pixels = Image.fromarray(np.asarray(self.canvas.buffer_rgba())).convert("RGB")
        finally:
            self.set_dpi(usual)
        pixels.save(buffer, "PNG", compress_level=6)
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"Picture(alt={self.alt!r})"

    def _ipython_display_(self) -> None:
        from IPython.display import display

        width, height = self.canvas.get_width_height()
        display(
            {"image/png": self.png(), "text/plain": repr(self)},
            metadata={"image/png": {"alt": self.alt, "width": width, "height": height}},
            raw=True,
        )


def subplots(
    rows: int = 1,
    columns: int = 1,
    *,
    alt: str,
    width: float = 8.0,
    height: float = 3.0,
    **grid: Any,
) -> tuple[Picture, Any]:
    """A picture with axes in `rows` × `columns`, like pyplot's function of this name.

    Args:
        alt: what a reader who cannot see the picture needs to know.
        width, height: of the whole picture, in inches.
        grid: handed to `Figure.subplots` (`sharex`, `sharey`, `width_ratios`, `squeeze`, …).

    Returns:
        The picture, and its axes: one `Axes`, or an array of them.
    """
    picture = Picture(alt=alt, width=width, height=height)
    return picture, picture.subplots(rows, columns, subplot_kw={"axes_class": PictureAxes}, **grid)


def to_numpy(array: ArrayLike) -> np.ndarray:
    """A NumPy array from a tensor on any device and with any gradient, an array or a list."""
    if isinstance(array, torch.Tensor):
        array = array.detach().cpu()
        return (array.float() if array.is_floating_point() else array).numpy()
    return np.asarray(array)


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
    cmap: str = "Blues",
    annotate: bool = False,
) -> AxesImage:
    """Draw one map on given axes: queries downwards, keys to the right.

    Args:
        matrix: (queries, keys).
        queries, keys: tokens that label the rows and the columns.
        vmin, vmax: the values at the two ends of the color scale; weights lie in 0–1.
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
    image = ax.imshow(
        matrix, cmap=cmap, vmin=vmin, vmax=vmax, aspect="auto", interpolation="nearest"
    )
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if keys is not None:
        ax.set_xticks(
            range(len(keys)), keys, rotation=45 if len("".join(map(str, keys))) > 30 else 0
        )
    if queries is not None:
        ax.set_yticks(range(len(queries)), queries)
    ax.set(xlabel=xlabel or "", ylabel=ylabel or "", title=title or "")
    if annotate:
        _write_values(ax, matrix, vmin, vmax)
    return image


def _write_values(ax: Axes, matrix: np.ndarray, vmin: float, vmax: float) -> None:
    for (row, column), value in np.ndenumerate(matrix):
        color = "white" if (value - vmin) / (vmax - vmin) > 0.55 else "black"
        ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=color)


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
    cmap: str = "Blues",
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
        vmin, vmax: ends of the one color scale; for weights leave them at 0 and 1.
        width, height: inches; by default each map is about 2.6 wide and keeps its proportions.

    Raises:
        ValueError: `matrices` has another number of axes, or labels or titles do not fit.
    """
    matrices = to_numpy(matrices)
    if not 2 <= matrices.ndim <= 4:
        raise ValueError(f"matrices has shape {matrices.shape}; (…, queries, keys), 2 to 4 axes")
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
    picture.colorbar(image, ax=axes, shrink=0.8, pad=0.02).outline.set_visible(False)
    return picture


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
    """Curves over a common x axis, told apart by color and dash pattern, with a legend.

    Args:
        x: (points,).
        curves: label → (points,).
        logx, logy: use a logarithmic axis.

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
        ax.legend()
    return picture


def show_images(
    images: ArrayLike,
    *,
    alt: str,
    titles: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    columns: int | None = None,
    vmax: float | None = None,
    width: float | None = None,
) -> Picture:
    """Images in rows and columns, each with a title and, if given, with weights of its patches over it.

    Args:
        images: (n, channels, height, width), 1 channel for gray or 3 for color; uint8, or floating
            point from -1 to 1.
        alt: what a reader who cannot see the picture needs to know.
        titles: one for each image.
        weights: (n, rows, columns), drawn over the images as in `overlay`, on one scale.
        columns: images per row; by default up to 10.
        vmax: the weight at the upper end of the scale; the largest one by default.
        width: inches; by default each image is about 0.9 wide.

    Raises:
        ValueError: `images` has another number of axes, or titles or weights do not fit.
    """
    images = image_pixels(images)
    if titles is not None and len(titles) != len(images):
        raise ValueError(f"titles has {len(titles)} entries; {len(images)} images need as many")
    if weights is not None:
        weights = to_numpy(weights)
        if weights.ndim != 3 or len(weights) != len(images):
            raise ValueError(
                f"weights has shape {weights.shape}; ({len(images)}, rows, columns) is needed"
            )
        vmax = vmax or float(weights.max())
    columns = min(columns or 10, len(images))
    rows = -(-len(images) // columns)
    width = width or min(MAX_WIDTH, max(0.9 * columns, 2.0))
    height = rows * (width / columns + (0.26 if titles is not None else 0.05)) + 0.1
    picture, axes = subplots(rows, columns, alt=alt, width=width, height=height, squeeze=False)
    for ax in axes.flat[len(images) :]:
        ax.set_axis_off()
    for index, (ax, image) in enumerate(zip(axes.flat, images, strict=False)):
        draw_image(ax, image, title=titles[index] if titles is not None else None)
        if weights is not None and vmax is not None:
            overlay(ax, weights[index], size=image.shape[:2], vmax=vmax)
    return picture


def image_pixels(images: ArrayLike) -> np.ndarray:
    """(n, channels, height, width), uint8 or from -1 to 1 → (n, height, width, channels), from 0 to 1.

    Raises:
        ValueError: another number of axes, or neither 1 nor 3 channels.
    """
    pixels = to_numpy(images)
    if pixels.ndim != 4 or pixels.shape[1] not in (1, 3):
        raise ValueError(f"images has shape {pixels.shape}; (n, 1 or 3 channels, height, width)")
    pixels = pixels / 255 if pixels.dtype == np.uint8 else (pixels + 1) / 2
    return np.clip(np.moveaxis(pixels, 1, -1), 0, 1)


def draw_image(ax: Axes, pixels: np.ndarray, *, title: str | None = None) -> AxesImage:
    """Draw one image, (height, width, channels) from 0 to 1, on given axes; returns its artist."""
    shown = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    artist = ax.imshow(shown, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.set_title(title or "", fontsize=9)
    return artist


def overlay(
    ax: Axes, weights: ArrayLike, *, size: tuple[int, int], vmax: float, opacity: float = 0.75
) -> AxesImage:
    """Draw the weights of an image's patches over it, each patch as one square: what is not blurred.

    Args:
        weights: (rows, columns) of the grid of patches.
        size: height and width of the image under it, in pixels.
        vmax: the weight that is drawn with full `opacity`; 0 is not drawn at all.

    Returns:
        The artist; `set_data(overlay_colors(weights, vmax=vmax))` redraws it.
    """
    colors = overlay_colors(weights, vmax=vmax, opacity=opacity)
    extent = (-0.5, size[1] - 0.5, size[0] - 0.5, -0.5)
    return ax.imshow(colors, extent=extent, interpolation="nearest")


def overlay_colors(weights: ArrayLike, *, vmax: float, opacity: float = 0.75) -> np.ndarray:
    """(rows, columns) weights → (rows, columns, 4): orange, the more opaque the larger the weight."""
    weights = to_numpy(weights)
    colors = np.empty((*weights.shape, 4))
    colors[..., :3] = mpl.colors.to_rgb(COLORS["orange"])
    colors[..., 3] = opacity * np.clip(weights / vmax, 0, 1)
    return colors
