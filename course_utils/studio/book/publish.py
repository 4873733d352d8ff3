"""What the theme leaves undone in a built page: names for screen readers, and an address that Binder reads.

Sphinx's extensions make heads for shared links, the sitemap and the page for a missing address: `pages` names them.
"""

import re
from pathlib import Path

TOGGLE = re.compile(r"(<a [^>]*>([^<]*)</a><details[^>]*><summary)>")
"""A chapter in the side bar, and the arrow that shows its further page: the theme gives that no name."""
THEIRS = {
    "doc-biblioentry": "listitem",
    'class="bd-sidebar-primary bd-sidebar"': 'class="bd-sidebar-primary bd-sidebar pst-sidebar-hidden"',
    "Toggle primary sidebar": "All chapters",
    "Toggle secondary sidebar": "On this page",
}
"""What the theme writes → what a page has: entries of a list, a closed list, buttons that say what they show."""
BINDER = re.compile(r"(?<=/v2/git/)(https%3A//[^?\"]+)(?=/[^/?\"]+\?)")
"""A repository elsewhere than on GitHub and GitLab, which Binder wants quoted whole."""


def finish(html: Path) -> None:
    """Mend the pages of a built book; done again, it changes nothing.

    Args:
        html: the folder of the book.
    """
    for file in sorted(html.glob("*.html")):
        old = file.read_text(encoding="utf-8")
        new = TOGGLE.sub(r'\1 aria-label="Pages below \2">', old)
        for theirs, ours in THEIRS.items():
            new = new.replace(theirs, ours)
        new = BINDER.sub(lambda match: match[0].replace("/", "%2F"), new)
        if new != old:
            file.write_text(new, encoding="utf-8")
    for template in (html / "_static").glob("*macros.html"):
        template.unlink()  # of the theme: no page, and its links lead nowhere
