"""An exercise's check: sentences that are true of right code, tried one after the other on a learner's function.

    softmax = Check()  # in lessons/<slug>/checks.py; its name is that of the variable

    @softmax.must("each row sums to 1")
    def rows_sum_to_one(candidate):
        "Over which axis do you divide?"  # a docstring: the hint for whoever fails here
        weights = expect_shape(candidate(torch.randn(3, 4)), (3, 4))
        expect_close(weights.sum(-1), torch.ones(3))

In a notebook `cu.checks` finds it (`registry`):

    cu.checks.softmax(my_softmax)   # a Report, displayed at the end of a cell
    cu.checks.softmax.hint()        # one hint more for what did not hold, below those before it
    cu.checks.softmax.mark(f)       # for a grader: the Report, and nothing is saved or printed
    cu.checks.softmax.answers()     # the answers that were checked so far
    cu.checks.softmax.start_over()  # the cell becomes the stub again

A check never raises. A stub is "not done yet", and its report lists what will be tested; the first sentence that does
not hold ends the check with a reason and a hint. What passes is saved for the reader (`passed`), and so is every
answer that is tried (`answers`).
"""

import inspect
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from course_utils.kit.answers import (
    Answers,
    cell_of,
    is_ours,
    save_answer,
    saved_answers,
    start_over,
)
from course_utils.kit.candidate import NotDone, error_in_words, general_hint, try_test
from course_utils.kit.expect import expect_same_gradients, expect_unchanged
from course_utils.kit.passed import record_pass
from course_utils.kit.report import STUB, Hints, Report, numbered


@dataclass(frozen=True)
class Property:
    """One sentence that is true of right code.

    Attributes:
        sentence: what holds, in words ("each row sums to 1").
        test: called with the candidate; raises Unmet (or anything) where the sentence does not hold.
        hints: where to look then, step by step; never the solution.
    """

    sentence: str
    test: Callable[[Any], None]
    hints: tuple[str, ...]

    def hints_after(self, error: BaseException) -> tuple[str, ...]:
        """The property's hints, after one for just this error: the test's own, else a general one."""
        special = getattr(error, "hint", "") or general_hint(error)
        return (special, *self.hints) if special else self.hints


class Check:
    """Properties that right code has; call it with a learner's function.

    Args:
        judge_all: whether each property is tried even if an earlier one does not hold, as for answers on paper.
        forbids: functions of PyTorch or of the course, by name, that do what the task asks for: a
            candidate that calls one passes no property.

    Attributes:
        name: the name of its variable in the lesson's `checks.py`, which `registry` sets.
        chapter: the lesson's folder, which `registry` sets; empty outside of a lesson, where nothing is saved.
        properties: in the order in which they are tried.
    """

    def __init__(self, *, judge_all: bool = False, forbids: Sequence[str] = ()):
        self.name, self.chapter = "check", ""
        self.judge_all, self.forbids = judge_all, frozenset(forbids)
        self.properties: list[Property] = []
        self._report: Report | None = None  # the last one of an answer
        self._shown = 0  # how many of its hints have been shown
        self._marked: tuple[Any, Report] | None = None  # the last candidate of `mark`

    def must(
        self, sentence: str, *, hint: str | Sequence[str] = ()
    ) -> Callable[[Callable], Callable]:
        """Add the decorated test as a property. Properties are tried in the order in which they stand.

        Args:
            sentence: what is true of right code.
            hint: where to look when it is not; never the solution. Several go step by step, from a
                question to nearly there: the first is in the report, the others come from `hint()`.
                By default the paragraphs of the test's docstring.

        Raises:
            ValueError: if there is no hint.
        """
        given = (hint,) if isinstance(hint, str) else tuple(hint)

        def add(test: Callable[[Any], None]) -> Callable[[Any], None]:
            paragraphs = (inspect.getdoc(test) or "").split("\n\n")
            hints = given or tuple(" ".join(text.split()) for text in paragraphs if text)
            if not hints:
                raise ValueError(f"{sentence!r} has no hint; write it as the test's docstring")
            self.properties.append(Property(sentence, test, hints))
            return test

        return add

    def must_keep_inputs(
        self,
        inputs: Callable[[], Sequence[Any]],
        hint: str | Sequence[str],
        sentence: str = "the inputs are not changed",
    ) -> None:
        """Add the property that a call changes no tensor and no list that it is given.

        Args:
            inputs: makes the arguments of the call, such as `lambda: [torch.randn(3), 2]`.
            hint, sentence: as in `must`.
        """
        self.must(sentence, hint=hint)(lambda candidate: expect_unchanged(candidate, *inputs()))

    def must_pass_gradients(
        self,
        reference: Callable[..., Tensor],
        inputs: Callable[[], Mapping[str, Tensor]],
        hint: str | Sequence[str],
        sentence: str = "gradients reach the inputs",
        **tolerance: float,
    ) -> None:
        """Add the property that each input gets the gradient that it gets from a reference.

        Args:
            reference: called with the inputs in their order, as the candidate is.
            inputs: makes the tensors, by name, such as `lambda: {"heads": torch.randn(1, 2, 3, 4)}`.
            hint, sentence: as in `must`.
            tolerance: `atol` and `rtol`, as in `expect_same_gradients`.
        """

        def test(candidate: Any) -> None:
            expect_same_gradients(candidate, reference, **tolerance, **inputs())

        self.must(sentence, hint=hint)(test)

    @property
    def exercise(self) -> str:
        """The key of its saved answers, "kernel_regression/fixed_loss"; empty outside of a lesson."""
        return f"{self.chapter}/{self.name}" if self.chapter else ""

    def __call__(self, candidate: Any) -> Report:
        """Try the properties on `candidate`; what goes wrong in it is reported, not raised.

        Raises:
            ValueError: if the check has no properties, so that it could not fail.
        """
        report = self._judged(candidate)
        if report.done:
            before, self._report = self._report, report
            same = before is not None and before.hints == report.hints
            self._shown = self._shown if same else 1
        if not self.exercise:
            return report
        if report.passed:
            record_pass(self.exercise, candidate)
        if report.done and not report.ours:
            save_answer(self.exercise, cell_of(candidate), passed=report.passed)
        elif not report.done and not report.note and (saved := self.answers().all):
            kept = f"An answer of yours from {saved[0].when:%Y-%m-%d} is kept."
            call = f"To see it, in a new cell: cu.checks.{self.name}.answers()"
            return replace(report, note=f"{STUB}\n{kept} {call}")
        return report

    def mark(self, candidate: Any) -> Report:
        """The report for a grader: nothing is saved, and what the candidate prints or warns is dropped.

        The same object is judged once, however often it is marked.

        Raises:
            ValueError: if the check has no properties, so that it could not fail.
        """
        if self._marked is None or self._marked[0] is not candidate:
            with open(os.devnull, "w") as dropped, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with redirect_stdout(dropped), redirect_stderr(dropped):
                    self._marked = candidate, self._judged(candidate)
        return self._marked[1]

    def _judged(self, candidate: Any) -> Report:
        if not self.properties:
            raise ValueError(f"check {self.name!r} has no properties, so it cannot fail")
        sentences = tuple(prop.sentence for prop in self.properties)
        if is_ours(candidate):
            why = "this is the course's own; write yours in the cell above, and hand that in."
            return Report(self.name, sentences, done=False, note=why)
        results: list[bool | None] = []
        reasons: list[str] = []
        hints: tuple[str, ...] = ()  # of the first property that does not hold
        ended = False
        for prop in self.properties:
            if ended:
                results.append(None)
                reasons.append("")
                continue
            try:
                error = try_test(prop.test, candidate, self.forbids)
            except NotDone:
                return Report(self.name, sentences, done=False)
            results.append(error is None)
            reasons.append(error_in_words(error, candidate) if error else "")
            if error:
                hints = hints or prop.hints_after(error)
                ended = not self.judge_all or not isinstance(error, Exception)
        return Report(
            self.name,
            sentences,
            tuple(results),
            tuple(reasons),
            hints,
            ours=not hints and getattr(candidate, "__name__", "").endswith("_solution"),
            on_paper=self.judge_all,
        )

    def hint(self) -> Hints:
        """One hint more for what did not hold when the check was last called, below those before it.

        After the last one all are shown again. Before the first call they are about the first property.
        """
        if self._report and self._report.passed:
            return Hints(f"{self.name}: your code passes, so there is nothing to hint at.")
        first = self.properties[0]
        sentence, hints = first.sentence, first.hints
        if self._report:
            sentence, hints = self._report.sentences[self._report.failed_at], self._report.hints
        self._shown = min(self._shown + 1, len(hints))
        lines = [f"{self.name}: {sentence}", *numbered(hints)[: self._shown]]
        return Hints("\n  ".join(lines))

    def answers(self) -> Answers:
        """The reader's answers that this check has tried, the newest first, and where they are."""
        return Answers(self.name, saved_answers(self.exercise))

    def start_over(self) -> None:
        """In a notebook: the cell that calls this becomes the stub as it was handed out; the answer is saved."""
        try:
            print(start_over(self.exercise))
        except LookupError as error:
            print(error.args[0])

    def __repr__(self) -> str:
        return f"Check({self.name!r}, {len(self.properties)} properties)"
