"""``python -m course_utils.studio slides 02``: a deck of a chapter by nbconvert, which asks no other host for anything.

`_build/slides/02_….html` is shown by any browser, from a file or from a server: arrow keys move, `S` opens the notes,
`O` shows all slides, `?print-pdf` behind the address prints. The folder `assets` beside it holds reveal.js and MathJax,
and `live` the models that the decks show: copy all of it.
"""

import copy
import importlib.util
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from bs4 import BeautifulSoup
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from course_utils.kit.exercises import exercises
from course_utils.studio import StudioError
from course_utils.studio.book.cells import html_outputs, level, tags
from course_utils.studio.book.check import LIVE
from course_utils.studio.book.outputs import IMAGE, as_figure, flat_tables
from course_utils.studio.book.transforms import cut_at_headings
from course_utils.studio.book.widgets import live_scripts, show_widgets
from course_utils.studio.content import is_course_call
from course_utils.studio.manifest import Chapter, Manifest, find_question
from course_utils.studio.notebook_files import read_notebook

HERE = Path(__file__).parent
FILES = {
    "reveal/reveal.js": "dist/reveal.js",
    "reveal/reveal.css": "dist/reveal.css",
    "reveal/reset.css": "dist/reset.css",
    "reveal/notes.js": "plugin/notes/notes.js",
    "reveal/LICENSE.txt": "LICENSE.txt",
    "deck/deck.js": "deck.js",
}
"""File that a deck loads → its place in `assets`, where nbconvert expects it."""
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)")  # to another page
LEFT_OUT = {"guard", "check", "solution"}
LINES = 22  # of code on a slide that nobody has tagged


def slides(notebook: NotebookNode) -> NotebookNode:
    """A copy of a notebook whose cells have a `slide_type`, for nbconvert.

    A cell tagged `slide` begins a slide, which holds all up to the next one. Without such tags a slide is made of each
    heading with the paragraph below it and what that announces (a formula, a list, a table, code), and of each picture,
    stage, table, widget, question, exercise and piece of code; all text is in the notes.
    """
    notebook = copy.deepcopy(notebook)
    for data in html_outputs(notebook.cells):
        data["text/html"] = flat_tables(IMAGE.sub(as_figure, data["text/html"]))
    is_tagged = any("slide" in tags(cell) for cell in notebook.cells)
    if is_tagged:
        notebook.cells = list(_tagged(notebook.cells))
    else:
        chosen = list(_chosen(cut_at_headings(notebook.cells)))
        notebook.cells = list(_without_bare_titles(chosen))
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(r"\1", cell.source)
        elif is_course_call(cell.source) or "hide-input" in tags(cell):
            tags(cell).append("remove-input")
    return notebook


def _as(kind: str, cell: NotebookNode) -> NotebookNode:
    cell.metadata["slideshow"] = {"slide_type": kind}
    return cell


def _tagged(cells: list[NotebookNode]) -> Iterator[NotebookNode]:
    kind = "skip"
    for cell in cells:
        kind = "slide" if "slide" in tags(cell) else kind
        if LEFT_OUT & set(tags(cell)):
            yield _as("skip", cell)
        else:
            yield _as(kind, cell)
            kind = "-" if kind == "slide" else kind


def _chosen(cells: list[NotebookNode]) -> Iterator[NotebookNode]:
    within = {n for one in exercises(cells) for n in range(one.place, one.end + 1)}
    section = title = ""
    is_open = False  # whether the slide waits for the next cell: it has only a title, or its text announces something
    for place, cell in enumerate(cells):
        title = title if place in within else section
        if cell.cell_type == "markdown":
            head, text = cell.source.partition("\n")[::2] if level(cell) else ("", cell.source)
            if head:
                title = f"##{head}" if level(cell) == 1 else head
                section = section if place in within else title
                shown = text if place in within else _opening(text)
                shown = find_question(text) if level(cell) == 1 else shown
                yield _as("slide", new_markdown_cell(f"{head}\n\n{shown}"))
            elif is_open:
                yield _as("-", new_markdown_cell(shown := _opening(text)))
            else:
                shown = "."
            is_open = not _is_whole(shown)
            yield _as("notes", new_markdown_cell(text))
        elif "exercise" in tags(cell):
            yield _as("-", cell)
        elif stages := _stages(cell):
            yield from stages
            is_open = False
        elif not LEFT_OUT & set(tags(cell)) and (is_open or _shows_html(cell) or _is_short(cell)):
            if not is_open:
                yield _as("slide", new_markdown_cell(title))
            yield _as("-", cell)
            is_open = False


def _opening(text: str) -> str:
    """The first paragraph of a text, with what follows it until its last sentence is whole."""
    shown: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        goes_on = shown and shown[-1].endswith("$$") and re.match(r"[a-z$]", block)
        is_code = "\n".join(shown).count("```") % 2  # with an empty line in it
        if shown and _is_whole(shown[-1]) and not goes_on and not is_code:
            break
        shown.append(block.strip())
    return "\n\n".join(shown)


def _is_whole(block: str) -> bool:
    """Whether a block ends with a sentence, or is a list, a table or a formula."""
    last = block.strip().rpartition("\n\n")[2]
    begins, ends = r"[-*|<>]\s|\||\d+\.\s|\$\$|```|<", r"([.!?…]\W*|```)$"
    return bool(re.match(begins, last) or re.search(ends, last))


def _without_bare_titles(cells: list[NotebookNode]) -> Iterator[NotebookNode]:
    """The cells, less each slide that has only a heading, such as one above a subheading or above stages."""
    kinds = [cell.metadata["slideshow"]["slide_type"] for cell in cells]
    for place, cell in enumerate(cells):
        following = next((kind for kind in kinds[place + 1 :] if kind != "notes"), "slide")
        is_bare = level(cell) > 1 and not cell.source.partition("\n")[2].strip()
        if not (kinds[place] == "slide" and is_bare and following == "slide"):
            yield cell


def _shows_html(cell: NotebookNode) -> bool:
    """Whether a cell shows a picture, a table, a widget or a question."""
    return any("text/html" in output.get("data", {}) for output in cell.get("outputs", []))


def _stages(cell: NotebookNode) -> list[NotebookNode]:
    """A slide for each stage of a picture in stages, with its caption below and its question in the notes."""
    slides = []
    for data in html_outputs([cell]):
        for figure in BeautifulSoup(data["text/html"], "html.parser").select(".cu-stages figure"):
            picture, caption = figure.img or figure.svg, figure.figcaption
            head = f"<h2>{figure.select_one('.title b').decode_contents()}</h2>"
            seen = " ".join(f"{picture} {caption.p}".split())  # an empty line would end the HTML
            slides.append(_as("slide", new_markdown_cell(f"{head}\n{seen}")))
            slides.append(_as("notes", new_markdown_cell(str(caption.details))))
    return slides


def _is_short(cell: NotebookNode) -> bool:
    """Whether a cell's code is visible, fits a slide and does more than import."""
    imports = cell.source.lstrip().startswith(("import ", "from "))
    hidden = is_course_call(cell.source) or "hide-input" in tags(cell)
    return not hidden and not imports and len(cell.source.splitlines()) <= LINES


def deck(chapter: Chapter, course: Manifest) -> str:
    """The page of a deck, from the executed notebook; each slide ends with the course's title and license."""
    from nbconvert import SlidesExporter  # slow to import
    from traitlets.config import Config

    notebook = read_notebook(chapter.ipynb)
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
    """Write the decks of chapters, and beside them the files that they load; returns the paths of the decks.

    Raises:
        StudioError: the part of the environment that makes books is missing.
    """
    from course_utils.figures.style import fonts_css, tokens_css

    for name, target in FILES.items():
        (out / "assets" / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / name, out / "assets" / target)
    style = (HERE / "deck" / "deck.css").read_text(encoding="utf-8")
    texts = {"assets/dist/theme/deck.css": "\n".join([fonts_css(), tokens_css(), style])}
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    if not package:
        raise StudioError("MathJax is missing: pip install sphinx-mathjax-offline, as make does.")
    (folder,) = package.submodule_search_locations or ()
    shutil.copy(f"{folder}/static/mathjax/tex-svg-full.js", out / "assets" / "mathjax.js")
    models = live_scripts()
    decks = {f"{chapter.notebook}.html": deck(chapter, course) for chapter in chapters}
    for page in decks.values():
        texts |= {name: models[name] for name in LIVE.findall(page)}
    for name, text in (texts | decks).items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in decks]
