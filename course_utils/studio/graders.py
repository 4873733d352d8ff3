"""Assignments for nbgrader and otter-grader: ``make handout FOR=nbgrader`` and ``make handout FOR=otter``.

Each notebook of the course becomes a sheet with its exercises and the code that they need, so that a submission is
graded in seconds. The sheet also holds the solutions, and the tool removes them from what students get. An exercise
has one point for each property of its check. Both tools document the format that they read:
https://nbgrader.readthedocs.io/en/stable/contributor_guide/metadata.html and
https://otter-grader.readthedocs.io/en/latest/otter_assign/notebook_format.html.
"""

import ast
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.kit.exercises import Exercise, cell_text, exercises
from course_utils.kit.needed import dependencies
from course_utils.studio import StudioError, written
from course_utils.studio.handout import template
from course_utils.studio.links import LINK
from course_utils.studio.manifest import Chapter, Manifest
from course_utils.studio.notebook_files import KERNEL, LANGUAGE, read_source, set_cell_ids

if TYPE_CHECKING:
    from nbformat import NotebookNode


def checked(notebook: "NotebookNode") -> list[Exercise]:
    """The exercises of a notebook that have a check.

    Raises:
        StudioError: an exercise lacks its stub, check or solution, or its check cell ends in another call.
    """
    cells = [e for e in exercises(notebook.cells) if e.stub or e.check or e.solution]
    for exercise in cells:
        if not exercise.is_whole:
            raise StudioError(
                f"{exercise.heading or 'an exercise'} needs three cells, tagged exercise, check and solution, "
                "and the check ends with cu.checks.name(function)."
            )
    return cells


def points(exercise: Exercise) -> int:
    """The points of an exercise, one for each property of its check."""
    from course_utils.kit.registry import checks  # slow to import

    return len(getattr(checks, exercise.name).properties)


# Sheets -----------------------------------------------------------------------------------------


def sheet(chapter: Chapter, tool: str) -> "NotebookNode | None":
    """A notebook with the exercises of a chapter and the code that they need.

    Args:
        chapter: which notebook of the course.
        tool: "nbgrader" or "otter".

    Returns:
        The notebook in the tool's format, or None if no exercise of the chapter has a check.

    Raises:
        StudioError: an exercise lacks its stub, check or solution.
    """
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    notebook = read_source(chapter.source)
    asked = checked(notebook)
    if not asked:
        return None
    text = (
        f"They belong to the chapter *{chapter.title}*: what a task calls *above* is shown there."
    )
    cells = [new_markdown_cell(f"# Exercises: {chapter.title}\n\n{text}")]
    statements = _statements(notebook)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    cells.append(new_code_cell(first.source))
    copied = {index for index, (cell, _) in enumerate(statements) if cell is first}
    for exercise in asked:
        inside = notebook.cells[exercise.place + 1 : exercise.end]
        texts = [f"## {exercise.heading}", f"*{exercise.effort}*", exercise.task]
        texts += [cell.source for cell in inside if cell.cell_type == "markdown"]
        cells.append(new_markdown_cell(LINK.sub(_without_link, "\n\n".join(texts))))
        if code := _needed(exercise, inside, statements, copied):
            cells.append(new_code_cell(code))
        cells += TOOLS[tool](exercise)
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE}
    return set_cell_ids(new_notebook(cells=cells, metadata=metadata))


def _without_link(link) -> str:
    return link[0] if link["target"].startswith("http") else link["text"]


def _statements(notebook: "NotebookNode") -> list[tuple["NotebookNode", ast.stmt]]:
    code = (cell for cell in notebook.cells if cell.cell_type == "code")
    return [(cell, statement) for cell in code for statement in ast.parse(cell.source).body]


def _needed(exercise: Exercise, inside: list, statements: list, copied: set[int]) -> str:
    """The code that an exercise's stub, solution and task need.

    Args:
        exercise: the exercise.
        inside: its cells, among them code of the task, such as a function with a bug.
        statements: the notebook's statements, each with its cell.
        copied: the indices of the statements that the sheet has already; those of this exercise are added.
    """
    own = [exercise.stub, exercise.check, exercise.solution]
    names = [
        statement.name
        for cell, statement in statements
        if cell in inside
        and cell not in own
        and isinstance(statement, ast.FunctionDef | ast.ClassDef)
    ]
    names += [exercise.function, f"{exercise.function}_solution"]
    last = max(i for i, (cell, _) in enumerate(statements) if cell is exercise.solution)
    needed = set(dependencies([statement for _, statement in statements[: last + 1]], names))
    here = {index for index, (cell, _) in enumerate(statements) if any(cell is c for c in own)}
    chosen = sorted(needed - here - copied)
    copied |= needed | here
    return "\n\n".join(dict.fromkeys(_lines(*statements[index]) for index in chosen))


def _lines(cell: "NotebookNode", statement: ast.stmt) -> str:
    decorators = getattr(statement, "decorator_list", [])
    first = min(node.lineno for node in (statement, *decorators))
    return "\n".join(cell.source.splitlines()[first - 1 : statement.end_lineno])


# What the tools read ----------------------------------------------------------------------------


def for_nbgrader(exercise: Exercise) -> Iterator["NotebookNode"]:
    """Three cells: the stub with its solution, the check for students, and a graded cell whose value is the points."""
    from nbformat.v4 import new_code_cell

    def cell(kind: str, source: str, total: int | None = None, **metadata) -> "NotebookNode":
        is_answer = kind == "answer"
        entry = {"schema_version": 3, "grade_id": f"{kind}-{exercise.name}", "cell_type": "code"}
        entry |= {"grade": total is not None, "solution": is_answer, "locked": not is_answer}
        entry |= {"task": False} | ({} if total is None else {"points": total})
        return new_code_cell(source, metadata={"nbgrader": entry} | metadata)

    mark = f"cu.checks.{exercise.name}.mark({exercise.function})"
    answer = f"### BEGIN SOLUTION\n{exercise.answer}\n### END SOLUTION"
    yield cell("answer", f"{cell_text(exercise.stub)}\n\n\n{answer}")
    yield cell("check", cell_text(exercise.check), tags=["check"])
    total = points(exercise)
    yield cell(
        "points",
        f"# {total} points: one for each property above. This cell is graded; please leave it as it is.\n"
        f"### BEGIN HIDDEN TESTS\nprint({mark})\n{mark}.points\n### END HIDDEN TESTS",
        total,
    )


def for_otter(exercise: Exercise) -> Iterator["NotebookNode"]:
    """A question for otter: the stub with its solution, the check for students, a hidden test for each property."""
    from nbformat.v4 import new_code_cell, new_raw_cell

    total = points(exercise)
    mark = f"cu.checks.{exercise.name}.mark({exercise.function})"
    answer = f"# BEGIN SOLUTION NO PROMPT\n{exercise.answer}\n# END SOLUTION"
    settings = f"name: {exercise.name}\npoints: {total}\ncheck_cell: false"
    yield new_raw_cell(f"# BEGIN QUESTION\n{settings}")
    yield new_raw_cell("# BEGIN SOLUTION")
    yield new_code_cell(f"{cell_text(exercise.stub)}\n\n\n{answer}")
    yield new_raw_cell("# END SOLUTION")
    yield new_code_cell(cell_text(exercise.check), metadata={"tags": ["otter_ignore"]})
    yield new_raw_cell("# BEGIN TESTS")
    for index in range(total):
        report = f"_ if _.failed_at == {index} else 'see above'"  # once, at the first that fails
        yield new_code_cell(f"# HIDDEN\nassert (_ := {mark}).holds({index}), {report}")
    yield new_raw_cell("# END TESTS")
    yield new_raw_cell("# END QUESTION")


TOOLS: dict[str, Callable[[Exercise], Iterator["NotebookNode"]]] = {
    "nbgrader": for_nbgrader,
    "otter": for_otter,
}


# Folders ----------------------------------------------------------------------------------------


def build(course: Manifest, to: Path, tool: str) -> list[str]:
    """Write the sheets of all notebooks, in a folder for each chapter, and a README.md with the tool's commands.

    Args:
        course: the notebooks.
        to: the folder; it is new, empty, or written by this command earlier, whose own files are then replaced.
        tool: "nbgrader" or "otter".

    Returns:
        What is in the folder and not of this command; it is as it was.

    Raises:
        StudioError: the folder holds something else, or an exercise lacks its stub, check or solution.
    """
    if any((to / name).exists() for name in ("submitted", "gradebook.db")):
        raise StudioError(f"{to} holds submissions or marks; name another folder with --to.")
    written.check(to)
    with tempfile.TemporaryDirectory() as new:
        _write(course, Path(new), tool)
        return written.replace(Path(new), to)


def _write(course: Manifest, to: Path, tool: str) -> None:
    import nbformat

    sheets = {c: notebook for c in course.notebooks if (notebook := sheet(c, tool))}
    for chapter, notebook in sheets.items():
        if tool == "otter":
            config = template("otter_config.txt", name=f"{chapter.notebook}_exercises")
            notebook.cells.insert(0, nbformat.v4.new_raw_cell(config))
        folder = to / ("source" if tool == "nbgrader" else "") / chapter.core
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, folder / f"{chapter.notebook}_exercises.ipynb")
    name = next((c.notebook for c in sheets if c.kind == "chapter"), "NAME")
    text = template(f"{tool}.md", name=name, sheet=f"{name}_exercises")
    (to / "README.md").write_text(text, encoding="utf-8")
    if tool == "nbgrader":
        config = template("nbgrader_config.txt", course=course.title.replace('"', ""))
        (to / "nbgrader_config.py").write_text(config, encoding="utf-8")
