"""Markdown and code as HTML for pages of our own; formulas stay as they are, for MathJax."""

import html
import re
from functools import cache

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin


def _formula(content: str, options: dict) -> str:
    text = html.escape(content.strip(), quote=False)
    return rf"\[{text}\]" if options["display_mode"] else rf"\({text}\)"


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, renderer=_formula)


def markdown(text: str, *, inline: bool = False) -> str:
    """A text as HTML; links to other pages of the course are their words alone.

    Args:
        text: in Markdown, with formulas between dollars.
        inline: without a paragraph around it.
    """
    text = re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text)
    return _parser().renderInline(text.strip()) if inline else _parser().render(text.strip())


def code(source: str) -> str:
    """Python as HTML, its kinds of words as classes of pygments."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(source.strip(), PythonLexer(), HtmlFormatter(nowrap=False, cssclass="code"))


def code_css() -> str:
    """The colors of `code`."""
    from pygments.formatters import HtmlFormatter

    return HtmlFormatter(style="tango").get_style_defs(".code")
