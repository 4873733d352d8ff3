"""Sheets of exercises for nbgrader and otter: what they hold, how a folder is marked, the real tools' points.

The tools themselves run where they are installed (`pip install --constraint constraints.txt ".[graders]"`): one chapter
in `make test`, all of them in the nightly run.
"""

import ast
import contextlib
import csv
import dataclasses
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import downgrade, new_code_cell, new_markdown_cell, new_notebook
from submissions import COURSE, answer, environment, exercises

import course_utils as cu
from course_utils.files import ROOT
from course_utils.studio import StudioError, graders, kernel, mark
from course_utils.studio.__main__ import main
from course_utils.studio.handout import template

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


def test_an_exercise_that_fails_shows_its_report_to_otter_once():
    page = next(page for page in COURSE.notebooks if page.notebook == FIRST)
    (exercise, *_) = exercises(FIRST)
    tests = [
        cell.source for cell in graders.sheet(page, "otter").cells if "# HIDDEN" in cell.source
    ]
    space: dict = {"cu": cu}
    exec(answer(FIRST, exercise, "stub"), space)
    messages = []
    for test in tests[: graders.points(exercise)]:
        with pytest.raises(AssertionError) as failed:
            exec(test, space)
        messages.append(str(failed.value))
    assert "It will test:" in messages[0]
    assert messages[1:] == ["see above"] * (len(messages) - 1)


# How a folder is marked -------------------------------------------------------------------------


def commands(text: str) -> list[str]:
    """The lines of a text that call nbgrader, otter or the course, without comments."""
    lines = re.findall(r"^ *((?:nbgrader|otter|python) [^#`\n]+)", text, re.MULTILINE)
    return [line.strip() for line in lines]


@pytest.mark.parametrize("tool", graders.TOOLS)
def test_the_page_for_teachers_gives_the_commands_of_the_folder(tool):
    name = "05_sequence_to_sequence"
    told = commands((ROOT / "docs" / "teaching.md").read_text(encoding="utf-8"))
    readme = commands(template(f"{tool}.md", name=name, sheet=f"{name}_exercises"))
    assert readme and [line for line in told if line in readme] == readme


@pytest.mark.parametrize(
    ("file", "student"),
    [
        ("Ana Pérez_1234_assignsubmission_file/04_masks_exercises.ipynb", "Ana Pérez"),
        ("Ana Pérez_1234_assignsubmission_file_/04_masks_exercises.ipynb", "Ana Pérez"),
        ("Ana Pérez_1234_assignsubmission_file_04_masks_exercises.ipynb", "Ana Pérez"),
        ("Ana Pérez_1234_assignsubmission_file_/my answer/04_masks_exercises.ipynb", "Ana Pérez"),
        ("perezana_12_3456_04_masks_exercises-1.ipynb", "perezana"),
        ("perezana_12_3456_04_masks_exercises (2).ipynb", "perezana"),
        ("perezana_LATE_12_3456_04_masks_exercises.ipynb", "perezana"),
    ],
)
def test_nbgrader_knows_the_names_that_moodle_and_canvas_give(file, student):
    config = template("nbgrader_config.txt", course="The course")
    pattern = ast.literal_eval(re.search(r"named_regexp = \(\n *(.*)\n\)", config)[1])
    found = re.match(pattern, f"/any/extracted/{file}")
    assert found.groupdict() == {"student_id": student, "file_id": "04_masks_exercises"}


OTTER = """\
import json, pathlib, sys, time
*_, to, notebook = sys.argv
handed_in = json.loads(pathlib.Path(notebook).read_text())
assert handed_in["metadata"]["otter"]["assignment_name"] == "04_masks_exercises"
text = handed_in["cells"][1]["source"]
if text == "loop":
    time.sleep(100)
if text == "exit":
    sys.exit("no points")
if text == "moved":
    print("FileNotFoundError: tests")
    text, handed_in = "0", None
found = [{"name": "my_mask", "score": float(text), "output": "Hint: ask."}]
tests = [{"name": "Public Tests"}, *(found if handed_in else [])]
pathlib.Path(to, "results.json").write_text(json.dumps({"tests": tests}))
"""


@pytest.fixture
def otter(tmp_path, monkeypatch) -> Path:
    """What `otter assign` would write, with `OTTER` in the place of otter."""
    (tmp_path / "otter").mkdir()
    (tmp_path / "otter" / "__main__.py").write_text(OTTER)
    (tmp_path / "dist" / "autograder").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "dist" / "autograder" / "x.zip", "w") as zipped:
        zipped.writestr("otter_config.json", '{"assignment_name": "04_masks_exercises"}')
    monkeypatch.setattr(kernel, "ROOT", tmp_path)  # where Python looks for otter, too
    return tmp_path / "dist"


def hand_in(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(nbformat.writes(new_notebook(cells=[new_code_cell(text)])))


def test_a_folder_is_marked_without_docker_and_a_bad_notebook_costs_its_own_row(
    otter, tmp_path, monkeypatch
):
    files = {
        "ana": "8",
        "ben_12_file/04": "2",
        "exit": "exit",
        "loop": "loop",
        "moved": "moved",
        "ana/.checkpoints/04": "0",
    }
    for name, text in files.items():
        hand_in(tmp_path / "in" / f"{name}.ipynb", text)
    (tmp_path / "in" / "empty.ipynb").touch()
    monkeypatch.setattr(mark, "SECONDS", 5)
    assert mark.main([str(otter), str(tmp_path / "in")]) == 0
    rows = marks(tmp_path / "in")
    assert {name: float(row["my_mask"]) for name, row in rows.items()} == {
        "ana": 8, "ben_12_file_04": 2, "empty": 0, "exit": 0, "loop": 0, "moved": 0,
    }  # fmt: skip
    assert [name for name, row in rows.items() if row["note"]] == [
        "empty", "exit", "loop", "moved",
    ]  # fmt: skip
    assert "no points; see feedback/exit.log" in rows["exit"]["note"]
    assert "FileNotFoundError: tests" in rows["moved"]["note"]
    assert "the file is empty" in rows["empty"]["note"]
    assert "no points" in (tmp_path / "in" / "feedback" / "exit.log").read_text()
    assert (tmp_path / "in" / "feedback" / "ana.txt").read_text() == "Hint: ask."


def test_each_student_has_a_row_whatever_was_handed_in_and_under_whatever_name(otter, tmp_path):
    folder = tmp_path / "in"
    long = "/".join(
        ["Müller_1234567_assignsubmission_file_", *["Übung 5, bearbeitet und überprüft"] * 8]
    )
    marked = ["A_1/b", "A_1_b", f"{long}/05", "=1+1"]
    for name in marked:
        hand_in(folder / f"{name}.ipynb", "8")
    hand_in(folder / "Capital" / "A.IPYNB", "8")
    hand_in(folder / "Browser" / "a.ipynb.txt", "8")
    others = ["Zip/abgabe.zip", "Py/a.py", "Text/onlinetext.html", "Folder/a.ipynb/b", "a_12_x.zip"]
    for name in others:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    for name in (
        "A_1/measured.csv",
        "A_1/data/x.csv",
        "__MACOSX/._a.ipynb",
        ".DS_Store",
        "A_1/pics/y.png",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    for directory in ("Alt", "Empty"):
        (folder / directory).mkdir()
    latin = os.fsencode(folder / "M") + b"\xfcller"
    with contextlib.suppress(OSError, UnicodeError):  # a file system may refuse it
        shutil.copy(folder / "A_1_b.ipynb", latin + b".ipynb")
        marked.append("M�ller")
    with contextlib.suppress(OSError):  # Windows
        (folder / "dead.ipynb").symlink_to(tmp_path / "nowhere")
        others.append("dead")
    for _ in range(2):  # what the first call wrote is nobody's
        assert mark.main([str(otter), str(folder)]) == 0
        rows = marks(folder)
        assert sum(row["my_mask"] == "8" for row in rows.values()) == len(marked) + 2
        assert sum(bool(row["note"]) for row in rows.values()) == len(others) + 2, rows
    assert {"A_1_b", "A_1_b_2", "'=1+1", "Capital_A", "Browser_a", "Zip_abgabe.zip", "Py"} <= set(
        rows
    )
    assert "unpack it" in rows["Zip_abgabe.zip"]["note"]
    assert "no notebook but a.py" in rows["Py"]["note"]
    assert rows["Capital_A"]["total"] == "8"
    assert len(list((folder / "feedback").glob("*.txt"))) == len(marked) + 2


def test_marks_are_kept_if_marking_ends_early_or_their_file_cannot_be_written(
    otter, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "in"
    for name in "abc":
        hand_in(folder / f"{name}.ipynb", "8")
    (folder / "marks.csv").write_text("of before")
    grade = mark.results

    def interrupted(notebook, *others):
        if notebook.stem == "b":
            raise KeyboardInterrupt
        return grade(notebook, *others)

    monkeypatch.setattr(mark, "results", interrupted)
    assert mark.main([str(otter), str(folder)]) == 130
    assert {name: row["total"] for name, row in marks(folder).items()} == {
        "a": "8",
        "b": "0",
        "c": "0",
    }
    assert "the command ended before" in marks(folder)["c"]["note"]
    assert (folder / "marks_before.csv").read_text() == "of before"

    def broken(notebook, *others):
        if notebook.stem == "b":
            raise RuntimeError("nobody thought of this")
        return grade(notebook, *others)

    monkeypatch.setattr(mark, "results", broken)
    (folder / "marks.csv").unlink()
    (folder / "marks.csv").mkdir()  # as if Excel held it
    assert mark.main([str(otter), str(folder)]) == 0
    (folder / "marks.csv").rmdir()
    assert "the marks are in marks_2.csv" in capsys.readouterr().out
    (folder / "marks_2.csv").rename(folder / "marks.csv")
    assert [row["total"] for row in marks(folder).values()] == ["8", "0", "8"]
    assert "nobody thought of this" in marks(folder)["b"]["note"]


def test_a_cell_that_changes_the_folder_changes_it_for_no_other(tmp_path):
    here = os.getcwd()
    try:
        shell = InteractiveShell()
        for cell in (mark.STAY, f"%cd -q {tmp_path}", "import os\nfolder = os.getcwd()"):
            shell.run_cell(cell).raise_error()
        assert shell.user_ns["folder"] == here
    finally:
        os.chdir(here)


def _without(key: str, *, of_cells: bool = False):
    def leave_out(notebook: dict) -> dict:
        for part in notebook["cells"] if of_cells else [notebook]:
            part.pop(key, None)
        return notebook

    return leave_out


OTHER_PROGRAMS = {
    "as it was": lambda notebook: notebook,
    "no metadata": _without("metadata"),
    "no metadata of cells": _without("metadata", of_cells=True),
    "no outputs": _without("outputs", of_cells=True),
    "no format": _without("nbformat"),
    "lists": lambda notebook: notebook | {"metadata": []},
    "a kernel that is not here": lambda notebook: (
        notebook | {"metadata": {"kernelspec": {"name": "conda-env-ml-py"}}}
    ),
    "a newer format": lambda notebook: notebook | {"nbformat_minor": 99},
    "an older format": lambda notebook: downgrade(
        nbformat.reads(json.dumps(notebook), as_version=4)
    ),
    "a cell without source": lambda notebook: (
        notebook | {"cells": [*notebook["cells"], {"cell_type": "code"}]}
    ),
    "a cell of another kind": lambda notebook: (
        notebook | {"cells": [*notebook["cells"], {"cell_type": "sql", "source": ["a\n", "b"]}]}
    ),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("program", OTHER_PROGRAMS)
def test_what_another_program_left_out_of_a_notebook_costs_no_answer(tmp_path, program, encoding):
    cells = [new_markdown_cell("é"), new_code_cell("answer = 1\nanswer")]
    notebook = OTHER_PROGRAMS[program](json.loads(nbformat.writes(new_notebook(cells=cells))))
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook), encoding=encoding)
    read = mark.readable(tmp_path / "a.ipynb")
    nbformat.validate(read)
    assert [cell["source"] for cell in read["cells"]][:2] == ["é", "answer = 1\nanswer"]
    assert read["metadata"]["kernelspec"]["name"] == "python3"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b"<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> theirs\n", "a merge left its marks"),
        (b'{"cells": [', "a part of it is missing"),
        (b'{"name": "package"}', "it is no notebook"),
        (b"[1, 2]", "it is no notebook"),
        (b'{"cells": 3}', "it is no notebook"),
        (b'{"cells": ["a"]}', "it is no notebook"),
        (b'{"worksheets": 3, "nbformat": 3}', "it is no notebook"),
        (b"PK\x03\x04\xff", "it is no notebook"),
    ],
)
def test_a_file_that_is_no_notebook_is_told_from_one(tmp_path, data, said):
    (tmp_path / "a.ipynb").write_bytes(data)
    with pytest.raises(StudioError, match=said):
        mark.readable(tmp_path / "a.ipynb")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "the following arguments are required: dist, submissions"),
        (["there"], "the following arguments are required: submissions"),
        (["nowhere", "there"], "has no zip files, and one is needed: name the folder that `otter"),
        (
            ["dist", "nowhere"],
            "nowhere holds no notebooks: name the folder with what your students",
        ),
        (["dist", "there"], "there holds no notebooks"),
    ],
)
def test_what_marking_lacks_is_a_sentence_and_no_traceback(
    tmp_path, monkeypatch, capsys, given, said
):
    (tmp_path / "dist" / "autograder").mkdir(parents=True)
    (tmp_path / "dist" / "autograder" / "x.zip").touch()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    try:
        status = mark.main(given)
    except SystemExit as ended:
        status = ended.code
    assert status and said in capsys.readouterr().err and not list(tmp_path.rglob("feedback"))


def marks(folder: Path) -> dict[str, dict[str, str]]:
    """Submission → its row in marks.csv."""
    with (folder / "marks.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["submission"]: row for row in csv.DictReader(file)}


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


def run(folder: Path, module: str, *command: str, **others: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *command], cwd=folder, capture_output=True, text=True,
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
        run(tmp_path, "nbgrader", *command)

    name, file = page.notebook.removesuffix("_further"), f"{page.notebook}_exercises.ipynb"
    (tmp_path / "source" / name).mkdir(parents=True)
    shutil.copy(folders["nbgrader"] / "nbgrader_config.py", tmp_path)
    shutil.copy(folders["nbgrader"] / "source" / name / file, tmp_path / "source" / name)
    nbgrader("generate_assignment", name)
    kinds = [*KINDS, *(CASES if page.notebook == FIRST else ())]
    for kind in kinds:
        to = tmp_path / "downloaded" / name / "archive" / f"{kind}_12_assignsubmission_file"
        to.mkdir(parents=True)
        handed_out = nbformat.read(tmp_path / "release" / name / file, as_version=4)
        nbformat.write(filled(handed_out, page, kind), to / file)
    nbgrader("zip_collect", name)
    nbgrader("autograde", name)
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
    """And none of a student's answers is kept among the instructor's."""
    home = {"COURSE_HOME": str(tmp_path / "home"), "COURSE_STRICT": ""}
    file = f"{page.notebook}_exercises.ipynb"
    shutil.copy(folders["otter"] / page.notebook.removesuffix("_further") / file, tmp_path)
    run(tmp_path, "otter", "assign", file, "dist", **home)
    (tmp_path / "in").mkdir()
    for kind in KINDS:
        handed_out = nbformat.read(tmp_path / "dist" / "student" / file, as_version=4)
        nbformat.write(filled(handed_out, page, kind), tmp_path / "in" / f"{kind}.ipynb")
    run(tmp_path, "course_utils.studio.mark", "dist", "in", **home)
    for kind, row in marks(tmp_path / "in").items():
        wanted = expected(page, kind)
        assert {name: float(row[name]) for name in wanted} == wanted, kind
        assert not row["note"] and float(row["total"]) == sum(wanted.values())
    assert not (tmp_path / "home").exists()
