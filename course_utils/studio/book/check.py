"""What every built book satisfies, seen from its files alone."""

import ast
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import nbformat
from bs4 import BeautifulSoup

from course_utils.kit.page import MAX_BYTES
from course_utils.studio.book import pages
from course_utils.studio.book.local_links import dead
from course_utils.studio.manifest import Manifest

BEGINNING = 40
"""As many letters of a reason are looked for: a line of code may end behind them."""
BESIDE = {"search", "404"}  # pages that no chapter makes
FAR = re.compile(r"^(https?:)?//")
NEAR = re.compile(r"^(?!data:|(https?:)?//)")
FAR_IN_CSS = re.compile(r"(@import\s+|url\()\s*[\"']?(https?:)?//[^)\"']+")
TAG = re.compile(r"<[^>]*>")  # an attribute's own brackets are escaped
LIVE = re.compile(r'"(live/[\w/]+\.js)"')  # what boot.js of a live model loads


def check(html: Path, course: Manifest) -> list[str]:
    """What is wrong with a built book, one line each; none when it is whole."""
    found = {file.stem for file in html.glob("*.html")} - BESIDE
    wanted = set(pages.names(course))
    problems = [f"{name}.html is missing: make book" for name in sorted(wanted - found)]
    problems += [
        f"{name}.html is no page of book.toml: make book" for name in sorted(found - wanted)
    ]
    for name in sorted(found):
        text = (html / f"{name}.html").read_text(encoding="utf-8")
        problems += [f"{name}.html: {problem}" for problem in page_problems(text, html)]
        for script in sorted(set(LIVE.findall(text))):
            if not (html / script).is_file():
                problems.append(
                    f"{name}.html: {script} is missing, a live model needs it: make book"
                )
    problems += [] if problems else [f"a dead link: {one}" for one in dead(html)]
    problems += told_too_early(html, course)
    for sheet in sorted((html / "_static").rglob("*.css")):
        if far := FAR_IN_CSS.search(sheet.read_text(encoding="utf-8")):
            problems.append(f"{sheet.relative_to(html)} asks another host: {far[0]}")
    return problems


def told_too_early(html: Path, course: Manifest) -> list[str]:
    """Reasons of predictions that stand in the text of their page or of the search before anything is predicted."""
    index = html / "searchindex.js"
    found = index.read_text(encoding="utf-8") if index.is_file() else ""
    problems = ["_sources holds the code of predictions"] if (html / "_sources").exists() else []
    for chapter in course.notebooks:
        page = html / f"{chapter.notebook}.html"
        if not (page.is_file() and chapter.ipynb.is_file()):
            continue
        told = unescape(TAG.sub(" ", page.read_text(encoding="utf-8"))) + found
        notebook = nbformat.read(chapter.ipynb, as_version=4)
        for cell in notebook.cells:
            for reason in _reasons(cell.source) if "cu.predict(" in cell.source else []:
                if reason[:BEGINNING] in told:
                    problems.append(f"{page.name} tells too early: {reason[:BEGINNING]}")
    return problems


def _reasons(source: str) -> Iterator[str]:
    """What the predictions of a cell say when they are made, where it is written out."""
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "cu.predict":
            told = [word.value for word in call.keywords if word.arg in ("why", "wrong")]
            for part in told:
                for node in part.values if isinstance(part, ast.Dict) else [part]:
                    if isinstance(node, ast.Constant):
                        yield node.value


def page_problems(text: str, folder: Path) -> list[str]:
    """What is wrong with a page of a folder: what has no name or no file, other hosts, heavy explorers, tracebacks."""
    page = BeautifulSoup(text, "html.parser")
    titles = page.select("article h1")
    problems = [] if len(titles) == 1 or not page.article else [f"it has {len(titles)} titles"]
    problems += [
        f"a picture is missing: {image['src'][:80]}"
        for image in page.find_all("img", src=NEAR)
        if not (folder / unquote(image["src"])).is_file()
    ]
    problems += [
        f"a drawing has no alt text: {svg.get_text()[:80]}"
        for svg in page.select(".cu-figure svg")
        if not svg.get("aria-label", "").strip()
    ]
    problems += [
        f"a picture has no alt text: {image.get('src', '')[:80]}"
        for image in page.find_all("img")
        if not image.get("alt", "").strip()
    ]
    problems += [
        f"a fold has no name: {fold.parent.get_text()[:80]}"
        for fold in page.find_all("summary")
        if not (fold.get("aria-label") or fold.get_text(strip=True))
    ]
    links = [link for link in page.find_all("link", href=FAR) if link.get("rel") != ["canonical"]]
    loaded = [*page.find_all(src=FAR), *links]
    problems += [f"asks another host: {tag.get('src') or tag['href']}" for tag in loaded]
    for explorer in page.select(".cu-explorer"):
        if (size := len(str(explorer).encode())) > MAX_BYTES:
            limit = MAX_BYTES // 1000
            problems.append(f"an explorer has {size / 1000:.0f} KB; at most {limit} fit a page")
    if "Traceback (most recent call last)" in text or page.select(".output.traceback"):
        problems.append("shows a traceback")
    return problems
