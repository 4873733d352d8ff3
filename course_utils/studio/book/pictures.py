"""Pictures in the book's pages: an SVG becomes part of its page, and sees its colors and fonts."""

import base64
import copy
import re
from html import escape, unescape
from pathlib import Path

import nbformat
from nbformat import NotebookNode

LEAST = 0.91
"""Of a picture's width: a narrow page makes it smaller until twelve pixels are eleven, then it can be scrolled."""

IMAGE = re.compile(
    r'<img alt="(?P<alt>[^"]*)" src="(?P<source>[^"]*)" width="(?P<width>\d+)" height="\d+" style="[^"]*">'
)
VECTOR = "data:image/svg+xml;base64,"


def settle_pictures(notebook: NotebookNode) -> NotebookNode:
    """Each picture in the outputs, a drawing too, becomes a figure that is readable on a narrow page."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if shown := output.get("data", {}).get("text/html"):
                output.data["text/html"] = IMAGE.sub(_figure, shown)
    return notebook


def _figure(image: re.Match) -> str:
    shown = image[0]
    if image["source"].startswith(VECTOR):
        said = escape(unescape(image["alt"]))
        shown = _inline(image).replace("<svg ", f'<svg role="img" aria-label="{said}" ', 1)
    least = f"{LEAST * int(image['width']):.0f}px"
    return f'<div class="cu-figure"><div style="min-width:{least};max-width:{image["width"]}px">{shown}</div></div>'


def _inline(image: re.Match) -> str:
    svg = base64.b64decode(image["source"].removeprefix(VECTOR)).decode()
    return re.sub(r"<style>.*?</style>", "", svg)  # its colors, which the page has


def first_picture(notebook: Path) -> str:
    """The first vector picture that a notebook shows, as a decoration elsewhere; empty without one."""
    if not notebook.is_file():
        return ""
    for cell in nbformat.read(notebook, 4).cells:
        for output in cell.get("outputs", []):
            image = IMAGE.search(output.get("data", {}).get("text/html", ""))
            if image and image["source"].startswith(VECTOR):
                return _inline(image).replace("<svg ", '<svg aria-hidden="true" ', 1)
    return ""
