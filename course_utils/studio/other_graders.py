"""Notebooks for other graders: what `nbgrader` and `otter assign` read, one folder for each chapter.

They hold the solutions, so they are the instructor's. Each tool makes the students' version of them: its answer cells
are the course's stubs. An exercise has the points of its check, one for each property, and gets all or none: a hidden
test raises where the check does not pass. Formats: https://nbgrader.readthedocs.io/en/stable/contributor_guide/metadata.html
and https://otter-grader.readthedocs.io/en/latest/otter_assign/notebook_format.html.
"""

import ast
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from course_utils.studio import StudioError
from course_utils.studio.keys import untold
from course_utils.studio.manifest import Chapter, Manifest
from course_utils.studio.pairs import bare, read_source

if TYPE_CHECKING:
    from nbformat import NotebookNode

HEAD = "# The course for"
NBGRADER_CONFIG = """\
import os

os.environ["COURSE_STRICT"] = "1"  # a submission's functions are graded, and used nowhere else

c = get_config()
c.CourseDirectory.course_id = "{course}"
c.ClearSolutions.code_stub = {{"python": "# Your answer: change what stands above."}}
c.ExecutePreprocessor.timeout = 900
"""
OTTER_CONFIG = """\
# ASSIGNMENT CONFIG
name: {name}
init_cell: false
export_cell: false
generate:
  pdf: false
  show_hidden: true
"""
STEPS = {
    "nbgrader": """\
    nbgrader generate_assignment {name}
    nbgrader autograde {name}
    nbgrader export

The first makes `release/` from `source/`: what students get. The second reads `submitted/<student>/{name}/` and writes
`autograded/`; the third writes the marks into `grades.csv`.
""",
    "otter": """\
    cd {name}
    otter assign {name}.ipynb dist
    otter run -a dist/autograder/*.zip submission.ipynb

The first makes `dist/student`, what students get, and the grader; the second grades one submission here. `otter grade`
grades many, each in a container, in which the course has to be installed, too.
""",
}


class GraderError(StudioError):
    """A folder that is taken, or an exercise that is not whole."""


class Exercise(NamedTuple):
    """The cells of an exercise, and the names of its check and of the function that it asks for."""

    stub: "NotebookNode"
    check: "NotebookNode"
    solution: "NotebookNode"
    name: str
    asked: str

    @property
    def answer(self) -> str:
        """The solution, under the name that the stub has."""
        tree = ast.parse(self.solution.source)
        lines = self.solution.source.splitlines()[: tree.body[-1].lineno - 1]  # but for the check
        return "\n".join(lines).strip() + f"\n\n\n{self.asked} = {self.asked}_solution"

    @property
    def points(self) -> int:
        """One for each property of the check."""
        from course_utils.kit.collection import checks  # slow to import

        return len(getattr(checks, self.name).properties)

    @property
    def test(self) -> str:
        """What raises where the check does not pass."""
        return f"assert cu.checks.{self.name}({self.asked}).passed, cu.checks.{self.name}({self.asked})"


def exercises(notebook: "NotebookNode") -> list[Exercise]:
    """The exercises of a notebook that have a check.

    Raises:
        GraderError: a stub, a check or a solution is missing, or a check is called in another way.
    """
    tagged = {
        tag: [c for c in notebook.cells if tag in c.metadata.get("tags", [])]
        for tag in ("exercise", "check", "solution")
    }
    if len({*map(len, tagged.values())}) > 1:
        counts = ", ".join(f"{len(cells)} tagged {tag!r}" for tag, cells in tagged.items())
        raise GraderError(f"an exercise lacks a cell: {counts}")
    return [Exercise(*cells, *_called(cells[1])) for cells in zip(*tagged.values(), strict=True)]


def _called(cell: "NotebookNode") -> tuple[str, str]:
    """The names of the check and of the function in `cu.checks.name(function)`."""
    match ast.parse(cell.source).body[-1]:
        case ast.Expr(
            ast.Call(ast.Attribute(ast.Attribute(_, "checks"), name), [ast.Name(asked)], [])
        ):
            return name, asked
    raise GraderError(f"{cell.source!r}: a check cell ends with cu.checks.name(function)")


def build(course: Manifest, to: Path, grader: str) -> None:
    """Write each chapter that has an exercise, with its further page, as this grader wants it.

    Args:
        course: the notebooks.
        to: a folder that is new, empty or an earlier one of this command, which is replaced.
        grader: "nbgrader" or "otter".

    Raises:
        GraderError: the folder holds something else, or an exercise is not whole.
    """
    readme = to / "README.md"
    if readme.is_file() and readme.read_text(encoding="utf-8").startswith(HEAD):
        if grader == "nbgrader" and any(
            (to / name).exists() for name in ("submitted", "gradebook.db")
        ):
            raise GraderError(f"{to} holds submissions or marks; name another folder with --to.")
        shutil.rmtree(to)
    elif to.exists() and any(to.iterdir()):
        raise GraderError(f"{to} holds something else; name a new folder with --to, or empty it.")
    folder = to / "source" if grader == "nbgrader" else to
    made = [_write(course, page, folder, grader) for page in course.notebooks]
    name = next(filter(None, made), "02_kernel_regression")
    to.mkdir(parents=True, exist_ok=True)
    told = f"{HEAD} {grader}, with its solutions\n\nIn this folder, in an environment with {grader}"
    text = f"{told} and the course:\n\n{STEPS[grader].format(name=name)}"
    readme.write_text(text, encoding="utf-8")
    if grader == "nbgrader":
        config = NBGRADER_CONFIG.format(course=course.title.replace('"', ""))
        (to / "nbgrader_config.py").write_text(config, encoding="utf-8")


def _write(course: Manifest, page: Chapter, folder: Path, grader: str) -> str:
    """The folder of a page that has an exercise; empty for one without."""
    import nbformat

    from course_utils.studio.choice import fit

    notebook = bare(fit(read_source(page.source), course, page))
    try:
        found = exercises(notebook)
    except GraderError as error:
        raise GraderError(f"{page.notebook}: {error}") from None
    if not found:
        return ""
    name = page.notebook.removesuffix("_further")
    make = {"nbgrader": _nbgrader, "otter": _otter}[grader]
    notebook.cells = list(_cells(notebook, found, make))
    if grader == "otter":
        config = nbformat.v4.new_raw_cell(OTTER_CONFIG.format(name=page.notebook))
        notebook.cells.insert(0, config)
    (folder / name).mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / name / f"{page.notebook}.ipynb")
    return name


def _cells(
    notebook: "NotebookNode",
    found: list[Exercise],
    make: Callable[[Exercise, "NotebookNode"], Iterator["NotebookNode"]],
) -> Iterator["NotebookNode"]:
    """All cells, those of the exercises as the grader wants them; their solutions stand in the stubs."""
    of = {id(cell): exercise for exercise in found for cell in exercise[:3]}
    for cell in notebook.cells:
        if exercise := of.get(id(cell)):
            yield from make(exercise, cell)
        else:
            if cell.cell_type == "markdown":
                cell.source = untold(cell.source)
            yield cell


def _nbgrader(exercise: Exercise, cell: "NotebookNode") -> Iterator["NotebookNode"]:
    if cell is exercise.solution:
        return
    answers = cell is exercise.stub
    cell.metadata["nbgrader"] = {
        "schema_version": 3,
        "grade_id": f"{'answer' if answers else 'check'}-{exercise.name}",
        "cell_type": "code",
        "grade": not answers,
        "solution": answers,
        "locked": not answers,
        "task": False,
    }
    if answers:
        cell.source += f"\n\n\n### BEGIN SOLUTION\n{exercise.answer}\n### END SOLUTION"
    else:
        cell.metadata["nbgrader"]["points"] = exercise.points
        cell.source += f"\n### BEGIN HIDDEN TESTS\n{exercise.test}\n### END HIDDEN TESTS"
    yield cell


def _otter(exercise: Exercise, cell: "NotebookNode") -> Iterator["NotebookNode"]:
    from nbformat.v4 import new_code_cell, new_raw_cell

    if cell is exercise.stub:
        settings = f"name: {exercise.name}\npoints: {exercise.points}\ncheck_cell: false"
        yield new_raw_cell(f"# BEGIN QUESTION\n{settings}")
        yield new_raw_cell("# BEGIN SOLUTION")
        cell.source += f"\n\n\n# BEGIN SOLUTION NO PROMPT\n{exercise.answer}\n# END SOLUTION"
        yield cell
        yield new_raw_cell("# END SOLUTION")
    elif cell is exercise.check:
        yield cell
        yield new_raw_cell("# BEGIN TESTS")
        yield new_code_cell(f"# HIDDEN\n{exercise.test}")
        yield new_raw_cell("# END TESTS")
        yield new_raw_cell("# END QUESTION")
