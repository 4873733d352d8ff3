"""The map of the course, from `book.toml`: a line for each part, a station for each chapter, and the paths.

It is a list of links, which a style sheet draws as lines and stations: side by side where there is room, upright on a
phone. In the book `course_map.js` adds what moves: the path that is chosen, what a chapter needs, and which were read.
"""

from html import escape
from itertools import cycle
from pathlib import Path

from course_utils.studio import paths
from course_utils.studio.manifest import Chapter, Manifest, load

COLORS = ("key", "value", "query", "plum", "wrong")  # of the parts, in their order
STYLE = Path(__file__).parent / "book" / "static" / "course_map.css"


class CourseMap:
    """The map as HTML in a notebook and in the book, as lines in a terminal."""

    def __init__(self, course: Manifest):
        ways = paths.legs(course).values()
        self.course, self.paths = course, [{leg.chapter.notebook for leg in way} for way in ways]

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
        lines = "".join(map(self._line, self.course.parts, cycle(COLORS)))
        return (
            f'<nav class="cu-map" aria-label="Map of the course"><style>{style}</style>'
            f'<ol class="cu-map-lines">{lines}</ol><p class="cu-map-said" role="status"></p>'
            f'<ul class="cu-map-ways" aria-label="Ways through the course">{listed}</ul></nav>'
        )

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
        return (
            f'<li data-page="{chapter.notebook}" data-number="{chapter.number}" '
            f'data-needs="{" ".join(needs)}" data-ways="{" ".join(on)}">'
            f'<a href="{chapter.notebook}.ipynb"><b>{chapter.number}</b> <span>{escape(chapter.title)}</span> '
            f"<small>{escape(chapter.question)} About {chapter.minutes} minutes.</small></a>{further}</li>"
        )


def course_map() -> CourseMap:
    """The map of this course."""
    return CourseMap(load(files=False))
