"""A live widget in JupyterLab: form, bundles and options are handed over once, and the page does the rest."""

from collections.abc import Mapping, Sequence

import anywidget
from traitlets import Dict, List, Unicode

RENDER = """
function render({ model, el }) {
  el.innerHTML = model.get("form");
  Object.assign(globalThis.live_bundles ??= {}, model.get("bundles"));
  globalThis.live_modules.form.begin(el.querySelector("form"), model.get("models"), model.get("options"));
}
export default { render };
"""


class Panel(anywidget.AnyWidget):
    """The JavaScript of the book, without its kernel."""

    _esm = Unicode().tag(sync=True)
    form = Unicode().tag(sync=True)
    models = List().tag(sync=True)
    options = Dict().tag(sync=True)
    bundles = Dict().tag(sync=True)

    def __init__(
        self,
        form: str,
        script: str,
        models: Sequence[str],
        options: Mapping[str, object],
        bundles: Mapping[str, dict],
    ):
        """`form`: empty; `script`: the widget's; `models`: names of what it is given; `bundles`: all, by name."""
        super().__init__(
            form=form,
            models=list(models),
            options=dict(options),
            bundles=dict(bundles),
            _esm=script + RENDER,
        )
