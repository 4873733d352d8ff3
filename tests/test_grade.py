"""`make grade`: each row is a submission as classes send them, and the marks that it should get."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from submissions import COURSE, answer, exercises, notebook_of

import course_utils as cu
from course_utils.studio import grade
from course_utils.studio.__main__ import main

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="grading needs POSIX"),
]
CHAPTER = "02_kernel_regression_further"
ALL = {"loo_residuals": 4, "fixed_loss": 4}
NONE = dict.fromkeys(ALL, 0)


def notebook(code: list[str]) -> bytes:
    empty = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [empty | {"source": text} for text in code]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}).encode()


def cells(kind: str = "right", *, first: str = "", last: str = "{}") -> list[str]:
    """The setup and the two answers; `last` is what the cell of the second one, fixed_loss, becomes."""
    setup = "import math\nimport torch\nfrom course_utils import pooling"
    one, other = exercises(CHAPTER)
    code = [answer(CHAPTER, one, "stub" if kind == "stub" else "right")]
    return [first, setup, *code, last.replace("{}", answer(CHAPTER, other, kind))]


RIGHT, STUB = notebook(cells()), notebook(cells("stub"))
TIMED, ASKED = notebook(cells(last="%%time\n{}")), notebook(cells(last="{}\nfixed_loss?"))
CAPTURED = notebook(cells(last="%%capture out\n%%time\n{}"))
SHELL = notebook(cells(first="!pip list\nfiles = !ls\n%time x = 3\nt = %timeit -o 1 + 1\n/print 3"))
CELL_MAGICS = notebook(cells(first="%%bash\necho def fixed_loss(): pass"))
LATER = notebook([*cells(last=re.sub(r"\bpooling\.", "helper.", cells()[3])), "helper = pooling"])
BUG = "def fixed_loss(keys, values, width):\n    "
UNMENDED = notebook(
    cells(
        last=BUG + "predictions = pooling.leave_one_out(keys, values[:, None], width=width)\n"
        "    return (predictions - values).square().mean()"
    )
)


def fails(body: str) -> bytes:
    return notebook(cells(last=BUG + body))


WRITES = "import os, pathlib; pathlib.Path(os.environ['TMPDIR'], 'out').write_text('x')"


def version_3() -> bytes:
    import nbformat

    old = nbformat.convert(nbformat.reads(RIGHT.decode(), as_version=4), 3)
    return nbformat.writes(old, version=nbformat.NO_CONVERT).encode()


COLAB = json.loads(RIGHT) | {"nbformat_minor": 0, "metadata": {"colab": {"provenance": []}}}
for number, cell in enumerate(COLAB["cells"]):
    cell["metadata"] = {"id": f"x{number}"}

# Student, as the row names them → the files of the class, what holds, and words of the reason.
# A file's content may be followed by its time.
CASES = {
    "solved": ({"solved.ipynb": RIGHT}, ALL, ""),
    "handed out": ({"handed out/02.ipynb": STUB}, NONE, "not done yet"),
    "time": ({"time.ipynb": TIMED}, ALL, ""),
    "capture": ({"capture.ipynb": CAPTURED}, ALL, ""),
    "query": ({"query.ipynb": ASKED}, ALL, ""),
    "shell": ({"shell.ipynb": SHELL}, ALL, ""),
    "bash": ({"bash.ipynb": CELL_MAGICS}, ALL, ""),
    "browser": ({f"browser/{CHAPTER}.ipynb.json": RIGHT}, ALL, ""),
    "text": ({f"text/{CHAPTER}.ipynb.txt": RIGHT}, ALL, ""),
    "jdoe": (
        {
            f"HW2_jdoe_attempt_2026-11-01-10-00-00_{CHAPTER}.ipynb": (STUB, 100),
            f"HW2_jdoe_attempt_2026-11-02-10-00-00_{CHAPTER}.ipynb": (RIGHT, 100),
        },
        ALL,
        "the newest of 2",
    ),
    "Jane Doe": ({f"123456-789012 - Jane Doe - Nov 1, 2026 1015 AM - {CHAPTER}.ipynb": RIGHT}, ALL, ""),
    "Ana Pérez": ({"Ana Pérez_1234567_assignsubmission_file_/HW.ipynb": RIGHT}, ALL, ""),
    "perezana": ({f"perezana_LATE_12345_678901_{CHAPTER}.ipynb": RIGHT}, ALL, "late"),
    "kept": (
        {
            "kept/notebooks/02.ipynb": (RIGHT, 100),
            "kept/notebooks/02.kept-2026-11-20.ipynb": (STUB, 200),
            "kept/notebooks/.ipynb_checkpoints/02-checkpoint.ipynb": (STUB, 200),
            "kept/_build/handout/notebooks/02.ipynb": (STUB, 200),
        },
        ALL,
        "",
    ),
    "newer": ({"newer/a.ipynb": (RIGHT, 100), "newer/b.ipynb": (STUB, 200)}, NONE, "the newest of 2"),
    "Untitled12 (3)": ({"Untitled12 (3).ipynb": RIGHT}, ALL, ""),
    "line ends": ({"line ends.ipynb": RIGHT.replace(b"\\n", b"\\r\\n")}, ALL, ""),
    "mark": ({"mark.ipynb": b"\xef\xbb\xbf" + RIGHT}, ALL, ""),
    "wide": ({"wide.ipynb": RIGHT.decode().encode("utf-16")}, ALL, ""),
    "colab": ({"colab.ipynb": json.dumps(COLAB).encode()}, ALL, ""),
    "old": ({"old.ipynb": version_3()}, ALL, ""),
    "later": ({"later.ipynb": LATER}, ALL, ""),
    "unmended": ({"unmended.ipynb": UNMENDED}, {**ALL, "fixed_loss": 1}, "expected 3.46"),
    "open": ({"open.ipynb": notebook(cells(last="fixed_loss = (1"))}, {**ALL, "fixed_loss": 0}, "is no Python"),
    "no notebook": ({"no notebook.ipynb": b"{"}, NONE, "is no notebook that can be read"),
    "empty": ({"empty.ipynb": b""}, NONE, "is no notebook that can be read"),
    "another": ({"another.ipynb": notebook(["x = 1"])}, NONE, "holds no exercise of these chapters"),
    "nothing": ({"nothing/essay.docx": b"PK"}, NONE, "no notebook was handed in"),
    "exits": ({"exits.ipynb": fails("import os; os._exit(0)")}, {**ALL, "fixed_loss": 0}, "ends its own process"),
    "leaves": ({"leaves.ipynb": fails("raise SystemExit")}, {**ALL, "fixed_loss": 0}, "SystemExit"),
    "kills": ({"kills.ipynb": fails("import os; os.kill(os.getppid(), 9)")}, {"fixed_loss": 0}, ""),
    "prints": ({"prints.ipynb": fails("print('x' * 2**24)")}, {**ALL, "fixed_loss": 0}, "None"),
    "memory": ({"memory.ipynb": fails("return torch.ones(2**31).sum()")}, {**ALL, "fixed_loss": 0}, ""),
    "writes": ({"writes.ipynb": fails(WRITES)}, {**ALL, "fixed_loss": 0}, "OSError"),
    "borrows": (
        {"borrows.ipynb": fails("return pooling.leave_one_out_error(keys, values, width=width)")},
        {**ALL, "fixed_loss": 0},
        "it calls leave_one_out_error",
    ),
}  # fmt: skip


def write(folder: Path, files: dict) -> None:
    for name, content in files.items():
        content, when = content if isinstance(content, tuple) else (content, 1_790_000_000)
        (file := folder / name).parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        os.utime(file, (when, when))


def graded(folder: Path, to: Path, *options: str) -> dict[str, dict[str, tuple[int, str]]]:
    """Student → exercise → (held, reason)."""
    command = ["grade", str(folder), "--to", str(to), "--chapter", CHAPTER, "--contained", *options]
    assert main(command) == 0
    with (to / "marks.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["chapter"] == CHAPTER]
    found: dict[str, dict[str, tuple[int, str]]] = {}
    for row in rows:
        assert int(row["total"]) == ALL[row["exercise"]]
        told = int(row["held"]), row["reason"]
        found.setdefault(row["student"], {})[row["exercise"]] = told
    return found


@pytest.fixture(scope="module")
def marks(tmp_path_factory) -> tuple[dict, Path]:
    folder = tmp_path_factory.mktemp("class")
    for files, _, _ in CASES.values():
        write(folder / "in", files)
    return graded(folder / "in", folder / "out", "--jobs", "2"), folder / "out"


@pytest.mark.parametrize("student", CASES)
def test_a_submission_gets_the_marks_that_it_should(student, marks):
    _, expected, words = CASES[student]
    found = marks[0][student]
    assert {name: found[name][0] for name in expected} == expected, found
    assert words in found["fixed_loss"][1]
    assert words or not found["fixed_loss"][1] or student in ("kills", "memory")


def test_each_student_gets_a_text_with_what_the_checks_say(marks):
    text = (marks[1] / "feedback" / "unmended.txt").read_text(encoding="utf-8")
    assert "loo_residuals: the course's solution passes" in text
    assert "fixed_loss: 1 of 4 tests pass." in text and "✗" in text and "Hint 1 of " in text
    assert len(list((marks[1] / "feedback").glob("*.txt"))) == len(CASES)


@pytest.mark.parametrize(
    "name", ["sub/02.ipynb", "work\\02.ipynb", "undated", "checkpoints", "__MACOSX/._02.ipynb"]
)
def test_a_zip_of_any_program_is_read(name, tmp_path):
    (tmp_path / "in").mkdir()
    with zipfile.ZipFile(tmp_path / "in" / "ana.zip", "w") as archive:
        if name == "checkpoints":
            archive.writestr("work\\.ipynb_checkpoints\\02-checkpoint.ipynb", STUB)
        info = zipfile.ZipInfo("02.ipynb" if name in ("undated", "checkpoints") else name)
        archive.writestr(info, RIGHT)
    if name == "undated":  # as programs write it that know no time; zipfile itself refuses
        content = bytearray((tmp_path / "in" / "ana.zip").read_bytes())
        for start, place in ((b"PK\x03\x04", 10), (b"PK\x01\x02", 12)):
            at = content.index(start) + place
            content[at : at + 4] = bytes(4)
        (tmp_path / "in" / "ana.zip").write_bytes(content)
    (submission,) = grade.collect(tmp_path / "in", [CHAPTER])
    expected = [] if name.startswith("__MACOSX") else [RIGHT]
    assert [content for _, _, content in submission.files] == expected and not submission.problems


def test_an_archive_in_an_archive_and_a_broken_one_are_said(tmp_path):
    with zipfile.ZipFile(tmp_path / "ana.zip", "w") as archive:
        archive.writestr("inner.zip", b"")
    (tmp_path / "ben.zip").write_bytes(b"PK")
    ana, ben = grade.collect(tmp_path, [])
    assert ana.problems == ["inner.zip lies in an archive; unpack it"]
    assert ben.problems == ["ben.zip is no archive that can be read (BadZipFile)"]


def test_two_students_of_one_name_stay_two(tmp_path):
    for number in (1, 2):
        write(tmp_path, {f"Ana_{number}_assignsubmission_file_/02.ipynb": RIGHT})
    assert [one.student for one in grade.collect(tmp_path, [])] == ["Ana (1)", "Ana (2)"]


SLEEPS = pytest.param("import time; time.sleep(10_000)", marks=pytest.mark.nightly)


@pytest.mark.parametrize("body", ["while True: pass", SLEEPS])
def test_what_never_ends_costs_its_own_row(body, tmp_path):
    write(tmp_path / "in", {"ana.ipynb": fails(body), "ben.ipynb": RIGHT})
    found = graded(tmp_path / "in", tmp_path / "out", "--seconds", "1", "--jobs", "2")
    assert found["ana"]["fixed_loss"][0] == 0 and "too long" in found["ana"]["fixed_loss"][1]
    assert {name: held for name, (held, _) in found["ben"].items()} == ALL
    assert found["ana"]["loo_residuals"][0] == 4


class SlowToDie(subprocess.Popen):
    """A process that is seen to have ended when somebody waits for it, as one that has much memory to give back."""

    def poll(self) -> int | None:
        return self.returncode


def test_a_killed_worker_costs_its_own_row(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", SlowToDie)
    kills = fails("import os; os.kill(os.getppid(), 9)")
    write(tmp_path / "in", {"ana.ipynb": kills, "ben.ipynb": RIGHT})
    found = graded(tmp_path / "in", tmp_path / "out", "--jobs", "1")
    assert found["ana"]["fixed_loss"] == (0, "its worker has ended")
    assert {name: held for name, (held, _) in found["ben"].items()} == ALL


@pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")
def test_under_bubblewrap_there_is_no_network_and_no_file_is_changed(tmp_path):
    calls = {
        "net": "import socket; socket.create_connection(('127.0.0.1', 9), 1)",
        "disk": "import os; os.rename(__file__, 'gone') if 0 else os.remove('/etc/hostname')",
    }
    write(tmp_path / "in", {f"{name}.ipynb": fails(body) for name, body in calls.items()})
    found = graded(tmp_path / "in", tmp_path / "out")
    if not re.search("bwrap", " ".join(grade.sandbox(str(tmp_path)))):
        pytest.skip("bubblewrap does not work on this system")
    assert "Read-only file system" in found["disk"]["fixed_loss"][1]
    assert re.search("Network is unreachable|refused", found["net"]["fixed_loss"][1])


@pytest.mark.nightly
def test_every_exercise_of_the_course_gets_all_marks_none_and_none(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # of the mistakes
    for page in (page for page in COURSE.notebooks if exercises(page.notebook)):
        asked = {id(one.stub): one for one in exercises(page.notebook)}
        for kind in ("right", "wrong", "stub"):
            code = [
                answer(page.notebook, asked[id(cell)], kind) if id(cell) in asked else cell.source
                for cell in notebook_of(page.notebook).cells
                if cell.cell_type == "code" and "solution" not in cell.metadata.get("tags", [])
            ]
            write(tmp_path / "in" / kind, {f"{page.notebook}.ipynb": notebook(code)})
    command = ["grade", str(tmp_path / "in"), "--to", str(tmp_path / "out"), "--contained"]
    assert main([*command, "--jobs", "2"]) == 0
    with (tmp_path / "out" / "marks.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * len(dir(cu.checks)) or COURSE.left_out
    for row in rows:
        assert row["held"] == (row["total"] if row["student"] == "right" else "0"), row


def test_root_and_an_empty_folder_are_refused_in_a_sentence(tmp_path, capsys, monkeypatch):
    assert main(["grade", str(tmp_path)]) == 1
    assert "should hold a notebook, folder or zip file of each student" in capsys.readouterr().err
    write(tmp_path, {"ana.ipynb": RIGHT})
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert main(["grade", str(tmp_path), "--to", str(tmp_path / "out")]) == 1
    assert "Grade as an ordinary user" in capsys.readouterr().err
