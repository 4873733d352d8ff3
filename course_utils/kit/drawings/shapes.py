"""The shapes of a drawing: boxes, circles, notes and tensors, and their text.

A label's `_` and `^` make the next character, or {several}, a subscript or a superscript (`W_Q`,
`h_{t-1}`); within a word (`embed_dim`) they stay what they are. Taught in *Queries, keys and values*.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from html import escape
from typing import Any, ClassVar, NamedTuple

from course_utils.figures.style import width_of

SIZE, SMALL = 15, 13  # of letters, in pixels
PAD, CELL = 9, 18  # around a label; a cell's side
SHEET, HEAD = 5, 9  # a sheet's offset; an arrowhead
INK, LINE = "var(--cu-ink)", "var(--cu-muted)"  # of words; of frames and arrows

FILLS = dict.fromkeys(("query", "key", "value", "wrong"), 0.3)
FILLS |= {"plum": 0.25, "line": 0.25, "wash": 1.0}
"""Role → how much of the page's ground a fill covers: words stay legible on it."""

SCRIPT = re.compile(r"([_^])(?:\{([^{}]*)\}|(\w)(?!\w))")


class Rect(NamedTuple):
    """A rectangle in pixels; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def x(self) -> float:
        """The center's x."""
        return (self.left + self.right) / 2

    @property
    def y(self) -> float:
        """The center's y."""
        return (self.top + self.bottom) / 2

    def grown(self, by: float) -> "Rect":
        """The rectangle with `by` pixels more on each side."""
        return Rect(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def meets(self, other: "Rect") -> bool:
        """Whether the two have area in common."""
        across = min(self.right, other.right) - max(self.left, other.left)
        return across > 0 and min(self.bottom, other.bottom) - max(self.top, other.top) > 0


def around(rects: Sequence[Rect]) -> Rect:
    """The smallest rectangle that holds all."""
    lefts, tops, rights, bottoms = zip(*rects, strict=True)
    return Rect(min(lefts), min(tops), max(rights), max(bottoms))


def pieces(words: str) -> Iterator[tuple[str, str]]:
    """Cut a label into (text, "" or "_" or "^")."""
    start = 0
    for script in SCRIPT.finditer(words):
        yield words[start : script.start()], ""
        yield script[2] if script[2] is not None else script[3], script[1]
        start = script.end()
    yield words[start:], ""


def text_width(words: str, size: float = SIZE) -> float:
    """The width of a label's one line, in pixels, in the font that comes with the course."""
    return sum(
        width_of(text) * size * (0.8 if script else 1) + bool(script)
        for text, script in pieces(words)
    )


def draw_text(
    words: str, x: float, y: float, size: float = SIZE, anchor: str = "middle", note: str = ""
) -> str:
    """One line of text with its middle at height `y`; a note follows in smaller letters."""
    spans, lift = [], 0.0
    for text, script in pieces(words):
        if text:
            to = {"": 0.0, "_": 0.25, "^": -0.35}[script] * size
            style = f' font-size="{0.8 * size:g}"' if script else ""
            style += ' dx="1"' if script == "^" else ""
            long = width_of(text) * size * (0.8 if script else 1)
            spans.append(
                f'<tspan dy="{to - lift:g}"{style}{_fit(text, long)}>{escape(text)}</tspan>'
            )
            lift = to
    if note:
        indent = ' dx="5"' if words else ""
        fit = _fit(note, width_of(note) * SMALL)
        spans.append(
            f'<tspan dy="{-lift:g}"{indent} font-size="{SMALL}"{fit}>{escape(note)}</tspan>'
        )
    plain = len(spans) <= 1 and not note
    content = escape(words) if plain else "".join(spans)
    place = f'x="{x:.1f}" y="{y + 0.35 * size:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f"<text {place}{_fit(words, text_width(words, size)) if plain else ''}>{content}</text>"


def _fit(text: str, width: float) -> str:
    """The attributes that keep a text as wide as it was measured, in whatever font it is shown."""
    return f' textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs"' if len(text) > 1 else ""


def fill(color: str | None, strength: float = 1.0) -> str:
    """The attributes of a fill."""
    if color is None:
        return 'fill="none"'
    if color not in FILLS:
        raise ValueError(f"color={color!r} is not one of {', '.join(FILLS)}")
    return f'fill="var(--cu-{color})" fill-opacity="{FILLS[color] * strength:.2g}"'


@dataclass(frozen=True)
class Box:
    """An operation: a rectangle with a label of one or more lines.

    Args:
        label: a newline starts a new line.
        shape: of what comes out of it; a last line in smaller letters.
        color: a name of `FILLS`; none leaves it empty.
        width: pixels; by default all boxes of a column are as wide as its widest.
    """

    stretches: ClassVar[bool] = True
    pad: ClassVar[int] = PAD

    label: str
    _: KW_ONLY
    shape: str = ""
    color: str | None = None
    width: float | None = None

    def __post_init__(self):
        """Check the color and the width.

        Raises:
            ValueError: the color is unknown, or the width is less than the label's.
        """
        fill(self.color)
        wide = max(text_width(*line) for line in self.lines())
        if self.width is not None and wide > self.width:
            raise ValueError(
                f"width={self.width} is too little for {self.label!r}; it needs {wide:.0f}"
            )

    def lines(self) -> list[tuple[str, int]]:
        """Its text, line by line: (words, size)."""
        lines = [(line, SIZE) for line in self.label.split("\n")]
        return lines + [(self.shape, SMALL)] * bool(self.shape)

    def size(self) -> tuple[float, float]:
        """The least (width, height)."""
        wide = max(text_width(*line) for line in self.lines()) + 2 * self.pad
        return self.width or wide, sum(1.3 * size for _, size in self.lines()) + PAD

    def solid(self, place: Rect) -> Rect:
        """The part at which arrows end."""
        return place

    def outline(self, place: Rect) -> str:
        """The frame around the label."""
        width, height = place.right - place.left, place.bottom - place.top
        frame = (
            f'x="{place.left:.1f}" y="{place.top:.1f}" width="{width:.1f}" height="{height:.1f}"'
        )
        return f'<rect {frame} rx="6" {fill(self.color, 0.6)} stroke="{LINE}"/>'

    def draw(self, place: Rect) -> list[str]:
        """The SVG elements."""
        elements = [self.outline(place)]
        y = place.y - sum(1.3 * size for _, size in self.lines()) / 2
        for words, size in self.lines():
            elements.append(draw_text(words, place.x, y + 0.65 * size, size))
            y += 1.3 * size
        return elements


class Note(Box):
    """Words without a frame."""

    stretches: ClassVar[bool] = False
    pad: ClassVar[int] = 4

    def outline(self, place: Rect) -> str:
        """No frame."""
        return ""


class Circle(Box):
    """A small operation on its own, such as +."""

    stretches: ClassVar[bool] = False

    def size(self) -> tuple[float, float]:
        """Equal width and height."""
        return (max(24.0, *(side - PAD for side in super().size())),) * 2

    def outline(self, place: Rect) -> str:
        """A circle."""
        circle = f'cx="{place.x:.1f}" cy="{place.y:.1f}" r="{(place.right - place.left) / 2:.1f}"'
        return f'<circle {circle} {fill(self.color, 0.6)} stroke="{LINE}"/>'


@dataclass(frozen=True)
class Cells:
    """A tensor: a grid of cells, over its name and its shape.

    Args:
        rows, columns: how many, or their labels.
        label, shape: written under the grid.
        values: (rows, columns) numbers or words in the cells, nested lists or a tensor.
        color: of all cells; or a list, one for each column; or (rows, columns); None leaves a cell empty.
        shades: (rows, columns) from 0 to 1, by which the color is weakened: weights, for example.
        sheets: how many grids lie behind one another, for a third axis.
        cell: a cell's least side in pixels.
    """

    rows: int | Sequence[str]
    columns: int | Sequence[str]
    label: str = ""
    _: KW_ONLY
    shape: str = ""
    values: Any = None
    color: Any = None
    shades: Any = None
    sheets: int = 1
    cell: float = CELL

    def __post_init__(self):
        """Check that the tables have the shape of the cells.

        Raises:
            ValueError: `values`, `color` or `shades` does not have (rows, columns), or a color is unknown.
        """
        tables = {"values": self.values, "color": self.colors(), "shades": self.shades}
        for name, table in tables.items():
            if table is not None:
                sizes = [len(row) for row in table]
                if sizes != [self.num_columns] * self.num_rows:
                    raise ValueError(
                        f"{name} of the cells {self.label!r} has rows of {sizes}; "
                        f"{self.num_rows} rows of {self.num_columns} are needed"
                    )
        for color in {color for row in self.colors() for color in row}:
            fill(color)

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.rows if isinstance(self.rows, int) else len(self.rows)

    @property
    def num_columns(self) -> int:
        """The number of columns."""
        return self.columns if isinstance(self.columns, int) else len(self.columns)

    def colors(self) -> list[list[str | None]]:
        """(rows, columns) names of colors."""
        color = self.color
        if color is None or isinstance(color, str):
            return [[color] * self.num_columns] * self.num_rows
        if all(isinstance(row, (list, tuple)) for row in color):
            return [list(row) for row in color]
        return [list(color)] * self.num_rows

    def words(self) -> list[list[str]]:
        """(rows, columns) texts of the cells."""
        if self.values is None:
            return []
        table = self.values.tolist() if hasattr(self.values, "tolist") else self.values
        return [[v if isinstance(v, str) else f"{v:.3g}" for v in row] for row in table]

    def cell_size(self) -> tuple[float, float]:
        """(width, height) of one cell, wide enough for the values and the labels of the columns."""
        labels = [] if isinstance(self.columns, int) else list(self.columns)
        written = [word for row in self.words() for word in row] + labels
        widest = max((text_width(word, SMALL) for word in written), default=-8.0) + 8
        return max(self.cell, widest), max(self.cell, 22.0 if self.values is not None else 0.0)

    def size(self) -> tuple[float, float]:
        """(width, height) with labels, sheets and caption; the grid stands in the middle."""
        width, height = (n * side for n, side in zip(self.counts(), self.cell_size(), strict=True))
        behind = (self.sheets - 1) * SHEET
        labels = [] if isinstance(self.rows, int) else list(self.rows)
        beside = max([behind] + [text_width(word, SMALL) + 6.0 for word in labels])
        above = max(behind, 0 if isinstance(self.columns, int) else 18)
        return max(width + 2 * beside, self.caption_width()), height + above + self.below()

    def counts(self) -> tuple[int, int]:
        """The number of (columns, rows)."""
        return self.num_columns, self.num_rows

    def caption_width(self) -> float:
        """Width of label and shape side by side."""
        between = 5 if self.label and self.shape else 0
        return text_width(self.label) + between + text_width(self.shape, SMALL)

    def below(self) -> float:
        """Height of the caption."""
        return 22.0 if self.label or self.shape else 0.0

    def grid(self, place: Rect) -> Rect:
        """The rectangle of the front grid."""
        width, height = (n * side for n, side in zip(self.counts(), self.cell_size(), strict=True))
        bottom = place.bottom - self.below()
        return Rect(place.x - width / 2, bottom - height, place.x + width / 2, bottom)

    def solid(self, place: Rect) -> Rect:
        """The part at which arrows end: the grid with its sheets, down to the caption."""
        grid, behind = self.grid(place), (self.sheets - 1) * SHEET
        return Rect(grid.left, place.top, grid.right + behind, place.bottom)

    def draw(self, place: Rect) -> list[str]:
        """The SVG elements: fills, lines, sheets behind, then texts."""
        grid, (width, height) = self.grid(place), self.cell_size()
        elements = []
        for i, row in enumerate(self.colors()):
            for j, color in enumerate(row):
                if color is not None:
                    at = f'x="{grid.left + j * width:.1f}" y="{grid.top + i * height:.1f}"'
                    size = f'width="{width:.1f}" height="{height:.1f}"'
                    shade = 1.0 if self.shades is None else float(self.shades[i][j])
                    elements.append(f"<rect {at} {size} {fill(color, shade)}/>")
        lines = [
            f"M{grid.left:.1f} {grid.top + i * height:.1f}H{grid.right:.1f}"
            for i in range(self.num_rows + 1)
        ] + [
            f"M{grid.left + j * width:.1f} {grid.top:.1f}V{grid.bottom:.1f}"
            for j in range(self.num_columns + 1)
        ]
        for sheet in range(SHEET, self.sheets * SHEET, SHEET):
            lines.append(
                f"M{grid.left + sheet:.1f} {grid.top - sheet + SHEET:.1f}V{grid.top - sheet:.1f}"
                f"H{grid.right + sheet:.1f}V{grid.bottom - sheet:.1f}H{grid.right + sheet - SHEET:.1f}"
            )
        elements.append(f'<path d="{"".join(lines)}" fill="none" stroke="{LINE}"/>')
        return elements + self.draw_words(place)

    def draw_words(self, place: Rect) -> list[str]:
        """The values, the labels of rows and columns, and the caption."""
        grid, (width, height) = self.grid(place), self.cell_size()
        xs = [grid.left + (j + 0.5) * width for j in range(self.num_columns)]
        ys = [grid.top + (i + 0.5) * height for i in range(self.num_rows)]
        elements = [
            draw_text(word, x, y, SMALL)
            for y, row in zip(ys, self.words(), strict=False)
            for x, word in zip(xs, row, strict=True)
        ]
        if not isinstance(self.columns, int):
            elements += [
                draw_text(w, x, grid.top - 9, SMALL) for w, x in zip(self.columns, xs, strict=True)
            ]
        if not isinstance(self.rows, int):
            left = grid.left - 6
            elements += [
                draw_text(w, left, y, SMALL, "end") for w, y in zip(self.rows, ys, strict=True)
            ]
        if self.below():
            elements.append(draw_text(self.label, place.x, place.bottom - 9, note=self.shape))
        return elements
