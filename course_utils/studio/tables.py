"""The tables of the chapters and of the paths, in the README and on the start page of Lab."""

import re

from course_utils.files import atomic_write
from course_utils.studio import paths
from course_utils.studio.manifest import Chapter, Manifest


def chapter_table(course: Manifest) -> str:
    """The notebooks as a Markdown table, with links that start at the repository's root."""
    rows = ["| | Chapter | Minutes | Needs | GPU |", "|---|---|---|---|---|"]
    part = ""
    for page in course.notebooks:
        title = "Appendices" if page.kind == "appendix" else page.part
        if title and title != part:
            rows.append(f"| | **{_escape(title)}** | | | |")
        part = title
        rows.append(_row(page))
    return "\n".join(rows)


def _row(page: Chapter) -> str:
    link = f"[{_escape(page.title)}](notebooks/{page.notebook}.ipynb)"
    if page.kind == "further":
        return f"| | {link} | {page.minutes or '–'} | | |"
    needs = ", ".join(stem.partition("_")[0] for stem in page.prerequisites) or "–"
    minutes = page.minutes if page.kind == "chapter" else 0  # an appendix is looked up, not read
    gpu = "optional" if page.gpu else "–"
    return f"| {page.number} | {link} | {minutes or '–'} | {needs} | {gpu} |"


def _escape(text: str) -> str:
    return re.sub(r"([|\[\]\\])", r"\\\1", text)


def paths_table(course: Manifest) -> str:
    """The paths as a table in Markdown; in brackets the sections, where a path takes not all."""
    pages = [chapter.page for chapter in course.chapters if chapter.page]
    practised = paths.hours(sum(page.practised_minutes for page in pages))
    rows = [
        *[("Way", "Chapters (sections)", "About"), ("---",) * 3],
        *paths.summaries(course),
        ("Everything, only read", "all", practised),
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
