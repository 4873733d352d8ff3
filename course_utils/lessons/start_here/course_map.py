"""The map of the course in *Start here*, drawn from ``book.toml``: its chapters and what each needs."""

import tomllib
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from course_utils.files import ROOT

if TYPE_CHECKING:
    from course_utils.figures import Picture

WIDTH, HEIGHT = 0.9, 0.56  # of a box, where the boxes of a row are 1 apart
OFF = "#e4e4e4"  # a chapter that is not on the way


def chapters(book: Path = ROOT / "book.toml") -> list[dict]:
    """The chapters in order: number, title, and the numbers of the chapters that each one needs.

    Args:
        book: the course's manifest.
    """
    table = tomllib.loads(book.read_text(encoding="utf-8"))["chapter"]
    return [
        {
            "number": _number(chapter["notebook"]),
            "title": chapter["title"],
            "needs": [_number(stem) for stem in chapter.get("prerequisites", ())],
        }
        for chapter in table
    ]


def _number(stem: str) -> str:
    return stem.partition("_")[0]


def all_needs(course: list[dict]) -> dict[str, set[str]]:
    """What each chapter needs, and what that needs in turn, down to the first chapter."""
    needs: dict[str, set[str]] = {}
    for chapter in course:  # what a chapter needs stands before it
        needs[chapter["number"]] = {*chapter["needs"]}.union(*(needs[n] for n in chapter["needs"]))
    return needs


def direct_needs(course: list[dict]) -> dict[str, list[str]]:
    """What each chapter needs, without what is needed by one of these anyway."""
    needs = all_needs(course)
    return {
        chapter["number"]: [
            one
            for one in chapter["needs"]
            if not any(one in needs[other] for other in chapter["needs"])
        ]
        for chapter in course
    }


def ways(book: Path = ROOT / "book.toml") -> dict[str, list[str]]:
    """The ways through the course: title → the numbers of its chapters, in order.

    A way holds the chapters that it leads to and all that they need, so that it agrees with the map.
    """
    course = chapters(book)
    needs = all_needs(course)
    found = {}
    for way in tomllib.loads(book.read_text(encoding="utf-8")).get("way", ()):
        to = {_number(stem) for stem in way["to"]}
        on = to.union(*(needs[number] for number in to))
        found[way["title"]] = [c["number"] for c in course if c["number"] in on]
    return found


def course_map(way: str | None = None, *, book: Path = ROOT / "book.toml") -> "Picture":
    """Draw the chapters from top to bottom, each below all that it needs.

    Args:
        way: the title of a way; the chapters that are not on it are pale.
        book: the course's manifest.

    Raises:
        ValueError: there is no such way.
    """
    from course_utils.figures import subplots  # slow to import, and the list of ways needs none

    course, known = chapters(book), ways(book)
    if way is not None and way not in known:
        raise ValueError(f"way={way!r} is not one of {', '.join(known)}")
    on = {c["number"] for c in course} if way is None else set(known[way])
    needs = direct_needs(course)
    rows = _rows(course, needs)
    widest = max(map(len, rows))
    picture, ax = subplots(
        width=min(9.0, 2.6 * widest), height=0.85 * len(rows), alt=_alt(rows, way, known)
    )
    ax.set(xlim=(-widest / 2, widest / 2), ylim=(0.5 - len(rows), 0.5))
    ax.axis("off")
    places = {}
    for y, line in enumerate(rows):
        for x, chapter in enumerate(line):
            places[chapter["number"]] = place = (x - (len(line) - 1) / 2, -y)
            _box(ax, place, chapter, on=chapter["number"] in on)
    for number, before in needs.items():
        for one in before:
            _arrow(ax, places[one], places[number], on={one, number} <= on)
    return picture


def _rows(course: list[dict], needs: dict[str, list[str]]) -> list[list[dict]]:
    """The chapters by row: each one row below the lowest that it needs."""
    row: dict[str, int] = {}
    for number, before in needs.items():
        row[number] = max((row[one] + 1 for one in before), default=0)
    return [[c for c in course if row[c["number"]] == place] for place in sorted(set(row.values()))]


def _alt(rows: list[list[dict]], way: str | None, known: dict[str, list[str]]) -> str:
    said = "; then ".join(
        " and ".join(f"{chapter['number']} {chapter['title']}" for chapter in line) for line in rows
    )
    alt = f"Map of the course, from top to bottom: {said}. Arrows lead from what a chapter needs to the chapter."
    return f"{alt} Marked, {way}: {', '.join(known[way])}." if way else alt


def _box(ax, place: tuple[float, float], chapter: dict, *, on: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    from course_utils.figures import COLORS

    x, y = place
    color = COLORS["key"] if on else OFF
    box = FancyBboxPatch((x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT, color=color)
    box.set_boxstyle("round", pad=0, rounding_size=0.06)
    ax.add_patch(box)
    text = f"{chapter['number']}  {fill(chapter['title'], 26)}"
    ink = "white" if on else "#444444"
    ax.text(x, y, text, ha="center", va="center", color=ink, fontsize=8.5)


def _arrow(ax, above: tuple[float, float], below: tuple[float, float], *, on: bool) -> None:
    color = "#333333" if on else "#a0a0a0"
    pen = {"arrowstyle": "-|>", "color": color, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
    head, tail = (below[0], below[1] + HEIGHT / 2), (above[0], above[1] - HEIGHT / 2)
    ax.annotate("", head, tail, arrowprops=pen, zorder=0)
