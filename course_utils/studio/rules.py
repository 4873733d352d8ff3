"""What every committed notebook keeps: each rule takes a notebook and yields complaints.

A complaint begins with the cell's place, counted from 0, and says what would be right.
"""

import ast
import html
import io
import re
import tokenize
from collections.abc import Callable, Iterator

import nbformat
from nbformat import NotebookNode

from course_utils.kit.language import pattern

IGNORE = "nbval-ignore-output"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
MAX_BYTES = 2_000_000
MAX_IGNORED = 0.30
MIN_ALT = 20  # characters

Rule = Callable[[NotebookNode], Iterator[str]]


def tags(cell: NotebookNode) -> list[str]:
    """A cell's tags."""
    return cell.metadata.get("tags", [])


def complaints(notebook: NotebookNode, kind: str = "chapter") -> list[str]:
    """All that a notebook breaks.

    Args:
        notebook: an executed one.
        kind: "chapter", "further" or "appendix", which needs no references.
    """
    free = kind == "appendix"
    rules = [rule for rule in RULES if not (free and rule is has_references)]
    return [text for rule in rules for text in rule(notebook)]


def _code(notebook: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    return ((place, cell) for place, cell in enumerate(notebook.cells) if cell.cell_type == "code")


def _outputs(notebook: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    return ((place, output) for place, cell in _code(notebook) for output in cell.outputs)


# Outputs ----------------------------------------------------------------------


def executed(notebook: NotebookNode) -> Iterator[str]:
    """Each code cell has run: nbval never compares one that has not."""
    for place, cell in _code(notebook):
        if cell.execution_count is None:
            yield f"cell {place}: never executed; run the whole notebook"


def no_errors(notebook: NotebookNode) -> Iterator[str]:
    """No cell ends in an exception."""
    for place, output in _outputs(notebook):
        if output.output_type == "error":
            yield f"cell {place}: ends in {output.ename}; fix it"


def no_stderr(notebook: NotebookNode) -> Iterator[str]:
    """No warnings, and no traces of progress bars."""
    for place, output in _outputs(notebook):
        if output.get("name") == "stderr":
            start = output.text.strip()[:60]
            yield f"cell {place}: writes {start!r} to stderr; remove the cause"


def no_addresses(notebook: NotebookNode) -> Iterator[str]:
    """No text that changes from run to run, such as ``<Linear at 0x7f…>``."""
    for place, output in _outputs(notebook):
        text = output.get("text", "") + output.get("data", {}).get("text/plain", "")
        if re.search(r"\b0x[0-9a-f]{8,}", text):
            yield f"cell {place}: shows a memory address; print what a reader needs"


def few_ignored(notebook: NotebookNode) -> Iterator[str]:
    """Most outputs are compared: ignored cells stay under 30 % of those with output."""
    ignored = sum(IGNORE in tags(cell) for _, cell in _code(notebook))
    shown = sum(bool(cell.outputs) for _, cell in _code(notebook))
    if ignored and ignored >= MAX_IGNORED * shown:
        limit = f"keep under {MAX_IGNORED:.0%}"
        yield f"{ignored} cells are tagged {IGNORE} and {shown} have output; {limit}"


def alt_texts(notebook: NotebookNode) -> Iterator[str]:
    """Each picture says in words what is seen, in HTML or as an image output."""
    for place, output in _outputs(notebook):
        data = output.get("data", {})
        alts = [
            (kind, output.metadata.get(kind, {}).get("alt", ""))
            for kind in data
            if kind.startswith("image/")
        ]
        for tag in re.findall(r"<img\b[^>]*>", data.get("text/html", "")):
            alt = re.search(r'\balt="([^"]*)"', tag)
            alts.append(("<img>", html.unescape(alt[1]) if alt else ""))
        for kind, alt in alts:
            if len(alt.strip()) < MIN_ALT:
                yield f"cell {place}: the alt text {alt.strip()!r} of its {kind}; say what is seen"


def no_widget_state(notebook: NotebookNode) -> Iterator[str]:
    """No saved widgets: they are large and differ at each run."""
    if "widgets" in notebook.metadata:
        yield "metadata.widgets: remove it"
    for place, output in _outputs(notebook):
        if WIDGET_VIEW in output.get("data", {}):
            yield f"cell {place}: holds a widget's view; remove it"


def small(notebook: NotebookNode) -> Iterator[str]:
    """At most 2 MB on disk."""
    size = len(nbformat.writes(notebook).encode())
    if size > MAX_BYTES:
        yield f"{size / 1e6:.1f} MB; {MAX_BYTES / 1e6:.0f} MB are allowed: draw less, or smaller"


# Code -------------------------------------------------------------------------


def plain_python(notebook: NotebookNode) -> Iterator[str]:
    """No magics and no shell lines, so that the rules below see all code."""
    for place, cell in _code(notebook):
        try:
            ast.parse(cell.source)
        except SyntaxError as error:
            yield f"cell {place}: not plain Python, line {error.lineno}: {error.msg}"


def _statements(cell: NotebookNode) -> list[ast.stmt]:
    """The cell's code; none if it is not Python, which `plain_python` reports."""
    try:
        return ast.parse(cell.source).body
    except SyntaxError:
        return []


def no_pyplot(notebook: NotebookNode) -> Iterator[str]:
    """Figures are made by the course's own functions, which ask for an alt text."""
    for place, cell in _code(notebook):
        if re.search(r"\bpyplot\b|\bplt\.", cell.source):
            yield f"cell {place}: uses pyplot; draw with cu.subplots or cu.show_heatmaps"


def no_trailing_semicolon(notebook: NotebookNode) -> Iterator[str]:
    """No ``;`` at a cell's end: what it hides, nbval cannot compare."""
    for place, cell in _code(notebook):
        if _last_token(cell.source) == ";":
            yield f"cell {place}: ends with ';'; write `_ = …`, or show the output"


def _last_token(source: str) -> str:
    """What stands last, comments apart."""
    last = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type != tokenize.COMMENT and token.string.strip():
                last = token.string
    except (tokenize.TokenError, SyntaxError):
        pass  # not Python: plain_python reports it
    return last


def imports_first(notebook: NotebookNode) -> Iterator[str]:
    """The first code cell imports and seeds, and does nothing else."""
    for place, cell in list(_code(notebook))[:1]:
        for statement in _statements(cell):
            code = ast.unparse(statement)
            imports = isinstance(statement, ast.Import | ast.ImportFrom)
            if not imports and not re.fullmatch(r"(\w+ = )?cu\.seed_everything\(\d+\)", code):
                yield f"cell {place}: {code!r} is neither import nor seed; move it down"


def no_idle_comparisons(notebook: NotebookNode) -> Iterator[str]:
    """A comparison that stands alone checks nothing."""
    for place, cell in _code(notebook):
        for node in ast.walk(ast.Module(_statements(cell), [])):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare):
                code = ast.unparse(node)
                yield f"cell {place}: {code!r} checks nothing; show it, or assert it in a guard"


def has_references(notebook: NotebookNode) -> Iterator[str]:
    """The last text is the list of references."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    if not texts or not re.match(f"## {pattern('References')}", texts[-1]):
        yield "the last text cell does not begin with '## References'; add it, or move it down"


RULES: tuple[Rule, ...] = (
    executed,
    no_errors,
    no_stderr,
    no_addresses,
    few_ignored,
    alt_texts,
    no_widget_state,
    small,
    plain_python,
    no_pyplot,
    no_trailing_semicolon,
    imports_first,
    no_idle_comparisons,
    has_references,
)
