"""The mistakes that checks have to catch, each with the property that catches it and the hint that its author sees."""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple


class Mistake(NamedTuple):
    """A wrong answer to an exercise.

    Attributes:
        chapter: the lesson's folder, which is the name of the answer's file.
        check: the name of the exercise's check.
        answer: the function or class that a student hands in; its docstring says what is wrong.
        caught_by: the sentence of the property that does not hold, or words that no other sentence of the check has.
        hint: words of the first hint.
        reason: words of the reason, where the property can fail in several ways.
    """

    chapter: str
    check: str
    answer: Any
    caught_by: str
    hint: str
    reason: str

    def __str__(self) -> str:
        return f"{self.chapter}-{self.check}-{self.answer.__name__}"


_ALL: list[Mistake] = []


def mistake(check: str, *, caught_by: str, hint: str, reason: str = "") -> Callable[[Any], Any]:
    """Note the decorated answer as a mistake of this exercise; the arguments are those of `Mistake`."""

    def note(answer: Any) -> Any:
        chapter = answer.__module__.rpartition(".")[2]
        _ALL.append(Mistake(chapter, check, answer, caught_by, hint, reason))
        return answer

    return note


def mistakes_of(chapter: str) -> list[Mistake]:
    """Those of a chapter, in the order of its file."""
    importlib.import_module(f"mistakes.{chapter}")
    return [one for one in _ALL if one.chapter == chapter]
