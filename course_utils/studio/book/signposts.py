"""Signs for a reader on a way, in a chapter's page: which lines are about it, and which sections are not on it.

`course_map.js` shows them when she has chosen a way; until then lines about all ways stand there.
"""

import copy
from collections.abc import Iterable, Mapping
from html import escape

from nbformat import NotebookNode

from course_utils.kit.exercises import sections
from course_utils.studio import paths
from course_utils.studio.book.cells import tags
from course_utils.studio.manifest import Chapter, Manifest


def put_up(notebook: NotebookNode, course: Manifest, chapter: Chapter) -> NotebookNode:
    """A copy of a notebook in which lines on ways name their ways, and sections the ways that leave them out."""
    notebook = copy.deepcopy(notebook)
    if chapter.kind == "further":
        return notebook
    lines = [
        paths.introductions(course, chapter.notebook),
        paths.directions(course, chapter.notebook),
    ]
    on = {line: titles for found in lines for line, titles in found.items()}
    signs: dict[str, str] = {}
    has_end = any("## Take-aways" in cell.source for cell in notebook.cells)
    end = "the [take-aways](#Take-aways)" if has_end else "the next page of it"
    for off in paths.left_out_sections(course, chapter):
        signs[off.section] = signs.get(off.section, "") + _sign(off, end)
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        if {"paths", "next"} & {*tags(cell)}:
            cell.source = "\n".join(_named(line, on) for line in cell.source.splitlines())
        elif any(level == 2 and title in signs for level, title, _ in sections(cell.source)):
            cell.source = "\n".join(
                f"{line}\n{signs[line[3:].strip()]}" if _is_off(line, signs) else line
                for line in cell.source.splitlines()
            )
    return notebook


def _is_off(line: str, signs: Mapping[str, str]) -> bool:
    return line.startswith("## ") and line[3:].strip() in signs


def _sign(off: paths.Off, end: str) -> str:
    to = f"[{off.to}](#{off.to.replace(' ', '-')})" if off.to else end
    return "".join(
        f'\n<div class="cu-off-way" data-ways="{escape(title)}" hidden>\n\n'
        f"Not on your path{' ' if title.startswith('To ') else ', '}{paths.named([title])}. "
        f"Go on with {to}.\n\n</div>\n"
        for title in off.titles
    )


def _named(line: str, on: Mapping[str, Iterable[str]]) -> str:
    """A line on ways, in a span that names them; any other line as it is."""
    titles = next((on[text] for text in on if line.startswith(text[:-1])), None)
    if titles is None:
        return line
    return f'<span class="cu-way" data-ways="{escape("|".join(titles))}">{line}</span>'
