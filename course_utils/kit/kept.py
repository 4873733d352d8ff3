"""Answers that outlive their notebook: the cell of an exercise is kept in the reader's home when its check runs.

A notebook may be deleted, pulled over or unzipped over; then the check of the stub says where the answer is.

    ~/.attention-course/answers/kernel_regression/fixed_loss/2026-11-25_14-03-12_123456_passed.py

Files and folders are the reader's alone, and are never sent. Of an exercise the newest `MOST` are kept, and the newest
that passed. With COURSE_STRICT=1 nothing is read or written.
"""

import inspect
import linecache
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from course_utils.files import home, private_write
from course_utils.kit import exercises
from course_utils.kit.guard import strict

MOST = 5
LONGEST = 100_000
"""Characters of a cell that is kept."""

STAMP = "%Y-%m-%d_%H-%M-%S_%f"
PASSED = "_passed"


class Answer(NamedTuple):
    """An answer, as its cell had it when the check ran.

    Attributes:
        when: the time of that.
        passed: whether it passed.
        text: of the cell.
        file: which holds it.
    """

    when: datetime
    passed: bool
    text: str
    file: Path


@dataclass(frozen=True)
class Answers:
    """The answers to an exercise, the newest first."""

    name: str
    all: tuple[Answer, ...]

    def __repr__(self) -> str:
        if not self.all:
            return f"{self.name}: no answer is kept; one is when its check has run."
        lines = [f"{self.name}: answers kept in {self.all[0].file.parent}: {len(self.all)}"]
        for one in self.all:
            passed = ", passed" if one.passed else ""
            lines.append(f"\n# {one.when:%Y-%m-%d %H:%M}{passed}\n{one.text}")
        return "\n".join(lines)


def cell_file(thing: Any) -> str | None:
    """The file name of the cell in which a function, or a method of a class, stands."""
    written = vars(thing).values() if isinstance(thing, type) else [thing]
    codes = (getattr(inspect.unwrap(one), "__code__", None) for one in written if callable(one))
    return next((code.co_filename for code in codes if code), None)


def cell_of(thing: Any) -> str:
    """The text of the notebook's cell that defines a function or class; empty where it comes from elsewhere."""
    file = cell_file(thing) if getattr(thing, "__module__", "") == "__main__" else None
    return (
        ""
        if file is None or Path(file).is_file()
        else "".join(linecache.getlines(file)).strip("\n")
    )


def keep(exercise: str, text: str, *, passed: bool = False) -> None:
    """Keep an answer, if the reader's home can be written.

    Args:
        exercise: chapter's slug and check's name, "kernel_regression/fixed_loss".
        text: of its cell; nothing is kept of an empty one, or of one over `LONGEST`.
        passed: whether the check passed.
    """
    if strict() or not 0 < len(text.strip()) <= LONGEST:
        return
    with suppress(OSError, RuntimeError):
        before = answers(exercise)
        if before and before[0].text == text and before[0].passed >= passed:
            return
        passed = passed or any(one.passed for one in before if one.text == text)
        name = f"{datetime.now().strftime(STAMP)}{PASSED * passed}.py"
        with private_write(_folder(exercise) / name) as part:
            part.write_text(text, encoding="utf-8")
        for old in _superseded(answers(exercise)):
            old.file.unlink(missing_ok=True)


def answers(exercise: str) -> tuple[Answer, ...]:
    """What is kept of an exercise, the newest first."""
    if strict():
        return ()
    with suppress(OSError, RuntimeError):
        return tuple(_read(sorted(_folder(exercise).glob("*.py"), reverse=True)))
    return ()


def _folder(exercise: str) -> Path:
    return home() / "answers" / exercise


def _read(files: list[Path]) -> Iterator[Answer]:
    for file in files:
        with suppress(OSError, ValueError):  # gone since, or a file of the reader's
            when = datetime.strptime(file.stem.removesuffix(PASSED), STAMP)
            text = file.read_text(encoding="utf-8")
            yield Answer(when, file.stem.endswith(PASSED), text, file)


def _superseded(known: tuple[Answer, ...]) -> Iterator[Answer]:
    """Older copies of a text, and those beyond `MOST`, but for the newest that passed."""
    last = next((one for one in known if one.passed), None)
    seen: set[str] = set()
    for one in known:
        if one.text in seen or (len(seen) >= MOST and one is not last):
            yield one
        seen.add(one.text)


# Starting over ----------------------------------------------------------------------------------


def start_over(exercise: str) -> str:
    """Put the stub of an exercise in the place of the cell that runs, and keep the answer; what to say then.

    The cell may be a new one, or the answer's own with the call in a line of it. If it holds what is not kept, as
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
    function = exercises.defined(stub)
    answer = ""
    for text in (cell_of(shell.user_ns.get(function)), shell.history_manager.input_hist_raw[-1]):
        lines = [line for line in text.splitlines() if f".{name}.start_over(" not in line]
        answer = "\n".join(lines).strip("\n")
        if answer != stub and exercises.defines(answer, function):
            keep(exercise, answer)
    alone = answer in ("", stub) or answer in [one.text for one in answers(exercise)]
    shell.set_next_input(stub, replace=alone)
    shell.ex(stub)  # so that the check that follows sees what the cell shows
    said = f"{name}: the stub, as it was handed out."
    kept = f" Your answers are kept: cu.checks.{name}.answers()"
    return said + (kept if answers(exercise) else "")
