"""The tables of the chapters and of the paths, in the README."""

import re

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


def _escape(text: str) -> str:
    return re.sub(r"([|\[\]\\])", r"\\\1", text)


def paths_table(course: Manifest) -> str:
    """The paths as a table in Markdown, with the sections in brackets if a path takes only some."""
    practised = paths.hours(sum(chapter.content.reading_minutes for chapter in course.chapters))
    rows = [
        *[("Path", "Chapters (sections)", "About"), ("---",) * 3],
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
