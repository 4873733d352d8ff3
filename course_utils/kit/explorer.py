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

import copy
import io
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import torch
from PIL import Image

from course_utils.figures import Picture, image_tag
from course_utils.kit.controls import Choice, Control, IntRange, Slider, Text, Toggle
from course_utils.kit.page import form, page, shared_colors
from course_utils.kit.painting import Layers, cuts, least_scale
from course_utils.kit.release import asleep

__all__ = [
    "Choice",
    "Control",
    "Explorer",
    "IntRange",
    "Slider",
    "Text",
    "Toggle",
    "outline",
    "still_copy",
]

MAX_FRAMES = 128
"""The book draws each combination of values once; more would not fit a page."""

SHARPNESS = 2
"""Pixels that are drawn in each direction for one that is displayed."""

VIEW = "application/vnd.jupyter.widget-view+json"


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
        controls: argument of `draw` → its `Slider`, `Choice`, `Toggle`, `IntRange` or `Text`.
        caption: one line over the controls that says what to try.

    Raises:
        TypeError: an argument is of another kind, or `draw` returns no text.
        ValueError: no controls, too many combinations, or an empty alt text.
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
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"name={name!r} is not a Python name")
        if not callable(scene):
            raise TypeError(
                f"scene={scene!r} is no function; it makes an object with picture and draw"
            )
        _check_controls(controls)
        self.name = name
        self.controls = dict(controls)
        self.caption = caption
        self.values = {key: control.value for key, control in self.controls.items()}
        self._scene = scene
        self._kept: tuple[Layers, Scene] | None = None  # made once and updated from then on
        self._parts: dict = {}  # how the picture may be cut, as `form` takes it
        self._panel = None  # the live controls, made when first shown
        self.frame()

    def __repr__(self) -> str:
        values = ", ".join(f"{key}={value!r}" for key, value in self.values.items())
        return f"{self.name}({values})"

    # Drawing

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture as it is displayed, in pixels."""
        layers, _ = self._keep()
        return layers.size

    def figure(self, **values) -> Picture:
        """A new figure for these values; controls that are not named keep the values they have."""
        values = self._complete(values)
        scene = self._new_scene()
        scene.picture.alt = _draw(scene, values)
        return scene.picture

    def frame(self, **values) -> tuple[bytes, str]:
        """PNG bytes and alt text for these values, drawn by updating one figure that is kept."""
        pixels, alt = self._paint(self._complete(values))
        buffer = io.BytesIO()
        pixels.save(buffer, "PNG", compress_level=1)  # four times as fast as level 6
        return buffer.getvalue(), alt

    def combinations(self) -> Iterator[dict]:
        """Each combination of values; the last control changes fastest."""
        every = (control.values for control in self.controls.values())
        return (
            dict(zip(self.controls, values, strict=True)) for values in itertools.product(*every)
        )

    def set(self, **values) -> None:
        """Move the controls to these values. If drawing raises an error, nothing moves."""
        values = self._complete(values)
        frame = self.frame(**values)
        self.values = values
        if self._panel is not None:
            self._panel.show(self._positions(), frame)

    def _complete(self, values: dict) -> dict:
        for key in values:
            if key not in self.controls:
                raise TypeError(
                    f"{self.name} has no control {key!r}; it has {', '.join(self.controls)}"
                )
        checked = {key: self.controls[key].check(key, value) for key, value in values.items()}
        return self.values | checked

    def _paint(self, values: dict) -> tuple[Image.Image, str]:
        layers, scene = self._keep()
        try:
            alt = _draw(scene, values)
            return layers.paint(), alt
        except BaseException:
            self._kept = None  # half updated: draw it anew next time
            raise

    def _keep(self) -> tuple[Layers, Scene]:
        if self._kept is None:
            scene = self._new_scene()
            self._parts = {"cuts": cuts(scene.picture), "least": least_scale(scene.picture)}
            self._kept = Layers(scene.picture, SHARPNESS), scene
        return self._kept

    def _new_scene(self) -> Scene:
        scene = self._scene()
        if not isinstance(getattr(scene, "picture", None), Picture):
            raise TypeError(f"{scene!r} has no picture that cu.subplots made")
        # The layout is found once, for the start values, and then frozen: axes that move while a
        # slider moves are hard to read, and finding it again takes longer than drawing.
        _draw(scene, {key: control.value for key, control in self.controls.items()})
        scene.picture.canvas.draw()
        scene.picture.set_layout_engine("none")
        return scene

    # Showing

    def panel(self):
        """The live controls with their picture: a widget for JupyterLab."""
        if self._panel is None:
            # Only here: where there are no widgets, nothing fails before.
            from course_utils.kit.panel import Panel

            width, height = self.size
            png, alt = self.frame()
            image = {"width": width, "height": height, "alt": alt}
            positions = self._positions()
            text = form(
                self.name,
                self.controls,
                positions,
                caption=self.caption,
                image=image,
                **self._parts,
            )
            self._panel = Panel(text, positions, (png, alt), self._move)
        return self._panel

    def page(self) -> str:
        """The same controls over pre-rendered frames: HTML that needs no kernel and no network."""
        every = list(self.combinations())
        some = [self._paint(values)[0] for values in every[:: math.ceil(len(every) / 8)]]
        about = {"size": self.size, "caption": self.caption, **self._parts}
        places = [
            control.values.index(value) if value in control.values else 0  # a line of the reader's
            for control, value in zip(self.controls.values(), self.values.values(), strict=True)
        ]
        return page(
            self.name, self.controls, places, map(self._paint, every),
            colors=shared_colors(some), **about,
        )  # fmt: skip

    def _positions(self) -> list[int | str]:
        return [control.position(self.values[key]) for key, control in self.controls.items()]

    def _move(self, positions: list[int | str]) -> None:
        pairs = zip(self.controls.items(), positions, strict=True)
        self.set(**{key: control.at(position) for (key, control), position in pairs})

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        png, alt = self.frame()
        data = {"text/plain": repr(self), "text/html": image_tag(png, alt, *self.size)}
        try:
            live = self.panel()._repr_mimebundle_()
        except (ImportError, AttributeError):  # no widgets, or ipywidgets 7 in a hosted notebook
            return data | {"text/html": asleep("This picture") + data["text/html"]}, {}
        live, about = live if isinstance(live, tuple) else (live, {})
        return data | {VIEW: live[VIEW]}, about


def still_copy(model: torch.nn.Module) -> torch.nn.Module:
    """A copy of a model to look at: on the CPU, in eval mode, without gradients.

    The model itself may go on learning, on any device; what the explorer shows stays the same.
    """
    return copy.deepcopy(model).cpu().eval().requires_grad_(False)


def outline(left: float, top: float, right: float, bottom: float) -> tuple[list, list]:
    """x and y of a line around a rectangle, for `set_data`."""
    return [left, right, right, left, left], [top, top, bottom, bottom, top]


def _check_controls(controls: Mapping[str, Control]) -> None:
    if not controls:
        raise ValueError("controls is empty; an explorer needs at least one")
    for key, control in controls.items():
        if not isinstance(control, Control):
            kinds = "Slider, Choice, Toggle, IntRange or Text"
            raise TypeError(f"controls[{key!r}] is a {type(control).__name__}, not a {kinds}")
    sizes = [len(control.values) for control in controls.values()]
    if (count := math.prod(sizes)) > MAX_FRAMES:
        raise ValueError(
            f"controls have {' × '.join(map(str, sizes))} = {count} combinations; the book draws each "
            f"once and holds at most {MAX_FRAMES}: give fewer values"
        )


def _draw(scene: Scene, values: dict) -> str:
    alt = scene.draw(**values)
    if not isinstance(alt, str):
        raise TypeError(f"draw returned {alt!r}; it must return the alt text of what is now seen")
    if not alt.strip():
        raise ValueError("draw returned an empty alt text; say in a sentence what is now seen")
    return " ".join(alt.split())
