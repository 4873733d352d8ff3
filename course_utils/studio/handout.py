"""The course to hand out: what a student needs to work through it, without solutions and outputs."""

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.studio import StudioError
from course_utils.studio.manifest import Manifest
from course_utils.studio.pairs import UnreadableError, bare, is_edited, read, read_source, write
from course_utils.studio.schema import OWN, OWN_LIST

if TYPE_CHECKING:
    from nbformat import NotebookNode

HEAD = "# The course, without its solutions\n"
README = f"""{HEAD}
Exercises are open, outputs are empty, and a check after each exercise tells you whether you are
right. `make lab` makes an environment and opens JupyterLab on its start page. Without make (on
Windows: `py` for `python3`, and `.venv\\Scripts\\python` for `.venv/bin/python`):

    python3 tools/bootstrap.py
    .venv/bin/python -m course_utils.studio lab
"""
PARTS = (
    ".gitignore",
    "LICENSE",
    "constraints.txt",
    "environment.yml",
    "pyproject.toml",
    "course_utils",
    "data",
    "notebooks/references.bib",
    "tools",
)
TARGETS = ("help", "lab", "clean")  # of the Makefile, those that make sense in a handout
UNWANTED = shutil.ignore_patterns("__pycache__", "*.egg-info")


class HandoutError(StudioError):
    """The handout has no place to go."""


def without_solutions(notebook: "NotebookNode") -> "NotebookNode":
    """Take out, in place, the cells tagged ``solution``."""
    notebook.cells = [c for c in notebook.cells if "solution" not in c.metadata.get("tags", [])]
    return notebook


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
    from course_utils.studio.choice import fit  # slow to import

    _make_room(to, force)
    (to / "notebooks").mkdir(parents=True)
    (to / "README.md").write_text(README, encoding="utf-8")
    for part in PARTS:
        if (root / part).is_dir():
            shutil.copytree(root / part, to / part, ignore=UNWANTED)
        elif (root / part).is_file():
            shutil.copy(root / part, to / part)
    shutil.copy(course.path, to / "book.toml")
    if (root / "Makefile").is_file():
        makefile = (root / "Makefile").read_text(encoding="utf-8")
        (to / "Makefile").write_text(_fewer_targets(makefile), encoding="utf-8")
    if course.own:
        (to / OWN).mkdir()
        shutil.copy(root / OWN_LIST, to / OWN_LIST)
    for chapter in course.everything:
        notebook = bare(without_solutions(fit(read_source(chapter.source), course, chapter)))
        write(notebook, to / chapter.folder / chapter.ipynb.name)


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
    files = [*folder.glob("notebooks/*.ipynb"), *folder.glob(f"{OWN}/*.ipynb")]
    return sorted(file.name for file in files if _is_edited(file))


def _is_edited(file: Path) -> bool:
    try:
        return is_edited(read(file))
    except UnreadableError:
        return True


def _fewer_targets(makefile: str) -> str:
    """The paragraphs of a Makefile without those of targets that a handout lacks."""
    kept = []
    for paragraph in makefile.split("\n\n"):
        named = set(re.findall(r"^([a-z]+):", paragraph, re.MULTILINE))
        if named <= set(TARGETS):
            kept.append(paragraph)
    return re.sub(r"^\.PHONY: .*$", f".PHONY: {' '.join(TARGETS)}", "\n\n".join(kept), flags=re.M)
