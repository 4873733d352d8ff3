"""The MIME types of what the course shows, beside HTML and plain text."""

from collections.abc import Callable

MADE_BY = "application/vnd.attention-course+json"
"""The call that made an output, as data: `{"live": kind, "arguments": {…}}` of a live widget, `{"explorer": name,
"arguments": {…}}`, or `{"run": name, "stored": False}` of a run of `make gpu` that is not stored. The book makes its
page from it. JupyterLab and nbconvert have no use for this type and skip it."""

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
"""A widget of ipywidgets, which a running kernel keeps alive. A committed notebook has none."""


def widget_view(panel: Callable) -> tuple[dict, dict]:
    """The data and the metadata with which a notebook shows a widget.

    Args:
        panel: makes or gives the widget.

    Raises:
        ImportError, AttributeError: there are no widgets, or only ipywidgets 7, as in some hosted notebooks.
    """
    bundle = panel()._repr_mimebundle_()
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    return {WIDGET_VIEW: data[WIDGET_VIEW]}, metadata
