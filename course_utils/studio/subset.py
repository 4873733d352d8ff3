"""Notebooks of a course that leaves chapters out, for its book and its handout.

Sources and notebooks on disk are those of all chapters; nothing is written there.
"""

import copy
import re
from collections.abc import Container
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from course_utils.studio import paths
from course_utils.studio.course_map import CourseMap
from course_utils.studio.links import LINK, outside_code, places, texts
from course_utils.studio.manifest import Chapter, Manifest

RECALL = re.compile(r"\bcu\.recall\(([^)]*)\)")
QUIZ = re.compile(r'^cu\.quiz\("(\w+)"\)$', re.MULTILINE)
TAUGHT = re.compile(r"\*Taught in\* (.*)\.$", re.MULTILINE)


def trim(notebook: NotebookNode, course: Manifest, chapter: Chapter) -> NotebookNode:
    """A copy of a notebook whose map, links and recalls know only the chosen chapters."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code" and re.search(r"(?m)^course_map\(\)$", cell.source):
            _show(cell, CourseMap(course))
    if not course.left_out:
        return notebook
    notebook.cells = [cell for cell in notebook.cells if _restrict_recall(cell, course)]
    if chapter.kind != "further":
        paths.introduce(notebook, course, chapter.notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code" and (match := QUIZ.search(cell.source)):
            _show(cell, _quiz(match[1], course))
        if cell.cell_type == "markdown":
            if "next" in cell.metadata.get("tags", ()):
                cell.source = _lead_on(cell.source, course, chapter)
            cell.source = trim_text(cell.source, course)
    notebook.cells = [cell for cell in notebook.cells if cell.source]
    return notebook


def trim_text(text: str, course: Manifest) -> str:
    """A page of Markdown with links to chosen chapters only."""
    return outside_code(text, lambda part: _linked(part, course)) if course.left_out else text


def _show(cell: NotebookNode, value: Any) -> None:
    """Replace the output of an executed cell by that of a value."""
    from IPython.core.formatters import DisplayFormatter  # slow to import

    for output in [output for output in cell.outputs if "data" in output][:1]:
        output.data = NotebookNode(DisplayFormatter().format(value)[0])
        cell.outputs = [output]


def _restrict_recall(cell: NotebookNode, course: Manifest) -> bool:
    """Restrict the chapters of a recall, in place, to chosen ones; False if none of them is chosen."""
    match = RECALL.search(cell.source) if cell.cell_type == "code" else None
    if not match:
        return True
    slugs = re.findall(r'"(\w+)"', match[1])
    chosen = [slug for slug in slugs if slug in {chapter.slug for chapter in course.chapters}]
    if chosen != slugs and chosen:
        from course_utils.kit.quiz import recall  # slow to import

        arguments = ", ".join(f'"{slug}"' for slug in chosen)
        cell.source = cell.source.replace(match[0], f"cu.recall({arguments})")
        _show(cell, recall(*chosen, book=course.path))
    return bool(chosen)


def _quiz(slug: str, course: Manifest) -> Any:
    """The quiz at a chapter's end, which leads on to the next of the chosen chapters."""
    from course_utils.kit.quiz import quiz  # slow to import

    return quiz(slug, book=course.path)


def _lead_on(text: str, course: Manifest, chapter: Chapter) -> str:
    """The lines on what comes next: none links a chapter left out, and one links the next chosen chapter."""
    lines = text.splitlines()
    kept = [line for line in lines if not _links(line, course.left_out)]
    if (after := course.after(chapter)) and not any(
        _links(line, [after.ipynb.name]) for line in kept
    ):
        kept.insert(0, f"Next: [{after.title}]({after.ipynb.name}).")
    return "\n".join(kept)


def _links(line: str, files: Container[str]) -> bool:
    """Whether a line links one of these notebooks."""
    return any(_file(link) in files for link in LINK.finditer(line))


def _linked(text: str, course: Manifest) -> str:
    """Links to chapters left out lead to the full course, or say that they aren't in this one."""

    def link(match: re.Match) -> str:
        place = match["target"].partition("#")[2]
        page = course.left_out.get(_file(match))
        if page is None:
            return match[0]
        if not course.full_course:
            return f"{match['text']} (not in this course)"
        anchor = f"#{_places(page.ipynb).get(place, place)}" if place else ""
        address = f"{course.full_course.rstrip('/')}/{page.notebook}.html{anchor}"
        return f"[{match['text']}]({address})"

    def taught(match: re.Match) -> str:
        chosen = [m[0] for m in LINK.finditer(match[0]) if _file(m) not in course.left_out]
        return f"*Taught in* {', '.join(chosen)}." if chosen else "Not taught in this course."

    return LINK.sub(link, text if course.full_course else TAUGHT.sub(taught, text))


def _file(link: re.Match) -> str:
    """The notebook that a link leads to."""
    return link["target"].partition("#")[0].rpartition("/")[2]


@cache
def _places(ipynb: Path) -> dict[str, str]:
    """The anchors of a page; none if its file is missing."""
    return places(texts(nbformat.read(ipynb, as_version=4))) if ipynb.is_file() else {}
