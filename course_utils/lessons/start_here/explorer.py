"""The explorer of *Start here*: a softmax over four scores while one score grows."""

import numpy as np

from course_utils.figures import COLORS, subplots
from course_utils.kit.controls import Slider
from course_utils.kit.explorer import Explorer

__all__ = ["first_slider"]

NAMES = ("cat", "dog", "bird", "fish")
SCORES = np.array([1.0, 0.5, 0.0, -0.5])
BIRD = NAMES.index("bird")


def first_slider() -> Explorer:
    """Four scores become four weights; the slider moves the score of the bird from -4 to 6."""
    slider = Slider(np.arange(-4, 6.5, 0.5), -1.0, label="Score of the bird", format="{:+.1f}")
    return Explorer("first_slider", Scores, {"bird": slider})


class Scores:
    """Bars of the four scores, and bars of their weights."""

    def __init__(self) -> None:
        """Bars whose heights `draw` sets."""
        self.picture, (left, right) = subplots(
            1, 2, alt="Four scores and their weights", width=7.5, height=2.7
        )
        colors = [COLORS["query" if name == "bird" else "key"] for name in NAMES]
        self.scores = left.bar(NAMES, SCORES, color=colors)
        left.axhline(0, color="black", linewidth=0.8)
        left.set(title="Scores", ylim=(-4.4, 6.4))
        self.weights = right.bar(NAMES, SCORES, color=colors)
        self.numbers = [
            right.text(i, 0, "", ha="center", va="bottom", fontsize=9) for i in range(len(NAMES))
        ]
        for ax in (left, right):
            ax.set_xticks(range(len(NAMES)), NAMES)
        right.set(title="Weights: exp(score), divided by their sum", ylim=(0, 1.12))

    def draw(self, bird: float) -> str:
        """Give the bird this score, and set the bars of all scores and weights."""
        scores = SCORES.copy()
        scores[BIRD] = bird
        weights = np.exp(scores) / np.exp(scores).sum()
        for bar, height in zip(self.scores, scores, strict=True):
            bar.set_height(height)
        for bar, number, height in zip(self.weights, self.numbers, weights, strict=True):
            bar.set_height(height)
            number.set_y(height + 0.015)
            number.set_text(f"{height:.2f}")
        listed = ", ".join(f"{name} {w:.2f}" for name, w in zip(NAMES, weights, strict=True))
        return f"With a score of {bird:g} for the bird, the weights are {listed}; they add up to 1."
