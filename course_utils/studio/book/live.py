"""Live models in the book: a committed output says which widget it is, and the page loads its scripts.

`live.translator("i'm home .")` in an output becomes the widget, and a folder beside the pages holds the engine, the
widgets and the bundles. New weights do not make the pages new, and a page without a widget loads none of them.
"""

import copy
import json

from nbformat import NotebookNode

from course_utils.kit import live
from course_utils.kit.live.packing import script
from course_utils.kit.live.widget import Live
from course_utils.kit.page import asset
from course_utils.studio.first_states import KINDS, first_state, widget_of

FOLDER = "live"


def page(widget: Live) -> str:
    """A widget in its first state, and the script by which a page of the book brings it to life."""
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


def with_widgets(notebook: NotebookNode) -> NotebookNode:
    """The notebook with a live widget in each output that shows one."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if found := widget_of(output):
                output.data = NotebookNode({"text/html": page(found)})
                output.metadata = NotebookNode()
    return notebook


def scripts() -> dict[str, str]:
    """File in the book → its text: what widgets load when a reader comes near."""
    texts = {f"{FOLDER}/widgets/{kind}.js": each.script() for kind, each in KINDS.items()}
    bundles = {f"{FOLDER}/{name}.js": script(name, live.bundle(name)) for name in live.bundled()}
    return texts | bundles
