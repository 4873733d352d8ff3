"""A plan of the weeks: everything in order, no week too long, and what does not fit is said."""

import csv
from itertools import pairwise

import pytest

from course_utils.studio import manifest
from course_utils.studio.__main__ import main
from course_utils.studio.teaching.plan import (
    PlanError,
    Unit,
    plan,
    rows,
    share,
    spare,
    units,
    write,
)

COURSE = manifest.load(files=False)


def some(*minutes, sections=1):
    """Units of so many minutes, each `sections` of them a chapter."""
    chapters = [manifest.Chapter(f"{n:02}_c{n}", f"C{n}") for n in range(len(minutes))]
    return [
        Unit(chapters[n // sections], f"s{n}", one, 0, last=(n + 1) % sections == 0, whole=sections)
        for n, one in enumerate(minutes)
    ]


@pytest.mark.parametrize("way", ["", *(one.title for one in COURSE.ways)])
def test_each_section_is_there_once_in_order_and_no_week_is_too_long(way):
    weeks = plan(COURSE, 12, 135, way)
    found = units(COURSE, way)
    assert [unit for week in weeks for unit in week] == found
    assert all(0 < sum(unit.in_class for unit in week) <= 135 for week in weeks)
    begun = {
        unit.chapter.notebook: number
        for number, week in reversed([*enumerate(weeks)])
        for unit in week
    }
    ended = {unit.chapter.notebook: number for number, week in enumerate(weeks) for unit in week}
    for unit in found:
        for stem in unit.chapter.prerequisites:
            assert stem not in ended or ended[stem] <= begun[unit.chapter.notebook]


def test_the_minutes_are_those_of_the_readme():
    for chapter in COURSE.chapters:
        own = [unit for unit in units(COURSE) if unit.chapter == chapter]
        together = sum(unit.in_class + unit.at_home for unit in own)
        assert chapter.minutes == 5 * int(together / 5 + 0.5)


def test_weeks_are_even_and_a_chapter_is_divided_only_where_that_helps():
    loads = [[u.in_class for u in week] for week in share(some(50, 50, 10, 40, 50, 100), 3, 120)]
    assert loads == [[50, 50], [10, 40, 50], [100]]
    first, _ = share(some(50, 50, 50, 50, sections=2), 2, 120)
    assert [u.title for u in first] == ["s0", "s1"]
    assert [len(week) for week in share(some(60, 60, 60, 20, sections=3)[:3], 2, 120)] in (
        [1, 2],
        [2, 1],
    )
    assert len(share(some(10, 10), 5, 60)) == 2


def test_that_fewer_weeks_would_do_is_said():
    even = share(some(50, 50, 50, 50), 4, 120)
    assert "Of 480 minutes in class it takes 200: 2 weeks of 120 would do." in spare(even, 120)
    assert spare(share(some(50, 50, 50, 50), 2, 120), 120) == ""


@pytest.mark.skipif(len(COURSE.chapters) < 18, reason="a shorter course fits")
def test_what_does_not_fit_is_said_with_what_does(capsys):
    assert main(["plan", "--weeks", "6"]) == 1
    said = capsys.readouterr().err
    assert "too few. It takes" in said and "What fits: " in said and "Kernels (" in said
    with pytest.raises(PlanError, match=r"alone takes \d+ minutes. No way through the course fits"):
        plan(COURSE, 300, 3)
    with pytest.raises(PlanError, match="no way 'To GTP'; there are To GPT"):
        plan(COURSE, 12, 135, "To GTP")
    with pytest.raises(PlanError, match="a week or more"):
        plan(COURSE, 0, 135)


def test_the_table_is_the_same_in_three_forms(tmp_path):
    weeks = plan(COURSE, 12, 135)
    text, table, page = (
        file.read_text(encoding="utf-8") for file in write("T | 1", weeks, tmp_path)
    )
    made = list(csv.reader(table.splitlines()))
    assert made[1:] == [list(row) for row in rows(weeks)] and len(made) == 14
    for number, chapters, _, in_class, _ in made[1:-1]:
        assert f"| {number} | {chapters} |" in text and f"<td>{in_class}</td>" in page
    assert sum(int(row[3]) for row in made[1:-1]) == pytest.approx(int(made[-1][3]), abs=6)
    assert all(a[0] < b[0] or int(a[0]) < int(b[0]) for a, b in pairwise(made[1:-1]))
