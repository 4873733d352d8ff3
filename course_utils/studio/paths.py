"""The paths through the course, from `book.toml`: their chapters and sections, and the time that they take."""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from course_utils.files import atomic_write
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
    chapters = {chapter.notebook: chapter for chapter in (*course.chapters, *course.appendices)}
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


# What a chapter says of the paths ------------------------------------------------------------------


class Off(NamedTuple):
    """A section that some paths leave out: their titles, and the section that comes next on them, "" for none."""

    section: str
    titles: tuple[str, ...]
    to: str


def left_out_sections(course: Manifest, chapter: Chapter) -> list[Off]:
    """The sections of a chapter that paths leave out, those of a section together by what comes next."""
    found: dict[tuple[str, str], list[str]] = {}
    titles = chapter.content.sections
    for path in course.paths:
        for stop in path.stops:
            taken = stop.sections if stop.chapter == chapter.notebook else ()
            for place, section in enumerate(titles):
                if taken and section not in taken:
                    to = next((later for later in titles[place:] if later in taken), "")
                    found.setdefault((section, to), []).append(path.title)
    return [Off(section, tuple(on), to) for (section, to), on in found.items()]


def named(titles: Iterable[str]) -> str:
    """Paths within a sentence, after "the path": *to GPT, to images and to translation*, or *"Kernels"*."""
    *others, last = (t[0].lower() + t[1:] if t.startswith("To ") else f"*{t}*" for t in titles)
    return f"{', '.join(others)} and {last}" if others else last


def introductions(course: Manifest, stem: str) -> dict[str, list[str]]:
    """The lines at a chapter's start on paths that take only some of its sections, and the titles of these paths."""
    titles: dict[tuple[str, ...], list[str]] = {}
    for path in course.paths:
        for stop in path.stops:
            if stop.chapter == stem and stop.sections:
                titles.setdefault(stop.sections, []).append(path.title)
    return {
        f"On the path {named(on)}: {', '.join(map(_link, sections))}.": on
        for sections, on in titles.items()
    }


def _link(title: str) -> str:
    """A link to a section; its title alone if it has letters beyond ASCII, whose anchors JupyterLab does not find."""
    return f"[{title}](#{title.replace(' ', '-')})" if title.isascii() else f"*{title}*"


def directions(course: Manifest, stem: str) -> dict[str, list[str]]:
    """The lines at a chapter's end on paths that go on elsewhere than with the next chapter, or end here."""
    chapter = next(page for page in course.notebooks if page.notebook == stem)
    after = course.after(chapter) if chapter.kind == "chapter" else None
    lines = {
        f"On the path {named(on)}, [{to.title}]({to.ipynb.name}) comes next.": on
        for to, on in next_chapters(course, chapter).items()
        if to != after
    }
    ended = [path.title for path in course.paths if path.stops[-1].chapter == stem]
    return lines | ({f"The path {named(ended)} ends here.": ended} if ended else {})


WAY_LINE = re.compile(r"(?:On the|The) (?:way|path) \S")
"""The beginning of a line that `introductions` or `directions` gives."""


def introduce(notebook: "NotebookNode", course: Manifest, stem: str) -> None:
    """Put the lines on paths, if there are any, into a second cell tagged `paths` and into the one tagged `next`.

    They take the place of old ones. What an author has added to a line, after a comma, stays.
    """
    from nbformat.v4 import new_markdown_cell  # slow to import

    first, last = ("\n".join(lines(course, stem)) for lines in (introductions, directions))
    cells = [cell for cell in notebook.cells if not _is_tagged(cell, "paths")]
    if first:
        cells.insert(1, new_markdown_cell(first, metadata={"tags": ["paths"]}))
    leading_on = [cell for cell in cells if _is_tagged(cell, "next")]
    if last and not leading_on:
        leading_on = [new_markdown_cell("", metadata={"tags": ["next"]})]
        cells += leading_on
    for cell in leading_on:
        cell.source = with_directions(cell.source, last.splitlines())
    notebook.cells = cells


def _is_tagged(cell: "NotebookNode", tag: str) -> bool:
    return tag in cell.metadata.get("tags", ())


def with_directions(text: str, directions: Iterable[str]) -> str:
    """The text of a cell tagged `next` with these lines behind its first one, in place of old ones."""
    old = [line for line in text.splitlines() if WAY_LINE.match(line)]
    others = [line for line in text.splitlines() if line not in old]
    new = [next((o for o in old if o.startswith(f"{d[:-1]},")), d) for d in directions]
    return "\n".join([*others[:1], *new, *others[1:]])


def write_lines(course: Manifest, chapter: Chapter) -> str:
    """Bring the cells tagged `paths` and `next` of a source up to date.

    Returns:
        A line that says so; "" if they were.
    """
    if chapter.kind == "further" or not chapter.source.is_file():
        return ""
    old = text = chapter.source.read_text(encoding="utf-8")
    first, last = introductions(course, chapter.notebook), directions(course, chapter.notebook)
    text = CELL["paths"].sub("", text)
    if first:
        second = [match.start() for match in re.finditer(r"^# %%", text, re.MULTILINE)][1]
        text = f"{text[:second]}{_cell('paths', [*first])}{text[second:]}"
    if last and not CELL["next"].search(text):
        text = f"{text.rstrip()}\n\n{_cell('next', [])}".rstrip() + "\n"
    text = CELL["next"].sub(
        lambda match: _cell("next", with_directions(_uncommented(match[1]), last).splitlines()),
        text,
    )
    text = text.rstrip() + "\n"
    if text == old:
        return ""
    with atomic_write(chapter.source) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return f"{chapter.source.name} names the paths of {course.path.name}"


CELL = {
    tag: re.compile(rf'^# %% \[markdown\] tags=\["{tag}"\]\n((?:#(?! %%).*\n)*)\n*', re.MULTILINE)
    for tag in ("paths", "next")
}
"""A cell of a source with this tag, and its lines."""


def _cell(tag: str, lines: list[str]) -> str:
    return "\n".join([f'# %% [markdown] tags=["{tag}"]', *(f"# {line}" for line in lines), "", ""])


def _uncommented(lines: str) -> str:
    return re.sub(r"^# ?", "", lines, flags=re.MULTILINE)
