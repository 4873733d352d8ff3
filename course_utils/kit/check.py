"""Checks: sentences that are true of right code, tried one after the other on a learner's function.

A check never raises. A stub is "not done yet", and its report lists what will be tested; the first
sentence that does not hold ends the check with a reason and a hint.

    softmax = Check("softmax")

    @softmax.must("each row sums to 1")
    def _(candidate):
        "Over which axis do you divide?"  # a docstring: the hint for whoever fails here
        weights = expect_shape(candidate(torch.randn(3, 4)), (3, 4))
        expect_close(weights.sum(-1), torch.ones(3))

    softmax(my_softmax)   # a Report, displayed at the end of a cell
    softmax.hint()        # one hint more for what did not hold, below those before it
    softmax.mark(f)       # for a grader: the Report, and nothing is saved or printed
    softmax.answers()     # the answers that were checked so far
    softmax.start_over()  # the cell becomes the stub again

What passes, and every answer that is tried, is saved for the reader (`progress`).
"""

import copy
import dis
import html
import inspect
import math
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from course_utils.kit import exercises, progress
from course_utils.kit.guard import strict
from course_utils.kit.rich_text import marked
from course_utils.kit.tracing import counted
from course_utils.runtime import own_random_numbers

LONGEST_LINE = 200  # characters, in a reason
SHORT_ROW = 6  # numbers; a reason shows such a row whole
TIME_LIMIT = 10.0
"""Seconds that the candidate may compute in one test: of this thread's own time, so that a busy machine
fails no right code. The tests of the chapters need less than one."""
STUB = "not done yet. Fill in the cell above and run it, then this one."
TICK = 0.1  # seconds of computing between two looks at the time


class NotDone(Exception):
    """The candidate is still a stub: its body is empty, or it returns `...`, or it raises NotImplementedError."""


class Unmet(AssertionError):
    """What a test expects does not hold. The text says what was found and what is expected.

    Args:
        reason: the text.
        hint: where to look for just this mistake; else the property's first one is shown.
    """

    def __init__(self, reason: str, hint: str = ""):
        super().__init__(reason)
        self.hint = hint


class WrongKind(Unmet):
    """The candidate gives something of another type than the task asks for."""


class NothingReturned(Unmet):
    """The candidate computes something and returns None."""


class TookTooLong(BaseException):
    """The candidate is still running after TIME_LIMIT; no `except Exception` of a learner's stops this."""


SLIPS: dict[type[BaseException], str] = {
    NothingReturned: "Does each path through the function end with `return`?",
    TookTooLong: "Which condition ends the loop, and what in the loop changes it?",
    WrongKind: "What should the function return? Look at its docstring.",
    NameError: "Is the name spelled the way it is where you define it?",
    AttributeError: "Does the object before the dot have this attribute? Print its type.",
}
"""What to ask where something else than the subject of the exercise went wrong."""


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


class Hints(str):
    """The hints so far, shown as they are."""

    __repr__ = str.__str__


@dataclass(frozen=True)
class Report:
    """What a check found.

    Attributes:
        name: of the check.
        sentences: of all its properties, in order.
        results: for each sentence whether it holds; None where it was not tried.
        reason: why the first one that does not hold doesn't, in one or two lines; empty if all do.
        hints: where to look then, step by step; the first is shown with the report.
        done: False while there is nothing of the learner's to test; then `reason` may say why.
        ours: whether the course's own solution was checked.
        on_paper: whether the properties are answers, each judged alone.
        reasons: why each property does not hold, where several were judged; "" for one that does.
    """

    name: str
    sentences: tuple[str, ...]
    results: tuple[bool | None, ...] = ()
    reason: str = ""
    hints: tuple[str, ...] = ()
    done: bool = True
    ours: bool = False
    on_paper: bool = False
    reasons: tuple[str, ...] = ()

    @property
    def held(self) -> int:
        """How many properties hold, counted up to the first that does not."""
        return next((place for place, held in enumerate(self.results) if not held), self.points)

    @property
    def passed(self) -> bool:
        """Whether every property holds."""
        return self.done and all(self.results)

    @property
    def points(self) -> int:
        """How many properties are known to hold: one point each, 0 for a stub."""
        return self.results.count(True)

    def holds(self, place: int) -> bool:
        """Whether the property at this place, counted from 0, is known to hold."""
        return self.results[place : place + 1] == (True,)

    @property
    def hint(self) -> str:
        """The hint that is shown with the report; empty if all properties hold."""
        return self.hints[0] if self.hints else ""

    @property
    def headline(self) -> str:
        """The result in one sentence, which begins with the check's name."""
        total = len(self.sentences)
        if not self.done:
            return f"{self.name}: {self.reason or STUB}"
        if self.on_paper and not self.ours:
            return f"{self.name}: {self.points} of {total} answers are right."
        if self.passed:
            who = "the course's solution passes" if self.ours else "your code passes"
            return f"{self.name}: {who} {f'all {total} tests' if total > 1 else 'its test'}."
        return f"{self.name}: {self.points} of {total} tests pass."

    def __repr__(self) -> str:
        if not self.done:
            return "\n".join(
                [self.headline, "It will test:", *(f"  · {s}" for s in self.sentences)]
            )
        if self.passed and self.ours:
            return self.headline
        marks = {True: "  ✓ {}", False: "  ✗ {}", None: "  · {} (not tested yet)"}
        lines = [self.headline]
        for place, (sentence, held) in enumerate(zip(self.sentences, self.results, strict=True)):
            below = self._reason(place).splitlines()
            if not self.passed and place == self.held:
                next_hint = (
                    f"(For the next hint, run this in a new cell: cu.checks.{self.name}.hint())"
                )
                below += [_numbered(self.hints)[0], *[next_hint] * (len(self.hints) > 1)]
            lines += [marks[held].format(sentence), *(f"    {line}" for line in below)]
        return "\n".join(lines)

    def _reason(self, place: int) -> str:
        """Why the property at this place does not hold, as far as it was judged; else empty."""
        if not self.passed and place == self.held:
            return self.reason
        return self.reasons[place] if self.reasons else ""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The text, and in a session of a reader's the same in color, with the further hints folded."""
        text = {"text/plain": repr(self)}
        return text if strict() else text | {"text/html": self._html()}

    def _html(self) -> str:
        from course_utils.kit.page import asset  # slow to import

        stub = ""
        if self.done and not self.ours:
            with suppress(LookupError):
                stub = exercises.stub(self.name)
        over = {"stub": stub, "defines": exercises.defined(stub), "name": self.name}
        data = "".join(f' data-{key}="{html.escape(value)}"' for key, value in over.items() if stub)
        state = "open" if not self.done else "right" if self.passed else "wrong"
        head, *about = self.headline.removeprefix(self.name).splitlines()
        lines = [f'<p class="headline"><code>{self.name}</code>{marked(head)}</p>']
        lines += [
            f"<p>{marked(line)}</p>" for line in [*about, *["It will test:"] * (not self.done)]
        ]
        listed = "" if self.ours and self.passed else "".join(self._rows())
        return (
            f'<div class="cu-report {state} mathjax_ignore"{data}><style>{asset("check.css")}</style>'
            f"{''.join(lines)}<ul>{listed}</ul><script>{{{asset('check.js')}}}</script></div>"
        )

    def _rows(self) -> Iterator[str]:
        """An item of a list for each property; the reason and the hints in the first that does not hold."""
        kinds = {True: ("right", "✓", ""), False: ("wrong", "✗", ""), None: ("open", "·", "")}
        if self.done:
            kinds[None] = ("open", "·", " (not tested yet)")
        results = self.results or (None,) * len(self.sentences)
        for place, (sentence, held) in enumerate(zip(self.sentences, results, strict=True)):
            kind, mark, note = kinds[held]
            more = ""
            if self.done and (why := self._reason(place)):
                reason = "<br>".join(map(html.escape, why.splitlines()))
                more = f'<p class="reason">{reason}</p>'
            if self.done and place == self.held:
                first, *others = _numbered(self.hints)
                more += f'<p class="hint">{marked(first)}</p>{_folded(others)}'
            yield (
                f'<li class="{kind}"><span class="mark">{mark}</span> {marked(sentence)}{note}{more}</li>'
            )


def _folded(hints: Sequence[str]) -> str:
    """Hints, each of which opens by a click after the one before it; without a script or a kernel."""
    if not hints:
        return ""
    name, _, text = hints[0].partition(": ")
    return (
        f'<details><summary data-lm-suppress-shortcuts="true">{name}</summary>'
        f'<p class="hint">{marked(text)}</p>{_folded(hints[1:])}</details>'
    )


def _numbered(hints: Sequence[str]) -> list[str]:
    if len(hints) == 1:
        return [f"Hint: {hints[0]}"]
    return [f"Hint {i} of {len(hints)}: {hint}" for i, hint in enumerate(hints, start=1)]


class Check:
    """Properties under a name; call it with a learner's function.

    Args:
        name: shown in the report.
        judge_all: whether each property is tried whatever the others say, as for answers on paper.
        forbids: functions of PyTorch or of the course, by name, that do what the task asks for: a
            candidate that calls one passes no property.
    """

    def __init__(self, name: str, *, judge_all: bool = False, forbids: Sequence[str] = ()):
        self.name, self.judge_all, self.forbids = name, judge_all, frozenset(forbids)
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

        def test(candidate: Any) -> None:
            expect_unchanged(candidate, *inputs())

        test.__module__ = inputs.__module__  # of the lesson, under which progress is saved
        self.must(sentence, hint=hint)(test)

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

        test.__module__ = inputs.__module__
        self.must(sentence, hint=hint)(test)

    @property
    def exercise(self) -> str:
        """Where progress is saved: chapter's slug and name of the check; empty outside of a lesson."""
        module = self.properties[0].test.__module__.split(".")
        in_lesson = module[:2] == ["course_utils", "lessons"] and module[3:] == ["checks"]
        return f"{module[2]}/{self.name}" if in_lesson else ""

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
            progress.record_pass(self.exercise, candidate)
        if report.done and not report.ours:
            text = progress.cell_of(candidate)
            progress.save_answer(self.exercise, text, passed=report.passed)
        elif not report.done and not report.reason and (saved := self.answers().all):
            where = f"To see it, in a new cell: cu.checks.{self.name}.answers()"
            reason = f"{STUB}\nAn answer of yours from {saved[0].when:%Y-%m-%d} is kept. {where}"
            return replace(report, reason=reason)
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
        if progress.is_ours(candidate):
            why = "this is the course's own; write yours in the cell above, and hand that in."
            return Report(self.name, sentences, reason=why, done=False)
        results: list[bool | None] = []
        failures: list[tuple[Property, BaseException]] = []
        reasons: list[str] = []
        for prop in self.properties:
            if failures and not (self.judge_all and isinstance(failures[-1][1], Exception)):
                results.append(None)
                reasons.append("")
                continue
            try:
                error = _failure(prop, candidate, self.forbids)
            except NotDone:
                return Report(self.name, sentences, done=False)
            results.append(error is None)
            reasons.append(_in_words(error, candidate) if error else "")
            if error is not None:
                failures.append((prop, error))
        if not failures:
            ours = getattr(candidate, "__name__", "").endswith("_solution")
            return Report(self.name, sentences, tuple(results), ours=ours, on_paper=self.judge_all)
        prop, error = failures[0]
        slips = (text for kind, text in SLIPS.items() if isinstance(error, kind))
        special = next(slips, "") or getattr(error, "hint", "")
        hints = (special, *prop.hints) if special else prop.hints
        each = tuple(reasons) if self.judge_all else ()
        return Report(
            self.name, sentences, tuple(results), next(filter(None, reasons), ""), hints,
            on_paper=self.judge_all, reasons=each,
        )  # fmt: skip

    def hint(self) -> Hints:
        """One hint more for what did not hold when the check was last called, below those before it.

        After the last one all are shown again. Before the first call they are about the first property.
        """
        if self._report and self._report.passed:
            return Hints(f"{self.name}: your code passes, so there is nothing to hint at.")
        first = self.properties[0]
        sentence, hints = first.sentence, first.hints
        if self._report:
            sentence, hints = self._report.sentences[self._report.held], self._report.hints
        self._shown = min(self._shown + 1, len(hints))
        lines = [f"{self.name}: {sentence}", *_numbered(hints)[: self._shown]]
        return Hints("\n  ".join(lines))

    def answers(self) -> progress.Answers:
        """The reader's answers that this check has tried, the newest first, and where they are."""
        return progress.Answers(self.name, progress.saved_answers(self.exercise))

    def start_over(self) -> None:
        """In a notebook: the cell that calls this becomes the stub as it was handed out; the answer is saved."""
        try:
            print(progress.start_over(self.exercise))
        except LookupError as error:
            print(error.args[0])

    def __repr__(self) -> str:
        return f"Check({self.name!r}, {len(self.properties)} properties)"


# The learner's function -------------------------------------------------------------------------


def _failure(prop: Property, candidate: Any, forbids: frozenset[str]) -> BaseException | None:
    """What a property's test raises; None if the property holds.

    Raises:
        NotDone: the candidate is a stub.
    """
    try:
        with own_random_numbers(), _time_limit(TIME_LIMIT):
            prop.test(_watched(candidate, forbids))
    except NotDone:
        raise
    except (Exception, TookTooLong) as error:
        return error
    return None


def _watched(candidate: Any, forbids: frozenset[str]) -> Any:
    """The candidate, wrapped so that what is no answer ends the check."""
    if candidate is None or candidate is ...:
        raise NotDone
    if not callable(candidate):
        raise Unmet(f"got {kind_of(candidate)}, expected a function")
    if isinstance(candidate, type):
        return candidate

    def watched(*args, **kwargs):
        try:
            with _without(forbids):
                answer = candidate(*args, **kwargs)
        except NotImplementedError as error:
            if _is_on_purpose(error):
                raise NotDone from None
            raise
        if answer is ... or (answer is None and _is_empty(candidate)):
            raise NotDone
        if answer is None:
            raise NothingReturned(
                "the function returned None: a `return` is missing or not reached"
            )
        return answer

    return watched


@contextmanager
def _without(forbids: frozenset[str]) -> Iterator[None]:
    """Fail if the block calls one of these functions, also where the call itself fails."""
    if not forbids:
        yield
        return
    error = None
    with counted() as calls:
        try:
            yield
        except Exception as raised:
            error = raised
    if used := sorted(forbids & calls.keys()):
        hint = f"What does `{used[0]}` do, step by step? Write these steps."
        names = ", ".join(used)
        raise Unmet(f"it calls {names}, and this is what the task asks you to write", hint)
    if error is not None:
        raise error


def _is_on_purpose(error: NotImplementedError) -> bool:
    """Whether a learner's line says `raise NotImplementedError`. PyTorch raises it, too."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    raises = dis.opname[frame.f_code.co_code[frame.f_lasti]] == "RAISE_VARARGS"
    return raises and not frame.f_globals.get("__name__", "").startswith("torch")


def _is_empty(function: Callable) -> bool:
    """Whether the body holds at most a docstring, `...`, `pass` and `return`."""
    if not hasattr(function, "__code__"):
        return False
    nothing = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}
    return {instruction.opname for instruction in dis.get_instructions(function)} <= nothing


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """End the block with TookTooLong after so many seconds of this thread's computing.

    A timer looks at the time where there is one (not on Windows) and this is the main thread, as in a
    notebook; elsewhere each line that runs does, unless a debugger listens there.
    """
    end = time.thread_time() + seconds

    def look(*_: Any) -> Callable:
        if time.thread_time() > end:
            raise TookTooLong(f"still running after {seconds:g} seconds of computing")
        return look

    main = threading.current_thread() is threading.main_thread()
    if hasattr(signal, "setitimer") and main:
        before = signal.signal(signal.SIGVTALRM, look)
        signal.setitimer(signal.ITIMER_VIRTUAL, TICK, TICK)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
    elif sys.gettrace() is None:
        sys.settrace(look)
        try:
            yield
        finally:
            sys.settrace(None)
    else:
        yield


def _in_words(error: BaseException, candidate: Any) -> str:
    """What the test says; for any other exception, its name and the last of the learner's lines that it passed."""
    if isinstance(error, Unmet):
        return _shortened(str(error))
    kind = "" if isinstance(error, TookTooLong) else f"{type(error).__name__}: "
    text = _shortened(f"{kind}{error}")
    cell = progress.cell_file(candidate)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == cell]
    if own:
        source = f": {_shortened(own[-1].line)}" if own[-1].line else ""
        return f"{text}\nin line {own[-1].lineno} of your cell{source}"
    called = isinstance(candidate, type) or "watched" in [frame.name for frame in frames]
    return text if called else f"the result cannot be used: {text}"


def _shortened(text: str) -> str:
    """In one line of at most LONGEST_LINE characters."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"


# What the tests expect --------------------------------------------------------------------------


def kind_of(value: Any) -> str:
    """The type of a value with its article: "a list", "an int"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def expect(condition: bool, reason: str, hint: str = "") -> None:
    """Fail with `reason`, and a hint for this mistake if there is one, unless the condition holds."""
    if not condition:
        raise Unmet(reason, hint)


def _expect_kind(right: bool, kind: str, actual: Any) -> None:
    if not right:
        raise WrongKind(f"got {kind_of(actual)}, expected {kind}")


def expect_equal(actual: Any, expected: Any, what: str) -> None:
    """Fail unless the two are equal, and say both."""
    expect(actual == expected, f"{what}: got {actual}, expected {expected}")


def expect_number(actual: Any, expected: float, what: str) -> None:
    """Fail unless `actual` is a number, or a tensor without axes, and `expected` up to rounding."""
    scalar = torch.is_tensor(actual) and actual.ndim == 0
    _expect_kind(scalar or isinstance(actual, int | float), "a number", actual)
    near = math.isclose(float(actual), expected, rel_tol=1e-5, abs_tol=1e-12)
    expect(near, f"{what} is {float(actual):.4g}, expected {expected:.4g}")


def expect_shape(actual: Any, shape: tuple[int, ...]) -> Tensor:
    """`actual`, if it is a tensor of this shape; fail otherwise."""
    _expect_kind(isinstance(actual, Tensor), "a tensor", actual)
    expect(tuple(actual.shape) == shape, f"got shape {tuple(actual.shape)}, expected shape {shape}")
    return actual


def expect_tensors(actual: Any, *names: str) -> tuple[Tensor, ...]:
    """The entries of `actual`, if it is a tuple or a list of a tensor for each name; fail otherwise."""
    counted = isinstance(actual, tuple | list) and len(actual) == len(names)
    right = counted and all(isinstance(entry, Tensor) for entry in actual)
    _expect_kind(right, f"a tuple of {len(names)} tensors ({', '.join(names)})", actual)
    return tuple(actual)


def expect_close(
    actual: Any,
    expected: Tensor,
    what: str = "",
    *,
    entry: str = "entry",
    atol: float = 1e-5,
    rtol: float = 1e-4,
    hint: str = "",
) -> None:
    """Fail unless `actual` is a tensor of the expected shape and values; say both where they differ most.

    Args:
        actual: the candidate's result.
        expected: what it should be.
        what: which result it is, as in "the gradient of the width"; shown first.
        entry: the name of one of its numbers, as in "prediction 7 is 1.94".
        atol, rtol: as in `torch.isclose`.
        hint: shown for this mistake before the property's own hints.
    """
    expect_shape(actual, tuple(expected.shape))
    expect(not actual.is_complex(), "got complex numbers, expected real ones")
    actual, expected = (each.detach().to(expected.dtype).double() for each in (actual, expected))
    near = torch.isclose(actual, expected, atol=atol, rtol=rtol, equal_nan=True)
    if not near.all():
        gap = (actual - expected).abs().nan_to_num(math.inf).masked_fill(near, -1)
        detail = _side_by_side(actual, expected, int(gap.argmax()), entry)
        raise Unmet(f"{what}: {detail}" if what else detail, hint)


def _side_by_side(actual: Tensor, expected: Tensor, place: int, entry: str) -> str:
    """The entry, or its whole row if that is short, with what is expected there; `place` counts all entries."""
    *row, column = (int(i) for i in torch.unravel_index(torch.tensor(place), actual.shape or (1,)))
    if actual.ndim and 1 < actual.shape[-1] <= SHORT_ROW:
        shown, at = slice(None), row
    else:
        shown, at = slice(column, column + 1), [*row, column] if actual.ndim else []
    pair = [
        each.reshape(actual.shape or (1,))[(*row, shown)].tolist() for each in (actual, expected)
    ]
    digits = next((n for n in (3, 6) if _numbers(pair[0], n) != _numbers(pair[1], n)), 9)
    result, correct = (_numbers(row, digits) for row in pair)
    if not at:
        return f"got {result}, expected {correct}"
    index = at[0] if len(at) == 1 else at
    return f"{'row' if shown == slice(None) else entry} {index} is {result}, expected {correct}"


def _numbers(values: list[float], digits: int) -> str:
    """A number, or the numbers of a row in brackets."""
    text = ", ".join(f"{value:.{digits}g}" for value in values)
    return text if len(values) == 1 else f"[{text}]"


def expect_sums_to_one(actual: Any, shape: tuple[int, ...]) -> None:
    """Fail unless `actual` is a tensor of this shape whose rows, along the last axis, sum to 1."""
    sums = expect_shape(actual, shape).sum(dim=-1)
    expect_close(sums, torch.ones(shape[:-1]), "sums of the rows")


def expect_same_gradients(
    candidate: Callable[..., Any],
    reference: Callable[..., Tensor],
    *,
    hint: str = "",
    atol: float = 1e-5,
    rtol: float = 1e-4,
    **inputs: Tensor,
) -> None:
    """Fail unless the candidate's answer has the shape of the reference's, and the same gradient for each input.

    Both are called with the inputs in their order; what is derived is a random mixture of the answer's entries.
    """
    names = list(inputs)
    gradients, mixture = [], torch.empty(0)
    for function in (reference, candidate):
        leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs.values()]
        answer = function(*leaves)
        if function is reference:
            mixture = 1 + torch.rand_like(answer)
        else:
            expect_shape(answer, tuple(mixture.shape))
            expect(answer.requires_grad, f"no gradient reaches the {' or the '.join(names)}", hint)
        gradients.append(torch.autograd.grad((answer * mixture).sum(), leaves, allow_unused=True))
    for name, right, mine in zip(names, *gradients, strict=True):
        expect(mine is not None, f"no gradient reaches the {name}", hint)
        expect_close(mine, right, f"the gradient of the {name}", atol=atol, rtol=rtol, hint=hint)


def expect_unchanged(candidate: Callable[..., Any], *inputs: Any) -> Any:
    """The candidate's answer, if the call leaves the tensors and lists that it is given as they were."""
    with unchanged(*inputs):
        return candidate(*inputs)


@contextmanager
def unchanged(*inputs: Any) -> Iterator[None]:
    """Fail if tensors or lists that the block is to leave alone differ afterwards, or PyTorch follows them."""
    before = copy.deepcopy(inputs)
    yield
    expect(_same(before, inputs), "the call changed its inputs")
    expect(
        _followed(before) == _followed(inputs),
        "the call made PyTorch follow a tensor that it was given",
        "Which tensor do you call `requires_grad_()` on? Make a new one first, as in `x.clone().requires_grad_()`.",
    )


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, list | tuple):
        return len(before) == len(after) and all(map(_same, before, after))
    return torch.equal(before, after) if isinstance(before, Tensor) else before == after


def _followed(some: Any) -> list[bool]:
    """Whether each tensor in it requires a gradient."""
    if isinstance(some, list | tuple):
        return [followed for entry in some for followed in _followed(entry)]
    return [some.requires_grad] if isinstance(some, Tensor) else []
