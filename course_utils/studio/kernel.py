"""The kernels of the course: their environment, and how they describe their language."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from course_utils.files import ROOT

STARTUP = Path(__file__).with_name("kernel_startup.py")

PERSONAL = (
    *("PYTHON", "IPYTHON", "JUPYTER", "JPY_", "VSCODE_", "MPLBACKEND", "MATPLOTLIBRC"),
    *("PYTEST_ADDOPTS", "PYTEST_PLUGINS"),
    *("LANG", "LC_", "TZ", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR"),
)  # fmt: skip
"""How the names of variables begin that hold a person's settings of what runs or shows a notebook."""
KEPT = ("PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")
"""Those of them that say where Python is and where it writes."""


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Environment variables for a student's Lab: `environ`, and the course's startup file if it names none."""
    return {"PYTHONSTARTUP": str(STARTUP), **environ}


def clean_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Environment variables for all else that the course starts: `environ` without a person's settings.

    So a notebook comes out the same and an answer gets the same points whatever profile, startup file, kernelspec,
    matplotlibrc, language or time zone somebody has. Processors, threads and caches stay as they are set.
    """
    home = _empty_home()
    others = {
        name: value
        for name, value in environ.items()
        if name in KEPT or not name.startswith(PERSONAL)
    }
    return others | {
        "COURSE_STRICT": "1",  # a claim that does not hold is an error
        "COURSE_HOME": str(home / "course"),  # nothing has passed, no answer is kept
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "jupyter"),
        "JUPYTER_DATA_DIR": str(home / "jupyter"),  # or "python3" may be another Python
        "MATPLOTLIBRC": str(home / "matplotlibrc"),
        "PYTHONPATH": str(ROOT),  # also if the course isn't installed
        "PYTHONSTARTUP": str(STARTUP),
        "PYTHONUTF8": "1",
        "TZ": "UTC",
    }


def use_clean_environment() -> None:
    """Give this process, and all that it starts, the clean environment."""
    clean = clean_environment()
    os.environ.clear()
    os.environ.update(clean)


@cache
def _empty_home() -> Path:
    """A folder for settings, with an empty matplotlibrc; it is gone when this process ends."""
    home = Path(tempfile.mkdtemp(prefix="course-home-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "matplotlibrc").touch()
    return home


LANGUAGE = {
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "pygments_lexer": "ipython3",
}
"""The language in a notebook's metadata, without the version, which differs from machine to machine."""


def set_language_info() -> None:
    """Let the kernel describe its language as `LANGUAGE`, so that a notebook just opened has no unsaved change."""
    from ipykernel.ipkernel import IPythonKernel

    IPythonKernel.language_info = dict(LANGUAGE)
