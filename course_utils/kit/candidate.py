"""One test of a learner's function: run within a time limit, and its error put into words.

The *candidate* is the function, class or value that a learner hands to a check.
"""

import dis
import linecache
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from course_utils.kit.answers import cell_file
from course_utils.kit.expect import Unmet, WrongKind, kind_of
from course_utils.kit.tracing import counting_calls
from course_utils.runtime import own_random_numbers

LONGEST_LINE = 200  # characters, in a reason
TIME_LIMIT = 10.0
"""Seconds that the candidate may compute in one test, counted in this thread's own time, so that right code does not
fail on a busy machine. The tests of the chapters need less than one."""
TICK = 0.1  # seconds of computing between two looks at the time


class NotDone(Exception):
    """The candidate is still a stub: its body is empty, or it returns `...`, or it raises NotImplementedError."""


class NothingReturned(Unmet):
    """The candidate computes something and returns None."""


class TookTooLong(BaseException):
    """The candidate is still running after TIME_LIMIT; no `except Exception` of a learner's stops this."""


GENERAL_HINTS: dict[type[BaseException], str] = {
    NothingReturned: "Does each path through the function end with `return`?",
    TookTooLong: "Which condition ends the loop, and what in the loop changes it?",
    WrongKind: "What should the function return? Look at its docstring.",
    NameError: "Is the name spelled the way it is where you define it?",
    AttributeError: "Does the object before the dot have this attribute? Print its type.",
}
"""Hints for mistakes that have nothing to do with the subject of an exercise, by what the candidate raises."""
WORDED_HINTS: dict[str, str] = {
    "sqrt(): argument 'input' (position 1) must be Tensor": "`torch.sqrt` wants a tensor, and an entry of a shape is a "
    "plain number. Which root takes a number? `math.sqrt(…)` does, or `** 0.5`.",
    "Boolean value of Tensor with more than one value is ambiguous": "`and`, `or` and `if` want one truth value. "
    "What joins two tensors entry by entry? `&` does, with parentheses around each comparison.",
}
"""The same, by words of PyTorch's error."""


def general_hint(error: BaseException) -> str:
    """The general hint for an error; empty if there is none."""
    worded = [hint for words, hint in WORDED_HINTS.items() if words in str(error)]
    return next(
        iter(worded + [hint for kind, hint in GENERAL_HINTS.items() if isinstance(error, kind)]), ""
    )


def try_test(
    test: Callable[[Any], None], candidate: Any, forbids: frozenset[str]
) -> BaseException | None:
    """The error that a property's test raises with a candidate; None if the property holds.

    Raises:
        NotDone: the candidate is a stub.
    """
    try:
        with own_random_numbers(), _own_settings(), _time_limit(TIME_LIMIT):
            if isinstance(candidate, type):
                with _without(forbids):
                    test(candidate)
            else:
                test(_watched(candidate, forbids))
    except NotDone:
        raise
    except (Exception, TookTooLong) as error:
        return error
    return None


@contextmanager
def _own_settings() -> Iterator[None]:
    """Run the block with PyTorch's settings as they are at its start: gradients, float32 and the CPU.

    A cell above may have changed them for all that comes later, and the expectations count on them.
    """
    dtype = torch.get_default_dtype()
    with ExitStack() as settings:
        settings.callback(torch.set_default_dtype, dtype)
        torch.set_default_dtype(torch.float32)
        settings.enter_context(torch.inference_mode(False))
        settings.enter_context(torch.enable_grad())
        if torch.get_default_device().type != "cpu":  # or each call of PyTorch takes longer
            settings.enter_context(torch.device("cpu"))
        yield


def _watched(candidate: Any, forbids: frozenset[str]) -> Any:
    """The candidate, wrapped so that a stub, or a function that returns nothing, ends the test."""
    if candidate is None or candidate is ...:
        raise NotDone
    if not callable(candidate):
        raise Unmet(f"got {kind_of(candidate)}, expected a function")

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
    with counting_calls() as calls:
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
    *_, (frame, number) = traceback.walk_tb(error.__traceback__)
    line = linecache.getline(frame.f_code.co_filename, number)
    return "raise " in line and not frame.f_globals.get("__name__", "").startswith("torch")


def _is_empty(function: Callable) -> bool:
    """Whether the body holds at most a docstring, `...`, `pass` and `return`; a grader may have no source of it."""
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


def error_in_words(error: BaseException, candidate: Any) -> str:
    """The text of an expectation; for any other error, its name and the last of the learner's lines that it passed."""
    if isinstance(error, Unmet):
        return _shortened(str(error))
    kind = "" if isinstance(error, TookTooLong) else f"{type(error).__name__}: "
    text = _shortened(f"{kind}{error}")
    cell = cell_file(candidate)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == cell]
    if own:
        source = f": {_shortened(own[-1].line)}" if own[-1].line else ""
        return f"{text}\nin line {own[-1].lineno} of your cell{source}"
    called = isinstance(candidate, type) or "watched" in [frame.name for frame in frames]
    return text if called else f"the result cannot be used: {text}"


def _shortened(text: str) -> str:
    """The text in one line of at most LONGEST_LINE characters."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"
