"""Run notebooks with other numbers where ``# try`` allows them: ``python -m course_utils.studio try``.

A reader may change any marked number: no cell may end in an exception, and no guard may find that its claim
does not hold. That command changes one number at a time, to each end of its range and each of its choices; the
tests change all of a chapter in one run.
"""

import argparse
import hashlib
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from tqdm import tqdm

from course_utils.files import ROOT
from course_utils.kit.guard import NO_LONGER
from course_utils.studio import notebooks, tries
from course_utils.studio.manifest import Chapter, ManifestError, load
from course_utils.studio.page import Page


@dataclass(frozen=True)
class Change:
    """Another value for a marked number.

    Attributes:
        place: of its cell.
        mark: the number.
        value: the other value.
    """

    place: int
    mark: tries.Try
    value: tries.Value

    def __str__(self) -> str:
        return f"{self.mark.name} = {self.value!r}"


def one_by_one(notebook: NotebookNode) -> list[Change]:
    """Each end of each range and each choice, as changes to be made alone."""
    return [
        Change(place, mark, value) for place, mark in Page(notebook).tries for value in mark.others
    ]


def all_at_once(notebook: NotebookNode) -> list[Change]:
    """A value for each number, drawn by chance; the seed is a digest of the notebook's text."""
    text = "\n".join(cell.source for cell in notebook.cells)
    chance = random.Random(hashlib.sha256(text.encode()).hexdigest())
    return [Change(place, mark, mark.draw(chance)) for place, mark in Page(notebook).tries]


def failure(chapter: Chapter, changes: Sequence[Change]) -> str:
    """Run a chapter's source with other numbers, as a reader runs it; what went wrong first, or "".

    Wrong is an exception, or a guard's sentence.

    Args:
        chapter: which one.
        changes: of its marked numbers; a number may be changed once.
    """
    notebook = notebooks.read_source(chapter.source)
    for change in changes:
        cell = notebook.cells[change.place]
        # A mark is alone on its line, so no change moves the place of another.
        cell.source = change.mark.put(cell.source, change.value)
    try:
        notebooks.execute(notebook, cwd=chapter.ipynb.parent, env={"COURSE_STRICT": "0"})
    except CellExecutionError as error:
        place = next(place for place, cell in enumerate(notebook.cells) if _failed(cell))
        said = f"cell {place}: {error.ename}: {error.evalue}"
    except CellTimeoutError:
        said = f"a cell took more than {notebooks.CELL_TIMEOUT} s"
    except DeadKernelError:
        said = "the kernel ended, for lack of memory perhaps"
    else:
        told = [
            f"cell {place}: {line}"
            for place, cell in enumerate(notebook.cells)
            for output in cell.get("outputs", [])
            for line in output.get("text", "").splitlines()
            if line.startswith(NO_LONGER)
        ]
        if not told:
            return ""
        said = told[0]
    return f"{chapter.notebook} with {', '.join(map(str, changes))}: {' '.join(said.split())}"


def _failed(cell: NotebookNode) -> bool:
    return any(output.output_type == "error" for output in cell.get("outputs", []))


def main(argv: Sequence[str] | None = None) -> int:
    """Try each number of the chosen notebooks; 0 if all goes well, else 1 and a list."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio try", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    try:
        chosen = load(options.book, files=False).chosen(options.chapters)
    except ManifestError as error:
        print(error, file=sys.stderr)
        return 1
    jobs = [
        (chapter, change)
        for chapter in chosen
        if chapter.source.is_file()
        for change in one_by_one(notebooks.read_source(chapter.source))
    ]
    failed = []
    with tqdm(jobs, unit="run", disable=None) as bar:
        for chapter, change in bar:
            bar.set_description(f"{chapter.number}, {change}")
            if wrong := failure(chapter, [change]):
                failed.append(wrong)
                bar.write(wrong, file=sys.stderr)
    print(
        "\n".join(
            [f"{len(jobs)} runs, {len(failed)} ended in an exception or against a guard.", *failed]
        )
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
