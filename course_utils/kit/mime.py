"""The MIME types of what the course shows, beside HTML and plain text."""

import os
import sys
from collections.abc import Callable

MADE_BY = "application/vnd.attention-course+json"
"""The call that made an output, as data: `{"live": kind, "arguments": {…}}` of a live widget, `{"explorer": name,
"arguments": {…}}`, or `{"run": name, "stored": False}` of a run of `make gpu` that is not stored. The book makes its
page from it. JupyterLab and nbconvert have no use for this type and skip it."""

REFUSED = (
    '<p class="cu-refused">This does not answer: your browser, or the site that shows this page, refuses the scripts '
    "inside it. In a notebook, run the cell (Shift + Enter).</p>"
)
"""What stands in a live model, an explorer and a prediction until its script runs, and takes it away."""

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
"""A widget of ipywidgets, which a running kernel keeps alive. A committed notebook has none."""


def widget_view(panel: Callable) -> tuple[dict, dict]:
    """The data and the metadata with which a notebook shows a widget.

    Args:
        panel: makes or gives the widget.

    Raises:
        ImportError, AttributeError: there are no widgets, or only ipywidgets 7, as in some hosted notebooks; or nobody
            looks on, and what is exported would be empty without a network.
    """
    if _is_exported():
        raise ImportError("a notebook that is exported has no widgets")
    bundle = panel()._repr_mimebundle_()
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    return {WIDGET_VIEW: data[WIDGET_VIEW]}, metadata


def _is_exported() -> bool:
    """Whether this is a kernel that no one looks at: nbconvert or Papermill started it, and no Jupyter or VS Code."""
    ipython = sys.modules.get("IPython")
    is_kernel = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
    return is_kernel and not {"JPY_SESSION_NAME", "VSCODE_PID"} & os.environ.keys()
