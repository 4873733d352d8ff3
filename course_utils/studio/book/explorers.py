"""Explorers in the book: pages of frames in place of the first picture that a notebook holds.

A committed output tells which explorer it is and where its controls stand: ``kernel_width(width=0.5)``. Its page
is made from that, with the explorer's own data and networks, and kept under a digest of the code and the data
that it depends on.
"""

import ast
import copy
import hashlib
import inspect
import re
from pathlib import Path

from nbformat import NotebookNode

import course_utils as cu
from course_utils.files import ROOT, atomic_write
from course_utils.kit import explorer as engine
from course_utils.kit.digest import SOURCES, digest_of

SHOWN = re.compile(r"(?P<name>\w+)\(.*\)", re.DOTALL)


def explorer_of(output: NotebookNode) -> tuple[str, dict] | None:
    """Name and values of the explorer that an output shows; None for any other output."""
    text = "".join(output.get("data", {}).get("text/plain", ""))
    found = SHOWN.fullmatch(text)
    if not found or found["name"] not in dir(cu.explore):
        return None
    call = ast.parse(text, mode="eval").body
    return found["name"], {word.arg: ast.literal_eval(word.value) for word in call.keywords}


def with_pages(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """The notebook with a page in each explorer's output; pages are made once and kept in `folder`."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if shown := explorer_of(output):
                output.data = NotebookNode({"text/html": page(*shown, folder)})
                output.metadata = NotebookNode()
    return notebook


def page(name: str, values: dict, folder: Path) -> str:
    """The HTML of an explorer with its controls at these values."""
    make = getattr(cu.explore, name)
    state = hashlib.sha256(f"{name} {sorted(values.items())}".encode())
    made_of = SOURCES.statements(Path(inspect.getfile(make)), [name])
    state.update(digest_of(made_of).encode())
    engines = sorted(Path(engine.__file__).parent.glob("*.*"))
    engines += sorted((ROOT / "course_utils" / "figures").glob("*.py"))
    data = [ROOT / "data" / "SHA256SUMS", *sorted((ROOT / "data" / "runs").glob("*.json"))]
    for file in [*engines, *data]:
        state.update(file.read_bytes())
    kept = folder / f"{name}-{state.hexdigest()[:16]}.html"
    if not kept.is_file():
        explorer = make()
        # What a chapter offered to choose from, its own sentences for instance, the book may not have.
        known = {
            key: value
            for key, value in values.items()
            if key in explorer.controls and value in explorer.controls[key].values
        }
        explorer.set(**known)
        with atomic_write(kept) as part:
            part.write_text(explorer.page(), encoding="utf-8")
    return kept.read_text(encoding="utf-8")
