"""Links between pages: the places of a page, as JupyterLab calls them and as the book does.

A link in a notebook is written for Lab, where a heading's place is its text with hyphens for spaces:
``[the width](02_kernel_regression.ipynb#The-width)``. The book has other names for the same places; `places`
gives both. A shorter one, for the book and Lab alike, is an anchor within the heading:
``### <a id="kv-cache"></a>KV cache``.
"""

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat import NotebookNode

LINK = re.compile(r"(?<!!)\[(?P<text>[^\[\]]+)\]\((?P<target>[^()\s]+)\)")
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`|\$\$.*?\$\$|\$[^$\n]+\$)", re.MULTILINE | re.DOTALL)
DEEPEST = 3  # the level of headings that the book gives a place to


def texts(notebook: NotebookNode) -> list[str]:
    """The Markdown cells of a notebook."""
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """A text of Markdown, changed where it is neither code nor formula."""
    parts = CODE.split(text)  # text, code, text, …
    parts[::2] = map(change, parts[::2])
    return "".join(parts)


def places(markdown: Iterable[str]) -> dict[str, str]:
    """The places of a page, given its texts in order, that links may lead to: name in Lab → name in the book."""
    parser = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)
    parser.use(anchors_plugin, max_level=DEEPEST)
    names: dict[str, str] = {}
    for start, inline in pairwise(parser.parse("\n\n".join(markdown))):
        if name := start.attrGet("id"):
            words = [p.content for p in inline.children or () if p.type in ("text", "code_inline")]
            heading = "".join(words).strip()
            for place in (heading.replace(" ", "-"), *ANCHOR.findall(inline.content)):
                names.setdefault(place, str(name))
    return names


def targets(markdown: str) -> list[str]:
    """Where a text's links lead, pictures and code left out."""
    return [link["target"] for part in CODE.split(markdown)[::2] for link in LINK.finditer(part)]
