"""Exercises as cards, and a chapter's head and foot: cells with HTML between them, from notebook to new notebook."""

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from course_utils.kit.exercises import Exercise, exercises
from course_utils.kit.registry import checks
from course_utils.kit.words import marked
from course_utils.studio.book.calm import level, raw, tags
from course_utils.studio.book.pictures import first_picture
from course_utils.studio.manifest import QUESTION, Chapter, asked

# Exercises -------------------------------------------------------------------------------------


def with_exercises(notebook: NotebookNode) -> NotebookNode:
    """Each exercise is a card: label and title, task, stub, what a solution has to pass, hints and solution."""
    notebook = copy.deepcopy(notebook)
    cells, kept, at = notebook.cells, list[NotebookNode](), 0
    for exercise in exercises(cells):
        kept += [*cells[at : exercise.place], *_card(exercise, cells)]
        at = exercise.end + 1
    notebook.cells = [*kept, *cells[at:]]
    return notebook


def _card(exercise: Exercise, cells: list[NotebookNode]) -> Iterator[NotebookNode]:
    label = f"Exercise {exercise.number}"
    yield new_markdown_cell(f"### [{label}]{{.cu-label}}[ · ]{{.cu-dot}}{exercise.title}")
    yield raw(f'<div class="cu-card cu-exercise"><p class="cu-effort">{exercise.effort}</p>')
    yield new_markdown_cell(exercise.task)
    for cell in cells[exercise.place + 1 : exercise.end + 1]:
        if cell is exercise.check:
            yield raw(_passes(exercise.name))
        elif cell is exercise.solution:
            yield raw(_hints(exercise.name))
            cell.source = exercise.solved
            yield cell
            yield raw("</details></div>")
        elif not cell.source.endswith(".hint()"):
            yield cell
    yield raw("</div>")


def _hints(name: str) -> str:
    """The first hint of each property, and the line that opens the solution."""
    hints = dict.fromkeys(one.hints[0] for one in getattr(checks, name).properties)
    listed = "".join(f"<li>{marked(hint)}</li>" for hint in hints)
    return (
        '<div class="cu-links"><details class="cu-hints">'
        f"<summary>Hints</summary><ul>{listed}</ul></details>"
        f'<details class="cu-solution"><summary>Solution</summary>'
    )


def _passes(name: str) -> str:
    listed = "".join(f"<li>{marked(one.sentence)}</li>" for one in getattr(checks, name).properties)
    return f'<div class="cu-passes"><p>A solution passes when</p><ul>{listed}</ul></div>'


# The head --------------------------------------------------------------------------------------


def with_head(notebook: NotebookNode, chapter: Chapter) -> NotebookNode:
    """Number, title, question and one thing to look at; all that prepares is folded into a line."""
    notebook = copy.deepcopy(notebook)
    first, *rest = notebook.cells
    title, _, text = first.source.partition("\n")
    asks = asked(first.source)
    opening, rest = _opening(rest)
    goals, needs, told = _sorted(QUESTION.sub("", text, count=1))
    for cell in _before_sections(rest):
        if cell.cell_type == "markdown":
            more, other, cell.source = _sorted(cell.source)
            goals, needs = goals or more, needs or other
    rest = [cell for cell in rest if cell.source]
    prepare = {"goals": goals, "needs": needs}
    folded = [new_markdown_cell(part) for part in prepare.values() if part]
    named = [name for name, part in prepare.items() if part]
    for what, cell in _preparing(rest):
        named.append(what)
        folded.append(cell)
        rest.remove(cell)
    head = [raw(f'<p class="cu-eyebrow">{_eyebrow(chapter)}</p>'), new_markdown_cell(title)]
    head += [new_markdown_cell(f"{{.cu-lede}}\n{asks}")] if asks else []
    told, *ways = told.split("On the way ", 1)
    head += [new_markdown_cell(told.strip())] if told.strip() else []
    head += [
        *opening,
        *(new_markdown_cell(f"{{.cu-further}}\nOn the way {one}") for one in ways),
    ]
    head += _fold(" · ".join(named).capitalize(), *folded) if folded else []
    notebook.cells = [*head, *rest]
    return notebook


def _before_sections(cells: list[NotebookNode]) -> list[NotebookNode]:
    return cells[: next((place for place, cell in enumerate(cells) if level(cell)), len(cells))]


def _fold(summary: str, *cells: NotebookNode) -> list[NotebookNode]:
    """Cells behind one line."""
    opened = f'<details class="cu-fold"><summary>{escape(summary)}</summary>'
    return [raw(opened), *cells, raw("</details>")]


def _preparing(cells: list[NotebookNode]) -> list[tuple[str, NotebookNode]]:
    """The imports, which are the first code, and the questions from earlier chapters."""
    code = [cell for cell in cells if cell.cell_type == "code"]
    found = [(f"set-up, {len(cell.source.splitlines())} lines", cell) for cell in code[:1]]
    for cell in code[1:3]:
        shown = " ".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)
        if asked := re.match(r"Recall .*: (\d+) questions", shown):
            found.append((f"{asked[1]} questions to warm up", cell))
    return found


def _sorted(text: str) -> tuple[str, str, str]:
    """The goals, the needs, and what else is told, of a text before the sections."""
    parts: list[list[str]] = [[], [], []]
    before = 2
    for paragraph in re.split(r"\n{2,}|\n(?=After this chapter)", text.strip()):
        if re.match("After this chapter", paragraph):
            before = 0
        elif re.match("It needs", paragraph):
            before = 1
        elif before != 0 or not paragraph.startswith("- "):
            before = 2
        parts[before].append(paragraph)
    goals, needs, told = ("\n\n".join(part) for part in parts)
    return goals, needs, told


def _eyebrow(chapter: Chapter) -> str:
    """``02 · From averages to attention · about 60 minutes · needs 01``."""
    kinds = {"further": "further page", "appendix": "appendix"}
    kind = kinds.get(chapter.kind, chapter.part)
    minutes = f"about {chapter.minutes} minutes" if chapter.minutes else ""
    needs = ", ".join(
        f'<a href="{stem}.html">{stem.partition("_")[0]}</a>' for stem in chapter.prerequisites
    )
    facts = [chapter.number, escape(kind)]
    if chapter.kind == "chapter":
        facts += [minutes, f"needs {needs}" if needs else ""]
    return " · ".join(filter(None, facts))


def _opening(cells: list[NotebookNode]) -> tuple[list[NotebookNode], list[NotebookNode]]:
    """The cell tagged `opening`, its code folded; and the others, a link in its place where that is below a heading."""
    place = next((place for place, cell in enumerate(cells) if "opening" in tags(cell)), None)
    if place is None:
        return [], cells
    shown = cells[place]
    if not {"hide-input", "remove-input"} & set(tags(shown)):
        tags(shown).append("hide-input")
    there = [raw('<p class="cu-moved"><a href="#opening">↑ at the top of this page</a></p>')]
    if place < len(_before_sections(cells)):
        there = []
    anchored = [raw('<div id="opening">'), shown, raw("</div>")]
    return anchored, [*cells[:place], *there, *cells[place + 1 :]]


# The foot --------------------------------------------------------------------------------------


Onward = Mapping[Chapter, Sequence[str]]
"""The next chapter; and those that come next on a way, each with the titles of these ways."""


def with_foot(notebook: NotebookNode, onward: Onward, further: Chapter | None) -> NotebookNode:
    """What comes next is a card: its question and first picture; the further page; references, folded."""
    notebook = copy.deepcopy(notebook)
    following = next(iter(onward), None)
    kept: list[NotebookNode] = []
    aside = ""
    for cell in notebook.cells:
        if level(cell) == 2 and re.match("## Take-aways", cell.source):
            cell.source, aside = _without_links(cell.source, following, further)
        if level(cell) == 2 and re.match("## References", cell.source):
            works = cell.source.partition("\n")[2].strip()
            count = len(re.findall(r"^- ", works, re.MULTILINE))
            kept += [raw(next_cards(onward))] if onward else []
            kept += [new_markdown_cell(f"{{.cu-further}}\n{aside}")] if aside else []
            said = f"References, {count} works"
            kept += _fold(said, new_markdown_cell(works))
            continue
        kept.append(cell)
    notebook.cells = kept
    return notebook


def _without_links(
    text: str, following: Chapter | None, further: Chapter | None
) -> tuple[str, str]:
    """Take-aways without the sentences that lead to the next chapter and to the further page; the latter."""
    kept, aside = [], []
    for line in text.splitlines():
        if (
            following
            and not line.startswith(("-", " "))
            and f"]({following.notebook}.ipynb" in line
        ):
            continue
        into = aside if further and f"]({further.notebook}.ipynb" in line else kept
        into.append(line)
    return "\n".join(kept), "\n".join(aside)


def next_cards(onward: Onward) -> str:
    """A card for each chapter that may come next; seen is the first, until the map's script knows the reader's way."""
    cards = "".join(
        f'<a class="cu-card cu-next" href="{chapter.notebook}.html" data-ways="{escape("|".join(ways))}"'
        f"{' hidden' if place else ''}><small>Next: {chapter.number}</small>"
        f"<b>{escape(chapter.title)}</b><span>{marked(chapter.question)}</span>"
        f"{first_picture(chapter.ipynb)}</a>"
        for place, (chapter, ways) in enumerate(onward.items())
    )
    return f"<div>{cards}</div>"
