"""Open JupyterLab on the course's start page: ``python -m course_utils.studio lab``, which is ``make lab``.

The page that it opens and the panels beside it are the course's own. Further arguments go on to Lab, such as
``--port 9000``.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import nbformat
from IPython.core.formatters import DisplayFormatter
from nbformat import NotebookNode
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_utils.files import ROOT
from course_utils.kit.passed import passed_exercises
from course_utils.studio import StudioError, kernel, manifest
from course_utils.studio.course_map import CourseMap
from course_utils.studio.handout import template
from course_utils.studio.manifest import START, Manifest
from course_utils.studio.notebook_files import normalize, write_notebook
from course_utils.studio.place import place

SETTINGS = Path(__file__).parent / "lab_settings"
"""Folder of defaults below the student's own settings: no news, no search for updates, Markdown rendered."""
WORKSPACES = "_build/lab"  # which panels are open: of this course only
EXTENSIONS = (
    "--ServerApp.jpserver_extensions=jupyterlab_jupytext=False",
    "--ServerApp.jpserver_extensions=course_utils.studio.saving=True",
)
"""Server extensions: without jupytext, Lab leaves the sources alone; with `saving`, a mere run changes no file."""
CONTENTS = "@jupyterlab/toc:plugin"  # the panel's name in a layout
LAYOUT = {
    "left": {
        "collapsed": False,
        "visible": True,
        "current": CONTENTS,
        "widgets": ["filebrowser", "running-sessions", CONTENTS, "extensionmanager.main-view"],
    },
    "right": {"collapsed": True},
    "relativeSizes": [0.2, 0.8, 0],
}
"""Lab's layout at the first start, with the table of contents open. Later ones are the student's."""


def has_display(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Whether a browser can open here: not over SSH, not in CI, not without a screen."""
    if environ.get("CI") or environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return False
    if platform in ("darwin", "win32"):
        return True
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def is_root() -> bool:
    """Whether this is the superuser, for whom Lab starts only with ``--allow-root``."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def start_page(course: Manifest) -> NotebookNode:
    """Lab's first page: where to go on, and the map, on which a way can be chosen and solved exercises show."""
    passed = {exercise: entry["day"] for exercise, entry in passed_exercises().items()}
    shown = DisplayFormatter().format(CourseMap(course, passed))[0]
    look_up = [f"[{page.title}]({page.ipynb.name})" for page in course.appendices]
    text = template(
        "start.md",
        title=course.title,
        place=place(course.chapters, passed),
        appendices=f"To look something up: {' · '.join(look_up)}" if look_up else "",
    )
    code = new_code_cell(
        "from course_utils.studio.course_map import course_map\n\ncourse_map(mine=True)",
        execution_count=1,
        outputs=[new_output("execute_result", data=shown, execution_count=1)],
        metadata={"jupyter": {"source_hidden": True}},
    )
    return normalize(new_notebook(cells=[new_markdown_cell(text), code]))


def prepare(course: Manifest, root: Path = ROOT) -> Path:
    """Write the start page and, before the first start, the layout; what was downloaded is trusted then.

    Returns:
        What to open: the start page, or the first chapter where nothing can be written.
    """
    page = root / "notebooks" / START
    if not page.exists():
        _trust(course)
    try:
        _open_contents(root / WORKSPACES)
        write_notebook(start_page(course), page)
        _sign(page)
    except OSError:  # a folder that is read-only
        return course.chapters[0].ipynb
    return page


def _trust(course: Manifest) -> None:
    """Sign the notebooks, so that quizzes answer before any cell has run."""
    for chapter in course.notebooks:
        with contextlib.suppress(OSError, ValueError):  # not there, or none
            _sign(chapter.ipynb)


def _sign(ipynb: Path) -> None:
    NotebookNotary().sign(nbformat.read(ipynb, as_version=4))


def _open_contents(folder: Path) -> None:
    from jupyterlab_server.workspaces_handler import WorkspacesManager

    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        layout = {"data": {"layout-restorer:data": LAYOUT}, "metadata": {"id": "default"}}
        WorkspacesManager(str(folder)).save("default", json.dumps(layout))


def arguments(page: Path, *, browser: bool, root: bool) -> list[str]:
    """The options of ``jupyter lab``, for a file inside the repository."""
    return [
        f"--ServerApp.root_dir={ROOT}",
        f"--LabApp.default_url=/lab/tree/{page.relative_to(ROOT).as_posix()}",
        f"--LabApp.app_settings_dir={SETTINGS}",
        "--Application.log_level=WARN",
        *EXTENSIONS,
        *[f"--LabApp.workspaces_dir={ROOT / WORKSPACES}"] * (ROOT / WORKSPACES).is_dir(),
        *["--no-browser"] * (not browser),
        *["--allow-root"] * root,
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Start Lab in the place of this process."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio lab",
        allow_abbrev=False,
        description="Open JupyterLab on the course's start page.",
        epilog="Further arguments go on to Lab, such as --port 9000; `jupyter lab --help` names them.",
    )
    _, further = parser.parse_known_args(argv)
    try:
        course = manifest.load(files=False)  # a student's own notebook is no mistake
    except StudioError as error:
        sys.exit(str(error))
    options = arguments(prepare(course), browser=has_display(), root=is_root())
    command = [sys.executable, "-m", "jupyterlab", *options, *further]
    if os.name == "nt":  # exec leaves the console there, and Lab behind it
        return subprocess.call(command, env=kernel.environment())
    os.execve(sys.executable, command, kernel.environment())


if __name__ == "__main__":
    sys.exit(main())
