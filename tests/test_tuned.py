"""Rates and seeds: every side of a comparison at its own best rate, and what a few seeds can tell."""

import math

import pytest

from course_utils.kit import runs
from course_utils.kit.runs import StoredRun, stored, stored_runs
from course_utils.kit.tuned import Share, at_best_rate, table


def declared():
    """At one rate a wins, at the other b; each one's best is level. At the largest, a breaks."""

    @stored(cases=[{"kind": "a"}, {"kind": "b"}], rates=(0.1, 0.3, 0.9), seeds=range(2))
    def compare(*, kind, rate, seed):
        score = {"a": {0.1: 0.9, 0.3: 0.5, 0.9: math.nan}, "b": {0.1: 0.4, 0.3: 0.9, 0.9: 0.2}}
        return {"result": {"val": score[kind][rate] + 0.01 * seed, "test": 1.0 + seed}}

    return compare


MADE = [
    StoredRun("compare", case, declared().function(**case)["result"], date="today")
    for case in declared().cases
]


def test_each_side_is_shown_at_its_own_best_rate_with_all_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "RUNS", tmp_path)
    runs.write("somewhere", *MADE)
    best = table(stored_runs("somewhere", "compare", highest="val"), "val", "test")
    assert best.to_dict("list") == {
        "kind": ["a", "b"], "rate": [0.1, 0.3], "val": pytest.approx([0.905, 0.905]),
        "test": [1.5, 1.5], "seeds": [2, 2],
    }  # fmt: skip
    assert len(stored_runs("somewhere", "compare")) == 12


def test_where_less_is_better_the_lowest_mean_is_chosen_and_no_number_never_is():
    assert {run.config["rate"] for run in at_best_rate(MADE[:6], "val", lowest=True)} == {0.3}
    assert {run.config["rate"] for run in at_best_rate(MADE[6:], "val", lowest=True)} == {0.9}


@pytest.mark.parametrize(
    ("count", "of", "shown"),
    [
        (3, 3, "3 of 3 (0.44 to 1.00)"),
        (0, 3, "0 of 3 (0.00 to 0.56)"),
        (5, 10, "5 of 10 (0.24 to 0.76)"),
        (81, 263, "81 of 263 (0.26 to 0.37)"),
    ],
)
def test_a_share_has_the_interval_of_wilson(count, of, shown):
    """Values of Newcombe (1998), table I: 81 of 263 is 0.2553 to 0.3662."""
    assert repr(Share(count, of)) == shown
