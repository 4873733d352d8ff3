"""An explorer in JupyterLab: ipywidgets for the controls, one image, one caption, one alert."""

import html

import ipywidgets as widgets

from course_utils.explore.core import Choice, Control, Explorer, Toggle

MAX_BUTTONS = 5
"""Up to so many options stand side by side as buttons; more go into a list to choose from."""


class Panel:
    """The controls of `explorer` and its picture, kept in step.

    While a key is held down, Lab's front end keeps one message of a slider in flight and sends only
    the newest value after it: the picture skips values and never lags.
    """

    def __init__(self, explorer: Explorer):
        self.explorer = explorer
        self.inputs = {key: _input(control) for key, control in explorer.controls.items()}
        png, alt = explorer.frame()
        width, height = explorer._kept[0].canvas.get_width_height()
        self.image = widgets.Image(
            value=png, format="png", width=width, height=height, layout={"max_width": "100%"}
        )
        self.caption = widgets.HTML()
        self.alert = widgets.HTML()
        self.show(explorer.values, (png, alt))
        for widget in self.inputs.values():
            widget.observe(self._moved, "value")
        parts = [widgets.HBox(list(self.inputs.values()), layout={"flex_flow": "row wrap"})]
        if explorer.caption:
            parts.insert(0, widgets.HTML(f"<p>{html.escape(explorer.caption)}</p>"))
        self.box = widgets.VBox([*parts, self.image, self.alert, self.caption])
        self.box.add_class("cu-explorer")

    def show(self, values: dict, frame: tuple[bytes, str]) -> None:
        """Move the controls to `values` and show `frame`."""
        self._showing = True
        for key, widget in self.inputs.items():
            widget.value = values[key]
        self._showing = False
        png, alt = frame
        self.image.value, self.image.tooltip = png, alt
        self.caption.value = f'<div role="status" aria-live="polite">{html.escape(alt)}</div>'
        self.alert.value = ""

    def _moved(self, change: dict) -> None:
        if self._showing:
            return
        try:
            self.explorer.set(**{key: widget.value for key, widget in self.inputs.items()})
        except (
            Exception
        ) as error:  # a callback has no cell to raise in: say it where the reader looks
            message = html.escape(f"{type(error).__name__}: {error}")
            self.alert.value = f'<div role="alert" style="color: #b00020">{message}</div>'


def _input(control: Control) -> widgets.Widget:
    options = list(zip(control.texts, control.values, strict=True))
    common = {"description": control.label, "style": {"description_width": "initial"}}
    if isinstance(control, Toggle):
        return widgets.Checkbox(value=control.value, indent=False, **common)
    if isinstance(control, Choice):
        kind = widgets.ToggleButtons if len(options) <= MAX_BUTTONS else widgets.Dropdown
        return kind(options=options, value=control.value, **common)
    return widgets.SelectionSlider(
        options=options,
        value=control.value,
        continuous_update=True,
        layout={"width": "auto", "min_width": "26rem"},
        **common,
    )
