"""What every built book satisfies, seen from its files alone."""

import re
from html.parser import HTMLParser
from pathlib import Path

from course_utils.studio.book import pages
from course_utils.studio.manifest import Manifest

EXPLORER_BYTES = 600_000
OF_SPHINX = {"search", "genindex"}
VOID = {
    "area",
    "base",
    "br",
    "col",
    "embed",
    "hr",
    "img",
    "input",
    "link",
    "meta",
    "source",
    "track",
    "wbr",
}
LOADS = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}


def check(html: Path, course: Manifest) -> list[str]:
    """What is wrong with a built book, one line each; none when it is whole."""
    found, wanted = (
        {file.stem for file in html.glob("*.html")} - OF_SPHINX,
        set(pages.names(course)),
    )
    problems = [f"{name}.html is missing: make book" for name in sorted(wanted - found)]
    problems += [
        f"{name}.html is no page of book.toml: make book" for name in sorted(found - wanted)
    ]
    for name in sorted(found):
        text = (html / f"{name}.html").read_text(encoding="utf-8")
        problems += [f"{name}.html: {problem}" for problem in page_problems(text)]
    for sheet in sorted((html / "_static").rglob("*.css")):
        if far := re.search(
            r"(@import\s+|url\()\s*[\"']?(https?:)?//[^)\"']+", sheet.read_text(encoding="utf-8")
        ):
            problems.append(f"{sheet.relative_to(html)} asks another host: {far[0]}")
    return problems


def page_problems(text: str) -> list[str]:
    """What is wrong with one page."""
    page = _Page(text)
    problems = list(page.problems)
    if "Traceback (most recent call last)" in text or 'class="output traceback' in text:
        problems.append("shows a traceback")
    return problems


class _Page(HTMLParser):
    """Notes pictures without alt text, resources of other hosts, and explorers that are too heavy."""

    def __init__(self, text: str):
        super().__init__()
        self.problems: list[str] = []
        self.starts = [0]  # where each line starts
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.open: list[
            tuple[str, int | None]
        ] = []  # tags, with the place where an explorer starts
        self.feed(text)

    def place(self) -> int:
        line, column = self.getpos()
        return self.starts[line - 1] + column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "img" and not (values.get("alt") or "").strip():
            self.problems.append(f"a picture has no alt text: {(values.get('src') or '')[:80]}")
        address = values.get(LOADS.get(tag, "")) or ""
        if re.match(r"(https?:)?//", address):
            self.problems.append(f"asks another host: {address}")
        if tag not in VOID:
            explorer = "cu-explorer" in (values.get("class") or "").split()
            self.open.append((tag, self.place() if explorer else None))

    def handle_endtag(self, tag: str) -> None:
        while self.open:
            name, start = self.open.pop()
            if start is not None and (size := self.place() - start) > EXPLORER_BYTES:
                self.problems.append(
                    f"an explorer has {size / 1000:.0f} KB; at most {EXPLORER_BYTES // 1000} fit a page"
                )
            if name == tag:
                return
