"""The map of the course, from `book.toml`: a line for each part, a station for each chapter, and the paths.

It is a list of links, which a style sheet draws as lines and stations: side by side where there is room, upright on a
phone. `course_map.js` adds what moves: the path that is chosen, its stops, what a chapter needs, and which were read.
"""

from collections.abc import Mapping
from html import escape
from itertools import cycle
from pathlib import Path

from course_utils.kit.passed import passed_exercises
from course_utils.studio import paths
from course_utils.studio.manifest import Chapter, Manifest, load
from course_utils.studio.place import place, solved
from course_utils.studio.plain_formula import plain_text

COLORS = ("key", "value", "query", "plum", "wrong")  # of the parts, in their order
STATIC = Path(__file__).parent / "book" / "static"
STYLE, SCRIPT = STATIC / "course_map.css", STATIC / "course_map.js"


class CourseMap:
    """The map as HTML in a notebook and in the book, as lines in a terminal.

    Args:
        course: its chapters and paths.
        passed: the exercises that passed and their days, to fill the stations; None for a map without a reader.
    """

    def __init__(self, course: Manifest, passed: Mapping[str, str] | None = None):
        self.course, self.passed = course, passed
        self.legs = [*paths.legs(course).values()]
        self.paths = [{leg.chapter.notebook for leg in way} for way in self.legs]

    def __repr__(self) -> str:
        lines = paths.summaries(self.course)
        return "\n".join(f"{title}: {chapters} ({time})" for title, chapters, time in lines)

    def _repr_html_(self) -> str:
        from course_utils.figures.style import tokens_css  # slow, and a terminal needs none

        style = tokens_css() + STYLE.read_text(encoding="utf-8")
        *on_paths, _ = paths.summaries(self.course)  # without the whole course
        listed = "".join(
            f'<li data-way="{i}"><span>{escape(title)}</span> <em>{escape(self.course.paths[i].about)}</em> '
            f"<i>{chapters}</i> {time}</li>"
            for i, (title, chapters, time) in enumerate(on_paths)
        )
        lines = "".join(map(self._line, self.course.parts or ("",), cycle(COLORS)))
        stops = "".join(map(self._stops, range(len(self.legs))))
        return (
            f'<nav class="cu-map" aria-label="Map of the course"><style>{style}</style>'
            f'<ol class="cu-map-lines">{lines}</ol><p class="cu-map-said" role="status"></p>'
            f'<ul class="cu-map-ways" aria-label="Paths through the course">{listed}</ul>{stops}'
            f"<script>{SCRIPT.read_text(encoding='utf-8')}</script></nav>"
        )

    def _stops(self, way: int) -> str:
        """The stops of a path in order, each with its sections, its minutes and, for a reader, the solved exercises."""
        legs = self.legs[way]
        go_on = ""
        if self.passed is not None:
            taken = {leg.chapter: _taken(leg) for leg in legs}
            go_on = f"<p>{place([*taken], self.passed, taken, _link)}</p>"
        title = escape(self.course.paths[way].title)
        return (
            f'<section class="cu-map-stops" data-stops="{way}" aria-label="{title}" hidden>{go_on}'
            f"<ol>{''.join(map(self._stop, legs))}</ol></section>"
        )

    def _stop(self, leg: paths.Leg) -> str:
        facts = [f"{leg.minutes} minutes"]
        if self.passed:
            done, total = solved(leg.chapter, self.passed, _taken(leg))
            facts += [f"{done} of {total} exercises solved"] if done else []
        sections = f"<div>{escape(' · '.join(leg.sections))}</div>" if leg.sections else ""
        return f"<li>{_link(leg.chapter)} <i>{', '.join(facts)}</i>{sections}</li>"

    def _line(self, part: str, color: str) -> str:
        stations = "".join(self._station(c) for c in self.course.chapters if c.part == part)
        return f'<li style="--line: var(--cu-{color})"><strong>{escape(part)}</strong><ol>{stations}</ol></li>'

    def _station(self, chapter: Chapter) -> str:
        on = [str(i) for i, stems in enumerate(self.paths) if chapter.notebook in stems]
        needs = sorted(stem.partition("_")[0] for stem in chapter.prerequisites)
        further = "".join(
            f' <a class="cu-map-further" href="{page.notebook}.ipynb" title="{escape(page.title)}">further</a>'
            for page in [*chapter.with_further()][1:]
        )
        done, total = solved(chapter, self.passed) if self.passed else (0, 0)
        filled = title = ""
        if done:
            state = "done" if done == total else "begun"
            filled = f' data-state="{state}" style="--share: {100 * done / total:.0f}%"'
            title = f' title="{done} of {total} exercises solved"'
        return (
            f'<li data-page="{chapter.notebook}" data-number="{chapter.number}"{filled} '
            f'data-needs="{" ".join(needs)}" data-ways="{" ".join(on)}">'
            f'<a href="{chapter.notebook}.ipynb"{title}><b>{chapter.number}</b> <span>{escape(chapter.title)}</span> '
            f"<small>{escape(plain_text(chapter.question))} About {chapter.minutes} minutes.</small></a>{further}</li>"
        )


def _taken(leg: paths.Leg) -> list[str]:
    """The sections of a stop, all of them if it names none."""
    return [*(leg.sections or leg.chapter.content.sections)]


def _link(chapter: Chapter) -> str:
    return f'<a href="{chapter.notebook}.ipynb">{chapter.number} · {escape(chapter.title)}</a>'


def course_map(*, mine: bool = False) -> CourseMap:
    """The map of this course; with `mine`, its stations are filled with the exercises that you have solved."""
    if not mine:
        return CourseMap(load(files=False))
    passed = {exercise: entry["day"] for exercise, entry in passed_exercises().items()}
    return CourseMap(load(files=False), passed)
