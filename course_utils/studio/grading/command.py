"""``make grade SUBMISSIONS=dir``: marks.csv, a page for each student and an overview, of a folder of submissions."""

import argparse
import contextlib
import multiprocessing
import multiprocessing.util
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tqdm import tqdm

from course_utils.files import ROOT
from course_utils.studio import StudioError, manifest
from course_utils.studio.grading import report, sandbox
from course_utils.studio.grading.exercises import Sheet, homework_sheets, points, sheets
from course_utils.studio.grading.judge import Mark, chosen, judged, unjudged
from course_utils.studio.grading.submissions import Submission, collect
from course_utils.studio.homework import read_key

SECONDS, MEMORY = 10, 2048
ENDED = "not graded: the system has ended the judging process, perhaps for want of memory; grade it again alone"


def main(argv: Sequence[str] | None = None) -> int:
    """Grade; 0 if marks are written, 1 with the reason on stderr, 130 after an interrupt."""
    options = _parser().parse_args(argv)
    try:
        print(grade(options))
        return 0
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted: no marks are written.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio grade", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("folder", type=Path, help="a notebook, folder or archive for each student")
    parser.add_argument("--to", type=Path, metavar="DIR", help="default: _build/grades")
    parser.add_argument(
        "--chapter",
        action="append",
        metavar="NN",
        help="how its name begins; default: all that came",
    )
    parser.add_argument(
        "--points", type=Path, metavar="FILE", help="a toml; default: 1 an exercise"
    )
    parser.add_argument(
        "--homework", type=Path, metavar="DIR", help="the folder `instructor` of make homework"
    )
    parser.add_argument("--limit", type=int, default=SECONDS, help="seconds of an exercise (10)")
    parser.add_argument("--memory", type=int, default=MEMORY, help="MB of an exercise (2048)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--contained", action="store_true", help="this runs in a container")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    return parser


def grade(options: argparse.Namespace) -> str:
    """Grade and write; what there is to say about it.

    Raises:
        StudioError: nothing can be graded, and why.
    """
    if not hasattr(os, "fork"):
        raise StudioError(
            f"Grading needs a system with fork; on Windows, use a container:\n    {sandbox.CONTAINER}"
        )
    course = manifest.load(options.book, files=False)
    asked = course.chosen(options.chapter or [])
    stems = sorted((page.notebook for page in course.notebooks), key=len, reverse=True)
    own = homework_sheets(read_key(options.homework)) if options.homework else []
    stems = [*(sheet.notebook for sheet in own), *stems]
    submissions, others = collect(options.folder, stems)
    known = own or sheets(asked)
    came = {stem for one in submissions for stem in chosen(one, known)[0]}
    known = [sheet for sheet in known if sheet.notebook in came]
    if not known:
        raise StudioError(f"No notebook in {options.folder} has an exercise of what is graded.")
    worth = points(options.points, [one for sheet in known for one in sheet.exercises])
    open_because = sandbox.why_open()
    if open_because and not options.contained:
        if os.geteuid() == 0 and not sandbox.someone(False):
            raise sandbox.SandboxError(sandbox.AS_ROOT.format(open_because))
        print(sandbox.OPEN.format(open_because), file=sys.stderr)
    marks = _all_marks(submissions, known, worth, options, not open_because)
    to = options.to or options.book.resolve().parent / "_build" / "grades"
    report.write(marks, to)
    left = f"\nNo submissions, and left alone: {', '.join(others)}." if others else ""
    return (
        f"{_summary(marks, worth, len(submissions))}\n{to / 'marks.csv'}\n{to / 'index.html'}{left}"
    )


def _summary(marks: list[Mark], worth: dict[str, float], students: int) -> str:
    graded = [mark for mark in marks if mark.total]
    full = sum(worth[mark.exercise] for mark in graded)
    share = report.total(graded) / full if full else 0.0
    to_read = sum(mark.total is None and bool(mark.text) for mark in marks)
    read = f", {to_read} open answers to be read" if to_read else ""
    return f"{students} students, {len(graded)} exercises graded: {share:.0%} of all points{read}."


# Judges -----------------------------------------------------------------------------------------

_OWN: dict[str, tuple] = {}
"""Of a judging process: what it grades, and its sandbox."""


def _all_marks(
    submissions: list[Submission],
    known: list[Sheet],
    worth: dict[str, float],
    options: argparse.Namespace,
    walls: bool,
) -> list[Mark]:
    """The marks of all, in the submissions' order; a bar counts students."""
    from course_utils.studio.grading.forks import warm

    warm()
    limits = (options.limit, options.memory, walls)
    found: dict[int, list[Mark]] = {}
    with tqdm(total=len(submissions), unit="student", disable=None) as bar:

        def judge(which: dict[int, Submission], jobs: int) -> None:
            """Judge these, until the system ends a process; what is done by then stays."""
            begun = (known, worth, limits)
            fork = multiprocessing.get_context("fork")
            with (
                contextlib.suppress(BrokenProcessPool),
                ProcessPoolExecutor(jobs, fork, _begin, begun) as pool,
            ):
                waiting = {pool.submit(_judge, one): n for n, one in which.items()}
                for done in as_completed(waiting):
                    found[waiting[done]] = done.result()
                    bar.update()

        everybody = dict(enumerate(submissions))
        judge(everybody, max(1, min(options.jobs, len(submissions))))
        for n, one in everybody.items():
            if n not in found:
                judge({n: one}, 1)
    return [
        mark for n, one in everybody.items() for mark in found.get(n) or unjudged(one, known, ENDED)
    ]


def _begin(known: list[Sheet], worth: dict[str, float], limits: tuple[int, int, bool]) -> None:
    import torch

    torch.set_num_threads(1)
    os.environ["COURSE_STRICT"] = "1"  # nothing of a student's is the grader's own progress
    seconds, memory, walls = limits
    box = sandbox.Sandbox(seconds, memory, walls=walls)
    multiprocessing.util.Finalize(None, box.close, exitpriority=1)  # its folder goes with it
    _OWN["own"] = (known, worth, box)


def _judge(submission: Submission) -> list[Mark]:
    known, worth, box = _OWN["own"]
    return judged(submission, known, worth, box)


if __name__ == "__main__":
    sys.exit(main())
