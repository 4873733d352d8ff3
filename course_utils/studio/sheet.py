"""``make measures``: a line for each notebook, or all measures of one and what breaks a rule.

A notebook that is not made yet is measured by its source; what depends on outputs is then unknown.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from course_utils.files import ROOT
from course_utils.studio import form
from course_utils.studio.manifest import ManifestError, load
from course_utils.studio.measures import Measure, measures, together
from course_utils.studio.page import Page, read


def table(rows: Sequence[tuple[str, Sequence[Measure]]]) -> str:
    """A line for each notebook; ``!`` where a limit is broken, ``?`` where a number is unknown.

    Args:
        rows: each notebook's name and measures; the limits above are those of a core chapter.
    """
    from nbformat.v4 import new_notebook

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
    return f"≤{measure.high}" if measure.high is not None else ""


def sheet(name: str, found: Sequence[Measure], complaints: Sequence[str] = ()) -> str:
    """All measures of one notebook, a line each, and what breaks a rule."""
    lines = [f"  {m.name:34}{m.shown:>7} {m.limit:14}{m.where}".rstrip() for m in found]
    return "\n".join([name, *lines, *(f"  - {text}" for text in complaints)])


def main(argv: Sequence[str] | None = None) -> int:
    """Print the measures; 0 in any case, 1 where there is nothing to measure."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio measures", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    try:
        course = load(options.book, files=False)
        chosen = course.chosen(options.chapters)
    except ManifestError as error:
        print(error, file=sys.stderr)
        return 1
    there = [chapter for chapter in chosen if chapter.source.is_file()]
    pages = [(one, read(one.source, one.ipynb, one.kind)) for one in there]
    rows = [(one.notebook, measures(page)) for one, page in pages]
    if not options.chapters:
        print(table(rows))
        core = together(page for one, page in pages if one.kind == "chapter")
        print(sheet("\nthe core chapters together", core))
        return 0
    for (name, found), (one, page) in zip(rows, pages, strict=True):
        broken = form.complaints(page, full=one.full, links=course.links(one), sizes=False)
        print(sheet(name, found, broken), end="\n\n")
    return 0 if rows else 1
