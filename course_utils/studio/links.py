"""Links between pages: the anchors of a page, by their names in JupyterLab and in the book.

A link in a notebook is written for Lab, where a heading's anchor is its text with hyphens for spaces:
``[the width](02_kernel_regression.ipynb#The-width)``. The book has other names for the same anchors; `places`
gives both. A shorter one, the same in the book and in Lab, is written into the heading:
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
    """A text of Markdown with a function applied to the parts that are neither code nor formula."""
    parts = CODE.split(text)  # text, code, text, …
    parts[::2] = map(change, parts[::2])
    return "".join(parts)


def places(markdown: Iterable[str]) -> dict[str, str]:
    """The anchors of a page from its texts in order: name in Lab → name in the book."""
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
    """The targets of a text's links, without those of pictures and in code."""
    return [link["target"] for part in CODE.split(markdown)[::2] for link in LINK.finditer(part)]
