"""The head and the foot of a chapter's page: all before its sections, and the end with cards and references."""

import re
from collections.abc import Mapping, Sequence
from html import escape

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell as markdown

from course_utils.kit.rich_text import to_html
from course_utils.studio.book.cells import Cells, level, tags
from course_utils.studio.book.outputs import first_picture
from course_utils.studio.content import count_questions
from course_utils.studio.manifest import QUESTION, Chapter, find_question
from course_utils.studio.plain_formula import plain_text

NextChapters = Mapping[Chapter, Sequence[str]]
"""The next chapter, and those that come next on a path, each with the titles of these paths."""


def chapter_head(cells: Cells, chapter: Chapter, ways: Sequence[str] = ()) -> Cells:
    """The cells, beginning with number, title, question and one thing to look at, then goals and set-up, folded."""
    first, *rest = cells
    title, _, text = first.source.partition("\n")
    lead = QUESTION.sub("", text, count=1).strip()
    opening, rest = _opening(rest)
    folded = _folded(_before_sections(rest))
    paths = [cell for cell in rest if "paths" in tags(cell)]
    moved = [*folded.values(), *paths]
    return [
        markdown(f'<p class="cu-eyebrow"{_on(ways)}>{_eyebrow(chapter)}</p>'),
        markdown(title),
        *_classed("cu-lede", find_question(first.source)),
        *([markdown(lead)] if lead else []),
        *opening,
        *_classed("cu-further", *(cell.source for cell in paths)),
        *(_fold(" · ".join(folded).capitalize(), *folded.values()) if folded else []),
        *(cell for cell in rest if not any(cell is other for other in moved)),
    ]


def _on(ways: Sequence[str]) -> str:
    return f' data-ways="{escape("|".join(ways))}"' if ways else ""


def _classed(name: str, *texts: str) -> Cells:
    return [markdown(f"{{.{name}}}\n{text}") for text in texts if text]


def _before_sections(cells: Cells) -> Cells:
    return cells[: next((place for place, cell in enumerate(cells) if level(cell)), len(cells))]


def _fold(summary: str, *cells: NotebookNode) -> Cells:
    """Cells that are folded behind one line."""
    opened = f'<details class="cu-fold"><summary>{escape(summary)}</summary>'
    return [markdown(opened), *cells, markdown("</details>")]


def _folded(cells: Cells) -> dict[str, NotebookNode]:
    """Goals and needs (by their tags), the imports (the first code), and the recall, each with its name in the fold."""
    named = {tag: cell for tag in ("goals", "needs") for cell in cells if tag in tags(cell)}
    code = [cell for cell in cells if cell.cell_type == "code"]
    named |= {f"set-up, {len(cell.source.splitlines())} lines": cell for cell in code[:1]}
    for cell in code:
        if "cu.recall(" in cell.source:
            named[f"{count_questions(cell.source)} questions to warm up"] = cell
    return named


def _eyebrow(chapter: Chapter) -> str:
    """``02 · From averages to attention · about 60 minutes · needs 01``."""
    kinds = {"further": "further page", "appendix": "appendix"}
    facts = [chapter.number, escape(kinds.get(chapter.kind, chapter.part))]
    if chapter.kind == "chapter":
        links = [f'<a href="{s}.html">{s.partition("_")[0]}</a>' for s in chapter.prerequisites]
        facts.append(f"about {chapter.minutes} minutes" if chapter.minutes else "")
        facts.append(f"needs {', '.join(links)}" if links else "")
    return " · ".join(filter(None, facts))


def _opening(cells: Cells) -> tuple[Cells, Cells]:
    """The cell tagged `opening`, with its code folded, and the other cells. In a section, a link stays in its place."""
    place = next((place for place, cell in enumerate(cells) if "opening" in tags(cell)), None)
    if place is None:
        return [], cells
    cell = cells[place]
    if not {"hide-input", "remove-input"} & set(tags(cell)):
        tags(cell).append("hide-input")
    moved = markdown('<p class="cu-moved"><a href="#opening">↑ at the top of this page</a></p>')
    link = [] if place < len(_before_sections(cells)) else [moved]
    opening = [markdown('<div id="opening">'), cell, markdown("</div>")]
    return opening, [*cells[:place], *link, *cells[place + 1 :]]


def chapter_foot(cells: Cells, chapter: Chapter, following: NextChapters) -> Cells:
    """The cells, ending with a card for the next chapter, links to the further page, and the references, folded.

    In a cell tagged `next`, the line that links the next chapter is left out, since the card says it; lines that link
    the chapter's further page come below the card.
    """
    is_chapter = chapter.kind == "chapter"  # after an appendix, a page comes next only on a way
    next_page = next((f"]({after.notebook}.ipynb" for after in following if is_chapter), None)
    further_page = f"]({chapter.notebook}_further"
    page: Cells = []
    asides: list[str] = []
    for cell in cells:
        if "next" in tags(cell):
            lines = cell.source.splitlines()
            asides += [line for line in lines if further_page in line]
            shown = [line for line in lines if not (next_page and next_page in line)]
            cell.source = "\n".join(line for line in shown if line not in asides)
            page += [cell] if cell.source else []
        elif level(cell) == 2 and cell.source.startswith("## References"):
            works = cell.source.partition("\n")[2].strip()
            summary = f"References, {len(re.findall(r'^- ', works, re.MULTILINE))} works"
            page += [markdown(next_cards(following, is_chapter))] if following else []
            page += _classed("cu-further", "\n".join(asides))
            page += _fold(summary, markdown(works))
        else:
            page.append(cell)
    return page


def next_cards(following: NextChapters, first: bool = True) -> str:
    """Cards of what may come next; only the first, or none, is shown until the map's script knows the path.

    Args:
        following: the chapters.
        first: whether one of them comes next without a path, too.
    """
    cards = "".join(
        f'<a class="cu-card cu-next" href="{chapter.notebook}.html" data-ways="{escape("|".join(ways))}"'
        f"{' hidden' if place or not first else ''}><small>Next: {chapter.number}</small> "
        f"<b>{escape(chapter.title)}</b> <span>{to_html(plain_text(chapter.question))}</span>"
        f"{first_picture(chapter.ipynb)}</a>"
        for place, (chapter, ways) in enumerate(following.items())
    )
    return f"<div>{cards}</div>"
