"""What students hand in: the notebooks of a chapter with right, wrong or no answers, for the tests of graders."""

import importlib
import os
import sys
from functools import cache
from pathlib import Path

from mistakes.table import mistakes_of
from nbformat import NotebookNode

from course_utils.files import ROOT
from course_utils.kit.exercises import Exercise
from course_utils.kit.registry import checks
from course_utils.studio import graders, manifest
from course_utils.studio.notebook_files import read_source

COURSE = manifest.load(files=False)


@cache
def notebook_of(name: str) -> NotebookNode:
    """A notebook of the course, "02_kernel_regression", as its source has it."""
    return read_source(next(one for one in COURSE.notebooks if one.notebook == name).source)


@cache
def exercises(notebook: str) -> list[Exercise]:
    """The exercises of a notebook that have a check."""
    return graders.checked(notebook_of(notebook))


def slug_of(notebook: str) -> str:
    """The chapter of a notebook: "kernel_regression" for "02_kernel_regression_further"."""
    return notebook.removesuffix("_further").partition("_")[2]


def wrong_answer(notebook: str, exercise: Exercise) -> str:
    """Code of a wrong answer of tests/mistakes for which no property holds."""
    slug = slug_of(notebook)
    module = importlib.import_module(f"mistakes.{slug}")
    if on_paper := getattr(module, "ON_PAPER", {}).get(exercise.name):
        return f"def {exercise.function}():\n    return {list(on_paper.values())!r}"
    mark = getattr(checks, exercise.name).mark
    answers = (one.answer for one in mistakes_of(slug) if one.check == exercise.name)
    name = next(one.__name__ for one in answers if not mark(one).points)
    path = f"import sys\n\nsys.path.append({str(Path(__file__).parent)!r})"
    return f"{path}\nfrom mistakes.{slug} import {name} as _wrong\n\n{exercise.function} = _wrong"


def answer(notebook: str, exercise: Exercise, kind: str) -> str:
    """The cell of a student who is "right", "wrong", or leaves the "stub"."""
    if kind == "wrong":
        return wrong_answer(notebook, exercise)
    return exercise.answer if kind == "right" else exercise.stub.source


def environment() -> dict[str, str]:
    """An activated environment, in which a kernel finds this checkout's package."""
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COURSE_STRICT": "1",
    }
