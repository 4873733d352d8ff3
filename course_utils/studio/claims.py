"""What the notebooks claim: the sentence of each guard, with its notebook, cell and number of conditions."""

import argparse
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from course_utils.files import ROOT
from course_utils.studio.manifest import ManifestError, load
from course_utils.studio.page import Page
from course_utils.studio.pairs import read_source

HEADS = ("notebook", "cell", "conditions", "claim")


def table(pages: Sequence[tuple[str, Page]], width: int = 100) -> str:
    """A line or more for each guard.

    Args:
        pages: each with its notebook's name.
        width: of the table, in characters; sentences are wrapped.
    """
    rows = [
        (name, str(cell.place), str(guard.conditions), guard.claim)
        for name, page in pages
        for cell in page.code
        for guard in cell.guards
    ]
    name = max((len(row[0]) for row in (HEADS, *rows)), default=0)
    start = name + 20
    lines = []
    for row in (HEADS, *rows):
        first, *others = textwrap.wrap(row[3], max(width - start, 20))
        lines.append(f"{row[0]:{name}}  {row[1]:>4}  {row[2]:>10}  {first}")
        lines += [" " * start + line for line in others]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table of the chosen notebooks; 1 where a claim cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio claims", description=__doc__
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    try:
        chosen = load(options.book, files=False).chosen(options.chapters)
        pages = [
            (chapter.notebook, Page(read_source(chapter.source), chapter.kind))
            for chapter in chosen
            if chapter.source.is_file()
        ]
        print(table(pages, shutil.get_terminal_size().columns))
    except (ManifestError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
