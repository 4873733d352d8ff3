"""The record of passed exercises, in the reader's home, and the reader's own part where its check has passed.

    progress.json        for each exercise the day of its pass, the function's name, and a digest of its code

The file is readable for the reader alone (`course_utils.files.home`) and is never sent. Where the home cannot be
written, the session remembers what has passed, and says so. With COURSE_STRICT=1 nothing is read, written or
remembered, so every run gives the same.
"""

import ast
import functools
import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable
from datetime import date
from typing import Any

from course_utils.files import home, locked, private_write
from course_utils.kit.answers import cell_of, is_ours
from course_utils.kit.guard import strict

FILE = "progress.json"

PATIENCE = 5
"""Seconds to wait for another kernel that writes; afterwards only the session remembers."""

Entry = dict[str, str]
"""Record of an exercise that has passed: `day`, `name` of the reader's function or class, and `code`, its digest."""

_session: dict[str, Entry] = {}


def record_pass(exercise: str, candidate: Any) -> None:
    """Record that a candidate passed the check of an exercise, unless it is a solution or the course's own.

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
    """The exercises that passed, in this session or before, and their entries; a broken file counts as empty."""
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
    """Digest of the cell or file that defines a function or class, without its comments; empty without a source."""
    try:
        source = cell_of(candidate) or textwrap.dedent(inspect.getsource(candidate))
        text = ast.dump(ast.parse(source))
    except (OSError, TypeError, SyntaxError):
        return ""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
