"""The head and the foot of a chapter's page: what stands before its sections, and what leads on behind them."""

import re
from collections.abc import Mapping, Sequence
from html import escape

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell as markdown

from course_utils.kit.rich_text import to_html
from course_utils.studio.book.cells import Cells, level, tags
from course_utils.studio.book.outputs import first_picture
from course_utils.studio.manifest import QUESTION, Chapter, find_question

Onward = Mapping[Chapter, Sequence[str]]
"""The next chapter, and those that come next on a way, each with the titles of these ways."""


def chapter_head(cells: Cells, chapter: Chapter) -> Cells:
    """The cells, beginning with number, title, question and one thing to look at, then goals and set-up, folded."""
    first, *rest = cells
    title, _, text = first.source.partition("\n")
    opening, rest = _opening(rest)
    goals, needs, lead = _sorted(QUESTION.sub("", text, count=1))
    for cell in _before_sections(rest):
        if cell.cell_type == "markdown":
            more_goals, more_needs, cell.source = _sorted(cell.source)
            goals, needs = goals or more_goals, needs or more_needs
    prepares = {name: markdown(text) for name, text in (("goals", goals), ("needs", needs)) if text}
    rest = [cell for cell in rest if cell.source]
    prepares |= _preparing(rest)
    lead, *ways = lead.split("On the way ", 1)
    return [
        markdown(f'<p class="cu-eyebrow">{_eyebrow(chapter)}</p>'),
        markdown(title),
        *_classed("cu-lede", find_question(first.source)),
        *([markdown(lead.strip())] if lead.strip() else []),
        *opening,
        *_classed("cu-further", *(f"On the way {way}" for way in ways)),
        *(_fold(" · ".join(prepares).capitalize(), *prepares.values()) if prepares else []),
        *(cell for cell in rest if not any(cell is other for other in prepares.values())),
    ]


def _classed(name: str, *texts: str) -> Cells:
    return [markdown(f"{{.{name}}}\n{text}") for text in texts if text]


def _before_sections(cells: Cells) -> Cells:
    return cells[: next((place for place, cell in enumerate(cells) if level(cell)), len(cells))]


def _fold(summary: str, *cells: NotebookNode) -> Cells:
    """Cells that are folded behind one line."""
    opened = f'<details class="cu-fold"><summary>{escape(summary)}</summary>'
    return [markdown(opened), *cells, markdown("</details>")]


def _preparing(cells: Cells) -> dict[str, NotebookNode]:
    """The imports, which are the first code, and the questions from earlier chapters, each with its name."""
    code = [cell for cell in cells if cell.cell_type == "code"]
    named = {f"set-up, {len(cell.source.splitlines())} lines": cell for cell in code[:1]}
    for cell in code[1:3]:
        text = " ".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)
        if recall := re.match(r"Recall .*: (\d+) questions", text):
            named[f"{recall[1]} questions to warm up"] = cell
    return named


def _sorted(text: str) -> tuple[str, str, str]:
    """The goals, the needs and the other paragraphs of a text before the sections."""
    groups: dict[str, list[str]] = {"goals": [], "needs": [], "other": []}
    group = "other"
    for paragraph in re.split(r"\n{2,}|\n(?=After this chapter)", text.strip()):
        if paragraph.startswith("After this chapter"):
            group = "goals"
        elif paragraph.startswith("It needs"):
            group = "needs"
        elif group != "goals" or not paragraph.startswith("- "):
            group = "other"
        groups[group].append(paragraph)
    goals, needs, other = map("\n\n".join, groups.values())
    return goals, needs, other


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
    """The cell tagged `opening`, its code folded; and the others, a link in its place if that is in a section."""
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


def chapter_foot(cells: Cells, chapter: Chapter, onward: Onward) -> Cells:
    """The cells, ending with a card for the next chapter, links to further pages, and the references, folded."""
    next_page = next((f"]({following.notebook}.ipynb" for following in onward), None)
    further_page = f"]({chapter.notebook}_further"
    page: Cells = []
    asides: list[str] = []
    for cell in cells:
        if level(cell) == 2 and cell.source.startswith("## Take-aways"):
            lines = cell.source.splitlines()
            asides = [line for line in lines if further_page in line]
            leads_on = [s for s in lines if next_page and next_page in s and s[0] not in "- "]
            cell.source = "\n".join(line for line in lines if line not in asides + leads_on)
        if level(cell) == 2 and cell.source.startswith("## References"):
            works = cell.source.partition("\n")[2].strip()
            summary = f"References, {len(re.findall(r'^- ', works, re.MULTILINE))} works"
            page += [markdown(next_cards(onward))] if onward else []
            page += _classed("cu-further", "\n".join(asides))
            page += _fold(summary, markdown(works))
        else:
            page.append(cell)
    return page


def next_cards(onward: Onward) -> str:
    """A card for each chapter that may come next; the first is shown until the map's script knows the reader's way."""
    cards = "".join(
        f'<a class="cu-card cu-next" href="{chapter.notebook}.html" data-ways="{escape("|".join(ways))}"'
        f"{' hidden' if place else ''}><small>Next: {chapter.number}</small> "
        f"<b>{escape(chapter.title)}</b> <span>{to_html(chapter.question)}</span>"
        f"{first_picture(chapter.ipynb)}</a>"
        for place, (chapter, ways) in enumerate(onward.items())
    )
    return f"<div>{cards}</div>"
