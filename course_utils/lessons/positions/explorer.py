"""The explorers of *Positions*; here: one pair of columns turns with the position; all pairs together tell a distance.

The pair is chosen by its frequency ω, not by its number, so that it means the same at each dimension.
All waves and all sums stand still; what moves are the marks on them, so that a page stays small.
"""

import math

import numpy as np
from matplotlib.axes import Axes

from course_utils.figures import COLORS, subplots
from course_utils.kit.explorer import Explorer, Slider
from course_utils.lessons.positions.offsets import cures, offsets
from course_utils.positions import sinusoidal_table

__all__ = ["cures", "offsets", "positions"]

DIMENSIONS = (16, 64, 512)
STEPS = (0, 1, 2, 4)
"""ω = 10^(−step/2): each of these frequencies belongs to a pair of columns at each dimension."""
OFFSETS = (0, 1, 2, 3, 6, 10, 16, 31, 44, 63)
FARTHEST = 200
"""The sums of all pairs are drawn up to this offset."""
SHOWN = 66
"""The waves are drawn up to this position."""
STRIP = 2.7
"""Height of one wave's strip; the waves lie between −1 and 1."""
DRAWN = {16: ("0.7", "-", 1.0), 64: (COLORS["value"], "--", 1.4), 512: (COLORS["key"], "-", 2.0)}
"""Color, dash and width of each dimension's curve."""


def positions() -> Explorer:
    """Positions 0 and k on one pair's circle, on its waves, and in the dot product of all pairs."""
    controls = {
        "dim": Slider(DIMENSIONS, 64, label="Dimension d"),
        "step": FrequencySlider(STEPS, 2, label="Frequency ω"),
        "offset": Slider(OFFSETS, 10, label="Offset k"),
    }
    return Explorer("positions", Turns, controls)


class FrequencySlider(Slider):
    """Half powers of ten, written as the frequency they stand for."""

    def text(self, value) -> str:
        """The frequency."""
        return f"{_frequency(value):.2g}"


class Turns:
    """A circle with both positions as hands, the waves, and the dot products over the offset."""

    def __init__(self):
        """Computes the dot products of every dimension."""
        self.cosines = {dim: _mean_cosine(dim) for dim in DIMENSIONS}
        self.picture, (left, middle, right) = subplots(
            1, 3, alt="One pair of columns, its waves, and the dot product of all pairs",
            width=8.5, height=3.0, width_ratios=[1, 1.55, 1.45],
        )  # fmt: skip
        self._set_circle(left)
        self._set_waves(middle)
        self._set_sums(right)
        self.titles = [ax.title for ax in (left, middle, right)]

    def _set_circle(self, ax: Axes) -> None:
        turn = np.linspace(0, 2 * np.pi, 200)
        ax.plot(np.sin(turn), np.cos(turn), color="0.8", linewidth=1)
        (self.arc,) = ax.plot([], [], color=COLORS["wrong"], linewidth=3)
        ax.plot([0, 0], [0, 1], "-o", color=COLORS["key"], markersize=6, markevery=[1])
        (self.hand,) = ax.plot([], [], "--s", color=COLORS["query"], markersize=6, markevery=[1])
        ax.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        ax.set(aspect="equal", xlabel="sine column", ylabel="cosine column")

    def _set_waves(self, ax: Axes) -> None:
        fine = np.linspace(0, SHOWN, 661)
        strips = [-STRIP * strip for strip in range(len(STEPS))]
        for base, step in zip(strips, STEPS, strict=True):
            wave = fine * _frequency(step)
            ax.plot(fine, np.sin(wave) + base, color=COLORS["key"], linewidth=1.2)
            ax.plot(fine, np.cos(wave) + base, ":", color=COLORS["value"], linewidth=1.2)
        (self.marks,) = ax.plot([], [], "s", color=COLORS["query"], markersize=6)
        ax.set(
            xlim=(0, SHOWN),
            ylim=(-STRIP * len(STEPS) + 1.2, 1.5),
            xlabel="position (solid: sine, dotted: cosine)",
        )
        ax.set_yticks(strips, [f"ω = {_frequency(step):.2g}" for step in STEPS])
        ax.tick_params(axis="y", length=0)

    def _set_sums(self, ax: Axes) -> None:
        offsets = range(FARTHEST)
        for dim, (color, dash, width) in DRAWN.items():
            style = {"color": color, "linewidth": width, "label": f"d = {dim}"}
            ax.plot(offsets, self.cosines[dim], dash, **style)
        (self.here,) = ax.plot([], [], "s", color=COLORS["query"], markersize=6, zorder=5)
        ax.set(xlim=(0, FARTHEST), ylim=(-0.1, 1.05), xlabel="offset k")
        ax.legend(loc="upper right", fontsize=8, frameon=False)

    def draw(self, dim: int, step: int, offset: int) -> str:
        """Turn the pair of frequency 10^(−step/2) from position 0 to position `offset`."""
        frequency = _frequency(step)
        angle, period = offset * frequency, 2 * np.pi / frequency
        swept = np.linspace(0, min(angle, 2 * np.pi), 100)
        similarity = self.cosines[dim][offset]
        base = -STRIP * STEPS.index(step)
        self.arc.set_data(np.sin(swept), np.cos(swept))
        self.hand.set_data([0, np.sin(angle)], [0, np.cos(angle)])
        self.marks.set_data([offset, offset], [base + np.sin(angle), base + np.cos(angle)])
        self.here.set_data([offset], [similarity])
        titles = (
            f"p₀ and pₖ, k = {offset}",
            f"Columns {_columns(dim, step)}: period {period:.0f}",
            f"p₀ · pₖ / (d/2) = {similarity:.2f}",
        )
        for title, text in zip(self.titles, titles, strict=True):
            title.set_text(text)
        return (
            f"d = {dim}, columns {_columns(dim, step)} with a period of {period:.0f} positions: "
            f"{offset} positions turn this pair clockwise by {_turned(angle)}. Over all pairs the "
            f"dot product is {similarity:.2f} of its largest value."
        )


def _frequency(step: int) -> float:
    return 10 ** (-step / 2)


def _columns(dim: int, step: int) -> str:
    """The two columns whose frequency is 10^(−step/2) = 10,000^(−2j/dim)."""
    pair = step * dim // 16
    return f"{2 * pair} and {2 * pair + 1}"


def _mean_cosine(dim: int) -> np.ndarray:
    """p₀ · pₖ / (dim / 2) for each offset k: the mean of cos(k ω) over all pairs."""
    table = sinusoidal_table(FARTHEST, dim).double()
    return (table @ table[0] / (dim / 2)).numpy()


def _turned(angle: float) -> str:
    turns, rest = divmod(angle, 2 * math.pi)
    degrees = f"{math.degrees(rest):.0f}°"
    if not turns:
        return degrees
    return f"{turns:.0f} full turn{'s' if turns > 1 else ''} and {degrees}"
