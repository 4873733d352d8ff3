"""What the built book does to its readers: what axe-core finds, whom a page asks, what it keeps in a browser.

`python tests/audit.py` looks at every page, and writes what it found into docs/accessibility.md and docs/privacy.md;
the tests look at the pages of the day.
"""

import re
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import axe_playwright_python
from axe_playwright_python.sync_playwright import Axe
from browsing import FLAGS, opened
from playwright.sync_api import Browser, expect, sync_playwright
from tqdm import tqdm

from course_utils.files import ROOT, atomic_write
from course_utils.studio import manifest
from course_utils.studio.book import pages
from course_utils.studio.book.__main__ import listen
from course_utils.studio.book.build import build

ONLY_WRONG = {"preload": False, "resultTypes": ["violations"]}
WCAG = ONLY_WRONG | {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
CONTRAST = ONLY_WRONG | {"runOnly": ["color-contrast"]}
STORED = "() => [...Object.keys(localStorage), ...Object.keys(sessionStorage)]"
THEME = ("mode", "theme")
SET = """async () => {
    await window.MathJax?.startup?.promise;
    for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);  // sizes are looked at then
}"""


@dataclass(frozen=True)
class Found:
    """What was found on a page.

    Attributes:
        page: its name.
        broken: the rules of axe-core that it breaks, each with the first place, in light and in dark.
        cookies: the names of those that it has set.
        stored: the names of what it keeps in the browser before a reader does anything; the theme keeps `THEME`.
    """

    page: str
    broken: tuple[str, ...]
    cookies: tuple[str, ...]
    stored: tuple[str, ...]


def look(browser: Browser, address: str, name: str) -> Found:
    """Open a page and look at it, in light and in dark. That it asks another host is an AssertionError."""
    with opened(browser, address, reduced_motion="reduce") as page:
        page.goto(f"/{name}.html")
        page.evaluate(SET)
        broken = told_by_axe(page, WCAG)
        page.emulate_media(color_scheme="dark")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        broken += [f"in the dark: {one}" for one in told_by_axe(page, CONTRAST)]
        cookies = tuple(cookie["name"] for cookie in page.context.cookies())
        stored = (one for one in page.evaluate(STORED) if one not in THEME)
        return Found(name, tuple(broken), cookies, tuple(stored))


def told_by_axe(page, rules: dict, context: str | None = None) -> list[str]:
    """The rules that a page breaks, or the part of it that `context` selects, each with its places."""
    found = Axe().run(page, context=context, options=rules).response["violations"]
    return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"]]


def look_at_all(names: Iterable[str], html: Path) -> Iterator[Found]:
    """Look at pages of a built book, in the system's Chromium."""
    names_of_it = ("chromium", "chromium-browser", "google-chrome", "chrome")
    chromium = next(filter(None, map(shutil.which, names_of_it)), None)
    if chromium is None:
        sys.exit("There is no Chromium here: install it, and call this again.")
    with listen(html, 8200) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name in names:
            yield look(browser, f"http://127.0.0.1:{server.server_port}", name)
        browser.close()
        server.shutdown()


def axe_core() -> str:
    """The version of axe-core that looks at the pages."""
    script = Path(axe_playwright_python.__file__).with_name("axe.min.js")
    return re.search(r"axe v([\d.]+)", script.read_text(encoding="utf-8"))[1]


def sentences(found: list[Found]) -> dict[str, str]:
    """What the two pages say that was measured: name of the page → sentence."""
    broken = sum(len(one.broken) for one in found)
    kept = sum(len(one.cookies) + len(one.stored) for one in found)
    return {
        "accessibility": f"axe-core {axe_core()} has looked at {len(found)} pages, in light and in dark. "
        f"Breaches of WCAG 2.1, levels A and AA: {broken}.",
        "privacy": f"{len(found)} pages were opened in Chromium. Requests to other hosts: 0. Cookies, and entries in "
        f"the browser's storage beside `mode` and `theme`, before a reader had done anything: {kept}.",
    }


def write(told: dict[str, str], folder: Path = ROOT / "docs") -> None:
    """Put the sentences into their pages, between the marks."""
    for name, sentence in told.items():
        path = folder / f"{name}.md"
        text = path.read_text(encoding="utf-8")
        new = re.sub(
            r"(<!-- measured -->\n).*?(\n<!-- /measured -->)",
            rf"\g<1>{sentence}\2",
            text,
            flags=re.S,
        )
        with atomic_write(path) as part:
            part.write_text(new, encoding="utf-8")


def main() -> int:
    """Look at the whole book; 0 if nothing is wrong with it."""
    course = manifest.load(files=False)
    html = build(course, ROOT / "_build").parent
    names = pages.names(course)
    found = list(tqdm(look_at_all(names, html), "Pages", len(names)))
    write(sentences(found))
    wrong = [one for one in found if one.broken or one.cookies or one.stored]
    for one in wrong:
        print(one.page, *one.broken, *one.cookies, *one.stored, sep="\n  ")
    print("docs/accessibility.md and docs/privacy.md say what was found.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
