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

from course_utils.files import ROOT, leads
from course_utils.kit import runs
from course_utils.kit.digest import SOURCES, Sources
from course_utils.kit.runs import Runs
from course_utils.studio import StudioError, manifest
from course_utils.studio.manifest import Chapter, ManifestError


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
    stood = runs.read(slug, then.root / "data" / "runs")
    kept = {(run.name, runs.key(run.config)): run for run in runs.read(slug) if run in stood}
    stale = runs.missing(slug) + [
        (one, case)
        for one, case in runs.missing(slug, gpu=True)
        if (one.name, runs.key(case)) in kept
    ]
    differ = set()
    for one in {one.name: one for one, _ in stale}.values():
        cases = [(one.name, runs.key(case)) for other, case in stale if other is one]
        other = difference(one, then)
        fresh = [kept[case] for case in cases if case in kept and (by_hand or not other)]
        runs.write(slug, *(replace(run, digest=one.digest()) for run in fresh))
        reason = f" ({by_hand})" if by_hand and other else ""
        print(f"  {one.name}: {len(fresh)} of {len(cases)} stamped{reason}", flush=True)
        differ |= other
    return differ


def difference(one: Runs, then: Sources) -> set[tuple[str, str, str]]:
    """The statements that a run needed only then ("-"), or only now ("+"), as (sign, file, text)."""
    now = one.statements(SOURCES)
    try:
        before = one.statements(then)
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
        prog="python -m course_utils.studio.runs", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "chapter", nargs="*", help="start of a chapter's name, such as 10; all if none"
    )
    parser.add_argument(
        "--confirm",
        action="store_true",
        help="make one stale run of each function again; if it comes out as stored, the others are fresh",
    )
    parser.add_argument(
        "--unchanged-since",
        metavar="REV",
        help="a commit where all runs were fresh: those that need the same statements now are fresh, too",
    )
    parser.add_argument(
        "--by-hand",
        default="",
        metavar="WHY",
        help="with --unchanged-since: the others are fresh, too, for this reason; shows the statements",
    )
    parser.add_argument("--gpu", action="store_true", help="make the runs at full size")
    options = parser.parse_args(arguments)
    try:
        chapters = manifest.load().chosen(options.chapter)
    except ManifestError as error:
        print(error, file=sys.stderr)
        return 1
    if options.gpu:
        return _gpu(chapters)
    if options.unchanged_since:
        return _unchanged(chapters, options.unchanged_since, options.by_hand)
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
        try:
            then = as_of(revision, Path(folder))
        except StudioError as error:
            print(error, file=sys.stderr)
            return 1
        for chapter in chapters:
            print(chapter.notebook)
            differ |= stamp(chapter.slug, then, by_hand)
    show(differ)
    return 0


def _gpu(chapters: Sequence[Chapter]) -> int:
    wanted = [
        (chapter.slug, *run) for chapter in chapters for run in runs.missing(chapter.slug, gpu=True)
    ]
    minutes = sum(one.minutes for _, one, _ in wanted)
    if leads():
        print(
            f"{len(wanted)} runs at full size, about {minutes:.0f} minutes on a GPU of a data center"
        )
        for slug, one, case in wanted:
            print(f"  {slug}, {one.name} {case}: about {one.minutes:.0f} minutes", flush=True)
    import torch  # slow to import

    if not torch.cuda.is_available():
        print("There is no GPU here, so nothing is trained.", file=sys.stderr)
        return 1
    for slug in dict.fromkeys(slug for slug, _, _ in wanted):
        runs.make(slug, lambda line: print(f"  {line}", flush=True) if leads() else None, gpu=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
