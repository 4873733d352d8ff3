"""`make runs` makes the stored runs that are missing; `make gpu` those that want a GPU.

    python -m course_utils.studio.runs [CHAPTER …]
    python -m course_utils.studio.runs --gpu [CHAPTER …]
    torchrun --nproc-per-node 8 -m course_utils.studio.runs --gpu [CHAPTER …]

CHAPTER is the start of a name: ``10``. Runs at full size are listed with their minutes before the first one begins;
stopped and started again, they go on from their checkpoints. With several processes each training is shared among them.
"""

import argparse
import sys
from collections.abc import Sequence

from course_utils.files import is_first_process
from course_utils.kit import runs
from course_utils.studio import StudioError, manifest
from course_utils.studio.manifest import Chapter


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio.runs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("chapter", nargs="*")
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args(arguments)
    try:
        chapters = manifest.load().chosen(options.chapter)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    if options.gpu:
        return _gpu(chapters)
    for chapter in chapters:
        count = len(runs.missing(chapter.slug))
        print(
            f"{chapter.notebook}: {count or 'no'} run{'' if count == 1 else 's'} to make",
            flush=True,
        )
        runs.make(chapter.slug, lambda line: print(f"  {line}", flush=True))
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
