"""An explorer in JupyterLab: a widget whose form moves the controls and whose picture the kernel draws."""

from collections.abc import Callable

import anywidget
from traitlets import Dict, Int, List, Unicode

from course_utils.kit.assets import asset

Frame = tuple[bytes, str]
"""PNG bytes and alt text."""


class Panel(anywidget.AnyWidget):
    """A widget that keeps a form and its picture in step with the kernel.

    While a key is held down, the front end keeps one message in flight and sends only the newest
    positions after it: the picture skips values and never lags.

    Args:
        form: HTML, as `page.form` makes it.
        positions: index of the value at which each control stands.
        frame: the picture there; the synchronized `drawn` says for which positions it was drawn last, so that the form
            knows whether a kernel answers.
        move: called with the new positions when the reader has moved a control; calls `show`. What it
            raises is shown in the form.
    """

    _esm = asset("explorer.js") + "\nexport default { render };\n"
    _css = asset("explorer.css")
    form = Unicode().tag(sync=True)
    positions = List(Int()).tag(sync=True)
    frame = Dict().tag(sync=True)
    drawn = List(Int()).tag(sync=True)
    alert = Unicode().tag(sync=True)

    def __init__(
        self,
        form: str,
        positions: list[int],
        frame: Frame,
        move: Callable[[list[int]], None],
    ):
        """A cell displays the widget; until then it shows nothing."""
        super().__init__(form=form)
        self._move = move
        self.show(positions, frame)
        self.observe(self._moved, "positions")

    def show(self, positions: list[int], frame: Frame) -> None:
        """Move the controls to `positions` and show `frame`."""
        self._shown = positions
        with self.hold_sync():  # one message for all
            self.positions = self.drawn = positions
            self.frame = dict(zip(("png", "alt"), frame, strict=True))
            self.alert = ""

    def _moved(self, change: dict) -> None:
        if change["new"] == self._shown:  # by `show`, or back from where drawing failed
            self.alert, self.drawn = "", change["new"]
            return
        try:
            self._move(change["new"])
        except Exception as error:  # a callback has no cell to raise in, so the form shows it
            self.alert = f"{type(error).__name__}: {error}"
