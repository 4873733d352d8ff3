"""The checks of every chapter: solutions pass, stubs are "not done yet", mistakes get their property and their hint.

The stubs and the solutions are the tagged cells of the chapters that book.toml names; the mistakes stand in
tests/mistakes/<slug>.py. A chapter that is added later is proved without a change here. The engine itself is tested in
test_check_engine, and what a property's test calls in test_expect.
"""

import functools
import importlib
import inspect
import re
import types
from typing import NamedTuple

import pytest
import torch
from mistakes.table import mistakes_of

import course_utils as cu
from course_utils.kit import exercises
from course_utils.kit.check import Check
from course_utils.studio import manifest

COURSE = manifest.load(files=False).whole
CHAPTERS = (*COURSE.chapters, *(one for one in COURSE.appendices if one.slug == "pytorch"))


# What the chapters hold -------------------------------------------------------------------------


class Exercise(NamedTuple):
    """An exercise of a chapter or of its further page."""

    chapter: manifest.Chapter
    cells: exercises.Exercise

    def __str__(self) -> str:
        return f"{self.chapter.slug}.{self.cells.name}"

    @property
    def check(self) -> Check:
        """Its check."""
        return getattr(cu.checks, self.cells.name)

    def run(self, part: str) -> types.FunctionType:
        """The learner's function after the chapter's first code cell and "stub" or "solution", and nothing else."""
        namespace = {"__name__": "__main__"}
        first = next(one for one in _cells(self.chapter) if one.cell_type == "code")
        for cell in (first, getattr(self.cells, part)):
            exec(compile(cell.source, f"<{self}>", "exec"), namespace)
        return namespace[self.cells.function + "_solution" * (part == "solution")]


@functools.cache
def _cells(chapter: manifest.Chapter) -> list:
    """Those of the chapter, then those of its further page."""
    return [cell for page in chapter.with_further() for cell in page.content.notebook.cells]


def _exercises(chapter: manifest.Chapter) -> list[Exercise]:
    return [Exercise(chapter, one) for one in exercises.exercises(_cells(chapter)) if one.is_whole]


def _on_paper(exercise: Exercise) -> dict[str, object]:
    """A wrong answer for each letter; empty where the exercise asks for a function."""
    module = importlib.import_module(f"mistakes.{exercise.chapter.slug}")
    return getattr(module, "ON_PAPER", {}).get(exercise.cells.name, {})


EXERCISES = [exercise for chapter in CHAPTERS for exercise in _exercises(chapter)]
MISTAKES = [mistake for chapter in CHAPTERS for mistake in mistakes_of(chapter.slug)]

each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=str)
each_mistake = pytest.mark.parametrize("mistake", MISTAKES, ids=str)
each_check = pytest.mark.parametrize("name", dir(cu.checks))


# Exercises and checks belong together -----------------------------------------------------------


@each_exercise
def test_what_is_to_be_fixed_is_first_shown_broken(exercise):
    """The stub is `fixed_…`, and the notebook shows `buggy_…` misbehaving."""
    if "fixed_" in exercise.cells.function:
        text = "\n".join(cell.source for cell in _cells(exercise.chapter))
        assert exercise.cells.function.replace("fixed_", "buggy_", 1) in text


def test_each_check_belongs_to_exactly_one_exercise():
    assert sorted(exercise.cells.name for exercise in EXERCISES) == dir(cu.checks)


@each_exercise
def test_stub_and_solution_are_called_alike_and_checked_by_the_same(exercise):
    stub, solution, cells = exercise.run("stub"), exercise.run("solution"), exercise.cells
    assert inspect.signature(stub) == inspect.signature(solution)
    assert cells.solution.source.endswith(f"cu.checks.{cells.name}({cells.function}_solution)")


# What a check says ------------------------------------------------------------------------------


@each_exercise
def test_the_solution_passes(exercise):
    report = exercise.check(exercise.run("solution"))
    assert report.passed, repr(report)
    assert report.failed_at == len(report.sentences) and not report.reason and not report.hint


@each_exercise
def test_the_stub_is_not_done_yet_and_learns_what_will_be_tested(exercise):
    report = exercise.check(exercise.run("stub"))
    assert not report.done and not report.passed
    assert "not done yet" in repr(report)
    assert all(prop.sentence in repr(report) for prop in exercise.check.properties)


@each_mistake
def test_a_mistake_is_caught_by_its_property_and_gets_its_hint_each_time(mistake):
    check = getattr(cu.checks, mistake.check)
    torch.manual_seed(1)
    report = check(mistake.answer)
    assert report.done, "a mistake that is taken for a stub"
    assert not report.passed
    caught = report.sentences[report.failed_at]
    assert [text for text in report.sentences if mistake.caught_by in text] == [caught]
    assert report.reason.strip() and mistake.reason in report.reason
    assert mistake.hint and mistake.hint in report.hint and report.hint in repr(report)
    assert mistake.answer.__doc__, "say in the docstring which mistake it is"
    torch.manual_seed(2)
    assert check(mistake.answer) == report


@pytest.mark.parametrize("exercise", [e for e in EXERCISES if _on_paper(e)], ids=str)
def test_a_wrong_answer_on_paper_is_found_at_its_letter(exercise):
    check, wrong, right = exercise.check, _on_paper(exercise), exercise.run("solution")()
    assert [f"({letter})" for letter in wrong] == [p.sentence[:3] for p in check.properties]
    for place, answer in enumerate(wrong.values()):
        report = check(
            lambda place=place, answer=answer: [*right[:place], answer, *right[place + 1 :]]
        )
        assert report.results == tuple(number != place for number in range(len(right)))


@pytest.mark.parametrize("exercise", [e for e in EXERCISES if not _on_paper(e)], ids=str)
def test_each_property_catches_a_seeded_mistake(exercise):
    """Tried alone: a property that no mistake fails proves nothing."""
    for prop in exercise.check.properties:
        alone = Check()
        alone.must(prop.sentence, hint=prop.hints)(prop.test)
        answers = [one.answer for one in MISTAKES if one.check == exercise.cells.name]
        assert not all(alone(one).passed for one in answers), f"no mistake fails “{prop.sentence}”"


def _raises(*args, **kwargs):
    raise RuntimeError("from inside\nthe candidate")


GARBAGE = {
    "a text": "text",
    "a number": 3,
    "a list": [],
    "a class": type("Empty", (), {}),
    "raises": _raises,
    "takes no arguments": lambda: 1,
    "returns a text": lambda *args, **kwargs: "text",
    "returns a number": lambda *args, **kwargs: 7.5,
    "returns a list": lambda *args, **kwargs: [1, "a", None],
    "returns an empty tensor": lambda *args, **kwargs: torch.empty(0),
    "returns nothing but NaN": lambda *args, **kwargs: torch.full((2, 2), torch.nan),
    "returns complex numbers": lambda *args, **kwargs: torch.ones(2, 3, dtype=torch.complex64),
    "returns itself": lambda *args, **kwargs: _raises,
    "returns its first argument": lambda *args, **kwargs: args[0],
    "returns None": lambda *args, **kwargs: print(end=""),
}


FEW = ["my_leave_one_out", "fixed_masked_softmax", "join_heads"]
"""The engine's own behavior is the same for all: a function of numbers, one of masks, one of shapes."""


@pytest.mark.parametrize("name", FEW)
def test_garbage_fails_and_never_raises(name):
    for kind, candidate in GARBAGE.items():
        report = getattr(cu.checks, name)(candidate)
        assert report.done and not report.passed, kind
        assert report.hint and report.reason and repr(report), kind


@each_check
def test_sentences_and_hints_read_well_in_a_report(name):
    """A sentence is an entry of a list; a hint is one or more whole sentences."""
    check = getattr(cu.checks, name)
    assert len({prop.sentence for prop in check.properties}) == len(check.properties)
    for prop in check.properties:
        assert re.fullmatch(r"\S.*[^\s.?:;]", prop.sentence), prop.sentence
        assert prop.hints
        for hint in prop.hints:
            assert re.fullmatch(r"[^a-z\s].*[.?]", hint), hint
