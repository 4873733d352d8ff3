"""The map of the course in *Start here*, drawn from ``book.toml``."""

import tomllib
from pathlib import Path
from textwrap import fill

from matplotlib.patches import FancyBboxPatch

from course_utils.figures import COLORS, Picture, subplots
from course_utils.runtime import ROOT

WIDTH, HEIGHT = 0.86, 0.56  # of a box, where the boxes of a row are 1 apart


def chapters(book: Path = ROOT / "book.toml") -> list[dict]:
    """The chapters in order: number, title, minutes where they are known, and what each one needs.

    Args:
        book: the course's manifest. ``needs`` holds the numbers of chapters.
    """
    table = tomllib.loads(book.read_text(encoding="utf-8"))["chapter"]
    return [
        {
            "number": _number(chapter["notebook"]),
            "title": chapter["title"],
            "minutes": chapter.get("minutes", ""),
            "needs": [_number(stem) for stem in chapter.get("prerequisites", ())],
        }
        for chapter in table
    ]


def _number(stem: str) -> str:
    return stem.partition("_")[0]


def direct_needs(course: list[dict]) -> dict[str, list[str]]:
    """What each chapter needs, without what is needed by one of these anyway."""
    needs = {chapter["number"]: chapter["needs"] for chapter in course}

    def reached(number: str) -> set[str]:
        return {number}.union(*(reached(before) for before in needs[number]))

    return {
        number: [
            one
            for one in before
            if not any(one in reached(other) for other in before if other != one)
        ]
        for number, before in needs.items()
    }


def course_map(book: Path = ROOT / "book.toml") -> Picture:
    """Draw the chapters from top to bottom, each below all that it needs."""
    course = chapters(book)
    needs = direct_needs(course)
    row: dict[str, int] = {}
    for number, before in needs.items():  # a chapter stands after what it needs
        row[number] = max((row[one] + 1 for one in before), default=0)
    rows = [[c for c in course if row[c["number"]] == place] for place in sorted(set(row.values()))]
    widest = max(map(len, rows))
    said = "; then ".join(
        " and ".join(f"{chapter['number']} {chapter['title']}" for chapter in line) for line in rows
    )
    picture, ax = subplots(
        width=min(9.0, 2.6 * widest),
        height=0.85 * len(rows),
        alt=f"Map of the course, from top to bottom: {said}. Arrows lead from what a chapter needs to the chapter.",
    )
    ax.set(xlim=(-widest / 2, widest / 2), ylim=(0.5 - len(rows), 0.5))
    ax.axis("off")
    places = {}
    for y, line in enumerate(rows):
        for x, chapter in enumerate(line):
            places[chapter["number"]] = place = (x - (len(line) - 1) / 2, -y)
            _box(ax, place, chapter)
    pen = {"arrowstyle": "-|>", "color": "#555555", "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
    for number, before in needs.items():
        for one in before:
            (x0, y0), (x1, y1) = places[one], places[number]
            ends = (x1, y1 + HEIGHT / 2), (x0, y0 - HEIGHT / 2)
            ax.annotate("", *ends, arrowprops=pen, zorder=0)
    return picture


def _box(ax, place: tuple[float, float], chapter: dict) -> None:
    x, y = place
    box = FancyBboxPatch((x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT, color=COLORS["blue"])
    box.set_boxstyle("round", pad=0, rounding_size=0.06)
    ax.add_patch(box)
    text = f"{chapter['number']}  {fill(chapter['title'], 26)}"
    ax.text(x, y, text, ha="center", va="center", color="white", fontsize=8.5)
