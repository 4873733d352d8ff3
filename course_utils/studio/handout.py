"""The course to hand out: what a student needs to work through it, without solutions and outputs."""

import json
import shutil
from pathlib import Path

from course_utils.kit.exercises import STUBS, exercises, text_of
from course_utils.kit.release import release
from course_utils.studio import StudioError
from course_utils.studio.manifest import Manifest
from course_utils.studio.pairs import UnreadableError, bare, is_edited, read, read_source, write
from course_utils.studio.setup_cell import setup_cell

HEAD = "# The course, without its solutions\n"
README = f"""{HEAD}
Release {{release}}.

Exercises are open, outputs are empty, and a check after each exercise tells you whether you are
right. `make lab` makes an environment and opens JupyterLab on its start page. Without make (on
Windows: `py` for `python3`, and `.venv\\Scripts\\python` for `.venv/bin/python`):

    python3 tools/bootstrap.py
    .venv/bin/python -m course_utils.studio lab

## A new release

Unpack the new release into a folder of its own, beside this one, and never over it: a zip file replaces the notebooks
that you have worked in. Then open the new notebooks. In each exercise whose check you have run, the check of the empty
stub tells you where your answer is, and `cu.checks.fixed_loss.answers()` shows it. Notes and cells of your own stay in
the old folder.

On a hub, where a link pulls the course, a notebook that you have changed stays as it is. Rename it and follow the link
again to get the new one beside it.

## Your answers

When a check runs, the answer is kept in your home, in the folder `.attention-course` (in what `COURSE_HOME` names, if
you set it), with the list of what has passed. Only you can read it, and nothing is sent: of each exercise the last
five answers, and the last that passed. If a notebook shows the stub where you had an answer, its check says so.
In a new cell,

    cu.checks.fixed_loss.answers()     # shows what is kept of this exercise
    cu.checks.fixed_loss.start_over()  # the cell becomes the stub; your answer is kept

To delete all of it, delete the folder. An answer whose check has never run stands in its notebook alone.
"""
ATTRIBUTES = """\
# A merge never mixes lines of two notebooks: the one that a student has worked in stays as it is.
*.ipynb -merge
"""
PARTS = (
    ".gitignore",
    ".devcontainer",
    ".dockerignore",
    "CITATION.cff",
    "Dockerfile",
    "LICENSE",
    "constraints.txt",
    "environment.yml",
    "pyproject.toml",
    "setup.py",
    "course_utils",
    "data",
    "notebooks/references.bib",
    "tools",
)
MAKEFILE = """\
lab: .venv/.stamp
\t@.venv/bin/python -m course_utils.studio lab

.venv/.stamp: pyproject.toml constraints.txt
\t@python3 tools/bootstrap.py

.PHONY: lab
"""
UNWANTED = shutil.ignore_patterns("__pycache__", "*.egg-info")


class HandoutError(StudioError):
    """The handout has no place to go."""


def build(course: Manifest, root: Path, to: Path, *, force: bool = False) -> None:
    """Write the notebooks without solutions and sources, and all that they need to run.

    Args:
        course: the notebooks to hand out.
        root: the repository, from which `PARTS` are copied.
        to: a folder that is new, empty, or an earlier handout, which is replaced.
        force: replace an earlier handout even if somebody has worked in it.

    Raises:
        HandoutError: the folder holds something else, or somebody's work.
    """
    from nbconvert.preprocessors import TagRemovePreprocessor  # both are slow to import

    from course_utils.studio.choice import fit

    _make_room(to, force)
    (to / "notebooks").mkdir(parents=True)
    readme = README.format(release=release())
    (to / "README.md").write_text(readme, encoding="utf-8")
    for part in PARTS:
        if (root / part).is_dir():
            shutil.copytree(root / part, to / part, ignore=UNWANTED)
        elif (root / part).is_file():
            shutil.copy(root / part, to / part)
    shutil.copy(course.path, to / "book.toml")
    (to / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    stubs: dict[str, str] = {}
    without = TagRemovePreprocessor(enabled=True, remove_cell_tags={"solution"})
    for chapter in course.notebooks:
        notebook, _ = without(fit(read_source(chapter.source), course, chapter), {})
        notebook.cells.insert(1, setup_cell(course))
        write(bare(notebook), to / "notebooks" / chapter.ipynb.name)
        stubs |= {one.name: text_of(one.stub) for one in exercises(notebook.cells) if one.stub}
    text = json.dumps(stubs, indent=1, ensure_ascii=False) + "\n"
    (to / STUBS).write_text(text, encoding="utf-8")
    (to / ".gitattributes").write_text(ATTRIBUTES, encoding="utf-8")


def _make_room(to: Path, force: bool) -> None:
    readme = to / "README.md"
    earlier = readme.is_file() and readme.read_text(encoding="utf-8").startswith(HEAD)
    if to.exists() and not earlier and (to.is_file() or any(to.iterdir())):
        raise HandoutError(f"{to} holds something else; name a new folder with --to, or empty it.")
    if earlier and not force and (edited := _edited(to)):
        raise HandoutError(
            f"Somebody has worked in {to}: {', '.join(edited)}. Move that folder away, name another "
            "with --to, or replace it with --force."
        )
    shutil.rmtree(to, ignore_errors=True)


def _edited(folder: Path) -> list[str]:
    """The notebooks of a handout with a cell that was not handed out."""
    return sorted(file.name for file in folder.glob("notebooks/*.ipynb") if _is_edited(file))


def _is_edited(file: Path) -> bool:
    try:
        return is_edited(read(file))
    except UnreadableError:
        return True
