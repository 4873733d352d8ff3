"""The style of all pictures: colors by their meaning, on light and dark pages, fonts, and matplotlib's settings.

Pictures, drawings, live models and the book's pages all take their colors from here, so that a query has the same
color everywhere.
"""

import base64
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from unicodedata import category, combining, east_asian_width

import numpy as np
from cycler import cycler
from matplotlib import colormaps, font_manager, ft2font, rcParamsDefault
from matplotlib.colors import ListedColormap, to_rgba

BOX = "□"
"""Drawn for a letter that our fonts lack."""

FONTS = Path(__file__).with_name("fonts")

ROLES = {
    "paper": ("#FDFCF9", "#15181D"),  # background of the page
    "raised": ("#F4F2EC", "#1E232B"),  # background of cards and code
    "rule": ("#DAD6CC", "#343B46"),  # thin lines between parts
    "wash": ("#DCE8F7", "#233449"),  # background of a selection
    "ink": ("#1C212B", "#E9E7E2"),  # text
    "muted": ("#5B6370", "#9AA3AF"),  # less important text
    "query": ("#973820", "#E07B3A"),  # also the current or touched item
    "key": ("#226DC4", "#A9CFF7"),  # also links and weights
    "value": ("#0B5A50", "#52D6B0"),  # also right answers
    "wrong": ("#956205", "#F2D27A"),
    "plum": ("#7A2074", "#DE6FD6"),
    "line": ("#656C80", "#8B93A0"),  # the truth, a baseline
    "heat": ("#124E97", "#BBD9F8"),  # a weight of 1 in a map; smaller weights are paler
}
"""Role → its color on a light page and on a dark one. Text may have any from `ink` on."""

COLORS = {role: light for role, (light, _) in ROLES.items()}
"""Role → its color on a light page, in which matplotlib draws; `svg` makes it follow the page."""

CYCLE = ["key", "query", "value", "plum", "wrong", "line"]
"""Roles whose colors lines have in turn; color-blind readers can distinguish them."""

FAMILIES = {
    "serif": '"Source Serif 4", Georgia, serif',
    "sans": "Inter, system-ui, sans-serif",
    "mono": '"Source Code Pro", ui-monospace, monospace',
}

FACES = {  # file → family, style, weights
    "inter": ("Inter", "normal", "400 700"),
    "source-serif-4": ("Source Serif 4", "normal", "200 900"),
    "source-serif-4-italic": ("Source Serif 4", "italic", "200 900"),
    "source-code-pro": ("Source Code Pro", "normal", "200 900"),
}

for _font in sorted(FONTS.glob("*.ttf")):
    font_manager.fontManager.addfont(str(_font))

HEAT = ListedColormap([to_rgba(COLORS["heat"], level) for level in np.linspace(0, 1, 65)], "heat")
SIGNS = ListedColormap(
    [
        to_rgba(COLORS["query" if level < 0 else "key"], abs(level))
        for level in np.linspace(-1, 1, 65)
    ],
    "signs",
)
"""Color maps: transparent to *heat*, for weights, and *query* over transparent to *key*, for both signs."""

for _map in (HEAT, SIGNS):
    colormaps.register(_map, force=True)

STYLE: dict[Any, Any] = {
    "figure.dpi": 96, "figure.facecolor": "white", "font.family": ["Inter", "DejaVu Sans"],
    "font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "xtick.labelsize": 9, "ytick.labelsize": 9,
    "text.color": COLORS["ink"], "axes.titlecolor": COLORS["ink"], "axes.labelcolor": COLORS["muted"],
    "xtick.color": COLORS["muted"], "ytick.color": COLORS["muted"],
    "axes.edgecolor": COLORS["muted"], "axes.linewidth": 0.6, "axes.facecolor": "none",
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 3, "ytick.major.size": 3,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=[COLORS[name] for name in CYCLE]),
    "legend.frameon": False, "legend.fontsize": 9, "lines.linewidth": 1.6, "image.cmap": "heat",
}  # fmt: skip
"""Differences from matplotlib's defaults; nine points are twelve pixels."""

SETTINGS: dict[Any, Any] = {
    name: value for name, value in rcParamsDefault.items() if not name.startswith("backend")
} | STYLE
"""matplotlib's settings while something is added to a picture, and while it is drawn.

They are complete, so that settings of the session or a matplotlibrc change no picture: with `image.origin: lower` a
map would be upside down, and with `text.usetex` all text would need LaTeX.
"""


def tokens_css() -> str:
    """The colors and families as CSS variables, ``--cu-query`` and so on, that follow the page's ``color-scheme``."""
    both = [f"--cu-{role}: light-dark({light}, {dark});" for role, (light, dark) in ROLES.items()]
    families = [f"--cu-{name}: {family};" for name, family in FAMILIES.items()]
    return f":root {{ {' '.join(both + families)} }}\n"


def fonts_css() -> str:
    """Style sheet that contains the fonts, since Firefox loads none from another file on `file://` pages."""
    face = """@font-face { font-family: "%s"; font-style: %s; font-weight: %s; font-display: swap;
  src: url(data:font/woff2;base64,%s) format("woff2"); }
"""
    return "".join(
        face % (*options, base64.b64encode((FONTS / f"{name}.woff2").read_bytes()).decode())
        for name, options in FACES.items()
    )


@cache
def _faces() -> list[ft2font.FT2Font]:
    """The fonts of text in pictures, in the order in which a letter is looked up."""
    paths = (FONTS / "Inter-Regular.ttf", font_manager.findfont("DejaVu Sans"))
    return [ft2font.FT2Font(str(path)) for path in paths]


@cache
def _face(letter: str) -> ft2font.FT2Font | None:
    """The first font that has a letter."""
    return next((face for face in _faces() if face.get_char_index(ord(letter))), None)


@cache
def missing_letters(text: str) -> str:
    """The letters of a text that neither *Inter* nor DejaVu has, each once, such as Chinese, Hindi or emoji.

    A browser has other fonts for them; in pixels they are boxes.
    """
    return "".join(dict.fromkeys(letter for letter in text if not _face(letter)))


def with_boxes(text: str) -> str:
    """The text with `BOX` for each missing letter; missing accents and joiners are left out."""
    return "".join(
        letter if _face(letter) else BOX if _guessed_width(before, letter) else ""
        for before, letter in pairwise(f" {text}")
    )


@cache
def width_of(text: str) -> float:
    """Width of a line of text in *Inter*, or for letters that it lacks in DejaVu, for a font size of 1.

    The width of a letter that both lack is a guess, since the browser chooses its font.
    """
    width = 0.0
    for before, letter in pairwise(f" {text}"):
        if combining(letter):
            continue
        face = _face(letter)
        if face is None:
            width += _guessed_width(before, letter)
            continue
        # Read in the font's own units, since scaled and hinted widths depend on matplotlib's version.
        advance = face.load_char(ord(letter), flags=ft2font.LoadFlags.NO_SCALE).horiAdvance
        width += advance / face.units_per_EM
    return width


def _guessed_width(before: str, letter: str) -> float:
    """Width of a letter that no font has, for a font size of 1; 0 if it joins the letter before it."""
    skin = "\U0001f3fb" <= letter <= "\U0001f3ff"
    if skin or before == "\N{ZERO WIDTH JOINER}" or category(letter) in ("Mn", "Me", "Cf"):
        return 0.0  # part of the letter before it
    return 1.0 if east_asian_width(letter) in "WF" else 0.6
