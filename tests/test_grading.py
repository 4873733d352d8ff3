"""Grading: whose a submission is, what it gets, and what no submission may do to others."""

import csv
import itertools
import json
import os
import re
import shutil
import tempfile
import zipfile
from datetime import datetime
from pathlib import Path

import jupytext
import pytest

from course_utils.files import ROOT
from course_utils.studio import manifest
from course_utils.studio.grading import command, report, sandbox, wire
from course_utils.studio.grading.exercises import PointsError, points, sheets, written
from course_utils.studio.grading.judge import Mark, chosen, judged
from course_utils.studio.grading.submissions import File, Submission, collect, read, whose

COURSE = manifest.load(files=False)
TWO = "02_kernel_regression"
OPEN_BECAUSE = sandbox.why_open()
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
needs_walls = pytest.mark.skipif(bool(OPEN_BECAUSE), reason=OPEN_BECAUSE or "-")

START = "import math\nimport torch\nimport course_utils as cu\nfrom course_utils import pooling\n"
LOSS = """
def fixed_loss(keys, values, width):
    predictions = pooling.leave_one_out(keys, values[:, None], width=width)[:, 0]
    return (predictions - values).square().mean()
"""


def _notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "source": one, "metadata": {}, "outputs": []} for one in cells]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def _loss(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return _notebook(START, f"def fixed_loss(keys, values, width):\n{body}")


GROWS = """
from course_utils.lessons.translating.beams import grow
def my_grow(scores, log_p, size):
    return grow(scores, log_p, size)
"""


def _handed_out(stem: str, *, solved: bool) -> str:
    """The notebook as a student has it: stubs, or with the solutions in the stubs' place."""
    cells = jupytext.read(ROOT / "notebooks" / "source" / f"{stem}.py", fmt="py:percent").cells
    kept: list[str] = []
    stub = 0
    for cell in cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type != "code" or "check" in tags:
            continue
        if "exercise" in tags:
            stub = len(kept)
        if "solution" not in tags:
            kept.append(cell.source)
        elif solved:
            source = cell.source.partition("\n\n\ncu.checks")[0]
            kept[stub] = re.sub(r"_solution\b", "", source)
    return _notebook(*kept)


def _ends_for_one(submission: Submission) -> list[Mark]:
    """A judge that the system ends at one student, as it does where memory is short."""
    if submission.student == "Eve":
        os._exit(9)
    return [Mark(submission.student, TWO, "fixed_loss", 1, 1, 1.0)]


@needs_fork
def test_a_judging_process_that_ends_costs_the_one_student_it_was_at(tmp_path, monkeypatch):
    for name in ("Ann", "Ben", "Eve", "Kim"):
        (tmp_path / f"{name}.ipynb").write_text(_handed_out(TWO, solved=True))
    monkeypatch.setattr(command, "_judge", _ends_for_one)
    to = tmp_path / "grades"
    command.main([str(tmp_path), "--to", str(to), "--chapter", "02", "--jobs", "2", "--contained"])
    with (to / "marks.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["student"] for row in rows if row["held"] == "1"} == {"Ann", "Ben", "Kim"}
    lost = [row["reason"] for row in rows if row["student"] == "Eve"]
    assert lost and all(reason.startswith("not graded") for reason in lost)


# What nobody may do -----------------------------------------------------------------------------

HOSTILE = {
    "endless": (_loss("while True:", "    pass"), "still running after 2 seconds of computing"),
    "memory": (_loss("return torch.ones(2**33, dtype=torch.uint8)"), "memory"),
    "output": (_loss("for _ in range(1000):", "    print('x' * 2**20)", "return ..."), "not done"),
    "forge": (
        _loss(
            "import course_utils.kit.check as check",
            "check.Check.__call__ = lambda *_: None",
            "check.expect = torch.allclose = lambda *_, **__: True",
            "return keys.sum()",
        ),
        "it is the leave-one-out error|three-point example",
    ),
    "wrapper": (
        _loss("return pooling.leave_one_out_error(keys, values, width=width)"),
        "it calls leave_one_out_error",
    ),
    "hides_its_calls": (
        _loss(
            "import sys",
            "sys.setprofile(None)",
            "return pooling.leave_one_out_error(keys, values, width=width)",
        ),
        "setprofile",
    ),
    "hides_them_deeper": (
        _loss(
            "import types",
            "f = pooling.leave_one_out_error",
            "g = types.FunctionType(f.__code__, {**f.__globals__, '__name__': 'g'})",
            "g.__kwdefaults__ = f.__kwdefaults__",
            "return g(keys, values, width=width)",
        ),
        "it uses FunctionType, __code__, __globals__: look at it",
    ),
    "no_text": (_loss(r"raise ValueError('\ud800\x1b[31m')"), r"ValueError: \[31m"),
    "bomb": (_loss("import os", "while True:", "    os.fork()"), "temporarily unavailable"),
    "exit": (_loss("import os", "os._exit(0)"), "its process has ended"),
    "kills": (
        _loss("import os", "os.kill(os.getppid(), 9)", "return keys.sum()"),
        "has killed the process that grades it|not permitted|expected",
    ),
    "pickle": (
        _loss(
            "class Bomb:",
            "    def __reduce__(self):",
            "        return exit, ()",
            "return Bomb()",
        ),
        "a tensor is expected, got a Bomb|got a Bomb",
    ),
    "noise": (
        _loss(
            "import gc, socket",
            "for one in gc.get_objects():",
            "    if isinstance(one, socket.socket) and one.fileno() > 0:",
            "        one.sendall(b'\\0' * 7 + b'\\4' + b'\\0' * 8 + b'[[[[')",
        ),
        "cannot be read",
    ),
    "of_no_bytes": (_loss("return torch.empty(2**40, 0)"), "a tensor of shape"),
    "lists": (
        _loss(
            "import gc, socket",
            "for one in gc.get_objects():",
            "    if isinstance(one, socket.socket) and one.fileno() > 0:",
            "        one.sendall(b'\\0' * 4 + b'\\3' + b'\\0' * 11)",
        ),
        "48 MB; 64 are allowed, 16 outside tensors",
    ),
    "no_python": (_notebook(START, "def fixed_loss(keys values): ..."), "is no Python"),
    "no_json": ("<<<<<<< HEAD", "is no notebook that can be read"),
    "nothing": (_notebook(START), "no notebook was handed in"),
}
WALLED = {
    "home": (
        _loss("import pathlib, shutil", f"shutil.rmtree({str(Path.home())!r})"),
        "No such file|Read-only|Permission",
    ),
    "network": (
        _loss("import socket", "socket.create_connection(('192.0.2.1', 80), timeout=5)"),
        "unreachable",
    ),
    "writes": (
        _loss("open('/tmp/x', 'w')"),
        "No such file|Read-only",
    ),
    "reads_the_checks": (
        _loss(
            "import pathlib, course_utils",
            "home = pathlib.Path(course_utils.__file__).parent / 'lessons' / 'kernel_regression'",
            "raise OSError(str([*home.glob('__pycache__/checks*')]) + (home / 'checks.py').read_text())",
        ),
        r"Permission denied|OSError: \[\] ",
    ),
}


def _broken_archive(folder: Path) -> bytes:
    with zipfile.ZipFile(folder / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.ipynb", _notebook("x = 1\n" * 500))
    content = (folder / "x.zip").read_bytes()
    return content[:45] + b"\xff" * 15 + content[60:]


@pytest.fixture(scope="module")
def graded(tmp_path_factory) -> dict[tuple[str, str], dict[str, str]]:
    """The rows of marks.csv for a folder of all sorts, by student and exercise."""
    folder, to = tmp_path_factory.mktemp("submissions"), tmp_path_factory.mktemp("marks")
    for name, (content, _) in (HOSTILE | ({} if OPEN_BECAUSE else WALLED)).items():
        (folder / f"{name}.ipynb").write_text(content, encoding="utf-8")
    (folder / "right.ipynb").write_text(_handed_out(TWO, solved=True), encoding="utf-8")
    (folder / "stub.ipynb").write_text(_handed_out(TWO, solved=False), encoding="utf-8")
    moodle = folder / "Ana Pérez_1234567_assignsubmission_file_"
    moodle.mkdir()
    (moodle / f"{TWO}.ipynb").write_text(_notebook(START, LOSS), encoding="utf-8")
    (folder / "essay.pdf").write_text("")
    (folder / "no\x1bname\udcff.zip").write_bytes(_broken_archive(tmp_path_factory.mktemp("zip")))
    home = os.stat(Path.home())
    said = [str(folder), "--to", str(to), "--chapter", TWO, "--limit", "2", "--jobs", "1"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))
        assert command.main(said) == 0
        assert not [*Path(tempfile.gettempdir()).iterdir()]  # nothing is left behind
    assert os.stat(Path.home()).st_ino == home.st_ino
    with (to / "marks.csv").open(encoding="utf-8-sig") as file:
        rows = {(row["student"], row["exercise"]): row for row in csv.DictReader(file)}
    assert len(list((to / "students").glob("*.html"))) == len(rows) / 2
    return rows


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("name", [*HOSTILE, *WALLED])
def test_what_does_harm_costs_its_own_row_and_says_why(graded, name):
    if name in WALLED and OPEN_BECAUSE:
        pytest.skip(OPEN_BECAUSE)
    row = graded[name, "fixed_loss"]
    assert float(row["points"]) < 1 or "look at it" in row["reason"]
    assert re.search((HOSTILE | WALLED)[name][1], row["reason"]), row["reason"]


@needs_fork
@pytest.mark.slow
def test_solutions_have_all_points_and_stubs_none_whoever_comes_before_them(graded):
    for exercise, properties in (("my_leave_one_out", "11"), ("fixed_loss", "4")):
        right, stub = graded["right", exercise], graded["stub", exercise]
        assert (right["held"], right["total"], right["points"]) == (properties, properties, "1")
        assert (stub["held"], stub["points"], stub["reason"]) == ("0", "0", "not done yet")
    assert graded["Ana Pérez", "fixed_loss"]["points"] == "1"
    assert graded["Ana Pérez", "my_leave_one_out"]["reason"] == "nothing is called my_leave_one_out"


@needs_fork
@pytest.mark.slow
def test_without_walls_the_limits_hold_and_home_is_an_empty_folder(tmp_path):
    home = "import os\nHOME = os.path.expanduser('~')\nassert not os.listdir(HOME)\n"
    box = sandbox.Sandbox(2, 1024, walls=False)
    two = [sheet for sheet in sheets(COURSE.chosen([TWO])) if sheet.notebook == TWO]
    worth = points(None, two[0].exercises)
    found = {}
    try:
        for name, content in {
            "home": _notebook(START + home, LOSS.replace("    pred", "    assert HOME\n    pred")),
            "endless": HOSTILE["endless"][0],
            "right": _notebook(START, LOSS),
        }.items():
            file = File(f"{name}.ipynb", datetime.now(), content.encode())
            found[name] = judged(Submission(name, files=[file]), two, worth, box)[1]
    finally:
        box.close()
    assert [one.points for one in found.values()] == [1, 0, 1], found
    assert box.started == 1


@needs_fork
@pytest.mark.slow
def test_every_solution_of_the_course_passes_in_another_process():
    """Gradients, modules, what a check watches, and what it counts go through the wire."""
    known = sheets(COURSE.notebooks)
    assert sum(bool(one.check) for sheet in known for one in sheet.exercises) > 50
    box = sandbox.Sandbox(60, 4096, walls=not OPEN_BECAUSE)
    failed = []
    try:
        (eleven,) = [sheet for sheet in known if sheet.notebook == "11_translating"]
        one = Submission("wraps", files=[File("x", datetime.now(), _notebook(GROWS).encode())])
        wraps = judged(one, [eleven], points(None, eleven.exercises), box)
        assert [m.reason for m in wraps if m.held] == [
            "it calls grow, as its check does: look at it"
        ]
        for sheet in known:
            content = _handed_out(sheet.notebook, solved=True).encode()
            one = Submission("solution", files=[File("x.ipynb", datetime.now(), content)])
            marks = judged(one, [sheet], points(None, sheet.exercises), box)
            failed += [
                mark for mark in marks if mark.total and (mark.held != mark.total or mark.reason)
            ]
    finally:
        box.close()
    assert not failed


# Whose they are ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "student", "late"),
    [
        ("Ana Pérez_1234567_assignsubmission_file_", "Ana Pérez", False),
        (f"Ana Pérez_1234567_assignsubmission_file_{TWO}", "Ana Pérez", False),
        (f"perezana_LATE_12345_678901_{TWO}-1", "perezana", True),
        (f"perezana_12345_678901_{TWO}", "perezana", False),
        (f"{TWO}_ana", "ana", False),
        ("ana perez", "ana perez", False),
    ],
)
def test_a_name_is_read_as_the_server_writes_it(name, student, late):
    found = whose(name, [TWO])
    assert (found[0], found[2]) == (student, late)


def test_folders_archives_and_notebooks_are_found_and_the_newest_counts(tmp_path):
    (tmp_path / "ana" / ".ipynb_checkpoints").mkdir(parents=True)
    (tmp_path / "ana" / ".ipynb_checkpoints" / "x.ipynb").write_text("{}")
    for name, seconds in (("old.ipynb", 1_000_000), ("new.ipynb", 2_000_000)):
        path = tmp_path / "ana" / name
        path.write_text(_notebook(f"def fixed_loss(k, v, w): return {name!r}"))
        os.utime(path, (seconds, seconds))
    with zipfile.ZipFile(tmp_path / "ben.zip", "w") as archive:
        archive.writestr("work/a.ipynb", _notebook("x = 1"))
        archive.writestr("__MACOSX/a.ipynb", "")
    (tmp_path / "cem.zip").write_text("no archive")
    (tmp_path / "readme.txt").write_text("")
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "ana" / "old.ipynb")
    found, others = collect(tmp_path)
    assert [one.student for one in found] == ["ana", "ben", "cem"]
    assert others == ["readme.txt"]
    assert [file.name for file in found[1].files] == ["work/a.ipynb"]
    assert "no archive" in found[2].files[0].wrong
    notebook, note = chosen(found[0], sheets(COURSE.chosen([TWO])))[0][TWO]
    assert "new.ipynb" in notebook.code[0]
    assert note.startswith("the newest of 2, of 1970-01-24")


def test_another_notebook_that_shares_a_name_is_not_taken_for_the_newest():
    of_the_chapter = File(
        "10.ipynb", datetime(2026, 1, 1), _handed_out("10_transformer", solved=False).encode()
    )
    another = File("F.ipynb", datetime(2026, 2, 2), _notebook("counted = 3").encode())
    ana = Submission("ana", files=[of_the_chapter, another])
    notebook, note = chosen(ana, sheets(COURSE.chosen(["10"])))[0]["10_transformer"]
    assert len(notebook.cells) > 5
    assert note == ""


def test_what_is_said_byte_by_byte_ends_with_the_time(monkeypatch):
    class Drip:
        def settimeout(self, seconds):
            assert 0 < seconds <= 5

        def recv_into(self, view):
            view[0] = 0
            return 1

    monkeypatch.setattr(wire.time, "monotonic", itertools.count().__next__)
    with pytest.raises(TimeoutError):
        wire.receive(Drip(), seconds=5)


def test_an_archive_of_zeros_is_read_up_to_a_limit_and_a_name_of_any_digits_sorts(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("course_utils.studio.grading.submissions.MOST_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "ana.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("1²2.ipynb", "9" * 5000 + ".ipynb", "c.ipynb"):
            archive.writestr(name, "0" * 600)
    files = collect(tmp_path)[0][0].files
    assert [len(file.content or "") for file in files] == [600, 0, 0]
    assert "too large" in files[1].wrong
    assert max(files, key=lambda file: file.order)


def test_two_students_of_one_name_have_two_rows(tmp_path):
    for number in (1, 2):
        folder = tmp_path / f"Ana Pérez_{number}_assignsubmission_file_"
        folder.mkdir()
        (folder / "a.ipynb").write_text("{}")
    assert [one.student for one in collect(tmp_path)[0]] == ["Ana Pérez (1)", "Ana Pérez (2)"]


# What stands in them ----------------------------------------------------------------------------


def test_an_open_exercise_shows_what_the_student_has_written_and_nothing_of_the_course():
    (sheet,) = sheets(COURSE.chosen(["08_multi_head_attention"]))
    (exercise,) = [one for one in sheet.exercises if one.kind == "open"]
    path = ROOT / "notebooks" / "source" / "08_multi_head_attention.py"
    cells = [
        {"cell_type": cell.cell_type, "source": cell.source}
        for cell in jupytext.read(path, fmt="py:percent").cells
    ]

    def text() -> str:
        content = json.dumps({"cells": cells}).encode()
        return written(exercise, sheet, read(File("x.ipynb", datetime.now(), content)))

    assert text() == ""
    (place,) = [n for n, cell in enumerate(cells) if exercise.title in cell["source"]]
    cells.insert(place + 1, {"cell_type": "markdown", "source": "I would measure three things."})
    assert text() == "I would measure three things."
    del cells[place + 1]
    cells[place]["source"] += "\n\nBelow the task, in its cell."
    assert text() == "Below the task, in its cell."


def test_points_are_one_each_or_those_of_a_file(tmp_path):
    known = [one for sheet in sheets(COURSE.chosen([TWO])) for one in sheet.exercises]
    file = tmp_path / "points.toml"
    file.write_text("[points]\nfixed_loss = 2.5\n")
    assert points(file, known)["fixed_loss"] == 2.5
    assert points(None, known)["fixed_loss"] == 1
    for wrong in ("[points]\nfixd_loss = 2\n", "fixed_loss = 2", "[points]\nfixed_loss = 'two'"):
        file.write_text(wrong)
        with pytest.raises(PointsError, match=r"points\.toml: "):
            points(file, known)


def test_pages_show_what_was_handed_in_as_text_and_a_table_computes_nothing(tmp_path):
    evil = "<script>alert(1)</script>"
    marks = [
        Mark("=cmd()", TWO, "fixed_loss", 1, 4, 0.25, evil, evil, "a sentence", evil, "Exercise 1"),
        Mark("=cmd()", TWO, "Exercise 3", reason="to be read", text="words", title="Exercise 3"),
    ]
    report.write(marks, tmp_path)
    pages = [path.read_text() for path in tmp_path.rglob("*.html")]
    assert len(pages) == 2
    assert not any("<script" in page for page in pages)
    assert "a sentence" in (tmp_path / "index.html").read_text()
    assert report.total([marks[0]]) == 0.25 and any(
        "0.25 points, and 1 to be read" in p for p in pages
    )
    with (tmp_path / "marks.csv").open(encoding="utf-8-sig") as file:
        first, second = csv.DictReader(file)
    assert first["student"] == "'=cmd()"
    assert (second["held"], second["points"]) == ("", "")


def test_what_is_no_folder_of_submissions_is_said_in_one_sentence(tmp_path, capsys):
    for folder, said in (
        (tmp_path / "no", "There is no folder"),
        (tmp_path, "holds no submission"),
    ):
        assert command.main([str(folder)]) == 1
        assert said in capsys.readouterr().err


def test_a_missing_sandbox_is_said_with_the_container_that_is_one(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr("sys.platform", "linux")
    told = sandbox.OPEN.format(sandbox.why_open())
    assert "bubblewrap is not installed" in told
    assert "docker run --rm --network none" in told
