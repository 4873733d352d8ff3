"""What the reader has passed: remembered in the reader's home, and used from then on.

A check that passes is noted under its exercise with the day and a digest of the reader's code, never the
code, in progress.json of `course_utils.files.home`. Where that file cannot be written, the session remembers
and says so. With COURSE_STRICT=1 nothing is read, written or remembered, so that every run gives the same.
"""

import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Iterator
from datetime import date
from types import CodeType, FunctionType
from typing import Any

from course_utils.files import home, locked, private_write
from course_utils.kit.guard import strict

FILE = "progress.json"

PATIENCE = 5
"""Seconds to wait for another kernel that writes; afterwards only the session remembers."""

Entry = dict[str, str]
"""Of one exercise: `day`, `name` of the reader's function or class, and `code`, its digest."""

_session: dict[str, Entry] = {}


# The record -------------------------------------------------------------------------------------


def note(exercise: str, candidate: Any) -> None:
    """Remember that a candidate passed the check of an exercise, unless it is a solution or the course's own.

    Args:
        exercise: chapter's slug and check's name, "kernel_regression/loo_residuals".
        candidate: the reader's function or class.
    """
    name = getattr(candidate, "__name__", "")
    if strict() or not name or name.endswith("_solution") or is_ours(candidate):
        return
    _session[exercise] = {
        "day": date.today().isoformat(),
        "name": name,
        "code": _digest(candidate),
    }
    try:
        file = home() / FILE
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(file, PATIENCE), private_write(file) as part:
            entries = json.dumps({"passed": _read() | _session}, indent=1, sort_keys=True)
            part.write_text(entries, encoding="utf-8")
    except (OSError, RuntimeError) as error:  # no home, or another kernel that hangs
        _say_unkept(" ".join(str(error).split()))


@functools.cache
def _say_unkept(reason: str) -> None:
    """Once for each reason: the next session will not know of it."""
    print("What you pass is remembered until this session ends, and no longer:", reason)


def recorded() -> dict[str, Entry]:
    """All exercises that passed, in this session or before."""
    return {} if strict() else _read() | _session


def _read() -> dict[str, Entry]:
    """What the file holds; nothing if there is none, or if it is no record."""
    try:
        text = (home() / FILE).read_text(encoding="utf-8")
        entries = json.loads(text)["passed"].items()
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {exercise: entry for exercise, entry in entries if _is_entry(entry)}


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and all(
        isinstance(entry.get(key), str) for key in ("day", "name", "code")
    )


def is_ours(candidate: Any) -> bool:
    """Whether a function or class was written in this package, so not by the reader."""
    written = inspect.isfunction(candidate) or isinstance(candidate, type)
    module = inspect.unwrap(candidate).__module__ if written else None
    return (module or "").split(".")[0] == "course_utils"


def _digest(candidate: Any) -> str:
    """Of the code of a function or class, and of its helpers on the same page."""
    text = "\n".join(_parts(candidate, set()))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _parts(thing: Any, seen: set[int]) -> Iterator[str]:
    """The code of a function, a class or a plain value as texts that are the same in each session."""
    thing = getattr(thing, "__func__", thing)  # of a staticmethod or a classmethod
    thing = inspect.unwrap(thing) if callable(thing) else thing
    if _is_plain(thing):
        yield repr(thing)
    elif id(thing) not in seen:
        seen.add(id(thing))
        if isinstance(thing, property):
            yield from _parts(thing.fget, seen)
        elif isinstance(thing, type):
            yield from _class_parts(thing, seen)
        elif inspect.isfunction(thing):
            yield from _function_parts(thing, seen)


def _class_parts(thing: type, seen: set[int]) -> Iterator[str]:
    for base in thing.__bases__:
        yield base.__qualname__
        if base.__module__ == thing.__module__:
            yield from _parts(base, seen)
    for name, value in sorted(vars(thing).items()):
        if name not in ("__dict__", "__weakref__", "__firstlineno__"):
            yield name
            yield from _parts(value, seen)


def _function_parts(thing: FunctionType, seen: set[int]) -> Iterator[str]:
    yield repr([value for value in thing.__defaults__ or () if _is_plain(value)])
    for code in _codes(thing.__code__):
        yield code.co_code.hex()
        yield repr((code.co_names, code.co_varnames))
        for value in code.co_consts:
            if not isinstance(value, CodeType):  # a set's order changes from session to session
                yield repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)
        for name in code.co_names:
            helper = thing.__globals__.get(name)
            written = inspect.isfunction(helper) or isinstance(helper, type)
            if written and helper.__module__ == thing.__module__:
                yield from _parts(helper, seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of all functions and comprehensions in it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _codes(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | tuple)


# Whose part is it -------------------------------------------------------------------------------


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
        raise TypeError(f"theirs={theirs!r}; the course's class or function is needed")
    part = getattr(theirs, "__name__", type(theirs).__name__)
    name = getattr(mine, "__name__", "")
    entries = recorded().values()
    if name and not is_ours(mine) and _digest(mine) in {entry["code"] for entry in entries}:
        print(f"{part}: yours, {name}")
        return mine
    reason = ""
    if name and not strict() and not is_ours(mine):
        changed = name in {entry["name"] for entry in entries}
        state = (
            "was changed since it passed: run its check again"
            if changed
            else "has not passed its check yet"
        )
        reason = f"; {name} {state}"
    ours = "the course's"
    print(f"{part}: {ours}{reason}")
    return theirs
