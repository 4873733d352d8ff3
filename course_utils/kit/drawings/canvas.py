"""A drawing on a sheet of fixed size, whose parts stand where you put them: one stage of a picture in stages.

`Drawing` finds places for boxes and arrows. Here tables of numbers have to meet as in a product by hand, and the
same cell has to be found again on the next sheet. Taught in *Self-attention*.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from course_utils.figures import image_tag
from course_utils.figures.style import FAMILIES, ROLES
from course_utils.figures.svg import number, standalone
from course_utils.kit.drawings.shapes import INK, LINE, draw_text

CONTRAST = 4.55
"""Least contrast of a number with its cell, on light and on dark (WCAG 2 asks for 4.5)."""


class Canvas:
    """An empty sheet to draw on; x grows to the right, y downwards, both in pixels.

    A part with a `name` travels from its place on one sheet to its place on the next (`Stages`).

    Args:
        alt: what a reader who cannot see the picture needs to know.
        size: (width, height) of the sheet, equal for all stages of a picture.
    """

    def __init__(self, alt: str, *, size: tuple[int, int] = (480, 400)):
        if not alt.strip():
            raise ValueError("alt='' says nothing; describe the picture in one or two sentences")
        self.alt, self.size = " ".join(alt.split()), size
        self._elements: list[str] = []

    def text(
        self,
        words: str,
        x: float,
        y: float,
        *,
        color: str = "ink",
        size: float = 16,
        anchor: str = "middle",
        bold: bool = False,
        name: str = "",
    ) -> None:
        """One line with its middle at height `y`; `W_Q` and `K^T` have scripts."""
        look = [f'fill="{_paint(color)}"'] * (color != "ink") + ['font-weight="650"'] * bold
        line = draw_text(words, x, y, size, anchor)
        self._add(f"<g {' '.join(look)}>{line}</g>" if look else line, name, (x, y))

    def cell(
        self,
        words: str,
        x: float,
        y: float,
        width: float,
        height: float,
        color: str,
        strength: float,
        *,
        size: float = 16,
        bold: bool = False,
        faint: bool = False,
        name: str = "",
    ) -> None:
        """A cell and its text; `strength` from 0 to 1 is how much of its color covers the ground."""
        strength, ink = legible(color, strength)
        ink = "muted" if faint and ink == "ink" else ink
        look = f'fill="var(--cu-{color})" fill-opacity="{strength:.2g}" stroke="{LINE}"'
        box = f"<rect {_box(x, y, width, height)} {look}/>"
        if words:
            weight = ' font-weight="650"' if bold else ""
            line = draw_text(words, x + width / 2, y + height / 2, size)
            box += f'<g fill="{_paint(ink)}"{weight}>{line}</g>'
        self._add(box, name, (x, y, width, height))

    def table(
        self,
        values: Any,
        x: float,
        y: float,
        cell: tuple[float, float],
        color: str,
        *,
        decimals: int = 0,
        most: float = 4,
        shades: tuple[float, float] = (0.1, 0.6),
        step: float | None = None,
        size: float = 16,
        bold: int | None = None,
        name: str = "",
    ) -> None:
        """A table of numbers in cells, the larger the darker.

        Args:
            values: (rows, columns), a tensor.
            x, y: the upper left corner.
            cell: width and height of a cell.
            color: a role, such as key.
            decimals: of each number; zeros have none and are faint.
            most: the number that has the darkest shade.
            shades: the lightest and the darkest, from 0 to 1.
            step: pixels from row to row; the cell's height by default.
            size: of the numbers.
            bold: a row that is bold.
            name: cells are named `name:row:column`.
        """
        lightest, darkest = shades
        for i, row in enumerate(values.tolist()):
            for j, value in enumerate(row):
                strength = lightest + (darkest - lightest) * min(1.0, abs(value) / most)
                at = x + j * cell[0], y + i * (step or cell[1])
                words = f"{value:.{decimals}f}" if value else "0"
                self.cell(
                    words, *at, *cell, color, strength, size=size, bold=i == bold,
                    faint=not value and i != bold, name=f"{name}:{i}:{j}" if name else "",
                )  # fmt: skip

    def ring(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        color: str = "query",
        *,
        pad: float = 2,
    ) -> None:
        """A frame that points out a rectangle."""
        box = _box(x - pad, y - pad, width + 2 * pad, height + 2 * pad)
        self._add(f'<rect {box} rx="4" fill="none" stroke="{_paint(color)}" stroke-width="2.5"/>')

    def bar(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        color: str,
        *,
        strength: float = 0.75,
        name: str = "",
    ) -> None:
        """A filled bar."""
        look = f'rx="2" fill="{_paint(color)}" fill-opacity="{strength:g}"'
        self._add(f"<rect {_box(x, y, width, height)} {look}/>", name, (x, y, width, height))

    def line(
        self,
        path: str,
        color: str = "muted",
        *,
        width: float = 1.4,
        dash: str = "",
        strength: float = 1.0,
    ) -> None:
        """A line along an SVG path."""
        look = f'fill="none" stroke="{_paint(color)}" stroke-width="{number(width)}" stroke-linecap="round"'
        look += f' stroke-dasharray="{dash}"' * bool(dash)
        look += f' stroke-opacity="{strength:g}"' * (strength < 1)
        self._add(f'<path d="{path}" {look}/>')

    def arrow(self, points: Sequence[tuple[float, float]], color: str = "muted") -> None:
        """An arrow from point to point, with its head at the last."""
        (x0, y0), (x1, y1) = points[-2:]
        length = math.dist((x0, y0), (x1, y1))
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        bx, by = x1 - 9 * ux, y1 - 9 * uy
        way = [*points[:-1], (bx, by)]
        self.line("M" + "L".join(f"{number(x)} {number(y)}" for x, y in way), color, width=1.6)
        corners = [(x1, y1), (bx - 4.5 * uy, by + 4.5 * ux), (bx + 4.5 * uy, by - 4.5 * ux)]
        head = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in corners) + "z"
        self._add(f'<path d="{head}" fill="{_paint(color)}"/>')

    def column(
        self,
        words: Iterable[str],
        x: float,
        ys: Iterable[float],
        *,
        asking: int | None = None,
        size: float = 16,
        anchor: str = "start",
        name: str = "",
    ) -> None:
        """Words below one another; the one that asks has the color of a query."""
        for i, (word, y) in enumerate(zip(words, ys, strict=True)):
            color = "query" if i == asking else "ink"
            named = f"{name}:{i}" if name else ""
            self.text(
                word, x, y, anchor=anchor, size=size, color=color, bold=i == asking, name=named
            )

    def _add(self, element: str, name: str = "", box: tuple[float, ...] = ()) -> None:
        if name:
            place = " ".join(map(number, box))
            element = f'<g data-name="{name}" data-box="{place}">{element}</g>'
        self._elements.append(element)

    def svg(self) -> str:
        """The sheet as one SVG element."""
        width, height = self.size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'fill="{INK}" font-family="{FAMILIES["sans"]}">\n'
            + "\n".join(self._elements)
            + "\n</svg>"
        )

    def image(self) -> str:
        """The sheet as an image of a page."""
        return image_tag(standalone(self.svg()).encode(), self.alt, *self.size, kind="svg+xml")

    def _repr_html_(self) -> str:
        return self.image()


@cache
def legible(color: str, strength: float) -> tuple[float, str]:
    """The nearest strength at which a number is legible on light and on dark, and the color of the number.

    Returns:
        The strength, and a role: "ink", "paper", or "ink-paper" and "paper-ink" where the two differ.
    """
    for step in range(100):
        for near in (strength - step / 100, strength + step / 100):
            if 0 <= near <= 1:
                light, dark = (_clearest(color, near, mode) for mode in (0, 1))
                if min(light[0], dark[0]) >= CONTRAST:
                    return near, light[1] if light[1] == dark[1] else f"{light[1]}-{dark[1]}"
    raise ValueError(f"no strength of {color!r} is legible")


def _clearest(color: str, strength: float, mode: int) -> tuple[float, str]:
    """(contrast, role) of the clearer one of ink and paper on this ground."""
    over, under = _rgb(color, mode), _rgb("paper", mode)
    ground = _luminance(
        [strength * o + (1 - strength) * u for o, u in zip(over, under, strict=True)]
    )

    def contrast(role: str) -> float:
        darker, lighter = sorted((_luminance(_rgb(role, mode)), ground))
        return (lighter + 0.05) / (darker + 0.05)

    return max((contrast(role), role) for role in ("ink", "paper"))


def _rgb(role: str, mode: int) -> list[int]:
    return [int(ROLES[role][mode][i : i + 2], 16) for i in (1, 3, 5)]


def _luminance(color: Sequence[float]) -> float:
    """Relative luminance (WCAG 2.2, definitions)."""
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _paint(role: str) -> str:
    light, _, dark = role.partition("-")
    return f"light-dark(var(--cu-{light}), var(--cu-{dark}))" if dark else f"var(--cu-{role})"


def _box(x: float, y: float, width: float, height: float) -> str:
    return f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
