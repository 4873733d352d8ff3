"""A picture painted in layers has the pixels of one drawn whole, whatever moves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import course_utils as cu
from course_utils.kit.painting import Layers

pytestmark = pytest.mark.slow


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


moves = st.lists(
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


@settings(max_examples=8)
@given(moves)
def test_layers_give_the_pixels_of_a_whole_drawing(sequence):
    check(sequence)


@pytest.mark.parametrize("what", sorted(playground()[1]))
def test_what_moves_again_is_drawn_again(what):
    check([(what, 1), (what, 2), (what, 3)])


@pytest.mark.parametrize("what", ["line", "image", "bars", "title", "ticks"])
def test_only_what_moves_is_drawn_again(what, monkeypatch):
    picture, move = playground()
    layers = Layers(picture)
    for number in (1, 2):
        layers.paint()
        move[what](number)
    layers.paint()
    whole = []
    monkeypatch.setattr(picture.canvas, "draw", lambda: whole.append(1))
    for number in range(3, 9):
        move[what](number)
        layers.paint()
    assert not whole
