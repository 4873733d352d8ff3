"""Answers that give themselves away: the right option is the longest, or the only one without a reason.

Of predictions and quizzes with one right option among three or more, `count` says how many there are of each kind.
A reader who chooses the longest option would be right by chance in one of as many as there are options.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from course_utils.kit.quiz import QuizError, all_questions
from course_utils.studio.manifest import Chapter, Manifest

REASON = re.compile(r"\b(?:because|since|so that|due to|otherwise)\b|[,;:] | \(| – ", re.IGNORECASE)
"""What an option with a reason has in it, or with a second clause."""


class Options(NamedTuple):
    """The options of a question: where it stands, the right one, and the others."""

    place: str
    right: str
    wrong: tuple[str, ...]

    @property
    def is_longest(self) -> bool:
        """Whether the right option is longer than all others."""
        return len(self.right) > max(map(len, self.wrong))

    @property
    def is_only_bare(self) -> bool:
        """Whether all options but the right one carry a reason."""
        return not REASON.search(self.right) and all(map(REASON.search, self.wrong))

    @property
    def is_only_reasoned(self) -> bool:
        """Whether no option but the right one carries a reason."""
        return bool(REASON.search(self.right)) and not any(map(REASON.search, self.wrong))


def predictions(chapter: Chapter) -> Iterator[Options]:
    """The predictions of a page with three options or more, as far as its source holds them as texts."""
    for cell in chapter.content.code:
        if "cu.predict(" not in cell.source:
            continue
        for call in ast.walk(ast.parse(cell.source)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "cu.predict":
                given = {keyword.arg: keyword.value for keyword in call.keywords}
                question, options, right = map(_text, (*call.args[:2], given.get("answer")))
                if isinstance(options, list) and right in options and len(options) > 2:
                    wrong = tuple(option for option in options if option != right)
                    yield Options(f"{chapter.number}: {question}", right, wrong)


def _text(node: ast.expr | None) -> object:
    try:
        return ast.literal_eval(node) if node is not None else None
    except ValueError:  # made by the page
        return None


def quizzes(chapter: Chapter) -> Iterator[Options]:
    """The questions of a chapter's quiz with one right answer among three or more."""
    try:
        questions = all_questions(chapter.slug)
    except QuizError:
        return
    for question in questions:
        right = [answer.text for answer in question.answers if answer.correct]
        wrong = tuple(answer.text for answer in question.answers if not answer.correct)
        if len(right) == 1 and len(wrong) > 1:
            yield Options(f"{chapter.number}: {question.text}", right[0], wrong)


def summary(course: Manifest) -> str:
    """Two lines: of predictions and of quizzes, the shares in which the right option gives itself away."""
    pages = course.notebooks
    kinds = {
        "predictions": [one for page in pages for one in predictions(page)],
        "quiz questions": [one for page in pages for one in quizzes(page)],
    }
    return "\n".join(_line(kind, options) for kind, options in kinds.items())


def _line(kind: str, options: list[Options]) -> str:
    longest = sum(one.is_longest for one in options)
    bare = sum(one.is_only_bare for one in options)
    reasoned = sum(one.is_only_reasoned for one in options)
    chance = sum(1 / (1 + len(one.wrong)) for one in options)
    return (
        f"{len(options)} {kind}: the right option is the longest in {longest} (chance: {chance:.0f}), "
        f"the only one without a reason in {bare}, the only one with a reason in {reasoned}"
    )
