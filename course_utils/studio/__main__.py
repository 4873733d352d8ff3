"""One command for those who maintain the course: ``python -m course_utils.studio COMMAND``.

run [CHAPTER …]     execute sources into clean notebooks, and say how long they are; CHAPTER is the start of a name: 02
sync [CHAPTER …]    bring an edit made in Lab to its source, or one of a source to its notebook; write book.toml's ways
check               hold the committed notebooks against their sources and the rules (`book check`: the built book)
original CHAPTER    get a notebook back as it was; the one in its place gets another name
handout [--to DIR]  write the course without solutions and outputs; --for nbgrader or otter
slides CHAPTER      a deck of a chapter, to project
pool [CHAPTER …]    the questions of the quizzes as GIFT, for a learning platform
lab                 open JupyterLab on the start page
doctor              look at what the course runs on
runs [CHAPTER …]    train the stored runs that are missing, whose results notebooks show (`run` trains none)
book                build the book, serve it, or check what was built
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from course_utils.files import ROOT
from course_utils.studio import StudioError, manifest, paths, tables

OWN_PARSERS = {
    "lab": "course_utils.studio.lab",
    "book": "course_utils.studio.book.__main__",
    "runs": "course_utils.studio.runs",
}
"""Commands that parse the rest of the line themselves."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns 0 if all went well, 1 with the reason on stderr, 130 after an interrupt."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv and argv[0] in OWN_PARSERS:
        return importlib.import_module(OWN_PARSERS[argv[0]]).main(argv[1:])
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    parser.add_argument("--to", type=Path, metavar="DIR", help="of handout: where it is written")
    parser.add_argument("--for", dest="tool", choices=["nbgrader", "otter"], help="of handout")
    parser.add_argument("--fresh", action="store_true", help="of run: renew measured times, too")
    options = parser.parse_args(argv)
    try:
        return COMMANDS[options.command](options) or 0
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted: each notebook is as it was, or complete.", file=sys.stderr)
        return 130


# Each command imports what it needs when it is asked for, because that is slow.


def _run(options: argparse.Namespace) -> None:
    from course_utils.studio import notebooks

    course = manifest.load(options.book, files=False)
    for chapter in course.chosen(options.chapters):
        line = notebooks.make(chapter, fresh=options.fresh)
        print(f"{line}; {chapter.content.words:,} words, {chapter.minutes} minutes", flush=True)
    tables.write_tables(course)


def _sync(options: argparse.Namespace) -> int:
    from course_utils.studio import notebook_files

    status, course = 0, manifest.load(options.book, files=False)
    for chapter in course.chosen(options.chapters):
        try:
            line = notebook_files.sync(chapter.source, chapter.ipynb)
        except StudioError as error:
            status, line = 1, str(error)
        else:
            if ways := paths.write_lines(course.whole, chapter):
                notebook_files.sync(chapter.source, chapter.ipynb)
            line = "; ".join(filter(None, (line, ways)))
        if line:
            print(line, flush=True)
    return status


def _check(options: argparse.Namespace) -> int:
    from course_utils.studio import giveaways, notebooks

    course = manifest.load(options.book)
    pages = course.notebooks
    lines = [f"{page.notebook}: {fault}" for page in pages for fault in notebooks.check(page)]
    print("\n".join(lines) or f"{len(pages)} notebooks agree with their sources and the rules.")
    print(giveaways.summary(course))
    return 1 if lines else 0


def _handout(options: argparse.Namespace) -> None:
    from course_utils.studio import graders, handout, written

    course = manifest.load(options.book, files=False)
    to = options.to or course.root / "_build" / (options.tool or "handout")
    if options.tool:
        others = graders.build(course, to, options.tool)
        lines = [f"The exercises for {options.tool} are in {to}, with a README.md"]
    else:
        others = handout.build(course, course.root, to)
        lines = [course.missing_prerequisites, f"The handout is in {to}"]
    print("\n".join(filter(None, [*lines, written.left(others)])))


def _slides(options: argparse.Namespace) -> None:
    from course_utils.studio.teaching import slides

    course = manifest.load(options.book)
    out = course.root / "_build" / "slides"
    print(*slides.write(course, course.chosen(options.chapters), out), sep="\n")


def _pool(options: argparse.Namespace) -> None:
    from course_utils.studio.teaching import pool

    course = manifest.load(options.book, files=False)
    out = course.root / "_build" / "pool"
    files = pool.write(course.chosen(options.chapters), out)
    print(f"{len(files)} files of questions are in {out}")


def _original(options: argparse.Namespace) -> None:
    from course_utils.studio import originals

    if not options.chapters:
        raise StudioError("Say which notebook, by the beginning of its name: original 00")
    course = manifest.load(originals.here(options.book), files=False)
    for name in options.chapters:
        found = course.chosen([name])  # with its further page only if that is named
        for chapter in found if len(found) == 1 else [c for c in found if c.kind != "further"]:
            print(originals.bring_back(course, chapter))


def _doctor(_: argparse.Namespace) -> int:
    from course_utils.kit.doctor import doctor

    report = doctor()
    print(report)
    return 0 if report.ok else 1


COMMANDS = {
    "run": _run,
    "sync": _sync,
    "check": _check,
    "original": _original,
    "handout": _handout,
    "slides": _slides,
    "pool": _pool,
    "doctor": _doctor,
}


if __name__ == "__main__":
    sys.exit(main())
