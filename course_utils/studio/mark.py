"""Mark a folder of notebooks with otter, one after the other and without Docker:

    python -m course_utils.studio.mark dist submissions

`dist` is what `otter assign` wrote. `submissions` gets marks.csv, with a row for each notebook and for what lies where
none is, and feedback/, with a text for each that says what the checks found. What the students wrote runs on this
machine, with your rights.
"""

import argparse
import contextlib
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.files import atomic_write
from course_utils.studio import StudioError, kernel
from course_utils.studio.notebook_files import KERNEL
from course_utils.studio.originals import ORIGINALS

SECONDS = 120
"""The time limit of a notebook. One whose cell loops forever has no points after it."""
FEEDBACK = "feedback"
LATER = "not graded: the command ended before"
"""The note of a submission until it is graded."""
LONGEST = 200
"""The bytes of a name of feedback; file systems take 255."""
ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
STAY = """\
import os
get_ipython().events.register("pre_run_cell", lambda info, go=os.chdir, here=os.getcwd(): go(here))"""
"""A cell after which each cell begins in this folder, where otter looks for its tests, whatever `%cd` was before."""


def readable(file: Path) -> dict[str, Any]:
    """A submission's notebook in the form that otter reads, with what another program left out or named otherwise.

    Raises:
        StudioError: it is none; the message says what it is, and what to do.
    """
    import nbformat

    data = file.read_bytes()
    try:
        notebook = json.loads(data)  # with or without a byte order mark
        notebook = {"metadata": {}} | notebook
        if "worksheets" in notebook:
            notebook = nbformat.reads(json.dumps(notebook | {"nbformat": 3}), as_version=4)
        cells = [_cell(cell) for cell in notebook["cells"]]
    except (ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError) as error:
        if not data.strip():
            raise StudioError("the file is empty: ask for it again") from error
        if b"\n=======" in data:
            raise StudioError(
                "a merge left its marks in it: keep one side of each in an editor"
            ) from error
        raise StudioError(
            "it is no notebook, or a part of it is missing: ask for it again"
        ) from error
    metadata = _dict(notebook["metadata"]) | {"kernelspec": KERNEL}  # not that of another computer
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    kind = cell.get("cell_type")
    source = cell.get("source", "")
    shared = {
        "cell_type": kind if kind in ("code", "markdown") else "raw",
        "metadata": _dict(cell.get("metadata")),
        "source": source if isinstance(source, str) else "".join(source),
    }
    return shared | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def _dict(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def results(notebook: Path, autograder: Path, log: Path) -> list[dict]:
    """The exercises of a submission with their scores and texts, as otter reports them.

    Args:
        notebook: the submission.
        autograder: the zip file that `otter assign` wrote.
        log: a file for everything that otter prints.

    Raises:
        StudioError: it is no notebook, or otter gave no points for it; the message says why.
    """
    content = readable(notebook)
    content["cells"].insert(0, _cell({"cell_type": "code", "source": STAY}))
    with tempfile.TemporaryDirectory() as to, log.open("w", encoding="utf-8") as file:
        with zipfile.ZipFile(autograder) as zipped:
            name = json.loads(zipped.read("otter_config.json")).get("assignment_name")
        content["metadata"].setdefault("otter", {"assignment_name": name})
        (copy := Path(to, "submission.ipynb")).write_text(json.dumps(content), encoding="utf-8")
        command = [sys.executable, "-m", "otter", "run", "--no-logo"]
        command += ["-a", str(autograder), "-o", to, str(copy)]
        process = {"stdout": file, "stderr": file, "env": kernel.clean_environment()}
        try:
            subprocess.run(command, timeout=SECONDS, check=True, **process)
        except subprocess.TimeoutExpired as error:
            raise StudioError(f"it takes longer than {SECONDS} seconds") from error
        except subprocess.CalledProcessError as error:
            raise StudioError(_last_line(log) or "otter ended without a word") from error
        tests = json.loads(Path(to, "results.json").read_text(encoding="utf-8"))["tests"]
    if scored := [test for test in tests if "score" in test]:
        return scored
    raise StudioError(_last_line(log) or "otter gave no points")


def _last_line(file: Path) -> str:
    lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")


# What was handed in -----------------------------------------------------------------------------


@dataclass
class Submission:
    """A file to mark, or what lies where one should be.

    Attributes:
        name: its path with _ for /, which no other submission has.
        notebook: the file; None if there is none.
        note: then what is there instead.
    """

    name: str
    notebook: Path | None
    note: str = ""

    @property
    def file(self) -> str:
        """The name of its feedback, which any file system takes."""
        if len(self.name.encode()) <= LONGEST:
            return self.name
        digest = hashlib.sha256(self.name.encode()).hexdigest()[:8]
        return self.name.encode()[-LONGEST:].decode(errors="ignore") + f"_{digest}"


def submissions(folder: Path) -> list[Submission]:
    """What is in a folder and in those inside it: each notebook, and whatever lies where no notebook is.

    A file beside a notebook or below it is that student's own. A folder without a notebook has one entry, as has an
    archive, wherever it is.
    """
    found: list[Submission] = []
    taken: set[str] = set()
    _look(folder, folder, False, found, taken)
    return found


def _look(folder: Path, at: Path, beside: bool, found: list[Submission], taken: set[str]) -> None:
    """Add what is in `at`; `beside` says whether a notebook lies in a folder around it."""
    inside = [path for path in sorted(at.iterdir()) if not _is_by_the_way(path, folder)]
    beside = beside or any(_is_notebook(path) for path in inside)
    beside = beside and at != folder  # there each file is another student's
    beside = beside or (at / "book.toml").is_file()  # a whole handout
    for path in inside:
        if path.is_dir() and not path.is_symlink() and _has_work(path, folder):
            _look(folder, path, beside, found, taken)
            continue
        if _is_notebook(path):
            note = ""
        elif _is_archive(path):
            note = "this is an archive: unpack it and mark again"
        elif not beside and (at == folder or path.is_dir()):
            note = _without_notebook(path, folder)
        else:
            note = None
        if note is None:
            continue
        name = _plain(path.relative_to(folder), taken)
        found.append(
            Submission(name, None if note else path, note and f"not graded: {_said(note)}")
        )


def _without_notebook(path: Path, root: Path) -> str | None:
    if path.is_file():
        return "this is no notebook: ask for it"
    inside = list(path.rglob("*"))
    names = sorted(p.name for p in inside if not p.is_dir() and not _is_by_the_way(p, root))
    if inside and not names:  # only what programs have written
        return None
    return f"there is no notebook{' but ' * bool(names)}{', '.join(names[:3])}: ask for it"


def _has_work(folder: Path, root: Path) -> bool:
    files = (p for p in folder.rglob("*") if not _is_by_the_way(p, root))
    return any(_is_notebook(path) or _is_archive(path) for path in files)


def _is_notebook(path: Path) -> bool:
    """Whether its name says so, also if a program has written it in capitals or added .txt, and if it can't be read."""
    name = path.name.lower().removesuffix(".txt").removesuffix(".json")
    return name.endswith(".ipynb") and not path.is_dir()


def _is_archive(path: Path) -> bool:
    return path.name.lower().endswith(ARCHIVES) and not path.is_dir()


def _is_by_the_way(path: Path, root: Path) -> bool:
    """Whether it is a program's, or what an earlier call has written."""
    parts = path.relative_to(root).parts
    ours = parts[0] == FEEDBACK or (len(parts) == 1 and re.fullmatch(r"marks\w*\.csv", parts[0]))
    theirs = any(part.startswith((".", "__MACOSX", "~$")) for part in parts)
    return bool(ours) or theirs or path.name.lower() in ("thumbs.db", "desktop.ini", ORIGINALS)


def _plain(path: Path, taken: set[str]) -> str:
    stem = path.parent / re.sub(r"\.ipynb(\.txt|\.json)?$", "", path.name, flags=re.IGNORECASE)
    name = first = _said("_".join(stem.parts))
    count = 1
    while name.casefold() in taken:  # two names that some file systems take for one
        count += 1
        name = f"{first}_{count}"
    taken.add(name.casefold())
    return name


def _said(text: str) -> str:
    """The text without bytes that are no UTF-8, as in names of old archives."""
    return os.fsencode(text).decode("utf-8", "replace")


# Marks ------------------------------------------------------------------------------------------


class Marks:
    """The table of marks. It is written whole after each student, so what is done is kept, whatever happens.

    Args:
        folder: where marks.csv is written. One that is there already becomes marks_before.csv.
        names: of all submissions.
    """

    def __init__(self, folder: Path, names: list[str]):
        self.file = folder / "marks.csv"
        self.rows = {name: {"submission": name, "total": 0, "note": LATER} for name in names}
        if self.file.is_file():
            with contextlib.suppress(OSError):
                shutil.copy(self.file, folder / "marks_before.csv")
        self.write()

    def add(self, name: str, points: dict[str, float], note: str) -> dict:
        """Give a submission its points and its note, and write the table; returns its row."""
        points = {key: _number(value) for key, value in points.items()}
        total = _number(sum(points.values()))
        self.rows[name] = row = {"submission": name, "total": total, "note": note} | points
        self.write()
        return row

    def write(self) -> None:
        """Write the table. If its file can't be written, another one takes its place."""
        try:
            self._write(self.file)
        except OSError as error:
            blocked, count = self.file, 2
            while (other := blocked.with_name(f"marks_{count}.csv")).exists():
                count += 1
            try:
                self._write(other)
            except OSError:
                raise StudioError(
                    f"{blocked.parent} can't be written ({error.strerror}): copy the folder to where you may write."
                ) from error
            self.file = other
            why = "it may be open in another program"
            print(f"{blocked} can't be written ({why}): the marks are in {other.name}", flush=True)

    def _write(self, path: Path) -> None:
        columns = dict.fromkeys(column for row in self.rows.values() for column in row)
        with atomic_write(path) as part, part.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, columns, restval=0)
            writer.writeheader()
            for row in self.rows.values():
                writer.writerow(row | {key: _text(row[key]) for key in ("submission", "note")})


def _number(value: float) -> float:
    """Points without a rounding error, and whole ones without a point, which not every Excel reads."""
    value = round(value, 4)
    return int(value) if value == int(value) else value


def _text(value: str) -> str:
    """A text that a spreadsheet takes for no formula."""
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def mark(assignment: Path, folder: Path) -> None:
    """Mark every notebook in a folder and in the folders inside it.

    Args:
        assignment: the folder that `otter assign` wrote.
        folder: the submissions. Their marks and feedback are written into it.

    Raises:
        StudioError: the first folder has no autograder, or several, or the second holds nothing or can't be written.
    """
    zips = sorted(assignment.glob("autograder/*.zip"))
    if len(zips) != 1:
        found = "no" if not zips else str(len(zips))
        raise StudioError(
            f"{assignment / 'autograder'} has {found} zip files, and one is needed: name the folder that `otter assign "
            "NAME.ipynb dist` wrote (dist), and make it again if you made it several times."
        )
    (autograder,) = zips
    handed_in = submissions(folder) if folder.is_dir() else []
    if not any(submission.notebook for submission in handed_in):
        raise StudioError(
            f"{folder} holds no notebooks: name the folder with what your students handed in, unpacked."
        )
    feedback = folder / FEEDBACK
    try:
        feedback.mkdir(exist_ok=True)
    except OSError as error:
        raise StudioError(f"{feedback} can't be written ({error.strerror}).") from error
    marks = Marks(folder, [submission.name for submission in handed_in])
    for submission in handed_in:
        points, note = {}, submission.note
        if submission.notebook:
            points, note = _graded(submission.notebook, autograder, feedback / submission.file)
        row = marks.add(submission.name, points, note)
        print(submission.name, row["total"], note, flush=True)
    print(f"The marks are in {marks.file}", flush=True)


def _graded(notebook: Path, autograder: Path, feedback: Path) -> tuple[dict[str, float], str]:
    """The points of a notebook, and a note if it has none; whatever goes wrong with it is no other student's loss."""
    log, text = (feedback.with_name(f"{feedback.name}.{kind}") for kind in ("log", "txt"))
    text.unlink(missing_ok=True)  # of an earlier call
    see = f"; see feedback/{log.name}"
    try:
        tests = results(notebook, autograder, log)
        text.write_text("\n\n".join(test["output"] for test in tests), encoding="utf-8")
        return {test["name"]: test["score"] for test in tests}, ""
    except StudioError as error:
        return {}, f"not graded: {error}{see if log.is_file() else ''}"
    except OSError as error:
        return {}, f"not graded: {error.strerror or error}"
    except Exception as error:
        return {}, f"not graded: {type(error).__name__}: {error}{see}"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio.mark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dist", type=Path, help="what `otter assign` wrote")
    parser.add_argument("submissions", type=Path, help="what your students handed in")
    options = parser.parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name that this terminal can't show
    try:
        mark(options.dist, options.submissions)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "Interrupted: the marks so far are kept, and the others have a note.", file=sys.stderr
        )
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
