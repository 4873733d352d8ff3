"""Checks of answers that a reader works out on paper, each judged alone.

gaps = on_paper({"a": (9, "what a longer query gives", "which score grows?"), …})
gaps(lambda: [9, 1.5])   # a Report: right or wrong for each letter
"""

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

from course_utils.kit.candidate import NotDone
from course_utils.kit.check import Check
from course_utils.kit.expect import WrongKind, expect, kind_of

Asked = tuple[Any, str, *tuple[str, ...]]
"""The right answer; what it is, as it reads after "(a)"; the hint, or several, step by step."""

TOLERANCE = 0.02
"""Difference from the right number that is still right, unless `within` says otherwise."""


def read_number(answer: Any) -> float:
    """The number in an answer: an int, a float, a fraction, or an array of one entry.

    Raises:
        WrongKind: if it is none.
    """
    answer = answer.item() if hasattr(answer, "item") else answer
    if not isinstance(answer, Real):
        raise WrongKind(f"got {answer!r}, expected a number; write 0.5 or 1 / 2, without quotes")
    return float(answer)


def on_paper(
    asked: Mapping[str, Asked],
    *,
    read: Callable[[Any], Any] = read_number,
    within: float = TOLERANCE,
) -> Check:
    """A check of a function without arguments that returns a list of answers, one for each letter.

    Args:
        asked: letter → the right answer, what it is in words, and its hints.
        read: converts an answer to the type of the right one; raises Unmet if it cannot.
        within: how far a number may be off.
    """
    check = Check(judge_all=True)

    def add(place: int, letter: str, right: Any, what: str, hints: list[str]) -> None:
        def test(candidate: Callable[[], Any]) -> None:
            raw = _answers(candidate, asked)[place]
            expect(raw is not ..., f"({letter}) has no answer yet")
            answer = read(raw)
            number = isinstance(right, int | float)
            good = abs(answer - right) < within if number else answer == right
            expect(good, f"your answer to ({letter}) is {_shown(answer)}")

        check.must(f"({letter}) {what}", hint=hints)(test)

    for place, (letter, (right, what, *hints)) in enumerate(asked.items()):
        add(place, letter, right, what, hints)
    return check


def _shown(answer: Any) -> str:
    """An answer as a report shows it: a whole number in full, another one with six digits."""
    if not isinstance(answer, int | float):
        return repr(answer)
    whole = math.isfinite(answer) and answer == round(answer)
    return f"{answer:,.0f}" if whole else f"{answer:g}"


def _answers(candidate: Callable[[], Any], asked: Mapping[str, Asked]) -> list[Any]:
    """The candidate's list of answers, an entry for each letter.

    Raises:
        NotDone: if no answer is filled in.
        WrongKind: if it is not a list of this length.
    """
    answers = candidate()
    answers = answers.tolist() if hasattr(answers, "tolist") else answers
    count = f"{len(asked)} answers, for {min(asked)} to {max(asked)}"
    if not isinstance(answers, list | tuple):
        raise WrongKind(f"got {kind_of(answers)}, expected a list of {count}")
    if len(answers) != len(asked):
        raise WrongKind(f"got a list of {len(answers)}, expected {count}")
    if all(answer is ... for answer in answers):
        raise NotDone
    return list(answers)
