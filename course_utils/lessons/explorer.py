"""What an explorer is: a picture that is drawn once, a function that updates it, and controls.

    def picture():
        fig, ax = cu.subplots(alt="A Gaussian bump")
        (line,) = ax.plot(x, x)

        def draw(width):
            line.set_ydata(np.exp(-((x / width) ** 2) / 2))
            return f"A Gaussian bump of width {width:.1f}"       # the alt text of what is now seen

        return fig, draw

    Explorer("bump", picture, {"width": Slider([0.5, 1, 2], 1, label="Width σ")})

On the last line of a cell an explorer is live in JupyterLab (`panel`), a page of frames in the book
(`page`, when COURSE_BOOK=1), and its first picture wherever neither can run. `draw` is pure: the same
values give the same pixels, whatever was drawn before.
"""

import io
import itertools
import math
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from PIL import Image

from course_utils.figures import Picture
from course_utils.lessons.painting import Layers

MAX_FRAMES = 128
"""The book draws each combination of values once; more would not fit a page."""

Draw = Callable[..., str]


@dataclass(frozen=True)
class Control:
    """One value out of a few: `values` in order, the `value` to start from, and what to call it."""

    values: Sequence[Hashable] | Mapping[str, Hashable]
    value: Hashable
    label: str

    def __post_init__(self):
        kind = type(self).__name__
        texts = None
        if isinstance(self.values, Mapping):
            texts, values = tuple(self.values), tuple(self.values.values())
        elif isinstance(self.values, str) or not hasattr(self.values, "__iter__"):
            raise TypeError(f"{kind}: values={self.values!r} is not a list of values")
        else:
            values = tuple(_plain(value) for value in self.values)
        if not values:
            raise ValueError(f"{kind}: values is empty; at least one value is needed")
        if len(set(values)) < len(values):
            raise ValueError(f"{kind}: values={list(values)} names a value twice")
        if not isinstance(self.label, str) or not self.label.strip():
            raise ValueError(f"{kind}: label={self.label!r} says nothing; name what is controlled")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "value", self.check("value", _plain(self.value)))
        object.__setattr__(self, "texts", texts or tuple(self.text(value) for value in values))
        if len(set(self.texts)) < len(values):
            raise ValueError(f"{kind}: {list(self.texts)} reads the same for two values")

    def text(self, value: Hashable) -> str:
        return str(value)

    def check(self, name: str, value: Hashable) -> Hashable:
        """The control's own copy of `value`."""
        for known in self.values:
            if known == value and isinstance(known, bool) == isinstance(value, bool):
                return known
        raise ValueError(f"{name}={value!r} is not among the values {list(self.values)}")


@dataclass(frozen=True)
class Slider(Control):
    """Values in order along a line. `format` writes each one, as in `"{:.2f}"`."""

    format: str = "{}"

    def text(self, value: Hashable) -> str:
        return self.format.format(value)


@dataclass(frozen=True)
class Choice(Control):
    """One of several options: a list of values, or a dict from what to show to its value."""


class Toggle(Control):
    """Off or on."""

    def __init__(self, value: bool, label: str):
        super().__init__({"off": False, "on": True}, value, label)


class IntRange(Slider):
    """The whole numbers from `start` to `stop`, both included."""

    def __init__(self, start: int, stop: int, value: int, label: str, *, step: int = 1):
        super().__init__(range(start, stop + 1, step), value, label)


class Explorer:
    """A picture with controls.

    Args:
        name: the name of the function that makes it; `repr` shows it.
        picture: makes the figure and returns it with `draw`; `draw(**values)` updates its artists in
            place for these values and returns the alt text of what is now seen.
        controls: argument of `draw` → its `Slider`, `Choice`, `Toggle` or `IntRange`.
        caption: one line over the controls that says what to try.

    Raises:
        TypeError: an argument is of another kind, or `draw` returns no text.
        ValueError: no controls, too many combinations, or an empty alt text.
    """

    def __init__(
        self,
        name: str,
        picture: Callable[[], tuple[Picture, Draw]],
        controls: Mapping[str, Control],
        *,
        caption: str | None = None,
    ):
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"name={name!r} is not a Python name")
        if not callable(picture):
            raise TypeError(f"picture={picture!r} is no function; it returns a Picture and draw")
        if not controls:
            raise ValueError("controls is empty; an explorer needs at least one")
        for key, control in controls.items():
            if not isinstance(control, Control):
                kinds = "Slider, Choice, Toggle or IntRange"
                raise TypeError(f"controls[{key!r}] is a {type(control).__name__}, not a {kinds}")
        count = math.prod(len(control.values) for control in controls.values())
        if count > MAX_FRAMES:
            sizes = " × ".join(str(len(control.values)) for control in controls.values())
            raise ValueError(
                f"controls have {sizes} = {count} combinations; the book draws each once "
                f"and holds at most {MAX_FRAMES}: give fewer values"
            )
        self.name = name
        self.controls = dict(controls)
        self.caption = caption
        self.values = {key: control.value for key, control in self.controls.items()}
        self._picture = picture
        self._kept = None  # (Layers, draw), made once and updated from then on
        self._panel = None  # the live controls, made when first shown
        self.frame()  # a picture that fails, or says nothing, fails here

    def __repr__(self) -> str:
        values = ", ".join(f"{key}={value!r}" for key, value in self.values.items())
        return f"{self.name}({values})"

    # Drawing

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture, in pixels."""
        layers, _ = self._keep()
        return layers.picture.canvas.get_width_height()

    def figure(self, **values) -> Picture:
        """A new figure for these values; controls that are not named keep the values they have."""
        values = self._complete(values)
        picture, draw = self._new_picture()
        picture.alt = _draw(draw, values)
        return picture

    def frame(self, **values) -> tuple[bytes, str]:
        """PNG bytes and alt text for these values, drawn by updating one figure that is kept."""
        values = self._complete(values)
        layers, draw = self._keep()
        try:
            alt = _draw(draw, values)
            return _png(layers.paint()), alt
        except BaseException:
            self._kept = None  # half updated: start afresh next time
            raise

    def combinations(self) -> Iterator[dict]:
        """Each combination of values; the last control changes fastest."""
        every = (control.values for control in self.controls.values())
        return (
            dict(zip(self.controls, values, strict=True)) for values in itertools.product(*every)
        )

    def set(self, **values) -> None:
        """Move the controls to these values. Raises what drawing raises, and then moves nothing."""
        values = self._complete(values)
        frame = self.frame(**values)
        self.values = values
        if self._panel is not None:
            self._panel.show(values, frame)

    def _complete(self, values: dict) -> dict:
        for key in values:
            if key not in self.controls:
                raise TypeError(
                    f"{self.name} has no control {key!r}; it has {', '.join(self.controls)}"
                )
        checked = {key: self.controls[key].check(key, value) for key, value in values.items()}
        return self.values | checked

    def _keep(self) -> tuple[Layers, Draw]:
        if self._kept is None:
            picture, draw = self._new_picture()
            self._kept = Layers(picture), draw
        return self._kept

    def _new_picture(self) -> tuple[Picture, Draw]:
        made = self._picture()
        if not (isinstance(made, tuple) and len(made) == 2 and callable(made[1])):
            raise TypeError(
                f"picture() returned {made!r}; a Picture and a function draw are needed"
            )
        picture, draw = made
        if not isinstance(picture, Picture):
            raise TypeError(
                f"picture() made a {type(picture).__name__}; cu.subplots makes a Picture"
            )
        # The layout is found once, for the start values, and then frozen: axes that move while a
        # slider moves are hard to read, and finding it again takes longer than drawing.
        _draw(draw, {key: control.value for key, control in self.controls.items()})
        picture.canvas.draw()
        picture.set_layout_engine("none")
        return picture, draw

    # Showing

    def panel(self):
        """The live controls with their picture: an ipywidget."""
        if self._panel is None:
            from course_utils.lessons.panel import Panel

            self._panel = Panel(self)
        return self._panel.box

    def page(self) -> str:
        """The same controls over pre-rendered frames: HTML that needs no kernel and no network."""
        from course_utils.lessons.page import page

        return page(self)

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        png, alt = self.frame()
        width, height = self.size
        data = {"text/plain": repr(self), "image/png": png}
        if os.environ.get("COURSE_BOOK") == "1":
            data["text/html"] = self.page()
        else:
            data |= self._live()
        return data, {"image/png": {"alt": alt, "width": width, "height": height}}

    def _live(self) -> dict:
        try:
            bundle = self.panel()._repr_mimebundle_()
        except ImportError:  # no ipywidgets: the picture alone
            return {}
        view = "application/vnd.jupyter.widget-view+json"
        return {view: bundle[view]} if bundle and view in bundle else {}


def _draw(draw: Draw, values: dict) -> str:
    alt = draw(**values)
    if not isinstance(alt, str):
        raise TypeError(f"draw returned {alt!r}; the alt text of what is now seen is needed")
    if not alt.strip():
        raise ValueError("draw returned an empty alt text; say in a sentence what is now seen")
    return " ".join(alt.split())


def _png(pixels: Image.Image) -> bytes:
    buffer = io.BytesIO()
    pixels.save(buffer, "PNG", compress_level=1)  # four times as fast as level 6
    return buffer.getvalue()


def _plain(value):
    """A Python number for a NumPy or torch scalar: `repr` then reads the same everywhere."""
    return value.item() if hasattr(value, "item") else value
