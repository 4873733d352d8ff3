"""The explorers of *Attention at length*: a model that reads through a window, and a softmax in blocks."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from course_utils.figures import COLORS, subplots
from course_utils.kit.controls import Choice, Slider
from course_utils.kit.explorer import Explorer
from course_utils.kit.runs import stored_runs

__all__ = ["blocks", "windows"]

READ = {"this course": "pages", "a story": "ferry"}
"""What a text is, in words → its name among the stored ones."""
BLOCK, FROM = 64, 128
"""Tokens of a stored mean, and the first token that counts in the loss of a text."""
SIGHT = {
    "the whole past": ("whole past", None, False),
    "the last 128": ("last 128", 128, False),
    "the first token and the last 127": ("first 1, last 127", 127, True),
}
"""Choice → the name of the view, how many of the last tokens it keeps, and whether it keeps the first."""


# Windows ------------------------------------------------------------------------------------------


def windows() -> Explorer:
    """Explorer of a real model that reads two texts with its whole past, and with two windows."""
    controls = {
        "text": Choice(list(READ), next(iter(READ)), label="It reads"),
        "sight": Choice(list(SIGHT), "the last 128", label="A token may look at"),
    }
    return Explorer("windows", Reading, controls)


def losses_of(text: str, *groups: str) -> dict[str, dict]:
    """View of these groups → {"mean": nats a token, "by_block": means of 64 tokens}, as stored for a text."""
    return {
        name: gave
        for group in groups
        for run in stored_runs("real_weights", "screen", text=text, group=group)
        if run.config.keys()
        == {"text", "group"}  # not those without <|endoftext|>, or of few tokens
        for name, gave in run.examples[0]["gave"].items()
    }


class Sight:
    """A mask: who may look at whom, in a text of `n` tokens."""

    def __init__(self, ax: Axes, n: int):
        """Draw what stands still."""
        self.n = n
        ax.add_patch(Polygon([(0, 0), (n, n), (0, n)], facecolor=COLORS["raised"]))
        self.seen = ax.add_patch(Polygon([(0, 0)] * 4, facecolor=COLORS["key"], linewidth=0))
        (self.first,) = ax.plot([0, 0], [0, n], color=COLORS["query"], linewidth=3)
        ticks = [0, 512, 1024, n]
        ax.set(xlim=(-25, n * 1.04), ylim=(n, 0), aspect="equal", xticks=ticks, yticks=ticks)
        ax.set(xlabel="position that is looked at", ylabel="position that looks")
        ax.set_title("Who may look at whom", fontsize=10)

    def show(self, last: int, first: bool) -> None:
        """A token may look at the last ones, itself included, and perhaps at the first."""
        n = self.n
        self.seen.set_xy([(0, 0), (n, n), (n - last, n), (0, last)])
        self.first.set_visible(first)


class Reading:
    """Who may look at whom, and the loss over the position."""

    def __init__(self) -> None:
        """Read all losses, and draw what stands still."""
        self.losses = {name: losses_of(text, "128") for name, text in READ.items()}
        n = self.n = BLOCK * len(self.losses[next(iter(READ))]["whole past"]["by_block"])
        self.at = np.arange(n // BLOCK) * BLOCK + BLOCK / 2
        self.picture, (left, ax) = subplots(
            1, 2, alt="A mask, and the loss over the position", width=7.4, height=3.2,
            width_ratios=[1, 0.95],
        )  # fmt: skip
        self.sight = Sight(left, n)
        gray, blue = ({"color": COLORS[name], "linewidth": 1.5} for name in ("line", "key"))
        (self.whole,), (self.line,) = ax.plot([], [], **gray), ax.plot([], [], **blue)
        (self.whole_mean,), (self.mean,) = (
            ax.plot([], [], ":", **gray),
            ax.plot([], [], ":", **blue),
        )
        self.line.set_linewidth(2.5)
        at = {"transform": ax.transAxes, "fontsize": 9, "va": "top", "ha": "left"}
        self.says = ax.text(0.2, 0.99, "", color=COLORS["key"], **at)
        self.says_whole = ax.text(0.2, 0.91, "", color=COLORS["line"], **at)
        ax.set(xlim=(0, n * 1.08), ylim=(2.5, 6.5), xticks=[0, 512, 1024, n], xlabel="position")
        ax.set_title("Loss in nats (dotted: mean from 128 on)", fontsize=10)

    def draw(self, text: str, sight: str) -> str:
        """Show how a text is read with a choice of `SIGHT`."""
        name, last, first = SIGHT[sight]
        now, whole = self.losses[text][name], self.losses[text]["whole past"]
        self.sight.show(last or self.n, first)
        self.line.set_data(self.at, now["by_block"])
        self.mean.set_data([FROM, self.n], [now["mean"]] * 2)
        self.says.set_text(f"{now['mean']:.2f}: {sight}")
        self.whole.set_data(self.at, whole["by_block"])
        self.whole_mean.set_data([FROM, self.n], [whole["mean"]] * 2)
        self.says_whole.set_text(f"{whole['mean']:.2f}: the whole past")
        for artist in (self.whole, self.whole_mean, self.says_whole):
            artist.set_visible(name != "whole past")
        compared = "" if name == "whole past" else f", and with the whole past {whole['mean']:.2f}"
        return (
            f"It reads {text}, and a token may look at {sight}. From position {FROM} on the loss is {now['mean']:.2f}"
            f"{compared}."
        )


# Blocks -------------------------------------------------------------------------------------------

SCORES = (1, 0, 2, 0, 1, 1, 4, 1, 2, 0, 3, 1)
VALUES = (2, 5, 3, 8, 1, 4, 9, 6, 2, 7, 5, 1)
"""Twelve scores of one query, and the values of the keys."""
SIZE = 3
COUNT = len(SCORES) // SIZE


def blocks() -> Explorer:
    """Explorer of a softmax over twelve keys that is computed three at a time."""
    controls = {"read": Slider(range(COUNT + 1), 1, label="Blocks read")}
    return Explorer(
        "blocks", Sums, controls, caption="Move the block over the keys, from left to right."
    )


def running(read: int) -> tuple[float, float, float, float]:
    """The largest score c, the sums s and y after so many blocks, and what the last one multiplied the old sums by."""
    c, s, y, factor = -math.inf, 0.0, 0.0, 1.0
    for start in range(0, read * SIZE, SIZE):
        scores, values = (np.array(x[start : start + SIZE]) for x in (SCORES, VALUES))
        old, c = c, max(c, scores.max())
        e, factor = np.exp(scores - c), math.exp(old - c)
        s, y = s * factor + e.sum(), y * factor + e @ values
    return c, s, y, factor


class Sums:
    """The scores with the block that is read, the weights so far, and the sums."""

    def __init__(self) -> None:
        """Draw scores and values, which stand still."""
        self.picture, (left, right) = subplots(
            1, 2, alt="Scores in blocks, and three sums", width=7.4, height=2.8,
            width_ratios=[1, 1],
        )  # fmt: skip
        at = np.arange(len(SCORES))
        self.bars = left.bar(at, np.array(SCORES) + 0.04, width=0.8)
        self.frame = left.axvspan(-0.5, SIZE - 0.5, color=COLORS["wash"], zorder=0)
        (self.largest,) = left.plot([], [], "--", color=COLORS["query"], linewidth=1.5)
        self.name = left.text(
            -0.5, 0, "", color=COLORS["query"], ha="left", va="bottom", fontsize=9
        )
        left.set(xlim=(-0.6, 11.6), ylim=(0, 4.9), ylabel="score", yticks=range(5))
        left.set_xticks(at, [str(value) for value in VALUES])
        left.set(xlabel="value of the key")
        left.set_title("Twelve keys, three at a time", fontsize=10)
        right.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
        right.spines[:].set_visible(False)
        style = {"fontsize": 10, "va": "top", "linespacing": 1.9}
        self.words = right.text(0.0, 0.95, "", **style)
        self.exact = running(COUNT)[2] / running(COUNT)[1]

    def draw(self, read: int) -> str:
        """Show the sums after so many blocks."""
        c, s, y, factor = running(read)
        for place, bar in enumerate(self.bars):
            block = place // SIZE
            color = "query" if block == read - 1 else "key" if block < read else "line"
            bar.set(color=COLORS[color], alpha=1 if block == read - 1 else 0.35)
        self.frame.set_visible(read > 0)
        self.frame.set_x((read - 1) * SIZE - 0.5)
        self.largest.set_data([-0.6, 11.6], [c, c] if read else [np.nan] * 2)
        self.name.set_text(f"largest so far: c = {c}" if read else "")
        self.name.set_y(c + 0.08 if read else 0)
        if not read:
            self.words.set_text(f"Nothing is read yet.\nAll keys at once give {self.exact:.3f}.")
            return f"Nothing is read yet. All keys at once give {self.exact:.3f}."
        old = running(read - 1)[0]
        rises = read > 1 and c > old
        line = (
            f"The old sums are multiplied by $e^{{{old} - {c}}} = {factor:.3f}$." if rises else " "
        )
        if read > 1 and not rises:
            line = "No larger score, so the old sums stay."
        self.words.set_text(
            f"{line}\nsum of the exponentials: $s = {s:.3f}$\nexponentials times values, summed: $y = {y:.3f}$\n"
            f"answer so far: $y / s = {y / s:.3f}$\nall keys at once: ${self.exact:.3f}$"
        )
        return (
            f"After {read} of {COUNT} blocks the largest score is {c}, s is {s:.3f}, y is {y:.3f}, and the answer so "
            f"far is {y / s:.3f}. All keys at once give {self.exact:.3f}."
        )
