"""One sentence a line in all notebooks, and code that only calls the course folded in Lab.

A changed word is then a changed line, not a changed paragraph.

A page looks as before: what Markdown makes of a text is compared, and a paragraph that would come out otherwise stays.
"""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.files import atomic_write
from course_utils.kit.language import pattern
from course_utils.studio import pairs
from course_utils.studio.page import is_own
from course_utils.studio.ways import tell

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from nbformat import NotebookNode

# After these a full stop ends no sentence; nor does it after a single capital, as in names.
ABBREVIATED = {
    *(
        "al",
        "approx",
        "cf",
        "ch",
        "e.g",
        "eq",
        "eqs",
        "fig",
        "figs",
        "i.e",
        "no",
        "p",
        "pp",
        "resp",
    ),
    *("sec", "st", "vol", "vs", "mr", "mrs", "dr"),
}
APART = re.compile(r"`+[^`]*`+|\$[^$]*\$|!?\[[^\]]*\]\([^)]*\)|<[^>]*>")  # no line breaks inside
END = re.compile(r"""([.!?…][.!?…'"”’)*_\]]*) (?=["“‘'(\[*_`$]*[A-ZÀ-Þ0-9\x00])""")
AS_IT_IS = re.compile(r"\$\$|\\begin|:::|```|\\\n| {2,}\n|^\s*\|", re.MULTILINE)
LABEL = re.compile(r"^\*[^*]+\*$")  # such as "*build · 8 minutes*", which is a line by itself


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


def html(text: str) -> str:
    """What Markdown makes of a text, however its lines are broken."""
    blocks = re.split(r"(<pre>.*?</pre>)", _markdown().render(text), flags=re.DOTALL)
    return "".join(one if one.startswith("<pre>") else " ".join(one.split()) for one in blocks)


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph of one line."""
    hidden: list[str] = []

    def hide(found: re.Match) -> str:
        hidden.append(found[0])
        return f"\x00{len(hidden) - 1}\x00"

    text, lines, start = APART.sub(hide, paragraph), [], 0
    for found in END.finditer(text):
        word = re.search(r"([\w.\x00]*)$", text[: found.start()])[1].lower().lstrip("(")
        initial = re.search(r"(^|[\s(])[A-Z]$", text[: found.start()])
        if found[1] == "." and (word in ABBREVIATED or initial):
            continue
        lines.append(text[start : found.end(1)])
        start = found.end()
    lines.append(text[start:])
    return [re.sub(r"\x00(\d+)\x00", lambda place: hidden[int(place[1])], one) for one in lines]


def one_a_line(text: str) -> str:
    """A Markdown text with a line for each sentence of its paragraphs; lists and quotations, too."""
    lines, wanted = text.split("\n"), html(text)
    paragraphs = []
    tokens = _markdown().parse(text)
    for before, token in pairwise(tokens):
        if before.type == "paragraph_open" and not AS_IT_IS.search(
            "\n".join(lines[slice(*token.map)])
        ):
            paragraphs.append((*token.map, token.content))
    for start, stop, content in reversed(paragraphs):
        first = content.split("\n", 1)[0]
        if not lines[start].rstrip().endswith(first.rstrip()):
            continue
        head = lines[start].rstrip()[: len(lines[start].rstrip()) - len(first.rstrip())]
        rest = re.sub(r"[^>\s]", " ", head)
        broken = [part for one in _joined(content) for part in sentences(one)]
        new = [head + broken[0], *(rest + part for part in broken[1:])]
        tried = [*lines[:start], *new, *lines[stop:]]
        if html("\n".join(tried)) == wanted:
            lines = tried
    return "\n".join(lines)


def _joined(content: str) -> list[str]:
    """The lines of a paragraph as one, labels apart."""
    lines = [line.strip() for line in content.split("\n")]
    labels = next((place for place, one in enumerate(lines) if not LABEL.match(one)), len(lines))
    return lines[:labels] + ([" ".join(lines[labels:])] if lines[labels:] else [])


COUNTER = re.compile(rf"^\*{pattern('Section')} \d+ \w+ \d+\*\n+", re.MULTILINE)


def break_lines(notebook: "NotebookNode") -> bool:
    """Break the lines of a notebook's Markdown cells, in place; whether any has changed."""
    changed = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (text := one_a_line(cell.source)) != cell.source:
            cell.source, changed = text, True
    return changed


def fold(notebook: "NotebookNode") -> bool:
    """Fold in Lab, in place, the code that only calls the course, and drop section counters; whether any was."""
    changed = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and COUNTER.search(cell.source):
            cell.source, changed = COUNTER.sub("", cell.source), True
        elif cell.cell_type == "code" and is_own(cell.source):
            folded = {"source_hidden": True} | cell.metadata.get("jupyter", {})
            changed |= folded != cell.metadata.get("jupyter")
            cell.metadata["jupyter"] = folded
    return changed


def tidy(notebook: "NotebookNode", told: str = "") -> bool:
    """All of these, in place; whether anything has changed."""
    return fold(notebook) | tell(notebook, told) | break_lines(notebook)


def format_pair(source: Path, ipynb: Path, told: str = "", *, check: bool = False) -> bool:
    """Write both halves tidy, outputs as they were; whether there was anything to do.

    Args:
        source, ipynb: the files of one pair.
        told: what its first text says of the ways.
        check: write nothing, and look at the sentences alone.

    Raises:
        PairError: the halves do not agree.
    """
    import jupytext

    notebook = jupytext.read(source, fmt=pairs.FORMAT)  # with the blank lines between its cells
    if check:
        return break_lines(notebook)
    if not tidy(notebook, told):
        return False
    if ipynb.is_file():
        made = pairs.read(ipynb)
        if pairs.text(made) != pairs.text(pairs.read_source(source)):
            raise pairs.PairError(f"{source.name} and {ipynb.name} differ; 'make sync' first")
        tidy(made, told)
        pairs.write(pairs.bare(made), ipynb)
    with atomic_write(source) as part:
        part.write_text(pairs.text(notebook), encoding="utf-8")
    return True
