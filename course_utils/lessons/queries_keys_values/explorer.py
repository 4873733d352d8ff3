"""One database of words, queried from exact lookup to average pooling.

Keys are two features of five animals of the word table, values the years they may live; weights are
softmax(−½‖q − k‖² / T), as in the chapter.
"""

import numpy as np
from matplotlib.axes import Axes

from course_utils.data import load_words
from course_utils.figures import COLORS, subplots
from course_utils.lessons.explorer import Choice, Explorer, Slider

__all__ = ["temperature"]

YEARS = {"mouse": 2, "cat": 15, "dog": 12, "horse": 28, "elephant": 65}
FEATURES = ("size", "home")
QUERIES = ("kitten", "dog", "farmer", "bird", "house")
TEMPERATURES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)
AREA = 620
"""Of the disk around a key with weight 1, in square points."""


def temperature() -> Explorer:
    """How long does a kitten live? Weights and the answer, for five queries at any temperature."""
    controls = {
        "query": Choice(QUERIES, "kitten", label="Query"),
        "temperature": Slider(TEMPERATURES, 0.1, label="Temperature T", format="{:g}"),
    }
    return Explorer("temperature", Database, controls)


class Database:
    """Query and keys on a plane, the weights as bars, and the values with the share of each."""

    def __init__(self):
        """Reads the words; bars and disks of any size, `draw` sets them."""
        table = load_words()
        columns = [table.names.index(name) for name in FEATURES]
        self.names, self.years = list(YEARS), np.array(list(YEARS.values()), dtype=float)
        self.keys = table[self.names][:, columns].double().numpy()  # (keys, features)
        self.queries = {name: table[name][columns].double().numpy() for name in QUERIES}
        self.picture, (plane, middle, right) = subplots(
            1,
            3,
            alt="Keys and query, weights, values",
            width=8.5,
            height=2.9,
            width_ratios=[5, 4, 4],
        )
        self._set_plane(plane)
        self._set_weights(middle)
        self._set_values(right)

    def _set_plane(self, ax: Axes) -> None:
        ax.scatter(*self.keys.T, s=AREA, facecolors="none", edgecolors="0.75")
        self.disks = ax.scatter(*self.keys.T, s=self.years, color=COLORS["blue"], alpha=0.75)
        self.query = ax.scatter([0], [0], s=80, marker="X", color=COLORS["vermilion"], zorder=3)
        for name, place in zip(self.names, self.keys, strict=True):
            ax.annotate(name, place, (15, -4), textcoords="offset points", fontsize=9)
        ax.set(title="Query × and keys", xlabel=FEATURES[0], ylabel=FEATURES[1])
        ax.set(xlim=(-0.15, 1.55), ylim=(-0.2, 1.2), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])

    def _set_weights(self, ax: Axes) -> None:
        rows = range(len(self.names))
        self.weights = ax.barh(rows, self.years, color=COLORS["blue"])
        self.numbers = [ax.text(0, row, "", va="center", fontsize=9) for row in rows]
        ax.set_yticks(rows, self.names)
        ax.invert_yaxis()
        ax.set(title="Weight", xlim=(0, 1.25), xticks=[0, 0.5, 1], xlabel="sums to 1")

    def _set_values(self, ax: Axes) -> None:
        rows = range(len(self.names))
        ax.barh(rows, self.years, color="0.88")
        self.shares = ax.barh(rows, self.years, color=COLORS["blue"])
        self.answer = ax.axvline(0, color=COLORS["vermilion"], linewidth=2)
        ax.set_yticks(rows, [])
        ax.invert_yaxis()
        ax.set(xlim=(0, 70), xlabel="pale: value, dark: its share")
        self.title = ax.set_title("Answer: 00.0 years")

    def draw(self, query: str, temperature: float) -> str:
        """Ask `query` at this temperature."""
        scores = -0.5 * ((self.queries[query] - self.keys) ** 2).sum(axis=1)
        weights = np.exp((scores - scores.max()) / temperature)
        weights /= weights.sum()
        answer = weights @ self.years
        self.query.set_offsets([self.queries[query]])
        self.disks.set_sizes(AREA * weights)
        for bar, number, share, weight, years in zip(
            self.weights, self.numbers, self.shares, weights, self.years, strict=True
        ):
            bar.set_width(weight)
            number.set_x(weight + 0.03)
            number.set_text(f"{weight:.2f}")
            share.set_width(weight * years)
        self.answer.set_xdata([answer, answer])
        self.title.set_text(f"Answer: {answer:.1f} years")
        listed = ", ".join(f"{name} {w:.2f}" for name, w in zip(self.names, weights, strict=True))
        return (
            f"Query “{query}” at temperature {temperature:g}: weights {listed}; "
            f"the answer is {answer:.1f} years."
        )
