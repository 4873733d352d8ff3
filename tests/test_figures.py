# ruff: noqa: E501
"""Pictures: one color scale, labeled axes, alt texts, and the same bytes for the same picture."""

import io
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
import torch
from PIL import Image

import course_utils as cu
from course_utils.figures import image_pixels


def panels(picture):
    """The axes that hold a map, without the color bar's."""
    return [ax for ax in picture.axes if ax.images]


def test_every_panel_shares_one_color_scale():
    matrices = torch.stack([torch.full((3, 4), v) for v in (0.1, 0.5, 0.9)])
    picture = cu.show_heatmaps(matrices, alt="Three flat maps, from pale to dark")
    norms = {(ax.images[0].norm.vmin, ax.images[0].norm.vmax) for ax in panels(picture)}
    assert norms == {(0.0, 1.0)}
    assert len(panels(picture)) == 3


def test_queries_run_down_and_keys_to_the_right():
    matrix = torch.tensor([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]])
    picture = cu.show_heatmaps(
        matrix, alt="Weights of two queries", queries=["q1", "q2"], keys=["k1", "k2", "k3"]
    )
    (ax,) = panels(picture)
    np.testing.assert_allclose(ax.images[0].get_array(), matrix)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Keys", "Queries")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["k1", "k2", "k3"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["q1", "q2"]
    picture.canvas.draw()
    top = ax.transData.transform((0, 0))[1]
    assert top > ax.transData.transform((0, 1))[1], "the first query stands on top"


def test_outer_panels_carry_the_labels_and_titles_stand_over_their_columns():
    picture = cu.show_heatmaps(torch.rand(2, 3, 4, 4), alt="Six random maps", titles=list("abc"))
    grid = np.array(panels(picture)).reshape(2, 3)
    assert [ax.get_title() for ax in grid[0]] == ["a", "b", "c"]
    assert all(not ax.get_title() for ax in grid[1])
    assert [ax.get_xlabel() for ax in grid[1]] == ["Keys"] * 3
    assert [ax.get_ylabel() for ax in grid[:, 0]] == ["Queries"] * 2
    assert not grid[0, 1].get_ylabel() and not grid[0, 1].get_xlabel()


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (2, 2, 3, 4)])
def test_maps_come_alone_in_a_row_or_in_a_grid(shape):
    picture = cu.show_heatmaps(torch.rand(shape), alt="Random maps")
    assert len(panels(picture)) == np.prod(shape[:-2], dtype=int)
    assert picture.get_figwidth() <= 9


def test_annotated_values_are_legible_on_their_cells():
    picture = cu.show_heatmaps(torch.eye(2), alt="Identity with its values", annotate=True)
    texts = {text.get_text(): text.get_color() for text in panels(picture)[0].texts}
    assert texts == {"1.00": "white", "0.00": "black"}


def test_tensors_of_any_kind_can_be_drawn():
    for matrix in (
        torch.rand(2, 2, requires_grad=True),
        torch.rand(2, 2).bfloat16(),
        torch.eye(2).bool(),
        [[0.0, 1.0], [1.0, 0.0]],
    ):
        assert cu.show_heatmaps(matrix, alt="Two by two weights").png()


def test_the_same_picture_gives_the_same_bytes():
    def draw():
        return cu.show_curves(
            torch.arange(3), {"a": [1, 2, 3], "b": [3, 2, 1]}, alt="Two lines that cross", xlabel="x", ylabel="y"
        )  # fmt: skip

    first = draw()
    assert first.png() == draw().png() == first.png()


@pytest.mark.slow
def test_importing_the_course_leaves_the_session_s_settings_alone():
    script = """
import matplotlib
before = dict(matplotlib.rcParams)
import course_utils
course_utils.subplots(alt="Empty axes")[0].png()
assert dict(matplotlib.rcParams) == before
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_session_s_settings_leave_pictures_alone():
    def draw():
        picture, axes = cu.subplots(1, 2, alt="Two lines and a map", sharey=True)
        axes[0].plot([1, 2, 3], [1, 3, 2], label="line")
        axes[0].axhline(2)
        axes[0].legend()
        axes[0].set(title="left", xlabel="x", xticks=[1, 2], ylabel="y")
        axes[1].set_title("right")
        axes[1].annotate("a word", (1, 1))
        picture.colorbar(axes[1].scatter([1, 2], [1, 2], c=[1, 2]), ax=axes)
        return picture.png()

    usual = draw()
    large = dict.fromkeys(["font.size", "axes.titlesize", "legend.fontsize", "xtick.labelsize"], 20)
    with mpl.rc_context({**large, "lines.linewidth": 5, "image.cmap": "hot", "figure.dpi": 50}):
        assert draw() == usual


def test_the_picture_keeps_its_size_in_pixels():
    picture, _ = cu.subplots(alt="Empty axes", width=5, height=2)
    assert Image.open(io.BytesIO(picture.png())).size == (480, 192)
    assert Image.open(io.BytesIO(picture.png(dpi=192))).size == (960, 384)
    assert Image.open(io.BytesIO(picture.png())).size == (480, 192)


def test_curves_differ_in_color_and_in_dash():
    x = torch.arange(4.0)
    picture = cu.show_curves(
        x, {name: x * i for i, name in enumerate("abcd")}, alt="Four lines", xlabel="x", ylabel="y"
    )
    lines = picture.axes[0].lines
    assert len({line.get_color() for line in lines}) == 4
    assert len({line.get_linestyle() for line in lines}) == 4


def test_a_picture_displays_itself_once_with_its_alt_text(monkeypatch):
    shown = []
    monkeypatch.setattr(
        "IPython.display.display", lambda *args, **kwargs: shown.append((args, kwargs))
    )
    picture, _ = cu.subplots(alt="Empty axes, for a test")
    picture._ipython_display_()
    ((data,), options) = shown[0]
    assert len(shown) == 1 and data["image/png"].startswith(b"\x89PNG")
    assert data["text/plain"] == "Picture(alt='Empty axes, for a test')"
    assert options["metadata"]["image/png"] == {
        "alt": "Empty axes, for a test",
        "width": 768,
        "height": 288,
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cu.subplots(alt=" "), "alt='' says nothing"),
        (lambda: cu.subplots(alt="Wide", width=12), "0 < width <= 9"),
        (lambda: cu.subplots(alt="Flat", height=0), "height > 0"),
        (lambda: cu.show_heatmaps(torch.ones(3), alt="One row"), r"matrices has shape \(3,\)"),
        (lambda: cu.show_heatmaps(torch.ones(2, 2), alt="x", keys=["a"]), "keys has 1 labels; the matrix needs 2"),
        (lambda: cu.show_heatmaps(torch.ones(2, 2, 2), alt="x", titles=["a"]), "titles has 1 entries; 2 columns"),
        (lambda: cu.show_curves([1, 2], {"a": [1]}, alt="x", xlabel="", ylabel=""), r"curve 'a' has shape \(1,\); x has \(2,\)"),
    ],
)  # fmt: skip
def test_bad_pictures_are_refused_in_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Images -----------------------------------------------------------------------------------------


def test_images_of_any_scale_and_color_become_pixels_from_0_to_1():
    grey = torch.tensor([0, 255], dtype=torch.uint8).view(1, 1, 1, 2)
    assert image_pixels(grey).tolist() == [[[[0.0], [1.0]]]]
    assert image_pixels(torch.tensor([-1.0, 0.0]).view(1, 1, 1, 2)).tolist() == [[[[0.0], [0.5]]]]
    assert image_pixels(torch.zeros(2, 3, 4, 5)).shape == (2, 4, 5, 3)
    with pytest.raises(ValueError, match=r"shape \(1, 2, 4, 4\); \(n, 1 or 3 channels"):
        image_pixels(torch.zeros(1, 2, 4, 4))


def test_images_stand_in_rows_under_their_titles():
    picture = cu.show_images(torch.zeros(5, 1, 4, 4), titles=list("abcde"), columns=3, alt="Five")
    assert len(picture.axes) == 6
    assert [ax.get_title() for ax in picture.axes] == [*"abcde", ""]
    assert not picture.axes[5].axison
    with pytest.raises(ValueError, match="titles has 1 entries; 2 images"):
        cu.show_images(torch.zeros(2, 1, 4, 4), titles=["a"], alt="Two")


def test_weights_over_images_share_one_scale_and_are_not_blurred():
    weights = torch.tensor([[[0.0, 0.1], [0.2, 0.4]], [[0.0, 0.0], [0.0, 0.2]]])
    picture = cu.show_images(torch.zeros(2, 1, 8, 8), weights=weights, alt="Two with weights")
    layers = [ax.images[1] for ax in picture.axes]
    assert [layer.get_array()[1, 1, 3] for layer in layers] == pytest.approx([0.75, 0.375])
    assert layers[0].get_array()[0, 0, 3] == 0
    assert {layer.get_interpolation() for layer in layers} == {"nearest"}
    assert tuple(layers[0].get_extent()) == tuple(picture.axes[0].images[0].get_extent())
    with pytest.raises(ValueError, match=r"weights has shape \(2, 2\)"):
        cu.show_images(torch.zeros(2, 1, 8, 8), weights=weights[0], alt="Wrong")
