"""The ways through the course, from `book.toml`: what each takes of which chapter, and how long that takes."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from course_utils.studio.manifest import Chapter, Manifest

if TYPE_CHECKING:
    from nbformat import NotebookNode


class Part(NamedTuple):
    """What a way takes of a chapter.

    Attributes:
        chapter: the chapter.
        sections: their numbers and titles; empty where it takes all.
        minutes: for what it takes.
    """

    chapter: Chapter
    sections: tuple[tuple[int, str], ...]
    minutes: int

    def __str__(self) -> str:
        """``09 (1–3, 5)``: the chapter, and the numbers of the sections."""
        if not self.sections:
            return self.chapter.number
        return f"{self.chapter.number} ({spans([number for number, _ in self.sections])})"


def spans(numbers: list[int]) -> str:
    """``1–3, 5`` for 1, 2, 3 and 5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def ways(course: Manifest) -> dict[str, list[Part]]:
    """The ways through the course: title → what it takes of each of its chapters, in order."""
    stems = {chapter.notebook: chapter for chapter in course.chapters}
    return {
        way.title: [_part(stems[stop.chapter], stop.sections) for stop in way.stops]
        for way in course.ways
    }


def onward(course: Manifest, chapter: Chapter) -> dict[Chapter, list[str]]:
    """What comes after a chapter: the next one, then those next on a way; each with the titles of these ways."""
    found: dict[Chapter, list[str]] = {}
    for before, after in pairwise(course.chapters):
        if before == chapter:
            found[after] = []
    stems = {each.notebook: each for each in course.chapters}
    for way in course.ways:
        for stop, following in pairwise(way.stops):
            if stop.chapter == chapter.notebook:
                found.setdefault(stems[following.chapter], []).append(way.title)
    return found


def _part(chapter: Chapter, titles: tuple[str, ...]) -> Part:
    if not (titles and chapter.page):
        return Part(chapter, (), chapter.minutes)
    named = enumerate((section.title for section in chapter.page.sections), 1)
    sections = tuple((number, title) for number, title in named if title in titles)
    return Part(chapter, sections, chapter.page.only(titles).minutes)


def hours(minutes: int) -> str:
    """So many minutes in hours, to the half hour."""
    halves = max(1, round(minutes / 30))
    return f"{halves // 2 or ''}{'½' if halves % 2 else ''} {'hours' if halves > 2 else 'hour'}"


def summaries(course: Manifest) -> list[tuple[str, str, str]]:
    """A line for each way, and one for everything: title, chapters, hours."""
    found = [
        (title, " → ".join(map(str, parts)), hours(sum(part.minutes for part in parts)))
        for title, parts in ways(course).items()
    ]
    whole = sum(chapter.minutes for chapter in course.chapters)
    return [*found, ("Everything", "all", hours(whole))]


def ways_table(course: Manifest) -> str:
    """The ways as a table in Markdown; in brackets the sections, where a way takes not all."""
    pages = [chapter.page for chapter in course.chapters if chapter.page]
    practised = hours(sum(page.practised_minutes for page in pages))
    rows = [
        *[("Way", "Chapters (sections)", "About"), ("---",) * 3],
        *summaries(course),
        ("Everything, only read", "all", practised),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def told(course: Manifest, stem: str) -> str:
    """What a chapter says first of the ways that take not all of it: a line for each choice of sections."""
    taken: dict[tuple[str, ...], list[str]] = {}
    for way in course.ways:
        for stop in way.stops:
            if stop.chapter == stem and stop.sections:
                taken.setdefault(stop.sections, []).append(way.title[0].lower() + way.title[1:])
    return "\n".join(
        f"On the way {' and '.join(titles)}: {', '.join(map(_linked, sections))}."
        for sections, titles in taken.items()
    )


def _linked(title: str) -> str:
    """JupyterLab finds no place with letters beyond ASCII."""
    return f"[{title}](#{title.replace(' ', '-')})" if title.isascii() else f"*{title}*"


ON_THE_WAY = re.compile(r"\n\nOn the way .*\Z", re.DOTALL)


def tell(notebook: "NotebookNode", told: str) -> None:
    """End the first text, in place, with what is told of the ways."""
    first = notebook.cells[0]
    first.source = ON_THE_WAY.sub("", first.source) + (f"\n\n{told}" if told else "")
