"""How the dimension, the scale and the valid length shape scores, weights and entropy.

One set of standard normal queries and keys, drawn once; a smaller dimension takes their first coordinates.
"""

import numpy as np

from course_utils.figures import COLORS, heatmap, subplots
from course_utils.lessons.explorer import Explorer, Slider, Toggle

__all__ = ["scores"]

NUM_QUERIES, NUM_KEYS = 4, 6
DIMENSIONS = (1, 4, 16, 64, 256, 1024)
VALID_LENS = (0, 1, 2, 4, 6)
FULL_COLOR = 4.0
"""Scores beyond ±4 take the last colour of the scale; their numbers stand in the cells."""


def scores(seed: int = 5) -> Explorer:
    """Four queries and six keys of `dim` coordinates; the sequence has `valid_len` real keys.

    Args:
        seed: of the random queries and keys.
    """
    rng = np.random.default_rng(seed)
    queries = rng.standard_normal((NUM_QUERIES, max(DIMENSIONS)))
    keys = rng.standard_normal((NUM_KEYS, max(DIMENSIONS)))
    rows = np.arange(NUM_QUERIES)
    names = [str(column + 1) for column in range(NUM_KEYS)]
    empty = np.zeros((NUM_QUERIES, NUM_KEYS))

    def picture():
        fig, (left, middle, right) = subplots(
            1, 3, alt="Scores, weights and entropy", width=8.4, height=2.6, sharey=True,
            width_ratios=[4, 4, 2.4],
        )  # fmt: skip
        score_map = heatmap(left, empty, vmin=-FULL_COLOR, vmax=FULL_COLOR, cmap="PuOr", keys=names)
        weight_map = heatmap(middle, empty, ylabel=None, keys=names, title="Weights")
        score_map.set_cmap(score_map.cmap.with_extremes(bad="0.86"))
        score_texts, weight_texts = _texts(left), _texts(middle)
        bars = right.barh(rows, rows, color=COLORS["blue"], height=0.7)
        most = right.axvline(0, color=COLORS["vermilion"], linestyle="--")
        left.set_yticks(rows, [str(row + 1) for row in rows])
        right.set(xlim=(0, 2.8), xlabel="dashed: equal weights", title="Entropy: mean 0.00 bits")
        for ax in (middle, right):
            ax.tick_params(axis="y", left=False)
        left.set_title("Scores q · k / √d, d = 1024")

        def draw(dim: int, scaled: bool, valid_len: int) -> str:
            score = queries[:, :dim] @ keys[:, :dim].T
            if scaled:
                score /= np.sqrt(dim)
            allowed = np.arange(NUM_KEYS) < valid_len
            weight = _masked_softmax(score, allowed)
            bits = _entropy(weight)
            score_map.set_data(np.ma.masked_where(np.broadcast_to(~allowed, score.shape), score))
            weight_map.set_data(weight)
            for (row, column), text in score_texts.items():
                value = score[row, column]
                text.set_text(_short(value) if allowed[column] else "−∞")
                text.set_color("white" if allowed[column] and abs(value) > 2.6 else "black")
            for (row, column), text in weight_texts.items():
                value = weight[row, column]
                text.set_text(f"{value:.2f}" if allowed[column] else "0")
                text.set_color("white" if value > 0.55 else "black")
            for bar, width in zip(bars, bits, strict=True):
                bar.set_width(width)
            highest = np.log2(valid_len) if valid_len else 0.0
            most.set_xdata([highest, highest])
            formula = "q · k / √d" if scaled else "q · k"
            left.set_title(f"Scores {formula}, d = {dim}")
            right.set_title(f"Entropy: mean {bits.mean():.2f} bits")
            if valid_len == 0:
                return f"{formula} with d = {dim} and no valid key: every weight is 0, and so is the output."
            return (
                f"{formula} with d = {dim} and {valid_len} of {NUM_KEYS} keys valid: the largest score is "
                f"{_short(score[:, allowed].max())}, the largest weight {weight.max():.2f}, and the mean entropy "
                f"{bits.mean():.2f} of at most {highest:.2f} bits."
            )

        return fig, draw

    controls = {
        "dim": Slider(DIMENSIONS, 64, label="Dimension d"),
        "scaled": Toggle(False, label="Divide by √d"),
        "valid_len": Slider(VALID_LENS, 4, label="Valid keys"),
    }
    return Explorer("scores", picture, controls)


def _texts(ax) -> dict:
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
