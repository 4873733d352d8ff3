"""A live widget in a notebook and in a page: its form in HTML, and the script that computes and draws in it.

The script is JavaScript, written once: `state(bundles, options)`, `html(state)` and `mount(form)`. A reader's browser
runs it, and no kernel. A committed notebook holds the first state as HTML, for print and for browsers without scripts
(`course_utils.studio.first_states`). Each choice of a reader is a named control of the form, so an address can hold it.

    asset(file)            the text of a script or a style sheet that stands beside the code     kit/assets.py
    source(kind)           the shared scripts and the one of a kind, one after another
    program(kind)          this source inside a function, as JupyterLab, an output or a page runs it
    bundle(name)           the weights and the card of a stored model, as JSON                    bundles.py
    script(name, bundle)   a bundle as a script, because a page opened from a file can load only scripts

JupyterLab gets program and bundles by anywidget (`panel`); where there are no widgets, or where a notebook is run to be
exported, the output holds both (`Live.alone`); a page of the book loads both as files.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from course_utils.kit.assets import asset
from course_utils.kit.live.bundles import bundle, script
from course_utils.kit.mime import MADE_BY, widget_view

WHEN = "It answers in JupyterLab, once its cell is run (Shift + Enter)."
ASLEEP = f'<p class="cu-live-note">{WHEN}</p>'
"""The note above a widget in a saved or exported notebook: no kernel and no script has woken it."""

SHARED = ("parts", "engine", "models", "form", "grid", "text", "lines", "closer", "learning")
"""The scripts beside this file that every widget is given, in this order; its own script in `widgets` comes last."""


def source(kind: str | None = None) -> str:
    """The shared scripts and that of a kind of widget, one after another; without a kind the shared ones alone.

    They stand in one scope, so a name is declared once in all of them.
    """
    names = [*SHARED, *([f"widgets/{kind}"] if kind else [])]
    return "\n".join(asset(f"live/{name}.js") for name in names)


def program(kind: str) -> str:
    """The script of a kind of widget as a page loads it: `live_widgets.<kind>` is then what it can do.

    Around the source stands a function, `liveWidget`: it keeps the names of one widget from those of another, and a
    worker is given its text. Inside is a block, because there a name that is declared twice is a syntax error.
    """
    return f"""(globalThis.live_widgets ??= {{}}).{kind} ??= (function liveWidget() {{
"use strict";
{{
{source(kind)}
return {{ state, html, mount, begin, render }};
}}
}})();
"""


@dataclass(frozen=True)
class Kind:
    """A kind of live widget: what all widgets of it have in common.

    Attributes:
        make: the function that makes one, `cu.live.<kind>`; the script `widgets/<kind>.js` shows it.
        label: its name for a screen reader.
        models: the stored models whose bundles the script is given, in this order.
        later: models that a page loads only when a reader asks for them.
        style: a style sheet in `widgets` that follows the one of all kinds.
    """

    make: Callable[..., "Live"]
    label: str
    models: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    style: str = ""


KINDS: dict[str, Kind] = {}
"""Every kind of live widget by the name of its function; `kind` fills it."""


def kind(label: str, **more) -> Callable:
    """The decorator that makes a function a kind of live widget, by its name; the arguments are those of `Kind`."""

    def register(make: Callable[..., "Live"]) -> Callable[..., "Live"]:
        KINDS[make.__name__] = Kind(make, label, **more)
        return make

    return register


class Live:
    """A live widget, shown as the last line of a cell.

    Args:
        kind: one of `KINDS`.
        arguments: the arguments with which `cu.live.<kind>` makes it again; what JSON can hold.
        options: what its script is given besides the arguments and the bundles; what JSON can hold.
        later: models that a page may load later; by default those of its kind.
    """

    def __init__(
        self,
        kind: str,
        arguments: Mapping[str, object] | None = None,
        *,
        options: Mapping[str, object] | None = None,
        later: tuple[str, ...] | None = None,
    ):
        """Look up the kind. The widget's script computes, once it is shown."""
        known = KINDS[kind]
        self.kind, self.arguments = kind, dict(arguments or {})
        self.options = self.arguments | dict(options or {})
        self.label, self.models, self.style = known.label, known.models, known.style
        self.later = known.later if later is None else later
        self._panel = None

    def __repr__(self) -> str:
        arguments = (f"{name}={value!r}" for name, value in self.arguments.items())
        return f"live.{self.kind}({', '.join(arguments)})"

    def bundles(self) -> dict[str, dict]:
        """Name → bundle of each model that a page of its own has to hold."""
        return {name: bundle(name) for name in (*self.models, *self.later)}

    def form(self, note: str = "", content: str = "") -> str:
        """The widget as HTML with its style, its controls disabled until a script enables them.

        Args:
            note: HTML above it.
            content: its first state; a script fills a form that has none.
        """
        style = asset("live/live.css")
        if self.style:
            style += asset(f"live/widgets/{self.style}.css")
        return (
            f'<form class="cu-live" data-live="{self.kind}" aria-label="{self.label}" autocomplete="off">'
            f'<style>{style}</style>{note}<fieldset disabled="">{content}</fieldset></form>'
        )

    def alone(self) -> str:
        """The widget as HTML with its program and its bundles: it needs no other file, no kernel and no network."""
        bundles = (script(name, bundle) for name, bundle in self.bundles().items())
        text = "".join([program(self.kind), *bundles]).replace("</", r"<\/")
        given = ", ".join(map(json.dumps, (self.models, self.options))).replace("<", r"\u003c")
        empty = f"document.querySelector('[data-live={self.kind}] > :empty')"  # those before it are filled
        return f"{self.form(ASLEEP)}<script>{text}live_widgets.{self.kind}.begin({empty}.form, {given});</script>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        data = {
            "text/plain": f"{self.label}. {WHEN}",
            "text/html": self.form(ASLEEP),
            MADE_BY: {"live": self.kind, "arguments": self.arguments},
        }
        try:
            view, metadata = widget_view(self._panel_once)
        except (ImportError, AttributeError):
            return data | {"text/html": self.alone()}, {}
        return data | view, metadata

    def _panel_once(self):
        self._panel = self._panel or panel(self)
        return self._panel


def panel(widget: Live):
    """The anywidget of a live widget in JupyterLab: it carries program, form, options and bundles into the page.

    There the program runs; nothing comes back to the kernel.

    Raises:
        ImportError: anywidget is not installed. It is imported here, so that a kernel without it fails nowhere else.
    """
    import anywidget
    import traitlets

    class Panel(anywidget.AnyWidget):
        _esm = traitlets.Unicode().tag(sync=True)
        form = traitlets.Unicode().tag(sync=True)
        models = traitlets.List().tag(sync=True)
        options = traitlets.Dict().tag(sync=True)
        bundles = traitlets.Dict().tag(sync=True)

    return Panel(
        _esm=f"{program(widget.kind)}export default {{ render: live_widgets.{widget.kind}.render }};",
        form=widget.form(),
        models=list(widget.models),
        options=widget.options,
        bundles=widget.bundles(),
    )
