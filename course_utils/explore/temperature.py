"""Temperature (chapter 01): one database of words, queried from average pooling to exact lookup.

Keys are words, given by vectors that are written by hand, so that each score can be checked; the value of
a word is how long such an animal lives. Weights are softmax(q·k / T).
"""

import numpy as np

from course_utils.figures import COLORS, subplots
from course_utils.explore.core import Choice, Explorer, Slider

#            size, tame, meows, barks, neighs
VECTORS = {
    "mouse": (-0.9, 0.0, 0.0, 0.0, 0.0),
    "cat": (-0.4, 0.6, 0.9, 0.0, 0.0),
    "dog": (-0.2, 0.8, 0.0, 0.9, 0.0),
    "horse": (0.6, 0.5, 0.0, 0.0, 0.9),
    "elephant": (1.0, 0.0, 0.0, 0.0, 0.1),
}
YEARS = {"mouse": 2, "cat": 15, "dog": 12, "horse": 28, "elephant": 65}
QUERIES = {
    "cat": VECTORS["cat"],
    "kitten": (-0.7, 0.4, 0.8, 0.0, 0.0),
    "pet": (-0.3, 0.9, 0.0, 0.0, 0.0),
    "pony": (0.1, 0.6, 0.0, 0.0, 0.8),
}
TEMPERATURES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 5.0, 10.0, 100.0)


def temperature() -> Explorer:
    """How long does a kitten live? Scores, weights and the answer, for four queries at any temperature."""
    words, years = list(YEARS), np.array(list(YEARS.values()), dtype=float)
    keys = np.array([_unit(VECTORS[word]) for word in words])  # (keys, features)
    rows = np.arange(len(words))

    def picture():
        fig, (left, middle, right) = subplots(
            1, 3, alt="Scores, weights and values of five words", width=8.4, height=2.7, sharey=True
        )
        scores = left.barh(rows, rows, color=COLORS["sky"])
        weights = middle.barh(rows, rows, color=COLORS["blue"])
        right.barh(rows, years, color="0.88")
        parts = right.barh(rows, rows, color=COLORS["blue"])
        answer = right.axvline(0, color=COLORS["vermilion"], linewidth=2)
        numbers = [middle.text(0, row, "", va="center", fontsize=9) for row in rows]
        left.axvline(0, color="black", linewidth=0.8)
        left.set_yticks(rows, words)
        left.invert_yaxis()
        left.set(title="Score q · k", xlim=(-1.05, 1.05), ylabel="Keys")
        middle.set(title="Weight", xlim=(0, 1.22), xticks=[0, 0.5, 1])
        right.set(
            title="Answer: 00.0 years", xlim=(0, 70), xlabel="pale: value, dark: weight × value"
        )

        def draw(query: str, temperature: float) -> str:
            score = keys @ _unit(QUERIES[query])
            weight = np.exp((score - score.max()) / temperature)
            weight /= weight.sum()
            value = weight @ years
            for bars, widths in ((scores, score), (weights, weight), (parts, weight * years)):
                for bar, width in zip(bars, widths, strict=True):
                    bar.set_width(width)
            for number, width in zip(numbers, weight, strict=True):
                number.set_x(width + 0.03)
                number.set_text(f"{width:.2f}")
            answer.set_xdata([value, value])
            right.set_title(f"Answer: {value:.1f} years")
            listed = ", ".join(f"{word} {w:.2f}" for word, w in zip(words, weight, strict=True))
            return (
                f"Query “{query}” at temperature {temperature:g}: weights {listed}; "
                f"the answer is {value:.1f} years."
            )

        return fig, draw

    controls = {
        "query": Choice(list(QUERIES), "kitten", label="Query"),
        "temperature": Slider(TEMPERATURES, 0.3, label="Temperature T", format="{:g}"),
    }
    return Explorer("temperature", picture, controls)


def _unit(vector) -> np.ndarray:
    vector = np.asarray(vector, dtype=float)
    return vector / np.linalg.norm(vector)
