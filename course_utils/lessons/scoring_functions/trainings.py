"""The trainings of *Scoring functions*: the best rate of each, and pictures of them."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes

from course_utils.figures import COLORS, Picture, label_lines, subplots
from course_utils.kit.runs import StoredRun

SMALL = "nothing, small start"
LOOK = {"√d": ("key", "s-"), "nothing": ("query", "o--"), SMALL: ("value", "^:")}
"""Divisor → color and line."""
NAMES = {"√d": "divided by √d", "nothing": "not divided", SMALL: "not divided, small start"}
SIDE = ["divided_by", "d", "keys", "steps"]
GUESS, SHORT = 0.1, 500
LONGER = {2000: "D", 8000: "*"}
"""Steps → marker."""


def best(runs: Sequence[StoredRun]) -> pd.DataFrame:
    """One row a side: the rate with the best mean validation over the seeds, and the mean test at this rate."""
    table = pd.DataFrame([run.config | run.result for run in runs])
    means = table.groupby([*SIDE, "rate"], as_index=False)[["validation", "test"]].mean()
    return means.loc[means.groupby(SIDE)["validation"].idxmax()].reset_index(drop=True)


def show_best(chosen: pd.DataFrame) -> Picture:
    """Share of right digits over the length of the list, a panel for each d; each point with its rate."""
    summary = "; ".join(
        f"d = {d}, {NAMES[divisor]}, {steps} steps: {', '.join(f'{x:.2f}' for x in rows['test'])}"
        for (d, divisor, steps), rows in chosen.groupby(["d", "divided_by", "steps"])
    )
    picture, axes = subplots(
        1, 3, width=9, height=3.4, sharey=True,
        alt=f"Share of right digits for lists of 4, 16 and 64 words. {summary}.",
    )  # fmt: skip
    for ax, (d, of_size) in zip(axes, chosen.groupby("d"), strict=True):
        for (divisor, steps), rows in of_size.groupby(["divided_by", "steps"]):
            color, line = LOOK[divisor]
            style = {}
            if steps > SHORT:
                line, style = LONGER[steps], {"markerfacecolor": "white"}
            if divisor == SMALL:  # behind the others, and around them
                style = {"markersize": 13, "markerfacecolor": "none", "zorder": 1}
            ax.semilogx(rows["keys"], rows["test"], line, base=2, color=COLORS[color], **style)
            for _, point in rows.iterrows() if divisor != SMALL else ():
                above = ((0, 5), "center") if divisor == "√d" else ((-5, -12), "right")
                shift, side = above if steps == SHORT else ((7, -3), "left")
                _say(ax, f"{point['rate']:g}", divisor, (point["keys"], point["test"]), shift, side)
        ax.axhline(GUESS, color="0.6", linewidth=1, linestyle=":")
        ax.set(title=f"d = {d}", xlabel="words on the list", ylim=(0, 1.22), xlim=(1.5, 170))
        ax.set_xticks([4, 16, 64], ["4", "16", "64"])
    axes[0].set_yticks([0, 0.5, 1])
    axes[0].set_ylabel("right digits (dotted: a guess)")
    of = chosen.set_index(["d", "divided_by", "steps", "keys"])["test"]
    falls = (of[64, "nothing", SHORT, 16] + of[64, "nothing", SHORT, 64]) / 2
    _say(axes[1], NAMES["√d"], "√d", (16, 1), (0, 17), "center")
    _say(axes[1], NAMES["nothing"], "nothing", (32, falls), (-7, -7), "right")
    for steps in LONGER:
        end = (64, of[64, "nothing", steps, 64])
        _say(axes[1], f"{steps:,} steps", "nothing", end, (13, 8), "center")
    _say(axes[2], "small start", SMALL, (64, 1), (13, -21), "center")
    return picture


def _say(ax: Axes, words: str, divisor: str, point: tuple, offset: tuple, side: str) -> None:
    """Words beside a point, so many points away, in the color of a side."""
    color = COLORS[LOOK[divisor][0]]
    ax.annotate(words, point, offset, textcoords="offset points", ha=side, color=color)


def show_ratio(times: pd.Series) -> Picture:
    """Size of ∂α/∂q without the divisor, in sizes with it; indexed by (keys, d), a line for each number of keys."""
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
    """Share of right digits over the steps, a line for each divisor."""
    ends = {name: curve[-1][1] for name, curve in learned.items()}
    ahead = " and ".join(NAMES[name] for name, end in ends.items() if end == max(ends.values()))
    picture, ax = subplots(
        width=6, height=2.8, alt=f"Right digits over the steps; highest at the end: {ahead}."
    )
    for divisor, curve in learned.items():
        color, line = LOOK[divisor]
        ax.plot(*zip(*curve, strict=True), line, color=COLORS[color], label=NAMES[divisor])
    ax.axhline(GUESS, color="0.6", linewidth=1, linestyle=":")
    ax.set(xlabel="step", ylabel="right digits", ylim=(0, 1.05))
    label_lines(ax)
    return picture
