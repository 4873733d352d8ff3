"""A notebook as it is in a course that leaves chapters out: what its book and its handout show.

Sources and notebooks on disk are those of all chapters; nothing is written there.
"""

import copy
import re
from functools import cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_utils.studio.course_map import CourseMap
from course_utils.studio.links import LINK, outside_code, places, texts, with_texts
from course_utils.studio.manifest import Chapter, Manifest
from course_utils.studio.ways import tell, told

MAP = re.compile(r"^course_map\(\)$", re.MULTILINE)
RECALL = re.compile(r"\bcu\.recall\(([^)]*)\)")
TAUGHT = re.compile(r"\*Taught in\* (.*)\.$", re.MULTILINE)
NEXT = re.compile(r"^Next: .*\n?", re.MULTILINE)
WAY = re.compile(r"^On the way (?:to )?(\w[^:\n]*): .*\n?", re.MULTILINE)


def fit(notebook: NotebookNode, course: Manifest, chapter: Chapter) -> NotebookNode:
    """A copy of a notebook that leads only to chapters of the course, and tells only of them.

    The map is drawn anew from the manifest, chosen chapters or all.

    Args:
        notebook: a chapter, executed or not.
        course: what it is part of.
        chapter: which one it is.
    """
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code" and MAP.search(cell.source) and cell.outputs:
            _show(cell, CourseMap(course))
    if not course.left_out:
        return notebook
    notebook.cells = [cell for cell in notebook.cells if _recalls(cell, course)]
    for cell in notebook.cells[1:]:
        if cell.cell_type == "markdown":
            cell.source = _led_on(cell.source, course, chapter)
    if chapter.kind == "chapter":
        tell(notebook, told(course, chapter.notebook))
    return with_texts(notebook, lambda text: _linked(text, course))


def fit_text(text: str, course: Manifest) -> str:
    """A page of Markdown whose links are a notebook's, with links to chapters of the course only."""
    return outside_code(text, lambda part: _linked(part, course)) if course.left_out else text


def _show(cell: NotebookNode, shown) -> None:
    """Let a cell show an object in place of what it showed."""
    data = {"text/plain": repr(shown)}
    if hasattr(shown, "_repr_mimebundle_"):
        data = shown._repr_mimebundle_()
    else:
        data["text/html"] = shown._repr_html_()
    output = next(output for output in cell.outputs if "data" in output)
    output.data = NotebookNode(data)
    cell.outputs = [output]


def _recalls(cell: NotebookNode, course: Manifest) -> bool:
    """Let a cell that recalls chapters ask from those of the course, in place; False if none is left."""
    found = RECALL.search(cell.source) if cell.cell_type == "code" else None
    if not found:
        return True
    named = re.findall(r'"(\w+)"', found[1])
    here = {chapter.slug for chapter in course.chapters}
    left = [slug for slug in named if slug in here]
    if left and left != named:
        from course_utils.kit.quiz import recall  # slow: it brings PyTorch

        call = ", ".join(f'"{slug}"' for slug in left)
        cell.source = cell.source.replace(found[0], f"cu.recall({call})")
        if cell.outputs:
            _show(cell, recall(*left))
    return bool(left)


def _led_on(text: str, course: Manifest, chapter: Chapter) -> str:
    """The lines that lead on to a chapter that is left out lead to the one that comes next, or are gone."""

    def absent(line: str) -> bool:
        return any(
            match["target"].split("#")[0] in course.left_out for match in LINK.finditer(line)
        )

    after = course.after(chapter)
    following = f"Next: [{after.title}]({after.ipynb.name}).\n" if after else ""
    text = NEXT.sub(lambda line: following if absent(line[0]) else line[0], text)
    goals = {re.sub("^to ", "", way.title.lower()) for way in course.ways}
    return WAY.sub(
        lambda line: "" if absent(line[0]) or line[1].lower() not in goals else line[0], text
    )


def _linked(text: str, course: Manifest) -> str:
    """Links to chapters that are left out lead to the full course, or say that they are not here."""

    def one(match: re.Match) -> str:
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
        """A term is taught where it is taught in this course, if it is."""
        here = [link[0] for link in LINK.finditer(match[0]) if _file(link) not in course.left_out]
        if not here:
            return "Not taught in this course."
        return f"*Taught in* {', '.join(here)}."

    return LINK.sub(one, text if course.full_course else TAUGHT.sub(taught, text))


def _file(link: re.Match) -> str:
    """The notebook that a link leads to."""
    return link["target"].partition("#")[0].rpartition("/")[2]


@cache
def _places(ipynb: Path) -> dict[str, str]:
    """The places of a page; none where its file is gone."""
    return places(texts(nbformat.read(ipynb, as_version=4))) if ipynb.is_file() else {}
