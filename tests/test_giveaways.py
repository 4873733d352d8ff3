"""Whether an answer gives itself away: by its length, or because it alone has a reason, or none."""

import pytest

from course_utils.studio import giveaways
from course_utils.studio.giveaways import Options
from course_utils.studio.manifest import load

COURSE = load(files=False).whole
QUESTIONS = [
    pytest.param(one, id=one.place[:60])
    for page in COURSE.notebooks
    for one in (*giveaways.predictions(page), *giveaways.quizzes(page))
]


def test_the_right_option_is_seen_to_be_the_longest_the_only_bare_one_or_the_only_one_with_a_reason():
    bare = Options("", "infinite", ("small, because it is rare", "as large as before, since …"))
    long = Options("", "it is the sum of both of them", ("zero", "one"))
    reasoned = Options("", "less, because it is shared", ("more", "as much"))
    assert (bare.is_longest, bare.is_only_bare, bare.is_only_reasoned) == (False, True, False)
    assert (long.is_longest, long.is_only_bare, long.is_only_reasoned) == (True, False, False)
    assert (reasoned.is_longest, reasoned.is_only_reasoned) == (True, True)


def test_the_summary_counts_predictions_and_quiz_questions_beside_chance():
    first, second = giveaways.summary(COURSE).splitlines()
    assert "predictions: the right option is the longest in" in first and "(chance: " in first
    assert "quiz questions: the right option is the longest in" in second


def test_the_right_options_are_not_the_longest_more_often_than_chance_gives_them():
    options = [case.values[0] for case in QUESTIONS]
    chance = sum(1 / (1 + len(one.wrong)) for one in options)
    assert len(options) > 100
    assert sum(one.is_longest for one in options) <= 1.1 * chance


@pytest.mark.parametrize("options", QUESTIONS)
def test_no_right_option_is_the_only_one_with_or_without_a_reason(options):
    assert not options.is_only_bare, (
        "the others carry a reason: give one to all options, or to none"
    )
    assert not options.is_only_reasoned, (
        "the others are bare: give a reason to all options, or to none"
    )
