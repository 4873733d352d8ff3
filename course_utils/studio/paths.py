"""The paths through the course, from `book.toml`: their chapters and sections, and the time that they take."""

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from course_utils.studio.manifest import Chapter, Manifest, Stop

if TYPE_CHECKING:
    from nbformat import NotebookNode


class Leg(NamedTuple):
    """A leg of a path: a chapter, the titles of the sections to read (empty for all), and minutes."""

    chapter: Chapter
    sections: tuple[str, ...]
    minutes: int

    def __str__(self) -> str:
        """``09 (1–3, 5)``: the chapter, and the numbers of the sections."""
        titles = enumerate(self.chapter.content.sections, 1)
        numbers = [number for number, title in titles if title in self.sections]
        return f"{self.chapter.number} ({spans(numbers)})" if numbers else self.chapter.number


def spans(numbers: list[int]) -> str:
    """``1–3, 5`` for 1, 2, 3 and 5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def legs(course: Manifest) -> dict[str, list[Leg]]:
    """The paths through the course: title → its legs, in order."""
    chapters = {chapter.notebook: chapter for chapter in course.chapters}
    return {
        path.title: [_leg(chapters[stop.chapter], stop) for stop in path.stops]
        for path in course.paths
    }


def _leg(chapter: Chapter, stop: Stop) -> Leg:
    content = chapter.content
    taken = content.with_sections(stop.sections) if stop.sections else content
    return Leg(chapter, stop.sections, taken.minutes)


def next_chapters(course: Manifest, chapter: Chapter) -> dict[Chapter, list[str]]:
    """The chapters after a chapter: the next one, then those next on a path, each with the titles of these paths."""
    following: dict[Chapter, list[str]] = {}
    if chapter in course.chapters and (after := course.after(chapter)):
        following[after] = []
    for title, path in legs(course).items():
        for before, after in pairwise(leg.chapter for leg in path):
            if before == chapter:
                following.setdefault(after, []).append(title)
    return following


def hours(minutes: int) -> str:
    """Minutes as a text in hours, to the half hour."""
    halves = max(1, round(minutes / 30))
    return f"{halves // 2 or ''}{'½' if halves % 2 else ''} {'hours' if halves > 2 else 'hour'}"


def summaries(course: Manifest) -> list[tuple[str, str, str]]:
    """Title, chapters and hours of each path, and of the whole course."""
    lines = [
        (title, " → ".join(map(str, path)), hours(sum(leg.minutes for leg in path)))
        for title, path in legs(course).items()
    ]
    whole = sum(chapter.minutes for chapter in course.chapters)
    return [*lines, ("All chapters", "without the further pages", hours(whole))]


def introduction(course: Manifest, stem: str) -> str:
    """The lines at a chapter's start on paths that take only some of its sections."""
    titles: dict[tuple[str, ...], list[str]] = {}
    for path in course.paths:
        for stop in path.stops:
            if stop.chapter == stem and stop.sections:
                title = path.title[0].lower() + path.title[1:]
                titles.setdefault(stop.sections, []).append(title)
    return "\n".join(
        f"On the way {' and '.join(paths)}: {', '.join(map(_link, sections))}."
        for sections, paths in titles.items()
    )


def _link(title: str) -> str:
    """A link to a section; its title alone if it has letters beyond ASCII, whose anchors JupyterLab does not find."""
    return f"[{title}](#{title.replace(' ', '-')})" if title.isascii() else f"*{title}*"


def introduce(notebook: "NotebookNode", course: Manifest, stem: str) -> None:
    """Put the lines on paths, if there are any, into a second cell tagged `paths`, in place of an old one."""
    text = introduction(course, stem)
    cells = [cell for cell in notebook.cells if "paths" not in cell.metadata.get("tags", ())]
    if text:
        from nbformat.v4 import new_markdown_cell  # slow to import

        cells.insert(1, new_markdown_cell(text, metadata={"tags": ["paths"]}))
    notebook.cells = cells
