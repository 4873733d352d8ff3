"""A live model or picture, written once, in JavaScript: `state(bundles, options)`, `html(state)`, `mount(form)`.

The reader's browser computes it, and a kernel runs none of its JavaScript: in Lab anywidget hands the script over, and
where there are no widgets an output carries it along. A committed notebook and a page of the book also hold the first
state as HTML, for print and for browsers without scripts; `course_utils.studio.first_states` writes it. All that a
reader chooses stands in named controls of the form, so an address can hold it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

from course_utils.kit.assets import asset
from course_utils.kit.explorer import VIEW
from course_utils.kit.live.stored import bundle, script

ASLEEP = '<p class="cu-live-note">Run this cell (Shift + Enter): then it answers.</p>'
"""What a saved notebook shows above a widget that no kernel and no script has woken."""

IMPORT = re.compile(r'^import (\{[^}]*\}) from "\.{1,2}/(\w+)\.js";$', re.M)
EXPORT = re.compile(r"^export (\{[^}]*\});$", re.M)


@cache
def modules(path: str) -> dict[str, str]:
    """The JavaScript module at a path in this folder, after all that it imports: name → its text as a classic script.

    Pages that are opened from a file cannot load modules. So each becomes a function that runs once and leaves what it
    exports in `live_modules`, by the module's name; indents and lines that are comments are left out. The function
    stays in `live_sources`: a worker is given it as text.
    """
    text, found = asset(f"live/{path}"), {}
    for _, name in IMPORT.findall(text):
        found |= modules(f"{name}.js")
    text = IMPORT.sub(lambda m: f"const {m[1].replace(' as ', ': ')} = live_modules.{m[2]};", text)
    lines = (line.strip() for line in EXPORT.sub(r"return \1;", text).splitlines())
    body = "\n".join(line for line in lines if line and not line.startswith("//"))
    return found | {Path(path).stem: f'"use strict";\n{body}'}


def classic(path: str) -> str:
    """A module and all that it imports, as one script; what two scripts of a page share runs once."""
    each = modules(path).items()
    runs = (
        f"live_modules.{name} ??= (live_sources.{name} = () => {{\n{text}\n}})();\n"
        for name, text in each
    )
    return "globalThis.live_modules ??= {}, globalThis.live_sources ??= {};\n" + "".join(runs)


@dataclass(frozen=True)
class Kind:
    """What all widgets of a kind have in common; `cu.live.<kind>` makes one, the script `widgets/<kind>.js` shows it.

    Attributes:
        label: what a screen reader calls it.
        models: the stored models whose bundles the script is given, in this order.
        later: models that a page loads only when a reader asks for them.
        style: a style sheet in widgets that comes after the one of all.
    """

    label: str
    models: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    style: str = ""


KINDS = {
    "look_up": Kind("Live look-up"),
    "heads": Kind("Live heads"),
    "colors": Kind("Live coloring of symbols"),
    "kernel_regression": Kind("Live kernel regression"),
    "learned_head": Kind("Live training of a head"),
    "character_gpt": Kind("Live training of a GPT"),
    "translator": Kind("Live translator", ("translator_fr",)),
    "machine": Kind("Live Transformer", ("translator_fr",)),
    "alignment": Kind(
        "Live alignments", ("bahdanau_fr", "translator_fr"), ("bahdanau_fr_0", "bahdanau_fr_100")
    ),
    "bert": Kind("Live BERT and GPT", ("bert", "gpt_left")),
    "gpt": Kind("Live GPT", ("gpt",), ("gpt_0", "gpt_100")),
    "memory": Kind("Live Memory", ("memory",), style="patches"),
    "patches": Kind("Live patches", ("vit",), style="patches"),
    "vit": Kind("Live vision transformer", ("vit", "vit_patch14", "vit_patch4")),
    "question": Kind("Live question to a language model", style="question"),
    "layers": Kind("Live layers of a language model", style="layers"),
    "words": Kind("Live captions", ("words",), style="words"),
}


class Live:
    """A live widget, shown as the last line of a cell."""

    def __init__(self, kind: str, given: Mapping[str, object] | None = None, **more: object):
        """`given`: what `cu.live.<kind>` was called with; literals, for `repr` says how a widget is made again.

        `more`: what its script is given with them and with the bundles, as JSON can hold it.
        """
        self.kind, self.given = kind, dict(given or {})
        self.options = self.given | more
        self.label, self.models, self.later, self.style = astuple(KINDS[kind])
        self._panel = None

    def __repr__(self) -> str:
        given = list(self.given.values())
        while given and given[-1] is False:
            given.pop()
        return f"live.{self.kind}({', '.join(map(repr, given))})"

    def script(self) -> str:
        """The widget's script and all that it imports as one, which a page of the book loads."""
        return classic(f"widgets/{self.kind}.js")

    def bundles(self) -> dict[str, dict]:
        """Name → bundle of each model that a page of its own has to hold."""
        return {name: bundle(name) for name in (*self.models, *self.later)}

    def form(self, told: str = "", content: str = "") -> str:
        """The widget as HTML with its style, its controls disabled until a script enables them.

        Args:
            told: what is said above it.
            content: its first state; a script fills a form that has none.
        """
        style = asset("live/live.css")
        if self.style:
            style += asset(f"live/widgets/{self.style}.css")
        return (
            f'<form class="cu-live" data-live="{self.kind}" aria-label="{self.label}" autocomplete="off">'
            f'<style>{style}</style>{told}<fieldset disabled="">{content}</fieldset></form>'
        )

    def alone(self) -> str:
        """The widget as HTML that needs no other file, no kernel and no network."""
        bundles = (script(name, packed) for name, packed in self.bundles().items())
        text = "".join([self.script(), *bundles]).replace("</", r"<\/")
        given = ", ".join(map(json.dumps, (self.models, self.options))).replace("<", r"\u003c")
        empty = f"document.querySelector('[data-live={self.kind}] > :empty')"  # those before it are filled
        return f"{self.form(ASLEEP)}<script>{text}live_modules.form.begin({empty}.form, {given});</script>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        data = {"text/plain": repr(self), "text/html": self.form(ASLEEP)}
        try:
            self._panel = self._panel or panel(self)
            live = self._panel._repr_mimebundle_()
        except (ImportError, AttributeError):  # no widgets, or ipywidgets 7 in a hosted notebook
            return data | {"text/html": self.alone()}, {}
        live, about = live if isinstance(live, tuple) else (live, {})
        return data | {VIEW: live[VIEW]}, about


RENDER = """
function render({ model, el }) {
  el.innerHTML = model.get("form");
  Object.assign(globalThis.live_bundles ??= {}, model.get("bundles"));
  globalThis.live_modules.form.begin(el.querySelector("form"), model.get("models"), model.get("options"));
}
export default { render };
"""


def panel(widget: Live):
    """A live widget in JupyterLab, an anywidget: all is handed over once, and the page does the rest.

    Raises:
        ImportError: there are no widgets; they are asked for here only, so that nothing fails before.
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
        _esm=widget.script() + RENDER,
        form=widget.form(),
        models=list(widget.models),
        options=widget.options,
        bundles=widget.bundles(),
    )
