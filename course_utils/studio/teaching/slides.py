"""``python -m course_utils.studio slides 02``: a deck of a chapter by nbconvert, which asks no other host for anything.

`_build/slides/02_….html` is shown by any browser, from a file or from a server: arrow keys move, `S` opens the notes,
`O` shows all slides, `?print-pdf` behind the address prints. The folder `assets` beside it holds reveal.js and MathJax,
and `live` the models that the decks show: copy all of it.
"""

import argparse
import copy
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from course_utils.files import ROOT
from course_utils.studio import StudioError
from course_utils.studio.book.transforms import (
    cut_at_headings,
    flat_tables,
    html_outputs,
    level,
    tags,
)
from course_utils.studio.manifest import Chapter, Manifest, asked, load
from course_utils.studio.page import is_own

HERE = Path(__file__).parent
REVEAL = {
    "reveal.js": "dist",
    "reveal.css": "dist",
    "reset.css": "dist",
    "notes.js": "plugin/notes",
    "LICENSE.txt": "",
}
"""The files of reveal.js → their folders, as nbconvert expects them."""
LIVE = re.compile(r'"(live/[\w/]+\.js)"')
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)")
QUIET = {"guard", "check", "solution"}
LINES = 22  # of code on a slide that nobody has tagged


def slides(notebook: NotebookNode) -> NotebookNode:
    """A notebook whose cells say by `slide_type` which slide they belong to.

    A cell tagged `slide` begins a slide, which holds all up to the next one. Without such tags a slide is made of each
    heading with the paragraph below it, and of each picture, table, widget, question, exercise and short piece of code;
    all text is in the notes.
    """
    notebook = copy.deepcopy(notebook)
    for data in html_outputs(notebook.cells):
        data["text/html"] = flat_tables(data["text/html"])
    tagged = any("slide" in tags(cell) for cell in notebook.cells)
    cells = notebook.cells if tagged else cut_at_headings(notebook.cells)
    notebook.cells = list(_tagged(cells) if tagged else _chosen(cells))
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(r"\1", cell.source)  # to other pages
        elif is_own(cell.source) or "hide-input" in tags(cell):
            tags(cell).append("remove-input")
    return notebook


def _as(cell: NotebookNode, kind: str) -> NotebookNode:
    cell.metadata["slideshow"] = {"slide_type": kind}
    return cell


def _tagged(cells: list[NotebookNode]) -> Iterator[NotebookNode]:
    kind = "skip"
    for cell in cells:
        if "slide" in tags(cell):
            kind = "slide"
        quiet = QUIET & set(tags(cell))
        yield _as(cell, "skip" if quiet else kind)
        if kind == "slide" and not quiet:
            kind = "-"


def _chosen(cells: list[NotebookNode]) -> Iterator[NotebookNode]:
    title = ""
    for cell in cells:
        if cell.cell_type == "markdown":
            head, _, text = cell.source.partition("\n")
            if not level(cell):
                yield _as(cell, "notes")
                continue
            title = f"##{head}" if head.startswith("# ") else head
            first = asked(text) if head.startswith("# ") else text.strip().partition("\n\n")[0]
            shown = text if head.startswith("### Exercise") else first
            yield _as(new_markdown_cell(f"{head}\n\n{shown}"), "slide")
            yield _as(new_markdown_cell(text), "notes")
        elif "exercise" in tags(cell):
            yield _as(cell, "-")
        elif not QUIET & set(tags(cell)) and (_is_seen(cell) or _is_short(cell)):
            yield _as(new_markdown_cell(title), "slide")
            yield _as(cell, "-")


def _is_seen(cell: NotebookNode) -> bool:
    """Whether it shows a picture, a table, a widget or a question."""
    return any("text/html" in output.get("data", {}) for output in cell.get("outputs", []))


def _is_short(cell: NotebookNode) -> bool:
    """Whether its code fits a slide and does more than import."""
    imports = cell.source.lstrip().startswith(("import ", "from "))
    seen = not (is_own(cell.source) or "hide-input" in tags(cell))
    return seen and not imports and len(cell.source.splitlines()) <= LINES


def deck(chapter: Chapter, course: Manifest) -> str:
    """The page of a deck.

    Args:
        chapter: its notebook is executed.
        course: what the last line of each slide names, with its license.
    """
    from nbconvert import SlidesExporter
    from traitlets.config import Config

    from course_utils.studio.book.widgets import show_widgets
    from course_utils.studio.pairs import read

    notebook = read(chapter.ipynb)
    show_widgets(notebook.cells)
    notebook = slides(notebook)
    notebook.metadata["title"] = f"{chapter.number} · {chapter.title}:"
    notebook.metadata["credit"] = f"{course.title} · {course.license}"
    removed = {"enabled": True, "remove_input_tags": {"remove-input"}}
    exporter = SlidesExporter(
        config=Config({"TagRemovePreprocessor": removed}),
        extra_template_basedirs=[str(HERE)],
        template_name="deck",
        reveal_url_prefix="assets",
        reveal_theme="deck",
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    return exporter.from_notebook_node(notebook)[0]


def write(course: Manifest, chapters: Sequence[Chapter], out: Path) -> list[Path]:
    """Write the decks of chapters, and beside them what they load; their files."""
    from course_utils.studio.book.widgets import live_scripts

    assets = out / "assets"
    for name, folder in REVEAL.items():
        (assets / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "reveal" / name, assets / folder / name)
    shutil.copy(HERE / "deck" / "deck.js", assets / "deck.js")
    shutil.copy(_mathjax(), assets / "mathjax.js")
    (assets / "dist" / "theme").mkdir(exist_ok=True)
    (assets / "dist" / "theme" / "deck.css").write_text(_style(), encoding="utf-8")
    made, live = [], live_scripts()
    for chapter in chapters:
        page = deck(chapter, course)
        for name in sorted(set(LIVE.findall(page))):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_text(live[name], encoding="utf-8")
        made.append(out / f"{chapter.notebook}.html")
        made[-1].write_text(page, encoding="utf-8")
    return made


def _style() -> str:
    from course_utils.figures.style import fonts_css, tokens_css

    own = (HERE / "deck" / "deck.css").read_text(encoding="utf-8")
    return "\n".join([fonts_css(), tokens_css(), own])


def _mathjax() -> Path:
    """MathJax in one file, as the book has it.

    Raises:
        StudioError: the part of the environment that makes books is missing.
    """
    import importlib.util

    found = importlib.util.find_spec("sphinx-mathjax-offline")
    for folder in list(found.submodule_search_locations or ()) if found else []:
        file = Path(folder) / "static" / "mathjax" / "tex-svg-full.js"
        if file.is_file():
            return file
    raise StudioError("MathJax is missing: pip install sphinx-mathjax-offline, as make does.")


def main(argv: Sequence[str] | None = None) -> int:
    """Write decks, and say where."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio slides", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    out = options.book.resolve().parent / "_build" / "slides"
    try:
        course = load(options.book)
        for file in write(course, course.chosen(options.chapters), out):
            print(file)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
