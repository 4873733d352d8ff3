"""The measures of a notebook: how much there is to read, to see and to do, beside the limits of its kind.

``python -m course_utils.studio.measures`` prints a line for each notebook, ``… measures 02`` all of one
and what breaks a rule. A notebook that is not made yet is measured by its source; what depends on
outputs is then unknown.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbformat.v4 import new_notebook

from course_utils.files import ROOT
from course_utils.studio import tries
from course_utils.studio.page import Page, read, stray_claims

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


# Printing ---------------------------------------------------------------------


def table(rows: Sequence[tuple[str, Sequence[Measure]]]) -> str:
    """A line for each notebook; ``!`` where a limit is broken, ``?`` where a number is unknown.

    Args:
        rows: each notebook's name and measures; the limits above are those of a core chapter.
    """
    core = measures(Page(new_notebook()))
    lines = [
        ["", *(measure.short for measure in core)],
        ["a core chapter", *(_brief(measure) for measure in core)],
        *([name, *(m.shown for m in found)] for name, found in rows),
    ]
    lines[:2] = [
        [f"{text} " if place else text for place, text in enumerate(line)] for line in lines[:2]
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in lines
    )


def _brief(measure: Measure) -> str:
    """The limits in few characters."""
    if measure.short == "silent":
        return "≤10%"
    if measure.low is not None and measure.high is not None:
        return f"{measure.low}–{measure.high}"
    if measure.high is not None:
        return f"≤{measure.high}"
    return f"≥{measure.low}" if measure.low is not None else ""


def sheet(name: str, found: Sequence[Measure], complaints: Sequence[str] = ()) -> str:
    """All measures of one notebook, a line each, and what breaks a rule."""
    lines = [f"  {m.name:34}{m.shown:>7} {m.limit:14}{m.where}".rstrip() for m in found]
    return "\n".join([name, *lines, *(f"  - {text}" for text in complaints)])


def main(argv: Sequence[str] | None = None) -> int:
    """Print the measures; 0 in any case, 1 where there is nothing to measure."""
    from course_utils.studio import form, manifest, notebooks  # they measure, too

    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio.measures", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    try:
        course = manifest.load(options.book, files=False)
        chosen = notebooks.choose(course, options.chapters)
    except (manifest.ManifestError, notebooks.NotebookError) as error:
        print(error, file=sys.stderr)
        return 1
    there = [chapter for chapter in chosen if chapter.source.is_file()]
    pages = [(one, read(one.source, one.ipynb, one.kind)) for one in there]
    rows = [(one.notebook, measures(page, first=one.first)) for one, page in pages]
    if not options.chapters:
        print(table(rows))
        return 0
    for (name, found), (one, page) in zip(rows, pages, strict=True):
        broken = form.complaints(page, first=one.first, links=course.links(one), sizes=False)
        print(sheet(name, found, broken), end="\n\n")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
