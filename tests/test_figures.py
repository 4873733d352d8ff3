# ruff: noqa: E501
"""Pictures: one color scale, labeled axes, alt texts, and the same bytes for the same picture."""

import base64
import itertools
import os
import re
import subprocess
import sys
from html import escape
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup
from nbval.plugin import get_sanitize_patterns

import course_utils as cu
from course_utils.figures import image_pixels, label_lines
from course_utils.figures.style import CYCLE, ROLES
from course_utils.files import ROOT


def panels(picture):
    """The axes that hold a map, without the color bar's."""
    return [ax for ax in picture.axes if ax.images]


def test_every_panel_shares_one_color_scale():
    matrices = torch.stack([torch.full((3, 4), v) for v in (0.1, 0.5, 0.9)])
    picture = cu.show_heatmaps(matrices, alt="Three flat maps, from pale to dark")
    norms = [(ax.images[0].norm.vmin, ax.images[0].norm.vmax) for ax in panels(picture)]
    assert norms == 3 * [(0.0, 1.0)]


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


def test_the_same_picture_has_the_same_bytes_whatever_the_session_s_settings():
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
    assert draw() == usual
    large = dict.fromkeys(["font.size", "axes.titlesize", "legend.fontsize", "xtick.labelsize"], 20)
    with mpl.rc_context({**large, "lines.linewidth": 5, "image.cmap": "hot", "figure.dpi": 50}):
        assert draw() == usual


FOREIGN = """
text.usetex: True
image.origin: lower
image.interpolation: bicubic
axes.grid: True
axes.formatter.limits: 0, 0
xtick.labelbottom: False
ytick.direction: in
xtick.minor.visible: True
font.size: 20
patch.force_edgecolor: True
path.sketch: 1, 100, 2
"""

DRAWING = """
import course_utils as cu

picture, (left, right) = cu.subplots(1, 2, alt="A map and curves")
cu.heatmap(left, [[0.1, 0.9], [0.5, 0.5]], queries=["a", "b"], keys=["c", "d"], title="$x_t$")
right.fill_between([1, 2, 3], [1, 3, 2], alpha=0.5)
right.clabel(right.contour([[1, 2], [3, 5]]))
right.loglog([1, 10, 100], [1, 2, 3])
right.set_xticks([1, 100], ["one", "many"])
picture.suptitle("both")
drawn = picture.svg()
"""


def test_a_reader_s_matplotlibrc_changes_no_picture(tmp_path):
    (theirs := tmp_path / "matplotlibrc").write_text(FOREIGN)
    done = subprocess.run(
        [sys.executable, "-c", f"{DRAWING}\nprint(drawn, end='')"],
        cwd=ROOT, env=os.environ | {"MATPLOTLIBRC": str(theirs)}, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    exec(DRAWING, usual := {})
    assert done.stdout == usual["drawn"], done.stderr


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "token", ["$5-$9", "$$", r"$\foo$", "a$_$b", "你好", "नमस्ते", "👍🏽", "สวัสดี", "\x0b", "\ud800"]
)
def test_any_token_is_a_word_of_the_picture_and_no_formula(token):
    picture = cu.show_heatmaps(
        torch.eye(2), alt="Two tokens", queries=[token, "a"], keys=["b", token]
    )
    words = ElementTree.fromstring(drawn(picture)).iter("{http://www.w3.org/2000/svg}text")
    shown = token if token.isprintable() else "□"
    assert [word.text for word in words if word.text not in "ab"].count(shown) == 2
    assert picture.png()
    photo = cu.show_images(torch.zeros(1, 1, 8, 8), alt="A title", titles=[token])
    assert escape(shown, quote=False) in drawn(photo)


def drawn(picture) -> str:
    """The SVG that a notebook holds of it."""
    image = BeautifulSoup(picture._repr_html_(), "html.parser").img
    kind, data = image["src"].split(",")
    assert kind == "data:image/svg+xml;base64"
    return base64.b64decode(data).decode()


def test_a_picture_displays_itself_once_as_html_with_its_alt_text(monkeypatch):
    picture, _ = cu.subplots(alt='Weights: "the"\n  sees <itself>')
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    picture._ipython_display_()
    (data,) = shown
    assert data.keys() == {"text/html", "text/plain"}
    assert data["text/plain"] == f"Picture(alt={picture.alt!r})"
    image = BeautifulSoup(data["text/html"], "html.parser").img
    assert image["alt"] == 'Weights: "the" sees <itself>'
    assert (image["width"], image["height"]) == ("768", "288")
    assert "max-width:100%" in image["style"]
    assert ElementTree.fromstring(drawn(picture)).get("viewBox") == "0 0 768 288"


def test_what_is_drawn_has_the_page_s_colors_and_words_as_words():
    picture, ax = cu.subplots(alt="A line, a dot and a map")
    ax.plot([0, 1], [0, 1], label="α → β")
    ax.plot([0.5], [0.5], "o", color="black")
    ax.set_title("one & two", fontsize=12)
    label_lines(ax)
    svg = drawn(picture)
    words = {
        "".join(text.itertext()): text
        for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    }
    assert {"one & two", "α → β", "0.5"} <= words.keys()
    assert all(float(text.get("textLength", 1)) > 0 for text in words.values())
    painted = set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg))
    assert painted == {"none", *(f"var(--cu-{role})" for role in ("ink", "muted", "key"))}
    for role in ("ink", "muted", "key"):
        assert f"--cu-{role}:light-dark({','.join(ROLES[role])})" in svg


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


# What a figure says of itself -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cu.subplots(alt=" "), "alt='' says nothing"),
        (lambda: cu.subplots(alt="Wide", width=12), "0 < width <= 9"),
        (lambda: cu.subplots(alt="Flat", height=0), "height > 0"),
        (lambda: cu.show_heatmaps(torch.ones(0, 0), alt="None"), r"\(0, 0\); there is nothing to show"),
        (lambda: cu.show_heatmaps(torch.ones(3), alt="One row"), r"matrices has shape \(3,\)"),
        (lambda: cu.show_heatmaps(torch.ones(2, 2), alt="x", keys=["a"]), "keys has 1 labels; the matrix needs 2"),
        (lambda: cu.show_heatmaps(torch.ones(2, 2, 2), alt="x", titles=["a"]), "titles has 1 entries; 2 columns"),
        (lambda: image_pixels(torch.zeros(1, 2, 4, 4)), r"shape \(1, 2, 4, 4\); \(n, 1 or 3 channels"),
        (lambda: cu.show_images(torch.zeros(2, 1, 8, 8), weights=torch.zeros(2, 2), alt="x"), r"weights has shape \(2, 2\)"),
        (lambda: cu.show_curves([1, 2], {"a": [1]}, alt="x", xlabel="", ylabel=""), r"curve 'a' has shape \(1,\); x has \(2,\)"),
    ],
)  # fmt: skip
def test_bad_pictures_are_refused_in_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Colors -----------------------------------------------------------------------------------------


def test_a_file_of_a_picture_says_which_letters_are_boxes_in_it(tmp_path):
    picture = cu.show_heatmaps(torch.eye(2), alt="Two", keys=["猫が", "ß"])
    with pytest.warns(UserWarning, match="our fonts have no 猫 が, so the file shows □ instead"):
        picture.savefig(tmp_path / "map.png")


SIGHT = {  # linear RGB as it is seen by people with one kind of cone missing (Machado, Oliveira and Fernandes, 2009)
    "usual": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(color):
    rgb = np.array(mpl.colors.to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one, two):
    bright, dark = sorted((XYZ[1] @ linear(color) for color in (one, two)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def lab(color, sight):
    x, y, z = XYZ @ np.clip(SIGHT[sight] @ linear(color), 0, None) / XYZ.sum(axis=1)
    f = [t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


THEMES = pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])


@THEMES
@pytest.mark.parametrize("sight", SIGHT)
def test_the_colors_of_lines_are_told_apart_by_everybody(theme, sight):
    seen = {role: lab(ROLES[role][theme], sight) for role in CYCLE}
    apart = {
        pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]])
        for pair in itertools.combinations(CYCLE, 2)
    }
    assert min(apart.values()) >= 14, min(apart, key=apart.get)


@THEMES
@pytest.mark.parametrize("role", ["ink", "muted", *CYCLE])
def test_words_in_any_color_are_read_on_paper_and_on_cards(theme, role):
    for ground in ("paper", "raised"):
        assert contrast(ROLES[role][theme], ROLES[ground][theme]) >= 4.5
