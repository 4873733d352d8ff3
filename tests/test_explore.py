"""What holds for every explorer: the same picture for the same values, in Lab, in the book and elsewhere."""

import base64
import io
import json
import random
import re
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from PIL import Image

import course_utils as cu
from course_utils.lessons.explorer import (
    MAX_FRAMES,
    Choice,
    Control,
    Explorer,
    IntRange,
    Slider,
    Toggle,
)
from course_utils.lessons.page import COLOR_STEP, MAX_BYTES

VIEW = "application/vnd.jupyter.widget-view+json"

every_explorer = pytest.mark.parametrize("name", dir(cu.explore))


def make(name: str) -> Explorer:
    return getattr(cu.explore, name)()


@cache
def page(name: str) -> str:
    """Rendered once: all frames take seconds."""
    return make(name).page()


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def picture(*, fails_at: int | None = None):
    """A picture of a number, for explorers that are made to go wrong."""
    fig, ax = cu.subplots(alt="A number", width=2, height=1)
    text = ax.text(0.5, 0.5, "")

    def draw(n: int, kind: str = "a", on: bool = False) -> str:
        text.set_text("half done")
        if n == fails_at:
            raise ZeroDivisionError(f"{n} is <too much>")
        text.set_text(f"{n} {kind} {on}")
        return f"The number {n} of kind {kind}, {'on' if on else 'off'}"

    return fig, draw


def small(controls=None, picture=picture, **options) -> Explorer:
    return Explorer(
        "small", picture, controls or {"n": IntRange(0, 3, 1, label="Number")}, **options
    )


# Every explorer of the course


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


@every_explorer
def test_a_picture_depends_on_the_values_and_on_nothing_drawn_before(name):
    explorer = make(name)
    every = list(explorer.combinations())
    start, *others = random.Random(0).sample(every, min(6, len(every)))
    for values in (*others, start):
        png, alt = explorer.frame(**values)
    fresh = explorer.figure(**start)
    assert alt == fresh.alt
    np.testing.assert_array_equal(pixels(png), pixels(fresh.png()))


@every_explorer
def test_the_page_is_small_and_stands_on_its_own(name):
    html = page(name)
    assert len(html.encode()) <= MAX_BYTES
    assert not re.search(r"(src|href)=[\"'](?!data:)|url\((?!data:)|https?://|//cdn", html)
    assert " id=" not in html


@every_explorer
def test_every_frame_of_the_page_shows_its_picture_and_has_its_own_alt_text(name):
    explorer = make(name)
    html = page(name)
    frames = json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.S)[1])
    every = list(explorer.combinations())
    assert len(frames) == len(every)
    assert all(frame["alt"].strip() for frame in frames)
    background = webp(re.search(r"url\(data:image/webp;base64,([^)]*)\)", html)[1]).convert("RGBA")
    for index in {0, len(every) // 2, len(every) - 1}:
        png, alt = explorer.frame(**every[index])
        assert frames[index]["alt"] == alt
        seen = Image.alpha_composite(background, webp(frames[index]["webp"]).convert("RGBA"))
        difference = np.asarray(seen.convert("RGB"), dtype=int) - pixels(png)
        assert abs(difference).max() <= COLOR_STEP / 2


def webp(text: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(text)))


@every_explorer
def test_repr_is_one_line_and_the_same_each_time(name):
    first, second = repr(make(name)), repr(make(name))
    assert first == second
    assert re.fullmatch(rf"{name}\(\w+=.*\)", first)


@every_explorer
def test_elsewhere_the_first_picture_has_its_size_and_alt_text(name, monkeypatch):
    monkeypatch.delenv("COURSE_BOOK", raising=False)
    explorer = make(name)
    data, metadata = explorer._repr_mimebundle_()
    png, alt = explorer.frame()
    assert data["image/png"] == png
    assert data["text/plain"] == repr(explorer)
    width, height = Image.open(io.BytesIO(png)).size
    assert metadata == {"image/png": {"alt": alt, "width": width, "height": height}}
    assert width <= 864


# Environments


def test_lab_gets_live_controls_and_the_book_frames(monkeypatch):
    explorer = small()
    monkeypatch.delenv("COURSE_BOOK", raising=False)
    assert set(explorer._repr_mimebundle_()[0]) == {"text/plain", "image/png", VIEW}
    monkeypatch.setenv("COURSE_BOOK", "1")
    assert set(explorer._repr_mimebundle_()[0]) == {"text/plain", "image/png", "text/html"}


def test_without_ipywidgets_the_picture_remains(monkeypatch):
    monkeypatch.delenv("COURSE_BOOK", raising=False)
    monkeypatch.setitem(sys.modules, "course_utils.lessons.panel", None)
    assert set(small()._repr_mimebundle_()[0]) == {"text/plain", "image/png"}


def test_importing_the_course_imports_no_widgets():
    code = "import sys, course_utils; print([m for m in ('ipywidgets', 'IPython') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_file_of_an_explorer_does_not_hide_its_function():
    import course_utils.lessons.queries_keys_values.explorer  # noqa: F401

    assert repr(cu.explore.temperature()).startswith("temperature(")


# In Lab


def test_moving_a_control_moves_picture_caption_and_repr():
    explorer = small()
    panel = live(explorer)
    before = panel.image.value
    panel.inputs["n"].value = 3
    assert panel.image.value == explorer.frame(n=3)[0] != before
    assert "The number 3 of kind a, off" in panel.caption.value
    assert repr(explorer) == "small(n=3)"


def live(explorer: Explorer):
    explorer.panel()
    return explorer._panel


def test_set_moves_the_controls_that_are_shown():
    explorer = small()
    panel = live(explorer)
    explorer.set(n=2)
    assert panel.inputs["n"].value == 2
    assert panel.image.value == explorer.frame()[0]


def test_the_picture_keeps_its_size():
    explorer = small()
    panel = live(explorer)
    sizes = {pixels(explorer.frame(n=n)[0]).shape for n in range(4)}
    assert sizes == {(int(panel.image.height), int(panel.image.width), 3)}


def test_an_exception_is_shown_in_place_and_the_next_move_clears_it():
    explorer = small(picture=lambda: picture(fails_at=3))
    panel = live(explorer)
    before = panel.image.value
    panel.inputs["n"].value = 3
    assert "ZeroDivisionError: 3 is &lt;too much&gt;" in panel.alert.value
    assert 'role="alert"' in panel.alert.value
    assert panel.image.value == before
    panel.inputs["n"].value = 1
    assert panel.alert.value == ""
    np.testing.assert_array_equal(pixels(panel.image.value), pixels(explorer.figure(n=1).png()))


@pytest.mark.parametrize("method", ["set", "figure", "frame"])
def test_an_exception_is_raised_where_there_is_a_caller(method):
    explorer = small(picture=lambda: picture(fails_at=3))
    with pytest.raises(ZeroDivisionError, match="too much"):
        getattr(explorer, method)(n=3)
    assert repr(explorer) == "small(n=1)"


def test_every_control_is_labelled_and_of_the_right_kind():
    controls = {
        "n": Slider([0, 1], 0, label="Number"),
        "kind": Choice({"first": "a", "second": "b"}, "a", label="Kind"),
        "on": Toggle(False, label="Switched on"),
    }
    panel = live(small(controls))
    assert [widget.description for widget in panel.inputs.values()] == [
        "Number",
        "Kind",
        "Switched on",
    ]
    kinds = ["SelectionSlider", "RadioButtons", "Checkbox"]
    assert [type(widget).__name__ for widget in panel.inputs.values()] == kinds
    panel.inputs["kind"].value = "b"
    panel.inputs["on"].value = True
    assert repr(panel.explorer) == "small(n=0, kind='b', on=True)"
    many = live(small({"n": Choice(range(6), 0, label="Number")}))
    assert type(many.inputs["n"]).__name__ == "Dropdown"


# Bad input, and what would be right

SLIDER = Slider([1, 2], 1, label="Number")


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (lambda: small().set(n=9), ValueError, r"n=9 is not among the values \[0, 1, 2, 3\]"),
        (lambda: small().figure(m=1), TypeError, "small has no control 'm'; it has n"),
        (lambda: Explorer("small", picture, {}), ValueError, "controls is empty"),
        (lambda: Explorer("no name", picture, {"n": SLIDER}), ValueError, "name='no name'"),
        (lambda: Explorer("small", None, {"n": SLIDER}), TypeError, "picture=None is no function"),
        (lambda: small({"n": [1, 2]}), TypeError, r"controls\['n'\] is a list, not a Slider"),
        (lambda: small({"m": SLIDER}), TypeError, "m"),
        (
            lambda: small(
                {"n": IntRange(1, 20, 1, "A"), "kind": Choice(list("abcdefgh"), "a", "B")}
            ),
            ValueError,
            rf"20 × 8 = 160 combinations.* at most {MAX_FRAMES}",
        ),
        (lambda: Slider([], 1, label="N"), ValueError, "values is empty"),
        (
            lambda: Slider([1, 2], 3, label="N"),
            ValueError,
            r"value=3 is not among the values \[1, 2\]",
        ),
        (lambda: Slider([0, 1], True, label="N"), ValueError, "value=True is not among"),
        (lambda: Slider([1, 1], 1, label="N"), ValueError, "twice"),
        (lambda: Slider(3, 3, label="N"), TypeError, "values=3 is not a list"),
        (lambda: Choice("abc", "a", label="N"), TypeError, "values='abc' is not a list"),
        (lambda: Slider([1, 2], 1, label=" "), ValueError, "label=' ' says nothing"),
        (
            lambda: Slider([0.01, 0.02], 0.01, label="N", format="{:.1f}"),
            ValueError,
            "reads the same for two values",
        ),
        (
            lambda: small(picture=lambda: silent(None)),
            TypeError,
            "draw returned None; the alt text",
        ),
        (lambda: small(picture=lambda: silent(" ")), ValueError, "empty alt text"),
        (lambda: small(picture=lambda: picture()[0]), TypeError, "a Picture and a function draw"),
        (lambda: small(picture=lambda: ("fig", print)), TypeError, "cu.subplots makes a Picture"),
        (lambda: noise().page(), ValueError, "noise takes .* KB in a page.*fewer values"),
    ],
)
def test_a_mistake_is_named_with_what_would_be_right(mistake, error, message):
    with pytest.raises(error, match=message):
        mistake()


def silent(alt):
    return cu.subplots(alt="x", width=2, height=1)[0], lambda n: alt


def noise() -> Explorer:
    """Pictures that no encoding makes small."""

    def picture():
        fig, ax = cu.subplots(alt="Noise", width=6, height=4)
        image = ax.imshow(np.zeros((300, 400)), vmin=0, vmax=1, cmap="turbo")

        def draw(seed: int) -> str:
            image.set_data(np.random.default_rng(seed).random((300, 400)))
            return f"Noise number {seed}"

        return fig, draw

    return Explorer("noise", picture, {"seed": IntRange(0, 7, 0, label="Seed")})


def test_numpy_and_torch_numbers_become_plain_ones():
    control = Slider(np.linspace(0, 1, 3), np.float64(0.5), label="N")
    assert control.value == 0.5 and type(control.value) is float
    assert isinstance(control, Control)


def test_controls_say_their_values_in_words():
    assert Slider([0.5, 1], 1, label="σ", format="{:.2f}").texts == ("0.50", "1.00")
    assert Choice({"none": 0, "some": 1}, 0, label="x").texts == ("none", "some")
    assert Toggle(True, label="x").texts == ("off", "on")
    assert IntRange(2, 8, 4, label="x", step=2).values == (2, 4, 6, 8)
