"""What the book changes in an executed notebook: functions from notebook to a new notebook."""

import copy
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from nbformat import NotebookNode

from course_utils.studio.book import calm, cards
from course_utils.studio.book.pictures import settle_pictures
from course_utils.studio.links import ANCHOR, LINK, places, texts, with_texts
from course_utils.studio.manifest import Chapter

Places = Mapping[str, Mapping[str, str]]
SHOWN_AS_IMAGE = ("image/png", "image/jpeg", "image/svg+xml", "image/gif")


class PictureError(ValueError):
    """A picture that the book cannot describe to a reader who does not see it."""


def without_missing_runs(notebook: NotebookNode) -> NotebookNode:
    """Leave out each section whose run at full size is not stored: from its heading to the next one."""
    notebook = copy.deepcopy(notebook)
    kept: list[NotebookNode] = []
    section: list[NotebookNode] = []
    for cell in [*notebook.cells, None]:
        if cell is None or (cell.cell_type == "markdown" and re.match(r"#{1,6} ", cell.source)):
            kept += [] if any(map(_shows_no_run, section)) else section
            section = []
        section.append(cell)
    notebook.cells = kept
    return notebook


def _shows_no_run(cell: NotebookNode) -> bool:
    texts = (output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", []))
    return "gpu" in cell.metadata.get("tags", []) and any(
        "no run is stored" in text for text in texts
    )


def carry_alt_texts(notebook: NotebookNode) -> NotebookNode:
    """Copy each picture's alt text from its output, where viewers look for it, to its cell, where MyST-NB does.

    Raises:
        PictureError: a picture has no alt text, or a cell shows two pictures and has room for one text.
    """
    notebook = copy.deepcopy(notebook)
    for place, cell in enumerate(notebook.cells):
        alts = [_alt(place, output) for output in cell.get("outputs", []) if _is_picture(output)]
        if len(set(alts)) > 1:
            raise PictureError(f"cell {place} shows {len(alts)} pictures; show one in each cell")
        if alts:
            _mystnb(cell)["image"] = {"alt": alts[0]}
    return notebook


def _is_picture(output: NotebookNode) -> bool:
    data = output.get("data", {})
    return "text/html" not in data and any(kind in data for kind in SHOWN_AS_IMAGE)


def _alt(place: int, output: NotebookNode) -> str:
    kinds = [kind for kind in SHOWN_AS_IMAGE if kind in output.data]
    alts = [output.get("metadata", {}).get(kind, {}).get("alt", "") for kind in kinds]
    alt = " ".join(" ".join(alts[:1]).split())
    if not alt:
        raise PictureError(
            f"cell {place} shows a picture without alt text; make it with cu.subplots(alt=…)"
        )
    return alt


def _mystnb(cell: NotebookNode) -> dict:
    return cell.metadata.setdefault("mystnb", {})


def keep_links_inside(notebook: NotebookNode, pages: Places, files: str) -> NotebookNode:
    """Links lead to the book's own places; those to files that are no pages of it lead to the repository.

    Args:
        notebook: a chapter; its links start at ``notebooks/``.
        pages: file name (``01_queries_keys_values.ipynb``) → its `places`.
        files: where the repository shows its files, or ""; then only the text of such links stays.
    """
    here = places(texts(notebook))
    return with_texts(notebook, lambda text: lead(text, pages, files, here))


def lead(text: str, pages: Places, files: str, here: Mapping[str, str]) -> str:
    """The links of one text as `keep_links_inside` says; `here` are the places of its own page."""

    def one(match: re.Match) -> str:
        words, target = match["text"], match["target"]
        file, _, place = target.partition("#")
        if re.match(r"[a-z]+:", target):
            return match[0]
        if file in pages or not file:
            known = pages[file] if file else here
            to = f"{file}#{known.get(place, place)}" if place else file
            return f"[{words}]({to})"
        return f"[{words}]({files}/{_from_root(target)})" if files else words

    return LINK.sub(one, ANCHOR.sub("", text))


def lead_outputs_to_pages(notebook: NotebookNode, pages: Places) -> NotebookNode:
    """Links in HTML outputs, to notebooks in Lab, lead to the book's pages; to one it lacks, only their text stays.

    A link that holds more than a text, as in the map, stays where it leads to no page.
    """
    link = re.compile(r'<a href="(?P<stem>\w+)\.ipynb(?P<place>#[^"]*)?">(?P<text>[^<]*)</a>')

    def lead(match: re.Match) -> str:
        known = pages.get(f"{match['stem']}.ipynb")
        if known is None:
            return match["text"]
        place = (match["place"] or "").removeprefix("#")
        to = f"#{known.get(place, place)}" if place else ""
        return f'<a href="{match["stem"]}.html{to}">{match["text"]}</a>'

    around = re.compile(r'(?<= href=")(\w+)\.ipynb(?=")')

    def led(match: re.Match) -> str:
        return f"{match[1]}.html" if f"{match[1]}.ipynb" in pages else match[0]

    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if shown := output.get("data", {}).get("text/html"):
                output.data["text/html"] = around.sub(led, link.sub(lead, shown))
    return notebook


def _from_root(target: str) -> str:
    parts: list[str] = []
    for part in (PurePosixPath("notebooks") / target).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def for_the_book(
    notebook: NotebookNode,
    pages: Places,
    files: str,
    chapter: Chapter,
    onward: cards.Onward = MappingProxyType({}),
) -> NotebookNode:
    """All that the book changes.

    Args:
        notebook, pages, files: as `keep_links_inside` has them.
        chapter: what the notebook is.
        onward: what comes next, by default and on each way.
    """
    further = next((page for page in [*chapter.pages()][1:]), None)
    notebook = keep_links_inside(lead_outputs_to_pages(notebook, pages), pages, files)
    for transform in (
        without_missing_runs,
        carry_alt_texts,
        settle_pictures,
        calm.cut_at_headings,
        cards.with_exercises,
        calm.without_own_calls,
        calm.with_claims,
        calm.with_plain_tables,
        lambda notebook: cards.with_head(notebook, chapter),
        calm.with_code_links,
        lambda notebook: cards.with_foot(notebook, onward, further),
    ):
        notebook = transform(notebook)
    for place, cell in enumerate(notebook.cells):
        cell["id"] = str(place)  # what has not changed is written as before
    return notebook
