"""Live models and explorers as HTML of a page, made from what a committed output says it shows.

`live.translator("i'm home .")` in an output becomes the widget in its first state, with a script that loads its engine
and weights when a reader comes near; they lie in a folder beside the pages. `kernel_width(width=0.5)` becomes the
explorer's frames, one for each position of its controls, made once and cached.
"""

import ast
import hashlib
import json
import re
from pathlib import Path

from nbformat import NotebookNode

import course_utils as cu
from course_utils.files import PACKAGE, ROOT, atomic_write
from course_utils.kit import live
from course_utils.kit.assets import asset
from course_utils.kit.live.stored import script
from course_utils.kit.live.widget import KINDS, Live, classic
from course_utils.studio.first_states import first_state, widget_of

FOLDER = "live"
CODE, STUDIO = (".py", ".js", ".css"), PACKAGE / "studio"


def show_widgets(cells: list[NotebookNode], cache: Path | None = None) -> None:
    """Put a widget's HTML into each output, in place, that shows one.

    Args:
        cells: of a notebook.
        cache: the folder of explorers' pages; None leaves explorers as the pictures that they are.
    """
    for output in (output for cell in cells for output in cell.get("outputs", [])):
        html = ""
        if widget := widget_of(output):
            html = live_html(widget)
        elif cache and (explorer := explorer_of(output)):
            html = explorer_html(*explorer, cache)
        if html:
            output.data, output.metadata = NotebookNode({"text/html": html}), NotebookNode()


def live_html(widget: Live) -> str:
    """A live widget in its first state, and the script that brings it to life."""
    names = [f"widgets/{widget.kind}.js", *(f"{model}.js" for model in widget.models)]
    boot = asset("live/boot.js")
    for name, value in {
        "SOURCES": [f"{FOLDER}/{name}" for name in names],
        "KIND": widget.kind,
        "MODELS": widget.models,
        "FOLDER": FOLDER,
    }.items():
        boot = boot.replace(name, json.dumps(value))
    return f"{widget.form(content=first_state(widget))}<script>{boot}</script>"


def live_scripts() -> dict[str, str]:
    """File in the book → text, of all that live widgets load."""
    texts = {f"{FOLDER}/widgets/{kind}.js": classic(f"widgets/{kind}.js") for kind in KINDS}
    return texts | {
        f"{FOLDER}/{name}.js": script(name, live.bundle(name)) for name in live.bundled()
    }


def explorer_of(output: NotebookNode) -> tuple[str, dict] | None:
    """Name and values of the explorer that an output shows; None for any other output."""
    text = "".join(output.get("data", {}).get("text/plain", ""))
    shown = re.fullmatch(r"(\w+)\(.*\)", text, re.DOTALL)
    if not shown or shown[1] not in dir(cu.explore):
        return None
    call = ast.parse(text, mode="eval").body
    return shown[1], {word.arg: ast.literal_eval(word.value) for word in call.keywords}


def explorer_html(name: str, values: dict, cache: Path) -> str:
    """An explorer with all its frames, its controls at these values; from the cache if code and data are the same."""
    page = cache / f"{name}-{_digest(name, values)}.html"
    if not page.is_file():
        explorer = getattr(cu.explore, name)()
        # What a chapter offered to choose from, its own sentences for instance, the book may not have.
        offered = {key: control.values for key, control in explorer.controls.items()}
        explorer.set(**{k: v for k, v in values.items() if v in offered.get(k, ())})
        with atomic_write(page) as part:
            part.write_text(explorer.page(), encoding="utf-8")
    return page.read_text(encoding="utf-8")


def _digest(name: str, values: dict) -> str:
    """Of an explorer's values, and of all code and data that it may be drawn with."""
    digest = hashlib.sha256(f"{name} {sorted(values.items())}".encode())
    code = [
        file for file in PACKAGE.rglob("*.*") if file.suffix in CODE and STUDIO not in file.parents
    ]
    for file in sorted([*code, *(ROOT / "data" / "runs").glob("*.json")]):
        digest.update(file.read_bytes())
    digest.update((ROOT / "data" / "SHA256SUMS").read_bytes())
    return digest.hexdigest()[:16]
