"""What the grader writes: marks.csv, a page for each student, and an overview with the commonest mistakes."""

import csv
import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from course_utils.files import atomic_write
from course_utils.studio.grading.judge import OPEN, Mark
from course_utils.studio.grading.submissions import shown

COLUMNS = ("student", "chapter", "exercise", "held", "total", "points", "reason")
COMMONEST = 15  # mistakes on the overview
STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top; }
thead th { vertical-align: bottom; }
td.share { text-align: center; min-width: 4.5rem; color: #111; }
pre { background: var(--soft); padding: .7rem 1rem; overflow-x: auto; white-space: pre-wrap; }
.scroll { overflow-x: auto; }
.whole { background: #9fd8b4; } .most { background: #d3e9b5; } .half { background: #f7e3a1; }
.little { background: #f6c9a4; } .none { background: #eeb0b0; } .open { background: #d5dceb; }
"""


def write(marks: Sequence[Mark], to: Path) -> None:
    """Write all of it into a folder, which is made if need be; pages of an earlier time go.

    Args:
        marks: in the order of the table.
        to: the folder.
    """
    pages = to / "students"
    pages.mkdir(parents=True, exist_ok=True)
    for old in pages.glob("*.html"):
        old.unlink()
    _csv(marks, to / "marks.csv")
    students = _grouped(marks)
    names = {student: f"{n:03}-{_slug(student)}.html" for n, student in enumerate(students, 1)}
    for student, own in students.items():
        _write(pages / names[student], student, _student(student, own))
    _write(to / "index.html", "Marks", _overview(students, names))


def _grouped(marks: Iterable[Mark]) -> dict[str, list[Mark]]:
    students: dict[str, list[Mark]] = {}
    for mark in marks:
        students.setdefault(mark.student, []).append(mark)
    return students


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", name)[:40].strip("-") or "student"


def _csv(marks: Sequence[Mark], path: Path) -> None:
    with atomic_write(path) as part, part.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for mark in marks:
            table.writerow([_cell(getattr(mark, column)) for column in COLUMNS])


def _cell(value: object) -> str:
    """As a spreadsheet shows it, and does not compute it."""
    text = "" if value is None else f"{value:g}" if isinstance(value, float) else shown(str(value))
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def _write(path: Path, title: str, body: str) -> None:
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title>'
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    page = f'<!doctype html>\n<html lang="en"><head>{head}{view}<style>{STYLE}</style></head>\n'
    with atomic_write(path) as part:
        text = f"{page}<body><main>\n{body}\n</main></body></html>\n"
        part.write_text(text, encoding="utf-8", errors="replace")


# A student --------------------------------------------------------------------------------------


def _student(student: str, marks: Sequence[Mark]) -> str:
    """The page of one student."""
    gained, open_ones = total(marks), sum(mark.total is None for mark in marks)
    left = f", and {open_ones} to be read" if open_ones else ""
    parts = [
        '<p><a href="../index.html">All students</a></p>',
        f"<h1>{html.escape(student)}</h1>",
        f"<p>{_points(gained)}{left}.</p>",
    ]
    chapter = None
    for mark in marks:
        if mark.chapter != chapter:
            chapter = mark.chapter
            parts.append(f"<h2>{html.escape(chapter)}</h2>")
        parts.append(f"<h3>{html.escape(mark.title)}</h3>")
        held = (
            ""
            if mark.total is None
            else f"{mark.held} of {mark.total} hold, {_points(mark.points)}"
        )
        said = ". ".join(part for part in (held, mark.reason) if part)
        parts.append(f"<p>{html.escape(said)}</p>")
        if mark.text:
            parts.append(f"<pre>{html.escape(mark.text)}</pre>")
        if mark.report:
            parts.append(f"<pre>{html.escape(mark.report)}</pre>")
    return "\n".join(parts)


def _points(number: float | None) -> str:
    return f"{number:g} point{'' if number == 1 else 's'}"


def total(marks: Iterable[Mark]) -> float:
    """The points of these marks together."""
    return round(sum(mark.points or 0.0 for mark in marks), 2)


# The overview -----------------------------------------------------------------------------------


def _overview(students: dict[str, list[Mark]], names: dict[str, str]) -> str:
    """Students by exercises, and the mistakes."""
    first = next(iter(students.values()))
    columns = [(mark.chapter, mark.exercise, mark.title) for mark in first]
    head = "".join(
        f'<th scope="col">{html.escape(chapter.partition("_")[0])}<br>{html.escape(title)}</th>'
        for chapter, _, title in columns
    )
    rows = []
    for student, marks in students.items():
        known = {(mark.chapter, mark.exercise): mark for mark in marks}
        cells = "".join(_share(known.get((chapter, name))) for chapter, name, _ in columns)
        link = f'<a href="students/{names[student]}">{html.escape(student)}</a>'
        rows.append(f'<tr><th scope="row">{link}</th>{cells}<td>{total(marks):g}</td></tr>')
    means = "".join(_mean(students, chapter, name) for chapter, name, _ in columns)
    return "\n".join(
        [
            "<h1>Marks</h1>",
            f"<p>{len(students)} students. A cell shows how many properties of an exercise hold.</p>",
            '<div class="scroll"><table><thead><tr><th scope="col">student</th>'
            f'{head}<th scope="col">points</th></tr></thead>',
            f"<tbody>{''.join(rows)}</tbody>",
            f'<tfoot><tr><th scope="row">mean</th>{means}<td></td></tr></tfoot></table></div>',
            _mistakes(students),
        ]
    )


def _share(mark: Mark | None) -> str:
    if mark is None:
        return '<td class="share"></td>'
    if mark.total is None:
        return f'<td class="share open">{"read" if OPEN in mark.reason else "–"}</td>'
    share = (mark.held or 0) / mark.total
    return f'<td class="share {_shade(share)}">{mark.held} of {mark.total}</td>'


def _shade(share: float) -> str:
    steps = ((1.0, "whole"), (2 / 3, "most"), (1 / 3, "half"), (1e-9, "little"))
    return next((name for least, name in steps if share >= least), "none")


def _mean(students: dict[str, list[Mark]], chapter: str, name: str) -> str:
    of_all = [mark for marks in students.values() for mark in marks]
    shares = [
        (mark.held or 0) / mark.total
        for mark in of_all
        if (mark.chapter, mark.exercise) == (chapter, name) and mark.total
    ]
    if not shares:
        return '<td class="share"></td>'
    mean = sum(shares) / len(shares)
    return f'<td class="share {_shade(mean)}">{mean:.0%}</td>'


def _mistakes(students: dict[str, list[Mark]]) -> str:
    """What most often did not hold."""
    counts = Counter(
        (mark.title, mark.missed) for marks in students.values() for mark in marks if mark.missed
    )
    if not counts:
        return ""
    rows = "".join(
        f"<tr><td>{count}</td><td>{html.escape(title)}</td><td>{html.escape(missed)}</td></tr>"
        for (title, missed), count in counts.most_common(COMMONEST)
    )
    head = "".join(f'<th scope="col">{word}</th>' for word in ("students", "exercise", "sentence"))
    return (
        "<h2>What most often does not hold</h2>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )
