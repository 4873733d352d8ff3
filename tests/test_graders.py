"""Sheets of exercises for nbgrader and otter: what they hold, and the points that the real tools give.

The tools themselves run where they are installed (`pip install --constraint constraints.txt ".[graders]"`): one chapter
in `make test`, all of them in the nightly run.
"""

import ast
import dataclasses
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from submissions import COURSE, answer, environment, exercises

import course_utils as cu
from course_utils.studio import StudioError, graders
from course_utils.studio.__main__ import main

SHEETS = [page for page in COURSE.notebooks if exercises(page.notebook)]
KINDS = ("right", "wrong", "stub")
each_sheet = pytest.mark.parametrize("page", SHEETS, ids=lambda page: page.notebook)


# What a sheet holds -----------------------------------------------------------------------------


def test_every_exercise_that_has_a_check_is_in_a_sheet():
    names = [exercise.name for page in SHEETS for exercise in exercises(page.notebook)]
    assert COURSE.left_out or sorted(names) == sorted(dir(cu.checks))


@each_sheet
def test_a_sheet_is_enough_to_answer_and_gives_all_points_or_none(page):
    """Its cells run in order, as nbgrader runs them; the value of a graded cell is its points."""
    asked = {exercise.name: exercise for exercise in exercises(page.notebook)}
    cells = [cell for cell in graders.sheet(page, "nbgrader").cells if cell.cell_type == "code"]
    for kind in KINDS:
        space: dict = {"__name__": "__main__"}
        for cell in cells:
            part, _, name = cell.metadata.get("nbgrader", {}).get("grade_id", "").partition("-")
            source = answer(page.notebook, asked[name], kind) if part == "answer" else cell.source
            tree = ast.parse(source)
            last = ast.Expression(tree.body.pop().value) if part == "points" else None
            exec(compile(tree, name, "exec"), space)
            if last:
                points = eval(compile(last, name, "eval"), space)
                assert points == (cell.metadata.nbgrader.points if kind == "right" else 0), kind


@pytest.mark.parametrize("tool", graders.TOOLS)
def test_a_folder_is_written_anew_but_not_over_marks_or_other_things(tool, tmp_path):
    few = dataclasses.replace(COURSE, chapters=COURSE.chapters[:2], appendices=())
    for _ in range(2):
        graders.build(few, tmp_path / "out", tool)
    pages = [page.notebook for page in few.notebooks]
    found = sorted(path.stem for path in tmp_path.glob("out/**/*.ipynb"))
    assert found == sorted(f"{page}_exercises" for page in pages if exercises(page))
    assert f"{tool} assign" in (tmp_path / "out" / "README.md").read_text().replace("generate_", "")
    (tmp_path / "out" / "gradebook.db").touch()
    with pytest.raises(StudioError, match="holds submissions or marks"):
        graders.build(few, tmp_path / "out", tool)
    with pytest.raises(StudioError, match="holds something else"):
        graders.build(few, tmp_path, tool)


# The points of the real tools -------------------------------------------------------------------


def needs(tool: str):
    there = importlib.util.find_spec(tool) is not None
    return pytest.mark.skipif(not there, reason=f"{tool} is not installed; it is in .[graders]")


FIRST = "01_queries_keys_values"
CASES = {
    "warns": "import warnings\n\n\n{answer}\nwarnings.warn('mind the gap')\n",
    "times": "%%time\n{answer}",
    "asks": "{answer}\n{function}?",
}
"""What else students write around a right answer."""
sheets_by_night = pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.notebook, marks=() if page.notebook == FIRST else pytest.mark.nightly)
        for page in SHEETS
    ],
)  # fmt: skip


def filled(notebook, page, kind: str):
    """A student's sheet: as the tool hands it out, with the answers filled in."""
    for exercise in exercises(page.notebook):
        (cell,) = (c for c in notebook.cells if c.source.startswith(exercise.stub.source))
        if kind in CASES:
            cell.source = CASES[kind].format(answer=exercise.answer, function=exercise.function)
        else:
            cell.source = answer(page.notebook, exercise, kind)
    return notebook


def expected(page, kind: str) -> dict[str, int]:
    totals = {one.name: graders.points(one) for one in exercises(page.notebook)}
    return dict.fromkeys(totals, 0) if kind in ("wrong", "stub") else totals


def run(folder: Path, code: str, *command: str, **others: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=folder, capture_output=True, text=True,
        env=os.environ | environment() | others,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """For each tool what the command writes, with only one sheet at a time."""
    to = tmp_path_factory.mktemp("sheets")
    for tool in graders.TOOLS:
        assert main(["handout", "--for", tool, "--to", str(to / tool)]) == 0
    return {tool: to / tool for tool in graders.TOOLS}


@pytest.mark.slow
@needs("nbgrader")
@sheets_by_night
def test_nbgrader_gives_the_solution_all_points_and_stub_and_mistake_none(page, folders, tmp_path):
    def nbgrader(*command: str) -> None:
        run(tmp_path, "from nbgrader.apps.nbgraderapp import main; main()", *command)

    name, file = page.notebook.removesuffix("_further"), f"{page.notebook}_exercises.ipynb"
    (tmp_path / "source" / name).mkdir(parents=True)
    shutil.copy(folders["nbgrader"] / "nbgrader_config.py", tmp_path)
    shutil.copy(folders["nbgrader"] / "source" / name / file, tmp_path / "source" / name)
    nbgrader("generate_assignment", name)
    kinds = [*KINDS, *(CASES if page.notebook == FIRST else ())]
    for kind in kinds:
        (to := tmp_path / "submitted" / kind / name).mkdir(parents=True)
        handed_out = nbformat.read(tmp_path / "release" / name / file, as_version=4)
        nbformat.write(filled(handed_out, page, kind), to / file)
    nbgrader("autograde", name, "--create")
    if page.notebook == FIRST:
        nbgrader("generate_feedback", name)
        assert len(list(tmp_path.glob(f"feedback/*/{name}/*.html"))) == len(kinds)
    assert in_gradebook(tmp_path, name) == {kind: expected(page, kind) for kind in kinds}


def in_gradebook(folder: Path, assignment: str) -> dict[str, dict[str, float]]:
    """Student → check → points."""
    from nbgrader.api import Gradebook

    found: dict[str, dict[str, float]] = {}
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        for submission in gradebook.assignment_submissions(assignment):
            for grade in (one for notebook in submission.notebooks for one in notebook.grades):
                name = grade.cell.name.removeprefix("points-")
                found.setdefault(submission.student.id, {})[name] = grade.score
    return found


@pytest.mark.slow
@needs("otter")
@sheets_by_night
def test_otter_gives_the_solution_all_points_and_stub_and_mistake_none(page, folders, tmp_path):
    """And none of a student's answers is kept among the instructor's, even if the command forgets COURSE_STRICT."""
    home = {"COURSE_HOME": str(tmp_path / "home"), "COURSE_STRICT": ""}

    def otter(*command: str) -> None:
        run(tmp_path, "from otter.cli import cli; cli()", *command, **home)

    file = f"{page.notebook}_exercises.ipynb"
    shutil.copy(folders["otter"] / page.notebook.removesuffix("_further") / file, tmp_path)
    otter("assign", file, "dist")
    (archive,) = tmp_path.glob("dist/autograder/*.zip")
    for kind in KINDS:
        handed_out = nbformat.read(tmp_path / "dist" / "student" / file, as_version=4)
        nbformat.write(filled(handed_out, page, kind), tmp_path / "mine.ipynb")
        otter("run", "-a", str(archive), "mine.ipynb")
        told = json.loads((tmp_path / "results.json").read_text())["tests"]
        points = {test["name"]: test["score"] for test in told if "score" in test}
        wanted = expected(page, kind)
        assert {name: points.get(name) for name in wanted} == wanted, kind
    assert not (tmp_path / "home").exists()
