"""Colors, and matplotlib's settings for all pictures."""

from typing import Any

from cycler import cycler

COLORS = {
    "blue": "#0059B0", "vermilion": "#D53500", "green": "#068F70", "purple": "#E05CB0",
    "orange": "#CB8503", "sky": "#2B99E0", "gray": "#5E5E5E", "yellow": "#F0E442",
}  # fmt: skip
"""Colors that color-blind readers can distinguish: those of Okabe and Ito (2008), darkened or lightened until
a line in them has a contrast of at least 3 : 1 on white and on black. Yellow has none on white: it fills areas."""

CYCLE = [name for name in COLORS if name != "yellow"]
"""The colors of lines, in their order."""

STYLE: dict[Any, Any] = {
    "figure.dpi": 96, "figure.facecolor": "white", "font.size": 10,
    "axes.titlesize": 10, "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=[COLORS[name] for name in CYCLE]),
    "legend.frameon": False, "legend.fontsize": 9, "lines.linewidth": 1.8, "image.cmap": "Blues",
}  # fmt: skip
"""matplotlib's settings while something is added to a picture, and while it is drawn."""
