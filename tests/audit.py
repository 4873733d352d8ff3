"""What the built book does to its readers: what axe-core finds, whom a page asks, what it keeps in a browser.

`python tests/audit.py` looks at every page, and writes what it found into docs/accessibility.md and docs/privacy.md;
the tests look at the pages of the day.
"""

import re
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import axe_playwright_python
from axe_playwright_python.sync_playwright import Axe
from browsing import FLAGS, find_chromium, one_playwright, opened
from playwright.sync_api import Browser, expect
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
SETTLED = """async () => {
    await window.MathJax?.startup?.promise;
    for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);  // sizes are looked at then
}"""


class Findings(NamedTuple):
    """What is wrong with a page.

    Attributes:
        broken: the rules of axe-core that it breaks, each with its place, in light and in dark.
        stored: the names of its cookies, and of what it keeps in the browser before a reader does
            anything; the theme keeps `THEME`.
    """

    broken: list[str]
    stored: list[str]


def look(browser: Browser, address: str, name: str) -> Findings:
    """Open a page and look at it, in light and in dark. That it asks another host is an AssertionError."""
    with opened(browser, address, reduced_motion="reduce") as page:
        page.goto(f"/{name}.html")
        page.evaluate(SETTLED)
        broken = broken_rules(page, WCAG)
        page.emulate_media(color_scheme="dark")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        broken += [f"in the dark: {rule}" for rule in broken_rules(page, CONTRAST)]
        stored = [cookie["name"] for cookie in page.context.cookies()]
        return Findings(broken, stored + [k for k in page.evaluate(STORED) if k not in THEME])


def broken_rules(page, rules: dict, context: str | None = None) -> list[str]:
    """The rules that a page breaks, or the part of it that `context` selects, each with its places."""
    violations = Axe().run(page, context=context, options=rules).response["violations"]
    return [f"{rule['id']}: {node['html'][:200]}" for rule in violations for node in rule["nodes"]]


def write(findings: Mapping[str, Findings], folder: Path = ROOT / "docs") -> None:
    """Say in the two pages, between their marks, what was measured.

    Args:
        findings: name of a page → what is wrong with it.
        folder: holds accessibility.md and privacy.md.
    """
    script = Path(axe_playwright_python.__file__).with_name("axe.min.js")
    version = re.search(r"axe v([\d.]+)", script.read_text(encoding="utf-8"))[1]
    count = len(findings)
    broken = sum(len(page.broken) for page in findings.values())
    stored = sum(len(page.stored) for page in findings.values())
    sentences = {
        "accessibility": f"axe-core {version} has looked at {count} pages, in light and in dark. "
        f"Breaches of WCAG 2.1, levels A and AA: {broken}.",
        "privacy": f"{count} pages were opened in Chromium. Requests to other hosts: 0. Cookies, and entries in "
        f"the browser's storage beside `mode` and `theme`, before a reader had done anything: {stored}.",
    }
    for name, sentence in sentences.items():
        path = folder / f"{name}.md"
        marks = r"(?<=<!-- measured -->\n).*?(?=\n<!-- /measured -->)"
        text = re.sub(marks, sentence, path.read_text(encoding="utf-8"), flags=re.S)
        with atomic_write(path) as part:
            part.write_text(text, encoding="utf-8")


def main() -> int:
    """Look at the whole book; 0 if nothing is wrong with it."""
    chromium = find_chromium()
    if not chromium:
        sys.exit("There is no Chromium here: install it, and call this again.")
    course = manifest.load(files=False)
    html = build(course, ROOT / "_build").parent
    with listen(html, 8200) as server, one_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        names = tqdm(pages.names(course), "Pages")
        findings = {name: look(browser, address, name) for name in names}
        browser.close()
        server.shutdown()
    write(findings)
    wrong = {name: [*page.broken, *page.stored] for name, page in findings.items() if any(page)}
    for name, problems in wrong.items():
        print(name, *problems, sep="\n  ")
    print("docs/accessibility.md and docs/privacy.md say what was found.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
