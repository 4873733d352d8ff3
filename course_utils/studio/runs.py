"""`make runs` makes the stored runs that are missing or stale; `make gpu` those that want a GPU.

    python -m course_utils.studio.runs [--confirm | --unchanged-since REV [--by-hand WHY]] [CHAPTER …]
    python -m course_utils.studio.runs --gpu [CHAPTER …]
    torchrun --nproc-per-node 8 -m course_utils.studio.runs --gpu [CHAPTER …]

CHAPTER is the start of a name: ``10``. Runs at full size are listed with their minutes before the first one begins;
stopped and started again, they go on from their checkpoints. With several processes each training is shared among them.

After a change of code that changes no number, runs are declared fresh without being made: those whose statements are
today what they were in a commit where the tests passed (`--unchanged-since`), those whose other statements somebody
has read (`--by-hand`, which shows the difference), or those of which one case comes out as stored (`--confirm`).
"""

import argparse
import difflib
import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from course_utils.files import ROOT, is_first_process
from course_utils.kit import runs
from course_utils.kit.digest import SOURCES, Sources
from course_utils.kit.runs import Runs
from course_utils.studio import StudioError, manifest
from course_utils.studio.manifest import Chapter


def as_of(revision: str, folder: Path) -> Sources:
    """The sources, data and stored runs of a commit, written into a folder.

    Raises:
        StudioError: git knows no such commit.
    """
    parts = ["course_utils", "notebooks/source", "data"]
    done = subprocess.run(["git", "archive", revision, *parts], cwd=ROOT, capture_output=True)
    if done.returncode:
        raise StudioError(done.stderr.decode().strip())
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return Sources(folder)


def stamp(slug: str, then: Sources, by_hand: str = "") -> set[tuple[str, str, str]]:
    """Call those stale runs of a chapter fresh that stood in `then`, and need the same statements as there.

    Args:
        slug: the chapter.
        then: the sources of a commit where its runs were fresh (`as_of`).
        by_hand: why the others that stood there are fresh, too.

    Returns:
        what differs, as ("-" or "+", file, statement).
    """
    before = runs.read(slug, then.root / "data" / "runs")
    stored = {(run.name, runs.key(run.config)): run for run in runs.read(slug) if run in before}
    stale = runs.missing(slug) + [
        (declaration, case)
        for declaration, case in runs.missing(slug, gpu=True)
        if (declaration.name, runs.key(case)) in stored
    ]
    differ = set()
    for name, declaration in {declaration.name: declaration for declaration, _ in stale}.items():
        cases = [(name, runs.key(case)) for other, case in stale if other is declaration]
        changes = difference(declaration, then)
        fresh = [stored[case] for case in cases if case in stored and (by_hand or not changes)]
        runs.write(slug, *(replace(run, digest=declaration.digest()) for run in fresh))
        reason = f" ({by_hand})" if by_hand and changes else ""
        print(f"  {name}: {len(fresh)} of {len(cases)} stamped{reason}", flush=True)
        differ |= changes
    return differ


def difference(declaration: Runs, then: Sources) -> set[tuple[str, str, str]]:
    """The statements that a run needed only then ("-"), or only now ("+"), as (sign, file, text)."""
    now = declaration.statements(SOURCES)
    try:
        before = declaration.statements(then)
    except (OSError, ValueError):
        before = set()
    texts_before, texts_now = ({text for _, text in statements} for statements in (before, now))
    gone = {("-", file, text) for file, text in before if text not in texts_now}
    return gone | {("+", file, text) for file, text in now if text not in texts_before}


def show(differ: Iterable[tuple[str, str, str]]) -> None:
    """Print a difference, file by file, as git does."""
    for file in sorted({file for _, file, _ in differ}):
        old, new = (
            [line for sign, where, text in sorted(differ) if (sign, where) == (wanted, file)
             for line in text.splitlines()]
            for wanted in "-+"
        )  # fmt: skip
        print(
            *difflib.unified_diff(old, new, f"then {file}", f"now {file}", lineterm="", n=1),
            sep="\n",
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio.runs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("chapter", nargs="*")
    parser.add_argument("--confirm", action="store_true")
    parser.add_argument("--unchanged-since", metavar="REV")
    parser.add_argument("--by-hand", default="", metavar="WHY")
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args(arguments)
    try:
        chapters = manifest.load().chosen(options.chapter)
        if options.gpu:
            return _gpu(chapters)
        if options.unchanged_since:
            return _unchanged(chapters, options.unchanged_since, options.by_hand)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    for chapter in chapters:
        if options.confirm:
            runs.confirm(chapter.slug)
            continue
        count = len(runs.missing(chapter.slug))
        print(
            f"{chapter.notebook}: {count or 'no'} run{'' if count == 1 else 's'} to make",
            flush=True,
        )
        runs.make(chapter.slug, lambda line: print(f"  {line}", flush=True))
    return 0


def _unchanged(chapters: Sequence[Chapter], revision: str, by_hand: str) -> int:
    differ = set()
    with tempfile.TemporaryDirectory() as folder:
        then = as_of(revision, Path(folder))
        for chapter in chapters:
            print(chapter.notebook)
            differ |= stamp(chapter.slug, then, by_hand)
    show(differ)
    return 0


def _gpu(chapters: Sequence[Chapter]) -> int:
    import torch  # slow to import

    missing = {chapter.slug: runs.missing(chapter.slug, gpu=True) for chapter in chapters}
    lines = [
        f"  {slug}, {declaration.name} {case}: about {declaration.minutes:.0f} minutes"
        for slug, cases in missing.items()
        for declaration, case in cases
    ]
    if is_first_process():
        minutes = sum(declaration.minutes for cases in missing.values() for declaration, _ in cases)
        head = (
            f"{len(lines)} runs at full size, about {minutes:.0f} minutes on a GPU of a data center"
        )
        print(head, *lines, sep="\n", flush=True)
    if not torch.cuda.is_available():
        print("There is no GPU here, so nothing is trained.", file=sys.stderr)
        return 1
    for slug in (slug for slug, cases in missing.items() if cases):
        runs.make(
            slug,
            lambda line: print(f"  {line}", flush=True) if is_first_process() else None,
            gpu=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
