"""The exercises of *Queries, keys and values*: what a check says about an answer in another unit."""

import course_utils as cu


def test_weights_in_percent_are_told_that_they_are_shares_of_1():
    report = cu.checks.predicted_weights(lambda: [12.5, 22.2, 3.3, 6.25, 33.3])
    assert report.results == (False,) * 5
    assert "got 12.5, expected a share of 1; write 12.5% as 0.125" in report.reason
