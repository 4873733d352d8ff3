"""The release of the package, and a warning where a notebook is of another one."""

import contextlib
import tomllib
from functools import cache

from course_utils.files import ROOT


@cache
def release() -> str:
    """The release of the package, such as "3.0.0", as pyproject.toml has it."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


def start_notebook(made_with: str) -> None:
    """Print a warning if package and notebook are of different releases, and let Colab show widgets.

    Args:
        made_with: the release that the notebook was handed out with.
    """
    with contextlib.suppress(ImportError):
        from google.colab import output  # type: ignore[import-not-found]

        output.enable_custom_widget_manager()
    if made_with != release():
        print(
            f"This notebook is of release {made_with}, the package course_utils of {release()}: what a cell "
            "shows may differ from what the text says. The README of the handout tells how to bring both together."
        )


meet = start_notebook  # its name in the handouts of release 3.0.0
