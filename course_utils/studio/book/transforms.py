"""From a committed notebook to its page: what the book leaves out, folds and moves.

`to_page` passes a copy of a notebook's cells through the functions of this file, of `outputs` and of `head_and_foot`.
Each takes the cells, may change them, and returns those that come after; HTML around other cells stands in Markdown
cells of its own.
"""

import ast
import copy
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell as markdown

from course_utils.kit.exercises import Exercise, exercises, sections
from course_utils.kit.guard import guards_in
from course_utils.kit.mime import MADE_BY
from course_utils.kit.registry import checks
from course_utils.kit.rich_text import to_html
from course_utils.studio.book.cells import Cells, level, tags
from course_utils.studio.book.head_and_foot import NextChapters, chapter_foot, chapter_head
from course_utils.studio.book.outputs import describe_pictures, settle_outputs
from course_utils.studio.content import is_course_call
from course_utils.studio.links import ANCHOR, LINK, outside_code
from course_utils.studio.manifest import Chapter


class BookPage(NamedTuple):
    """A page of the book: its file among the sources, and its anchors (name in Lab → name in the book)."""

    file: str
    anchors: Mapping[str, str]


BookPages = Mapping[str, BookPage]
"""Path of a notebook or of a Markdown file, from the repository's root → its page."""


def to_page(
    notebook: NotebookNode,
    chapter: Chapter,
    pages: BookPages,
    files: str,
    following: NextChapters,
    ways: Sequence[str] = (),
) -> NotebookNode:
    """The notebook as the book shows it.

    Args:
        notebook: executed; its widgets are HTML already.
        chapter: what the notebook is.
        pages, files: as in `relink`.
        following: the chapters that may come next.
        ways: the titles of the ways on which the chapter is.

    Raises:
        StudioError: a picture has no alt text.
    """
    notebook = copy.deepcopy(notebook)
    path = f"notebooks/{chapter.ipynb.name}"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = relink(cell.source, path, pages, files)
    cells = describe_pictures(notebook.cells, chapter)
    cells = settle_outputs(cells)
    cells = cut_at_headings(cells)
    cells = drop_missing_runs(cells)
    cells = exercise_cards(cells)
    cells = state_claims(cells)
    cells = chapter_head(cells, chapter, ways)
    cells = hide_code(cells)
    notebook.cells = chapter_foot(cells, chapter, following)
    for place, cell in enumerate(notebook.cells):
        cell["id"] = str(place)  # a page that has not changed is written as before
    return notebook


# Links ------------------------------------------------------------------------------------------


def relink(text: str, path: str, pages: BookPages, files: str) -> str:
    """Let the links of a text in Markdown lead to pages of the book, others to the repository.

    Args:
        text: outside its code and formulas, links are changed, and anchors go.
        path: of the file that holds the text, from the repository's root.
        pages: path → page; the text's own is among them.
        files: where the repository shows its files; "" leaves only the words of links to files.
    """

    def new_link(link: re.Match) -> str:
        target, words = link["target"], link["text"]
        file, hash_, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            return link[0]
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
        if page := pages.get(there):
            anchor = page.anchors.get(anchor, anchor)
            return f"[{words}]({file and page.file}{hash_}{anchor})"
        return f"[{words}]({files}/{there}{hash_}{anchor})" if files else words

    return outside_code(text, lambda part: LINK.sub(new_link, ANCHOR.sub("", part)))


# Sections and code ------------------------------------------------------------------------------


def cut_at_headings(cells: Cells) -> Cells:
    """The cells, cut so that each heading of level 1 to 3 begins a Markdown cell."""
    page: Cells = []
    for cell in cells:
        if cell.cell_type != "markdown" or tags(cell):  # a tagged text is one piece
            page.append(cell)
            continue
        for depth, heading, text in sections(cell.source):
            source = f"{'#' * depth} {heading}\n{text}" if depth else text
            page += [markdown(source.strip())] if source.strip() else []
    return page


def drop_missing_runs(cells: Cells) -> Cells:
    """The cells without each section, from heading to heading, whose run at full size is not stored."""
    groups: list[Cells] = []
    for cell in cells:
        if level(cell) or not groups:
            groups.append([])
        groups[-1].append(cell)
    return [cell for group in groups if not any(map(_lacks_run, group)) for cell in group]


def _lacks_run(cell: NotebookNode) -> bool:
    made_by = [output.get("data", {}).get(MADE_BY, {}) for output in cell.get("outputs", [])]
    return "gpu" in tags(cell) and any(call.get("stored") is False for call in made_by)


def hide_code(cells: Cells) -> Cells:
    """The cells, without the code of calls of the course, which would tell a prediction's answer.

    Other hidden code, and a result that was predicted, open with a small link at the right.
    """
    for cell in cells:
        if cell.cell_type == "code" and is_course_call(cell.source):
            others = [tag for tag in tags(cell) if tag != "hide-input"]
            cell.metadata["tags"] = [*others, "remove-input"]
        for tag, name in (("hide-input", "code"), ("hide-output", "result")):
            if tag in tags(cell):
                prompts = {
                    "code_prompt_show": f"Show the {name}",
                    "code_prompt_hide": f"Hide the {name}",
                }
                cell.metadata.setdefault("mystnb", {}).update(prompts)
    return cells


def state_claims(cells: Cells) -> Cells:
    """The cells, with the claim of each guard behind a ✓, which opens what was computed; several are one line."""
    return [markdown(_claims(cell.source)) if "guard" in tags(cell) else cell for cell in cells]


def _claims(source: str) -> str:
    claims: dict[str, str] = {}
    for claim, block in guards_in(ast.parse(source)):
        asserts = [node for node in ast.walk(block) if isinstance(node, ast.Assert)]
        tests = [ast.get_source_segment(source, node.test) or "" for node in asserts]
        claims[escape(claim)] = escape("\n".join(" ".join(test.split()) for test in tests))
    title = "\n".join(claims.values())
    summary, computed = "".join(claims), f"<pre>{title}</pre>"
    if len(claims) > 1:
        summary = f"{len(claims)} statements above are computed"
        computed = "".join(f"<p>{claim}</p><pre>{test}</pre>" for claim, test in claims.items())
    opened = f'<summary title="{title}"><span>✓</span> {summary}</summary>'
    return f'<details class="cu-claim">{opened}{computed}</details>'


# Exercises --------------------------------------------------------------------------------------


def exercise_cards(cells: Cells) -> Cells:
    """The cells, with a card for each exercise: title, task, stub, what a solution has to pass, hints, solution."""
    page: Cells = []
    begin = 0
    for exercise in exercises(cells):
        page += [*cells[begin : exercise.place], *_card(exercise, cells)]
        begin = exercise.end + 1
    return [*page, *cells[begin:]]


def _card(exercise: Exercise, cells: Cells) -> Iterator[NotebookNode]:
    label = f"[Exercise {exercise.number}]{{.cu-label}}[ · ]{{.cu-dot}}"
    yield markdown(f"### {label}{exercise.title}")
    yield markdown(f'<div class="cu-card cu-exercise"><p class="cu-effort">{exercise.effort}</p>')
    yield markdown(exercise.task)
    properties = getattr(checks, exercise.name).properties if exercise.name else ()
    for cell in cells[exercise.place + 1 : exercise.end + 1]:
        if cell is exercise.check:
            passes = _list(check.sentence for check in properties)
            yield markdown(f'<div class="cu-passes"><p>A solution passes when</p>{passes}</div>')
        elif cell is exercise.solution:
            hints = _list(dict.fromkeys(check.hints[0] for check in properties))
            yield markdown(
                '<div class="cu-links"><details class="cu-hints">'
                f"<summary>Hints</summary>{hints}</details>"
                '<details class="cu-solution"><summary>Solution</summary>'
            )
            cell.source = exercise.solution_code
            yield cell
            yield markdown("</details></div>")
        elif not cell.source.endswith(".hint()"):
            yield cell
    yield markdown("</div>")


def _list(texts: Iterator[str] | Mapping[str, None]) -> str:
    return f"<ul>{''.join(f'<li>{to_html(text)}</li>' for text in texts)}</ul>"
