"""One table of animals, asked from exact look-up to average pooling.

Keys are two features, values the years that an animal may live; weights are softmax(−½‖q − k‖² / T), as in the
chapter.
"""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from course_utils.figures import COLORS, subplots
from course_utils.lessons.explorer import Choice, Explorer, Slider

__all__ = ["temperature"]

ANIMALS = {
    "mouse": (0.1, 0.1, 2.0),
    "cat": (0.3, 0.8, 15.0),
    "dog": (0.4, 1.0, 12.0),
    "horse": (0.8, 0.4, 28.0),
    "elephant": (1.0, 0.0, 65.0),
}
QUERIES = {"kitten": (0.2, 0.9), "bird": (0.2, 0.2), "farmer": (0.6, 0.8), "house": (1.0, 1.0)}
FEATURES = ("size", "home")
TEMPERATURES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)
MOST_QUERIES = 9
"""As many as the book has room for, times 14 temperatures."""
AREA = 620
"""Of the disk around a key with weight 1, in square points."""


def temperature(
    animals: Mapping[str, tuple[float, float, float]] | None = None,
    queries: Mapping[str, tuple[float, float]] | None = None,
) -> Explorer:
    """How long does a kitten live? Weights and the answer, for a few queries at any temperature.

    Args:
        animals: name → (size, home, years); by default the five of *Queries, keys and values*.
        queries: name → (size, home); the first nine are shown.

    Raises:
        ValueError: there is no animal, or no query.
    """
    animals = ANIMALS if animals is None else animals
    queries = QUERIES if queries is None else queries
    for name, given in (("animals", animals), ("queries", queries)):
        if not given:
            raise ValueError(f"{name}={given!r} is empty; one entry is needed")
    shown = dict(list(queries.items())[:MOST_QUERIES])
    if len(shown) == 1:  # there has to be a choice
        shown |= {name: (size, home) for name, (size, home, _) in list(animals.items())[:1]}
    controls = {
        "query": Choice(tuple(shown), next(iter(shown)), label="Query"),
        "temperature": Slider(TEMPERATURES, 0.1, label="Temperature T", format="{:g}"),
    }
    return Explorer("temperature", lambda: Database(animals, shown), controls)


class Database:
    """Query and keys on a plane, the weights as bars, and the values with the share of each."""

    def __init__(
        self,
        animals: Mapping[str, tuple[float, float, float]],
        queries: Mapping[str, tuple[float, float]],
    ):
        """Bars and disks of any size; `draw` sets them."""
        self.names = list(animals)
        rows = np.array([animals[name] for name in self.names], dtype=float)
        self.keys, self.years = rows[:, :2], rows[:, 2]  # (keys, features), (keys,)
        self.queries = {name: np.array(place, dtype=float) for name, place in queries.items()}
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
        self.disks = ax.scatter(
            *self.keys.T, s=np.ones(len(self.keys)), color=COLORS["blue"], alpha=0.75
        )
        self.query = ax.scatter([0], [0], s=80, marker="X", color=COLORS["vermilion"], zorder=3)
        for name, place in zip(self.names, self.keys, strict=True):
            ax.annotate(name, place, (13, -10), textcoords="offset points", fontsize=9)
        ax.set(title="Query × and keys", xlabel=FEATURES[0], ylabel=FEATURES[1])
        places = np.array([*self.keys, *self.queries.values(), (0, 0), (1, 1)])
        (left, low), (right, high) = places.min(axis=0), places.max(axis=0)
        ax.set(xlim=(left - 0.15, right + 0.55), ylim=(low - 0.2, high + 0.2))
        if (left, low, right, high) == (0, 0, 1, 1):
            ax.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])

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
        ax.set(
            xlim=(min(0, *self.years), 1.08 * max(0.1, *self.years)),
            xlabel="pale: value, dark: its share",
        )
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
