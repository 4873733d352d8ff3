"""What every committed notebook keeps: each rule is a function from a notebook to complaints.

Stands below `notebooks`, whose ``check`` applies them, and needs nothing else of the course.
A complaint begins with the cell's place, counted from 0, and says what would be right.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator

import nbformat
from nbformat import NotebookNode

IGNORE = "nbval-ignore-output"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
EXERCISE_TAGS = ("exercise", "check", "solution")
MAX_BYTES = 2_000_000
MAX_IGNORED = 0.30
MIN_ALT = 20
MIN_EXERCISES = 4

Rule = Callable[[NotebookNode], list[str]]


def tags(cell: NotebookNode) -> list[str]:
    """A cell's tags."""
    return cell.metadata.get("tags", [])


def complaints(notebook: NotebookNode, *, first: bool = False) -> list[str]:
    """All that a notebook breaks; the first chapter may have fewer exercises than the others."""
    broken = [complaint for rule in RULES for complaint in rule(notebook)]
    return broken if first else broken + enough_exercises(notebook)


def _code(notebook: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    return ((place, cell) for place, cell in enumerate(notebook.cells) if cell.cell_type == "code")


def _outputs(notebook: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    return ((place, output) for place, cell in _code(notebook) for output in cell.outputs)


def _statements(cell: NotebookNode) -> list[ast.stmt]:
    """The cell as Python; empty if it is none, which :func:`plain_python` reports."""
    try:
        return ast.parse(cell.source).body
    except SyntaxError:
        return []


# Outputs -----------------------------------------------------------------------


def executed(notebook: NotebookNode) -> list[str]:
    """Each code cell has run: nbval never compares one that has not."""
    return [
        f"cell {place}: never executed; run the whole notebook"
        for place, cell in _code(notebook)
        if cell.execution_count is None
    ]


def no_errors(notebook: NotebookNode) -> list[str]:
    """No cell ends in an exception."""
    return [
        f"cell {place}: ends in {out.ename}; mend it"
        for place, out in _outputs(notebook)
        if out.output_type == "error"
    ]


def no_stderr(notebook: NotebookNode) -> list[str]:
    """No warnings and no rubbish of progress bars."""
    return [
        f"cell {place}: writes to stderr ({out.text.strip()[:60]!r}); remove the cause"
        for place, out in _outputs(notebook)
        if out.output_type == "stream" and out.name == "stderr"
    ]


def no_addresses(notebook: NotebookNode) -> list[str]:
    """No text that is other at each run, such as ``<Linear at 0x7f…>``."""
    return [
        f"cell {place}: shows a memory address; print what a reader needs"
        for place, out in _outputs(notebook)
        if re.search(
            r"\b0x[0-9a-f]{8,}",
            out.get("text", "") + str(out.get("data", {}).get("text/plain", "")),
        )
    ]


def few_ignored(notebook: NotebookNode) -> list[str]:
    """Most outputs are compared: ignored cells stay under 30 % of those with output."""
    ignored = sum(IGNORE in tags(cell) for _, cell in _code(notebook))
    shown = sum(bool(cell.outputs) for _, cell in _code(notebook))
    if ignored < MAX_IGNORED * shown or not ignored:
        return []
    return [
        f"{ignored} cells are tagged {IGNORE}, {shown} have output; keep under {MAX_IGNORED:.0%}"
    ]


def alt_texts(notebook: NotebookNode) -> list[str]:
    """Each picture says in words what is seen."""
    return [
        f"cell {place}: its {kind} has the alt text {alt!r}; say in a sentence what is seen"
        for place, out in _outputs(notebook)
        for kind in out.get("data", {})
        if kind.startswith("image/")
        for alt in [out.metadata.get(kind, {}).get("alt", "").strip()]
        if len(alt) < MIN_ALT
    ]


def no_widget_state(notebook: NotebookNode) -> list[str]:
    """No saved widgets: they are large and differ at each run."""
    found = ["metadata.widgets: remove it"] if "widgets" in notebook.metadata else []
    return found + [
        f"cell {place}: holds a widget's view; remove it"
        for place, out in _outputs(notebook)
        if WIDGET_VIEW in out.get("data", {})
    ]


def small(notebook: NotebookNode) -> list[str]:
    """At most 2 MB on disk."""
    size = len(nbformat.writes(notebook).encode())
    return (
        [f"the notebook has {size / 1e6:.1f} MB; {MAX_BYTES / 1e6:.0f} MB are allowed"]
        if size > MAX_BYTES
        else []
    )


# Code --------------------------------------------------------------------------


def plain_python(notebook: NotebookNode) -> list[str]:
    """No magics and no shell lines, so that the rules below see all code."""
    found = []
    for place, cell in _code(notebook):
        try:
            ast.parse(cell.source)
        except SyntaxError as error:
            found.append(f"cell {place}: not plain Python, line {error.lineno}: {error.msg}")
    return found


def no_trailing_semicolon(notebook: NotebookNode) -> list[str]:
    """No ``;`` at a cell's end: nbval ignores it, so it hides an output in Lab only."""
    return [
        f"cell {place}: ends with ';'; write `_ = …`, or show the output"
        for place, cell in _code(notebook)
        if _ends_in_semicolon(cell.source)
    ]


def _ends_in_semicolon(source: str) -> bool:
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.DEDENT}
    try:
        tokens = [
            token.string
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type not in silent
        ]
    except (tokenize.TokenError, SyntaxError):
        return source.rstrip().endswith(";")
    return tokens[-1:] == [";"]


def imports_first(notebook: NotebookNode) -> list[str]:
    """The first code cell imports and seeds, and does nothing else."""
    place, cell = next(_code(notebook), (0, None))
    if cell is None:
        return ["there is no code cell"]
    return [
        f"cell {place}: {ast.unparse(statement)!r} is neither import nor seed; move it down"
        for statement in _statements(cell)
        if not _imports(statement) and not _seeds(statement)
    ]


def _imports(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _seeds(statement: ast.stmt) -> bool:
    value = getattr(statement, "value", None)
    return isinstance(value, ast.Call) and ast.unparse(value.func) in (
        "cu.seed_everything",
        "seed_everything",
    )


def no_idle_comparisons(notebook: NotebookNode) -> list[str]:
    """A comparison that stands alone checks nothing: ``assert`` it."""
    return [
        f"cell {place}: {ast.unparse(node.value)!r} checks nothing; write `assert` before it"
        for place, cell in _code(notebook)
        for statement in _statements(cell)
        for node in ast.walk(statement)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare)
    ]


# The shape of a chapter --------------------------------------------------------


def exercises_in_order(notebook: NotebookNode) -> list[str]:
    """Exercise, check, solution; exercise, check, solution; and so on."""
    order = [
        (place, tag)
        for place, cell in _code(notebook)
        for tag in tags(cell)
        if tag in EXERCISE_TAGS
    ]
    for turn, (place, tag) in enumerate(order):
        due = EXERCISE_TAGS[turn % 3]
        if tag != due:
            return [
                f"cell {place}: {tag!r} where {due!r} is due; the order is stub, check, solution"
            ]
    return (
        [f"the last exercise has no {EXERCISE_TAGS[len(order) % 3]} cell"] if len(order) % 3 else []
    )


def enough_exercises(notebook: NotebookNode) -> list[str]:
    """At least four exercises in a chapter."""
    count = sum("exercise" in tags(cell) for _, cell in _code(notebook))
    return (
        [f"{count} exercises; a chapter has {MIN_EXERCISES} or more"]
        if count < MIN_EXERCISES
        else []
    )


def has_quiz(notebook: NotebookNode) -> list[str]:
    """A quiz near the end."""
    asks = any(re.search(r"\bcu\.quiz\(", cell.source) for _, cell in _code(notebook))
    return [] if asks else ['no quiz; show it with cu.quiz("NN")']


def has_references(notebook: NotebookNode) -> list[str]:
    """The last text cell is the list of references."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return (
        []
        if texts and texts[-1].startswith("## References")
        else ["the last text cell does not begin with '## References'"]
    )


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
    no_trailing_semicolon,
    imports_first,
    no_idle_comparisons,
    exercises_in_order,
    has_quiz,
    has_references,
)
