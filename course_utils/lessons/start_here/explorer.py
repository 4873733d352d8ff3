"""A softmax over four scores while one score grows."""

import numpy as np

from course_utils.figures import COLORS, subplots
from course_utils.lessons.explorer import Explorer, Slider

__all__ = ["first_slider"]

NAMES = ("cat", "dog", "bird", "fish")
SCORES = np.array([1.0, 0.5, 0.0, -0.5])


def first_slider() -> Explorer:
    """Four scores become four weights; the slider moves the score of the bird from -4 to 6."""

    def picture():
        fig, (left, right) = subplots(
            1, 2, alt="Four scores and their weights", width=7.5, height=2.7
        )
        colors = [COLORS["sky"]] * 2 + [COLORS["vermilion"]] + [COLORS["sky"]]
        scores = left.bar(NAMES, SCORES, color=colors)
        weights = right.bar(NAMES, SCORES, color=colors)
        numbers = [right.text(i, 0, "", ha="center", va="bottom", fontsize=9) for i in range(4)]
        left.axhline(0, color="black", linewidth=0.8)
        left.set(title="Scores", ylim=(-4.4, 6.4))
        right.set(title="Weights: exp(score), divided by their sum", ylim=(0, 1.12))

        def draw(bird: float) -> str:
            score = SCORES.copy()
            score[2] = bird
            weight = np.exp(score) / np.exp(score).sum()
            for bar, height in zip(scores, score, strict=True):
                bar.set_height(height)
            for bar, number, height in zip(weights, numbers, weight, strict=True):
                bar.set_height(height)
                number.set_position((bar.get_x() + bar.get_width() / 2, height + 0.015))
                number.set_text(f"{height:.2f}")
            listed = ", ".join(f"{name} {w:.2f}" for name, w in zip(NAMES, weight, strict=True))
            return f"With a score of {bird:g} for the bird, the weights are {listed}; they add up to 1."

        return fig, draw

    slider = Slider(np.arange(-4, 6.5, 0.5), 0.0, label="Score of the bird", format="{:+.1f}")
    return Explorer("first_slider", picture, {"bird": slider})
