"""A live model in JupyterLab: the form and the bundle are handed over once, and the page does the rest."""

import anywidget
from traitlets import Dict, Unicode

from course_utils.lessons.live.widget import SCRIPTS
from course_utils.lessons.page import asset

RENDER = """
function render({ model, el }) {
  el.innerHTML = model.get("form");
  globalThis.live_translator(el.querySelector("form"), model.get("bundle"));
}
export default { render };
"""


class Panel(anywidget.AnyWidget):
    """A live translator: the JavaScript of the book, without its kernel.

    Args:
        form: HTML of its first state.
        bundle: the model, as `packing.pack` packs it, with its examples.
    """

    _esm = "\n".join([*(asset(f"live/{name}") for name in SCRIPTS), RENDER])
    form = Unicode().tag(sync=True)
    bundle = Dict().tag(sync=True)
