"""Links between pages: the places of a page, as JupyterLab calls them and as the book does.

A link in a notebook is written for Lab, where a heading's place is its text with hyphens for spaces:
``[the width](02_kernel_regression.ipynb#The-width)``. The book has other names for the same places; `places`
gives both. A shorter one, for the book and Lab alike, is an anchor within the heading:
``### <a id="kv-cache"></a>KV cache``.
"""

import copy
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from markdown_it import MarkdownIt
from mdit_py_plugins.anchors.index import slugify
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat import NotebookNode

LINK = re.compile(r"(?<!!)\[(?P<text>[^\[\]]+)\]\((?P<target>[^()\s]+)\)")
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
DEEPEST = 3  # the level of headings that the book gives a place to


def texts(notebook: NotebookNode) -> list[str]:
    """The Markdown cells of a notebook."""
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


CODE = re.compile(r"(^```.*?^```|`[^`\n]+`|\$\$.*?\$\$|\$[^$\n]+\$)", re.MULTILINE | re.DOTALL)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """A text of Markdown, changed where it is neither code nor formula."""
    parts = CODE.split(text)  # text, code, text, …
    parts[::2] = map(change, parts[::2])
    return "".join(parts)


def with_texts(notebook: NotebookNode, change: Callable[[str], str]) -> NotebookNode:
    """A copy of a notebook, its Markdown changed outside code and formulas."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = outside_code(cell.source, change)
    return notebook


def places(markdown: Iterable[str]) -> dict[str, str]:
    """The places of a page that links may lead to: the name in Lab → the name in the book.

    Args:
        markdown: the texts of the page, in order.
    """
    found: dict[str, str] = {}
    slugs: set[str] = set()
    for heading, anchors in _headings(markdown):
        slug, number = slugify(heading), 0
        while (name := f"{slug}-{number}" if number else slug) in slugs:
            number += 1
        slugs.add(name)
        for place in (heading.replace(" ", "-"), *anchors):
            found.setdefault(place, name)
    return found


def _headings(markdown: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Each heading's text without markup, and its anchors."""
    parser = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)
    for text in markdown:
        tokens = parser.parse(text)
        for start, inline in pairwise(tokens):
            if start.type == "heading_open" and int(start.tag[1]) <= DEEPEST:
                parts = inline.children or []
                words = "".join(p.content for p in parts if p.type in ("text", "code_inline"))
                yield words.strip(), ANCHOR.findall(inline.content)


def targets(markdown: str) -> list[str]:
    """Where a text's links lead, pictures and code left out."""
    return [
        match["target"]
        for match in LINK.finditer(re.sub(r"```.*?```|`[^`\n]*`", "", markdown, flags=re.S))
    ]
