"""Mark a folder of notebooks with otter, one after the other and without Docker:

    python -m course_utils.studio.mark dist submissions

`dist` is what `otter assign` wrote. `submissions` gets marks.csv, with a row for each notebook, and feedback/, with a
text for each that says what the checks found. What the students wrote runs on this machine, with your rights.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from course_utils.studio import StudioError, kernel
from course_utils.studio.notebook_files import KERNEL

SECONDS = 120
"""The time limit of a notebook. One whose cell loops forever has no points after it."""


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
        StudioError: it is no notebook.
        subprocess.SubprocessError: otter could not grade the notebook, or the time is over.
    """
    with tempfile.TemporaryDirectory() as to, log.open("w", encoding="utf-8") as file:
        content = readable(notebook)
        with zipfile.ZipFile(autograder) as zipped:
            name = json.loads(zipped.read("otter_config.json")).get("assignment_name")
        content["metadata"].setdefault("otter", {"assignment_name": name})
        (copy := Path(to, "submission.ipynb")).write_text(json.dumps(content), encoding="utf-8")
        command = [sys.executable, "-m", "otter", "run", "--no-logo"]
        command += ["-a", str(autograder), "-o", to, str(copy)]
        process = {"stdout": file, "stderr": file, "env": kernel.clean_environment()}
        subprocess.run(command, timeout=SECONDS, check=True, **process)
        tests = json.loads(Path(to, "results.json").read_text(encoding="utf-8"))["tests"]
    return [test for test in tests if "score" in test]


def mark(assignment: Path, folder: Path) -> None:
    """Mark every notebook in a folder and in the folders inside it.

    Args:
        assignment: the folder that `otter assign` wrote.
        folder: the submissions. Their marks and feedback are written into it.

    Raises:
        StudioError: the first folder has no autograder, or several, or the second holds no notebook.
    """
    zips = sorted(assignment.glob("autograder/*.zip"))
    if len(zips) != 1:
        found = "no" if not zips else str(len(zips))
        raise StudioError(
            f"{assignment / 'autograder'} has {found} zip files, and one is needed: name the folder that `otter assign "
            "NAME.ipynb dist` wrote (dist), and make it again if you made it several times."
        )
    (autograder,) = zips
    if not any(folder.rglob("*.ipynb")):
        raise StudioError(
            f"{folder} holds no notebooks: name the folder with what your students handed in, unpacked."
        )
    feedback = folder / "feedback"
    feedback.mkdir(exist_ok=True)
    rows = []
    for notebook in sorted(folder.rglob("*.ipynb")):
        parts = notebook.relative_to(folder).with_suffix("").parts
        if any(part.startswith(".") for part in parts):  # a checkpoint of Jupyter's
            continue
        name = "_".join(parts)
        row = {"submission": name, "total": 0, "note": ""}
        try:
            tests = results(notebook, autograder, feedback / f"{name}.log")
        except StudioError as error:
            row["note"] = f"not graded: {error}"
        except subprocess.SubprocessError as error:
            row["note"] = f"not graded ({type(error).__name__}), see feedback/{name}.log"
        else:
            points = {test["name"]: test["score"] for test in tests}
            row |= {"total": sum(points.values())} | points
            text = "\n\n".join(test["output"] for test in tests)
            (feedback / f"{name}.txt").write_text(text, encoding="utf-8")
        rows.append(row)
        print(name, row["total"], row["note"], flush=True)
    columns = dict.fromkeys(column for row in rows for column in row)
    with (folder / "marks.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, columns, restval=0)
        writer.writeheader()
        writer.writerows(rows)


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
    try:
        mark(options.dist, options.submissions)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
