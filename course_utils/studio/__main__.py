"""One command for those who maintain the course: ``python -m course_utils.studio COMMAND``.

run [CHAPTER …]     execute sources into clean notebooks, and say how long they are; CHAPTER is the start of a name: 02
sync [CHAPTER …]    bring an edit made in Lab to its source, or of a source to its notebook
check               hold the committed notebooks against their sources and the rules
handout [--to DIR]  write the course without solutions and outputs; --for nbgrader or otter
grade DIR           how far everybody got, from a folder of submissions: marks.csv and texts
slides CHAPTER      a deck of a chapter, to project
pool [CHAPTER …]    the questions of the quizzes as GIFT, for a learning platform
lab                 open JupyterLab on the start page
doctor              look at what the course runs on
runs                make the stored runs that are missing or stale
book                build the book, or serve it
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from course_utils.files import ROOT
from course_utils.studio import StudioError

# These read the rest of the line themselves. Each command imports what it needs, when it is asked for.
FURTHER = {
    "lab": "course_utils.studio.lab",
    "grade": "course_utils.studio.grade",
    "book": "course_utils.studio.book.__main__",
    "runs": "course_utils.studio.runs",
    "slides": "course_utils.studio.teaching.slides",
    "pool": "course_utils.studio.teaching.pool",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Do one command; 0 if all went well, 1 with the reason on stderr, 130 after an interrupt."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv and argv[0] in FURTHER:
        return importlib.import_module(FURTHER[argv[0]]).main(argv[1:])
    options = _parser().parse_args(argv)
    try:
        return options.run(options)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted: each notebook is as it was, or complete.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio",
        description="Make, check and hand out the course.",
        epilog=f"{', '.join(FURTHER)}: further commands, each with a --help of its own.",
    )
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="execute sources into clean notebooks")
    run.set_defaults(run=_run)
    run.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    run.add_argument("--fresh", action="store_true", help="renew recorded measurements, too")
    both = commands.add_parser("sync", help="bring an edit to the other file of a pair")
    both.set_defaults(run=_sync)
    both.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    check = commands.add_parser("check", help="hold notebooks against sources and rules")
    check.set_defaults(run=_check)
    hand = commands.add_parser("handout", help="write the course without solutions and outputs")
    hand.set_defaults(run=_handout)
    hand.add_argument("--to", type=Path, metavar="DIR", help="default: _build/handout")
    hand.add_argument("--force", action="store_true", help="replace a handout that was worked in")
    hand.add_argument(
        "--for",
        dest="grader",
        choices=["nbgrader", "otter"],
        help="instead, sheets of exercises with solutions for this tool, in _build/nbgrader or _build/otter",
    )
    look = commands.add_parser("doctor", help="look at what the course runs on")
    look.set_defaults(run=_doctor)
    return parser


def _run(options: argparse.Namespace) -> int:
    from course_utils.studio import manifest, notebooks, tables

    course = manifest.load(options.book, files=False)
    for chapter in course.chosen(options.chapters):
        said = notebooks.make(chapter, fresh=options.fresh)
        words = chapter.page.words if chapter.page else 0
        print(f"{said}; {words:,} words, {chapter.minutes} minutes", flush=True)
    tables.write_tables(course)
    return 0


def _sync(options: argparse.Namespace) -> int:
    from course_utils.studio import manifest, pairs

    course = manifest.load(options.book, files=False)
    stuck = 0
    for chapter in course.chosen(options.chapters):
        try:
            said = pairs.sync(chapter.source, chapter.ipynb)
        except pairs.PairError as error:
            stuck, said = 1, str(error)
        if said:
            print(said, flush=True)
    return stuck


def _check(options: argparse.Namespace) -> int:
    from course_utils.studio import manifest, notebooks

    course = manifest.load(options.book)
    pages = course.notebooks
    found = [f"{page.notebook}: {wrong}" for page in pages for wrong in notebooks.check(page)]
    print("\n".join(found) or f"{len(pages)} notebooks agree with their sources and the rules.")
    return 1 if found else 0


def _handout(options: argparse.Namespace) -> int:
    from course_utils.studio import handout, manifest, tables

    root = options.book.resolve().parent
    to = options.to or root / "_build" / (options.grader or "handout")
    course = manifest.load(options.book, files=False)
    if options.grader:
        from course_utils.studio import graders

        graders.build(course, to, options.grader)
        print(f"The exercises for {options.grader} are in {to}, with a README.md")
        return 0
    handout.build(course, root, to, force=options.force)
    tables.write_tables(course)
    print("\n".join(filter(None, [course.lacking, f"The handout is in {to}"])))
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from course_utils.kit.doctor import doctor

    report = doctor()
    print(report)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
