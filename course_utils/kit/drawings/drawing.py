"""The drawing itself: parts, arrows and frames become one SVG that is checked before it is shown.

Taught in *Queries, keys and values*.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from course_utils.figures import image_tag
from course_utils.figures.style import FAMILIES
from course_utils.figures.svg import standalone
from course_utils.kit.drawings.routes import (
    CORNER,
    SIDES,
    Arrow,
    Point,
    label_place,
    parse_arrows,
    parse_layout,
    place_nodes,
    route,
)
from course_utils.kit.drawings.shapes import (
    HEAD,
    INK,
    LINE,
    SIZE,
    SMALL,
    Box,
    Cells,
    Rect,
    around,
    draw_text,
    text_width,
)

LINES = ("query", "key", "value", "wrong", "plum", "line")
"""The colors that an arrow may have, besides the default."""

LEAST = 11 / SMALL
"""The smallest scale of a drawing on a narrow page; below it the page lets it be scrolled."""

FRAME, MARGIN = 11, 7  # around the members of a group; around everything

Node = Box | Cells | str


class Drawing:
    """Nodes in a table, joined by arrows; it displays itself.

    It is shown as an image inside the page, like a `Picture`: SVG written into the page itself is taken out by GitHub
    and by a notebook that Lab does not trust. Its colors follow the page.

    Up to a `width` of 400 pixels it fits a phone with all words legible; a wider one is scrolled there.

    Args:
        layout: rows of names, separated by spaces; `.` is empty, and a name in several cells fills them.
        nodes: name → `Box`, `Circle`, `Note`, `Cells`, or the label of a box. A name of the layout that
            is missing here is a box with its name as the label.
        arrows: `"a -> b -> c"`, `"a, b -> c"`, or an `Arrow`.
        groups: label → names, separated by spaces, around which a broken frame is drawn. Its label
            stands over the frame where the gap between rows is 34 or more, else beside it.
        alt: what a reader who cannot see the drawing needs to know.
        gap: pixels between columns and between rows.
        flow: "down" lets an arrow to another row and column leave up or down, "right" to a side.

    Raises:
        ValueError: an unknown name, color or side; an arrow or a label over a part; no alt text.
    """

    def __init__(
        self,
        layout: str,
        *,
        alt: str,
        nodes: Mapping[str, Node] | None = None,
        arrows: Sequence[str | Arrow] = (),
        groups: Mapping[str, str] | None = None,
        gap: tuple[float, float] = (26, 34),
        flow: str = "down",
    ):
        if not alt.strip():
            raise ValueError("alt='' says nothing; describe the drawing in one or two sentences")
        if flow not in ("down", "right"):
            raise ValueError(f"flow={flow!r} is neither 'down' nor 'right'")
        self.alt = " ".join(alt.split())
        spans = parse_layout(layout)
        self._known = list(spans)
        nodes = dict(nodes or {})
        self._check_names(nodes, "nodes")
        boxes = {name: nodes.get(name, name) for name in spans}
        boxes = {name: Box(box) if isinstance(box, str) else box for name, box in boxes.items()}
        self.placed = place_nodes(boxes, spans, gap)
        self.arrows = parse_arrows(arrows)
        for arrow in self.arrows:
            self._check_arrow(arrow)
        self.routes = [route(arrow, self.placed, gap, flow) for arrow in self.arrows]
        for arrow, points in zip(self.arrows, self.routes, strict=True):
            self._check_route(arrow, points)
        self.groups = {label: names.split() for label, names in (groups or {}).items()}
        for label, names in self.groups.items():
            self._check_names(names, f"group {label!r}")
        self.frames = {label: self._frame(names) for label, names in self.groups.items()}
        self._check_frames()
        self.labels = {label: self._label_group(label) for label in self.groups}

    def _check_names(self, names, subject: str) -> None:
        for name in names:
            if name not in self._known:
                raise ValueError(
                    f"{subject}: {name!r} is not in the layout; it has {', '.join(self._known)}"
                )

    def _check_arrow(self, arrow: Arrow) -> None:
        subject = f"arrow {arrow.source} -> {arrow.target}"
        self._check_names((arrow.source, arrow.target), subject)
        for side in (arrow.around, arrow.start, arrow.end):
            if side is not None and side not in SIDES:
                raise ValueError(f"{subject}: {side!r} is not a side; use {', '.join(SIDES)}")
        if arrow.color is not None and arrow.color not in LINES:
            raise ValueError(
                f"{subject}: color={arrow.color!r} is too pale for a line; use {', '.join(LINES)}"
            )
        if arrow.source == arrow.target and arrow.around is None:
            raise ValueError(f"{subject}: give a side to go around, such as around='right'")

    def _frame(self, names: Sequence[str]) -> Rect:
        """The rectangle around the members and the arrows between them."""
        rects = [self.placed[name].rect for name in names]
        for arrow, points in zip(self.arrows, self.routes, strict=True):
            if arrow.source in names and arrow.target in names:
                rects += [Rect(x, y, x, y) for x, y in points]
        return around(rects).grown(FRAME)

    def _check_route(self, arrow: Arrow, points: Sequence[Point]) -> None:
        """Refuse an arrow through a node, one without room for its head, and a label over a node."""
        subject = f"arrow {arrow.source} -> {arrow.target}"
        if math.dist(points[-2], points[-1]) < HEAD + 3:
            raise ValueError(f"{subject}: no room for its head; make the gap wider")
        label = label_place(arrow.label, points)[3] if arrow.label else None
        for name, other in self.placed.items():
            if label and label.meets(other.rect):
                raise ValueError(f"{subject}: its label lies over {name!r}; make the gap wider")
            ends = name in (arrow.source, arrow.target)
            inner = other.solid.grown(-4) if ends else other.rect.grown(-1)
            if any(inner.meets(Rect(x, y, x, y).grown(0.5)) for x, y in _dots(points)):
                raise ValueError(f"{subject} runs through {name!r}; give start=, end= or around=")

    def _check_frames(self) -> None:
        """Refuse frames that cross, and those that hold more than their members."""
        for (one, a), (two, b) in combinations(self.groups.items(), 2):
            nested = set(a) <= set(b) or set(b) <= set(a)
            if not nested and self.frames[one].meets(self.frames[two]):
                raise ValueError(f"the frames of groups {one!r} and {two!r} cross")
        for label, names in self.groups.items():
            for name, part in self.placed.items():
                if name not in names and self.frames[label].meets(part.rect):
                    raise ValueError(
                        f"the frame of group {label!r} covers {name!r}, which is not in it; move one of them"
                    )

    def _label_group(self, label: str) -> Rect:
        """A free place for a group's label: over its frame, else under, left or right of it."""
        frame, width = self.frames[label], text_width(label, SMALL)
        steps = range(2, int(max(frame.right - frame.left - width, 3)), 4)
        places = [(frame.left + step, frame.top - 10) for step in steps]
        places += [(frame.left + step, frame.bottom + 10) for step in steps]
        places += [(frame.left - 5 - width, frame.y), (frame.right + 5, frame.y)]
        taken = [part.rect for part in self.placed.values()]
        taken += [Rect(x, y, x, y).grown(3) for points in self.routes for x, y in _dots(points)]
        for x, y in places:
            place = Rect(x, y - 8, x + width, y + 8)
            if not any(place.grown(2).meets(other) for other in taken):
                return place
        raise ValueError(f"no room for the label of group {label!r}; make the gap wider")

    def svg(self) -> str:
        """The drawing as one SVG element; the same drawing gives the same text."""
        rects = [part.rect for part in self.placed.values()] + list(self.frames.values())
        elements = []
        for label, frame in self.frames.items():
            place = self.labels[label]
            rects.append(place)
            elements += [_draw_frame(frame), draw_text(label, place.left, place.y, SMALL, "start")]
        for node, rect, _, _ in self.placed.values():
            elements += node.draw(rect)
        for arrow, points in zip(self.arrows, self.routes, strict=True):
            rects += [Rect(x, y, x, y).grown(HEAD / 2) for x, y in points]
            elements += _draw_arrow(arrow, points)
            if arrow.label:
                x, y, anchor, place = label_place(arrow.label, points)
                rects.append(place)
                elements.append(draw_text(arrow.label, x, y, SMALL, anchor))
        body, view = "\n".join(filter(None, elements)), around(rects).grown(MARGIN)
        width, height = math.ceil(view.right - view.left), math.ceil(view.bottom - view.top)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" '
            f'width="{width}" height="{height}" viewBox="{view.left:.1f} {view.top:.1f} {width} {height}" '
            f'fill="{INK}" font-family="{FAMILIES["sans"]}" font-size="{SIZE}">\n{body}\n</svg>'
        )

    def __repr__(self) -> str:
        return f"Drawing(alt={self.alt!r})"

    def _repr_html_(self) -> str:
        svg = self.svg()
        width, height = map(int, re.findall(r'(?:width|height)="(\d+)"', svg)[:2])
        style = f"display:block;margin:auto;min-width:{LEAST * width:.0f}px;"
        data = standalone(svg).encode()
        image = image_tag(data, self.alt, width, height, kind="svg+xml", style=style)
        return f'<div style="overflow-x:auto">{image}</div>'


def _dots(points: Sequence[Point]) -> Iterator[Point]:
    """Points along a way, two pixels apart."""
    for (x0, y0), (x1, y1) in pairwise(points):
        steps = 1 + int(math.dist((x0, y0), (x1, y1)) / 2)
        for step in range(steps + 1):
            yield x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps


def _toward(a: Point, b: Point, distance: float) -> Point:
    """The point `distance` pixels from `a` on the way to `b`."""
    part = distance / (math.dist(a, b) or 1)
    return a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part


def _draw_frame(frame: Rect) -> str:
    size = f'width="{frame.right - frame.left:.1f}" height="{frame.bottom - frame.top:.1f}"'
    line = f'fill="none" stroke="{LINE}" stroke-dasharray="5 4"'
    return f'<rect x="{frame.left:.1f}" y="{frame.top:.1f}" {size} rx="10" {line}/>'


def _draw_arrow(arrow: Arrow, points: Sequence[Point]) -> list[str]:
    """An arrow's line, with rounded bends, and its head."""
    paint = LINE if arrow.color is None else f"var(--cu-{arrow.color})"
    tip, before = points[-1], points[-2]
    line_end = _toward(tip, before, HEAD - 1)
    base = _toward(tip, before, HEAD)
    across = (0.45 * (tip[1] - base[1]), 0.45 * (base[0] - tip[0]))
    path = "M{:.1f} {:.1f}".format(*points[0])
    for start, corner, end in zip(points, points[1:], points[2:], strict=False):
        radius = min(CORNER, math.dist(start, corner) / 2, math.dist(corner, end) / 2)
        near, far = _toward(corner, start, radius), _toward(corner, end, radius)
        path += "L{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*near, *corner, *far)
    path += "L{:.1f} {:.1f}".format(*line_end)
    head = "M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}Z".format(
        *tip, base[0] + across[0], base[1] + across[1], base[0] - across[0], base[1] - across[1]
    )
    line = f'<path d="{path}" fill="none" stroke="{paint}" stroke-width="1.2"/>'
    return [line, f'<path d="{head}" fill="{paint}"/>']
