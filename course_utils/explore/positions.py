"""Positions (chapter 06): one pair of columns turns with the position; all pairs together tell a distance.

The pair is chosen by its frequency ω, not by its number, so that it means the same at each dimension.
"""

import math

import numpy as np

from course_utils.explore.core import Explorer, Slider
from course_utils.figures import COLORS, subplots
from course_utils.positions import sinusoidal_table

DIMENSIONS = (16, 64, 512)
STEPS = (0, 1, 2, 3, 4, 6)
"""ω = 10^(−step/2): each of these frequencies belongs to a pair of columns at each dimension."""
OFFSETS = (0, 1, 3, 10, 31, 63, 150)
FARTHEST = 200
POSITION = 0


def positions() -> Explorer:
    """Positions 0 and k on one pair's circle, on its waves, and in the dot product of all pairs."""
    offsets = np.arange(FARTHEST)
    fine = np.linspace(0, FARTHEST, 2001)
    cosines = {dim: _mean_cosine(dim) for dim in DIMENSIONS}

    def picture():
        fig, (left, middle, right) = subplots(
            1, 3, alt="One pair of columns, its waves, and the dot product of all pairs",
            width=8.5, height=2.9, width_ratios=[1, 1.5, 1.5],
        )  # fmt: skip
        turn = np.linspace(0, 2 * np.pi, 200)
        left.plot(np.sin(turn), np.cos(turn), color="0.8", linewidth=1)
        (arc,) = left.plot([], [], color=COLORS["orange"], linewidth=3)
        (old,) = left.plot([], [], "-o", color=COLORS["blue"], markersize=6, markevery=[1])
        (new,) = left.plot([], [], "--s", color=COLORS["vermilion"], markersize=6, markevery=[1])
        left.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        left.set(aspect="equal", xlabel="sine column", ylabel="cosine column", title="p₀ and pₖ")

        (sine,) = middle.plot(fine, fine, color=COLORS["blue"], linewidth=1.2, label="sine")
        (cosine,) = middle.plot(
            fine, fine, "--", color=COLORS["green"], linewidth=1.2, label="cosine"
        )
        (marks,) = middle.plot([], [], "s", color=COLORS["vermilion"], markersize=6)
        at_wave = middle.axvline(0, color=COLORS["vermilion"], linewidth=0.9)
        middle.set(xlim=(0, FARTHEST), ylim=(-1.15, 1.6), yticks=[-1, 0, 1], xlabel="position")
        middle.legend(loc="upper center", ncols=2, fontsize=8)

        (curve,) = right.plot(offsets, offsets, color=COLORS["blue"], linewidth=1.2)
        (here,) = right.plot([], [], "s", color=COLORS["vermilion"], markersize=6)
        at_offset = right.axvline(0, color=COLORS["vermilion"], linewidth=0.9)
        right.set(xlim=(0, FARTHEST), ylim=(-0.1, 1.05), xlabel="offset k")

        def draw(dim: int, step: int, offset: int) -> str:
            frequency = 10 ** (-step / 2)
            angle = offset * frequency
            swept = np.linspace(0, min(angle, 2 * np.pi), 100)
            arc.set_data(np.sin(swept), np.cos(swept))
            old.set_data([0, 0], [0, 1])
            new.set_data([0, np.sin(angle)], [0, np.cos(angle)])
            sine.set_ydata(np.sin(fine * frequency))
            cosine.set_ydata(np.cos(fine * frequency))
            marks.set_data([offset, offset], [np.sin(angle), np.cos(angle)])
            at_wave.set_xdata([offset, offset])
            middle.set_title(f"Columns {_columns(dim, step)}, period {2 * np.pi / frequency:,.0f}")
            curve.set_ydata(cosines[dim])
            here.set_data([offset], [cosines[dim][offset]])
            at_offset.set_xdata([offset, offset])
            right.set_title(f"p₀ · pₖ / (d/2) = {cosines[dim][offset]:.2f}")
            turns = angle / (2 * np.pi)
            return (
                f"d = {dim}, columns {_columns(dim, step)} with a period of {2 * np.pi / frequency:,.0f} "
                f"positions: {offset} positions turn this pair by {_degrees(turns)}. Over all pairs "
                f"the dot product is {cosines[dim][offset]:.2f} of its largest value."
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
        return f"{10 ** (-value / 2):.2g}"


def _columns(dim: int, step: int) -> str:
    """The two columns whose frequency is 10^(−step/2) = 10,000^(−2j/dim)."""
    pair = step * dim // 16
    return f"{2 * pair} and {2 * pair + 1}"


def _mean_cosine(dim: int) -> np.ndarray:
    """p₀ · pₖ / (dim / 2) for each offset k: the mean of cos(k ω) over all pairs."""
    table = sinusoidal_table(FARTHEST, dim).double()
    return (table @ table[POSITION] / (dim / 2)).numpy()


def _degrees(turns: float) -> str:
    return (
        f"{360 * turns:.0f}°"
        if turns < 1
        else f"{math.floor(turns)} full turns and {360 * (turns % 1):.0f}°"
    )
