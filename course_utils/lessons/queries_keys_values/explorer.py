"""One database of words, queried from exact lookup to average pooling.

Keys are two features of five animals of the word table, values the years they may live; weights are
softmax(−½‖q − k‖² / T), as in the chapter.
"""

import numpy as np

from course_utils.data import load_words
from course_utils.figures import COLORS, subplots
from course_utils.lessons.explorer import Choice, Explorer, Slider

__all__ = ["temperature"]

YEARS = {"mouse": 2, "cat": 15, "dog": 12, "horse": 28, "elephant": 65}
FEATURES = ("size", "home")
QUERIES = ("kitten", "dog", "farmer", "bird", "house")
TEMPERATURES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)


def temperature() -> Explorer:
    """How long does a kitten live? Weights and the answer, for five queries at any temperature."""
    table = load_words()
    columns = [table.names.index(name) for name in FEATURES]
    names, years = list(YEARS), np.array(list(YEARS.values()), dtype=float)
    keys = table[names][:, columns].double().numpy()  # (keys, features)
    queries = {name: table[name][columns].double().numpy() for name in QUERIES}
    rows = np.arange(len(names))

    def picture():
        fig, (plane, middle, right) = subplots(
            1,
            3,
            alt="Keys and query, weights, values",
            width=8.5,
            height=2.9,
            width_ratios=[5, 4, 4],
        )
        plane.scatter(*keys.T, s=620, facecolors="none", edgecolors="0.75")
        shares = plane.scatter(*keys.T, s=rows, color=COLORS["blue"], alpha=0.75)
        asked = plane.scatter([0], [0], s=80, marker="X", color=COLORS["vermilion"], zorder=3)
        for name, (x, y) in zip(names, keys, strict=True):
            plane.annotate(name, (x, y), (15, -4), textcoords="offset points", fontsize=9)
        plane.set(title="Query × and keys", xlabel=FEATURES[0], ylabel=FEATURES[1])
        plane.set(xlim=(-0.15, 1.55), ylim=(-0.2, 1.2), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        bars = middle.barh(rows, rows, color=COLORS["blue"])
        numbers = [middle.text(0, row, "", va="center", fontsize=9) for row in rows]
        middle.set_yticks(rows, names)
        middle.invert_yaxis()
        middle.set(title="Weight", xlim=(0, 1.25), xticks=[0, 0.5, 1], xlabel="sums to 1")
        right.barh(rows, years, color="0.88")
        parts = right.barh(rows, rows, color=COLORS["blue"])
        answer = right.axvline(0, color=COLORS["vermilion"], linewidth=2)
        right.set_yticks(rows, [])
        right.invert_yaxis()
        right.set(title="Answer: 00.0 years", xlim=(0, 70), xlabel="pale: value, dark: its share")

        def draw(query: str, temperature: float) -> str:
            score = -0.5 * ((queries[query] - keys) ** 2).sum(axis=1)
            weight = np.exp((score - score.max()) / temperature)
            weight /= weight.sum()
            value = weight @ years
            asked.set_offsets([queries[query]])
            shares.set_sizes(620 * weight)
            for part, bar, number, w, year in zip(parts, bars, numbers, weight, years, strict=True):
                part.set_width(w * year)
                bar.set_width(w)
                number.set_x(w + 0.03)
                number.set_text(f"{w:.2f}")
            answer.set_xdata([value, value])
            right.set_title(f"Answer: {value:.1f} years")
            listed = ", ".join(f"{name} {w:.2f}" for name, w in zip(names, weight, strict=True))
            return (
                f"Query “{query}” at temperature {temperature:g}: weights {listed}; "
                f"the answer is {value:.1f} years."
            )

        return fig, draw

    controls = {
        "query": Choice(list(QUERIES), "kitten", label="Query"),
        "temperature": Slider(TEMPERATURES, 0.1, label="Temperature T", format="{:g}"),
    }
    return Explorer("temperature", picture, controls)
