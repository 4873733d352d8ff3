"""Live models in the book: a committed output says which widget it is, and the page loads its scripts.

`live.translator("i'm home .")` in an output becomes the widget, and a folder beside the pages holds the engine, the
widgets and the bundles. New weights do not make the pages new, and a page without a widget loads none of them.
"""

import ast
import copy

from nbformat import NotebookNode

from course_utils.kit import live
from course_utils.kit.live.packing import script
from course_utils.kit.live.widget import Live

FOLDER = "live"
KINDS = {each.kind: each for each in Live.__subclasses__()}


def widget_of(output: NotebookNode) -> Live | None:
    """The widget that an output shows; None for any other output."""
    text = "".join(output.get("data", {}).get("text/plain", ""))
    if not text.startswith("live."):
        return None
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr not in KINDS:
        return None
    return getattr(live, call.func.attr)(*map(ast.literal_eval, call.args))


def with_widgets(notebook: NotebookNode) -> NotebookNode:
    """The notebook with a live widget in each output that shows one."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if found := widget_of(output):
                output.data = NotebookNode({"text/html": found.page(FOLDER)})
                output.metadata = NotebookNode()
    return notebook


def scripts() -> dict[str, str]:
    """File in the book → its text: what widgets load when a reader comes near."""
    texts = {f"{FOLDER}/widgets/{kind}.js": each.script() for kind, each in KINDS.items()}
    bundles = {f"{FOLDER}/{name}.js": script(name, live.bundle(name)) for name in live.bundled()}
    return texts | bundles
