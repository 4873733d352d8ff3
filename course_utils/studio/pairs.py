"""Two halves of one text: authors edit ``notebooks/source/NN.py``, readers open ``notebooks/NN.ipynb``.

A notebook remembers, as ``metadata.source``, the digest of the text that both halves had when they last agreed.
So `sync` knows which half was edited since then, whatever the times of the files say:

    edited since    what happens
    the source      the notebook gets its text, and keeps the outputs of the cells that stay
    the notebook    the source gets its text
    both            nothing is changed: the cells that differ are named, and a copy of both halves is kept

Readers have notebooks alone, and no server looks for the other half.
"""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from course_utils.files import atomic_write
from course_utils.studio import StudioError

if TYPE_CHECKING:  # jupytext and nbformat take half a second, and most commands need neither
    from nbformat import NotebookNode

FORMAT = "py:percent"
PAIRED = ("jupyter", "tags")  # the cell metadata that both halves hold
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "pygments_lexer": "ipython3",
}
SPACE = "lines_to_next_cell"  # where they are not the usual ones; jupytext reads them from a source
FILTERS = {
    "notebook_metadata_filter": "kernelspec,-all",
    "cell_metadata_filter": "tags,jupyter,-all",
}


class PairError(StudioError):
    """Halves that cannot be brought together: which, why, and what to do."""


class UnreadableError(PairError):
    """A notebook that is no JSON, such as one in which a merge left its marks."""


# One half ---------------------------------------------------------------------


def digest(cell: "NotebookNode") -> str:
    """Eight hexadecimal digits for a cell's kind and text."""
    return hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]


def name_cells(notebook: "NotebookNode") -> "NotebookNode":
    """Give each cell, in place, an id made from its content: a new cell leaves the others' alone."""
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        name = digest(cell)
        seen[name] += 1
        cell["id"] = name if seen[name] == 1 else f"{name}-{seen[name]}"
    return notebook


def bare(notebook: "NotebookNode") -> "NotebookNode":
    """Leave, in place, no metadata but those of a pair; name the cells, and note the text's digest."""
    import nbformat

    for cell in name_cells(notebook).cells:
        cell.metadata = nbformat.from_dict({k: v for k, v in cell.metadata.items() if k in PAIRED})
    kept = {"kernelspec": KERNEL, "language_info": LANGUAGE, "source": text_digest(notebook)}
    notebook.metadata = nbformat.from_dict(kept)
    return notebook


def text(notebook: "NotebookNode", like: "NotebookNode | None" = None) -> str:
    """The source that says what the notebook says, with the blank lines between cells of another source."""
    import jupytext
    import nbformat

    lines = {digest(cell): cell.metadata.get(SPACE) for cell in (like or notebook).cells}
    cells = []
    for cell in notebook.cells:
        kept = {SPACE: lines.get(digest(cell)), "tags": cell.metadata.get("tags")}
        kept["jupyter"] = dict(sorted(cell.metadata.get("jupyter", {}).items(), reverse=True))
        bare_one = {**cell, "metadata": {k: v for k, v in kept.items() if v not in (None, {})}}
        cells.append(bare_one | ({"outputs": []} if cell.cell_type == "code" else {}))
    metadata = {"kernelspec": KERNEL, "jupytext": FILTERS}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return jupytext.writes(nbformat.from_dict(whole), FORMAT)


def text_digest(notebook: "NotebookNode") -> str:
    """Sixteen hexadecimal digits for the text of all cells."""
    return hashlib.sha256(text(notebook).encode()).hexdigest()[:16]


def is_edited(notebook: "NotebookNode") -> bool:
    """Whether somebody has changed a notebook's text since it was made.

    Where an editor has dropped the notebook's metadata, the cells' ids tell.
    """
    if made := notebook.metadata.get("source"):
        return made != text_digest(notebook)
    return any(cell.get("id", "").partition("-")[0] != digest(cell) for cell in notebook.cells)


def read_source(path: Path) -> "NotebookNode":
    """The notebook that a py:percent file describes: stable cell ids, no outputs."""
    import jupytext

    notebook = name_cells(jupytext.read(path, fmt=FORMAT))
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return bare(notebook)


def read(path: Path) -> "NotebookNode":
    """A notebook.

    Raises:
        UnreadableError: it is none.
    """
    import nbformat

    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        _ = notebook.cells, notebook.metadata
    except (ValueError, AttributeError, TypeError, nbformat.ValidationError) as error:
        raise UnreadableError(f"{path.name} is no notebook") from error
    return notebook


def write(notebook: "NotebookNode", path: Path) -> None:
    """Write the file whole or not at all: readers see the old one or the new."""
    import nbformat

    with atomic_write(path) as part:
        part.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", encoding="utf-8")


def keep(path: Path) -> Path:
    """Copy a half into ``_build/kept/``, by the name of its content; where the copy is."""
    folder = next(up for up in path.parents if up.name == "notebooks").parent / "_build" / "kept"
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    return Path(shutil.copyfile(path, folder / f"{path.stem}-{name}{path.suffix}"))


# Both halves ------------------------------------------------------------------


class Edited(NamedTuple):
    """Which halves were edited since they last agreed."""

    source: bool
    notebook: bool


def edited(source: "NotebookNode", notebook: "NotebookNode") -> Edited:
    """Compare two halves with what the notebook remembers; neither was edited where they agree."""
    if text(source) == text(notebook):
        return Edited(False, False)
    in_notebook = is_edited(notebook)
    made = notebook.metadata.get("source")
    in_source = text_digest(source) != made if made else True
    return Edited(in_source or not in_notebook, in_notebook)


def differences(source: "NotebookNode", notebook: "NotebookNode") -> Iterator[str]:
    """A line for each cell that one half lacks, or has otherwise: kind, text or tags."""
    left, right = ([_lines(cell) for cell in half.cells] for half in (source, notebook))
    for kind, *ends in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for mine, yours in zip_longest(range(*ends[:2]), range(*ends[2:])):
            here = left[mine] if mine is not None else ()
            there = right[yours] if yours is not None else ()
            lines = zip_longest(here, there, fillvalue="nothing")
            ours, theirs = next((one, other) for one, other in lines if one != other)
            place = yours if mine is None else mine
            yield f"cell {place}: {_brief(ours)} in the source, {_brief(theirs)} in the notebook"


def _lines(cell: "NotebookNode") -> tuple[str, ...]:
    """A cell's text, below its kind and its paired metadata."""
    paired = {key: cell.metadata[key] for key in PAIRED if key in cell.metadata}
    said = json.dumps(paired, sort_keys=True) if paired else ""
    return (f"{cell.cell_type} {said}".strip(), *cell.source.splitlines())


def _brief(line: str) -> str:
    return line if line == "nothing" else repr(line if len(line) < 60 else f"{line[:57]}…")


def sync(source: Path, ipynb: Path, take: Literal["source", "notebook"] | None = None) -> str:
    """Let the half that was not edited follow the other.

    Args:
        source, ipynb: the files of one pair; without a notebook there is nothing to do.
        take: which half to follow where both were edited.

    Returns:
        What happened, in one line; "" if both agree.

    Raises:
        PairError: both halves were edited and `take` is None, or the notebook is none.
    """
    if not ipynb.is_file():
        return ""
    notebook = read(ipynb)
    if not source.is_file():
        _write_source(notebook, source, ipynb)
        return f"{source.name} is written from {ipynb.name}"
    wanted = read_source(source)
    changed = edited(wanted, notebook)
    if not any(changed):
        if notebook.metadata.get("source") != wanted.metadata.source:  # both said the same, anew
            notebook.metadata.source = wanted.metadata.source
            write(notebook, ipynb)
        return ""
    copies = [keep(half) for half in (source, ipynb)] if all(changed) else []
    said = f"both halves are kept in {copies[0].parent}" if copies else ""
    if copies and take is None:
        cells = "\n".join(f"  {line}" for line in differences(wanted, notebook))
        raise PairError(
            f"{ipynb.name} and {source.name} were both edited; nothing is changed, and {said}.\n{cells}\n"
            "Write into one half what you want of both, and name it: TAKE=source or TAKE=notebook."
        )
    winner, loser = (source, ipynb) if changed.source else (ipynb, source)
    if copies:
        winner, loser = (source, ipynb) if take == "source" else (ipynb, source)
    if winner == source:
        write(with_outputs(wanted, notebook), ipynb)
    else:
        _write_source(notebook, source, ipynb)
    return f"{loser.name} follows {winner.name}" + (f"; {said}" if said else "")


def with_outputs(notebook: "NotebookNode", old: "NotebookNode") -> "NotebookNode":
    """Give the cells of a bare notebook, in place, the outputs that they had before."""
    before = {cell.get("id"): cell for cell in old.cells}
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.id in before:
            cell.outputs = before[cell.id].outputs
            cell.execution_count = before[cell.id].execution_count
    return notebook


def _write_source(notebook: "NotebookNode", source: Path, ipynb: Path) -> None:
    source.parent.mkdir(parents=True, exist_ok=True)
    import jupytext

    like = jupytext.read(source, fmt=FORMAT) if source.is_file() else None
    written = text(notebook, like)
    source.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(source) as part:
        part.write_text(written, encoding="utf-8")
    write(with_outputs(read_source(source), name_cells(notebook)), ipynb)
