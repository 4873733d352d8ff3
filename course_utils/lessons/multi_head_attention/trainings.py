"""The trainings of *Multi-head attention* in one picture: every rate and every seed."""

from collections.abc import Sequence

import pandas as pd

from course_utils.figures import COLORS, Picture, subplots
from course_utils.kit.runs import StoredRun

MARKS = "os^"  # a marker for each rate, from the smallest


def show_paid(cabinet: Sequence[StoredRun], verbs: Sequence[StoredRun]) -> Picture:
    """Share of cases with both answers right over the number of heads: a point a training, a marker a rate."""
    found = pd.DataFrame([run.config | run.result for run in [*cabinet, *verbs]])
    found["task"] = found["objects"].fillna("cabinet")
    told = "; ".join(
        f"{task}, {heads} head(s): {part['both'].min():.2f} to {part['both'].max():.2f}"
        for (task, heads), part in found.groupby(["task", "num_heads"], sort=False)
    )
    picture, axes = subplots(
        1, 3, width=8.4, height=3.0, sharey=True,
        alt=f"Both answers right, three learning rates and three seeds each. {told}.",
    )  # fmt: skip
    for ax, (task, part) in zip(axes, found.groupby("task", sort=False), strict=True):
        counts, rates = sorted(part["num_heads"].unique()), sorted(part["rate"].unique())
        for mark, rate in zip(MARKS, rates, strict=True):
            at = part[part["rate"] == rate]
            shift = 0.16 * (rates.index(rate) - 1) + 0.04 * (at["seed"] - 1)
            places = at["num_heads"].map(counts.index) + shift
            ax.plot(
                places, at["both"], mark, color=COLORS["key"], markerfacecolor="none",
                label=f"{rate:g}",
            )  # fmt: skip
        ax.set_xticks(range(len(counts)), counts)
        ax.set(title=task, xlabel="heads", xlim=(-0.5, len(counts) - 0.5), ylim=(0, 1.05))
        ax.legend(title="rate", loc="center right", fontsize=8, title_fontsize=8, frameon=False)
    axes[0].set_ylabel("both answers right")
    return picture
