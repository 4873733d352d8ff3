"""What an explorer is: a picture that is drawn once, a function that updates it, and controls.

    class Bump:
        def __init__(self):
            self.picture, ax = cu.subplots(alt="A Gaussian bump")
            (self.line,) = ax.plot(x, x)

        def draw(self, width):
            self.line.set_ydata(np.exp(-((x / width) ** 2) / 2))
            return f"A Gaussian bump of width {width:.1f}"       # the alt text of what is now seen

    Explorer("bump", Bump, {"width": Slider([0.5, 1, 2], 1, label="Width σ")})

On the last line of a cell an explorer is live in JupyterLab (`panel`), and its first picture where no
widgets are; the book asks for a page of frames (`page`). `draw` is pure: the same
values give the same pixels, whatever was drawn before.
"""

import io
import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from PIL import Image

from course_utils.figures import Picture, image_tag
from course_utils.kit.page import form, frames_page, shared_colors
from course_utils.kit.painting import Layers, cuts, least_scale
from course_utils.kit.release import asleep

MAX_FRAMES = 128
"""The book draws each combination of values once; more would not fit a page."""

SHARPNESS = 2
"""Pixels that are drawn in each direction for one that is displayed."""

VIEW = "application/vnd.jupyter.widget-view+json"


# Controls ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Control:
    """One value out of a few: `values` in order, the `value` to start from, and what to call it.

    Attributes:
        kind: how the form shows it: "slider", "choice" or "toggle".
        values: a sequence, or a dict from what to show to its value; afterwards a tuple of values.
        value: one of them.
        label: the name that stands beside the control.
        texts: what to show for each value.

    Raises:
        ValueError: another start, two values that read the same, or no label.
    """

    kind: ClassVar[str] = "slider"
    values: Sequence[Hashable] | Mapping[str, Hashable]
    value: Hashable
    label: str

    def __post_init__(self):
        """Check the arguments and make plain tuples of them."""
        named = self.values if isinstance(self.values, Mapping) else None
        values = tuple(map(_plain, named.values() if named else self.values))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "value", self.check("value", _plain(self.value)))
        object.__setattr__(self, "texts", tuple(named or map(self.text, values)))
        if len(set(self.texts)) < len(values):
            raise ValueError(
                f"{self.label!r}: {list(self.texts)} shows two values by the same text"
            )
        if not self.label.strip():
            raise ValueError(f"label={self.label!r} is empty; name what is controlled")

    def text(self, value: Hashable) -> str:
        """What to show for `value`."""
        return str(value)

    def check(self, name: str, value: Hashable) -> Hashable:
        """The control's own copy of `value`.

        Raises:
            ValueError: it is not among the values.
        """
        for known in self.values:
            if known == value and isinstance(known, bool) == isinstance(value, bool):
                return known
        raise ValueError(f"{name}={value!r} is not among the values {list(self.values)}")


@dataclass(frozen=True)
class Slider(Control):
    """Values in order along a line. `format` writes each one, as in `"{:.2f}"`."""

    format: str = "{}"

    def text(self, value: Hashable) -> str:
        """The value in the slider's format."""
        return self.format.format(value)


@dataclass(frozen=True)
class Choice(Control):
    """One of several options: a list of values, or a dict from what to show to its value."""

    kind = "choice"


class Toggle(Control):
    """Off or on."""

    kind = "toggle"

    def __init__(self, value: bool, label: str):
        """`value` is where it starts."""
        super().__init__({"off": False, "on": True}, value, label)


def _plain(value):
    """A Python number for a NumPy or torch scalar: `repr` then reads the same everywhere."""
    return value.item() if hasattr(value, "item") else value


# The explorer -----------------------------------------------------------------------------------


class Scene(Protocol):
    """What an explorer shows: a figure that was drawn, and how to update it."""

    picture: Picture

    def draw(self, **values) -> str:
        """Update the artists in place for these values; returns the alt text of what is now seen."""


class Explorer:
    """A picture with controls.

    Args:
        name: the name of the function that makes it; `repr` shows it.
        scene: makes a new `Scene`, an object with a `picture` and a method `draw(**values)`.
        controls: argument of `draw` → its `Slider`, `Choice` or `Toggle`.
        caption: one line over the controls that says what to try.

    Raises:
        ValueError: too many combinations, or `draw` returns no alt text.
    """

    def __init__(
        self,
        name: str,
        scene: Callable[[], Scene],
        controls: Mapping[str, Control],
        *,
        caption: str | None = None,
    ):
        """Draws the first picture: a scene that fails, or returns no alt text, fails here."""
        sizes = [len(control.values) for control in controls.values()]
        if (count := math.prod(sizes)) > MAX_FRAMES:
            raise ValueError(
                f"controls have {' × '.join(map(str, sizes))} = {count} combinations; the book draws "
                f"each once and holds at most {MAX_FRAMES}: give fewer values"
            )
        self.name, self.controls, self.caption = name, dict(controls), caption
        self.values = {key: control.value for key, control in self.controls.items()}
        self._new_scene = scene
        self._drawn: tuple[Layers, Scene] | None = None  # made once and updated from then on
        self.parts: dict = {}  # how the picture may be cut, as `form` takes it
        self._panel = None  # the live controls, made when first shown
        self.frame()

    def __repr__(self) -> str:
        values = ", ".join(f"{key}={value!r}" for key, value in self.values.items())
        return f"{self.name}({values})"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture as it is displayed, in pixels."""
        layers, _ = self._scene()
        return layers.size

    @property
    def positions(self) -> list[int]:
        """For each control the index of its value."""
        return [control.values.index(self.values[key]) for key, control in self.controls.items()]

    def combinations(self) -> Iterator[dict]:
        """Each combination of values; the last control changes fastest."""
        for values in itertools.product(*(control.values for control in self.controls.values())):
            yield dict(zip(self.controls, values, strict=True))

    def set(self, **values) -> None:
        """Move the controls to these values. If drawing raises an error, nothing moves."""
        values = self._complete(values)
        frame = self.frame(**values)
        self.values = values
        if self._panel is not None:
            self._panel.show(self.positions, frame)

    def frame(self, **values) -> tuple[bytes, str]:
        """PNG bytes and alt text for these values; controls that are not named keep the values they have."""
        pixels, alt = self._paint(self._complete(values))
        buffer = io.BytesIO()
        pixels.save(buffer, "PNG", compress_level=1)  # four times as fast as level 6
        return buffer.getvalue(), alt

    def _complete(self, values: dict) -> dict:
        for key in values:
            if key not in self.controls:
                known = ", ".join(self.controls)
                raise TypeError(f"{self.name} has no control {key!r}; it has {known}")
        checked = {key: self.controls[key].check(key, value) for key, value in values.items()}
        return self.values | checked

    def _paint(self, values: dict) -> tuple[Image.Image, str]:
        layers, scene = self._scene()
        try:
            alt = _draw(scene, values)
            return layers.paint(), alt
        except BaseException:
            self._drawn = None  # half updated: draw it anew next time
            raise

    def _scene(self) -> tuple[Layers, Scene]:
        if self._drawn is None:
            scene = self._new_scene()
            # The layout is found once, for the start values, and then frozen: axes that move while a
            # slider moves are hard to read, and finding it again takes longer than drawing.
            _draw(scene, {key: control.value for key, control in self.controls.items()})
            scene.picture.canvas.draw()
            scene.picture.set_layout_engine("none")
            self.parts = {"cuts": cuts(scene.picture), "least": least_scale(scene.picture)}
            self._drawn = Layers(scene.picture, SHARPNESS), scene
        return self._drawn

    # Showing

    def panel(self):
        """The live controls with their picture: a widget for JupyterLab."""
        if self._panel is None:
            # Only here: where there are no widgets, nothing fails before.
            from course_utils.kit.panel import Panel

            png, alt = self.frame()
            image = {"width": self.size[0], "height": self.size[1], "alt": alt}
            text = form(self, image)
            self._panel = Panel(text, self.positions, (png, alt), self._move)
        return self._panel

    def _move(self, positions: list[int]) -> None:
        pairs = zip(self.controls.items(), positions, strict=True)
        self.set(**{key: control.values[position] for (key, control), position in pairs})

    def page(self) -> str:
        """The same controls over pre-rendered frames: HTML that needs no kernel and no network."""
        every = list(self.combinations())
        some = [self._paint(values)[0] for values in every[:: math.ceil(len(every) / 8)]]
        return frames_page(self, map(self._paint, every), shared_colors(some))

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        png, alt = self.frame()
        data = {"text/plain": repr(self), "text/html": image_tag(png, alt, *self.size)}
        try:
            live = self.panel()._repr_mimebundle_()
        except (ImportError, AttributeError):  # no widgets, or ipywidgets 7 in a hosted notebook
            return data | {"text/html": asleep("This picture") + data["text/html"]}, {}
        live, about = live if isinstance(live, tuple) else (live, {})
        return data | {VIEW: live[VIEW]}, about


def _draw(scene: Scene, values: dict) -> str:
    alt = scene.draw(**values)
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"draw returned {alt!r}; it must return the alt text of what is now seen")
    return " ".join(alt.split())
