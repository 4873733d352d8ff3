"""The checks of every chapter, proved: solutions pass, stubs are "not done yet", seeded mistakes fail with a hint.

The stubs and the solutions are the tagged cells of the chapters that book.toml names; the mistakes stand in
tests/mistakes/<slug>.py. A chapter that is added later is proved without a change here.
"""

import ast
import functools
import importlib.util
import inspect
import types
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jupytext
import pytest
import torch

import course_utils as cu
from course_utils.lessons.check import Check, Property, expect, expect_close, expect_shape
from course_utils.studio import manifest

MISTAKES_PER_CHECK = 3
TESTS = Path(__file__).resolve().parent
CHAPTERS = manifest.load(files=False).chapters


# What the chapters hold -------------------------------------------------------------------------


@dataclass(frozen=True)
class Exercise:
    """The three cells of an exercise, and the names of the check and of the function it is called with."""

    chapter: manifest.Chapter
    number: int
    stub: str
    check_cell: str
    solution: str

    def __str__(self) -> str:
        return f"{self.chapter.slug}.{self.number}"

    @property
    def check(self) -> str:
        """The check's name in `cu.checks`."""
        return _check_call(self.check_cell)[0]

    @property
    def function(self) -> str:
        """What the check is called with."""
        return _check_call(self.check_cell)[1]

    def run(self, cell: str) -> types.FunctionType:
        """The learner's function after the chapter's first code cell and this one, and nothing else."""
        namespace = {"__name__": "__main__"}
        for source in (_first_code_cell(self.chapter), cell):
            exec(compile(source, f"<{self}>", "exec"), namespace)
        return namespace[self.function]


def _check_call(cell: str) -> tuple[str, str]:
    """`("name", "function")` for a cell whose last line is `cu.checks.name(function)`."""
    last = ast.parse(cell).body[-1]
    match last:
        case ast.Expr(
            ast.Call(
                ast.Attribute(ast.Attribute(ast.Name("cu"), "checks"), name),
                [ast.Name(function)],
                [],
            )
        ):
            return name, function
    raise ValueError(f"the last line is {ast.unparse(last)!r}; cu.checks.<name>(<function>) is due")


@functools.cache
def _code_cells(chapter: manifest.Chapter) -> list[tuple[str, set[str]]]:
    notebook = jupytext.read(chapter.source, fmt="py:percent")
    return [
        (cell.source, set(cell.metadata.get("tags", [])))
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _first_code_cell(chapter: manifest.Chapter) -> str:
    return _code_cells(chapter)[0][0]


def _tagged(chapter: manifest.Chapter, tag: str) -> list[str]:
    if not chapter.source.is_file():  # reported by test_each_chapter_has_exercises
        return []
    return [source for source, tags in _code_cells(chapter) if tag in tags]


def _exercises(chapter: manifest.Chapter) -> list[Exercise]:
    cells = (_tagged(chapter, tag) for tag in ("exercise", "check", "solution"))
    return [Exercise(chapter, n, *three) for n, three in enumerate(zip(*cells), start=1)]  # noqa: B905


def _mistakes(chapter: manifest.Chapter) -> dict[str, list[Callable]]:
    path = TESTS / "mistakes" / f"{chapter.slug}.py"
    if not path.is_file():
        return {}
    spec = importlib.util.spec_from_file_location(f"mistakes_{chapter.slug}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MISTAKES


EXERCISES = [exercise for chapter in CHAPTERS for exercise in _exercises(chapter)]
MISTAKES = [
    pytest.param(name, mistake, id=f"{chapter.slug}-{name}-{mistake.__name__}")
    for chapter in CHAPTERS
    for name, mistakes in _mistakes(chapter).items()
    for mistake in mistakes
]

each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=str)
each_mistake = pytest.mark.parametrize(("name", "mistake"), MISTAKES)
each_check = pytest.mark.parametrize("name", dir(cu.checks))
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.notebook)


# Exercises and checks belong together -----------------------------------------------------------


@each_chapter
def test_each_chapter_has_exercises(chapter):
    assert chapter.source.is_file(), f"{chapter.source.name} is named in book.toml and missing"
    counts = {tag: len(_tagged(chapter, tag)) for tag in ("exercise", "check", "solution")}
    assert len(set(counts.values())) == 1 and counts["exercise"] >= 2, counts


@each_chapter
def test_each_chapter_has_a_bug_to_find(chapter):
    """Its stub is `fixed_…`, and the notebook shows `buggy_…` misbehaving."""
    fixed = {e.function for e in EXERCISES if e.chapter == chapter and "fixed_" in e.function}
    assert fixed, "no exercise asks for a function fixed_…"
    text = "\n".join(source for source, _ in _code_cells(chapter))
    assert all(name.replace("fixed_", "buggy_", 1) in text for name in fixed)


def test_each_check_belongs_to_exactly_one_exercise():
    assert Counter(exercise.check for exercise in EXERCISES) == Counter(
        dict.fromkeys(dir(cu.checks), 1)
    )


@each_chapter
def test_each_check_of_a_chapter_has_seeded_mistakes(chapter):
    seeded = {name: len(mistakes) for name, mistakes in _mistakes(chapter).items()}
    assert seeded.keys() == {e.check for e in EXERCISES if e.chapter == chapter}
    assert all(count >= MISTAKES_PER_CHECK for count in seeded.values()), seeded


@each_exercise
def test_stub_and_solution_have_the_same_arguments(exercise):
    stub, solution = exercise.run(exercise.stub), exercise.run(exercise.solution)
    assert inspect.signature(stub) == inspect.signature(solution)


@each_exercise
def test_the_solution_cell_ends_with_the_same_check(exercise):
    assert _check_call(exercise.solution) == _check_call(exercise.check_cell)


# What a check says ------------------------------------------------------------------------------


@each_exercise
def test_the_solution_passes(exercise):
    report = getattr(cu.checks, exercise.check)(exercise.run(exercise.solution))
    assert report.passed, repr(report)
    assert len(report.held) == report.total


@each_exercise
def test_the_stub_is_not_done_yet(exercise):
    report = getattr(cu.checks, exercise.check)(exercise.run(exercise.stub))
    assert not report.done
    assert not report.passed
    assert "not done yet" in repr(report)


@each_mistake
def test_a_seeded_mistake_fails_with_a_hint(name, mistake):
    report = getattr(cu.checks, name)(mistake)
    assert report.done, "a mistake that is taken for a stub"
    assert not report.passed
    assert report.hint.strip()
    assert report.hint in repr(report)
    assert mistake.__doc__, "say in the docstring which mistake it is"


@each_check
def test_each_property_catches_a_seeded_mistake(name):
    """Tried alone: a property that no mistake fails proves nothing."""
    mistakes = [parameter.values[1] for parameter in MISTAKES if parameter.values[0] == name]
    idle = [
        prop.sentence
        for prop in getattr(cu.checks, name).properties
        if all(Check(name, [prop])(mistake).passed for mistake in mistakes)
    ]
    assert not idle, f"no mistake in tests/mistakes fails {idle}"


@each_mistake
def test_a_report_reads_the_same_each_time(name, mistake):
    torch.manual_seed(1)
    first = repr(getattr(cu.checks, name)(mistake))
    torch.manual_seed(2)
    assert repr(getattr(cu.checks, name)(mistake)) == first


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
}


@each_check
@pytest.mark.parametrize("candidate", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_fails_and_never_raises(name, candidate):
    report = getattr(cu.checks, name)(candidate)
    assert report.done
    assert not report.passed
    assert report.hint
    assert repr(report)


@each_check
@pytest.mark.parametrize(
    "stub", [None, ..., lambda *args, **kwargs: ...], ids=["None", "Ellipsis", "returns Ellipsis"]
)
def test_each_kind_of_stub_is_not_done_yet(name, stub):
    assert not getattr(cu.checks, name)(stub).done


@each_check
def test_the_state_of_the_random_numbers_is_kept(name):
    before = torch.get_rng_state()
    getattr(cu.checks, name)(lambda *args, **kwargs: torch.rand(3))
    assert torch.equal(torch.get_rng_state(), before)


@each_check
def test_sentences_and_hints_are_texts_without_line_breaks(name):
    check = getattr(cu.checks, name)
    assert isinstance(check, Check)
    sentences = [prop.sentence for prop in check.properties]
    assert len(set(sentences)) == len(sentences)
    for text in [*sentences, *(prop.hint for prop in check.properties)]:
        assert text.strip() and "\n" not in text


# The core ---------------------------------------------------------------------------------------


def _is_five(candidate):
    expect(candidate() == 5, f"it gives {candidate()}")


FIVE = Check(
    "five",
    [
        Property("it can be called", lambda candidate: candidate(), "write a function"),
        Property("it gives 5", _is_five, "count your fingers"),
    ],
)


def _not_implemented():
    raise NotImplementedError


def test_reports_in_words():
    assert repr(FIVE(lambda: 5)) == "five: passed, 2 of 2.\n  ✓ it can be called\n  ✓ it gives 5"
    assert repr(FIVE(lambda: 4)) == (
        "five: not yet, 1 of 2.\n  ✓ it can be called\n  ✗ it gives 5\n"
        "    it gives 4\n    Hint: count your fingers"
    )
    assert repr(FIVE(lambda: None)).startswith("five: not done yet.")
    assert repr(FIVE(_not_implemented)) == repr(FIVE(None)) == repr(FIVE(...))


def test_an_exception_inside_the_candidate_is_named_in_one_line():
    report = FIVE(_raises)
    assert report.reason == "RuntimeError: from inside the candidate"
    assert len(FIVE(lambda: 1 / 0 if True else "x" * 999).reason) <= 220


def test_a_long_reason_is_shortened():
    def talks():
        raise ValueError("word " * 200)

    assert len(FIVE(talks).reason) < 230


def test_a_check_without_properties_is_refused():
    with pytest.raises(ValueError, match="has no properties"):
        Check("empty", [])


def test_an_unknown_check_names_those_there_are():
    with pytest.raises(AttributeError, match="checks has no 'sofmax'"):
        _ = cu.checks.sofmax


def test_expectations_say_what_is_off():
    with pytest.raises(AssertionError, match="a tensor is expected, got a list"):
        expect_shape([1.0], (1,))
    with pytest.raises(AssertionError, match=r"shape \(2, 3\); expected shape \(3, 2\)"):
        expect_shape(torch.ones(2, 3), (3, 2))
    with pytest.raises(AssertionError, match="rows: largest difference 0.5"):
        expect_close(torch.ones(2), torch.tensor([1.0, 1.5]), "rows")
    with pytest.raises(AssertionError, match="NaN or infinite"):
        expect_close(torch.tensor([torch.nan]), torch.ones(1))
    expect_close(torch.tensor([torch.nan]), torch.tensor([torch.nan]))
