"""The course to hand out: what a student needs to work through it, without solutions and outputs.

Stands below `notebooks`, whose ``handout`` command calls `build`.
"""

import shutil
from pathlib import Path

import jupytext
from nbconvert.preprocessors import ClearOutputPreprocessor, TagRemovePreprocessor
from nbformat import NotebookNode

from course_utils.studio.manifest import Manifest
from course_utils.studio.notebooks import read_source, write

HEAD = "# The course, without its solutions\n"
README = f"""{HEAD}
Exercises are open, outputs are empty, and a check after each exercise tells you whether you are
right. `make lab` makes an environment and opens JupyterLab on the first chapter. Without make:

    python3 -m venv .venv
    .venv/bin/python -m pip install -c constraints.txt -e .
    .venv/bin/python -m course_utils.studio.lab
"""
PARTS = (
    ".gitignore",
    "LICENSE",
    "Makefile",
    "book.toml",
    "constraints.txt",
    "environment.yml",
    "pyproject.toml",
    "course_utils",
    "data",
    "notebooks/references.bib",
)
UNWANTED = shutil.ignore_patterns("__pycache__", "*.egg-info")


class HandoutError(RuntimeError):
    """The handout has no place to go."""


def without_solutions(notebook: NotebookNode) -> NotebookNode:
    """Take out, in place, the cells tagged ``solution`` and all outputs."""
    for preprocessor in (
        TagRemovePreprocessor(remove_cell_tags={"solution"}),
        ClearOutputPreprocessor(),
    ):
        notebook, _ = preprocessor.preprocess(notebook, {})
    return notebook


def build(course: Manifest, root: Path, to: Path) -> None:
    """Write both halves of each pair without solutions, and all that they need to run.

    Args:
        course: the chapters to hand out.
        root: the repository, from which `PARTS` are copied.
        to: a folder that is new, empty, or an earlier handout, which is replaced.

    Raises:
        HandoutError: the folder holds something else.
    """
    _make_room(to)
    (to / "notebooks" / "source").mkdir(parents=True)
    (to / "README.md").write_text(README, encoding="utf-8")
    for part in PARTS:
        if (root / part).is_dir():
            shutil.copytree(root / part, to / part, ignore=UNWANTED)
        elif (root / part).is_file():
            shutil.copy(root / part, to / part)
    for chapter in course.chapters:
        notebook = without_solutions(read_source(chapter.source))
        write(notebook, to / "notebooks" / chapter.ipynb.name)
        _write_source(notebook, to / "notebooks" / "source" / chapter.source.name)


def _make_room(to: Path) -> None:
    readme = to / "README.md"
    earlier = readme.is_file() and readme.read_text(encoding="utf-8").startswith(HEAD)
    if to.exists() and not earlier and (to.is_file() or any(to.iterdir())):
        raise HandoutError(f"{to} holds something else; name a new folder with --to, or empty it.")
    shutil.rmtree(to, ignore_errors=True)


def _write_source(notebook: NotebookNode, path: Path) -> None:
    notebook.metadata["jupytext"] = {"notebook_metadata_filter": "kernelspec,-all"}
    jupytext.write(notebook, path, fmt="py:percent")
