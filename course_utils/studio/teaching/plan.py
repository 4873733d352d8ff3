"""``make plan WEEKS=12 MINUTES=135``: the course, or a way through it, shared among the weeks of a semester.

In class is what a reader does with the text: reading, running, predictions and questions. At home are the exercises.
Both are the minutes of the README. Chapters keep their order, so that what a chapter needs comes before it; weeks are
as even as sections allow, and a chapter is divided only where that helps. `_build/plan` gets the table as Markdown,
as CSV, and as a page to print.
"""

import argparse
import csv
import html
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path

from course_utils.files import ROOT, atomic_write
from course_utils.studio import StudioError
from course_utils.studio.manifest import Chapter, Manifest, load
from course_utils.studio.page import Page

DIVIDED = 0.1
"""What it costs that a week ends within a chapter; that it is 30 % too long or too short costs nearly as much."""
HEADS = ("Week", "Chapters", "Needs", "Minutes in class", "Minutes at home")


class PlanError(StudioError):
    """A plan that cannot be made: by how much, and what can."""


@dataclass(frozen=True)
class Unit:
    """A section of a chapter, or a chapter without sections.

    Attributes:
        chapter: which.
        title: of the section.
        in_class, at_home: minutes, before rounding.
        last: whether the chapter ends with it.
        whole: how many sections the chapter has.
    """

    chapter: Chapter
    title: str
    in_class: float
    at_home: float
    last: bool
    whole: int


def units(course: Manifest, way: str = "") -> list[Unit]:
    """All sections of the course, or of a way through it, in order.

    Raises:
        PlanError: there is no such way.
    """
    if not way:
        return [unit for chapter in course.chapters for unit in _of(chapter, ())]
    named = {one.title.casefold(): one for one in course.ways}
    if way.casefold() not in named:
        raise PlanError(
            f"There is no way {way!r}; there are {', '.join(w.title for w in course.ways)}."
        )
    stems = {chapter.notebook: chapter for chapter in course.chapters}
    stops = named[way.casefold()].stops
    return [unit for stop in stops for unit in _of(stems[stop.chapter], stop.sections)]


@cache
def _of(chapter: Chapter, titles: tuple[str, ...]) -> list[Unit]:
    page = chapter.page
    if page is None:
        return []
    around = page.only(())  # what belongs to no section goes with the first one
    every = [section.title for section in page.sections]
    taken = [title for title in every if not titles or title in titles]
    found = []
    for place, title in enumerate(taken):
        alone = page.only((title,))
        part = [
            alone.class_minutes - around.class_minutes,
            alone.home_minutes - around.home_minutes,
        ]
        if place == 0:
            part = [part[0] + around.class_minutes, part[1] + around.home_minutes]
        found.append(Unit(chapter, title, *part, last=title == taken[-1], whole=len(every)))
    return found or [_unit(chapter, page)]


def _unit(chapter: Chapter, page: Page) -> Unit:
    return Unit(chapter, chapter.title, page.class_minutes, page.home_minutes, last=True, whole=1)


def share(found: Sequence[Unit], weeks: int, minutes: int) -> list[list[Unit]]:
    """Share units among weeks, in order; none has more minutes in class than there are.

    Returns:
        For each week its units; None is empty unless there are fewer units than weeks.

    Raises:
        PlanError: they do not fit.
    """
    weeks = min(weeks, len(found))
    target = sum(unit.in_class for unit in found) / weeks
    best: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]
    for _ in range(weeks):
        ends: dict[int, tuple[float, int]] = {}
        for start, (cost, _) in best[-1].items():
            load = 0.0
            for end in range(start + 1, len(found) + 1):
                load += found[end - 1].in_class
                if load > minutes:
                    break
                told = cost + (load / target - 1) ** 2 + DIVIDED * (not found[end - 1].last)
                if end not in ends or told < ends[end][0]:
                    ends[end] = told, start
        best.append(ends)
    if len(found) not in best[-1]:
        raise PlanError("they do not fit")
    cuts = [len(found)]
    for ends in reversed(best[1:]):
        cuts.append(ends[cuts[-1]][1])
    cuts.reverse()
    return [list(found[a:b]) for a, b in pairwise(cuts)]


def needed(found: Sequence[Unit], minutes: int) -> int:
    """How many weeks of so many minutes the units take at least; 0 if one of them is longer than a week."""
    weeks, load = 1, 0.0
    for unit in found:
        if unit.in_class > minutes:
            return 0
        load += unit.in_class
        if load > minutes:
            weeks, load = weeks + 1, unit.in_class
    return weeks


def plan(course: Manifest, weeks: int, minutes: int, way: str = "") -> list[list[Unit]]:
    """The weeks of a semester.

    Raises:
        PlanError: it does not fit: by how much, how many weeks it takes, and which ways fit.
    """
    if weeks < 1 or minutes < 1:
        raise PlanError(
            "A plan needs a week or more, and a minute or more in each: WEEKS=12 MINUTES=135."
        )
    found = units(course, way)
    try:
        return share(found, weeks, minutes)
    except PlanError:
        pass
    total, there = sum(unit.in_class for unit in found), weeks * minutes
    said = [f"{way or 'The whole course'} takes {total:,.0f} minutes in class."]
    said.append(f"{weeks} weeks of {minutes} have {there:,}")
    said[-1] += f": {total - there:,.0f} too few." if total > there else "."
    takes = needed(found, minutes)
    longest = max(found, key=lambda unit: unit.in_class)
    said.append(
        f"It takes {takes} weeks of {minutes} minutes."
        if takes
        else f"The section {longest.title!r} alone takes {longest.in_class:.0f} minutes."
    )
    ways = {one.title: needed(units(course, one.title), minutes) for one in course.ways}
    fit = [
        f"{title} ({takes} weeks)"
        for title, takes in ways.items()
        if 0 < takes <= weeks and title != way
    ]
    said.append(f"What fits: {', '.join(fit)}." if fit else "No way through the course fits.")
    raise PlanError(" ".join(said))


def spare(weeks: Sequence[Sequence[Unit]], minutes: int) -> str:
    """That fewer weeks would do, in a sentence; empty if they would not."""
    found = [unit for week in weeks for unit in week]
    takes, total = needed(found, minutes), sum(unit.in_class for unit in found)
    if takes >= len(weeks):
        return ""
    there = len(weeks) * minutes
    return f"Of {there:,} minutes in class it takes {total:,.0f}: {takes} weeks of {minutes} would do.\n"


# The table -------------------------------------------------------------------------------------


def rows(weeks: Sequence[Sequence[Unit]]) -> list[tuple[str, ...]]:
    """A row for each week, and one for the sums, without the heads."""
    made = []
    for number, week in enumerate(weeks, 1):
        needs = {stem for unit in week for stem in unit.chapter.prerequisites}
        own = {unit.chapter.notebook for unit in week}
        before = ", ".join(sorted(stem.partition("_")[0] for stem in needs - own)) or "–"
        made.append((str(number), _named(week), before, *_minutes(week)))
    everything = [unit for week in weeks for unit in week]
    return [*made, ("", "Together", "", *_minutes(everything))]


def _minutes(week: Sequence[Unit]) -> tuple[str, str]:
    return f"{sum(u.in_class for u in week):.0f}", f"{sum(u.at_home for u in week):.0f}"


def _named(week: Sequence[Unit]) -> str:
    """The chapters of a week; of those that are divided, the sections."""
    said = []
    for chapter, group in groupby(week, key=lambda unit: unit.chapter):
        part = list(group)
        name = f"{chapter.number} {chapter.title}"
        sections = (
            "" if len(part) == part[0].whole else f": {'; '.join(unit.title for unit in part)}"
        )
        said.append(name + sections)
    return " · ".join(said)


def markdown(title: str, table: Sequence[Sequence[str]]) -> str:
    """The plan as a table in Markdown."""
    lines = [HEADS, ("---",) * len(HEADS), *table]
    told = "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
    return f"# {title}\n\n{told}\n"


def printed(title: str, table: Sequence[Sequence[str]]) -> str:
    """The plan as a page to print."""
    head = "".join(f'<th scope="col">{name}</th>' for name in HEADS)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>"
        for line in table
    )
    return (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title><style>'
        "body{font:15px/1.4 Georgia,serif;margin:2em auto;max-width:60em}table{border-collapse:collapse;width:100%}"
        "th,td{border-bottom:1px solid #bbb;padding:6px 12px 6px 0;text-align:left;vertical-align:top}"
        "td:nth-child(n+4){text-align:right}tr{break-inside:avoid}tr:last-child{font-weight:600}</style>"
        f"<h1>{html.escape(title)}</h1><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></html>\n"
    )


def write(title: str, weeks: Sequence[Sequence[Unit]], out: Path) -> list[Path]:
    """Write the table in three forms; the files."""
    table = rows(weeks)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([HEADS, *table])
    forms = {"md": markdown(title, table), "csv": text.getvalue(), "html": printed(title, table)}
    for suffix, content in forms.items():
        with atomic_write(out / f"plan.{suffix}") as file:
            file.write_text(content, encoding="utf-8")
    return [out / f"plan.{suffix}" for suffix in forms]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the plan, and write it."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio plan", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--weeks", type=int, default=12, help="of the semester: 12")
    parser.add_argument("--minutes", type=int, default=135, help="in class each week: 135")
    parser.add_argument("--way", default="", help='such as "To GPT"; without it, everything')
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    out = options.book.resolve().parent / "_build" / "plan"
    try:
        course = load(options.book, files=False)
        weeks = plan(course, options.weeks, options.minutes, options.way)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    title = f"{options.way or course.title}: {len(weeks)} weeks of {options.minutes} minutes"
    files = write(title, weeks, out)
    print(markdown(title, rows(weeks)))
    if said := spare(weeks, options.minutes):
        print(said)
    print("\n".join(map(str, files)))
    return 0
