"""What the notebooks claim: the sentence of each guard, with its notebook, cell and number of conditions."""

import argparse
import ast
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from course_utils.files import ROOT
from course_utils.kit.guard import Guarded, guards_in
from course_utils.studio.manifest import ManifestError, load

HEADS = ("notebook", "cell", "conditions", "claim")


def guards(source: Path) -> Iterator[tuple[int, Guarded]]:
    """The guards of a source, each after the place of its cell; it waits for no package that reads notebooks.

    Raises:
        ValueError: a claim is not written out as a text.
    """
    cells = re.split("^# %%", source.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for place, cell in enumerate(cells):
        heading, _, code = cell.partition("\n")
        if not heading.startswith(" [markdown]"):
            yield from ((place, guard) for guard in guards_in(ast.parse(code)))


def table(found: Sequence[tuple[str, int, Guarded]], width: int = 100) -> str:
    """A line or more for each guard.

    Args:
        found: each guard after its notebook's name and the place of its cell.
        width: of the table, in characters; sentences are wrapped.
    """
    rows = [(name, str(place), str(one.conditions), one.claim) for name, place, one in found]
    name = max(len(row[0]) for row in (HEADS, *rows))
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
        found = [
            (chapter.notebook, *guard)
            for chapter in chosen
            if chapter.source.is_file()
            for guard in guards(chapter.source)
        ]
        print(table(found, shutil.get_terminal_size().columns))
    except (ManifestError, ValueError, SyntaxError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
