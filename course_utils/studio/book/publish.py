"""What a built book needs to be published: names for screen readers, heads for shared links, files for a host."""

import re
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from course_utils.kit.language import word
from course_utils.studio.book import pages
from course_utils.studio.manifest import Manifest

ABSENT = "404"  # the page that a host shows for an address that it does not know
TOGGLE = re.compile(r"(<a [^>]*>([^<]*)</a><details[^>]*><summary)>")
"""A chapter in the side bar, and the arrow that shows its further page: the theme gives that no name."""
THEIRS = {
    "doc-biblioentry": "listitem",
    'class="bd-sidebar-primary bd-sidebar"': 'class="bd-sidebar-primary bd-sidebar pst-sidebar-hidden"',
}
"""What the theme writes → what a page has: entries are those of a list, and the list of chapters is closed."""
BUTTONS = {"Toggle primary sidebar": "All chapters", "Toggle secondary sidebar": "On this page"}
"""The theme's names → what the buttons show."""
BINDER = re.compile(r"(?<=/v2/git/)(https%3A//[^?\"]+)(?=/[^/?\"]+\?)")
"""A repository elsewhere than on GitHub and GitLab, which Binder wants quoted whole."""
HEAD = re.compile(r"<!-- head -->.*?<!-- /head -->\n?", re.DOTALL)
TITLE = re.compile(r"<title>\s*(.*?)\s*</title>", re.DOTALL)
LEDE = re.compile(r'<p class="cu-lede">(.*?)</p>', re.DOTALL)


def finish(html: Path, course: Manifest) -> None:
    """Bring the pages of a built book, and the files beside them, to where they can be published.

    Done again, it changes nothing: a page that Sphinx has not rendered anew is as it was.

    Args:
        html: the folder of the book.
        course: its `url` is where the book will be; without one there is neither sitemap nor canonical address.
    """
    names = pages.names(course)
    for file in sorted(html.glob("*.html")):
        old = file.read_text(encoding="utf-8")
        new = TOGGLE.sub(r'\1 aria-label="Pages below \2">', old)
        for theirs, ours in THEIRS.items():
            new = new.replace(theirs, ours)
        for theirs, name in BUTTONS.items():
            new = new.replace(theirs, word(name))
        new = BINDER.sub(lambda match: match[0].replace("/", "%2F"), new)
        if file.stem in names:
            new = HEAD.sub("", new).replace("</head>", f"{head(new, file.stem, course)}</head>", 1)
        if new != old:
            file.write_text(new, encoding="utf-8")
    for template in (html / "_static").glob("*macros.html"):
        template.unlink()  # of the theme: no page, and its links lead nowhere
    (html / ".nojekyll").touch()  # GitHub Pages leaves out what begins with "_" otherwise
    (html / f"{ABSENT}.html").write_text(_absent(course), encoding="utf-8")
    (html / "sitemap.xml").unlink(missing_ok=True)
    if course.url:
        (html / "sitemap.xml").write_text(_sitemap(course, names), encoding="utf-8")


def head(page: str, name: str, course: Manifest) -> str:
    """What the head of a page says of it: a sentence, and where it is.

    Args:
        page: its HTML.
        name: its name, without a suffix.
        course: what it is part of.
    """
    title = TITLE.search(page)[1].partition(" &#8212; ")[0]
    asked = LEDE.search(page)
    said = re.sub(r"<[^>]+>", "", asked[1]) if asked else title
    sentence = " ".join(said.split())
    if course.title not in sentence:
        sentence = f"{sentence} ({escape(course.title)})"
    said = {
        "og:title": title,
        "og:description": sentence,
        "og:type": "website" if name == pages.COVER else "article",
        "og:site_name": escape(course.title),
    }
    lines = [f'<meta name="description" content="{_quoted(sentence)}">']
    if course.url:
        said["og:url"] = address(course, name)
        lines.append(f'<link rel="canonical" href="{said["og:url"]}">')
    lines += [f'<meta property="{key}" content="{_quoted(text)}">' for key, text in said.items()]
    return "<!-- head -->" + "".join(lines) + "<!-- /head -->\n"


def address(course: Manifest, name: str) -> str:
    """Where a page of the published book is."""
    return f"{course.url.rstrip('/')}/" + ("" if name == pages.COVER else f"{name}.html")


def _quoted(text: str) -> str:
    """A text of HTML as the value of an attribute."""
    return text.replace('"', "&quot;")


def _absent(course: Manifest) -> str:
    """A host shows it at whatever depth, so that it refers to nothing beside it."""
    start = address(course, pages.COVER) if course.url else "index.html"
    base = f'<base href="{urlsplit(course.url).path.rstrip("/")}/">' if course.url else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">{base}
<title>No such page</title><meta name="robots" content="noindex">
<style>:root {{ background: Canvas; color-scheme: light dark }}
body {{ font: 1.1rem/1.6 system-ui, sans-serif; max-width: 34rem; margin: 20vh auto; padding: 0 1rem }}</style>
</head><body><main><h1>No such page</h1>
<p>It may have moved, or be part of another edition. <a href="{start}">To the first page</a></p>
</main></body></html>
"""


def _sitemap(course: Manifest, names: list[str]) -> str:
    listed = "".join(f"<url><loc>{address(course, name)}</loc></url>\n" for name in names)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{listed}</urlset>\n'
    )
