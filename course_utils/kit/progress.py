"""The table of exercises and of the days on which the reader passed them: `cu.progress()`."""

import html
import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from course_utils.files import atomic_write
from course_utils.kit.contents import left_out, slug, titles
from course_utils.kit.guard import strict
from course_utils.kit.passed import passed_exercises
from course_utils.kit.registry import checks

EXPORTED = "my_progress.json"


@dataclass(frozen=True, repr=False)
class ProgressTable:
    """A table of the exercises.

    Attributes:
        chapters: title → name of each check → the day on which it passed; empty where it has not.
    """

    chapters: dict[str, dict[str, str]]

    @property
    def headline(self) -> str:
        """The sentence "3 of 60 exercises passed"."""
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


def progress(*, export: bool = False) -> ProgressTable:
    """The table of the exercises that the reader has passed.

    Args:
        export: write `my_progress.json` into the current folder, too: names and days of what has
            passed, and nothing of the code. A reader may send it to somebody; the course sends nothing.
    """
    table = ProgressTable(_chapters())
    if export and not strict():
        _export(table)
    return table


def _chapters() -> dict[str, dict[str, str]]:
    """The chapters with exercises, in the book's order."""
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


def _export(table: ProgressTable) -> None:
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
