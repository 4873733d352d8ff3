"""The handout: the course as students get it, without solutions and outputs. ``make handout`` writes it."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.kit.exercises import STUBS, cell_text, exercises
from course_utils.kit.release import release
from course_utils.studio import originals, written
from course_utils.studio.manifest import Manifest
from course_utils.studio.notebook_files import normalize, read_source, write_notebook

if TYPE_CHECKING:
    from nbformat import NotebookNode

TEMPLATES = Path(__file__).parent / "templates"
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
UNWANTED = shutil.ignore_patterns("__pycache__", "*.egg-info")
START = 'from course_utils.kit import release\n\nrelease.start_notebook("{release}")'


def build(course: Manifest, root: Path, to: Path) -> list[str]:
    """Write a handout: the notebooks without their solutions, and everything that they need to run.

    Args:
        course: the notebooks to hand out.
        root: the repository, from which `PARTS` are copied.
        to: the folder; it is new, empty, or an earlier handout, whose own files are then replaced.

    Returns:
        What is in the folder and no handout's; it is as it was.

    Raises:
        StudioError: the folder holds something else, or a file of a handout in which somebody has worked.
    """
    written.check(to)
    with tempfile.TemporaryDirectory() as new:
        _write(course, root, Path(new))
        return written.replace(Path(new), to)


def _write(course: Manifest, root: Path, to: Path) -> None:
    from nbconvert.preprocessors import TagRemovePreprocessor  # both are slow to import

    from course_utils.studio.subset import trim

    (to / "notebooks").mkdir()
    for part in PARTS:
        if (root / part).is_dir():
            shutil.copytree(root / part, to / part, ignore=UNWANTED)
        elif (root / part).is_file():
            shutil.copy(root / part, to / part)
    shutil.copy(course.path, to / "book.toml")
    stubs: dict[str, str] = {}
    without = TagRemovePreprocessor(enabled=True, remove_cell_tags={"solution"})
    for chapter in course.notebooks:
        notebook, _ = without(trim(read_source(chapter.source), course, chapter), {})
        notebook.cells.insert(1, setup_cell(course))
        write_notebook(normalize(notebook), to / "notebooks" / chapter.ipynb.name)
        stubs |= {e.name: cell_text(e.stub) for e in exercises(notebook.cells) if e.stub}
    texts = {
        "README.md": template("handout.md", release=release()),
        "Makefile": template("handout.makefile.txt"),
        ".gitattributes": template("handout.gitattributes.txt"),
        STUBS: json.dumps(stubs, indent=1, ensure_ascii=False) + "\n",
    }
    for name, text in texts.items():
        (to / name).write_text(text, encoding="utf-8")
    originals.pack(to)


def template(file: str, /, **values: str) -> str:
    """The text of a file in `TEMPLATES`, with the values in place of the names in braces."""
    return (TEMPLATES / file).read_text(encoding="utf-8").format(**values)


# The first code cell ----------------------------------------------------------------------------


def setup_cell(course: Manifest) -> "NotebookNode":
    """The first cell of a notebook, folded: it installs the course if it is missing, and compares their releases."""
    from nbformat.v4 import new_code_cell

    fetch = template("fetch.txt", wheel=wheel(course)) if course.repository else ""
    metadata = {"jupyter": {"source_hidden": True}}
    return new_code_cell(fetch + START.format(release=release()), metadata=metadata)


def wheel(course: Manifest) -> str:
    """The address of this release's wheel in the course's repository."""
    name = f"attention_course-{release()}-py3-none-any.whl"
    gitlab = course.hosted_like == "gitlab"
    folder = "-/releases/v{}/downloads" if gitlab else "releases/download/v{}"
    return f"{course.repository}/{folder.format(release())}/{name}"
