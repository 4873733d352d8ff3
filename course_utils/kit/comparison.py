"""Comparison of runs: a grid of rates and seeds, each side at its own best rate, and shares with their intervals."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from course_utils.kit.stored_run import StoredRun, config_key

if TYPE_CHECKING:
    import pandas as pd


def grid(
    cases: Sequence[Mapping], rates: Sequence[float] = (), seeds: Sequence[int] = ()
) -> tuple[dict[str, Any], ...]:
    """All combinations of cases, rates and seeds, as configurations; no rates or no seeds leave that key out."""
    each_rate = [{"rate": rate} for rate in rates] or [{}]
    each_seed = [{"seed": seed} for seed in seeds] or [{}]
    return tuple({**case, **r, **s} for case, r, s in product(cases, each_rate, each_seed))


def at_best_rate(
    runs: Sequence[StoredRun], *, lowest: str = "", highest: str = ""
) -> list[StoredRun]:
    """The runs of each variant at one rate: that with the best mean of a measure of *validation*.

    A variant is what a configuration says beside `rate` and `seed`.

    Args:
        runs: several rates of one variant or more.
        lowest, highest: the measure, one of them: the name of a result that is not the one to be told, such as
            lowest="val_loss". A rate at which a run gave no number is the worst.

    Raises:
        ValueError: the best rate is the smallest or the largest that was tried, and ahead of the next one by more than
            its seeds differ. Nobody knows then how good the variant is at a rate beyond it. A variant with one rate was
            not tuned, and is taken as it is.
    """
    values: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        value = -run.result[lowest] if lowest else run.result[highest]
        values[_variant(run)][run.config["rate"]].append(-math.inf if math.isnan(value) else value)
    best = {variant: _best_inside(variant, by_rate) for variant, by_rate in values.items()}
    return [run for run in runs if run.config["rate"] == best[_variant(run)]]


def _best_inside(variant: str, by_rate: Mapping[float, Sequence[float]]) -> float:
    rates = sorted(by_rate)
    means = {rate: sum(by_rate[rate]) / len(by_rate[rate]) for rate in rates}
    best = max(by_rate, key=means.__getitem__)
    for edge, inside in ((rates[0], rates[1:2]), (rates[-1], rates[-2:-1])):
        spread = max(by_rate[edge]) - min(by_rate[edge])
        if best == edge and inside and means[best] - means[inside[0]] > spread:
            tried = ", ".join(f"{rate:g}" for rate in rates)
            raise ValueError(
                f"the best rate of {variant} is {best:g}, at the edge of those tried ({tried}), "
                "and ahead by more than its seeds differ; make runs at a rate beyond it"
            )
    return best


def _variant(run: StoredRun) -> str:
    return config_key({k: v for k, v in run.config.items() if k not in ("rate", "seed")})


def table(runs: Sequence[StoredRun], *measures: str) -> "pd.DataFrame":
    """A row for each variant and rate, in the order of the runs: how many seeds, and the means of some measures."""
    import pandas as pd  # slow to import

    every = pd.DataFrame([run.config | run.result for run in runs])
    names = [name for name in runs[0].config if name != "seed"]
    groups = every.groupby(names, sort=False)
    return groups[list(measures)].mean().assign(seeds=groups.size()).reset_index()


@dataclass(frozen=True)
class Share:
    """How many of some tries came out well, such as seeds that learned it.

    Shown as "3 of 3 (0.44 to 1.00)", with the interval of Wilson (1927): it holds the true share in about 95 of 100
    such experiments, for few tries, too, and for none or all that came out well.
    """

    count: int
    of: int

    def __post_init__(self) -> None:
        if not 0 <= self.count <= self.of or not self.of:
            raise ValueError(
                f"got count={self.count}, of={self.of}, expected at least one try and 0 ≤ count ≤ of"
            )

    @property
    def interval(self) -> tuple[float, float]:
        """Its lower and upper end."""
        z = 1.96
        middle = (self.count + z**2 / 2) / (self.of + z**2)
        spread = math.sqrt(self.count * (self.of - self.count) / self.of + z**2 / 4)
        half = z * spread / (self.of + z**2)
        return max(0.0, middle - half), min(1.0, middle + half)

    def __repr__(self) -> str:
        low, high = self.interval
        return f"{self.count} of {self.of} ({low:.2f} to {high:.2f})"
