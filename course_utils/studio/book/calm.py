"""What a chapter's page leaves out, folds, and says in other words than the notebook: it is read, and runs nothing.

Each function takes a notebook and gives a new one. HTML around cells stands in Markdown cells of its own: `raw`.
"""

import ast
import copy
import html
import re
from collections.abc import Iterator

from bs4 import BeautifulSoup
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from course_utils.kit.exercises import HEADING, prose_lines
from course_utils.kit.guard import guards_in
from course_utils.studio.page import is_own


def raw(text: str) -> NotebookNode:
    """HTML as a cell."""
    return new_markdown_cell(text)


def tags(cell: NotebookNode) -> list[str]:
    """A cell's tags, to be changed."""
    return cell.metadata.setdefault("tags", [])


def cut_at_headings(notebook: NotebookNode) -> NotebookNode:
    """Each heading begins a Markdown cell."""
    notebook = copy.deepcopy(notebook)
    notebook.cells = [part for cell in notebook.cells for part in _parts(cell)]
    return notebook


def _parts(cell: NotebookNode) -> Iterator[NotebookNode]:
    if cell.cell_type != "markdown":
        yield cell
        return
    part: list[str] = []
    for line, prose in zip(cell.source.splitlines(), prose_lines(cell.source), strict=True):
        if HEADING.match(prose) and part:
            yield new_markdown_cell("\n".join(part).strip())
            part = []
        part.append(line)
    yield new_markdown_cell("\n".join(part).strip())


def level(cell: NotebookNode) -> int:
    """1 to 6 for a Markdown cell that begins with a heading, else 0."""
    found = cell.cell_type == "markdown" and HEADING.match(cell.source.partition("\n")[0])
    return len(found[1]) if found else 0


# Code ------------------------------------------------------------------------------------------


def without_own_calls(notebook: NotebookNode) -> NotebookNode:
    """Cells that only call the course lose their code; what the code would tell too early is nowhere then."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code" and is_own(cell.source):
            cell.source = "..."  # MyST-NB drops an empty cell with its outputs
            kept = [tag for tag in tags(cell) if tag != "hide-input"]
            cell.metadata["tags"] = [*kept, "remove-input"]
    return notebook


def with_code_links(notebook: NotebookNode) -> NotebookNode:
    """The code of pictures and tables, and a result that was predicted, open with a small link at the right."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        for tag, link in (("hide-input", "code"), ("hide-output", "result")):
            if tag in tags(cell):
                cell.metadata["mystnb"] = {"code_prompt_show": link, "code_prompt_hide": link}
    return notebook


def with_claims(notebook: NotebookNode) -> NotebookNode:
    """A guard becomes its sentence behind a ✓, which opens what was computed; several become one line."""
    notebook = copy.deepcopy(notebook)
    notebook.cells = [
        raw(_claims(cell.source)) if "guard" in tags(cell) else cell for cell in notebook.cells
    ]
    return notebook


def _claims(source: str) -> str:
    tree = ast.parse(source)
    claims, computed = [], []
    for guarded in guards_in(tree):
        block = next(node for node in ast.walk(tree) if getattr(node, "lineno", 0) == guarded.line)
        asserted = [node.test for node in ast.walk(block) if isinstance(node, ast.Assert)]
        conditions = [ast.get_source_segment(source, test) or "" for test in asserted]
        claims.append(html.escape(guarded.claim))
        computed.append(html.escape("\n".join(" ".join(one.split()) for one in conditions)))
    one = len(claims) == 1
    several = f"{len(claims)} statements of this section are computed"
    said = claims[0] if one else several
    opened = "".join(
        f"{'' if one else f'<p>{claim}</p>'}<pre>{tested}</pre>"
        for claim, tested in zip(claims, computed, strict=True)
    )
    title = "\n".join(computed)
    return (
        f'<details class="cu-claim"><summary title="{title}"><span>✓</span> {said}</summary>'
        f"{opened}</details>"
    )


# Text and tables -------------------------------------------------------------------------------


NUMBER = re.compile(r"[-−+]?[\d,]*\.?\d+(e[-+]?\d+)?\s?%?|nan|–|-|")


def with_plain_tables(notebook: NotebookNode) -> NotebookNode:
    """Tables of pandas have one header row, and columns of words stand at the left."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shown = output.get("data", {}).get("text/html", "")
            if 'class="dataframe"' in shown:
                output.data["text/html"] = _plain_table(shown)
    return notebook


def _plain_table(shown: str) -> str:
    page = BeautifulSoup(shown, "html.parser")
    for table in page.select("table.dataframe"):
        heads = table.select("thead tr")
        if len(heads) == 2:  # the second has the name of the index, and is empty else
            names = heads[1].find_all("th")
            above = heads[0].find_all("th")
            if len(names) == len(above):
                for head, name in zip(above, names, strict=True):
                    head.string = head.get_text(strip=True) or name.get_text(strip=True)
                heads[1].decompose()
        for row in table.select("tr"):
            del row["style"]
        for entry in table.select("td"):
            if not NUMBER.fullmatch(entry.get_text(strip=True)):
                entry["class"] = "words"
    return str(page)
