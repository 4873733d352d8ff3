"""The first state of live widgets as HTML, for print and for browsers without scripts.

The widgets' own scripts write it in V8 when a notebook is made. In a reader's browser the same scripts compute it, and
no kernel does.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from nbformat import NotebookNode

from course_utils.kit import live
from course_utils.kit.live.bundles import script
from course_utils.kit.live.widget import ASLEEP, KINDS, Live, program
from course_utils.kit.mime import MADE_BY
from course_utils.studio import v8


def first_states(widgets: Sequence[Live]) -> list[str]:
    """The HTML inside each widget before a reader has changed anything.

    Raises:
        StudioError: V8 is not installed.
    """
    if not widgets:
        return []
    kinds = dict.fromkeys(widget.kind for widget in widgets)
    models = dict.fromkeys(name for widget in widgets for name in widget.models)
    asked = [[widget.kind, widget.models, widget.options] for widget in widgets]
    scripts = [
        Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
        *map(program, kinds),
        *(script(name, live.bundle(name)) for name in models),
        f"JSON.stringify({json.dumps(asked)}.map((each) => firstState(...each)));",
    ]
    return json.loads(v8.evaluate("\n".join(scripts)))


def widget_of(output: NotebookNode) -> Live | None:
    """The widget of an output, made again from the call that the output holds; None for any other output."""
    call = output.get("data", {}).get(MADE_BY, {})
    return KINDS[call["live"]].make(**call["arguments"]) if "live" in call else None


def fill(notebook: NotebookNode) -> NotebookNode:
    """Write the first state into each live output, in place, whose form the kernel leaves empty.

    Raises:
        StudioError: V8 is not installed.
    """
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = [(output, widget) for output in outputs if (widget := widget_of(output))]
    contents = first_states([widget for _, widget in shown])
    for (output, widget), content in zip(shown, contents, strict=True):
        output.data["text/html"] = widget.form(ASLEEP, content)
    return notebook
