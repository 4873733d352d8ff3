"""An explorer in JupyterLab: ipywidgets for the controls, one image, one caption, one alert."""

import html
from pathlib import Path

import ipywidgets as widgets

from course_utils.lessons.explorer import Choice, Control, Explorer, Toggle

MAX_RADIOS = 5
"""Up to so many options stand side by side; more go into a list to choose from."""


class Panel:
    """The controls of `explorer` and its picture, kept in step.

    While a key is held down, Lab's front end keeps one message of a slider in flight and sends only
    the newest value after it: the picture skips values and never lags.
    """

    def __init__(self, explorer: Explorer):
        self.explorer = explorer
        self.inputs = {key: _input(control) for key, control in explorer.controls.items()}
        frame = explorer.frame()
        width, height = explorer.size
        self.image = widgets.Image(value=frame[0], width=width, height=height)
        self.caption = widgets.HTML().add_class("cu-caption")
        self.alert = widgets.HTML()
        self.show(explorer.values, frame)
        for widget in self.inputs.values():
            widget.observe(self._moved, "value")
        controls = widgets.HBox(list(self.inputs.values()), layout={"flex_flow": "row wrap"})
        controls.add_class("cu-controls")
        intro = (
            [widgets.HTML(f"<p>{html.escape(explorer.caption)}</p>")] if explorer.caption else []
        )
        self.box = widgets.VBox(
            [_page_parts(), *intro, controls, self.image, self.alert, self.caption]
        )
        self.box.add_class("cu-explorer")

    def show(self, values: dict, frame: tuple[bytes, str]) -> None:
        """Move the controls to `values` and show `frame`."""
        self._following = False
        for key, widget in self.inputs.items():
            widget.value = values[key]
        self._following = True
        self.image.value, alt = frame
        self.caption.value = html.escape(alt)
        self.alert.value = ""

    def _moved(self, _change: dict) -> None:
        if not self._following:
            return
        try:
            self.explorer.set(**{key: widget.value for key, widget in self.inputs.items()})
        except (
            Exception
        ) as error:  # a callback has no cell to raise in: say it where the reader looks
            message = html.escape(f"{type(error).__name__}: {error}")
            self.alert.value = f'<div class="cu-alert" role="alert">{message}</div>'


def _input(control: Control) -> widgets.Widget:
    options = list(zip(control.texts, control.values, strict=True))
    common = {"value": control.value, "description": control.label, "tooltip": control.label}
    common |= {"style": {"description_width": "initial"}, "layout": {"width": "auto"}}
    if isinstance(control, Toggle):
        return widgets.Checkbox(indent=False, **common)
    if isinstance(control, Choice) and len(options) > MAX_RADIOS:
        return widgets.Dropdown(options=options, **common)
    if isinstance(control, Choice):
        radio = widgets.RadioButtons(options=options, orientation="horizontal", **common)
        return radio.add_class("cu-radio")
    common["layout"] = {"width": "auto", "flex": "1 1 22em", "max_width": "40em"}
    return widgets.SelectionSlider(options=options, **common).add_class("cu-slider")


def _page_parts() -> widgets.HTML:
    """A style sheet, and the script that gives every control its accessible name."""
    style, script = (
        (Path(__file__).parent / name).read_text(encoding="utf-8")
        for name in ("panel.css", "panel.js")
    )
    run = f'<img hidden alt="" src="data:," onerror="{html.escape(script)}">'
    return widgets.HTML(f"<style>{style}</style>{run}", layout={"display": "none"})
