"""Do the links of a built book lead to files of it, and to places in them?"""

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

SCRIPT = re.compile(r"<(script|style)\b[^>]*>.*?</\1>", re.DOTALL)
LEADS = re.compile(r"""<[a-z][\w-]*\b[^>]*?\s(?:href|src)=(?:"([^"]*)"|'([^']*)')""")
NAMED = re.compile(r"""<[a-zA-Z][\w-]*\b[^>]*?\s(?:id|name)=(?:"([^"]*)"|'([^']*)')""")
FAR = re.compile(r"^([a-z][a-z0-9+.-]*:|//)")
STATE = re.compile(
    r"^(live|explorer)="
)  # of a live model or an explorer: it names controls, no place


def dead(html: Path) -> list[str]:
    """The links to nothing, a line each: the page, and where it leads.

    Args:
        html: the folder of the book. Links to other hosts are not followed.
    """
    texts = {
        page: SCRIPT.sub(_opened, page.read_text(encoding="utf-8"))
        for page in sorted(html.rglob("*.html"))
        if "_static" not in page.parts
    }
    named = {page.resolve(): _found(NAMED, text) for page, text in texts.items()}
    problems = []
    for page, text in texts.items():
        if page.name == "404.html":  # a host shows it at other addresses than its own
            continue
        for target in sorted(_found(LEADS, text)):
            if why := _dead(target, page.resolve(), named):
                problems.append(f"{page.relative_to(html).as_posix()}: {target}: {why}")
    return problems


def _opened(match: re.Match) -> str:
    """A script as its first tag alone, which may name a file."""
    return match[0].partition(">")[0] + ">"


def _found(pattern: re.Pattern, text: str) -> set[str]:
    return {unescape(match[1] or match[2] or "") for match in pattern.finditer(text)}


def _dead(target: str, page: Path, named: dict[Path, set[str]]) -> str:
    """Why a link of a page leads nowhere; empty if it leads somewhere."""
    if FAR.match(target):
        return ""
    file, _, place = target.partition("#")
    file = unquote(file.partition("?")[0])
    there = (page.parent / file).resolve() if file else page
    if there.is_dir():
        there /= "index.html"
    if not there.is_file():
        return "no such file"
    place = unquote(place)
    if not place or STATE.match(place) or there not in named or place in named[there]:
        return ""
    return "no such place in it"
