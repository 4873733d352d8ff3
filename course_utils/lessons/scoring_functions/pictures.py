"""Pictures of the trainings of *Scoring functions*, and of the size of a query's gradient."""

from collections.abc import Mapping, Sequence

import pandas as pd

from course_utils.figures import COLORS, Picture, label_lines, subplots
from course_utils.lessons.scoring_functions.word_lists import (
    GUESS,
    LARGE_START,
    NAMES,
    SMALL_START,
)

LINES = {"√d": ("key", "s-"), "nothing": ("query", "o--"), SMALL_START: ("value", "^:")}
"""`divided_by` in the configuration of a run → color, and marker with line style."""
LONGER_MARKERS = {2000: "D", 8000: "*"}
"""Steps of a longer training → marker."""


def show_best(chosen: pd.DataFrame) -> Picture:
    """Accuracy over the length of the list, a panel for each d.

    Args:
        chosen: one row for each kind of head, d, length of lists and number of steps, as `trainings.best` gives them.
    """
    chosen = chosen[chosen["divided_by"] != LARGE_START]
    summary = "; ".join(
        f"d = {d}, {NAMES[divisor]}, {steps} steps: {', '.join(f'{x:.2f}' for x in rows['test'])}"
        for (d, divisor, steps), rows in chosen.groupby(["d", "divided_by", "steps"])
    )
    picture, axes = subplots(
        1, 3, width=9, height=3.2, sharey=True,
        alt=f"Accuracy over the words on the list. {summary}.",
    )  # fmt: skip
    for ax, (d, of_size) in zip(axes, chosen.groupby("d"), strict=True):
        for (divisor, steps), rows in of_size.groupby(["divided_by", "steps"]):
            color, line = LINES[divisor]
            style = {"label": NAMES[divisor]}
            if steps in LONGER_MARKERS:
                line = LONGER_MARKERS[steps]
                style = {"markerfacecolor": "white", "label": f"not divided, {steps:,} steps"}
            if divisor == SMALL_START:  # behind the others, and around them
                style |= {"markersize": 13, "markerfacecolor": "none", "zorder": 1}
            ax.semilogx(rows["keys"], rows["test"], line, base=2, color=COLORS[color], **style)
        ax.axhline(GUESS, color="0.6", linewidth=1, linestyle=":")
        ax.set(title=f"d = {d}", xlabel="words on the list", ylim=(0, 1.08), xlim=(3, 85))
        ax.set_xticks([4, 16, 64], ["4", "16", "64"])
    axes[0].set_yticks([0, 0.5, 1])
    axes[0].set_ylabel("accuracy (dotted: a guess)")
    axes[1].legend(loc="lower left", fontsize=7)
    small = [line for line in axes[2].lines if line.get_label() == NAMES[SMALL_START]]
    axes[2].legend(handles=small, loc="lower left", fontsize=7)
    return picture


def show_ratio(times: pd.Series) -> Picture:
    """Size of ∂α/∂q without the divisor, in sizes with it, over d: a line for each number of keys.

    Args:
        times: how many times as large, indexed by (keys, d).
    """
    picture, ax = subplots(
        width=6, height=3.2,
        alt="Size of the query's gradient without the divisor, in sizes with it, over d: "
        + "; ".join(
            f"{keys} keys: " + ", ".join(f"{value:.2g}" for value in rows)
            for keys, rows in times.groupby(level=0)
        ),
    )  # fmt: skip
    for index, (keys, rows) in enumerate(times.groupby(level=0)):
        sizes = rows.index.get_level_values(1)
        dash = ["-", "--", "-.", ":"][index]
        ax.loglog(sizes, rows, dash, marker="o", markersize=4, base=2, label=f"{keys} keys")
    ax.axhline(1, color="0.6", linewidth=1)
    ax.set(xlabel="dimension d", ylabel="size of ∂α/∂q, without / with √d", xlim=(3.5, 300))
    ax.set_xticks([4, 16, 64, 256], ["4", "16", "64", "256"])
    ax.set_yticks([1 / 64, 1 / 16, 1 / 4, 1, 4, 16], ["1/64", "1/16", "1/4", "1", "4", "16"])
    ax.minorticks_off()
    label_lines(ax)
    return picture


def show_learning(learned: Mapping[str, Sequence[Sequence[float]]]) -> Picture:
    """Accuracy over the steps, a line for each kind of head.

    Args:
        learned: `divided_by` → points (step, accuracy).
    """
    ends = {name: curve[-1][1] for name, curve in learned.items()}
    ahead = " and ".join(NAMES[name] for name, end in ends.items() if end == max(ends.values()))
    picture, ax = subplots(
        width=6, height=2.8, alt=f"Accuracy over the steps; highest at the end: {ahead}."
    )
    for divisor, curve in learned.items():
        color, line = LINES[divisor]
        ax.plot(*zip(*curve, strict=True), line, color=COLORS[color], label=NAMES[divisor])
    ax.axhline(GUESS, color="0.6", linewidth=1, linestyle=":")
    ax.set(xlabel="step", ylabel="accuracy", ylim=(0, 1.05))
    label_lines(ax)
    return picture
