"""The release of the package and of a notebook, and what a notebook says where it lacks widgets."""

import contextlib
import html
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


def note_without_widgets(what: str) -> str:
    """A note in HTML: this stands still because the notebook has no widgets, and it moves in the book.

    Args:
        what: the subject of the sentence, such as "This picture".
    """
    book = tomllib.loads((ROOT / "book.toml").read_text(encoding="utf-8"))["course"].get("url", "")
    name = f'<a href="{html.escape(book)}">book</a>' if book else "book"
    return (
        f'<p class="cu-live-note">{what} stands still: it needs the packages <code>anywidget</code> and '
        f"<code>ipywidgets</code> 8 in JupyterLab, and it moves in the {name}, with no installation.</p>"
    )
