# ruff: noqa: E501
"""Pictures: one color scale, labeled axes, alt texts, and the same bytes for the same picture."""

import base64
import io
import itertools
import re
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup
from matplotlib.colors import to_hex
from nbval.plugin import get_sanitize_patterns
from PIL import Image

import course_utils as cu
from course_utils.figures import image_pixels, label_lines
from course_utils.figures.picture import MAX_OFF, fewer_colors
from course_utils.figures.style import STYLE
from course_utils.files import ROOT


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


def test_annotated_values_of_each_shade_have_contrast():
    picture = cu.show_heatmaps(torch.linspace(0, 1, 41)[None], alt="All shades", annotate=True)
    ax = panels(picture)[0]
    for text, shade in zip(
        ax.texts, ax.images[0].to_rgba(ax.images[0].get_array())[0], strict=True
    ):
        ground = linear(to_hex(shade)) @ [0.2126, 0.7152, 0.0722]
        contrast = 1.05 / (ground + 0.05) if text.get_color() == "white" else (ground + 0.05) / 0.05
        assert contrast >= 4.3, text.get_text()


@pytest.mark.parametrize(
    ("keys", "size"), [(["cat", "dog", "cow"], 9), (["giraffe", "elephant", "mouse"], 8)]
)
def test_labels_of_columns_that_would_touch_are_smaller(keys, size):
    maps = torch.rand(5, 2, 3)
    picture = cu.show_heatmaps(maps, alt="Five maps in a row", keys=keys)
    assert {label.get_fontsize() for ax in panels(picture) for label in ax.get_xticklabels()} == {
        size
    }


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


def shown_as(picture, monkeypatch) -> dict:
    """What a cell shows of it."""
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    picture._ipython_display_()
    (data,) = shown
    return data


def embedded(html: str) -> Image.Image:
    """The picture inside an HTML page."""
    return Image.open(io.BytesIO(base64.b64decode(re.search(r"base64,([^\"]+)", html)[1])))


def test_a_picture_displays_itself_once_as_html_with_its_alt_text(monkeypatch):
    picture, _ = cu.subplots(alt='Weights: "the"\n  sees <itself>')
    data = shown_as(picture, monkeypatch)
    assert data.keys() == {"text/html", "text/plain"}
    assert data["text/plain"] == f"Picture(alt={picture.alt!r})"
    image = BeautifulSoup(data["text/html"], "html.parser").img
    assert image["alt"] == 'Weights: "the" sees <itself>'
    assert (image["width"], image["height"]) == ("768", "288")
    assert image["src"].startswith("data:image/png;base64,")
    assert "background:#fff" in image["style"] and "max-width:100%" in image["style"]


def test_a_picture_is_shown_twice_as_sharp_and_takes_less_than_its_plain_png(monkeypatch):
    picture = cu.show_heatmaps(torch.rand(4, 9, 9), alt="Four random maps")
    seen = embedded(shown_as(picture, monkeypatch)["text/html"])
    assert seen.size == tuple(2 * side for side in picture.canvas.get_width_height())
    plain = picture.pixels(dpi=192)
    assert np.abs(np.asarray(seen.convert("RGB"), int) - np.asarray(plain, int)).max() <= MAX_OFF
    assert len(picture._repr_html_()) < 4 / 3 * len(picture.png(dpi=192))


def test_a_picture_of_many_colors_keeps_them():
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 90, 3), np.uint8))
    assert fewer_colors(noise) is noise


def test_nbval_compares_alt_text_and_size_and_not_the_pixels(request):
    chosen = request.config.getoption("nbval_sanitize_with")
    assert chosen == "tests/nbval_sanitize.cfg"
    patterns = get_sanitize_patterns((ROOT / chosen).read_text(encoding="utf-8"))

    def compared(color, alt="Two lines that cross", width=5):
        picture, ax = cu.subplots(alt=alt, width=width)
        ax.plot([1, 2], color=color)
        html = picture._repr_html_()
        for pattern, instead in patterns:
            html = re.sub(pattern, instead, html)
        return html

    assert compared("red") == compared("blue")
    assert len(compared("red")) < 300
    assert len({compared("red"), compared("red", alt="Two lines"), compared("red", width=6)}) == 3


# Colors -----------------------------------------------------------------------------------------

# Machado, Oliveira and Fernandes (2009): what a reader sees who lacks one kind of cone.
SEEN = {
    "all cones": np.eye(3),
    "no long": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no middle": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
}
OKABE_ITO = ["#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"]


def linear(color: str) -> np.ndarray:
    """Red, green and blue as amounts of light, from 0 to 1."""
    part = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def nearest(colors: list[str], seen) -> float:
    """The least distance between two of the colors, in OKLab (Ottosson, 2020), times 100."""
    cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    axes = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    light = np.clip([seen @ linear(color) for color in colors], 0, 1)
    places = np.cbrt(light @ np.transpose(cones)) @ np.transpose(axes)
    return 100 * min(np.linalg.norm(a - b) for a, b in itertools.combinations(places, 2))


@pytest.mark.parametrize("name", sorted(set(cu.COLORS) - {"yellow"}))
def test_a_line_of_each_color_has_contrast_on_white_and_on_black(name):
    luminance = linear(cu.COLORS[name]) @ [0.2126, 0.7152, 0.0722]
    assert 1.05 / (luminance + 0.05) >= 3, "on white"
    assert (luminance + 0.05) / 0.05 >= 3, "on black"


@pytest.mark.parametrize("kind", SEEN)
def test_the_colors_of_lines_differ_more_than_those_they_were_made_from(kind):
    lines = [color["color"] for color in STYLE["axes.prop_cycle"]]
    assert set(lines) == set(cu.COLORS.values()) - {cu.COLORS["yellow"]}
    seen = np.array(SEEN[kind])
    assert nearest(lines, seen) > min(
        nearest(OKABE_ITO, np.array(other)) for other in SEEN.values()
    )


# What a figure says of itself -------------------------------------------------------------------


def bar_of(picture) -> list[str]:
    """The words on the color bar, from below."""
    picture.canvas.draw()
    (bar,) = (ax for ax in picture.axes if not ax.images or ax.get_label() == "<colorbar>")
    return [t.get_text() for t in sorted(bar.get_yticklabels(), key=lambda t: t.get_position()[1])]


def test_the_bar_says_where_values_lie_beyond_the_scale():
    matrix = torch.tensor([[0.1, 0.2], [0.0, 0.7]])
    assert bar_of(cu.show_heatmaps(matrix, alt="Four weights", vmax=0.3))[-1] == "0.3 or more"
    assert bar_of(cu.show_heatmaps(matrix - 0.5, alt="Four", vmin=-0.2))[0] == "-0.2 or less"
    for vmax in (0.7, 1.0):  # 0.7 itself, in single precision, is not beyond
        assert not any(
            "or" in text for text in bar_of(cu.show_heatmaps(matrix, alt="Four", vmax=vmax))
        )


def test_labels_stand_at_the_ends_of_their_lines_and_apart():
    picture, ax = cu.subplots(alt="Lines that end together")
    for index, name in enumerate(["low", "middle", "high", "_hidden"]):
        ax.plot([0, 1, 2], [0, 1 + 0.01 * index, np.nan], label=name)
    ax.axhline(3, label="far")
    label_lines(ax)
    picture.canvas.draw()
    said = {text.get_text(): text for text in ax.texts}
    assert set(said) == {"low", "middle", "high", "far"}
    for line in ax.lines[:3]:
        text = said[line.get_label()]
        assert text.get_color() == line.get_color() and text.xy[0] == 1
    boxes = [said[name].get_window_extent() for name in ("low", "middle", "high", "far")]
    assert all(below.y1 < above.y0 for below, above in itertools.pairwise(boxes))
    edge = picture.canvas.get_width_height()[0]
    assert boxes[-1].x1 < edge


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
