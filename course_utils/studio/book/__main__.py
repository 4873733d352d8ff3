"""The command line of the book."""

import argparse
import functools
import http.server
import sys
from pathlib import Path

from course_utils.files import ROOT
from course_utils.studio import StudioError, manifest

FIRST_PORT = 8000


def main(argv: list[str] | None = None) -> int:
    """Do what the command line asks for; 0 when it went well."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio.book", description="The course as a Jupyter Book."
    )
    parser.add_argument(
        "--manifest",
        type=Path,
        default=ROOT / "book.toml",
        help="the manifest of the course (book.toml)",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="make the book in _build/html")
    commands.add_parser(
        "check", help="look at the manifest and, if there is one, at the built book"
    )
    server = commands.add_parser(
        "serve", help="show the built book in a browser, on this machine alone"
    )
    server.add_argument("--port", type=int, default=FIRST_PORT, help="the port, if it is free")
    options = parser.parse_args(argv)
    try:
        return {"build": _build, "check": _check, "serve": _serve}[options.command](options)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _build(options: argparse.Namespace) -> int:
    from course_utils.studio import tables
    from course_utils.studio.book.build import build  # slow to import

    course = manifest.load(options.manifest, files=False)
    print(build(course, course.root / "_build"))
    tables.write_tables(course)
    if course.lacking:
        print(course.lacking)
    return 0


def _check(options: argparse.Namespace) -> int:
    from course_utils.studio.book.check import check

    course = manifest.load(options.manifest)
    html = options.manifest.resolve().parent / "_build" / "html"
    problems = check(html, course) if html.is_dir() else []
    built = (
        f"and the book in {html} is whole"
        if html.is_dir()
        else "the book is not built yet: make book"
    )
    print("\n".join(problems) if problems else f"{options.manifest.name} is right, {built}.")
    return 1 if problems else 0


def _serve(options: argparse.Namespace) -> int:
    html = options.manifest.resolve().parent / "_build" / "html"
    if not (html / "index.html").is_file():
        raise StudioError("The book is not built yet: make book")
    with listen(html, options.port) as server:
        print(
            f"The book is at http://127.0.0.1:{server.server_port}/ (stop with Ctrl-C)", flush=True
        )
        server.serve_forever()
    return 0


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing about it."""

    def log_message(self, *args) -> None:
        """Say nothing."""


def listen(folder: Path, port: int = FIRST_PORT) -> http.server.ThreadingHTTPServer:
    """A server of a folder, for this machine alone, on `port`, or on any free port where that is taken."""
    handler = functools.partial(Handler, directory=folder)
    try:
        return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError:
        return http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)


if __name__ == "__main__":
    sys.exit(main())
