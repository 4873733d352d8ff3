"""Fast drawing of a picture that changes: what stands still is drawn once, and what moves is drawn over it each time.

matplotlib spends three quarters of its time on ticks and labels, which hardly ever change. It marks each artist that
was changed since it was drawn as *stale*, and so tells us what moves.
"""

import itertools

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.text import Text
from PIL import Image

from course_utils.figures import Picture

LEGIBLE = 10
"""Height of the smallest letters, in pixels, below which no explorer is made smaller."""


class Layers:
    """A picture in two layers, the still and the moving one. `paint` gives the same pixels as drawing it whole.

    Args:
        picture: a picture that was drawn, so that its layout is known.
        sharpness: pixels that are drawn in each direction for one that is displayed.

    Attributes:
        size: width and height of the picture as it is displayed, in pixels.
        cuts: where a narrow page may cut the picture into parts that stand one below the other: x in displayed
            pixels, both edges included.
        least_scale: the scale at which the smallest letters are `LEGIBLE` pixels high, two digits, at most 1.
    """

    def __init__(self, picture: Picture, sharpness: float = 1):
        self.size = picture.canvas.get_width_height()
        self.cuts, self.least_scale = _cuts(picture), _least_scale(picture)
        picture.set_dpi(sharpness * picture.dpi)
        self.picture = picture
        self._moving: set[Artist] = set()
        self._limits: list[tuple] = []
        self._still = None  # pixels of the lower layer

    def paint(self) -> Image.Image:
        """The picture as it is now, as RGB pixels."""
        changed = {artist for artist in self._artists() if artist.stale}
        if self._still is None or changed - self._moving or self._limits != self._axis_limits():
            self._moving |= changed if self._still is not None else set()
            self._draw_still()
        canvas = self.picture.canvas
        canvas.restore_region(self._still)
        for artist in self._upper():
            artist.draw(canvas.get_renderer())
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")

    def _draw_still(self) -> None:
        upper = set(self._upper())
        for artist in self._artists():
            artist.set_animated(artist in upper)
        canvas = self.picture.canvas
        canvas.draw()
        self._still = canvas.copy_from_bbox(self.picture.bbox)
        self._limits = self._axis_limits()

    def _upper(self) -> list[Artist]:
        """The artists that move, and those above them in the same axes, from bottom to top."""
        upper = []
        for axes in filter(Axes.get_visible, self.picture.axes):
            ordered = sorted(_children(axes), key=Artist.get_zorder)
            first = next((i for i, a in enumerate(ordered) if a in self._moving), len(ordered))
            upper += [
                artist
                for artist in ordered[first:]
                if not isinstance(artist, Axis)
                or artist in self._moving
                or self._is_painted_over(artist)
            ]
        return upper

    def _is_painted_over(self, axis: Axis) -> bool:
        """Whether a moving image, which reaches to the very edge, would cut into the tick marks."""
        images = self._moving.intersection(axis.axes.images)
        marks = [tick.tick1line for tick in axis.get_major_ticks()]
        return bool(images) and any(mark.get_visible() and mark.get_markersize() for mark in marks)

    def _artists(self) -> list[Artist]:
        return [artist for axes in self.picture.axes for artist in _children(axes)]

    def _axis_limits(self) -> list[tuple]:
        return [
            (*axes.get_xlim(), *axes.get_ylim(), axes.get_visible()) for axes in self.picture.axes
        ]


def _children(axes: Axes) -> list[Artist]:
    return [artist for artist in axes.get_children() if artist is not axes.patch]


def _cuts(picture: Picture) -> list[int]:
    spans: list[list[float]] = []
    boxes = {axes: axes.get_tightbbox() or axes.bbox for axes in picture.axes}
    for axes, box in sorted(boxes.items(), key=lambda pair: pair[1].x0):
        if spans and (box.x0 < spans[-1][1] or axes.get_label() == "<colorbar>"):
            spans[-1][1] = max(spans[-1][1], box.x1)
        else:
            spans.append([box.x0, box.x1])
    between = [round((before[1] + after[0]) / 2) for before, after in itertools.pairwise(spans)]
    return [0, *between, picture.canvas.get_width_height()[0]]


def _least_scale(picture: Picture) -> float:
    """At most 1: no page shows a picture larger than it is, and a larger scale would cut it on every screen."""
    written = (text for text in picture.findobj(Text) if text.get_text() and text.get_visible())
    smallest = min((text.get_fontsize() for text in written), default=10)
    return min(round(LEGIBLE / (smallest * picture.dpi / 72), 2), 1.0)
