"""The explorer of *Masks*: which pairs a mask permits, and what three ways of applying it do to the weights.

The scores of five words are the same in each picture.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_utils.figures import COLORS, heatmap, subplots
from course_utils.kit.controls import Choice, Slider
from course_utils.kit.explorer import Explorer
from course_utils.lessons.scoring_functions.explorer import cell_texts, short

__all__ = ["masked_scores"]

WORDS = ("the", "cat", "sat", "down", "here")
SIZE = len(WORDS)
MASKS = ("padding", "causal", "both")
BEFORE, ZERO, AFTER = "−∞, then softmax", "0, then softmax", "softmax, then 0"
FULL_COLOR = 3.0
"""Scores beyond ±3 take the last color of the scale; their numbers stand in the cells."""


def masked_scores() -> Explorer:
    """Five positions, of which the first `valid_len` hold words; forbidden scores or weights are replaced."""
    controls = {
        "mask": Choice(MASKS, "padding", label="Mask"),
        "valid_len": Slider(tuple(range(SIZE + 1)), 3, label="Words"),
        "how": Choice((ZERO, AFTER, BEFORE), ZERO, label="Forbidden pairs get"),
    }
    return Explorer("masked_scores", ScoresAndWeights, controls)


class ScoresAndWeights:
    """Maps of the scores that the softmax sees and of the weights, and the sum of each row of weights."""

    def __init__(self) -> None:
        """The scores are drawn once; `draw` masks them."""
        self.score = 1.4 * np.random.default_rng(4).standard_normal((SIZE, SIZE))
        self.picture, ((top, legend), (bottom, right)) = subplots(
            2, 2, alt="Scores, weights and sums", width=4.1, height=4.9, width_ratios=[3, 1.6],
        )  # fmt: skip
        empty = np.zeros((SIZE, SIZE))
        self.scores = heatmap(
            top, empty, queries=WORDS, vmin=-FULL_COLOR, vmax=FULL_COLOR, cmap="signs", xlabel=None,
            title="What the softmax sees",
        )  # fmt: skip
        self.weights = heatmap(bottom, empty, queries=WORDS, title="Weights")
        for image in (self.scores, self.weights):
            image.set_cmap(image.cmap.with_extremes(bad="0.86"))
        self.score_texts, self.weight_texts = (cell_texts(ax, SIZE, SIZE) for ax in (top, bottom))
        self.maps = (top, bottom)
        for ax in self.maps:
            ax.tick_params(labelsize=8)
        self._set_sums(right)
        legend.spines[:].set_visible(False)
        legend.set(xticks=[], yticks=[])
        legend.legend(
            handles=[self.permitted, self.forbidden], loc="upper left", fontsize=8, title="in a frame:\nforbidden pair",
            title_fontsize=8, alignment="left", frameon=False,
        )  # fmt: skip
        self.frames = {ax: _cell_frames(ax) for ax in self.maps}

    def _set_sums(self, ax: Axes) -> None:
        rows = range(SIZE)
        self.permitted = ax.barh(
            rows, [0.0] * SIZE, color=COLORS["key"], height=0.7, label="permitted"
        )
        self.forbidden = ax.barh(
            rows, [0.0] * SIZE, color=COLORS["query"], height=0.7, label="forbidden"
        )
        ax.axvline(1, color="0.4", linestyle="--", linewidth=1)
        ax.set(
            xlim=(0, 1.1), xticks=[0, 1], ylim=(SIZE - 0.5, -0.5), yticks=[], xlabel="weight",
            title="Row sums",
        )  # fmt: skip

    def draw(self, mask: str, valid_len: int, how: str) -> str:
        """Replace what the mask forbids, in the scores or in the weights."""
        positions = np.arange(SIZE)
        words, past = positions[None, :] < valid_len, positions[None, :] <= positions[:, None]
        allowed = np.broadcast_to(
            {"padding": words, "causal": past, "both": words & past}[mask], (SIZE, SIZE)
        )
        masked = np.where(allowed, self.score, {BEFORE: -np.inf, ZERO: 0.0, AFTER: self.score}[how])
        weight = _softmax(masked) * (allowed if how == AFTER else 1.0)
        self._write(masked, weight)
        for frames in self.frames.values():
            for pair, frame in frames.items():
                frame.set_visible(not allowed[pair])
        self.scores.set_data(np.ma.masked_invalid(masked))
        self.weights.set_data(np.ma.masked_invalid(weight))
        finite = np.nan_to_num(weight)
        permitted, forbidden = (finite * allowed).sum(axis=1), (finite * ~allowed).sum(axis=1)
        for row in range(SIZE):
            self.permitted[row].set_width(permitted[row])
            self.forbidden[row].set_width(forbidden[row])
            self.forbidden[row].set_x(permitted[row])
        keys = [word if i < valid_len else "<pad>" for i, word in enumerate(WORDS)]
        if mask == "causal":
            keys = list(WORDS)
        for ax in self.maps:
            ax.set_xticks(positions, keys)
            ax.set_yticks(positions, keys)
        return _sentence(mask, valid_len, how, allowed, permitted, forbidden)

    def _write(self, masked: np.ndarray, weight: np.ndarray) -> None:
        """The number in each cell of both maps."""
        for pair, text in self.score_texts.items():
            text.set_text("−∞" if np.isinf(masked[pair]) else short(masked[pair]))
            dark = np.isfinite(masked[pair]) and abs(masked[pair]) > 2.0
            text.set_color("white" if dark else "black")
        for pair, text in self.weight_texts.items():
            text.set_text("NaN" if np.isnan(weight[pair]) else f"{weight[pair]:.2f}")
            text.set_color("white" if weight[pair] > 0.7 else "black")


def _cell_frames(ax: Axes) -> dict[tuple[int, ...], Rectangle]:
    """A frame around each cell of a map, by row and column."""
    frames: dict[tuple[int, ...], Rectangle] = {}
    for row, column in np.ndindex(SIZE, SIZE):
        corner, color = (column - 0.44, row - 0.44), COLORS["query"]
        frame = Rectangle(corner, 0.88, 0.88, fill=False, linewidth=1, edgecolor=color)
        ax.add_patch(frame)
        frames[row, column] = frame
    return frames


def _softmax(masked: np.ndarray) -> np.ndarray:
    """Softmax of each row; NaN where all of it is −∞."""
    with np.errstate(invalid="ignore"):
        shares = np.exp(masked - masked.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def _sentence(
    mask: str,
    valid_len: int,
    how: str,
    allowed: np.ndarray,
    permitted: np.ndarray,
    forbidden: np.ndarray,
) -> str:
    """What the picture shows, in words; `permitted` and `forbidden` are the sums of each row's weights."""
    named = {
        "padding": f"Padding mask, {valid_len} words",
        "causal": "Causal mask",
        "both": f"Padding and causal mask, {valid_len} words",
    }[mask]
    start = f"{named}: {allowed.sum()} of {allowed.size} pairs are permitted. With “{how}” "
    empty = int((~allowed.any(axis=1)).sum())
    nowhere = f" {empty} of {SIZE} rows have no permitted key." if empty else ""
    if how == BEFORE:
        end = "each row with a permitted key sums to 1, and its forbidden keys get no weight."
        nowhere += " There all weights are NaN." if empty else ""
    elif how == ZERO:
        end = f"each row sums to 1, and forbidden keys get up to {forbidden.max():.2f} of it."
    else:
        end = f"forbidden keys get no weight, and the rows sum to {permitted.min():.2f} to {permitted.max():.2f}."
    return start + end + nowhere
