"""The two files of a chapter: its source, ``notebooks/source/NN.py``, and its notebook, ``notebooks/NN.ipynb``.

Authors edit the source, readers open the notebook. A notebook stores the digest of its source as
``metadata.source``, so `sync` knows which of the two was edited since then. A handout has notebooks alone.
"""

import hashlib
from collections import Counter
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.files import atomic_write
from course_utils.studio import StudioError
from course_utils.studio.kernel import LANGUAGE

if TYPE_CHECKING:  # jupytext and nbformat take half a second, and most commands need neither
    from nbformat import NotebookNode

FORMAT = "py:percent"
METADATA = ("tags", "jupyter")  # of a cell, in both files
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
# As Lab writes it when it opens a notebook: one just opened is not marked unsaved.
OPENED = KERNEL | {"display_name": "Python 3 (ipykernel)"}
SPACING = "lines_to_next_cell"  # blank lines, where they are not the usual ones
FILTERS = {
    "notebook_metadata_filter": "kernelspec,-all",
    "cell_metadata_filter": "tags,jupyter,-all",
}


class UnreadableError(StudioError):
    """A file that is no notebook, such as one in which a merge left its marks."""


# One file ---------------------------------------------------------------------


def digest(cell: "NotebookNode") -> str:
    """Eight hexadecimal digits for a cell's kind and text."""
    return hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]


def set_cell_ids(notebook: "NotebookNode") -> "NotebookNode":
    """Give each cell, in place, an id made from its content: a new cell leaves the others' alone."""
    count: Counter[str] = Counter()
    for cell in notebook.cells:
        name = digest(cell)
        count[name] += 1
        cell["id"] = name if count[name] == 1 else f"{name}-{count[name]}"
    return notebook


def normalize(notebook: "NotebookNode") -> "NotebookNode":
    """Reduce a notebook's metadata, in place, to what the course stores: tags, folds, cell ids, the text's digest."""
    import nbformat

    for cell in set_cell_ids(notebook).cells:
        shared = {key: value for key, value in cell.metadata.items() if key in METADATA}
        if shared.get("jupyter", {}).get("outputs_hidden"):
            shared = {"collapsed": True, **shared}
        cell.metadata = nbformat.from_dict(shared)
    metadata = {"kernelspec": OPENED, "language_info": LANGUAGE, "source": text_digest(notebook)}
    notebook.metadata = nbformat.from_dict(metadata)
    return notebook


def source_text(notebook: "NotebookNode", like: "NotebookNode | None" = None) -> str:
    """The text of a notebook's source, with the blank lines between cells of the notebook `like`."""
    import jupytext
    import nbformat

    spacing = {digest(cell): cell.metadata.get(SPACING) for cell in (like or notebook).cells}
    cells = []
    for cell in notebook.cells:
        folds = dict(sorted(cell.metadata.get("jupyter", {}).items(), reverse=True))
        metadata = {SPACING: spacing.get(digest(cell)), "tags": cell.metadata.get("tags")}
        metadata = {k: v for k, v in (metadata | {"jupyter": folds}).items() if v not in (None, {})}
        outputs = {"outputs": []} if cell.cell_type == "code" else {}
        cells.append({**cell, "metadata": metadata, **outputs})
    metadata = {"kernelspec": KERNEL, "jupytext": FILTERS}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return jupytext.writes(nbformat.from_dict(whole), FORMAT)


def text_digest(notebook: "NotebookNode") -> str:
    """Sixteen hexadecimal digits for the text of all cells."""
    return hashlib.sha256(source_text(notebook).encode()).hexdigest()[:16]


def is_edited(notebook: "NotebookNode") -> bool:
    """Whether somebody has changed a notebook's text since it was made."""
    return notebook.metadata.get("source") != text_digest(notebook)


def read_source(path: Path) -> "NotebookNode":
    """The notebook that a py:percent file describes: stable cell ids, no outputs.

    Raises:
        StudioError: there is none, as in a handout.
    """
    import jupytext

    if not path.is_file():
        raise StudioError(
            f"{path} is missing. A handout has no sources: if this is one, give the command in a clone of the course."
        )
    notebook = jupytext.read(path, fmt=FORMAT)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return normalize(notebook)


def read_notebook(path: Path) -> "NotebookNode":
    """Read a notebook file.

    Raises:
        UnreadableError: it is no notebook.
    """
    import nbformat

    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        _ = notebook.cells, notebook.metadata
    except (ValueError, AttributeError, TypeError, nbformat.ValidationError) as error:
        raise UnreadableError(f"{path.name} is no notebook") from error
    return notebook


def write_notebook(notebook: "NotebookNode", path: Path) -> None:
    """Write a notebook file, whole or not at all: readers see the old one or the new."""
    import nbformat

    with atomic_write(path) as temporary:
        temporary.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", encoding="utf-8")


# Both files --------------------------------------------------------------------


def differences(source: "NotebookNode", notebook: "NotebookNode") -> list[str]:
    """The lines in which a notebook differs from its source, in the form of `diff`."""
    lines = source_text(source).splitlines(), source_text(notebook).splitlines()
    return list(unified_diff(*lines, "source", "notebook", lineterm="", n=0))


def sync(source: Path, ipynb: Path) -> str:
    """Bring an edit of one file to the other; a notebook keeps the outputs of the cells that stay.

    Returns:
        A line that says which file followed; "" if both agree, or there is no notebook.

    Raises:
        StudioError: both were edited, a source can't hold what was written in Lab, or the notebook is none.
    """
    if not ipynb.is_file():
        return ""
    notebook = read_notebook(ipynb)
    described = read_source(source) if source.is_file() else None
    if described and not (changes := differences(described, notebook)):
        if is_edited(notebook):  # both in the same way
            write_notebook(normalize(notebook), ipynb)
        return ""
    if described and not is_edited(notebook):
        write_notebook(with_outputs(described, notebook), ipynb)
        return f"{ipynb.name} follows {source.name}"
    if described and notebook.metadata.get("source") != described.metadata.source:
        raise StudioError(
            f"{ipynb.name} and {source.name} were both edited, and nothing is changed. Write into one of them "
            "what you want of both, and bring the other back with git.\n" + "\n".join(changes)
        )
    _write_source(notebook, source)
    write_notebook(normalize(notebook), ipynb)
    return f"{source.name} follows {ipynb.name}"


def with_outputs(notebook: "NotebookNode", old: "NotebookNode") -> "NotebookNode":
    """Give the cells of a notebook, in place, the outputs that they have in an old one."""
    before = {cell.get("id"): cell for cell in old.cells}
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.id in before:
            cell.outputs = before[cell.id].outputs
            cell.execution_count = before[cell.id].execution_count
    return notebook


def _write_source(notebook: "NotebookNode", source: Path) -> None:
    """Write a source, after checking that reading it back loses nothing."""
    import jupytext

    like = jupytext.read(source, fmt=FORMAT) if source.is_file() else None
    written = source_text(notebook, like)
    again = jupytext.reads(written, FORMAT)
    if any("attachments" in cell for cell in notebook.cells) or _content(again) != _content(
        notebook
    ):
        raise StudioError(
            f"{source.name} cannot hold all of the notebook: take out pasted pictures and lines that begin with "
            "'# %%', and empty cells."
        )
    source.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(source) as temporary:
        temporary.write_text(written, encoding="utf-8")


def _content(notebook: "NotebookNode") -> list[tuple]:
    """The part of each cell that a source has to hold."""
    return [
        (cell.cell_type, cell.source, *(cell.metadata.get(key) or None for key in METADATA))
        for cell in notebook.cells
    ]
