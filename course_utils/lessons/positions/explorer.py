"""One pair of columns turns with the position; all pairs together tell a distance.

The pair is chosen by its frequency ω, not by its number, so that it means the same at each dimension.
All waves and all sums stand still; what moves are the marks on them, so that a page stays small.
"""

import math

import numpy as np

from course_utils.figures import COLORS, subplots
from course_utils.lessons.explorer import Explorer, Slider
from course_utils.positions import sinusoidal_table

__all__ = ["positions"]

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
DRAWN = {16: ("0.7", "-", 1.0), 64: (COLORS["green"], "--", 1.4), 512: (COLORS["blue"], "-", 2.0)}
"""Color, dash and width of each dimension's curve."""


def positions() -> Explorer:
    """Positions 0 and k on one pair's circle, on its waves, and in the dot product of all pairs."""
    offsets = np.arange(FARTHEST)
    cosines = {dim: _mean_cosine(dim) for dim in DIMENSIONS}

    def picture():
        fig, (left, middle, right) = subplots(
            1, 3, alt="One pair of columns, its waves, and the dot product of all pairs",
            width=8.5, height=3.0, width_ratios=[1, 1.55, 1.45],
        )  # fmt: skip
        turn = np.linspace(0, 2 * np.pi, 200)
        left.plot(np.sin(turn), np.cos(turn), color="0.8", linewidth=1)
        (arc,) = left.plot([], [], color=COLORS["orange"], linewidth=3)
        left.plot([0, 0], [0, 1], "-o", color=COLORS["blue"], markersize=6, markevery=[1])
        (hand,) = left.plot([], [], "--s", color=COLORS["vermilion"], markersize=6, markevery=[1])
        left.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        left.set(aspect="equal", xlabel="sine column", ylabel="cosine column")

        fine = np.linspace(0, SHOWN, 661)
        for strip, step in enumerate(STEPS):
            wave = fine * _frequency(step)
            middle.plot(fine, np.sin(wave) - STRIP * strip, color=COLORS["blue"], linewidth=1.2)
            middle.plot(
                fine, np.cos(wave) - STRIP * strip, ":", color=COLORS["green"], linewidth=1.2
            )
        (marks,) = middle.plot([], [], "s", color=COLORS["vermilion"], markersize=6)
        middle.set(xlim=(0, SHOWN), ylim=(-STRIP * len(STEPS) + 1.2, 1.5), xlabel="position")
        names = [f"ω = {_frequency(step):.2g}" for step in STEPS]
        middle.set_yticks([-STRIP * strip for strip in range(len(STEPS))], names)
        middle.tick_params(axis="y", length=0)

        for dim, (color, dash, width) in DRAWN.items():
            right.plot(
                offsets, cosines[dim], dash, color=color, linewidth=width, label=f"d = {dim}"
            )
        (here,) = right.plot([], [], "s", color=COLORS["vermilion"], markersize=6, zorder=5)
        right.set(xlim=(0, FARTHEST), ylim=(-0.1, 1.05), xlabel="offset k")
        right.legend(loc="upper right", fontsize=8, frameon=False)

        def draw(dim: int, step: int, offset: int) -> str:
            frequency = _frequency(step)
            angle, period = offset * frequency, 2 * np.pi / frequency
            swept = np.linspace(0, min(angle, 2 * np.pi), 100)
            similarity = cosines[dim][offset]
            arc.set_data(np.sin(swept), np.cos(swept))
            hand.set_data([0, np.sin(angle)], [0, np.cos(angle)])
            base = -STRIP * STEPS.index(step)
            marks.set_data([offset, offset], [base + np.sin(angle), base + np.cos(angle)])
            here.set_data([offset], [similarity])
            left.set_title(f"p₀ and pₖ, k = {offset}")
            middle.set_title(f"Columns {_columns(dim, step)}: period {period:.0f}")
            right.set_title(f"p₀ · pₖ / (d/2) = {similarity:.2f}")
            return (
                f"d = {dim}, columns {_columns(dim, step)} with a period of {period:.0f} positions: "
                f"{offset} positions turn this pair clockwise by {_turned(angle)}. Over all pairs the "
                f"dot product is {similarity:.2f} of its largest value."
            )

        return fig, draw

    controls = {
        "dim": Slider(DIMENSIONS, 64, label="Dimension d"),
        "step": _FrequencySlider(STEPS, 2, label="Frequency ω"),
        "offset": Slider(OFFSETS, 10, label="Offset k"),
    }
    return Explorer("positions", picture, controls)


class _FrequencySlider(Slider):
    """Half powers of ten, written as the frequency they stand for."""

    def text(self, value) -> str:
        return f"{_frequency(value):.2g}"


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
