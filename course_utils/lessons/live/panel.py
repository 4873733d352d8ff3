"""A live widget in JupyterLab: the form and the bundles are handed over once, and the page does the rest."""

from collections.abc import Sequence

import anywidget
from traitlets import List, Unicode

from course_utils.lessons.page import asset

RENDER = """
function render({ model, el }) {
  el.innerHTML = model.get("form");
  globalThis.live_widgets[model.get("kind")](el.querySelector("form"), ...model.get("bundles"));
}
export default { render };
"""


class Panel(anywidget.AnyWidget):
    """The JavaScript of the book, without its kernel."""

    _esm = Unicode().tag(sync=True)
    kind = Unicode().tag(sync=True)
    form = Unicode().tag(sync=True)
    bundles = List().tag(sync=True)

    def __init__(self, kind: str, form: str, files: Sequence[str], bundles: Sequence[dict]):
        """`files`: the scripts, from the folder of this file; `bundles`: the models, as they are packed."""
        esm = "\n".join([*(asset(f"live/{name}") for name in files), RENDER])
        super().__init__(kind=kind, form=form, bundles=list(bundles), _esm=esm)
