"""A live model or picture, written once, in JavaScript: `state(bundles, options)`, `html(state)`, `mount(form)`.

When a cell runs, `host` asks the widget's script for its first state as HTML: that is seen in print and without
scripts. In the book a script loads what the widget needs when a reader comes near, and mounts it on the form; in Lab
the same JavaScript runs through anywidget. All that a reader chooses stands in named controls of the form, so an
address can hold it.
"""

import json

from course_utils.kit.explorer import VIEW
from course_utils.kit.live.bundles import bundle
from course_utils.kit.live.host import first_state
from course_utils.kit.page import asset
from course_utils.kit.release import asleep

ONCE = """live_ran["{name}"] ??= (() => {{
{text}
return true;
}})();
"""
"""A script in the joined one."""

ASLEEP = '<p class="cu-live-note">Run this cell (Shift + Enter): then it answers.</p>'
"""What a saved notebook shows above a widget that no kernel and no script has woken."""


def bare(script: str) -> str:
    """A script without its indents and the lines that are comments: a page need not carry them."""
    lines = (line.strip() for line in script.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


class Live:
    """What every live widget has. A kind of widget is a class of its own beside a script of its name.

    Attributes:
        kind: the name of the function that makes it, `cu.live.<kind>`, and of its script's, `live_widgets.<kind>`.
        label: what a screen reader calls it.
        scripts: what runs before, from the folder of this file: such as "engine.js".
        models: the stored models whose bundles the script is given, in this order.
        later: models that a page loads only when a reader asks for them.
    """

    kind: str
    label: str
    scripts: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    later: tuple[str, ...] = ()

    def __init__(self, *given: object, **options: object):
        """`given`: what the function was called with; literals, for `repr` says how a widget is made again.

        `options`: what its script is given beside the bundles.
        """
        self.given = given
        self._content = first_state(self.kind, self.files(), self.models, options)
        self._panel = None

    def __repr__(self) -> str:
        return f"live.{self.kind}({', '.join(map(repr, self.given))})"

    @classmethod
    def files(cls) -> list[str]:
        """Every script but the bundles, in the order in which they run."""
        return ["address.js", "parts.js", *cls.scripts, f"widgets/{cls.kind}.js"]

    @classmethod
    def script(cls) -> str:
        """All of `files` as one, which a page of the book loads; what two of its widgets share runs once."""
        once = (ONCE.format(name=name, text=bare(asset(f"live/{name}"))) for name in cls.files())
        return "globalThis.live_ran ??= {};\n" + "".join(once)

    def form(self, told: str = "") -> str:
        """The widget as HTML in its first state, its style before it, its controls disabled: a script enables them.

        `told`: what stands above it.
        """
        return (
            f'<form class="cu-live" data-live="{self.kind}" aria-label="{self.label}" autocomplete="off">'
            f'<style>{asset("live/live.css")}</style>{told}<fieldset disabled="">{self._content}</fieldset></form>'
        )

    def page(self, folder: str) -> str:
        """The same for a page of the book, with a script that loads what it needs from a folder."""
        names = [f"widgets/{self.kind}.js", *(f"{model}.js" for model in self.models)]
        boot = asset("live/boot.js")
        for name, value in {
            "SOURCES": [f"{folder}/{name}" for name in names],
            "KIND": self.kind,
            "MODELS": list(self.models),
            "FOLDER": folder,
        }.items():
            boot = boot.replace(name, json.dumps(value))
        return f"{self.form()}<script>{boot}</script>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        data = {"text/plain": repr(self), "text/html": self.form(ASLEEP)}
        try:
            if self._panel is None:
                # Only here: where there are no widgets, nothing fails before.
                from course_utils.kit.live.panel import Panel

                bundles = {name: bundle(name) for name in (*self.models, *self.later)}
                self._panel = Panel(self.kind, self.form(), self.script(), self.models, bundles)
            live = self._panel._repr_mimebundle_()
        except (ImportError, AttributeError):  # no widgets, or ipywidgets 7 in a hosted notebook
            return data | {"text/html": self.form(asleep("This model"))}, {}
        live, about = live if isinstance(live, tuple) else (live, {})
        return data | {VIEW: live[VIEW]}, about
