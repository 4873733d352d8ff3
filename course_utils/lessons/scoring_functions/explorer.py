"""How the dimension, the scale and the valid length shape scores, weights and entropy.

One set of standard normal queries and keys, drawn once; a smaller dimension takes their first coordinates.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text

from course_utils.figures import COLORS, heatmap, subplots
from course_utils.lessons.explorer import Explorer, Slider, Toggle
from course_utils.lessons.scoring_functions.dot_products import dot_products

__all__ = ["dot_products", "scores"]

NUM_QUERIES, NUM_KEYS = 4, 6
DIMENSIONS = (1, 4, 16, 64, 256, 1024)
VALID_LENS = (0, 1, 2, 4, 6)
FULL_COLOR = 4.0
"""Scores beyond ±4 take the last color of the scale; their numbers stand in the cells."""


def scores(seed: int = 5) -> Explorer:
    """Four queries and six keys of `dim` coordinates; the sequence has `valid_len` real keys.

    Args:
        seed: of the random queries and keys.
    """
    controls = {
        "dim": Slider(DIMENSIONS, 64, label="Dimension d"),
        "scaled": Toggle(False, label="Divide by √d"),
        "valid_len": Slider(VALID_LENS, 4, label="Valid keys"),
    }
    return Explorer("scores", lambda: Scores(seed), controls)


class Scores:
    """A map of scores, a map of weights, and the entropy of each row."""

    def __init__(self, seed: int):
        """Draws queries and keys."""
        rng = np.random.default_rng(seed)
        self.queries = rng.standard_normal((NUM_QUERIES, max(DIMENSIONS)))
        self.keys = rng.standard_normal((NUM_KEYS, max(DIMENSIONS)))
        self.picture, axes = subplots(
            1, 3, alt="Scores, weights and entropy", width=8.4, height=2.6, sharey=True,
            width_ratios=[4, 4, 2.4],
        )  # fmt: skip
        self._set_maps(*axes[:2])
        self._set_entropy(axes[2])
        axes[0].set_yticks(range(NUM_QUERIES), range(1, NUM_QUERIES + 1))
        for ax in axes[1:]:
            ax.tick_params(axis="y", left=False)

    def _set_maps(self, left: Axes, right: Axes) -> None:
        empty, keys = np.zeros((NUM_QUERIES, NUM_KEYS)), [str(k + 1) for k in range(NUM_KEYS)]
        self.scores = heatmap(
            left, empty, vmin=-FULL_COLOR, vmax=FULL_COLOR, cmap="PuOr", keys=keys
        )
        self.scores.set_cmap(self.scores.cmap.with_extremes(bad="0.86"))
        self.weights = heatmap(right, empty, ylabel=None, keys=keys, title="Weights")
        self.score_texts, self.weight_texts = _texts(left), _texts(right)
        self.formula = left.set_title("Scores q · k / √d, d = 1024")

    def _set_entropy(self, ax: Axes) -> None:
        rows = range(NUM_QUERIES)
        self.bars = ax.barh(rows, rows, color=COLORS["blue"], height=0.7)
        self.most = ax.axvline(0, color=COLORS["vermilion"], linestyle="--")
        ax.set(xlim=(0, 2.8), xlabel="dashed: equal weights")
        self.mean = ax.set_title("Entropy: mean 0.00 bits")

    def draw(self, dim: int, scaled: bool, valid_len: int) -> str:
        """Take the first `dim` coordinates and the first `valid_len` keys."""
        score = self.queries[:, :dim] @ self.keys[:, :dim].T
        if scaled:
            score /= np.sqrt(dim)
        allowed = np.arange(NUM_KEYS) < valid_len
        weight = _masked_softmax(score, allowed)
        bits = _entropy(weight)
        highest = np.log2(valid_len) if valid_len else 0.0
        formula = "q · k / √d" if scaled else "q · k"
        self._write(score, weight, allowed)
        self.scores.set_data(np.ma.masked_where(np.broadcast_to(~allowed, score.shape), score))
        self.weights.set_data(weight)
        for bar, width in zip(self.bars, bits, strict=True):
            bar.set_width(width)
        self.most.set_xdata([highest, highest])
        self.formula.set_text(f"Scores {formula}, d = {dim}")
        self.mean.set_text(f"Entropy: mean {bits.mean():.2f} bits")
        if valid_len == 0:
            return f"{formula} with d = {dim} and no valid key: every weight is 0, and so is the output."
        return (
            f"{formula} with d = {dim} and {valid_len} of {NUM_KEYS} keys valid: the largest score is "
            f"{_short(score[:, allowed].max())}, the largest weight {weight.max():.2f}, and the mean entropy "
            f"{bits.mean():.2f} of at most {highest:.2f} bits."
        )

    def _write(self, score: np.ndarray, weight: np.ndarray, allowed: np.ndarray) -> None:
        """The number in each cell of both maps."""
        for (row, column), text in self.score_texts.items():
            value = score[row, column]
            text.set_text(_short(value) if allowed[column] else "−∞")
            text.set_color("white" if allowed[column] and abs(value) > 2.6 else "black")
        for (row, column), text in self.weight_texts.items():
            value = weight[row, column]
            text.set_text(f"{value:.2f}" if allowed[column] else "0")
            text.set_color("white" if value > 0.55 else "black")


def _texts(ax: Axes) -> dict[tuple[int, int], Text]:
    return {
        (row, column): ax.text(column, row, "", ha="center", va="center", fontsize=8)
        for row in range(NUM_QUERIES)
        for column in range(NUM_KEYS)
    }


def _short(value: float) -> str:
    text = f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"
    return text.replace("-", "−")


def _masked_softmax(score: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    if not allowed.any():
        return np.zeros_like(score)
    masked = np.where(allowed, score, -np.inf)
    weight = np.exp(masked - masked.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


def _entropy(weight: np.ndarray) -> np.ndarray:
    """Bits, for each row."""
    positive = weight > 0
    logs = np.log2(weight, where=positive, out=np.zeros_like(weight))
    return np.abs((weight * logs).sum(axis=1))
