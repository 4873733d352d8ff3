"""The trainings of *Scoring functions*: the best rate of each, and pictures of them."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import torch
from torch import Tensor

from course_utils.figures import COLORS, Picture, label_lines, subplots
from course_utils.kit.runs import StoredRun, stored_runs

NOUNS = """
    rain cat door moon soup train hat tree lamp fish king river bread stone glove ship
    cloud horse key sun salt bus shoe leaf chair bird queen lake cheese sand sock boat
    wind dog wall star pepper car shirt grass table frog clown sea apple hill belt plane
    snow mouse roof sky sugar bike coat flower bed duck pirate pond cake rock scarf kite
"""
WORDS = tuple(NOUNS.split())
"""The 64 words that a head knows by their places."""

SMALL, LARGE = "nothing, small start", "√d, large start"
LOOK = {"√d": ("key", "s-"), "nothing": ("query", "o--"), SMALL: ("value", "^:")}
"""Divisor → color and line."""
NAMES = {
    "√d": "divided by √d",
    SMALL: "not divided, small start",
    LARGE: "divided by √d, large start",
    "nothing": "not divided",
}
SIDE = ["divided_by", "d", "keys", "steps"]
GUESS, SHORT, EVERY = 0.1, 500, 50
"""A guess among ten digits; the steps of most trainings; a point of a curve each 50 steps."""
LONGER = {2000: "D", 8000: "*"}
"""Steps → marker."""


def answer(head: Callable[..., Tensor], digits: Mapping[str, int], asked: str) -> int:
    """The digit that a head says for one of the words of a list."""
    listed = torch.tensor([[WORDS.index(word) for word in digits]])
    given = torch.tensor([list(digits.values())])
    return int(head(torch.tensor([WORDS.index(asked)]), listed, given).argmax())


def best(runs: Sequence[StoredRun]) -> pd.DataFrame:
    """One row a side: the rate with the best mean validation over the seeds, and the mean test at this rate."""
    table = pd.DataFrame([run.config | run.result for run in runs])
    means = table.groupby([*SIDE, "rate"], as_index=False)[["validation", "test"]].mean()
    return means.loc[means.groupby(SIDE)["validation"].idxmax()].reset_index(drop=True)


def best_curve(divided_by: str, keys: int, d: int = 256) -> list[float]:
    """Right digits on validation lists each 50 steps, the mean over the seeds at the best rate.

    The best rate is right most often at the end; among several, the one that is right most often on the way.
    """
    config = {"divided_by": divided_by, "d": d, "keys": keys, "steps": SHORT}
    runs = stored_runs("scoring_functions", "recall_by_one_head", **config)
    by_rate: dict[float, list[list[float]]] = {}
    for run in runs:
        right = [share for _, share in run.curves["right"]]
        right += right[-1:] * (SHORT // EVERY + 1 - len(right))  # ended early: all were right
        by_rate.setdefault(run.config["rate"], []).append(right)
    means = [
        [sum(shares) / len(shares) for shares in zip(*curves, strict=True)]
        for curves in by_rate.values()
    ]
    return max(means, key=lambda mean: (mean[-1], sum(mean)))


def by_rate(keys: int = 64, d: int = 256) -> pd.DataFrame:
    """Mean test share of right digits after 500 steps: a row for each kind of head, a column for each rate."""
    runs = stored_runs("scoring_functions", "recall_by_one_head", d=d, keys=keys, steps=SHORT)
    table = pd.DataFrame([run.config | run.result for run in runs])
    means = table.pivot_table("test", "divided_by", "rate").loc[list(NAMES)]
    means = means.rename(index=NAMES, columns="rate {:g}".format)
    return means.rename_axis(index=None, columns=None)


def show_best(chosen: pd.DataFrame) -> Picture:
    """Share of right digits over the length of the list, a panel for each d."""
    chosen = chosen[chosen["divided_by"] != LARGE]
    summary = "; ".join(
        f"d = {d}, {NAMES[divisor]}, {steps} steps: {', '.join(f'{x:.2f}' for x in rows['test'])}"
        for (d, divisor, steps), rows in chosen.groupby(["d", "divided_by", "steps"])
    )
    picture, axes = subplots(
        1, 3, width=9, height=3.2, sharey=True,
        alt=f"Share of right digits over the words on the list. {summary}.",
    )  # fmt: skip
    for ax, (d, of_size) in zip(axes, chosen.groupby("d"), strict=True):
        for (divisor, steps), rows in of_size.groupby(["divided_by", "steps"]):
            color, line = LOOK[divisor]
            style = {"label": NAMES[divisor]}
            if steps > SHORT:
                line = LONGER[steps]
                style = {"markerfacecolor": "white", "label": f"not divided, {steps:,} steps"}
            if divisor == SMALL:  # behind the others, and around them
                style |= {"markersize": 13, "markerfacecolor": "none", "zorder": 1}
            ax.semilogx(rows["keys"], rows["test"], line, base=2, color=COLORS[color], **style)
        ax.axhline(GUESS, color="0.6", linewidth=1, linestyle=":")
        ax.set(title=f"d = {d}", xlabel="words on the list", ylim=(0, 1.08), xlim=(3, 85))
        ax.set_xticks([4, 16, 64], ["4", "16", "64"])
    axes[0].set_yticks([0, 0.5, 1])
    axes[0].set_ylabel("right digits (dotted: a guess)")
    axes[1].legend(loc="lower left", fontsize=7)
    small = [line for line in axes[2].lines if line.get_label() == NAMES[SMALL]]
    axes[2].legend(handles=small, loc="lower left", fontsize=7)
    return picture


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
