"""From a committed notebook to its page: what the book leaves out, folds and moves.

`to_page` passes a copy of a notebook's cells through the functions below. Each takes the cells, may change them, and
returns those that come after; HTML around other cells stands in Markdown cells of its own.
"""

import ast
import base64
import copy
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import nbformat
from bs4 import BeautifulSoup
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell as markdown

from course_utils.kit.exercises import HEADING, Exercise, exercises, sections
from course_utils.kit.guard import guards_in
from course_utils.kit.registry import checks
from course_utils.kit.rich_text import to_html
from course_utils.studio import StudioError
from course_utils.studio.links import ANCHOR, LINK, outside_code
from course_utils.studio.manifest import QUESTION, Chapter, find_question
from course_utils.studio.page import is_course_call

Cells = list[NotebookNode]
Onward = Mapping[Chapter, Sequence[str]]
"""The next chapter, and those that come next on a way, each with the titles of these ways."""


class Page(NamedTuple):
    """A page of the book: its file among the sources, and its anchors (name in Lab → name in the book)."""

    file: str
    anchors: Mapping[str, str]


Pages = Mapping[str, Page]
"""Path of a notebook or of a Markdown file, from the repository's root → its page."""


def to_page(
    notebook: NotebookNode, chapter: Chapter, pages: Pages, files: str, onward: Onward
) -> NotebookNode:
    """The notebook as the book shows it.

    Args:
        notebook: executed; its widgets are HTML already.
        chapter: what the notebook is.
        pages, files: as in `relink`.
        onward: what comes next.

    Raises:
        StudioError: a picture has no alt text.
    """
    notebook = copy.deepcopy(notebook)
    path = f"notebooks/{chapter.ipynb.name}"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = relink(cell.source, path, pages, files)
    cells = settle_outputs(describe_pictures(notebook.cells, chapter))
    cells = drop_missing_runs(cut_at_headings(cells))
    cells = state_claims(exercise_cards(cells))
    cells = hide_code(chapter_head(cells, chapter))
    notebook.cells = chapter_foot(cells, chapter, onward)
    for place, cell in enumerate(notebook.cells):
        cell["id"] = str(place)  # a page that has not changed is written as before
    return notebook


def tags(cell: NotebookNode) -> list[str]:
    """A cell's tags, to be changed."""
    return cell.metadata.setdefault("tags", [])


def level(cell: NotebookNode) -> int:
    """1 to 6 for a Markdown cell that begins with a heading, else 0."""
    heading = cell.cell_type == "markdown" and HEADING.match(cell.source.partition("\n")[0])
    return len(heading[1]) if heading else 0


def html_outputs(cells: Cells) -> Iterator[NotebookNode]:
    """The data of outputs that hold HTML, to be changed."""
    for cell in cells:
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                yield output.data


# Links ------------------------------------------------------------------------------------------


def relink(text: str, path: str, pages: Pages, files: str) -> str:
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


# Pictures and tables ----------------------------------------------------------------------------

LEAST = 0.91
"""Of a picture's width: a narrow page makes it smaller until twelve pixels are eleven, then it can be scrolled."""
IMAGE = re.compile(r"<img [^>]*>")
ATTRIBUTES = {"alt", "src", "width", "height", "style"}
"""Those of an image that `cu.subplots` and `cu.show_images` have drawn; another image has others."""

VECTOR = "data:image/svg+xml;base64,"
NUMBER = re.compile(r"[-−+]?[\d,]*\.?\d+(e[-+]?\d+)?\s?%?|nan|–|-|")


def describe_pictures(cells: Cells, chapter: Chapter) -> Cells:
    """The cells, with the alt text of an image output in the metadata of its cell, where MyST-NB looks for it.

    Raises:
        StudioError: an image has no alt text, or a cell shows several.
    """
    for place, cell in enumerate(cells):
        alts = {_alt(output) for output in cell.get("outputs", [])} - {None}
        if "" in alts or len(alts) > 1:
            where, remedy = f"{chapter.notebook}: cell {place}", "draw one with cu.subplots(alt=…)"
            raise StudioError(f"{where} shows a picture without alt text, or several; {remedy}.")
        for alt in alts:
            cell.metadata["mystnb"] = {"image": {"alt": alt}}
    return cells


def _alt(output: NotebookNode) -> str | None:
    """The alt text of an image output; None for another output."""
    data = output.get("data", {})
    kind = next((kind for kind in data if kind.startswith("image/")), "")
    if not kind or "text/html" in data:
        return None
    return " ".join(output.metadata.get(kind, {}).get("alt", "").split())


def settle_outputs(cells: Cells) -> Cells:
    """The cells, with links to pages, pictures that fit a narrow page, and flat tables in HTML outputs."""
    for data in html_outputs(cells):
        html = re.sub(r'(?<= href=")(\w+)\.ipynb(?=["#])', r"\1.html", data["text/html"])
        data["text/html"] = flat_tables(IMAGE.sub(_figure, html))
    return cells


def _figure(tag: re.Match) -> str:
    """A figure with a least width; an SVG becomes part of its page, and sees its colors and fonts."""
    image, shown = _attributes(tag), tag[0]
    if image.keys() != ATTRIBUTES:
        return shown
    if image["src"].startswith(VECTOR):
        label = f'role="img" aria-label="{escape(image["alt"])}"'
        shown = _svg(image["src"]).replace("<svg ", f"<svg {label} ", 1)
    least = f"{LEAST * int(image['width']):.0f}px"
    return f'<div class="cu-figure"><div style="min-width:{least};max-width:{image["width"]}px">{shown}</div></div>'


def _attributes(tag: re.Match) -> dict[str, str]:
    return BeautifulSoup(tag[0], "html.parser").img.attrs


def _svg(source: str) -> str:
    """The drawing in a data URI, less the colors, which the page defines."""
    drawing = base64.b64decode(source.removeprefix(VECTOR)).decode()
    return re.sub(r"<style>.*?</style>", "", drawing)


def first_picture(notebook: Path) -> str:
    """The first drawing that a notebook shows, as a decoration elsewhere; "" without one."""
    if notebook.is_file():
        for data in html_outputs(nbformat.read(notebook, 4).cells):
            tag = IMAGE.search(data["text/html"])
            source = _attributes(tag).get("src", "") if tag else ""
            if source.startswith(VECTOR):
                return _svg(source).replace("<svg ", '<svg aria-hidden="true" ', 1)
    return ""


def flat_tables(html: str) -> str:
    """HTML whose tables of pandas have one row of names, and columns of words at the left."""
    if 'class="dataframe"' not in html:
        return html
    soup = BeautifulSoup(html, "html.parser")
    for table in soup.select("table.dataframe"):
        rows = [row.find_all("th") for row in table.select("thead tr")]
        if len(rows) == 2 and len(rows[0]) == len(rows[1]):  # the second names the index alone
            for column, index in zip(*rows, strict=True):
                column.string = column.get_text(strip=True) or index.get_text(strip=True)
            table.select("thead tr")[1].decompose()
        for row in table.select("tr"):
            del row["style"]
        for entry in table.select("td"):
            if not NUMBER.fullmatch(entry.get_text(strip=True)):
                entry["class"] = "words"
    return str(soup)


# Sections and code ------------------------------------------------------------------------------


def cut_at_headings(cells: Cells) -> Cells:
    """The cells, cut so that each heading of level 1 to 3 begins a Markdown cell."""
    page: Cells = []
    for cell in cells:
        if cell.cell_type != "markdown":
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
    texts = [output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", [])]
    return "gpu" in tags(cell) and any("no run is stored" in text for text in texts)


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
                prompts = {"code_prompt_show": name, "code_prompt_hide": name}
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
        summary = f"{len(claims)} statements of this section are computed"
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


# The head and the foot of a chapter -------------------------------------------------------------


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
