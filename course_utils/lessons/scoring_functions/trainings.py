"""The stored trainings of *Scoring functions* compared, each kind of head at its best learning rate.

The chapter and its *Going further* page take everything about these trainings from here, also the words
(`word_lists`) and the pictures (`pictures`).
"""

from collections import defaultdict
from collections.abc import Sequence

import pandas as pd

from course_utils.kit.comparison import table
from course_utils.kit.runs import StoredRun, stored_runs
from course_utils.lessons.scoring_functions.pictures import show_best, show_learning, show_ratio
from course_utils.lessons.scoring_functions.word_lists import NAMES, WORDS, answer

__all__ = [
    "NAMES", "WORDS", "answer", "best", "best_curve", "by_rate", "show_best", "show_learning", "show_ratio",
]  # fmt: skip

STEPS = 500
"""Steps of a training, unless it is one of the longer ones."""
STEPS_BETWEEN_POINTS = 50
"""Steps between two points of a learning curve."""


def best(runs: Sequence[StoredRun]) -> pd.DataFrame:
    """The best rate of each kind of head, dimension, length of lists and number of steps; one row each.

    The best rate has the highest mean `validation` over the seeds, and `test` is the mean at this rate. Unlike
    `at_best_rate`, it may be the largest or smallest rate that was tried: heads of 16 numbers do best at 0.01.
    """
    means = table(runs, "validation", "test")
    chosen = means.groupby(["divided_by", "d", "keys", "steps"])["validation"].idxmax()
    return means.loc[chosen].reset_index(drop=True)


def best_curve(divided_by: str, keys: int, d: int = 256) -> list[float]:
    """Accuracy on validation lists, each 50 steps from 0 to 500: the mean over the seeds at the best rate.

    The best rate is right most often at the end; among several that are equally good there, as with √d, it is the one
    that is right most often on the way. (`at_best_rate` would take the first of them.)
    """
    config = {"divided_by": divided_by, "d": d, "keys": keys, "steps": STEPS}
    curves: dict[float, list[list[float]]] = defaultdict(list)  # rate → a curve for each seed
    for run in stored_runs("scoring_functions", "recall_by_one_head", **config):
        curves[run.config["rate"]].append(_full_length([right for _, right in run.curves["right"]]))
    means = [_mean(of_seeds) for of_seeds in curves.values()]
    return max(means, key=lambda mean: (mean[-1], sum(mean)))


def _full_length(shares: list[float]) -> list[float]:
    """A curve up to the last step: a training that ended early had all digits right, and its last value stays."""
    missing = STEPS // STEPS_BETWEEN_POINTS + 1 - len(shares)
    return shares + shares[-1:] * missing


def _mean(curves: Sequence[Sequence[float]]) -> list[float]:
    """The mean of several curves, point by point."""
    return [sum(shares) / len(shares) for shares in zip(*curves, strict=True)]


def by_rate(keys: int = 64, d: int = 256) -> pd.DataFrame:
    """Mean test accuracy after 500 steps: a row for each kind of head, a column for each rate."""
    runs = stored_runs("scoring_functions", "recall_by_one_head", d=d, keys=keys, steps=STEPS)
    means = table(runs, "test").pivot(index="divided_by", columns="rate", values="test")
    means = means.loc[list(NAMES)].rename(index=NAMES, columns="rate {:g}".format)
    return means.rename_axis(index=None, columns=None)
