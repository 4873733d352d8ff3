"""The rules of a committed notebook. Each is a function that takes a notebook's content and yields complaints.

A complaint begins with the cell's place, counted from 0, and says what would be right. How long a chapter is and what
stands in it is its author's.
"""

import ast
import html
import re
from collections.abc import Callable, Iterator

import nbformat
from nbformat import NotebookNode

from course_utils.kit.exercises import KINDS
from course_utils.studio.content import CodeCell, Content, is_course_call

MAX_BYTES = 2_000_000
MIN_ALT = 20  # characters
MAX_FIRST = 8  # lines of imports above a page's first screen
FOLDED = {"hide-input", "guard", "solution"}
HIDDEN = {"hide-output", "solution"}
ORDER = ("exercise", "check", "solution")

Rule = Callable[[Content], Iterator[str]]


def complaints(content: Content) -> list[str]:
    """The complaints of all rules about an executed notebook."""
    return [text for rule in RULES for text in rule(content)]


# Outputs ----------------------------------------------------------------------


def _outputs(content: Content) -> Iterator[tuple[int, NotebookNode]]:
    return ((cell.place, output) for cell in content.code for output in cell.node.outputs)


def executed(content: Content) -> Iterator[str]:
    """Each code cell has run: nbval never compares one that has not."""
    for cell in content.code:
        if cell.node.execution_count is None:
            yield f"cell {cell.place}: never executed; run the whole notebook"


def no_errors(content: Content) -> Iterator[str]:
    """No exception, no warning, and no trace of a progress bar."""
    for place, output in _outputs(content):
        if output.output_type == "error":
            yield f"cell {place}: ends in {output.ename}; fix it"
        if output.get("name") == "stderr":
            start = output.text.strip()[:60]
            yield f"cell {place}: writes {start!r} to stderr; remove the cause"


def alt_texts(content: Content) -> Iterator[str]:
    """Each picture says in words what is seen, in HTML or as an image output."""
    for place, output in _outputs(content):
        data = output.get("data", {})
        images = [kind for kind in data if kind.startswith("image/")]
        alts = [output.metadata.get(kind, {}).get("alt", "") for kind in images]
        for tag in re.findall(r"<img\b[^>]*>", data.get("text/html", "")):
            attribute = re.search(r'\balt="([^"]*)"', tag)
            alts.append(html.unescape(attribute[1]) if attribute else "")
        for alt in alts:
            if len(alt.strip()) < MIN_ALT:
                yield f"cell {place}: the alt text {alt.strip()!r} of a picture; say what is seen"


def small(content: Content) -> Iterator[str]:
    """At most 2 MB on disk."""
    size = len(nbformat.writes(content.notebook).encode())
    if size > MAX_BYTES:
        yield f"{size / 1e6:.1f} MB; {MAX_BYTES / 1e6:.0f} MB are allowed: draw less, or smaller"


# Code and exercises -----------------------------------------------------------


def imports_first(content: Content) -> Iterator[str]:
    """The first code cell imports and seeds, and does nothing else. A long one is folded above the first screen."""
    for cell in content.code[:1]:
        lines = sum(map(bool, cell.source.splitlines()))
        if lines > MAX_FIRST and not cell.jupyter.get("source_hidden"):
            yield f'cell {cell.place}: {lines} lines before anything is seen; add jupyter={{"source_hidden": true}}'
        for statement in ast.parse(cell.source).body:
            code = ast.unparse(statement)
            imports = isinstance(statement, ast.Import | ast.ImportFrom)
            if not imports and not re.fullmatch(r"(\w+ = )?cu\.seed_everything\(\d+\)", code):
                yield f"cell {cell.place}: {code!r} is neither import nor seed; move it down"


def folded_in_lab(content: Content) -> Iterator[str]:
    """What the book folds is folded in Lab: code of pictures, guards and the course's calls, and what was predicted."""
    for cell in content.code:
        if (cell.tags & FOLDED or is_course_call(cell.source)) and not cell.jupyter.get(
            "source_hidden"
        ):
            yield f'cell {cell.place}: folded in the book only; add jupyter={{"source_hidden": true}}'
        if cell.tags & HIDDEN and not cell.jupyter.get("outputs_hidden"):
            yield f'cell {cell.place}: its result is seen in Lab; add "outputs_hidden": true'


def exercises_whole(content: Content) -> Iterator[str]:
    """Each exercise has its number, kind and minutes, and the cells of its kind."""
    for count, exercise in enumerate(content.exercises, 1):
        where = f"cell {exercise.place}: {exercise.heading!r}"
        if exercise.number != count:
            yield f"{where} is number {count} of the notebook; count from 1"
        if exercise.kind not in KINDS or not exercise.minutes:
            kinds = ", ".join(KINDS)
            yield f"{where} needs a first line such as '*build · 8 minutes*', of {kinds}"
            continue
        tags = [_role(cell) for cell in content.code if cell.exercise is exercise and _role(cell)]
        expected = [] if exercise.kind == "open" else list(ORDER)
        if tags != expected:
            yield f"{where} has the cells {tags}; {exercise.kind} has {expected or 'no such cells'}"
    for cell in content.code:
        if _role(cell) and not cell.exercise:
            yield f"cell {cell.place}: an exercise's cell under no '### Exercise 1 · Title'; add it"


def _role(cell: CodeCell) -> str:
    return next((tag for tag in ORDER if tag in cell.tags), "")


def solutions_apart(content: Content) -> Iterator[str]:
    """Only solutions use a name that ends in _solution: a handout has none."""
    for cell in content.code:
        names = re.findall(r"\b\w+_solution\b", cell.source) if _role(cell) != "solution" else ()
        for name in names:
            remedy = "go on with cu.choose(mine, cu.Ours)"
            yield f"cell {cell.place}: {name!r} outside a solution; {remedy}"


RULES: tuple[Rule, ...] = (
    executed,
    no_errors,
    alt_texts,
    small,
    imports_first,
    folded_in_lab,
    exercises_whole,
    solutions_apart,
)
