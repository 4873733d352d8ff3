"""Links that open a chapter on a JupyterHub: nbgitpuller brings the handout into the student's home.

    python -m course_utils.studio hub HUB REPOSITORY [--branch BRANCH]

HUB is the hub's address, REPOSITORY that of the repository into which the handout was pushed.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, urlencode

from course_utils.files import ROOT
from course_utils.studio import StudioError, manifest


def link(hub: str, repository: str, notebook: str, branch: str = "main") -> str:
    """The address that pulls a repository on a hub and opens a notebook of its folder ``notebooks``.

    Raises:
        StudioError: one of the two is no address.
    """
    for what in (hub, repository):
        if not what.startswith(("https://", "http://")):
            raise StudioError(f"{what} is no address: write it with https://")
    folder = repository.rstrip("/").rpartition("/")[2].removesuffix(".git")
    opens = f"lab/tree/{folder}/notebooks/{notebook}.ipynb"
    asked = urlencode({"repo": repository, "branch": branch, "urlpath": opens}, quote_via=quote)
    return f"{hub.rstrip('/')}/hub/user-redirect/git-pull?{asked}"


def main(argv: Sequence[str]) -> int:
    """Print a table in Markdown, a row a chapter."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio hub", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("hub", help="such as https://hub.example.edu")
    parser.add_argument("repository", help="such as https://example.com/someone/handout")
    parser.add_argument("--branch", default="main")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    try:
        course = manifest.load(options.book, files=False)
        where = (options.hub, options.repository)
        rows = [
            f"| {page.number} | [{page.title}]({link(*where, page.notebook, options.branch)}) |"
            for page in course.notebooks
        ]
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    print("| | Chapter |\n|---|---|", *rows, sep="\n")
    return 0
