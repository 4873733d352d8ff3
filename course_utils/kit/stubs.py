"""The stubs of the exercises, as they were handed out."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from course_utils.files import ROOT

STUBS = "stubs.json"
"""The file of a handout that holds its stubs, by the names of their checks."""


def exercises(cells: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name of the check, and the cell of the exercise, for each exercise of a notebook.

    Args:
        cells: of a notebook, as in its file.
    """
    last = None
    for cell in cells:
        tags = cell["metadata"].get("tags", ())
        if "exercise" in tags:
            last = cell
        elif "check" in tags and last is not None:
            if name := re.search(r"^cu\.checks\.(\w+)\(", text_of(cell), re.MULTILINE):
                yield name[1], last
            last = None


def text_of(cell: Mapping[str, Any]) -> str:
    """A cell's text, which a file may have in lines."""
    return "".join(cell["source"])


def defined(stub: str) -> str:
    """The function or class that a stub is to become; empty if it defines none."""
    found = re.search(r"^(?:class|def)\s+(\w+)", stub, re.MULTILINE)
    return found[1] if found else ""


def defines(text: str, name: str) -> bool:
    """Whether a cell defines a function, a class or a value of this name; it need not be right Python."""
    return bool(re.search(rf"^(?:async def|class|def)\s+{name}\b|^{name}\s*=[^=]", text, re.M))


def stub(name: str) -> str:
    """The stub of an exercise, by the name of its check.

    Raises:
        LookupError: it is not there.
    """
    known = _handed_out() or _of_the_repository()
    if name not in known:
        raise LookupError(f"{name}: no stub is stored here; download its notebook again.")
    return known[name]


@cache
def _handed_out() -> dict[str, str]:
    file = ROOT / STUBS
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


@cache
def _of_the_repository() -> dict[str, str]:
    """From the sources, which readers leave alone; a wheel has notebooks in their place, where nobody works."""
    pages = [_cells(path) for path in sorted((ROOT / "notebooks" / "source").glob("*.py"))]
    pages += [
        json.loads(path.read_text(encoding="utf-8"))["cells"]
        for path in sorted((ROOT / "notebooks").glob("*.ipynb") if not pages else ())
    ]
    return {name: text_of(cell) for page in pages for name, cell in exercises(page)}


def _cells(source: Path) -> list[dict[str, Any]]:
    """The code cells of a py:percent file, with their tags."""
    blocks = re.split(r"^# %%", source.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    heads = (block.partition("\n") for block in blocks)
    return [
        {"metadata": {"tags": re.findall(r'"(\w+)"', head)}, "source": text.strip("\n")}
        for head, _, text in heads
        if "[markdown]" not in head
    ]
