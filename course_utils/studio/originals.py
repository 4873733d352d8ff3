"""A notebook as it was before somebody worked in it: ``python -m course_utils.studio original 00``.

In a notebook, `%run -m course_utils.studio original 00` does the same. A handout carries its notebooks a second time,
in a zip file; elsewhere the source is the original.
"""

import contextlib
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.studio import StudioError
from course_utils.studio.manifest import Chapter, Manifest
from course_utils.studio.notebook_files import (
    UnreadableError,
    read_notebook,
    read_source,
    source_text,
    with_outputs,
    write_notebook,
)

if TYPE_CHECKING:
    from nbformat import NotebookNode

ORIGINALS = "originals.zip"
"""The notebooks of a handout, as they were handed out."""


def pack(folder: Path) -> None:
    """Write the zip file of a handout's notebooks; the same notebooks give the same bytes."""
    with zipfile.ZipFile(folder / ORIGINALS, "w", zipfile.ZIP_DEFLATED) as file:
        for ipynb in sorted(folder.glob("notebooks/*.ipynb")):
            entry = zipfile.ZipInfo(ipynb.name)  # without the day
            file.writestr(entry, ipynb.read_bytes(), zipfile.ZIP_DEFLATED)


def here(otherwise: Path) -> Path:
    """The manifest of the course's folder in which a command is given, or in whose notebooks; or else another one."""
    folders = (Path.cwd(), Path.cwd().parent)
    found = (folder / "book.toml" for folder in folders if (folder / "notebooks").is_dir())
    return next((path for path in found if path.is_file()), otherwise)


def bring_back(course: Manifest, chapter: Chapter) -> str:
    """Put the original in the place of a notebook, which gets another name and stays.

    Returns:
        A sentence that says what happened.

    Raises:
        StudioError: there is no original here, or the folder can't be written.
    """
    mine, name = chapter.ipynb, chapter.ipynb.name
    old = None
    with contextlib.suppress(OSError, UnreadableError):  # it is lost, or no notebook any more
        old = read_notebook(mine)
    original = _original(course, chapter, old)
    if old and source_text(old) == source_text(original):
        return f"{name} is as it was."
    said = f"{name} is the original again."
    try:
        if mine.exists():
            kept = _free(mine)
            mine.rename(kept)
            said += f" Yours is {kept.name} now. If {name} is open, close its tab and open it anew."
        write_notebook(original, mine)
    except OSError as error:
        raise StudioError(
            f"{mine} can't be written ({error.strerror}): give the command in your own folder of the course."
        ) from error
    return said


def _original(course: Manifest, chapter: Chapter, old: "NotebookNode | None") -> "NotebookNode":
    import nbformat

    # it lacks this notebook, or isn't there, or is damaged
    with contextlib.suppress(KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error):
        with zipfile.ZipFile(course.root / ORIGINALS) as file:
            text = file.read(chapter.ipynb.name).decode("utf-8")
        return nbformat.reads(text, as_version=4)
    if chapter.source.is_file():
        notebook = read_source(chapter.source)
        return with_outputs(notebook, old) if old else notebook
    raise StudioError(
        f"No original of {chapter.ipynb.name} is stored here: take it from a fresh download of the course."
    )


def _free(ipynb: Path) -> Path:
    """A name that no file has yet: ``00_start_here_mine.ipynb``, ``00_start_here_mine_2.ipynb``, …"""
    path, count = ipynb.with_name(f"{ipynb.stem}_mine.ipynb"), 1
    while path.exists():
        count += 1
        path = ipynb.with_name(f"{ipynb.stem}_mine_{count}.ipynb")
    return path
