"""``make handout FOR=nbgrader`` and ``FOR=otter``: sheets of exercises from which these tools make assignments.

A sheet holds a notebook's exercises and, of its other code, only what they need, so a submission is graded in seconds.
It also holds the solutions, which each tool takes out for students. An exercise has one point for each property of its
check, and those that hold count. The formats are described at
https://nbgrader.readthedocs.io/en/stable/contributor_guide/metadata.html and
https://otter-grader.readthedocs.io/en/latest/otter_assign/notebook_format.html.
"""

import ast
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.kit.digest import behind
from course_utils.kit.exercises import Exercise, exercises, text_of
from course_utils.studio import StudioError
from course_utils.studio.links import LINK
from course_utils.studio.manifest import Chapter, Manifest
from course_utils.studio.pairs import KERNEL, LANGUAGE, name_cells, read_source

if TYPE_CHECKING:
    from nbformat import NotebookNode

SECONDS = 60  # for a cell
HEAD = "# Exercises for"
README = """\
{head} {tool}, with their solutions

Keep this folder to yourself, because it holds the solutions. Every sheet has the exercises of one notebook and the code
that they need. The commands below run in an environment that has the course; if {tool} is missing there, add it with
`pip install {package}`.

{steps}
## What you will see

- An exercise has one point for each property of its check, and a student gets those that hold. An untouched stub gets
  none.
- The check runs once, without the student's warnings and prints, which cost nothing. It stops a function that computes
  for more than 10 seconds.
{notes}- Answers and checks run with your rights. If that worries you, grade in a container without a network.
- The solutions of the course are public, so the points tell you how far somebody got, not who worked it out.
"""
STEPS = {
    "nbgrader": """\
    nbgrader generate_assignment {name}
    nbgrader autograde {name}
    nbgrader generate_feedback {name}
    nbgrader export

The first command makes `release/` from `source/`: hand that out. The second one reads the submissions, which you put
into `submitted/<student>/{name}/`, and writes `autograded/`. The third writes a page for each student into
`feedback/`, and the last one all marks into `grades.csv`. nbgrader calls other programs of its environment, so activate
that first (`source .venv/bin/activate`).
""",
    "otter": """\
    cd {name}
    otter assign {sheet}.ipynb dist
    COURSE_STRICT=1 otter run -a dist/autograder/*.zip submission.ipynb

The second command makes `dist/student`, which you hand out, and `dist/autograder`. The third one grades one submission
and writes `results.json`; with `COURSE_STRICT=1` no student's answer is kept among your own. `otter grade` grades many
submissions, each in a container of its own, for which the course has to be in the container's image.
""",
}
NOTES = {
    "nbgrader": f"""\
- A cell may take {SECONDS} seconds, so a submission that waits for ever costs you a minute.
- nbgrader skips a submission that it has graded before: add `--force` after a student hands in again, and
  `--student NAME` for one student only.
- It finds answers by the metadata of their cells. An answer that was pasted into a new notebook gets 0 without a word,
  and a copied answer cell stops the command (delete the copy). Ask students to write into the cells that are there.
""",
    "otter": """\
- There is no limit of time for a cell of the student's own. `otter grade --timeout 300` ends a whole submission.
""",
}
NBGRADER_CONFIG = f"""\
import os

os.environ["COURSE_STRICT"] = "1"  # nothing of a submission is kept among your own answers

c = get_config()
c.CourseDirectory.course_id = "{{course}}"
c.ClearSolutions.code_stub = {{{{"python": "# Your answer: change what stands above."}}}}
c.Execute.timeout = {SECONDS}  # for a cell
c.Execute.skip_cells_with_tag = "check"  # the graded cell below each check runs it
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


class GraderError(StudioError):
    """A folder that is taken, or an exercise that is not whole."""


def checked(notebook: "NotebookNode") -> list[Exercise]:
    """The exercises of a notebook that have a check.

    Raises:
        GraderError: a stub, a check or a solution is missing, or a check is called in another way.
    """
    found = [e for e in exercises(notebook.cells) if (e.stub, e.check, e.solution) != (None,) * 3]
    for one in found:
        if not one.is_whole:
            raise GraderError(
                f"{one.heading or 'an exercise'} needs three cells, tagged exercise, check and solution, "
                "and the check ends with cu.checks.name(function)."
            )
    return found


def points(exercise: Exercise) -> int:
    """One for each property of the check."""
    from course_utils.kit.registry import checks  # slow to import

    return len(getattr(checks, exercise.name).properties)


# Sheets -----------------------------------------------------------------------------------------


Make = Callable[[Exercise], Iterator["NotebookNode"]]
"""The cells of an exercise for one tool, from its stub on."""


def sheet(notebook: "NotebookNode", title: str, make: Make) -> "NotebookNode | None":
    """The sheet of a notebook; None if it has no exercise with a check.

    Args:
        notebook: as its source has it.
        title: of the chapter.
        make: the cells that a tool reads.

    Raises:
        GraderError: an exercise is not whole.
    """
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    found = checked(notebook)
    if not found:
        return None
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    told = f"They belong to the chapter *{title}*: what a task calls *above* is shown there."
    cells = [new_markdown_cell(f"# Exercises: {title}\n\n{told}"), new_code_cell(first.source)]
    code = _Code(notebook.cells, first)
    for exercise in found:
        before, after = code.needed(exercise)
        cells += [new_code_cell(before)] if before else []
        inside = notebook.cells[exercise.place + 1 : exercise.end]
        texts = [f"## {exercise.heading}", f"*{exercise.effort}*", exercise.task]
        texts += [cell.source for cell in inside if cell.cell_type == "markdown"]
        text = LINK.sub(_without_link, "\n\n".join(texts))
        cells.append(new_markdown_cell(text))
        cells += [new_code_cell(after)] if after else []
        cells += make(exercise)
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE}
    return name_cells(new_notebook(cells=cells, metadata=metadata))


def _without_link(link) -> str:
    return link[0] if link["target"].startswith("http") else link["text"]


class _Code:
    """The top-level statements of a notebook, and which of them stand in the sheet already.

    Args:
        cells: of the notebook.
        first: its first code cell, which stands in the sheet.
    """

    def __init__(self, cells: list["NotebookNode"], first: "NotebookNode"):
        self.cells = cells
        self.statements = [
            (place, statement)
            for place, cell in enumerate(cells)
            if cell.cell_type == "code"
            for statement in ast.parse(cell.source).body
        ]
        self.there = {n for n, (place, _) in enumerate(self.statements) if cells[place] is first}

    def needed(self, exercise: Exercise) -> tuple[str, str]:
        """What stub and solution need and the sheet lacks: the code before the task, and the code that it shows."""
        own = {id(cell) for cell in (exercise.stub, exercise.check, exercise.solution)}
        here = {n for n, (place, _) in enumerate(self.statements) if id(self.cells[place]) in own}
        shown = {
            n
            for n, (place, statement) in enumerate(self.statements)
            if exercise.place < place < exercise.end
            and n not in here
            and isinstance(statement, ast.FunctionDef | ast.ClassDef)
        }
        names = [self.statements[n][1].name for n in sorted(shown)]
        names += [exercise.function, f"{exercise.function}_solution"]
        until = [one for place, one in self.statements if place <= exercise.end]
        chosen = sorted(set(behind(until, names)) - here - self.there)
        self.there |= {*chosen, *here}
        return (
            self._text([n for n in chosen if n not in shown]),
            self._text([n for n in chosen if n in shown]),
        )

    def _text(self, chosen: list[int]) -> str:
        return "\n\n".join(dict.fromkeys(map(self._lines, chosen)))

    def _lines(self, n: int) -> str:
        place, statement = self.statements[n]
        first = min(one.lineno for one in (statement, *getattr(statement, "decorator_list", ())))
        return "\n".join(self.cells[place].source.splitlines()[first - 1 : statement.end_lineno])


# What the tools read ----------------------------------------------------------------------------


def for_nbgrader(exercise: Exercise) -> Iterator["NotebookNode"]:
    """Stub with the solution, the check that students see, and a graded cell whose value is the points."""
    from nbformat.v4 import new_code_cell

    def cell(kind: str, source: str, points: int | None = None, **others) -> "NotebookNode":
        answers = kind == "answer"
        told = {
            "schema_version": 3,
            "grade_id": f"{kind}-{exercise.name}",
            "cell_type": "code",
            "grade": points is not None,
            "solution": answers,
            "locked": not answers,
            "task": False,
        } | ({} if points is None else {"points": points})
        return new_code_cell(source, metadata={"nbgrader": told} | others)

    mark = f"cu.checks.{exercise.name}.mark({exercise.function})"
    answer = f"### BEGIN SOLUTION\n{exercise.answer}\n### END SOLUTION"
    yield cell("answer", f"{text_of(exercise.stub)}\n\n\n{answer}")
    yield cell("check", text_of(exercise.check), tags=["check"])
    total = points(exercise)
    yield cell(
        "points",
        f"# {total} points: one for each property above. This cell is graded; please leave it as it is.\n"
        f"### BEGIN HIDDEN TESTS\nprint({mark})\n{mark}.points\n### END HIDDEN TESTS",
        total,
    )


def for_otter(exercise: Exercise) -> Iterator["NotebookNode"]:
    """A question: stub with the solution, the check that only students run, and a hidden test for each property."""
    from nbformat.v4 import new_code_cell, new_raw_cell

    total = points(exercise)
    settings = f"name: {exercise.name}\npoints: {total}\ncheck_cell: false"
    mark = f"cu.checks.{exercise.name}.mark({exercise.function})"
    answer = f"# BEGIN SOLUTION NO PROMPT\n{exercise.answer}\n# END SOLUTION"
    yield new_raw_cell(f"# BEGIN QUESTION\n{settings}")
    yield new_raw_cell("# BEGIN SOLUTION")
    yield new_code_cell(f"{text_of(exercise.stub)}\n\n\n{answer}")
    yield new_raw_cell("# END SOLUTION")
    yield new_code_cell(text_of(exercise.check), metadata={"tags": ["otter_ignore"]})
    yield new_raw_cell("# BEGIN TESTS")
    for place in range(total):
        yield new_code_cell(f"# HIDDEN\nassert {mark}.holds({place}), {mark}")
    yield new_raw_cell("# END TESTS")
    yield new_raw_cell("# END QUESTION")


TOOLS: dict[str, Make] = {"nbgrader": for_nbgrader, "otter": for_otter}


# Folders ----------------------------------------------------------------------------------------


def build(course: Manifest, to: Path, tool: str) -> None:
    """Write a folder for each chapter with exercises: a sheet, and one more for its further page.

    Args:
        course: the notebooks.
        to: a folder that is new, empty or an earlier one of this command, which is replaced.
        tool: "nbgrader" or "otter".

    Raises:
        GraderError: the folder holds something else, or an exercise is not whole.
    """
    _make_room(to, tool)
    folder = to / "source" if tool == "nbgrader" else to
    made = [names for page in course.notebooks if (names := _write(page, folder, tool))]
    to.mkdir(parents=True, exist_ok=True)
    name, file = next((one for one in made if one[1] == f"{one[0]}_exercises"), ("NAME", "NAME"))
    package = {"otter": "otter-grader"}.get(tool, tool)
    text = README.format(
        head=HEAD, tool=tool, package=package, notes=NOTES[tool],
        steps=STEPS[tool].format(name=name, sheet=file),
    )  # fmt: skip
    (to / "README.md").write_text(text, encoding="utf-8")
    if tool == "nbgrader":
        config = NBGRADER_CONFIG.format(course=course.title.replace('"', ""))
        (to / "nbgrader_config.py").write_text(config, encoding="utf-8")


def _make_room(to: Path, tool: str) -> None:
    readme = to / "README.md"
    if readme.is_file() and readme.read_text(encoding="utf-8").startswith(HEAD):
        if any((to / name).exists() for name in ("submitted", "gradebook.db")):
            raise GraderError(f"{to} holds submissions or marks; name another folder with --to.")
        shutil.rmtree(to)
    elif to.exists() and any(to.iterdir()):
        raise GraderError(f"{to} holds something else; name a new folder with --to, or empty it.")


def _write(page: Chapter, folder: Path, tool: str) -> tuple[str, str] | None:
    """The names of a page's folder and sheet; None if it has no exercise with a check."""
    import nbformat

    try:
        made = sheet(read_source(page.source), page.title, TOOLS[tool])
    except GraderError as error:
        raise GraderError(f"{page.notebook}: {error}") from None
    if made is None:
        return None
    name, file = page.notebook.removesuffix("_further"), f"{page.notebook}_exercises"
    if tool == "otter":
        made.cells.insert(0, nbformat.v4.new_raw_cell(OTTER_CONFIG.format(name=file)))
    (folder / name).mkdir(parents=True, exist_ok=True)
    nbformat.write(made, folder / name / f"{file}.ipynb")
    return name, file
