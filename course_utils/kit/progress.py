"""What the reader has done: the exercises that have passed, and the answers that were checked.

Both are in the reader's home (`course_utils.files.home`), readable for the reader alone, and are never sent.

    progress.json                                                        day of each pass, and a digest of the code
    answers/kernel_regression/fixed_loss/2026-11-25_14-03-12_123456_passed.py       the text of a cell

A notebook may be deleted, pulled over or unzipped over: its answers stay. Where the home cannot be written, the
session remembers what has passed, and says so. With COURSE_STRICT=1 nothing is read, written or remembered, so every
run gives the same.
"""

import ast
import contextlib
import functools
import hashlib
import html
import inspect
import json
import linecache
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from course_utils.files import atomic_write, home, locked, private_write
from course_utils.kit import exercises
from course_utils.kit.contents import left_out, slug, titles
from course_utils.kit.guard import strict

FILE = "progress.json"
EXPORTED = "my_progress.json"

PATIENCE = 5
"""Seconds to wait for another kernel that writes; afterwards only the session remembers."""

MAX_ANSWERS = 5
"""So many answers to an exercise are saved, the newest, and the newest that passed."""

LONGEST = 100_000
"""Characters of a cell that is saved."""

Entry = dict[str, str]
"""Of an exercise that has passed: `day`, `name` of the reader's function or class, and `code`, its digest."""

_session: dict[str, Entry] = {}


# What has passed --------------------------------------------------------------------------------


def record_pass(exercise: str, candidate: Any) -> None:
    """Remember that a candidate passed the check of an exercise, unless it is a solution or the course's own.

    Args:
        exercise: chapter's slug and check's name, "kernel_regression/loo_residuals".
        candidate: the reader's function or class.
    """
    name = getattr(candidate, "__name__", "")
    if strict() or not name or name.endswith("_solution") or is_ours(candidate):
        return
    day = date.today().isoformat()
    _session[exercise] = {"day": day, "name": name, "code": _digest(candidate)}
    try:
        file = home() / FILE
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(file, PATIENCE), private_write(file) as part:
            entries = json.dumps({"passed": passed_exercises()}, indent=1, sort_keys=True)
            part.write_text(entries, encoding="utf-8")
    except (OSError, RuntimeError) as error:  # no home, or another kernel that hangs
        _say_once(" ".join(str(error).split()))


@functools.cache
def _say_once(reason: str) -> None:
    print("What you pass is remembered until this session ends, and no longer:", reason)


def passed_exercises() -> dict[str, Entry]:
    """All exercises that passed, in this session or before; what is no record counts as empty."""
    if strict():
        return {}
    try:
        entries = json.loads((home() / FILE).read_text(encoding="utf-8"))["passed"].items()
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        return _session.copy()
    return {exercise: entry for exercise, entry in entries if _is_entry(entry)} | _session


def _is_entry(entry: Any) -> bool:
    keys = ("day", "name", "code")
    return isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in keys)


def is_ours(candidate: Any) -> bool:
    """Whether a function or class was written in this package, so not by the reader."""
    has_module = inspect.isfunction(candidate) or isinstance(candidate, type)
    module = inspect.unwrap(candidate).__module__ if has_module else None
    return (module or "").split(".")[0] == "course_utils"


def choose(mine: Any, theirs: Callable[..., Any]) -> Any:
    """The reader's class or function if its check has passed, else the course's; prints whose it is.

        Block = cu.choose(MyBlock, cu.Block)

    So a chapter trains what the reader has built, and goes on without it. A class that was changed after
    it passed has to pass again. With COURSE_STRICT=1 it is always the course's.

    Args:
        mine: what the exercise asks for; a stub, or None.
        theirs: the course's own.

    Raises:
        TypeError: `theirs` is neither a class nor a function.
    """
    if not callable(theirs):
        raise TypeError(f"got theirs={theirs!r}, expected the course's class or function")
    title = getattr(theirs, "__name__", type(theirs).__name__)
    name = getattr(mine, "__name__", "")
    reason = ""
    if name and not strict() and not is_ours(mine):
        entries = passed_exercises().values()
        if (code := _digest(mine)) and code in {entry["code"] for entry in entries}:
            print(f"{title}: yours, {name}")
            return mine
        if name in {entry["name"] for entry in entries}:
            reason = f"; {name} was changed since it passed: run its check again"
        else:
            reason = f"; {name} has not passed its check yet"
    print(f"{title}: the course's{reason}")
    return theirs


def _digest(candidate: Any) -> str:
    """Of the cell or file that defines a function or class, without its comments; empty where there is none."""
    try:
        source = cell_of(candidate) or textwrap.dedent(inspect.getsource(candidate))
        text = ast.dump(ast.parse(source))
    except (OSError, TypeError, SyntaxError):
        return ""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


# Saved answers ----------------------------------------------------------------------------------

STAMP = "%Y-%m-%d_%H-%M-%S_%f"
PASSED = "_passed"


class Answer(NamedTuple):
    """An answer, as its cell was when the check ran, whether it passed, and the file that holds it."""

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
    """Older copies of a text, and those beyond `MAX_ANSWERS`, but for the newest that passed."""
    newest_pass = next((answer for answer in answers if answer.passed), None)
    seen: set[str] = set()
    for answer in answers:
        if answer.text in seen or (len(seen) >= MAX_ANSWERS and answer is not newest_pass):
            yield answer
        seen.add(answer.text)


def start_over(exercise: str) -> str:
    """Turn the cell that runs into the stub of an exercise, and save the answer; returns what to say then.

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
    function = exercises.defined(stub)
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
    where = f" Your answers are kept: cu.checks.{name}.answers()" if saved else ""
    return f"{name}: the stub, as it was handed out.{where}"


# The table --------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Progress:
    """A table of the exercises.

    Attributes:
        chapters: title → name of each check → the day on which it passed; empty where it has not.
    """

    chapters: dict[str, dict[str, str]]

    @property
    def headline(self) -> str:
        """How many of all exercises have passed."""
        days = [day for exercises in self.chapters.values() for day in exercises.values()]
        return f"{sum(map(bool, days))} of {len(days)} exercises passed"

    def __repr__(self) -> str:
        width = max(map(len, self.chapters), default=0)
        lines = [self.headline]
        for title, days in self.chapters.items():
            marks = ", ".join(f"{'✓' if day else '·'} {name}" for name, day in days.items())
            lines.append(f"{title:{width}}  {_count(days)}  {marks}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="text-align: left">{html.escape(title)}</th><td>{_count(days)}</td>'
            f'<td style="text-align: left">{", ".join(map(_html, days, days.values()))}</td></tr>'
            for title, days in self.chapters.items()
        )
        head = "<tr><th>chapter</th><th>passed</th><th>exercises</th></tr>"
        return f"<table><caption>{self.headline}</caption><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _count(days: dict[str, str]) -> str:
    return f"{sum(map(bool, days.values()))} of {len(days)}"


def _html(name: str, day: str) -> str:
    text = html.escape(name)
    return f"✓ <strong>{text}</strong> ({html.escape(day)})" if day else f"· {text}"


def progress(*, export: bool = False) -> Progress:
    """Which exercises the reader has passed, as a table.

    Args:
        export: write `my_progress.json` into the current folder, too: names and days of what has
            passed, and nothing of the code. A reader may send it to somebody; the course sends nothing.
    """
    table = Progress(_chapters())
    if export and not strict():
        _export(table)
    return table


def _chapters() -> dict[str, dict[str, str]]:
    """The chapters with exercises, in the book's order."""
    from course_utils.kit.registry import checks  # which knows this file

    entries = passed_exercises()
    chapters: dict[str, dict[str, str]] = {slug(notebook): {} for notebook in titles()}
    for name in dir(checks):
        exercise = getattr(checks, name).exercise
        chapter, _, title = exercise.partition("/")
        chapters.setdefault(chapter, {})[title] = entries.get(exercise, {}).get("day", "")
    known = {slug(notebook): title for notebook, title in titles().items()}
    absent = {slug(notebook) for notebook in left_out()}
    return {
        known.get(chapter, chapter.replace("_", " ").capitalize()): days
        for chapter, days in chapters.items()
        if days and chapter not in absent
    }


def _export(table: Progress) -> None:
    passed = {
        title: {name: day for name, day in days.items() if day}
        for title, days in table.chapters.items()
        if any(days.values())
    }
    content = {"day": date.today().isoformat(), "progress": table.headline, "passed": passed}
    try:
        with atomic_write(Path(EXPORTED)) as part:
            part.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        print(f"{EXPORTED} cannot be written here: {error.strerror or error}")
    else:
        print(f"{EXPORTED} is written: exercises and days, and nothing of your code")
