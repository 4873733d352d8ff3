"""Live models and explorers as HTML of a page, made from the call that a committed output names as data.

A live widget keeps the first state that its output holds, and gets a script that loads its program and its weights when
a reader comes near; they lie in a folder beside the pages. An explorer becomes its frames, one for each position of its
controls, made once and cached.
"""

import hashlib
import json
from pathlib import Path

from nbformat import NotebookNode

import course_utils as cu
from course_utils.files import PACKAGE, ROOT, atomic_write
from course_utils.kit import live
from course_utils.kit.assets import asset
from course_utils.kit.live.bundles import script
from course_utils.kit.live.widget import ASLEEP, KINDS, Live, program
from course_utils.kit.mime import MADE_BY, REFUSED
from course_utils.studio.first_states import first_states

FOLDER = "live"
CODE, STUDIO = (".py", ".js", ".css"), PACKAGE / "studio"


def show_widgets(cells: list[NotebookNode], cache: Path | None = None) -> None:
    """Give each output that shows a widget, in place, the widget's HTML for a page.

    Args:
        cells: of a notebook.
        cache: the folder of explorers' pages; None leaves explorers pictures, without the note of a notebook.
    """
    for output in (output for cell in cells for output in cell.get("outputs", [])):
        data = output.get("data", {})
        call = data.get(MADE_BY, {})
        if "live" in call:
            html = data["text/html"].replace(ASLEEP, REFUSED) + _boot(call["live"])
        elif "explorer" in call and cache:
            html = explorer_html(call["explorer"], call["arguments"], cache)
        elif "explorer" in call:  # on a slide, without the note of a notebook
            html = data["text/html"].partition('<p class="cu-live-note">')[0]
        else:
            continue
        output.data, output.metadata = NotebookNode({"text/html": html}), NotebookNode()


def live_html(*widgets: Live) -> list[str]:
    """Live widgets that no notebook holds, in their first states, each with the script that brings it to life."""
    contents = first_states(widgets)
    return [
        widget.form(REFUSED, content) + _boot(widget.kind)
        for widget, content in zip(widgets, contents, strict=True)
    ]


def _boot(kind: str) -> str:
    """The script below a live widget that brings it to life."""
    models = KINDS[kind].models
    names = [f"widgets/{kind}", *models]
    sources = [f"{FOLDER}/{name}.js" for name in names]
    given = ", ".join(map(json.dumps, (kind, models, sources, FOLDER)))
    return f"<script>{asset('address.js')}({asset('live/boot.js').strip()})({given});</script>"


def live_scripts() -> dict[str, str]:
    """The files of the book that live widgets load: name → text."""
    texts = {f"{FOLDER}/widgets/{kind}.js": program(kind) for kind in KINDS}
    return texts | {
        f"{FOLDER}/{name}.js": script(name, live.bundle(name)) for name in live.bundled()
    }


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
    """The hash of an explorer's values and of all code and data that may draw it."""
    digest = hashlib.sha256(f"{name} {sorted(values.items())}".encode())
    code = [
        file for file in PACKAGE.rglob("*.*") if file.suffix in CODE and STUDIO not in file.parents
    ]
    for file in sorted([*code, *(ROOT / "data" / "runs").glob("*.json")]):
        digest.update(file.read_bytes())
    digest.update((ROOT / "data" / "SHA256SUMS").read_bytes())
    return digest.hexdigest()[:16]
