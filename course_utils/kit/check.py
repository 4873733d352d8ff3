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
    softmax.mark(f)       # for a grader: the Report, and nothing is kept or printed
    softmax.answers()     # the answers that were checked so far
    softmax.start_over()  # the cell becomes the stub again

What passes is noted in the reader's progress (`passed`), and every answer that is tried is kept (`kept`).
"""

import copy
import dis
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
from functools import partial, update_wrapper
from typing import Any

import torch
from torch import Tensor

from course_utils.kit import kept, passed
from course_utils.kit.calls import counted
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


SLIPS: dict[type[Exception], str] = {
    WrongKind: "What does the docstring say that the function gives back?",
    NameError: "Is the name spelled as where it is defined?",
    AttributeError: "Has what stands before the dot this attribute? Print its type.",
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


@dataclass(frozen=True)
class Hints:
    """The help so far.

    Attributes:
        sentence: what does not hold yet; empty once the check has passed.
        texts: the hints for it, step by step.
        steps: how many there are.
    """

    sentence: str
    texts: tuple[str, ...]
    steps: int

    def __repr__(self) -> str:
        if not self.texts:
            return "passed: nothing to hint at"
        of = f"of {self.steps}"
        about = [f" for “{self.sentence}”", *[""] * (len(self.texts) - 1)]
        lines = (f"{of}{what}: {text}" for what, text in zip(about, self.texts, strict=True))
        return "\n".join(f"Hint {step} {line}" for step, line in enumerate(lines, start=1))


@dataclass(frozen=True)
class Report:
    """What a check found.

    Attributes:
        name: of the check.
        sentences: of all its properties, in order.
        held: how many of them hold, counted up to the first that does not.
        reason: why the next one does not, in one or two lines; empty if there is none.
        hint: where to look then; empty if there is none.
        done: False while there is nothing of the learner's to test; then `reason` may say why.
        more: whether the check has more hints for what does not hold.
        ours: whether the course's own solution was checked.
        also: for a check whose answers stand alone, the places of those that hold after the first miss;
            None where nothing was tried there.
    """

    name: str
    sentences: tuple[str, ...]
    held: int = 0
    reason: str = ""
    hint: str = ""
    done: bool = True
    more: bool = False
    ours: bool = False
    also: tuple[int, ...] | None = None

    @property
    def passed(self) -> bool:
        """Whether every property holds."""
        return self.done and self.held == len(self.sentences)

    @property
    def points(self) -> int:
        """How many properties are known to hold: one point each, 0 for a stub."""
        return self.held + len(self.also or ())

    def holds(self, place: int) -> bool:
        """Whether the property at this place, counted from 0, is known to hold."""
        return place < self.held or place in (self.also or ())

    def __repr__(self) -> str:
        if not self.done:
            why = self.reason or STUB
            head = f"{self.name}: {why}"
            return "\n".join([head, "It will test:", *(f"  · {s}" for s in self.sentences)])
        counted = f"{self.held} of {len(self.sentences)}"
        if self.passed and self.ours:
            ours = f"the course's solution passes, {counted}."
            return f"{self.name}: {ours}"
        lines = [f"  ✓ {sentence}" for sentence in self.sentences[: self.held]]
        if self.passed:
            good = f"passed, {counted}."
            return "\n".join([f"{self.name}: {good}", *lines])
        lines.append(f"  ✗ {self.sentences[self.held]}")
        call = f"cu.checks.{self.name}.hint()"
        more = f" (More, in a new cell: {call})" if self.more else ""
        said = [*self.reason.splitlines(), f"Hint: {self.hint}{more}"]
        lines += [f"    {line}" for line in said]
        not_yet = f"not yet, {self._counted_so_far()}."
        return "\n".join([f"{self.name}: {not_yet}", *lines, *self._rest()])

    def _counted_so_far(self) -> str:
        total = len(self.sentences)
        if self.also is None:
            return f"{self.held} of {total} so far"
        return f"{self.points} of {total} right"

    def _rest(self) -> list[str]:
        """A line for each sentence behind the first that does not hold."""
        rest = list(enumerate(self.sentences))[self.held + 1 :]
        if self.also is None:
            return [f"  · {sentence} (not tried yet)" for _, sentence in rest]
        return [f"  {'✓' if place in self.also else '✗'} {sentence}" for place, sentence in rest]


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
        self._at: int | None = 0  # the property that did not hold last; None after passing
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
        test = partial(_test_inputs, inputs=inputs)
        self.must(sentence, hint=hint)(update_wrapper(test, inputs, ["__module__"]))

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
        test = partial(_test_gradients, reference=reference, inputs=inputs, **tolerance)
        self.must(sentence, hint=hint)(update_wrapper(test, inputs, ["__module__"]))

    @property
    def exercise(self) -> str:
        """Where progress is kept: chapter's slug and name of the check; empty outside of a lesson."""
        module = self.properties[0].test.__module__.split(".")
        lesson = module[:2] == ["course_utils", "lessons"] and module[3:] == ["checks"]
        return f"{module[2]}/{self.name}" if lesson else ""

    def __call__(self, candidate: Any) -> Report:
        """Try the properties on `candidate`; what goes wrong in it is reported, not raised.

        Raises:
            ValueError: if the check has no properties, so that it could not fail.
        """
        report = self._judged(candidate)
        if report.done and not report.passed:
            self._shown = max(1, self._shown) if report.held == self._at else 1
            self._at = report.held
        elif report.passed:
            self._at, self._shown = None, 0
            if self.exercise:
                passed.note(self.exercise, candidate)
        if not self.exercise:
            return report
        if report.done and not report.ours:
            kept.keep(self.exercise, kept.cell_of(candidate), passed=report.passed)
        elif not report.done and not report.reason and (before := kept.answers(self.exercise)):
            day = f"{before[0].when:%Y-%m-%d}"
            said = f"An answer of yours from {day} is kept."
            how = f"To see it, in a new cell: cu.checks.{self.name}.answers()"
            return replace(report, reason=f"{STUB}\n{said} {how}")
        return report

    def mark(self, candidate: Any) -> Report:
        """The report for a grader: nothing is noted or kept, and what the candidate prints or warns is dropped.

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
        if passed.is_ours(candidate):
            why = "this is the course's own; write yours in the cell above, and hand that in."
            return Report(self.name, sentences, reason=why, done=False)
        for held, prop in enumerate(self.properties):
            try:
                with own_random_numbers(), _time_limit(TIME_LIMIT):
                    prop.test(_watched(candidate, self.forbids))
            except NotDone:
                return Report(self.name, sentences, done=False)
            except NothingReturned as error:
                hint = "Does each path through the function end with `return`?"
                return Report(self.name, sentences, held, str(error), hint)
            except TookTooLong as error:
                reason = _in_words(error, candidate)
                hint = "Which condition ends the loop, and what in the loop changes it?"
                return Report(self.name, sentences, held, reason, hint)
            except Exception as error:
                reason, more = _in_words(error, candidate), len(prop.hints) > 1
                slips = (text for kind, text in SLIPS.items() if isinstance(error, kind))
                hint = next(slips, "") or getattr(error, "hint", "") or prop.hints[0]
                also = self._right_behind(held, candidate)
                return Report(self.name, sentences, held, reason, hint, more=more, also=also)
        ours = getattr(candidate, "__name__", "").endswith("_solution")
        return Report(self.name, sentences, len(sentences), ours=ours)

    def _right_behind(self, miss: int, candidate: Any) -> tuple[int, ...] | None:
        """The places after the first miss of what holds; None where the properties build on each other."""
        if not self.judge_all:
            return None
        right = []
        for place in range(miss + 1, len(self.properties)):
            try:
                with suppress(Exception), own_random_numbers(), _time_limit(TIME_LIMIT):
                    self.properties[place].test(_watched(candidate, self.forbids))
                    right.append(place)
            except TookTooLong:
                break
        return tuple(right)

    def hint(self) -> Hints:
        """One hint more for what did not hold when the check was last called, below those before it.

        After the last one all are shown again. Before the first call they are about the first property.
        """
        if self._at is None:
            return Hints("", (), 0)
        prop = self.properties[self._at]
        self._shown = min(self._shown + 1, len(prop.hints))
        return Hints(prop.sentence, prop.hints[: self._shown], len(prop.hints))

    def answers(self) -> kept.Answers:
        """The reader's answers that this check has tried, the newest first, and where they are kept."""
        return kept.Answers(self.name, kept.answers(self.exercise))

    def start_over(self) -> None:
        """In a notebook: the cell that calls this becomes the stub as it was handed out; the answer is kept."""
        try:
            print(kept.start_over(self.exercise))
        except LookupError as error:
            print(error.args[0])

    def __repr__(self) -> str:
        return f"Check({self.name!r}, {len(self.properties)} properties)"


# The learner's function -------------------------------------------------------------------------


def _watched(candidate: Any, forbids: frozenset[str] = frozenset()) -> Any:
    """The candidate, wrapped so that what is no answer ends the check."""
    if candidate is None or candidate is ...:
        raise NotDone
    if not callable(candidate):
        raise Unmet(f"a function is expected, got {_kind(candidate)}")
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
    """Fail if the block calls one of these functions."""
    if not forbids:
        yield
        return
    with counted() as found:
        yield
    if used := sorted(forbids & found.keys()):
        hint = f"What does `{used[0]}` do, step by step? Write these steps."
        raise Unmet(
            f"it calls {', '.join(used)}, and this is what the task asks you to write", hint
        )


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

    def look(*_: Any) -> None:
        if time.thread_time() > end:
            raise TookTooLong(f"still running after {seconds:g} seconds of computing")

    def listen(*_: Any) -> Callable:
        look()
        return listen

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
        sys.settrace(listen)
        try:
            yield
        finally:
            sys.settrace(None)
    else:
        yield


def _in_words(error: BaseException, candidate: Any) -> str:
    """What the test says; for any other exception, its name and the last line of the learner's that it passed."""
    if isinstance(error, Unmet):
        return _shortened(str(error))
    kind = "" if isinstance(error, TookTooLong) else f"{type(error).__name__}: "
    text = _shortened(f"{kind}{error}")
    cell = kept.cell_file(candidate)
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


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def expect(condition: bool, reason: str, hint: str = "") -> None:
    """Fail with `reason`, and a hint for this mistake if there is one, unless the condition holds."""
    if not condition:
        raise Unmet(reason, hint)


def _expect_kind(right: bool, kind: str, actual: Any) -> None:
    if not right:
        raise WrongKind(f"{kind} is expected, got {_kind(actual)}")


def expect_equal(actual: Any, expected: Any, what: str) -> None:
    """Fail unless the two are equal, and say both."""
    expect(actual == expected, f"{what}: {actual}; expected {expected}")


def expect_number(actual: Any, expected: float, what: str) -> None:
    """Fail unless `actual` is a number, or a tensor without axes, and `expected` up to rounding."""
    scalar = torch.is_tensor(actual) and actual.ndim == 0
    _expect_kind(scalar or isinstance(actual, int | float), "a number", actual)
    near = math.isclose(float(actual), expected, rel_tol=1e-5, abs_tol=1e-12)
    expect(near, f"{what} is {float(actual):.4g}; expected {expected:.4g}")


def expect_shape(actual: Any, shape: tuple[int, ...]) -> Tensor:
    """`actual`, if it is a tensor of this shape; fail otherwise."""
    _expect_kind(isinstance(actual, Tensor), "a tensor", actual)
    expect(tuple(actual.shape) == shape, f"shape {tuple(actual.shape)}; expected shape {shape}")
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
    atol: float = 1e-5,
    rtol: float = 1e-4,
    hint: str = "",
) -> None:
    """Fail unless `actual` is a tensor of the expected shape and values; say both where they differ most."""
    expect_shape(actual, tuple(expected.shape))
    expect(not actual.is_complex(), "the entries are complex numbers; real numbers are expected")
    actual, expected = (each.detach().to(expected.dtype).double() for each in (actual, expected))
    near = torch.isclose(actual, expected, atol=atol, rtol=rtol, equal_nan=True)
    if not near.all():
        gap = (actual - expected).abs().nan_to_num(math.inf).masked_fill(near, -1)
        detail = _side_by_side(actual, expected, int(gap.argmax()))
        raise Unmet(f"{what}: {detail}" if what else detail, hint)


def _side_by_side(actual: Tensor, expected: Tensor, place: int) -> str:
    """The entry, or its whole row if that is short, with what is expected there; `place` counts all entries."""
    *row, column = (int(i) for i in torch.unravel_index(torch.tensor(place), actual.shape or (1,)))
    if actual.ndim and 1 < actual.shape[-1] <= SHORT_ROW:
        shown, at = slice(None), row
    else:
        shown, at = slice(column, column + 1), [*row, column] if actual.ndim else []
    pair = [
        each.reshape(actual.shape or (1,))[(*row, shown)].tolist() for each in (actual, expected)
    ]
    digits = next((n for n in (3, 6) if len({_numbers(one, n) for one in pair}) > 1), 9)
    found, wanted = (_numbers(one, digits) for one in pair)
    kind = "row " if shown == slice(None) else ""
    where = f"{kind}{', '.join(map(str, at))} is " if at else ""
    return f"{where}{found}; expected {wanted}"


def _numbers(values: list[float], digits: int) -> str:
    return ", ".join(f"{value:.{digits}g}" for value in values)


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
        given = [tensor.detach().clone().requires_grad_() for tensor in inputs.values()]
        answer = function(*given)
        if function is reference:
            mixture = 1 + torch.rand_like(answer)
        else:
            expect_shape(answer, tuple(mixture.shape))
            expect(answer.requires_grad, f"no gradient reaches the {' or the '.join(names)}", hint)
        gradients.append(torch.autograd.grad((answer * mixture).sum(), given, allow_unused=True))
    for name, right, mine in zip(names, *gradients, strict=True):
        expect(mine is not None, f"no gradient reaches the {name}", hint)
        expect_close(mine, right, f"the gradient of the {name}", atol=atol, rtol=rtol, hint=hint)


def _test_gradients(
    candidate: Callable[..., Any],
    reference: Callable[..., Tensor],
    inputs: Callable[[], Mapping[str, Tensor]],
    **tolerance: float,
) -> None:
    expect_same_gradients(candidate, reference, **tolerance, **inputs())


def expect_unchanged(candidate: Callable[..., Any], *given: Any) -> Any:
    """The candidate's answer, if the call leaves the tensors and lists that it is given as they were."""
    with unchanged(*given):
        return candidate(*given)


def _test_inputs(candidate: Callable[..., Any], inputs: Callable[[], Sequence[Any]]) -> None:
    expect_unchanged(candidate, *inputs())


@contextmanager
def unchanged(*given: Any) -> Iterator[None]:
    """Fail if the tensors or lists that were `given` to the candidate are different afterwards."""
    before = copy.deepcopy(given)
    yield
    expect(_same(given, before), "the call changed its inputs")


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return torch.equal(one, other) if isinstance(one, Tensor) else one == other
