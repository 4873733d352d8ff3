"""The table of exercises: which the reader has passed, by chapter, and a file of it that a reader may send."""

import contextlib
import html
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from course_utils.files import atomic_write
from course_utils.kit.collection import checks
from course_utils.kit.contents import left_out, titles
from course_utils.kit.guard import strict
from course_utils.kit.passed import Entry, recorded

EXPORTED = "my_progress.json"


@dataclass(frozen=True)
class Chapter:
    """The exercises of a chapter.

    Attributes:
        title: of the chapter.
        exercises: name of each check → the day on which it passed; empty where it has not.
    """

    title: str
    exercises: dict[str, str]

    @property
    def passed(self) -> int:
        """How many have passed."""
        return sum(map(bool, self.exercises.values()))


@dataclass(frozen=True, repr=False)
class Progress:
    """A table of the exercises: by chapter, with what has passed."""

    chapters: tuple[Chapter, ...]

    @property
    def headline(self) -> str:
        """How many of all exercises have passed."""
        total = sum(len(chapter.exercises) for chapter in self.chapters)
        held = sum(chapter.passed for chapter in self.chapters)
        return f"{held} of {total} exercises passed"

    def __repr__(self) -> str:
        lines = [self.headline]
        width = max((len(chapter.title) for chapter in self.chapters), default=0)
        for one in self.chapters:
            marks = ", ".join(
                f"{'✓' if day else '·'} {name}" for name, day in one.exercises.items()
            )
            lines.append(f"{one.title:{width}}  {one.passed} of {len(one.exercises)}  {marks}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="text-align: left">{html.escape(one.title)}</th>'
            f"<td>{one.passed} of {len(one.exercises)}</td>"
            f'<td style="text-align: left">{", ".join(_cell(*item) for item in one.exercises.items())}</td></tr>'
            for one in self.chapters
        )
        head = "<tr><th>chapter</th><th>passed</th><th>exercises</th></tr>"
        return f"<table><caption>{self.headline}</caption><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _cell(name: str, day: str) -> str:
    text = html.escape(name)
    return f"✓ <strong>{text}</strong> ({html.escape(day)})" if day else f"· {text}"


def progress(*, export: bool = False) -> Progress:
    """Which exercises the reader has passed, as a table.

    Args:
        export: write `my_progress.json` into the current folder, too: names and days of what has
            passed, and nothing of the code. A reader may send it to somebody; the course sends nothing.
    """
    found = Progress(tuple(_chapters(recorded())))
    if export and not strict():
        _export(found)
    return found


def _chapters(entries: dict[str, Entry]) -> Iterator[Chapter]:
    """In the book's order, those with exercises."""
    known: dict[str, dict[str, str]] = {}
    for name in dir(checks):
        check = getattr(checks, name)
        slug, _, title = check.exercise.partition("/")
        known.setdefault(slug, {})[title] = entries.get(check.exercise, {}).get("day", "")
    for slug in _left_out():
        known.pop(slug, None)
    for slug, title in _titles().items():
        if slug in known:
            yield Chapter(title, known.pop(slug))
    for slug, exercises in known.items():
        yield Chapter(slug.replace("_", " ").capitalize(), exercises)


def _titles() -> dict[str, str]:
    """Slug → title, in the order of book.toml."""
    with contextlib.suppress(OSError, ValueError):
        return {_slug(notebook): title for notebook, title in titles().items()}
    return {}


def _left_out() -> set[str]:
    """The slugs of the chapters that the course does not choose."""
    with contextlib.suppress(OSError, ValueError):
        return {_slug(notebook) for notebook in left_out()}
    return set()


def _slug(notebook: str) -> str:
    return notebook.partition("_")[2]


def _export(found: Progress) -> None:
    passed = {
        one.title: {name: day for name, day in one.exercises.items() if day}
        for one in found.chapters
    }
    passed = {title: exercises for title, exercises in passed.items() if exercises}
    try:
        with atomic_write(Path(EXPORTED)) as part:
            content = {
                "day": date.today().isoformat(),
                "progress": found.headline,
                "passed": passed,
            }
            part.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        print(f"{EXPORTED} cannot be written here: {error.strerror or error}")
    else:
        print(f"{EXPORTED} is written: exercises and days, and nothing of your code")
