"""Which pairs a mask permits, and what three ways of applying it do to the weights.

One map of scores of five words, the same for each picture.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text

from course_utils.figures import COLORS, heatmap, subplots
from course_utils.lessons.explorer import Choice, Explorer, Slider

__all__ = ["masked_scores"]

WORDS = ("the", "cat", "sat", "down", "here")
SIZE = len(WORDS)
MASKS = ("padding", "causal", "both")
BEFORE, ZERO, AFTER = "−∞, then softmax", "0, then softmax", "softmax, then 0"
FULL_COLOR = 3.0
"""Scores beyond ±3 take the last color of the scale; their numbers stand in the cells."""


def masked_scores(seed: int = 4) -> Explorer:
    """Five places, of which the first `valid_len` hold words; forbidden scores or weights are replaced.

    Args:
        seed: of the random scores.
    """
    controls = {
        "mask": Choice(MASKS, "padding", label="Mask"),
        "valid_len": Slider(tuple(range(SIZE + 1)), 3, label="Words"),
        "how": Choice((BEFORE, ZERO, AFTER), BEFORE, label="Forbidden pairs get"),
    }
    return Explorer("masked_scores", lambda: Masked(seed), controls)


class Masked:
    """A map of scores, a map of weights, and where the weight of each row went."""

    def __init__(self, seed: int):
        """Draws the scores."""
        self.score = 1.4 * np.random.default_rng(seed).standard_normal((SIZE, SIZE))
        self.picture, (left, middle, right) = subplots(
            1, 3, alt="Scores, weights and sums", width=8.6, height=3.0, sharey=True,
            width_ratios=[4, 4, 2.6],
        )  # fmt: skip
        empty = np.zeros((SIZE, SIZE))
        self.scores = heatmap(
            left, empty, queries=WORDS, vmin=-FULL_COLOR, vmax=FULL_COLOR, cmap="PuOr",
            title="Scores (gray: forbidden)",
        )  # fmt: skip
        self.scores.set_cmap(self.scores.cmap.with_extremes(bad="0.86"))
        self.weights = heatmap(middle, empty, ylabel=None, title="Weights")
        self.score_texts, self.weight_texts = _texts(left), _texts(middle)
        self.maps = (left, middle)
        self._set_sums(right)
        for ax in (middle, right):
            ax.tick_params(axis="y", left=False)

    def _set_sums(self, ax: Axes) -> None:
        rows = range(SIZE)
        self.right = ax.barh(
            rows, [0.0] * SIZE, color=COLORS["blue"], height=0.7, label="permitted"
        )
        self.wrong = ax.barh(
            rows, [0.0] * SIZE, color=COLORS["vermilion"], height=0.7, label="forbidden"
        )
        ax.axvline(1, color="0.4", linestyle="--", linewidth=1)
        ax.set(xlim=(0, 1.1), xticks=[0, 0.5, 1], xlabel="weight on keys", title="Sum of the row")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28), ncols=2, fontsize=8)

    def draw(self, mask: str, valid_len: int, how: str) -> str:
        """Replace what the mask forbids, in the scores or in the weights."""
        places = np.arange(SIZE)
        real, past = places[None, :] < valid_len, places[None, :] <= places[:, None]
        allowed = np.broadcast_to(
            {"padding": real, "causal": past, "both": real & past}[mask], (SIZE, SIZE)
        )
        weight = _weights(self.score, allowed, how)
        self._write(weight, allowed)
        self.scores.set_data(np.ma.masked_where(~allowed, self.score))
        self.weights.set_data(weight)
        on_right, on_wrong = (weight * allowed).sum(axis=1), (weight * ~allowed).sum(axis=1)
        for blue, red, share, rest in zip(self.right, self.wrong, on_right, on_wrong, strict=True):
            blue.set_width(share)
            red.set_width(rest)
            red.set_x(share)
        keys = [word if place < valid_len else "<pad>" for place, word in enumerate(WORDS)]
        if mask == "causal":
            keys = list(WORDS)
        for ax in self.maps:
            ax.set_xticks(places, keys)
        self.maps[0].set_yticks(places, keys)
        return _sentence(mask, valid_len, how, allowed, on_right, on_wrong)

    def _write(self, weight: np.ndarray, allowed: np.ndarray) -> None:
        """The number in each cell of both maps."""
        for place, text in self.score_texts.items():
            value = self.score[place]
            text.set_text(_short(value) if allowed[place] else "–")
            text.set_color("white" if allowed[place] and abs(value) > 2.0 else "black")
        for place, text in self.weight_texts.items():
            text.set_text(f"{weight[place]:.2f}")
            text.set_color("white" if weight[place] > 0.55 else "black")


def _texts(ax: Axes) -> dict[tuple[int, int], Text]:
    return {
        (row, column): ax.text(column, row, "", ha="center", va="center", fontsize=8)
        for row in range(SIZE)
        for column in range(SIZE)
    }


def _short(value: float) -> str:
    text = f"{value:.1f}".replace("-", "−")
    return "0.0" if text == "−0.0" else text


def _weights(score: np.ndarray, allowed: np.ndarray, how: str) -> np.ndarray:
    if how == BEFORE:
        shares = np.exp(score - score.max()) * allowed
    else:
        shares = np.exp(np.where(allowed, score, 0.0) if how == ZERO else score)
    total = shares.sum(axis=1, keepdims=True)
    weight = shares / np.where(total > 0, total, 1.0)
    return weight * allowed if how == AFTER else weight


def _sentence(
    mask: str, valid_len: int, how: str, allowed: np.ndarray, right: np.ndarray, wrong: np.ndarray
) -> str:
    named = {
        "padding": f"Padding mask, {valid_len} words",
        "causal": "Causal mask",
        "both": f"Padding and causal mask, {valid_len} words",
    }[mask]
    start = f"{named}: {allowed.sum()} of {allowed.size} pairs are permitted. With “{how}” "
    empty = int((~allowed.any(axis=1)).sum())
    nowhere = f" {empty} of {SIZE} rows have no permitted key." if empty else ""
    if how == BEFORE:
        end = "forbidden keys get no weight, and each row with a permitted key sums to 1."
    elif how == ZERO:
        end = f"each row sums to 1, and forbidden keys get up to {wrong.max():.2f} of it."
    else:
        end = f"forbidden keys get no weight, and the rows sum to {right.min():.2f} to {right.max():.2f}."
    return start + end + nowhere
