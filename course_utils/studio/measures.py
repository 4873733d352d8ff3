"""The measures of a notebook: how much there is to read, to see and to do, beside the limits of its kind."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from course_utils.studio import tries
from course_utils.studio.page import Page, stray_claims

# The measures, beside their limits --------------------------------------------


@dataclass(frozen=True)
class Measure:
    """One measure of a page.

    Attributes:
        name: of the measure, and `short`, the head of a column.
        value: None where it is unknown.
        low, high: the limits; None where there is none.
        remedy: what to do beyond them.
        where: the places that it comes from.
    """

    name: str
    short: str
    value: int | None
    low: int | None = None
    high: int | None = None
    remedy: str = ""
    where: str = ""

    @property
    def broken(self) -> bool:
        """Whether it is beyond a limit."""
        if self.value is None:
            return False
        return (self.low is not None and self.value < self.low) or (
            self.high is not None and self.value > self.high
        )

    @property
    def limit(self) -> str:
        """The limits in words."""
        if self.low is not None and self.high is not None:
            return f"{self.low} to {self.high}"
        if self.high is not None:
            return f"at most {self.high}"
        return f"at least {self.low}" if self.low is not None else ""

    @property
    def shown(self) -> str:
        """The value, with ``!`` where a limit is broken, or ``?`` where it is unknown."""
        return f"{'?' if self.value is None else self.value}{'!' if self.broken else ' '}"

    @property
    def complaint(self) -> str:
        """What a rule says."""
        where = f" ({self.where})" if self.where else ""
        return f"{self.name}: {self.value}{where}; {self.limit}: {self.remedy}"


def measures(page: Page, *, first: bool = False) -> list[Measure]:
    """All measures of a page beside the limits of its kind; an appendix has fewer.

    Args:
        page: the notebook.
        first: whether it is the first chapter, which may be short and have few exercises.
    """
    return [*_sizes(page), *_sights(page), *_doings(page, first)]


def _sizes(page: Page) -> Iterator[Measure]:
    bound = page.kind != "appendix"
    lines = 145 if page.kind == "chapter" and not page.writes_model else 212
    move = "cut, or move a section to the further page"
    yield Measure(
        "cells", "cells", len(page.notebook.cells), high=65 if bound else None, remedy=move
    )
    yield Measure("words of prose", "words", page.words, high=2600 if bound else None, remedy=move)
    fold = "import what a chapter before has built, fold what only draws, or cut"
    yield Measure("unfolded lines", "lines", page.lines, high=lines if bound else None, remedy=fold)
    long = [cell for cell in page.seen if not cell.is_one_class]
    cell = max(long, key=lambda cell: len(cell.lines), default=None)
    yield Measure(
        "lines of the longest cell", "longest", len(cell.lines) if cell else 0, high=20,
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


def _doings(page: Page, first: bool) -> Iterator[Measure]:
    core = page.kind == "chapter"
    full = core and not first
    said = ", ".join(f"{one.kind or '?'} {one.minutes}" for one in page.exercises)
    yield Measure(
        "exercises", "exercises", len(page.exercises), low=4 if full else None, where=said,
        remedy="add some: a heading '### Exercise 2 · Title'",
    )  # fmt: skip
    yield Measure(
        "minutes of the exercises", "theirs", page.exercise_minutes,
        low=25 if full else None, high=40 if full else None,
        remedy="more or fewer, or other minutes in '*build · 8 minutes*'",
    )  # fmt: skip
    predicts = sum(cell.calls("predict") for cell in page.code)
    yield Measure(
        "predictions", "predict", predicts, low=3 if core else None,
        remedy="ask with cu.predict(…) before a result",
    )  # fmt: skip
    names = [mark.name for _, mark in page.tries]
    yield Measure(
        "numbers to try", "try", len(names), low=5 if core else None, where=", ".join(names),
        remedy=f"mark more; {tries.FORM}",
    )  # fmt: skip
    yield Measure(
        "minutes", "minutes", page.minutes, low=45 if full else None, high=75 if core else None,
        remedy="words / 120, 6 s a line and the exercises: cut, or move something in or out",
    )  # fmt: skip


def _cells(places: Iterable[int]) -> str:
    places = list(places)
    return (
        f"{'cell' if len(places) == 1 else 'cells'} {', '.join(map(str, places))}" if places else ""
    )
