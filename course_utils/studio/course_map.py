"""The map of the course, from `book.toml`: a line a part, a station a chapter, and the ways through it.

It is a list of links, which a style sheet draws as lines and stations: side by side where there is room, upright on a
phone. In the book `map.js` adds what moves: a way that is chosen, what a chapter needs, and which were read.
"""

from html import escape
from pathlib import Path

from course_utils.studio.manifest import Chapter, Manifest, load
from course_utils.studio.ways import summaries, ways

LINES = ("key", "value", "query", "plum")
"""The colors of the parts, in their order."""


STYLE = Path(__file__).parent / "book" / "static" / "course_map.css"


class CourseMap:
    """The map as HTML in a notebook and in the book, as lines in a terminal."""

    def __init__(self, course: Manifest):
        self.course, self.ways = course, ways(course)

    def __repr__(self) -> str:
        return "\n".join(
            f"{way}: {chapters} ({time})" for way, chapters, time in summaries(self.course)
        )

    def _repr_html_(self) -> str:
        all_ways = "".join(
            f'<li data-way="{i}"><span>{escape(title)}</span> <i>{chapters}</i> {time}</li>'
            for i, (title, chapters, time) in enumerate(summaries(self.course)[:-1])
        )
        lines = "".join(
            self._line(part, color) for part, color in zip(self.course.parts, LINES, strict=False)
        )
        return (
            f'<nav class="cu-map" aria-label="Map of the course"><style>{_style()}</style>'
            f'<ol class="cu-map-lines">{lines}</ol><p class="cu-map-said" role="status"></p>'
            f'<ul class="cu-map-ways" aria-label="Ways through the course">{all_ways}</ul></nav>'
        )

    def _line(self, part: str, color: str) -> str:
        stations = "".join(map(self._station, (c for c in self.course.chapters if c.part == part)))
        return f'<li style="--line: var(--cu-{color})"><strong>{escape(part)}</strong><ol>{stations}</ol></li>'

    def _station(self, chapter: Chapter) -> str:
        on = " ".join(
            str(i)
            for i, parts in enumerate(self.ways.values())
            if any(part.chapter == chapter for part in parts)
        )
        needs = " ".join(sorted(stem.partition("_")[0] for stem in chapter.prerequisites))
        page, *further = chapter.pages()
        side = "".join(
            f' <a class="cu-map-further" href="{other.notebook}.ipynb" title="{escape(other.title)}">further</a>'
            for other in further
        )
        return (
            f'<li data-page="{chapter.notebook}" data-number="{chapter.number}" data-needs="{needs}" data-ways="{on}">'
            f'<a href="{page.notebook}.ipynb"><b>{chapter.number}</b> <span>{escape(chapter.title)}</span> '
            f"<small>{escape(chapter.question)} About {chapter.minutes} minutes.</small></a>{side}</li>"
        )


def _style() -> str:
    from course_utils.figures.style import tokens_css  # slow, and a list in a terminal needs none

    return tokens_css() + STYLE.read_text(encoding="utf-8")


def course_map() -> CourseMap:
    """The map of the course that this notebook belongs to: its chapters by part, and the ways through it.

    Hours are the sum of the minutes of chapters and sections, rounded to the half hour.
    """
    return CourseMap(load(files=False))
