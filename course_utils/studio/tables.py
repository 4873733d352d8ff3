"""The tables of the chapters and of the ways, in the README and on the start page of Lab."""

import re
from typing import TYPE_CHECKING

from course_utils.files import atomic_write
from course_utils.studio.ways import ways_table

if TYPE_CHECKING:
    from course_utils.studio.manifest import Chapter, Manifest


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


def write_tables(manifest: "Manifest") -> None:
    """Bring the tables in the README beside the manifest up to date, if there is one.

    They show all chapters, chosen or not: a release writes there, too, and the two would meet in a conflict.
    """
    path = manifest.path.resolve().parent / "README.md"
    if not path.is_file():
        return
    new = text = path.read_text(encoding="utf-8")
    for name, table in {"chapters": chapter_table, "ways": ways_table}.items():
        before, start, rest = new.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"\n<!-- /{name} -->")
        if start and end:
            new = f"{before}{start}{table(manifest.whole)}{end}{after}"
    if new != text:
        with atomic_write(path) as part:
            part.write_text(new, encoding="utf-8")
