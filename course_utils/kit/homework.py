"""Homework: exercises of which each seed has its own, with other numbers and another requirement.

A lesson's `homework.py` has a function for each, listed in `__all__`. It draws the numbers and gives an `Assignment`:

    def pooled(draw):
        width = draw.choice([0.5, 1.5])
        return Assignment("pooled", "A window", 10, f"… of width {width} …", STUB, SOLUTION.format(width=width),
                          shown=["torch.tensor([0.0, 1.0]), …"], tried=lambda: (torch.randn(5), …), hint="…")

The solution is the one place where the answer stands: what the student sees of it, and the check, are computed with it.
No handout has these files. They are public with the course, as its solutions are: that one student's answer is wrong
for another's numbers keeps answers from being copied, not from being worked out together.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from course_utils.files import LESSONS
from course_utils.kit.check import (
    Check,
    Report,
    expect_close,
    expect_equal,
    expect_shape,
    unchanged,
)

TRIES = 8  # calls with fresh inputs


class HomeworkError(ValueError):
    """There is no such homework; the message names those that there are."""


@dataclass(frozen=True)
class Assignment:
    """One exercise with its numbers.

    Attributes:
        name: of the function that is asked for.
        title: as its heading says it.
        minutes: of one who does not know the answer.
        text: the task, in Markdown.
        stub: the function with its docstring and three dots.
        solution: code that defines the function, with `torch` and `math` at hand.
        shown: the arguments of the examples that the student gets, each as code.
        tried: gives arguments for one more call, other ones each time.
        hint: where to look if a value is wrong; never the solution.
        gradient: whether the first argument's gradient has to be right, too.
    """

    name: str
    title: str
    minutes: int
    text: str
    stub: str
    solution: str
    shown: Sequence[str]
    tried: Callable[[], tuple]
    hint: str
    gradient: bool = True

    @cached_property
    def right(self) -> Callable[..., Tensor]:
        """The solution as a function."""
        space: dict[str, Any] = {"torch": torch, "math": math}
        exec(self.solution, space)
        return space[self.name]

    @property
    def examples(self) -> str:
        """The cell with the examples: each call and what it gives."""
        lines = [
            f"    (({call},), {_written(self.right(*_arguments(call)))})," for call in self.shown
        ]
        return "\n".join([f"examples({self.name}, [", *lines, "])"])

    @property
    def check(self) -> Check:
        """What the instructor's folder grades with."""
        check = Check(self.name)

        @check.must("the examples come out", hint=self.hint)
        def _(candidate):
            for call in self.shown:
                _same(candidate(*_arguments(call)), self.right(*_arguments(call)), call)

        @check.must("other inputs come out, of other sizes too", hint=self.hint)
        def _(candidate):
            for _ in range(TRIES):
                given = self.tried()
                _same(candidate(*given), self.right(*given))

        @check.must(
            "its inputs are not changed", hint="Does a line write into a tensor of the caller?"
        )
        def _(candidate):
            given = self.tried()
            with unchanged(*given):
                candidate(*given)

        if self.gradient:
            self._must_have_gradient(check)
        return check

    def _must_have_gradient(self, check: Check) -> None:
        hint = "Which step turns a tensor into plain numbers, or detaches it?"

        @check.must("a gradient reaches the first input", hint=hint)
        def _(candidate):
            first, *rest = self.tried()
            slopes, mixture = [], None
            for function in (candidate, self.right):
                leaf = first.clone().requires_grad_()
                answer = function(leaf, *rest)
                mixture = torch.randn(answer.shape) if mixture is None else mixture
                expect_shape(answer, tuple(mixture.shape))
                expect_equal(answer.requires_grad, True, "the answer has a gradient")
                slopes.append(torch.autograd.grad((answer * mixture).sum(), leaf)[0])
            expect_close(*slopes, "the gradient")


def assignment(exercise: str, seed: int, student: str = "") -> Assignment:
    """The exercise of one seed and student, always the same for both.

    Args:
        exercise: chapter's slug and name, "kernel_regression/pooled".
        seed: of the class and year.
        student: whose it is; another student has other numbers.

    Raises:
        HomeworkError: there is no such exercise.
    """
    slug, _, name = exercise.partition("/")
    if exercise not in exercises(slug):
        raise HomeworkError(f"{exercise}: no such homework; there are {', '.join(exercises())}.")
    module = import_module(f"course_utils.lessons.{slug}.homework")
    return getattr(module, name)(random.Random(f"{seed} {student} {exercise}"))


def check(exercise: str, seed: int, student: str = "") -> Check:
    """The check of one seed and student, for grading.

    Raises:
        HomeworkError: there is no such exercise.
    """
    return assignment(exercise, seed, student).check


def exercises(*slugs: str) -> list[str]:
    """The homework of these chapters, "kernel_regression/pooled"; without one named, of all."""
    found = sorted(path.parent.name for path in LESSONS.glob("*/homework.py"))
    return [
        f"{slug}/{name}"
        for slug in found
        if not slugs or slug in slugs
        for name in import_module(f"course_utils.lessons.{slug}.homework").__all__
    ]


def examples(candidate: Callable, cases: Sequence[tuple[tuple, Any]]) -> Report:
    """Try a student's function on a few calls, and show which come out.

    Args:
        candidate: the function.
        cases: arguments, and what the call gives, as lists of numbers.
    """
    shown = Check(f"examples of {getattr(candidate, '__name__', 'the function')}")
    for number, (given, wanted) in enumerate(cases, 1):

        def test(candidate: Callable, given: tuple = given, wanted: Any = wanted) -> None:
            _same(candidate(*given), torch.tensor(wanted), atol=2e-3)

        hint = "Compute one number of it by hand. These are not all calls that will be graded."
        shown.must(f"example {number} comes out", hint=hint)(test)
    return shown(candidate)


def _arguments(call: str) -> tuple:
    return eval(f"({call},)", {"torch": torch, "math": math})


def _written(answer: Tensor) -> str:
    """An answer as lists, with few decimals."""

    def few(entry: Any) -> Any:
        if isinstance(entry, list):
            return [few(one) for one in entry]
        return round(entry, 3) + 0.0 if isinstance(entry, float) else entry

    return repr(few(answer.tolist()))


def _same(answer: Any, wanted: Tensor, what: str = "", atol: float = 1e-4) -> None:
    expect_shape(answer, tuple(wanted.shape))
    if wanted.dtype == torch.bool:
        expect_equal(answer.dtype, torch.bool, "dtype")
        expect_equal(answer.tolist(), wanted.tolist(), what or "the mask")
    else:
        expect_close(answer, wanted, what, atol=atol, rtol=1e-3)
