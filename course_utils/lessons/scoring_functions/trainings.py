"""The trainings of *Scoring functions*: the best rate of each, and pictures of them."""

from collections.abc import Mapping, Sequence

import pandas as pd

from course_utils.figures import COLORS, Picture, label_lines, subplots
from course_utils.kit.runs import StoredRun

SMALL = "nothing, small start"
LOOK = {
    "√d": ("key", "s-"),
    "nothing": ("query", "o--"),
    SMALL: ("value", "^:"),
}
"""Divisor → color and line."""
NAMES = {
    "√d": "divided by √d",
    "nothing": "not divided",
    SMALL: "not divided, small start",
}
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
    told = "; ".join(
        f"d = {d}, {NAMES[divisor]}, {steps} steps: {', '.join(f'{x:.2f}' for x in part['test'])}"
        for (d, divisor, steps), part in chosen.groupby(["d", "divided_by", "steps"])
    )
    picture, axes = subplots(
        1, 3, width=9, height=3.2, sharey=True,
        alt=f"Share of right digits for lists of 4, 16 and 64 words. {told}.",
    )  # fmt: skip
    for ax, (d, of_size) in zip(axes, chosen.groupby("d"), strict=True):
        for (divisor, steps), part in of_size.groupby(["divided_by", "steps"]):
            color, line = LOOK[divisor]
            style = {"label": NAMES[divisor]}
            if steps > SHORT:
                line = LONGER[steps]
                style = {"markerfacecolor": "white", "label": f"not divided, {steps:,} steps"}
            if divisor == SMALL:  # behind the others, and around them
                style |= {"markersize": 13, "markerfacecolor": "none", "zorder": 1}
            ax.semilogx(part["keys"], part["test"], line, base=2, color=COLORS[color], **style)
            for _, point in part.iterrows() if divisor != SMALL else ():
                above = ((0, 5), "center") if divisor == "√d" else ((-5, -12), "right")
                place, side = above if steps == SHORT else ((7, -3), "left")
                ax.annotate(
                    f"{point['rate']:g}", (point["keys"], point["test"]), place, ha=side,
                    textcoords="offset points", color=COLORS[color],
                )  # fmt: skip
        ax.axhline(GUESS, color="0.6", linewidth=1, linestyle=":")
        ax.set(title=f"d = {d}", xlabel="words on the list", ylim=(0, 1.12), xlim=(1.5, 170))
        ax.set_xticks([4, 16, 64], ["4", "16", "64"])
    axes[0].set_ylabel("right digits (dotted: a guess)")
    lines = {
        label: line
        for ax in axes
        for line, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    axes[0].legend(lines.values(), lines, loc="lower left", bbox_to_anchor=(0, 0.12))
    return picture


def show_ratio(times: pd.Series) -> Picture:
    """Size of ∂α/∂q without the divisor, in sizes with it; indexed by (keys, d), a line for each number of keys."""
    picture, ax = subplots(
        width=6, height=3.2,
        alt="Size of the query's gradient without the divisor, in sizes with it, over d: "
        + "; ".join(
            f"{keys} keys: " + ", ".join(f"{value:.2g}" for value in part)
            for keys, part in times.groupby(level=0)
        ),
    )  # fmt: skip
    for index, (keys, part) in enumerate(times.groupby(level=0)):
        sizes = part.index.get_level_values(1)
        dash = ["-", "--", "-.", ":"][index]
        ax.loglog(sizes, part, dash, marker="o", markersize=4, base=2, label=f"{keys} keys")
    ax.axhline(1, color="0.6", linewidth=1)
    ax.set(xlabel="dimension d", ylabel="size of ∂α/∂q, without / with √d", xlim=(3.5, 300))
    ax.set_xticks([4, 16, 64, 256], ["4", "16", "64", "256"])
    ax.set_yticks([1 / 64, 1 / 16, 1 / 4, 1, 4, 16], ["1/64", "1/16", "1/4", "1", "4", "16"])
    ax.minorticks_off()
    label_lines(ax)
    return picture


def show_learning(learned: Mapping[str, Sequence[Sequence[float]]]) -> Picture:
    """Share of right digits over the steps, a line for each divisor."""
    ends = ", ".join(f"{NAMES[name]} {curve[-1][1]:.1f}" for name, curve in learned.items())
    picture, ax = subplots(
        width=6, height=2.8, alt=f"Right digits over the steps; at the end {ends}."
    )
    for divisor, curve in learned.items():
        color, line = LOOK[divisor]
        ax.plot(*zip(*curve, strict=True), line, color=COLORS[color], label=NAMES[divisor])
    ax.axhline(GUESS, color="0.6", linewidth=1, linestyle=":")
    ax.set(xlabel="step", ylabel="right digits", ylim=(0, 1.05))
    label_lines(ax)
    return picture
