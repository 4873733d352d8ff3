"""Rates and seeds: every side of a comparison at its own best rate, and what a few seeds can tell."""

import math

import pytest

from course_utils.kit import runs
from course_utils.kit.comparison import Share, at_best_rate, table
from course_utils.kit.runs import stored, stored_runs
from course_utils.kit.stored_run import StoredRun


def declared():
    """At one rate a wins, at the other b; each one's best is level. At the largest, a breaks."""

    @stored(cases=[{"kind": "a"}, {"kind": "b"}], rates=(0.1, 0.3, 0.9, 2.7), seeds=range(2))
    def compare(*, kind, rate, seed):
        score = {"a": [0.5, 0.9, 0.4, math.nan], "b": [0.3, 0.4, 0.9, 0.2]}[kind]
        value = score[(0.1, 0.3, 0.9, 2.7).index(rate)] + 0.01 * seed
        return {"result": {"val": value, "test": 1.0 + seed}}

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
        "kind": ["a", "b"], "rate": [0.3, 0.9], "val": pytest.approx([0.905, 0.905]),
        "test": [1.5, 1.5], "seeds": [2, 2],
    }  # fmt: skip
    assert len(stored_runs("somewhere", "compare")) == 16


def at(losses):
    """Runs of one variant: by rate, the losses of its seeds."""
    return [
        StoredRun("tried", {"rate": rate, "seed": seed}, {"loss": loss})
        for rate, seeds in losses.items()
        for seed, loss in enumerate(seeds)
    ]


def test_where_less_is_better_the_lowest_mean_is_chosen_and_no_number_never_is():
    tried = at({0.1: [0.9, 0.8], 0.3: [0.5, 0.6], 0.9: [0.1, math.nan]})
    assert {run.config["rate"] for run in at_best_rate(tried, lowest="loss")} == {0.3}


@pytest.mark.parametrize("edge", [0.1, 0.9])
def test_a_best_rate_at_the_edge_of_those_tried_is_refused(edge):
    tried = at({rate: [0.5, 0.52] if rate == edge else [0.9, 0.91] for rate in (0.1, 0.3, 0.9)})
    with pytest.raises(
        ValueError, match=rf"is {edge:g}, at the edge of those tried \(0.1, 0.3, 0.9\)"
    ):
        at_best_rate(tried, lowest="loss")


def test_an_edge_is_taken_where_the_next_rate_is_as_good_or_none_was_tried():
    level = at({0.1: [0.5, 0.7], 0.3: [0.6, 0.65], 0.9: [0.8, 0.9]})
    assert {run.config["rate"] for run in at_best_rate(level, lowest="loss")} == {0.1}
    assert len(at_best_rate(at({0.3: [0.5, 0.6]}), lowest="loss")) == 2


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
