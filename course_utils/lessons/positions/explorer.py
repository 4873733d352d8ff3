"""The explorers of *Positions*: four hands, a turning pair of columns, and mean scores over the offset.

A pair of columns is chosen by its frequency ω, so that a choice means the same in each dimension. Curves are drawn as
far as the reader has moved, so that no picture answers a question before she does.

The mean of all scores at the offset −i is the product of the mean query, turned by i, and the mean key. Both are
stored; nothing is trained here.
"""

import math
from functools import partial

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from course_utils.figures import COLORS, subplots
from course_utils.kit.controls import Choice, Slider
from course_utils.kit.explorer import Explorer
from course_utils.kit.runs import StoredRun, stored_runs
from course_utils.lessons.positions.rotary import LENGTHS, RETUNED, SEEN, turn
from course_utils.positions import sinusoidal_table

__all__ = ["cures", "hands", "offsets", "positions"]

CHOSEN = 64
"""The dimension whose columns are named, and whose dot product is marked."""
STEPS = (0, 1, 2, 4)
"""ω = 10^(−step/2): each of these frequencies belongs to a pair of columns at each dimension."""
STARTS = (0, 7, 20)
OFFSETS = (0, 1, 3, 10, 20, 40)
SHOWN = 66
"""Waves and sums have room up to this position."""
FINE = 10
"""Points of a wave from one position to the next."""
STRIP = 2.7
"""Height of one wave's strip; the waves lie between −1 and 1."""
CENTERS = ((0, 0), (3, 0), (0, -3.1), (3, -3.1))
"""Where the four hands stand."""
DRAWN = {16: ("0.7", "-", 1.0), 64: (COLORS["value"], "--", 1.4), 512: (COLORS["key"], "-", 2.0)}
"""Color, dash and width of each dimension's curve."""


def hands() -> Explorer:
    """Explorer of the four hands of a position: how far each has turned, and the heights that it has had."""
    return Explorer("hands", Hands, {"position": Slider(range(64), 3, label="Position")})


class Hands:
    """Four hands on their circles, and below each other the heights and widths that they have had so far."""

    def __init__(self) -> None:
        """Draw the circles, and the strips that the waves will fill."""
        self.picture, (left, right) = subplots(
            1, 2, alt="Four hands, and the waves that they draw", width=8.5, height=3.0,
            width_ratios=[1, 1.35],
        )  # fmt: skip
        self.title, turn = right.title, np.linspace(0, 2 * np.pi, 200)
        self.arcs, self.hands = [], []
        for step, (x, y) in zip(STEPS, CENTERS, strict=True):
            left.plot(x + np.cos(turn), y + np.sin(turn), color="0.8", linewidth=1)
            left.plot([x, x + 1], [y, y], ":", color="0.6", linewidth=1)
            self.arcs += left.plot([], [], color=COLORS["wrong"], linewidth=3)
            style = {"color": COLORS["query"], "markersize": 6, "markevery": [1]}
            self.hands += left.plot([], [], "-s", **style)
            left.text(x, y - 1.42, f"ω = {_frequency(step):.2g}", ha="center", va="center")
        left.set(xlim=(-1.2, 4.2), ylim=(-4.8, 1.2), aspect="equal", xticks=[], yticks=[])
        left.spines[:].set_visible(False)
        self.waves = _set_strips(right)
        (self.marks,) = right.plot([], [], "s", color=COLORS["query"], markersize=5)

    def draw(self, position: int) -> str:
        """Turn each hand from position 0 to `position`."""
        heights = []
        for step, (x, y), arc, hand in zip(STEPS, CENTERS, self.arcs, self.hands, strict=True):
            angle = position * _frequency(step)
            swept = np.linspace(0, min(angle, 2 * np.pi), 100)
            arc.set_data(x + np.cos(swept), y + np.sin(swept))
            hand.set_data([x, x + np.cos(angle)], [y, y + np.sin(angle)])
            heights.append(np.sin(angle) - STRIP * STEPS.index(step))
        _draw_waves(self.waves, position)
        self.marks.set_data([position] * len(STEPS), heights)
        self.title.set_text(f"position {position}")
        turned = [_turned(position * _frequency(step)) for step in STEPS]
        return (
            f"At position {position} the hands have turned by {', '.join(turned[:-1])}, and {turned[-1]}, "
            "from the fastest to the slowest."
        )


def positions() -> Explorer:
    """Explorer of positions i and i + k: as hands of one pair of columns, on its waves, and in their dot product."""
    controls = {
        "step": FrequencySlider(STEPS, 2, label="Frequency ω"),
        "start": Slider(STARTS, 0, label="Position i"),
        "offset": Slider(OFFSETS, 3, label="Offset k"),
    }
    return Explorer("positions", Turns, controls)


class FrequencySlider(Slider):
    """A slider of steps that shows the frequency of each."""

    def text(self, value: int) -> str:
        """The frequency of a step, as it is shown."""
        return f"{_frequency(value):.2g}"


class Turns:
    """A circle with both positions as hands, the waves, and the dot products over the offset."""

    def __init__(self) -> None:
        """Draw what stays the same."""
        self.cosines = {dim: _mean_cosine(dim) for dim in DRAWN}
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
        ax.plot(np.cos(turn), np.sin(turn), color="0.8", linewidth=1)
        (self.arc,) = ax.plot([], [], color=COLORS["wrong"], linewidth=3)
        (self.first,) = ax.plot([], [], "-o", color=COLORS["key"], markersize=6, markevery=[1])
        (self.hand,) = ax.plot([], [], "--s", color=COLORS["query"], markersize=6, markevery=[1])
        ax.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        ax.set(aspect="equal", xlabel="cosine column", ylabel="sine column")

    def _set_waves(self, ax: Axes) -> None:
        self.waves = _set_strips(ax)
        (self.begun,) = ax.plot([], [], "o", color=COLORS["key"], markersize=6)
        (self.marks,) = ax.plot([], [], "s", color=COLORS["query"], markersize=6)

    def _set_sums(self, ax: Axes) -> None:
        self.sums = {}
        for dim, (color, dash, width) in DRAWN.items():
            style = {"color": color, "linewidth": width, "label": f"d = {dim}"}
            (self.sums[dim],) = ax.plot([], [], dash, **style)
        (self.here,) = ax.plot([], [], "s", color=COLORS["query"], markersize=6, zorder=5)
        ax.set(xlim=(0, SHOWN), ylim=(-0.1, 1.05), xlabel="offset k")
        ax.legend(loc="upper right", fontsize=8, frameon=False)

    def draw(self, step: int, start: int, offset: int) -> str:
        """Turn the pair of frequency 10^(−step/2) from position `start` to position `start + offset`."""
        frequency = _frequency(step)
        begin, turned, period = start * frequency, offset * frequency, 2 * np.pi / frequency
        end, base = begin + turned, -STRIP * STEPS.index(step)
        swept = begin + np.linspace(0, min(turned, 2 * np.pi), 100)
        similarity = self.cosines[CHOSEN][offset]
        self.arc.set_data(np.cos(swept), np.sin(swept))
        self.first.set_data([0, np.cos(begin)], [0, np.sin(begin)])
        self.hand.set_data([0, np.cos(end)], [0, np.sin(end)])
        _draw_waves(self.waves, start + offset)
        self.begun.set_data([start, start], [base + np.sin(begin), base + np.cos(begin)])
        self.marks.set_data([start + offset] * 2, [base + np.sin(end), base + np.cos(end)])
        for dim, curve in self.sums.items():
            curve.set_data(range(offset + 1), self.cosines[dim][: offset + 1])
        self.here.set_data([offset], [similarity])
        columns = _columns(CHOSEN, step)
        titles = (
            f"positions {start} and {start + offset}",
            f"columns {columns} of {CHOSEN}",
            f"product / (d/2) = {similarity:.2f}",
        )
        for title, text in zip(self.titles, titles, strict=True):
            title.set_text(text)
        return (
            f"From position {start} to {start + offset} this pair, with a period of {period:.0f} positions, turns "
            f"counterclockwise by {_turned(turned)}. Over all pairs of d = {CHOSEN} columns the dot product of these "
            f"two positions is {similarity:.2f} of its largest value."
        )


def _set_strips(ax: Axes) -> list[tuple[Line2D, Line2D]]:
    """A strip for each frequency, with an empty curve for the sine and one for the cosine."""
    strips = [-STRIP * strip for strip in range(len(STEPS))]
    ax.set(
        xlim=(0, SHOWN),
        ylim=(-STRIP * len(STEPS) + 1.2, 1.5),
        xlabel="position (solid: sine, dotted: cosine)",
    )
    ax.set_yticks(strips, [f"ω = {_frequency(step):.2g}" for step in STEPS])
    ax.tick_params(axis="y", length=0)
    sines = [ax.plot([], [], color=COLORS["key"], linewidth=1.2)[0] for _ in STEPS]
    cosines = [ax.plot([], [], ":", color=COLORS["value"], linewidth=1.2)[0] for _ in STEPS]
    return list(zip(sines, cosines, strict=True))


def _draw_waves(waves: list[tuple[Line2D, Line2D]], position: int) -> None:
    """Draw sine and cosine of each strip up to a position."""
    fine = np.linspace(0, position, FINE * position + 1)
    for strip, (step, (sine, cosine)) in enumerate(zip(STEPS, waves, strict=True)):
        wave = fine * _frequency(step)
        sine.set_data(fine, np.sin(wave) - STRIP * strip)
        cosine.set_data(fine, np.cos(wave) - STRIP * strip)


def _frequency(step: int) -> float:
    """The frequency of a step of the slider."""
    return 10 ** (-step / 2)


def _columns(dim: int, step: int) -> str:
    """The two columns whose frequency is 10^(−step/2) = 10,000^(−2j/dim)."""
    pair = step * dim // 16
    return f"{2 * pair} and {2 * pair + 1}"


def _mean_cosine(dim: int) -> np.ndarray:
    """Mean of cos(k ω) over all pairs for each offset k, which is p₀ · pₖ / (dim / 2): (SHOWN,)."""
    table = sinusoidal_table(SHOWN, dim).double()
    return (table @ table[0] / (dim / 2)).numpy()


def _turned(angle: float) -> str:
    """An angle in radians as full turns and degrees."""
    turns, rest = divmod(angle, 2 * math.pi)
    degrees = f"{math.degrees(rest):.0f}°"
    if not turns:
        return degrees
    return f"{turns:.0f} full turn{'s' if turns > 1 else ''} and {degrees}"


# The mean score over the offset -------------------------------------------------------------------

ASKED = 3
"""How many tokens back the answer stands."""
DIM = 64
"""The size of queries and keys."""
CURES = {
    "none": "trained",
    "unseen offsets get the mean": "levelled",
    "positions / 64": "interpolated",
    "slow pairs / 64": "slow pairs",
}
"""Name of a change in the control → its name in the stored results."""


def offsets() -> Explorer:
    """Explorer of the trained model: its mean score over the offset, and its accuracy, by the length."""
    scene = partial(Offsets, ahead=False)
    return Explorer("offsets", scene, {"tokens": Slider(LENGTHS, 16, label="Tokens")})


def cures() -> Explorer:
    """Explorer of the trained model after a change to its frequencies or scores that is made for 1,024 tokens."""
    controls = {
        "cure": Choice(list(CURES), "none", label="Change"),
        "tokens": Slider(LENGTHS, 1024, label="Tokens"),
    }
    return Explorer("cures", Offsets, controls)


class Offsets:
    """A curve of the mean score over the offsets, and a bar of the accuracy for each length.

    The offsets of the training are shaded. The model is the median of the seeds at the middle rate.
    """

    def __init__(self, ahead: bool = True) -> None:
        """Read the stored model's numbers, and draw what stays the same.

        Args:
            ahead: whether bars of longer texts than the chosen one are shown, too.
        """
        self.ahead = ahead
        self.run = _median(stored_runs("positions", "cured", rate=0.005))
        self.means = [torch.tensor(self.run.curves[name])[:, 1] for name in ("query", "key")]
        self.picture, (left, right) = subplots(
            1, 2, alt="Mean score over the offset, and accuracy", width=8.5, height=3.0,
            width_ratios=[3, 1],
        )  # fmt: skip
        self.left = left
        every = [self._scores(name) for name in CURES.values()]
        self.reach = 1.1 * max(scores.abs().max().item() for scores in every)
        self._set_curve(left)
        bars = right.bar(range(len(LENGTHS)), [0.0] * len(LENGTHS), color=COLORS["key"])
        self.bars = list(bars)
        self.texts = [right.text(i, 0, "", ha="center", va="bottom") for i in range(len(LENGTHS))]
        right.set_xticks(range(len(LENGTHS)), [f"{n:,}" for n in LENGTHS])
        right.set(ylim=(0, 1.15), xlabel="tokens", title="accuracy")

    def _set_curve(self, ax: Axes) -> None:
        ax.axvspan(-(SEEN - 0.5), 0.5, color=COLORS["wash"])
        (self.line,) = ax.plot([], [], "-o", color=COLORS["key"], markersize=2)
        (self.above,) = ax.plot([], [], "o", color=COLORS["wrong"], markersize=4)
        self.level = ax.axhline(0, color="0.4", linestyle="--", linewidth=1)
        (self.mark,) = ax.plot([], [], "s", color=COLORS["query"], markersize=7)
        ax.set(xlabel="offset of the key (shaded: trained)", ylabel="mean score")

    def draw(self, tokens: int, cure: str = "none") -> str:
        """Show the offsets 0 … −(tokens − 1) under one of `CURES`."""
        name = CURES[cure]
        scores = self._scores(name)[:tokens]
        back = torch.arange(tokens)
        best = scores[:SEEN][back[:SEEN] != ASKED].max().item()
        above = (scores > best) & (back >= SEEN)
        weight = scores.softmax(dim=0)[ASKED].item()
        self.line.set_data(-back, scores)
        self.line.set_linewidth(min(1.2, 40 / tokens))  # so that 1,024 are no block
        self.above.set_data(-back[above], scores[above])
        self.level.set_ydata([best, best])
        self.mark.set_data([-ASKED], [scores[ASKED]])
        self.left.set_xlim(-tokens * 1.02, tokens * 0.02 + 0.5)
        self.left.set_ylim(-self.reach, self.reach)
        count = f"unseen offsets above the dashed line: {int(above.sum())}"
        self.left.set_title(f"{count}; weight of −{ASKED}: {weight:.2f}")
        accuracies = [self.run.result[f"{name} {n}"] for n in LENGTHS]
        for n, bar, text, accuracy in zip(LENGTHS, self.bars, self.texts, accuracies, strict=True):
            shown = self.ahead or n <= tokens
            bar.set_height(accuracy if shown else 0)
            bar.set_color(COLORS["key"] if n == tokens else COLORS["wash"])
            text.set_text(f"{accuracy:.2f}" if shown else "")
            text.set_y(accuracy)
        changed = "" if cure == "none" else f", after the change “{cure}”,"
        right = ", ".join(
            f"{accuracy:.2f} among {n:,}"
            for n, accuracy in zip(LENGTHS, accuracies, strict=True)
            if self.ahead or n <= tokens
        )
        return (
            f"Among {tokens:,} tokens{changed} the mean score at −{ASKED} is {scores[ASKED]:.1f}, and the best other "
            f"trained offset has {best:.1f}. With these scores −{ASKED} has the weight {weight:.2f}, and "
            f"{int(above.sum()):,} unseen offsets lie above the dashed line. Accuracy: {right}."
        )

    def _scores(self, name: str) -> torch.Tensor:
        """Mean score of a change at each offset 0, −1, …: (1024,)."""
        query, key = self.means
        trained = 10_000.0 ** (-torch.arange(0, DIM, 2) / DIM)
        frequency = RETUNED.get(name, RETUNED["trained"])(trained)
        scores = turn(query.expand(LENGTHS[-1], DIM), frequency) @ key / DIM**0.5
        if name == "levelled":
            scores[SEEN:] = scores[:SEEN].mean()
        return scores


def _median(runs: list[StoredRun]) -> StoredRun:
    """The run with the median accuracy among the most tokens."""
    return sorted(runs, key=lambda run: run.result[f"trained {LENGTHS[-1]}"])[len(runs) // 2]
