"""The tables of the chapters and of the paths, in the README and on the start page of Lab."""

import re
from collections.abc import Mapping

from course_utils.files import atomic_write
from course_utils.studio import paths
from course_utils.studio.manifest import Chapter, Manifest


def chapter_table(course: Manifest) -> str:
    """The notebooks as a Markdown table, with links that start at the repository's root."""
    rows = ["| | Chapter | Minutes | Needs | GPU |", "|---|---|---|---|---|"]
    part = ""
    for chapter in course.notebooks:
        title = "Appendices" if chapter.kind == "appendix" else chapter.part
        if title and title != part:
            rows.append(f"| | **{_escape(title)}** | | | |")
        part = title
        rows.append(_row(chapter))
    return "\n".join(rows)


def _row(chapter: Chapter) -> str:
    link = f"[{_escape(chapter.title)}](notebooks/{chapter.notebook}.ipynb)"
    if chapter.kind == "further":
        return f"| | {link} | {chapter.minutes or '–'} | | |"
    needs = ", ".join(stem.partition("_")[0] for stem in chapter.prerequisites) or "–"
    minutes = (
        chapter.minutes if chapter.kind == "chapter" else 0
    )  # an appendix is looked up, not read
    gpu = "optional" if chapter.gpu else "–"
    return f"| {chapter.number} | {link} | {minutes or '–'} | {needs} | {gpu} |"


MARKS = "○◔◑◕●"
"""Marks of a station, by the share of its exercises that are solved: from none to all."""


def stations(course: Manifest, passed: Mapping[str, str]) -> str:
    """The map for JupyterLab, in Markdown: a row of stations for each part, each with a mark of its solved exercises.

    Args:
        course: its chapters by part.
        passed: the exercises that passed, "kernel_regression/fixed_loss", and their days.
    """
    lines: list[str] = []
    for part in course.parts or ("",):
        chapters = [chapter for chapter in course.chapters if chapter.part == part]
        marks = " | ".join(_mark(chapter, passed) for chapter in chapters)
        rule = "|".join([":-:"] * len(chapters))
        links = " | ".join(map(_station, chapters))
        lines += [
            f"### {_escape(part)}" if part else "",
            "",
            f"| {marks} |",
            f"|{rule}|",
            f"| {links} |",
            "",
        ]
    others = [page for page in course.notebooks if page.kind == "appendix"]
    look_up = " · ".join(f"[{_escape(page.title)}]({page.notebook}.ipynb)" for page in others)
    return "\n".join([*lines, f"Appendices: {look_up}" if look_up else ""]).strip()


def _station(chapter: Chapter) -> str:
    first, *further = chapter.with_further()
    links = f"[**{chapter.number}**<br>{_escape(chapter.title)}]({first.notebook}.ipynb)"
    return links + "".join(f"<br>[further]({page.notebook}.ipynb)" for page in further)


def _mark(chapter: Chapter, passed: Mapping[str, str]) -> str:
    solved, total = _solved(chapter, passed)
    if solved in (0, total):
        return MARKS[-1 if solved else 0]
    return MARKS[min(max(round(4 * solved / total), 1), 3)]


def _solved(chapter: Chapter, passed: Mapping[str, str]) -> tuple[int, int]:
    """The number of exercises of a chapter and its further page that passed, and of all."""
    texts = [
        page.source.read_text(encoding="utf-8")
        for page in chapter.with_further()
        if page.source.is_file()
    ]
    names = {
        name for text in texts for name in re.findall(r"^cu\.checks\.(\w+)\(", text, re.MULTILINE)
    }
    return len({f"{chapter.slug}/{name}" for name in names} & passed.keys()), len(names)


def place(course: Manifest, passed: Mapping[str, str]) -> str:
    """A sentence in Markdown with a link to the chapter to begin with or to go on with."""
    slugs = {
        exercise.partition("/")[0]
        for exercise, day in passed.items()
        if day == max(passed.values())
    }
    recent = [chapter for chapter in course.chapters if chapter.slug in slugs]
    if not recent:
        return f"**Begin with {_link(course.chapters[0])}.**"
    solved, total = _solved(recent[-1], passed)
    if solved < total:
        return f"**Go on with {_link(recent[-1])}**, where you have solved {solved} of {total} exercises."
    after = course.chapters[course.chapters.index(recent[-1]) + 1 :]
    if not after:
        return f"You have solved all exercises of {_link(recent[-1])}, the last chapter."
    return f"**Go on with {_link(after[0])}**, because {_link(recent[-1])} is done."


def _link(chapter: Chapter) -> str:
    return f"[{chapter.number} · {_escape(chapter.title)}]({chapter.notebook}.ipynb)"


def _escape(text: str) -> str:
    return re.sub(r"([|\[\]\\])", r"\\\1", text)


def paths_table(course: Manifest) -> str:
    """The paths as a table in Markdown, with the sections in brackets if a path takes only some."""
    practised = paths.hours(sum(chapter.content.reading_minutes for chapter in course.chapters))
    rows = [
        *[("Way", "Chapters (sections)", "About"), ("---",) * 3],
        *paths.summaries(course),
        ("All chapters, only read", "without the further pages", practised),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def write_tables(course: Manifest) -> None:
    """Bring the tables in the README beside the manifest up to date, if there is one.

    They show all chapters, chosen or not: a release writes there, too, and the two would meet in a conflict.
    """
    path = course.root / "README.md"
    if not path.is_file():
        return
    old = text = path.read_text(encoding="utf-8")
    for name, table in {"chapters": chapter_table, "paths": paths_table}.items():
        before, start, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"\n<!-- /{name} -->")
        if start and end:
            text = f"{before}{start}{table(course.whole)}{end}{after}"
    if text != old:
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
