"""The layout of a drawing: the table of names, the columns and rows, and the routes of arrows.

Taught in *Queries, keys and values*.
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise, product
from typing import NamedTuple

from course_utils.kit.drawings.shapes import SMALL, Box, Cells, Circle, Rect, around, text_width

SIDES = {"left": (0, -1), "top": (1, -1), "right": (2, 1), "bottom": (3, 1)}
"""Side → its index among a rectangle's numbers, and the sign of the direction out of it."""

OUT, CORNER = 16, 6  # how far a way around keeps from the boxes; the radius of a bend

Point = tuple[float, float]


@dataclass(frozen=True)
class Arrow:
    """An arrow that needs more than `"source -> target"`.

    Args:
        source, target: names of nodes.
        label: a word beside its longest part.
        color: a role, such as query; by default that of all lines.
        straight: the shortest way from center to center of two sides, where others bend at right angles.
        around: "left", "right", "top" or "bottom": leave and come back on this side, as a shortcut does.
        start, end: sides at which it leaves the source and reaches the target.
    """

    source: str
    target: str
    _: KW_ONLY
    label: str = ""
    color: str | None = None
    straight: bool = False
    around: str | None = None
    start: str | None = None
    end: str | None = None


class Placed(NamedTuple):
    """A node with its rectangle, the part at which arrows end, and its cells of the layout."""

    node: Box | Cells
    rect: Rect
    solid: Rect
    cell: Rect


def parse_arrows(arrows: Sequence[str | Arrow]) -> list[Arrow]:
    """`"a, b -> c -> d"` → the arrows a → c, b → c and c → d.

    Raises:
        ValueError: a string without `->`, or with nothing on one side of it.
    """
    parsed = []
    for arrow in arrows:
        if isinstance(arrow, Arrow):
            parsed.append(arrow)
            continue
        stages = [[name.strip() for name in stage.split(",")] for stage in arrow.split("->")]
        if len(stages) < 2 or not all(name for stage in stages for name in stage):
            raise ValueError(f"arrow {arrow!r} is not of the form 'source -> target'")
        parsed += [Arrow(*ends) for both in pairwise(stages) for ends in product(*both)]
    return parsed


def parse_layout(layout: str) -> dict[str, tuple[int, int, int, int]]:
    """A table of names → name: (first row, first column, last row, last column).

    Raises:
        ValueError: no names, rows of different lengths, or a name whose cells make no rectangle.
    """
    rows = [line.split() for line in layout.splitlines() if line.strip()]
    for row in rows:
        if len(row) != len(rows[0]):
            raise ValueError(
                f"row {' '.join(row)!r} of the layout has {len(row)} names, expected {len(rows[0])}; '.' is empty"
            )
    cells_of: dict[str, list[tuple[int, int]]] = {}
    for i, row in enumerate(rows):
        for j, name in enumerate(row):
            if name != ".":
                cells_of.setdefault(name, []).append((i, j))
    if not cells_of:
        raise ValueError("the layout is empty; it needs rows of names")
    spans = {}
    for name, cells in cells_of.items():
        (top, left), (bottom, right) = min(cells), max(cells)
        if sorted(cells) != list(product(range(top, bottom + 1), range(left, right + 1))):
            raise ValueError(f"the cells of {name!r} in the layout make no rectangle")
        spans[name] = (top, left, bottom, right)
    return spans


def tracks(needs: Sequence[tuple[int, int, float]], gap: float) -> list[tuple[float, float]]:
    """Start and end of each column (or row), given (first, last, pixels needed) of each node."""
    sizes = [0.0] * (1 + max(last for _, last, _ in needs))
    for first, last, need in sorted(needs, key=lambda need: need[1] - need[0]):
        missing = need - sum(sizes[first : last + 1]) - gap * (last - first)
        for track in range(first, last + 1):
            sizes[track] += max(0.0, missing) / (last - first + 1)
    starts = [sum(sizes[:track]) + gap * track for track in range(len(sizes))]
    return [(start, start + size) for start, size in zip(starts, sizes, strict=True)]


def place_nodes(
    nodes: dict[str, Box | Cells],
    spans: dict[str, tuple[int, int, int, int]],
    gap: tuple[float, float],
) -> dict[str, Placed]:
    """Each node in the middle of its cells; tensors of a row without boxes on one line.

    Boxes are as wide as the others of their column and as high as the others of their row.
    """
    sizes = {name: node.size() for name, node in nodes.items()}
    columns = tracks([(spans[n][1], spans[n][3], sizes[n][0]) for n in nodes], gap[0])
    rows = tracks([(spans[n][0], spans[n][2], sizes[n][1]) for n in nodes], gap[1])
    placed = {}
    for name, node in nodes.items():
        top, left, bottom, right = spans[name]
        cell = Rect(columns[left][0], rows[top][0], columns[right][1], rows[bottom][1])
        width, height = sizes[name]
        x, y = cell.x, cell.y
        row = [n for n in nodes if (spans[n][0], spans[n][2]) == (top, bottom)]
        if isinstance(node, Box) and node.stretches:
            column = [n for n in nodes if (spans[n][1], spans[n][3]) == (left, right)]
            if node.width is None:
                width = cell.right - cell.left if left < right else _most(nodes, sizes, column, 0)
            height = cell.bottom - cell.top if top < bottom else _most(nodes, sizes, row, 1)
        elif all(isinstance(nodes[n], Cells) for n in row):
            y += cell.bottom - cell.y - height / 2
        rect = Rect(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        placed[name] = Placed(node, rect, node.solid(rect), cell)
    return placed


def _most(nodes, sizes, names, axis: int) -> float:
    """The largest width (axis 0) or height (axis 1) of the boxes among the names."""
    boxes = [n for n in names if isinstance(nodes[n], Box) and nodes[n].stretches]
    return max(sizes[n][axis] for n in boxes)


def find_sides(arrow: Arrow, a: Rect, b: Rect, flow: str) -> tuple[str, str]:
    """The sides at which an arrow leaves `a` and reaches `b`."""
    beside = a.right <= b.left or b.right <= a.left
    below = a.bottom <= b.top or b.bottom <= a.top
    if below and not (beside and flow == "right"):
        sides = ("bottom", "top") if a.y < b.y else ("top", "bottom")
    else:
        sides = ("right", "left") if a.x < b.x else ("left", "right")
    return arrow.around or arrow.start or sides[0], arrow.around or arrow.end or sides[1]


def port(placed: Placed, side: str, along: float) -> Point:
    """The point of a node's side at `along`, its coordinate in the direction of the side."""
    index, out = SIDES[side]
    edge = placed.solid[index]
    if isinstance(placed.node, Circle):
        radius = (placed.solid.right - placed.solid.left) / 2
        center = (placed.solid.x, placed.solid.y)
        off = along - center[1 - index % 2]
        edge = center[index % 2] + out * math.sqrt(max(0.0, radius**2 - off**2))
    return (edge, along) if index % 2 == 0 else (along, edge)


def facing(a: Rect, b: Rect, axis: int) -> float | None:
    """The coordinate at which a straight line joins two nodes, one at its center; None if there is none."""
    low, high = max(a[axis], b[axis]), min(a[axis + 2], b[axis + 2])
    if high - low < 2 * CORNER:
        return None
    narrow, wide = sorted((a, b), key=lambda rect: rect[axis + 2] - rect[axis])
    middles = [(rect[axis] + rect[axis + 2]) / 2 for rect in (narrow, wide)]
    return next((middle for middle in middles if low <= middle <= high), None)


def route(
    arrow: Arrow, placed: dict[str, Placed], gap: tuple[float, float], flow: str
) -> list[Point]:
    """The corners of an arrow's way, from its start to its tip."""
    a, b = placed[arrow.source], placed[arrow.target]
    start, end = find_sides(arrow, a.solid, b.solid, flow)
    (index_a, out_a), (index_b, out_b) = SIDES[start], SIDES[end]
    axis, across = index_a % 2, 1 - index_a % 2
    middle_a, middle_b = (a.solid.x, a.solid.y), (b.solid.x, b.solid.y)
    if arrow.straight:
        return [port(a, start, middle_a[across]), port(b, end, middle_b[1 - index_b % 2])]
    if start == end:
        toward = 1 if middle_b[across] > middle_a[across] else -1
        leave = port(
            a, start, middle_a[across] + toward * (a.solid[across + 2] - a.solid[across]) / 4
        )
        come = port(b, end, middle_b[across] - toward * (b.solid[across + 2] - b.solid[across]) / 4)
        bend = around([a.cell, b.cell])[index_a] + out_a * OUT
        return [leave, _at(axis, bend, leave), _at(axis, bend, come), come]
    if axis != index_b % 2:
        leave, come = port(a, start, middle_a[across]), port(b, end, middle_b[axis])
        return [leave, (leave[0], come[1]) if axis else (come[0], leave[1]), come]
    line = facing(a.solid, b.solid, across)
    if line is not None:
        return [port(a, start, line), port(b, end, line)]
    leave, come = port(a, start, middle_a[across]), port(b, end, middle_b[across])
    bend = b.cell[index_b] + out_b * gap[axis] / 2
    return [leave, _at(axis, bend, leave), _at(axis, bend, come), come]


def _at(axis: int, value: float, point: Point) -> Point:
    """A copy of a point with one coordinate replaced."""
    return (value, point[1]) if axis == 0 else (point[0], value)


def label_place(label: str, points: Sequence[Point]) -> tuple[float, float, str, Rect]:
    """The place of an arrow's label: x, y, anchor and the rectangle that it fills."""
    (x0, y0), (x1, y1) = max(pairwise(points), key=lambda part: math.dist(*part))
    x, y, width = (x0 + x1) / 2, (y0 + y1) / 2, text_width(label, SMALL)
    if abs(x1 - x0) > abs(y1 - y0):
        return x, y - 10, "middle", Rect(x - width / 2, y - 18, x + width / 2, y - 2)
    return x + 7, y, "start", Rect(x + 7, y - 8, x + 7 + width, y + 8)
