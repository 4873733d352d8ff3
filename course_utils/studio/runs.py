"""`make runs` makes the stored runs that are missing; `make gpu` those that want a GPU.

    python -m course_utils.studio.runs [CHAPTER …]
    python -m course_utils.studio.runs --again CHAPTER …
    python -m course_utils.studio.runs --touched REV
    python -m course_utils.studio.runs --gpu [CHAPTER …]
    torchrun --nproc-per-node 8 -m course_utils.studio.runs --gpu [CHAPTER …]

CHAPTER is the start of a name: ``10``. Runs at full size are listed with their minutes before the first one begins;
stopped and started again, they go on from their checkpoints. With several processes each training is shared among them.

`--again` makes the cheapest stored case of each run function again, and says which of its numbers are not as stored
(`kit.repeat` says how they are compared); it writes nothing, and its exit status is 1 if any differs. `--touched` lists
the run functions that a change since the commit REV could touch, as far as imports tell. It is a hint where to look
with `--again`: a file counts whole, `cu.…` is not followed, and files of data/ are named without their readers.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence

from course_utils.files import ROOT, is_first_process
from course_utils.kit import repeat, runs
from course_utils.studio import StudioError, manifest
from course_utils.studio.manifest import Chapter

SHOWS = ("course_utils.kit.", "course_utils.figures.")
"""Packages that store and show results, and compute none, but for `COMPUTES`."""
COMPUTES = ("course_utils.kit.stored_model",)
"""Modules of these packages on which a number may depend: stored weights are rounded."""
DATA = ("data/fashion_mnist/", "data/models/", "data/prose/", "data/translation/")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio.runs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("chapter", nargs="*")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--touched", metavar="REV")
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args(arguments)
    try:
        chapters = manifest.load(files=False).chosen(options.chapter)  # a handout has no sources
        if options.touched:
            print(*touched(chapters, changed_files(options.touched)), sep="\n")
            return 0
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    if options.gpu:
        return _gpu(chapters)
    if options.again:
        return _again(chapters)
    for chapter in chapters:
        count = len(runs.to_make(chapter.slug))
        print(
            f"{chapter.notebook}: {count or 'no'} run{'' if count == 1 else 's'} to make",
            flush=True,
        )
        runs.make(chapter.slug, lambda line: print(f"  {line}", flush=True))
    return 0


def _again(chapters: Sequence[Chapter]) -> int:
    others = 0
    for chapter in chapters:
        for declaration, run in repeat.cheapest(chapter.slug):
            outcome = repeat.repeat(declaration, run)
            print(f"{chapter.slug}, {outcome}", flush=True)
            others += not (outcome.same or outcome.unavailable)
    return 1 if others else 0


def changed_files(revision: str) -> list[str]:
    """The files that differ from a commit, as paths from the course's folder.

    Raises:
        StudioError: git knows no such commit, or there is no git here.
    """
    if not shutil.which("git") or not (ROOT / ".git").exists():
        raise StudioError(
            "--touched asks git what has changed: give it in a clone of the course, with git installed."
        )
    command = ["git", "diff", "--name-only", revision, "--"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise StudioError(done.stderr.strip())
    return done.stdout.splitlines()


def touched(chapters: Sequence[Chapter], files: Sequence[str]) -> list[str]:
    """A line for each run function whose module imports one of these files, at any depth, or whose chapter is one."""
    import grimp  # only authors have it

    graph = grimp.build_graph("course_utils", exclude_type_checking_imports=True, cache_dir=None)
    modules = {
        file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in files
    }
    lines = []
    for chapter in chapters:
        for declaration in runs.declared(chapter.slug).values():
            module = declaration.function.__module__
            found = {module, *graph.find_upstream_modules(module)} & modules
            reached = sorted(n for n in found if n in COMPUTES or not n.startswith(SHOWS))
            if declaration.chapter and f"notebooks/source/{chapter.notebook}.py" in files:
                reached.append(f"notebooks/source/{chapter.notebook}.py")
            if reached:
                more = f" and {len(reached) - 3} more" if len(reached) > 3 else ""
                lines.append(f"{chapter.slug}, {declaration.name}: {', '.join(reached[:3])}{more}")
    data = [file for file in files if file.startswith(DATA) and not file.endswith(".md")]
    return lines + ([f"whatever reads {', '.join(data)}"] if data else [])


def _gpu(chapters: Sequence[Chapter]) -> int:
    import torch  # slow to import

    missing = {chapter.slug: runs.to_make(chapter.slug, gpu=True) for chapter in chapters}
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
