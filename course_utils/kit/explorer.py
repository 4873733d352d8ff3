"""Explorers: a picture that is drawn once, a function that updates it, and controls.

    class Bump:
        def __init__(self):
            self.picture, ax = cu.subplots(alt="A Gaussian bump")
            (self.line,) = ax.plot(x, x)

        def draw(self, width):
            self.line.set_ydata(np.exp(-((x / width) ** 2) / 2))
            return f"A Gaussian bump of width {width:.1f}"       # the alt text of what is now seen

    Explorer("bump", Bump, {"width": Slider([0.5, 1, 2], 1, label="Width σ")})

On the last line of a cell an explorer is live in JupyterLab (`panel`), and shows its first picture where there are
no widgets; the book asks for a page of frames (`page`). `draw` is pure: the same values give the same pixels,
whatever was drawn before.
"""

import html
import io
import itertools
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from PIL import Image

from course_utils.figures import Picture, image_tag
from course_utils.files import ROOT
from course_utils.kit.controls import Control
from course_utils.kit.mime import MADE_BY, widget_view
from course_utils.kit.page import Form, frames_page, shared_colors
from course_utils.kit.painting import Layers

WHEN = "It moves in JupyterLab, once its cell is run (Shift + Enter)."
"""What a saved or exported notebook says with the picture."""

MAX_FRAMES = 128
"""The book draws each combination of values once; more would not fit a page."""

SHARPNESS = 2
"""Number of pixels drawn in each direction for one that is displayed."""


class Scene(Protocol):
    """The picture of an explorer, and the function that updates it."""

    picture: Picture

    def draw(self, **values) -> str:
        """Update the artists in place for these values; returns the alt text of the new picture."""


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
        """Draws the first picture, so a scene that fails, or returns no alt text, fails here."""
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
            self._drawn = Layers(scene.picture, SHARPNESS), scene
        return self._drawn

    # Showing

    def form(self) -> Form:
        """Its form in HTML, with the controls where they stand."""
        layers, _ = self._scene()
        return Form(
            self.name,
            self.controls,
            self.positions,
            self.caption,
            layers.size,
            layers.cuts,
            layers.least_scale,
        )

    def panel(self):
        """The live controls with their picture: a widget for JupyterLab."""
        if self._panel is None:
            # Only here: where there are no widgets, nothing fails before.
            from course_utils.kit.panel import Panel

            png, alt = self.frame()
            self._panel = Panel(self.form().html(alt), self.positions, (png, alt), self._move)
        return self._panel

    def _move(self, positions: list[int]) -> None:
        pairs = zip(self.controls.items(), positions, strict=True)
        self.set(**{key: control.values[position] for (key, control), position in pairs})

    def page(self) -> str:
        """The same controls over pre-rendered frames: HTML that needs no kernel and no network."""
        every = list(self.combinations())
        some = [self._paint(values)[0] for values in every[:: math.ceil(len(every) / 8)]]
        return frames_page(self.form(), map(self._paint, every), shared_colors(some))

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        png, alt = self.frame()
        data = {
            "text/plain": f"{alt} {WHEN}",
            "text/html": image_tag(png, alt, *self.size) + _note(),
            MADE_BY: {"explorer": self.name, "arguments": self.values},
        }
        try:
            view, metadata = widget_view(self.panel)
        except (ImportError, AttributeError):
            return data, {}
        return data | view, metadata


def _note() -> str:
    """The note in HTML below a picture that stands still: no kernel moves it, or there are no widgets."""
    book = tomllib.loads((ROOT / "book.toml").read_text(encoding="utf-8"))["course"].get("url", "")
    where = f' It moves in the <a href="{html.escape(book)}">book</a>, too.' if book else ""
    return (
        f'<p class="cu-live-note">{WHEN}{where} It needs the packages <code>anywidget</code> and '
        "<code>ipywidgets</code> 8.</p>"
    )


def _draw(scene: Scene, values: dict) -> str:
    alt = scene.draw(**values)
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"draw returned {alt!r}; it must return the alt text of what is now seen")
    return " ".join(alt.split())
