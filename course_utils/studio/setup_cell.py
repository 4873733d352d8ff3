"""The first code cell of a notebook that is handed out: it brings the course where it is not installed."""

from typing import TYPE_CHECKING

from course_utils.kit.release import release
from course_utils.studio.manifest import Manifest

if TYPE_CHECKING:
    from nbformat import NotebookNode

LACKING = "anywidget filelock pooch psutil sacrebleu tokenizers"
"""What the course needs beside what hosted notebooks bring; pip leaves alone what is there."""

MEET = """from course_utils.kit import release

release.meet("{release}")"""

FETCH = """# On Colab, Kaggle and the like this cell brings the course along. Where it is installed, nothing is fetched.
import importlib.util

if importlib.util.find_spec("course_utils") is None:
    %pip install --quiet --no-deps {wheel}
    %pip install --quiet {lacking}

"""


def wheel(course: Manifest) -> str:
    """The address of this release's wheel at the course's repository; empty without a repository."""
    if not course.repository:
        return ""
    name = f"attention_course-{release()}-py3-none-any.whl"
    at = "-/releases/v{}/downloads" if course.hosted_like == "gitlab" else "releases/download/v{}"
    return f"{course.repository}/{at.format(release())}/{name}"


def setup_cell(course: Manifest) -> "NotebookNode":
    """The cell, folded: the course is fetched if it is missing, and its release held against the notebook's."""
    from nbformat.v4 import new_code_cell

    fetch = FETCH.format(wheel=address, lacking=LACKING) if (address := wheel(course)) else ""
    cell = new_code_cell(fetch + MEET.format(release=release()))
    cell.metadata["jupyter"] = {"source_hidden": True}
    return cell
