"""The form of a chapter: each rule takes a page and yields complaints.

The limits on its size stand in `measures`; here is what stands where, and what is bound where. Beside
`rules`, which hold for every notebook.
"""

import ast
import re
from collections.abc import Callable, Iterator

from course_utils.kit.exercises import KINDS
from course_utils.kit.guard import MAX_CONDITIONS
from course_utils.kit.language import pattern
from course_utils.studio import tries
from course_utils.studio.measures import measures
from course_utils.studio.page import Cell, Page

ORDER = ("exercise", "check", "solution")
HANDLES = {"fig", "ax", "axes", "_"}  # names that any cell may bind again
DRAWS = r"\bcu\.(subplots|show_\w+|heatmap|Drawing|\w*table\w*)\b|DataFrame|\.style\b|\bax(es)?\b|\bfig\b"

Rule = Callable[[Page], Iterator[str]]


def complaints(
    page: Page, *, full: bool = False, links: tuple[str, ...] = (), sizes: bool = True
) -> list[str]:
    """All that a page breaks.

    Args:
        page: executed, or read from its source.
        full: whether the limits are those of a chapter that has not been cut yet.
        links: the stems to which its last texts have to link.
        sizes: also the limits of `measures`.
    """
    limits = measures(page, full=full) if sizes else []
    return [
        *(measure.complaint for measure in limits if measure.broken),
        *(text for rule in RULES for text in rule(page)),
        *leads_on(page, links),
    ]


# Guards and folding -----------------------------------------------------------


def guards_in_place(page: Page) -> Iterator[str]:
    """A guard is tagged, has one to six conditions, and is the last code cell of its section."""
    for cell in page.code:
        try:
            guards = cell.guards
        except ValueError as error:
            yield f"cell {cell.place}: {error}"
            continue
        if bool(guards) != ("guard" in cell.tags):
            remedy = "remove the tag" if not guards else "give it a cell of its own, tagged guard"
            yield f"cell {cell.place}: the tag and cu.guard go together; {remedy}"
        for guard in guards:
            if not 1 <= guard.conditions <= MAX_CONDITIONS:
                limit = f"1 to {MAX_CONDITIONS}; keep those whose values are displayed above"
                yield f"cell {cell.place}: {guard.conditions} conditions in a guard, not {limit}"
        if guards and (after := [one.place for one in page.code if _goes_on(cell, one)]):
            yield f"cell {cell.place}: cell {after[0]} of its section comes after; move the guard down"


def _goes_on(guard: Cell, other: Cell) -> bool:
    """Whether a later cell of the guard's section teaches on: questions and exercises may follow."""
    if other.place <= guard.place or other.section != guard.section or other.exercise:
        return False
    return not (other.calls("quiz", "recall", "progress") or other.tags & set(ORDER))


def folded_alike(page: Page) -> Iterator[str]:
    """What is folded in the book is folded in Lab, and the other way round; what only calls the course, in both."""
    for cell in page.code:
        if cell.plumbing and not cell.jupyter.get("source_hidden", False):
            remedy = 'add jupyter={"source_hidden": true}; format does so for calls of the course'
            yield f"cell {cell.place}: folded in the book only; {remedy}"
        if not cell.plumbing and cell.jupyter.get("source_hidden", False):
            remedy = "add the tag hide-input, or remove source_hidden"
            yield f"cell {cell.place}: folded in Lab only; {remedy}"
        hides = bool(cell.tags & {"solution", "hide-output"})
        if hides != cell.jupyter.get("outputs_hidden", False):
            remedy = 'a solution or hide-output has jupyter={…, "outputs_hidden": true}, no other'
            yield f"cell {cell.place}: outputs_hidden and these tags go together; {remedy}"


def only_plumbing_folded(page: Page) -> Iterator[str]:
    """Beside guards and solutions, only plots, tables and predictions are folded; these hold the answer."""
    for cell in page.code:
        if "hide-input" not in cell.tags or cell.tags & {"guard", "solution"}:
            continue
        defines_class = any(isinstance(node, ast.ClassDef) for node in cell.tree.body)
        drawn = re.search(DRAWS, cell.source) or cell.shows_picture or cell.calls("predict")
        if defines_class or not drawn:
            yield f"cell {cell.place}: folded, and neither plot nor table; show its code"


# Exercises --------------------------------------------------------------------


def exercises_whole(page: Page) -> Iterator[str]:
    """Each exercise has its number, kind and minutes, and the cells of its kind."""
    for count, exercise in enumerate(page.exercises, 1):
        where = f"cell {exercise.place}: {exercise.heading!r}"
        if exercise.number != count:
            yield f"{where} is number {count} of the notebook; count from 1"
        if exercise.kind not in KINDS or not exercise.minutes:
            kinds = ", ".join(KINDS)
            yield f"{where} needs a first line such as '*build · 8 minutes*', of {kinds}"
            continue
        cells = [one for one in page.code if one.exercise is exercise and one.tags & set(ORDER)]
        found = [next(tag for tag in ORDER if tag in one.tags) for one in cells]
        wanted = [] if exercise.kind == "open" else list(ORDER)
        if found != wanted:
            said = ", ".join(wanted) or "no such cells"
            yield f"{where} has the cells {found}; {exercise.kind} has {said}"
        elif wanted and exercise.kind not in cells[0].tags:
            yield f"cell {cells[0].place}: add the tag {exercise.kind} to the tag exercise"
    tagged = [one.place for one in page.code if one.tags & set(ORDER) and not one.exercise]
    for place in tagged:
        yield f"cell {place}: an exercise's cell under no '### Exercise 1 · Title'; add the heading"


def solutions_apart(page: Page) -> Iterator[str]:
    """A solution binds names that end in _solution, and only solutions use these."""
    for cell in page.code:
        if "solution" in cell.tags:
            for name in sorted({*bound(cell), *loop_variables(cell)} - HANDLES):
                if not name.endswith("_solution"):
                    yield f"cell {cell.place}: a solution binds {name!r}; call it {name}_solution"
        else:
            used = {node.id for node in ast.walk(cell.tree) if isinstance(node, ast.Name)}
            for name in sorted(used | set(bound(cell))):
                if name.endswith("_solution"):
                    remedy = "a handout has no solutions; go on with cu.choose(mine, cu.Ours)"
                    yield f"cell {cell.place}: {name!r} outside a solution; {remedy}"


# Sections, names, numbers -----------------------------------------------------


def bound_once(page: Page) -> Iterator[str]:
    """A name keeps its meaning: one cell binds it, so that an earlier cell can be run again.

    Aside stand what exercises alone bind, and what folded cells alone bind: handles of figures and tables.
    """
    first: dict[str, Cell] = {}
    for cell in page.code:
        for name in sorted(set(bound(cell)) - HANDLES):
            before = first.setdefault(name, cell)
            aside = before.tags & cell.tags & {"exercise", "hide-input"}
            if before is not cell and not aside:
                yield f"cell {cell.place}: binds {name!r}, as cell {before.place} does; rename one"
    for cell in page.code:
        for name in sorted(set(loop_variables(cell)) - HANDLES):
            before = first.get(name, cell)
            if before is not cell and not before.tags & cell.tags & {"hide-input"}:
                binds = f"which cell {before.place} binds"
                yield f"cell {cell.place}: a loop changes {name!r}, {binds}; rename its variable"


def numbers_can_be_tried(page: Page) -> Iterator[str]:
    """Each mark ``# try`` can be read."""
    for cell in page.code:
        for wrong in tries.find(cell.source)[1]:
            yield f"cell {cell.place}: {wrong}"


def leads_on(page: Page, links: tuple[str, ...]) -> Iterator[str]:
    """One of the last texts links to the next chapter, and to the further page."""
    texts = [cell.source for cell in page.notebook.cells if cell.cell_type == "markdown"]
    texts = [text for text in texts if not re.match(f"## {pattern('References')}", text)]
    for stem in links:
        if not any(f"]({stem}.ipynb" in text for text in texts[-3:]):
            yield f"none of the last three texts before the references links to {stem}.ipynb; add it"


# What a cell binds ------------------------------------------------------------


def bound(cell: Cell) -> Iterator[str]:
    """Names that a cell binds at the top level; loop variables apart."""
    return _bound(cell, loops=False)


def loop_variables(cell: Cell) -> Iterator[str]:
    """The variables of its loops at the top level."""
    return _bound(cell, loops=True)


def _bound(cell: Cell, *, loops: bool) -> Iterator[str]:
    todo: list[ast.AST] = list(cell.tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not loops:
                yield node.name
            continue
        if isinstance(
            node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
        ):
            continue  # their names are their own
        if isinstance(node, ast.For):
            if loops:
                yield from (n.id for n in ast.walk(node.target) if isinstance(n, ast.Name))
            todo += [node.iter, *node.body, *node.orelse]
            continue
        if not loops:
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
        todo += ast.iter_child_nodes(node)


RULES: tuple[Rule, ...] = (
    guards_in_place,
    folded_alike,
    only_plumbing_folded,
    exercises_whole,
    solutions_apart,
    bound_once,
    numbers_can_be_tried,
)
