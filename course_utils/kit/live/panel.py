"""A live widget in JupyterLab: the form and the bundles are handed over once, and the page does the rest."""

from collections.abc import Mapping, Sequence

import anywidget
from traitlets import Dict, List, Unicode

RENDER = """
function render({ model, el }) {
  el.innerHTML = model.get("form");
  const bundles = Object.assign(globalThis.live_bundles ??= {}, model.get("bundles"));
  const given = model.get("models").map((name) => bundles[name]);
  globalThis.live_widgets[model.get("kind")].mount(el.querySelector("form"), given);
}
export default { render };
"""


class Panel(anywidget.AnyWidget):
    """The JavaScript of the book, without its kernel."""

    _esm = Unicode().tag(sync=True)
    kind = Unicode().tag(sync=True)
    form = Unicode().tag(sync=True)
    models = List().tag(sync=True)
    bundles = Dict().tag(sync=True)

    def __init__(
        self,
        kind: str,
        form: str,
        script: str,
        models: Sequence[str],
        bundles: Mapping[str, dict],
    ):
        """`script`: the widget's; `models`: names of what it is given; `bundles`: all, by name."""
        super().__init__(
            kind=kind, form=form, models=list(models), bundles=dict(bundles), _esm=script + RENDER
        )
