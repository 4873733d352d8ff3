"""The check of a built book, on its files."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from bs4 import BeautifulSoup

from course_utils.kit.page import MAX_BYTES
from course_utils.studio.book import pages
from course_utils.studio.manifest import Manifest

BESIDE = {"search", "404"}  # pages that no chapter makes
OTHER_HOST = re.compile(r"^(https?:)?//")
ELSEWHERE = re.compile(r"^([a-z][a-z0-9+.-]*:|//)")
LIVE = re.compile(r'"(live/[\w/]+\.js)"')  # what boot.js of a live model loads
STATE = re.compile(r"^(live|explorer)=")  # a fragment that sets the controls of a widget


def check(html: Path, course: Manifest) -> list[str]:
    """The faults of a built book, one line each; none when it is whole."""
    texts = {file.stem: file.read_text(encoding="utf-8") for file in sorted(html.glob("*.html"))}
    soups = {name: BeautifulSoup(text, "html.parser") for name, text in texts.items()}
    built, wanted = soups.keys() - BESIDE, set(pages.names(course))
    problems = [f"{name}.html is missing: make book" for name in sorted(wanted - built)]
    problems += [
        f"{name}.html is no page of book.toml: make book" for name in sorted(built - wanted)
    ]
    for name in sorted(built):
        problems += [f"{name}.html: {problem}" for problem in page_problems(soups[name])]
        for script in sorted(set(LIVE.findall(texts[name]))):
            if not (html / script).is_file():
                problems.append(
                    f"{name}.html: {script} is missing, a live model needs it: make book"
                )
    return problems or dead_links(html, soups)


def page_problems(page: BeautifulSoup) -> Iterator[str]:
    """The faults of a page: pictures and folds without a name, other hosts, heavy explorers, tracebacks."""
    if page.article and len(titles := page.select("article h1")) != 1:
        yield f"it has {len(titles)} titles"
    drawings = [(svg.get("aria-label"), svg.get_text()) for svg in page.select(".cu-figure svg")]
    images = [(image.get("alt"), image.get("src", "")) for image in page.find_all("img")]
    for alt, content in drawings + images:
        if not (alt or "").strip():
            yield f"a picture has no alt text: {content[:80]}"
    for fold in page.find_all("summary"):
        if not (fold.get("aria-label") or fold.get_text(strip=True)):
            yield f"a fold has no name: {fold.parent.get_text()[:80]}"
    links = [link for link in page.find_all("link") if link.get("rel") != ["canonical"]]
    for address in [tag.get("src", tag.get("href")) for tag in [*page.find_all(src=True), *links]]:
        if OTHER_HOST.match(address):
            yield f"asks another host: {address}"
    sizes = [len(str(explorer).encode()) for explorer in page.select(".cu-explorer")]
    if (size := max(sizes, default=0)) > MAX_BYTES:
        yield f"an explorer has {size / 1000:.0f} KB; at most {MAX_BYTES // 1000} fit a page"
    if page.find(string=re.compile("Traceback .most recent call last")):
        yield "shows a traceback"


def dead_links(html: Path, soups: Mapping[str, BeautifulSoup]) -> list[str]:
    """Links of pages to files that the book lacks, and to places that a page lacks, one line each."""
    places = {
        (html / f"{name}.html").resolve(): {
            tag.get(key) for tag in soup.find_all() for key in ("id", "name")
        }
        for name, soup in soups.items()
    }
    problems = []
    for name, soup in soups.items():
        links = {tag[key] for key in ("href", "src") for tag in soup.find_all(attrs={key: True})}
        for link in sorted(links) if name != "404" else ():  # a host shows that one anywhere
            target, _, place = link.partition("#")
            if ELSEWHERE.match(link) or STATE.match(place):
                continue
            file = (html / (unquote(target.partition("?")[0]) or f"{name}.html")).resolve()
            file = file / "index.html" if file.is_dir() else file
            if not file.is_file():
                problems.append(f"{name}.html: {link}: no such file")
            elif place and unquote(place) not in places.get(file, {unquote(place)}):
                problems.append(f"{name}.html: {link}: no such place in it")
    return problems
