"""Two explorers: how two heads learn longer and longer lists, and how d, length and scale shape scores and weights."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.text import Text
from torch import Tensor

from course_utils.figures import COLORS, heatmap, subplots
from course_utils.kit.controls import Slider, Toggle
from course_utils.kit.explorer import Explorer
from course_utils.lessons.scoring_functions.pictures import LINES
from course_utils.lessons.scoring_functions.trainings import (
    STEPS,
    STEPS_BETWEEN_POINTS,
    best_curve,
)
from course_utils.lessons.scoring_functions.word_lists import GUESS, NAMES, WORDS

__all__ = ["dot_products", "longer_lists"]

# Longer and longer lists ------------------------------------------------------------------------

LISTS = (4, 8, 16, 32, 64)
DIVISORS = ("√d", "nothing")
COLUMN = 16
"""Words in a column of the list."""


def longer_lists() -> Explorer:
    """A list of words and digits; beside it, how a head with √d and one without learn lists of this length."""
    controls = {"words": Slider(LISTS, 4, label="Words on the list")}
    caption = "Longer lists: which of the two heads still learns?"
    return Explorer("longer_lists", Lists, controls, caption=caption)


class Lists:
    """One list, and the accuracy over the steps of two heads."""

    def __init__(self) -> None:
        """Reads the curves of the stored runs; `draw` shows those of one length."""
        generator = torch.Generator().manual_seed(4)
        self.digits = torch.randint(10, (len(WORDS),), generator=generator).tolist()
        self.curves = {
            (divisor, words): best_curve(divisor, words) for divisor in DIVISORS for words in LISTS
        }
        self.picture, (left, right) = subplots(
            1, 2, alt="Lists", width=8.4, height=3.4, width_ratios=[1.25, 1]
        )
        left.set(xlim=(0, len(WORDS) // COLUMN), ylim=(COLUMN, -0.6), xticks=[], yticks=[])
        left.spines[:].set_visible(False)
        self.title = left.set_title("4 words. Which digit does cat have?")
        self.texts = [
            left.text(index // COLUMN, index % COLUMN, "", va="center", fontsize=8)
            for index in range(len(WORDS))
        ]
        steps = range(0, STEPS + 1, STEPS_BETWEEN_POINTS)
        self.lines = {}
        for divisor in DIVISORS:
            color, line = LINES[divisor]
            look = {"color": COLORS[color], "markersize": 4, "label": NAMES[divisor]}
            (self.lines[divisor],) = right.plot(steps, [0] * len(steps), line, **look)
        right.axhline(GUESS, color="0.6", linestyle=":", label="a guess")
        right.set(xlabel="steps of training", ylabel="accuracy on new lists", ylim=(0, 1.05))
        right.legend(loc="center right", fontsize=8)

    def draw(self, words: int) -> str:
        """Show a list of so many words, and how both heads learn such lists."""
        self.title.set_text(f"{words} words. Which digit does cat have?")
        pairs = [f"{word} {digit}" for word, digit in zip(WORDS, self.digits, strict=True)]
        for index, text in enumerate(self.texts):
            text.set_text(pairs[index] if index < words else "")
            text.set_color(COLORS["query" if WORDS[index] == "cat" else "ink"])
        ends = []
        for divisor, line in self.lines.items():
            curve = self.curves[divisor, words]
            line.set_ydata(curve)
            ends.append(f"{NAMES[divisor]} {curve[-1]:.2f}")
        return (
            f"A list of {words} words with a digit each, beginning with {', '.join(pairs[:4])}. Accuracy "
            f"after {STEPS} steps of training: {', '.join(ends)}; a guess has {GUESS}."
        )


# Scores, weights and entropy --------------------------------------------------------------------
# One set of standard normal queries and keys, drawn once; a smaller dimension takes their first coordinates.

NUM_QUERIES, NUM_KEYS = 4, 6
DIMENSIONS = (1, 4, 16, 64, 256, 1024)
FACTORS = (0.1, 0.3, 1.0, 4.0, 16.0)
FULL_COLOR = 4.0
"""Scores beyond ±4 take the last color of the scale; their numbers are in the cells."""


def dot_products() -> Explorer:
    """Four queries and six keys of `dim` numbers each; the queries are multiplied by `factor`."""
    controls = {
        "dim": Slider(DIMENSIONS, 4, label="Dimension d"),
        "factor": Slider(FACTORS, 1.0, label="Queries times c"),
        "scaled": Toggle(False, label="Divide by √d"),
    }
    return Explorer("dot_products", DotProducts, controls)


class DotProducts:
    """A map of scores, a map of weights, and the entropy of each row."""

    def __init__(self) -> None:
        """Draws queries and keys."""
        generator = torch.Generator().manual_seed(395)
        self.queries = torch.randn(NUM_QUERIES, max(DIMENSIONS), generator=generator)
        self.keys = torch.randn(NUM_KEYS, max(DIMENSIONS), generator=generator)
        self.picture, (left, middle, right) = subplots(
            1, 3, alt="Scores, weights and entropy", width=8, height=2.7, sharey=True,
            width_ratios=[4, 4, 2.4],
        )  # fmt: skip
        empty = torch.zeros(NUM_QUERIES, NUM_KEYS)
        columns = [str(key) for key in range(NUM_KEYS)]
        self.scores = heatmap(
            left, empty, vmin=-FULL_COLOR, vmax=FULL_COLOR, cmap="signs", keys=columns
        )
        self.weights = heatmap(middle, empty, ylabel=None, keys=columns, title="Weights")
        self.score_texts, self.weight_texts = (
            cell_texts(ax, NUM_QUERIES, NUM_KEYS) for ax in (left, middle)
        )
        self.formula = left.set_title("Scores q · k / √d, d = 1024")
        self.bars = right.barh(range(NUM_QUERIES), 1.0, color=COLORS["key"], height=0.7)
        equal = math.log2(NUM_KEYS)
        right.axvline(equal, color=COLORS["query"], linestyle="--")
        right.set(xlim=(0, 2.8), xlabel="bits (dashed: equal)")
        self.mean = right.set_title("Entropy: mean 0.00")
        left.set_xlabel("Keys (color: up to ±4)")
        left.set_yticks(range(NUM_QUERIES), range(NUM_QUERIES))
        for ax in (middle, right):
            ax.tick_params(axis="y", left=False)

    def draw(self, dim: int, factor: float, scaled: bool) -> str:
        """Take the first `dim` numbers of each vector and multiply the queries by `factor`."""
        scores = factor * self.queries[:, :dim] @ self.keys[:, :dim].T
        if scaled:
            scores = scores / math.sqrt(dim)
        weights = scores.softmax(dim=-1)
        bits = torch.special.entr(weights).sum(dim=-1) / math.log(2)
        formula = "q · k / √d" if scaled else "q · k"
        if factor != 1:
            formula = f"{factor:g} {formula}"
        self.scores.set_data(scores.numpy())
        self.weights.set_data(weights.numpy())
        self._write(scores, weights)
        for bar, width in zip(self.bars, bits.tolist(), strict=True):
            bar.set_width(width)
        self.formula.set_text(f"Scores {formula}, d = {dim}")
        self.mean.set_text(f"Entropy: mean {bits.mean():.2f}")
        return (
            f"{formula} with d = {dim}: the largest score is {short(scores.max().item())}, the largest weight "
            f"{weights.max():.2f}, and the mean entropy {bits.mean():.2f} of at most {math.log2(NUM_KEYS):.2f} bits."
        )

    def _write(self, scores: Tensor, weights: Tensor) -> None:
        """The number in each cell of both maps."""
        for (row, column), text in self.score_texts.items():
            value = scores[row, column].item()
            text.set_text(short(value))
            text.set_color("white" if abs(value) > 2.6 else "black")
        for (row, column), text in self.weight_texts.items():
            value = weights[row, column].item()
            text.set_text(f"{value:.2f}")
            text.set_color("white" if value > 0.7 else "black")


# Numbers in the cells of a map, also for *Masks* ------------------------------------------------


def cell_texts(ax: Axes, rows: int, columns: int) -> dict[tuple[int, int], Text]:
    """An empty text in the middle of each cell of a map."""
    return {
        (row, column): ax.text(column, row, "", ha="center", va="center", fontsize=8)
        for row in range(rows)
        for column in range(columns)
    }


def short(value: float) -> str:
    """A number for a cell: one decimal, none from 10 on, and a minus as wide as a plus."""
    text = f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"
    return text.replace("-0.0", "0.0").replace("-", "−")
