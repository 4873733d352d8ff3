"""Tables of the course: its chapters, in the README and on the first pages, and the ways through it, `ways()`."""

import re
from typing import TYPE_CHECKING

from course_utils.files import atomic_write
from course_utils.lessons.start_here import course_map

if TYPE_CHECKING:
    from course_utils.studio.manifest import Chapter, Manifest

# The chapters --------------------------------------------------------------------------------


def chapter_table(manifest: "Manifest") -> str:
    """The notebooks as a Markdown table, with links that start at the repository's root."""
    rows = ["| | Chapter | Minutes | Needs | GPU |", "|---|---|---|---|---|"]
    part = ""
    for chapter in manifest.notebooks:
        if chapter.part != part and chapter.part:
            rows.append(f"| | **{_escape(chapter.part)}** | | | |")
        if chapter.kind == "appendix" and chapter == manifest.appendices[0]:
            rows.append("| | **Appendices** | | | |")
        part = chapter.part
        rows.append(_table_row(chapter))
    return "\n".join(rows)


def _table_row(chapter: "Chapter") -> str:
    link = f"[{_escape(chapter.title)}](notebooks/{chapter.notebook}.ipynb)"
    if chapter.kind == "further":
        return f"| | {link} | {chapter.minutes or '–'} | | |"
    needs = ", ".join(stem.partition("_")[0] for stem in chapter.prerequisites) or "–"
    gpu = "optional" if chapter.gpu else "–"
    minutes = (
        chapter.minutes if chapter.kind == "chapter" else 0
    )  # an appendix is looked up, not read
    return f"| {chapter.number} | {link} | {minutes or '–'} | {needs} | {gpu} |"


def _escape(text: str) -> str:
    return re.sub(r"([|\[\]\\])", r"\\\1", text)


def write_chapter_table(manifest: "Manifest") -> None:
    """Bring the table in the README beside the manifest up to date, if there is one."""
    path = manifest.path.resolve().parent / "README.md"
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8")
    before, start, rest = text.partition("<!-- chapters -->\n")
    _, end, after = rest.partition("\n<!-- /chapters -->")
    new = f"{before}{start}{chapter_table(manifest)}{end}{after}"
    if start and end and new != text:
        with atomic_write(path) as part:
            part.write_text(new, encoding="utf-8")


# The ways ------------------------------------------------------------------------------------

ALL = "Everything"


class Ways:
    """A table of the ways: a table in a notebook, lines in a terminal."""

    def __init__(self, course: "Manifest"):
        minutes = {chapter.number: chapter.minutes for chapter in course.chapters}
        chosen = course_map.ways(course.path) | {ALL: list(minutes)}
        self.rows = [
            (title, " → ".join(numbers) if title != ALL else "all", hours(minutes, numbers))
            for title, numbers in chosen.items()
        ]
        missing = {title: None for way in course.ways for title in way.planned}  # in order, once
        self.note = f"Not written yet, and not counted: {', '.join(missing)}." if missing else ""

    def __repr__(self) -> str:
        lines = [f"{title}: {chapters} ({time})" for title, chapters, time in self.rows]
        return "\n".join([*lines, *filter(None, [self.note])])

    def _repr_markdown_(self) -> str:
        lines = ["| Way | Chapters | About |", "|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join([*lines, "", self.note]).rstrip()


def hours(minutes: dict[str, int], numbers: list[str]) -> str:
    """The hours that these chapters take, exercises included, to the half hour."""
    known = [minutes[number] for number in numbers]
    if 0 in known:  # not written yet
        return "–"
    halves = max(1, round(sum(known) / 30))
    return f"{halves // 2 or ''}{'½' if halves % 2 else ''} {'hours' if halves > 2 else 'hour'}"


def ways() -> Ways:
    """The ways through the course: which chapters, and how many hours with their exercises.

    A way holds the chapters that it leads to and all that these need, so it agrees with `course_map`.
    Hours are added up from the estimates for the chapters, and rounded to the half hour.
    """
    from course_utils.studio import manifest  # slow, and few cells need it

    return Ways(manifest.load(files=False))
