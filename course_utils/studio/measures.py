"""The measures of a notebook: how much there is to read, to see and to do, beside the limits of its kind."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from course_utils.studio.page import Page, stray_claims

# The measures, beside their limits --------------------------------------------


@dataclass(frozen=True)
class Measure:
    """One measure of a page.

    Attributes:
        name: of the measure, and `short`, the head of a column.
        value: None where it is unknown.
        high: the limit; None where there is none.
        remedy: what to do beyond them.
        where: the places that it comes from.
    """

    name: str
    short: str
    value: int | None
    high: int | None = None
    remedy: str = ""
    where: str = ""

    @property
    def broken(self) -> bool:
        """Whether it is beyond its limit."""
        return None not in (self.value, self.high) and self.value > self.high

    @property
    def limit(self) -> str:
        """The limit in words."""
        return f"at most {self.high}" if self.high is not None else ""

    @property
    def shown(self) -> str:
        """The value, with ``!`` where the limit is broken, or ``?`` where it is unknown."""
        return f"{'?' if self.value is None else self.value}{'!' if self.broken else ' '}"

    @property
    def complaint(self) -> str:
        """What a rule says."""
        where = f" ({self.where})" if self.where else ""
        return f"{self.name}: {self.value}{where}; {self.limit}: {self.remedy}"


@dataclass(frozen=True)
class Limits:
    """The most that a notebook of some kind may have; None: as much as it likes."""

    cells: int | None = None
    words: int | None = None
    lines: int | None = None
    lines_with_model: int | None = None
    exercise_minutes: int | None = None
    numbers: int | None = None
    questions: int | None = None


LIMITS = {
    "chapter": Limits(45, 1600, 120, 170, 25, numbers=60, questions=8),
    "further": Limits(60, 2160, 200, 200),
}
FULL = {
    "chapter": Limits(66, 2440, 151, 225, 40, numbers=161, questions=14),
    "further": Limits(65, 2160, 225, 225),
}
"""Those of a chapter that book.toml calls full: it has not been cut yet, and may not grow."""


SECOND_EDITION = {
    "words": 39_500,
    "lines": 3_410,
    "numbers": 2_110,
    "questions": 227,
    "hours": 35.7,
}
"""The load of its eighteen chapters together."""
GOAL = {"words": 27_000, "lines": 2_300, "hours": 25}


def together(chapters: Iterable[Page]) -> list[Measure]:
    """The load of core chapters together, beside what it is to come down to and what it was."""
    load = dict.fromkeys(SECOND_EDITION, 0.0)
    for page in chapters:
        for name in ("words", "lines", "numbers", "questions"):
            load[name] += getattr(page, name)
        load["hours"] += page.minutes / 60
    return [
        Measure(name, name, round(value), high=GOAL.get(name), where=f"second edition: {before:,}")
        for (name, value), before in zip(load.items(), SECOND_EDITION.values(), strict=True)
    ]


def measures(page: Page, *, full: bool = False) -> list[Measure]:
    """All measures of a page, beside the limits of its kind, or those of a full one."""
    limits = (FULL if full else LIMITS).get(page.kind, Limits())
    return [*_sizes(page, limits), *_sights(page), *_doings(page, limits)]


def _sizes(page: Page, limits: Limits) -> Iterator[Measure]:
    lines = limits.lines_with_model if page.writes_model else limits.lines
    move = "cut, or move a section to the further page"
    yield Measure("cells", "cells", len(page.notebook.cells), high=limits.cells, remedy=move)
    yield Measure("words of prose", "words", page.words, high=limits.words, remedy=move)
    yield Measure(
        "numbers in the prose", "numbers", page.numbers, high=limits.numbers,
        remedy="keep the one that a sentence is about; the others stand in the table or picture",
    )  # fmt: skip
    fold = "import what a chapter before has built, fold what only draws, or cut"
    yield Measure("unfolded lines", "lines", page.lines, high=lines, remedy=fold)
    long = [cell for cell in page.seen if not cell.is_one_class]
    cell = max(long, key=lambda cell: len(cell.lines), default=None)
    yield Measure(
        "lines of the longest cell", "longest", len(cell.lines) if cell else 0, high=25,
        remedy="split it; only a cell that defines one class and does nothing else may be longer",
        where=f"cell {cell.place}" if cell else "",
    )  # fmt: skip
    wide = max(
        ((len(line), cell.place) for cell in page.seen for line in cell.lines), default=(0, -1)
    )
    yield Measure(
        "characters of the widest line", "widest", wide[0], high=88, remedy="break it",
        where=f"cell {wide[1]}" if wide[0] else "",
    )  # fmt: skip


def _sights(page: Page) -> Iterator[Measure]:
    teaching = [cell for cell in page.code if cell.teaches]
    silent = [cell.place for cell in teaching if not cell.node.get("outputs")]
    known = page.executed
    yield Measure("teaching cells", "teach", len(teaching))
    yield Measure(
        "teaching cells that show nothing", "silent", len(silent) if known else None,
        high=len(teaching) // 10, remedy="show what each computed, or join it to the cell that does",
        where=_cells(silent) if known else "",
    )  # fmt: skip
    strays = [(cell.place, line) for cell in page.code for line in stray_claims(cell)]
    yield Measure(
        "asserts and raises outside guards", "asserts", len(strays), high=0,
        remedy="show the value, and move the condition into the guard of its section",
        where=_cells(dict(strays)),
    )  # fmt: skip
    pictures = sum(cell.shows_picture for cell in page.code)
    yield Measure("cells that show a picture", "pictures", pictures if known else None)


def _doings(page: Page, limits: Limits) -> Iterator[Measure]:
    said = ", ".join(f"{one.kind or '?'} {one.minutes}" for one in page.exercises)
    yield Measure("exercises", "exercises", len(page.exercises), where=said)
    yield Measure(
        "minutes of the exercises", "theirs", page.exercise_minutes, high=limits.exercise_minutes,
        remedy="fewer, or shorter ones: '*build · 8 minutes*'",
    )  # fmt: skip
    yield Measure(
        "questions", "asked", page.questions, high=limits.questions,
        remedy="two are recalled, three asked after sections, three at the end; delete others",
    )  # fmt: skip
    yield Measure("predictions", "predict", page.predictions)
    yield Measure("widgets", "widgets", page.widgets)
    names = [mark.name for _, mark in page.tries]
    yield Measure("numbers to try", "try", len(names), where=", ".join(names))
    yield Measure("minutes of a beginner", "minutes", page.minutes)
    yield Measure("minutes of a practised reader", "practised", page.practised_minutes)


def _cells(places: Iterable[int]) -> str:
    places = list(places)
    return (
        f"{'cell' if len(places) == 1 else 'cells'} {', '.join(map(str, places))}" if places else ""
    )
