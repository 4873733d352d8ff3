"""The index of the book's search: the sections of all pages, as one script beside them.

Sphinx lists pages by their titles and, from a file, shows no summary. `static/search.js` looks through sections
instead, knows that "sqrt" is √, and shows the sentence that it found, from a file as from a server.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from lxml import html

from course_utils.studio.plain_formula import plain_text

SCRIPT = "sections.js"
SKIPPED_TAGS = {"script", "style", "svg", "form", "nav"}
SKIPPED_CLASSES = {"cell_input", "cell_output", "headerlink", "hide", "cu-claim", "cu-links"}


def write_sections(folder: Path) -> None:
    """Write ``sections.js``: for each section its page, its place, the page's title, its own title and its text."""
    pages = sorted(folder.glob("*.html"))
    sections = [
        section
        for page in pages
        if page.stem not in ("search", "404")
        for section in _sections(page)
    ]
    text = f"window.SECTIONS = {json.dumps(sections, ensure_ascii=False, separators=(',', ':'))};\n"
    (folder / SCRIPT).write_text(text, encoding="utf-8")


def _sections(page: Path) -> Iterator[tuple[str, str, str, str, str]]:
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True)
    article = html.parse(page, parser).find(".//article")
    if article is None:
        return
    for element in list(article.iter("*")):
        if element.tag in SKIPPED_TAGS or SKIPPED_CLASSES & set(element.get("class", "").split()):
            element.drop_tree()
    sections = article.findall(".//section[@id]")
    titles = {section: _text(section.find("./*[1]")) for section in sections}
    name = titles[sections[0]] if sections else page.stem
    for section in sections:
        own = [part for part in section if part.tag != "section"][1:]
        yield page.name, section.get("id"), name, titles[section], " ".join(map(_text, own))


def _text(element: html.HtmlElement) -> str:
    return plain_text(element.text_content())
