"""The command line of the book."""

import argparse
import functools
import http.server
import sys
from pathlib import Path

from course_utils.files import ROOT
from course_utils.studio import StudioError, manifest

PORT = 8000


def main(argv: list[str] | None = None) -> int:
    """Run the command of the command line; returns 0 when it went well."""
    prog = "python -m course_utils.studio.book"
    parser = argparse.ArgumentParser(prog=prog, description="The course as a Jupyter Book.")
    parser.add_argument(
        "--manifest", type=Path, default=ROOT / "book.toml", help="the manifest (book.toml)"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="make the book in _build/html")
    helps = "look at the manifest and the built book; `studio check` looks at the notebooks"
    commands.add_parser("check", help=helps)
    server = commands.add_parser("serve", help="show the built book, on this machine alone")
    server.add_argument("--port", type=int, default=PORT, help="the port, if it is free")
    options = parser.parse_args(argv)
    html = options.manifest.resolve().parent / "_build" / "html"
    try:
        if options.command == "serve":
            return _serve(html, options.port)
        return (_build if options.command == "build" else _check)(options.manifest, html)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _build(path: Path, html: Path) -> int:
    from course_utils.studio import tables
    from course_utils.studio.book.build import build  # slow to import

    course = manifest.load(path, files=False)
    print(build(course, html.parent))
    tables.write_tables(course)
    if course.missing_prerequisites:
        print(course.missing_prerequisites)
    return 0


def _check(path: Path, html: Path) -> int:
    from course_utils.studio.book.check import check

    course = manifest.load(path)
    problems = check(html, course) if html.is_dir() else []
    whole = f"and the book in {html} is whole"
    state = whole if html.is_dir() else "the book is not built yet: make book"
    print("\n".join(problems) if problems else f"{path.name} is right, {state}.")
    return 1 if problems else 0


def _serve(html: Path, port: int) -> int:
    if not (html / "index.html").is_file():
        raise StudioError("The book is not built yet: make book")
    with listen(html, port) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        print(f"The book is at {address} (stop with Ctrl-C)", flush=True)
        server.serve_forever()
    return 0


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that prints no line for each request."""

    def log_message(self, *args) -> None:
        """Print nothing."""


def listen(folder: Path, port: int = PORT) -> http.server.ThreadingHTTPServer:
    """A server of a folder, for this machine alone, on `port`, or on any free port where that is taken."""
    handler = functools.partial(Quiet, directory=folder)
    try:
        return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError:
        return http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)


if __name__ == "__main__":
    sys.exit(main())
