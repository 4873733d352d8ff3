"""`Picture`: a matplotlib figure that displays itself with an alt text.

A picture is displayed as HTML, `<img alt="…" src="data:image/svg+xml;base64,…">`, because JupyterLab reads no alt text
from the metadata of an image output. JupyterLab, nbviewer, Colab and GitHub all show such an image; GitHub removes an
inline `<svg>`. The book puts the SVG into its pages, where it has their fonts and colors. nbval compares HTML outputs;
`tests/nbval_sanitize.cfg` removes the drawing, which differs between processors, and keeps the alt text.

SVG has no background and takes the page's colors (`svg`); a picture that is shown as pixels has a white background.
"""

import base64
import contextlib
import functools
import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator
from PIL import Image

from course_utils.figures.style import BOX, SETTINGS, STYLE, missing_letters, with_boxes
from course_utils.figures.svg import Measuring, standalone, svg

MAX_WIDTH = 9.0
"""Inches; at 96 dots per inch 864 pixels, which fit the text column of Lab and of the book."""

SMALLEST = 8.25
"""Smallest font size in points: eleven pixels."""

SHARPNESS = 2
"""Pixels of a PNG in each direction for one pixel of the page, for screens of high resolution."""

MAX_SVG = 60_000
"""Bytes of SVG above which a picture is shown as pixels."""

COLOR_TOLERANCE = 24
"""Change of a color channel, of 255, that is not visible."""

ArrayLike = torch.Tensor | np.ndarray | Sequence


def _styled(method: Callable[..., Any]) -> Any:
    """The method, called with the settings of our pictures."""

    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        with mpl.rc_context(SETTINGS):
            return method(*args, **options)

    return call


class _Renderer(Measuring, RendererAgg):
    """matplotlib's renderer, with a box for each letter that the fonts lack, and no warning."""

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):
        text = s if ismath else with_boxes(s)
        super().draw_text(gc, x, y, text, prop, angle, ismath, mtext)


class _Canvas(FigureCanvasAgg):
    def get_renderer(self) -> _Renderer:
        size = (*self.get_width_height(physical=True), self.figure.dpi)
        if self._lastKey != size:
            self.renderer, self._lastKey = _Renderer(*size), size  # type: ignore[assignment]
        return self.renderer


def _with_settings(names: Iterable[str]) -> Callable[[type], type]:
    """A decorator of classes: methods of these names use the settings of our pictures.

    matplotlib reads its settings whenever something is added to axes, which a page does long after `subplots` has
    returned, and once more when it draws.
    """

    def decorate(kind: Any) -> Any:
        for name in names:
            setattr(kind, name, _styled(getattr(kind, name)))
        return kind

    return decorate


def _drawing_methods() -> Iterator[str]:
    """Names of the methods of axes that read matplotlib's settings: those that draw, make ticks or labels."""
    for name, method in vars(Axes).items():
        if callable(method) and name != "set" and not name.startswith(("_", "get_")):
            yield name
    yield from ("clear", "grid", "minorticks_on", "set_xscale", "set_yscale", "twinx", "twiny")
    yield from ("set_xticks", "set_yticks", "set_xticklabels", "set_yticklabels")


@_with_settings(["__init__", *_drawing_methods()])
class PictureAxes(Axes):
    """Axes whose methods use `SETTINGS` and not the settings of the session."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.tick_params(labelsize=STYLE["xtick.labelsize"])  # also of ticks that come later
        for axis in (self.xaxis, self.yaxis):  # `locator_params` would move the limits, too
            axis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))

    def tick_params(self, axis: Any = "both", **options: Any) -> None:
        """matplotlib's method, with labels of at least `SMALLEST` points."""
        if "labelsize" in options:
            options["labelsize"] = max(SMALLEST, options["labelsize"])
        super().tick_params(axis, **options)


@_with_settings(["colorbar", "draw", "legend", "suptitle", "svg", "text"])
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
        with mpl.rc_context(SETTINGS):
            super().__init__(figsize=(width, height), layout="constrained")
        _Canvas(self)
        self.alt = alt

    def draw(self, renderer: Any) -> None:
        """Draw as matplotlib does, with text of at least `SMALLEST` points."""
        for text in self.findobj(Text):
            text.set_fontsize(max(SMALLEST, text.get_fontsize()))
        super().draw(renderer)

    def pixels(self, *, dpi: float | None = None) -> Image.Image:
        """The picture as RGB pixels, at 96 dots per inch by default; □ for letters that our fonts lack."""
        usual = self.dpi
        try:
            self.set_dpi(dpi or usual)
            self.canvas.draw()
            return Image.fromarray(np.asarray(self.canvas.buffer_rgba())).convert("RGB")
        finally:
            self.set_dpi(usual)

    def png(self, *, dpi: float | None = None) -> bytes:
        """The picture as PNG bytes; the same picture gives the same bytes."""
        buffer = io.BytesIO()
        self.pixels(dpi=dpi).save(buffer, "PNG", compress_level=6)
        return buffer.getvalue()

    def savefig(self, *args: Any, **options: Any) -> None:
        """Write the picture to a file as matplotlib does, and warn where it shows boxes for letters."""
        if missing := missing_letters("".join(text.get_text() for text in self.findobj(Text))):
            warnings.warn(
                f"our fonts have no {' '.join(missing)}, so the file shows {BOX} instead",
                stacklevel=2,
            )
        super().savefig(*args, **options)

    def svg(self) -> str:
        """The picture as SVG in the page's colors, for a page that has them."""
        return svg(self)

    def _repr_html_(self) -> str:
        """HTML of the picture: SVG, or PNG where the SVG is large or `svg` cannot write the figure.

        With letters that our fonts lack it is SVG of any size, since the browser has other fonts.
        """
        missing = missing_letters("".join(text.get_text() for text in self.findobj(Text)))
        with contextlib.suppress(NotImplementedError):
            data = standalone(self.svg()).encode()
            if len(data) <= MAX_SVG or missing:
                return image_tag(data, self.alt, *self.canvas.get_width_height(), kind="svg+xml")
        buffer = io.BytesIO()
        fewer_colors(self.pixels(dpi=SHARPNESS * self.dpi)).save(buffer, "PNG", optimize=True)
        shown = image_tag(buffer.getvalue(), self.alt, *self.canvas.get_width_height())
        boxes = f"Our fonts have no {' '.join(missing)}, so the picture shows {BOX} instead."
        return f"{shown}<p>{escape(boxes)}</p>" if missing else shown

    def __repr__(self) -> str:
        return f"Picture(alt={self.alt!r})"

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display({"text/html": self._repr_html_(), "text/plain": repr(self)}, raw=True)


def fewer_colors(pixels: Image.Image) -> Image.Image:
    """The pixels in 256 colors, or unchanged where the difference would be visible."""
    few = with_palette(pixels, 256)
    change = np.asarray(few.convert("RGB"), dtype=int) - np.asarray(pixels, dtype=int)
    return few if np.abs(change).max() <= COLOR_TOLERANCE else pixels


def with_palette(pixels: Image.Image, count: int) -> Image.Image:
    """RGB pixels in a palette of `count` colors, of which the lightest becomes white if it nearly is."""
    few = pixels.quantize(count, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    palette = np.array(few.getpalette() or [], dtype=int).reshape(-1, 3)
    lightest = palette.sum(axis=1).argmax()
    if palette[lightest].min() >= 255 - COLOR_TOLERANCE:
        palette[lightest] = 255
    few.putpalette(palette.flatten().tolist())
    return few


def image_tag(
    data: bytes, alt: str, width: int, height: int, *, kind: str = "png", style: str = ""
) -> str:
    """HTML of an image that holds its data, and shrinks on a narrow page.

    Args:
        data: bytes of the file.
        alt: what a reader who cannot see it needs to know.
        width, height: pixels, as displayed on a page that is wide enough.
        kind: of the file: "png" or "svg+xml".
        style: more CSS.
    """
    source = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    background = "background:#fff;border-radius:6px;" if kind == "png" else ""
    css = f"max-width:100%;height:auto;{background}{style}"
    text = escape(" ".join(alt.split()))
    return f'<img alt="{text}" src="{source}" width="{width}" height="{height}" style="{css}">'


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
        grid: arguments of `Figure.subplots` (`sharex`, `sharey`, `width_ratios`, `squeeze`, …).

    Returns:
        The picture, and its axes: one `Axes`, or an array of them.
    """
    picture = Picture(alt=alt, width=width, height=height)
    return picture, picture.subplots(rows, columns, subplot_kw={"axes_class": PictureAxes}, **grid)


def to_numpy(array: ArrayLike) -> np.ndarray:
    """NumPy array of a tensor on any device, with or without gradient, of an array or of a list."""
    if isinstance(array, torch.Tensor):
        array = array.detach().cpu()
        return (array.float() if array.is_floating_point() else array).numpy()
    return np.asarray(array)
