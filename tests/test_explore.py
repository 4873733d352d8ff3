"""What holds for every explorer: the same picture for the same values, in Lab, in the book and elsewhere."""

import base64
import io
import json
import random
import re
from functools import cache

import numpy as np
import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import course_utils as cu
from course_utils.files import ROOT
from course_utils.kit.controls import Choice, Slider
from course_utils.kit.explorer import MAX_FRAMES, Explorer
from course_utils.kit.mime import MADE_BY
from course_utils.kit.page import MAX_BYTES
from course_utils.kit.painting import Layers
from course_utils.studio.book import widgets

TRAIN = {"heads"}
"""These train a network first."""
every_explorer = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in TRAIN else ())
        for name in dir(cu.explore)
    ],
)


@cache
def make(name: str) -> Explorer:
    """Made once for all tests, which therefore must not move it."""
    return getattr(cu.explore, name)()


@cache
def page(name: str) -> str:
    """All frames take seconds: made once for this code, for these tests and for the book."""
    return widgets.explorer_html(name, make(name).values, ROOT / "_build" / "explorers")


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


class Number:
    """A picture of a number, for explorers that are made to go wrong."""

    fails_at = None

    def __init__(self):
        self.picture, ax = cu.subplots(alt="A number", width=2, height=1)
        self.text = ax.text(0.5, 0.5, "")

    def draw(self, n: int, kind: str = "a", on: bool = False) -> str:
        self.text.set_text("half done")
        if n == self.fails_at:
            raise ZeroDivisionError(f"{n} is <too much>")
        self.text.set_text(f"{n} {kind} {on}")
        return f"The number {n} of kind {kind}, {'on' if on else 'off'}"


class FailsAtThree(Number):
    fails_at = 3


def silent(alt: str | None):
    """A scene whose `draw` says this."""

    class Silent(Number):
        def draw(self, n: int) -> str | None:
            return alt

    return Silent


def small(controls=None, scene=Number, **options) -> Explorer:
    return Explorer("small", scene, controls or {"n": Slider(range(4), 1, "Number")}, **options)


# Every explorer of the course


@pytest.mark.slow
@every_explorer
def test_each_end_of_each_control_draws_its_own_picture_and_says_so(name):
    explorer = make(name)
    assert explorer.name == name
    for key, control in explorer.controls.items():
        ends = [explorer.frame(**{key: value}) for value in (control.values[0], control.values[-1])]
        alts = [alt for _, alt in ends]
        assert not np.array_equal(*[pixels(png) for png, _ in ends]), key
        assert alts[0] != alts[1], key
        assert all(len(alt.split()) >= 6 and "nan" not in alt.lower() for alt in alts), alts


@pytest.mark.slow
@every_explorer
def test_a_picture_depends_on_the_values_and_on_nothing_drawn_before(name):
    explorer = make(name)
    every = list(explorer.combinations())
    start, *others = random.Random(0).sample(every, min(6, len(every)))
    for values in (*others, start):
        png, alt = explorer.frame(**values)
    assert Explorer(name, explorer._new_scene, explorer.controls).frame(**start) == (png, alt)


@pytest.mark.nightly  # the book, made at every push, has these pages and refuses what is too large
@every_explorer
def test_the_page_is_small_and_alone_and_each_frame_shows_its_picture_and_says_so(name):
    explorer, html = make(name), page(name)
    assert len(html.encode()) <= MAX_BYTES
    assert not re.search(r"(src|href)=[\"'](?!data:)|url\((?!data:)|https?://|//cdn| id=", html)
    frames = json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.S)[1])
    every = list(explorer.combinations())
    assert len(frames) == len(every) and all(frame["alt"].strip() for frame in frames)
    background = webp(re.search(r"url\(data:image/webp;base64,([^)]*)\)", html)[1]).convert("RGBA")
    for index in {0, len(every) // 2, len(every) - 1}:
        png, alt = explorer.frame(**every[index])
        assert frames[index]["alt"] == alt
        seen = Image.alpha_composite(background, webp(frames[index]["webp"]).convert("RGBA"))
        difference = np.asarray(seen.convert("RGB"), dtype=int) - pixels(png)
        assert abs(difference).max() <= 40, "with fewer colors"
        assert not difference[(pixels(png) == 255).all(axis=-1)].any(), "white stays white"


def webp(text: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(text)))


@every_explorer
def test_the_first_picture_has_its_size_and_alt_text_and_repr_is_one_line(name):
    explorer = make(name)
    listed = ", ".join(f"{key}={value!r}" for key, value in explorer.values.items())
    assert repr(explorer) == f"{name}({listed})"
    data, _ = explorer._repr_mimebundle_()
    png, alt = explorer.frame()
    assert data["text/plain"].startswith(alt)
    call = json.loads(json.dumps(data[MADE_BY]))
    assert call == {"explorer": name, "arguments": explorer.values}
    image = BeautifulSoup(data["text/html"], "html.parser").img
    assert image["alt"] == alt
    assert image["src"] == f"data:image/png;base64,{base64.b64encode(png).decode()}"
    width, height = int(image["width"]), int(image["height"])
    assert Image.open(io.BytesIO(png)).size == pytest.approx((2 * width, 2 * height), abs=1)
    assert width <= 864


# In Lab -----------------------------------------------------------------------------------------


def test_a_control_that_the_reader_or_the_page_moves_moves_picture_alt_text_and_repr(monkeypatch):
    explorer, drawn, draw = small(), [], Number.draw
    panel = explorer.panel()
    before = panel.frame["png"]
    panel.positions = [3]  # what the front end sends
    png, alt = explorer.frame(n=3)
    assert panel.frame == {"png": png, "alt": alt} and png != before
    assert repr(explorer) == "small(n=3)"
    monkeypatch.setattr(
        Number, "draw", lambda self, **values: drawn.append(values) or draw(self, **values)
    )
    explorer.set(n=2)
    assert panel.positions == [2] and drawn == [{"n": 2}], "drawn once"
    assert panel.frame["alt"] == "The number 2 of kind a, off"


def test_an_exception_is_shown_in_place_and_the_next_move_clears_it():
    explorer = small(scene=FailsAtThree)
    panel = explorer.panel()
    before = panel.frame
    for back in (1, 0):  # to where the picture stands, and elsewhere
        panel.positions = [3]
        assert panel.alert == "ZeroDivisionError: 3 is <too much>"
        assert panel.frame == before
        panel.positions = [back]
        assert panel.alert == ""
    assert panel.frame["png"] == small().frame(n=0)[0], "nothing half done is left"


# Bad input, and what would be right -------------------------------------------------------------

LONG, LETTERS = Slider(range(1, 21), 1, "A"), Choice(list("abcdefgh"), "a", "B")


class Noise:
    """Pictures that no encoding makes small."""

    def __init__(self):
        self.picture, ax = cu.subplots(alt="Noise", width=6, height=4)
        self.image = ax.imshow(np.zeros((300, 400)), vmin=0, vmax=1, cmap="gray")

    def draw(self, seed: int) -> str:
        self.image.set_data(np.random.default_rng(seed).random((300, 400)))
        return f"Noise number {seed}"


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (lambda: small().set(n=9), ValueError, r"n=9 is not among the values \[0, 1, 2, 3\]"),
        (lambda: small().frame(m=1), TypeError, "small has no control 'm'; it has n"),
        (lambda: small({"n": LONG, "kind": LETTERS}), ValueError, rf"20 × 8 = 160 .* at most {MAX_FRAMES}"),
        (lambda: Slider([0.01, 0.02], 0.01, "N", format="{:.1f}"), ValueError, "two values by the same text"),
        (lambda: small(scene=silent(None)), ValueError, "draw returned None; it must return the alt text"),
        (lambda: Explorer("noise", Noise, {"seed": Slider(range(3), 0, "Seed")}).page(), ValueError,
         "noise takes .* KB in a page.*fewer values"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_would_be_right(mistake, error, message):
    with pytest.raises(error, match=message):
        mistake()


# Layers: what moves is drawn over what stands still ------------------------------------------------


def playground():
    """A picture with one of each: a line under another, an image under tick marks, bars, titles."""
    fig, (left, middle, right) = cu.subplots(1, 3, alt="Things that move", width=6, height=2)
    (low,) = left.plot([0, 1], [0, 1], linewidth=6)
    left.plot([0, 1], [1, 0], color="black", linewidth=6)  # lies over what moves
    left.set(xlim=(0, 1), ylim=(0, 1))
    image = middle.imshow(np.zeros((3, 3)), vmin=0, vmax=1)
    middle.spines[:].set_visible(False)
    bars = right.bar([0, 1], [1, 1])
    right.set_title("0")
    fig.canvas.draw()
    fig.set_layout_engine("none")
    return fig, {
        "line": lambda n: low.set_ydata([0, n / 9]),
        "image": lambda n: image.set_data(np.full((3, 3), n / 9)),
        "bars": lambda n: bars[0].set_height(n / 9),
        "title": lambda n: right.set_title(str(n)),
        "limits": lambda n: left.set_xlim(0, 1 + n),
        "hidden": lambda n: bars[1].set_visible(n % 2 == 0),
        "label": lambda n: left.text(0.1, 0.1, str(n)),
        "ticks": lambda n: right.set_xticks([0, 1], ["a", f"b{n}"]),
        "hidden axes": lambda n: middle.set_visible(n % 2 == 0),
    }


MOVES = st.lists(
    st.tuples(st.sampled_from(sorted(playground()[1])), st.integers(0, 9)), min_size=1, max_size=6
)


def check(sequence: list[tuple[str, int]]) -> None:
    """At the end of the sequence the painting has the pixels of a picture that is drawn whole."""
    (kept, move), (whole, same) = playground(), playground()
    layers = Layers(kept)
    layers.paint()
    for what, number in sequence:
        move[what](number)
        same[what](number)
        painted = layers.paint()
    whole.canvas.draw()
    expected = Image.fromarray(np.asarray(whole.canvas.buffer_rgba())).convert("RGB")
    np.testing.assert_array_equal(np.asarray(painted), np.asarray(expected))


@pytest.mark.slow
@settings(max_examples=8)
@given(MOVES)
def test_layers_give_the_pixels_of_a_whole_drawing(sequence):
    check(sequence)
