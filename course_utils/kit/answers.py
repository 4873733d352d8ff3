"""The answers that a reader has checked: each is the text of a cell, saved in the reader's home and never sent.

    answers/kernel_regression/fixed_loss/2026-11-25_14-03-12_123456_passed.py

The files are readable for the reader alone (`course_utils.files.home`). A notebook may be deleted, pulled over or
unzipped over: its answers stay. With COURSE_STRICT=1 nothing is read or written, so every run gives the same.
"""

import contextlib
import inspect
import linecache
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from course_utils.files import home, private_write
from course_utils.kit import exercises
from course_utils.kit.guard import strict

MAX_ANSWERS = 5
"""Number of answers that are saved for an exercise: the newest, and the newest that passed."""

LONGEST = 100_000
"""Characters of the longest cell that is saved."""

STAMP = "%Y-%m-%d_%H-%M-%S_%f"
PASSED = "_passed"


# Where a function comes from --------------------------------------------------------------------


def is_ours(candidate: Any) -> bool:
    """Whether a function or class is the course's own: it was written in this package, not by the reader."""
    has_module = inspect.isfunction(candidate) or isinstance(candidate, type)
    module = inspect.unwrap(candidate).__module__ if has_module else None
    return (module or "").split(".")[0] == "course_utils"


def cell_file(thing: Any) -> str | None:
    """The file name of the cell that defines a function, or the methods of a class."""
    functions = vars(thing).values() if isinstance(thing, type) else [thing]
    codes = (getattr(inspect.unwrap(f), "__code__", None) for f in functions if callable(f))
    return next((code.co_filename for code in codes if code), None)


def cell_of(thing: Any) -> str:
    """The text of the notebook's cell that defines a function or class; empty where it comes from elsewhere."""
    file = cell_file(thing) if getattr(thing, "__module__", "") == "__main__" else None
    if file is None or Path(file).is_file():
        return ""
    return "".join(linecache.getlines(file)).strip("\n")


# Saved answers ----------------------------------------------------------------------------------


class Answer(NamedTuple):
    """A saved answer: when it was checked, whether it passed, the text of its cell, and its file."""

    when: datetime
    passed: bool
    text: str
    file: Path


@dataclass(frozen=True)
class Answers:
    """The saved answers to an exercise, the newest first."""

    name: str
    all: tuple[Answer, ...]

    def __repr__(self) -> str:
        if not self.all:
            return f"{self.name}: no answer is kept; one is when its check has run."
        lines = [f"{self.name}: answers kept in {self.all[0].file.parent}: {len(self.all)}"]
        for answer in self.all:
            note = ", passed" if answer.passed else ""
            lines.append(f"\n# {answer.when:%Y-%m-%d %H:%M}{note}\n{answer.text}")
        return "\n".join(lines)


def save_answer(exercise: str, text: str, *, passed: bool = False) -> None:
    """Save an answer, if the reader's home can be written.

    Args:
        exercise: chapter's slug and check's name, "kernel_regression/fixed_loss".
        text: of its cell; an empty one, or one over `LONGEST`, is not saved.
        passed: whether the check passed.
    """
    if strict() or not 0 < len(text.strip()) <= LONGEST:
        return
    with contextlib.suppress(OSError, RuntimeError):
        before = saved_answers(exercise)
        if before and before[0].text == text and before[0].passed >= passed:
            return
        passed = passed or any(answer.passed for answer in before if answer.text == text)
        name = f"{datetime.now().strftime(STAMP)}{PASSED * passed}.py"
        with private_write(_folder(exercise) / name) as part:
            part.write_text(text, encoding="utf-8")
        for old in _superseded(saved_answers(exercise)):
            old.file.unlink(missing_ok=True)


def saved_answers(exercise: str) -> tuple[Answer, ...]:
    """The saved answers to an exercise, the newest first."""
    if strict():
        return ()
    with contextlib.suppress(OSError, RuntimeError):
        return tuple(_read(sorted(_folder(exercise).glob("*.py"), reverse=True)))
    return ()


def _folder(exercise: str) -> Path:
    return home() / "answers" / exercise


def _read(files: Iterable[Path]) -> Iterator[Answer]:
    for file in files:
        with contextlib.suppress(OSError, ValueError):  # gone since, or a file of the reader's
            when = datetime.strptime(file.stem.removesuffix(PASSED), STAMP)
            yield Answer(when, file.stem.endswith(PASSED), file.read_text(encoding="utf-8"), file)


def _superseded(answers: tuple[Answer, ...]) -> Iterator[Answer]:
    """Answers to delete: older copies of a text, and those beyond `MAX_ANSWERS`, except the newest that passed."""
    newest_pass = next((answer for answer in answers if answer.passed), None)
    seen: set[str] = set()
    for answer in answers:
        if answer.text in seen or (len(seen) >= MAX_ANSWERS and answer is not newest_pass):
            yield answer
        seen.add(answer.text)


def start_over(exercise: str) -> str:
    """Turn the cell that runs into the stub of an exercise, and save the answer; returns a message for the reader.

    The cell may be a new one, or the answer's own with the call in a line of it. If it holds what is not saved, as
    where the reader's home cannot be written, it stays, and the stub comes in a cell below.

    Raises:
        LookupError: the stub is not there.
    """
    from IPython.core.getipython import get_ipython

    name = exercise.partition("/")[2]
    stub = exercises.stub(name)
    shell = get_ipython()
    if shell is None:
        return stub
    function = exercises.defined_name(stub)
    answer = ""
    for text in (cell_of(shell.user_ns.get(function)), shell.history_manager.input_hist_raw[-1]):
        lines = [line for line in text.splitlines() if f".{name}.start_over(" not in line]
        answer = "\n".join(lines).strip("\n")
        if answer != stub and exercises.defines(answer, function):
            save_answer(exercise, answer)
    saved = saved_answers(exercise)
    replace = answer in ("", stub, *(old.text for old in saved))
    shell.set_next_input(stub, replace=replace)
    shell.ex(stub)  # so that the check that follows sees what the cell shows
    kept = f" Your answers are kept: cu.checks.{name}.answers()" if saved else ""
    return f"{name}: the stub, as it was handed out.{kept}"
