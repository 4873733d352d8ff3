"""A real JupyterLab with a Chromium before it, for the browser tests and for the benchmark; and pages of widgets."""

import contextlib
import itertools
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from bs4 import BeautifulSoup
from playwright.sync_api import Locator, Page, Playwright, expect, sync_playwright

from course_utils.files import ROOT
from course_utils.kit import live
from course_utils.kit.live.bundles import script
from course_utils.kit.live.widget import Live, program
from course_utils.studio import kernel, lab
from course_utils.studio.book.widgets import live_html

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str | None:
    """Path of a Chromium or Chrome; None without one."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next(filter(None, map(shutil.which, names)), None)


WAIT = 300_000  # ms for what takes one second; a test is never red because a machine is busy
expect.set_options(timeout=WAIT)


@contextmanager
def jupyter(folder: Path) -> Iterator[str]:
    """A server over `folder`, as `make lab` starts it; yields its address, with {} for a path and the token."""
    options = [
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.app_settings_dir={lab.SETTINGS}",
        f"--LabApp.workspaces_dir={folder / '.workspaces'}",
        f"--IdentityProvider.token={secrets.token_hex(16)}",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0",
        "--Application.log_level=WARN",
        "--no-browser",
        *lab.EXTENSIONS,
        *(["--allow-root"] if lab.is_root() else []),
    ]
    environ = dict(os.environ)
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environ.get("PYTHONPATH")]))
    runtime = folder / ".runtime"
    environ = kernel.environment(environ) | {"JUPYTER_RUNTIME_DIR": str(runtime)}
    command = [sys.executable, "-m", "jupyterlab", *options]
    with open(folder / "lab.log", "w") as log:
        server = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log)
    try:
        limit = time.monotonic() + WAIT / 1000
        while not (address := _address(runtime)):
            if server.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"no answer from Jupyter:\n{(folder / 'lab.log').read_text()}")
            time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _address(runtime: Path) -> str | None:
    """Where the server answers, by what it wrote down itself; None until it does."""
    for file in runtime.glob("jpserver-*.json"):
        with contextlib.suppress(OSError, ValueError):  # half written, or not listening yet
            found = json.loads(file.read_text())
            address = f"{found['url']}{{}}?token={found['token']}"
            with urllib.request.urlopen(address.format("api/status"), timeout=30) as answer:
                json.load(answer)
            return address
    return None


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """Lab over the notebooks in `folder`; yields its address with {} for the path of a notebook."""
    with jupyter(folder) as address:
        yield address.replace("{}", "lab/tree/{}") + "&reset"


def write_notebook(path: Path, *cells: str) -> None:
    """A notebook of these code cells, without outputs."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(notebook, path)


def open_notebook(browser, address: str, name: str, *, run: bool = True, **options):
    """A page that shows the notebook `name`, with all of its cells running."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000}, **options)
    page.goto(address.format(name))
    page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=WAIT)
    if run:
        run_all(page)
    return page


def run_all(page) -> None:
    """Run All Cells, once the kernel is there to hear it."""
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=WAIT)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def come_back(page: Page, remembers: str) -> Page:
    """The same address in a new tab, as soon as it shows `remembers` (a selector): what the first tab has stored.

    The first tab stays open: a busy browser hands on late what is stored, and from a tab that is gone not at all.
    """
    other = page.context.new_page()
    other.goto(page.url)
    while not other.locator(remembers).count():  # until the test's own limit
        other.wait_for_timeout(500)
        other.reload()
    return other


@contextmanager
def opened(browser, address: str, **options) -> Iterator[Page]:
    """A page of the book that must ask no other host and report no error by the end."""
    size = {"width": 1380, "height": 900}
    context = browser.new_context(**{"base_url": address, "viewport": size} | options)
    context.set_default_timeout(WAIT)
    far, errors = [], []

    def gate(route):
        if urlsplit(route.request.url).hostname == "127.0.0.1":
            return route.continue_()
        far.append(route.request.url)
        return route.abort()

    context.route(re.compile("^(http|ws)"), gate)
    page = context.new_page()
    page.on("console", lambda message: message.type == "error" and errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert far == [], f"the book asks another host: {far}"
    assert errors == [], errors


_open: list[Playwright] = []


@contextmanager
def one_playwright() -> Iterator[Playwright]:
    """Playwright for the block; the one that is open already, if a fixture has one: two in a process fail."""
    if _open:
        yield _open[-1]
        return
    with sync_playwright() as playwright:
        _open.append(playwright)
        try:
            yield playwright
        finally:
            _open.clear()


def run_together(html: str) -> list[str]:
    """Names of buttons, links and summaries in which two texts have no space between them, as "loss|falls"."""
    pairs = []
    for control in BeautifulSoup(html, "html.parser").select("button, a[href], summary"):
        texts = [text for text in control.strings if not text.find_parent(["svg", "sub", "sup"])]
        pairs += [
            f"{left}|{right}"
            for left, right in itertools.pairwise(texts)
            if left[-1].isalnum() and right[0].isalnum()
        ]
    return pairs


# Live widgets -----------------------------------------------------------------------------------

CONTRAST = """form => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const known = new Map();
    const channels = (color) => known.get(color) ?? known.set(color, read(color)).get(color);
    const read = (color) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
    const behind = (node) => {
        if (!node) return [255, 255, 255];
        const style = getComputedStyle(node);
        let ground = over(channels(style.backgroundColor), behind(node.parentElement));
        if (node.matches("li:not(.cu-odds > *)")) {
            const bar = node.appendChild(document.createElement("i"));
            bar.style.color = "var(--heat)";
            ground = over(channels(getComputedStyle(bar).color), ground);
            bar.remove();
        }
        return ground;
    };
    const light = (color) => {
        const [r, g, b] = color.map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const written = node => [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
    const seen = node => node.checkVisibility() && !["STYLE", "OPTION"].includes(node.tagName);
    const texts = [...form.querySelectorAll("*")].filter(node => seen(node) && written(node));
    return Math.min(...texts.map(node => {
        const ground = behind(node), text = over(channels(getComputedStyle(node).color), ground);
        const [a, b] = [light(text), light(ground)];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    }));
}"""
"""The smallest contrast between a text of a form and its ground."""


def in_theme(page, theme: str) -> None:
    """Give a page the colors of the book, "light" or "dark"."""
    page.evaluate(
        """theme => {
            document.documentElement.dataset.theme = theme;
            document.documentElement.style.colorScheme = theme;
            const [text, ground] = theme === "dark" ? ["#ced6dd", "#121212"] : ["#323232", "#ffffff"];
            document.documentElement.style.setProperty("--pst-color-text-base", text);
            document.documentElement.style.background = ground;
        }""",
        theme,
    )


def write_page(folder: Path, *widgets: Live) -> Path:
    """A page with live widgets and all that it loads, to be opened from a file; gives the file."""
    texts = {f"widgets/{widget.kind}.js": program(widget.kind) for widget in widgets}
    models = {name for widget in widgets for name in (*widget.models, *widget.later)}
    texts |= {f"{name}.js": script(name, live.bundle(name)) for name in models}
    for name, text in texts.items():
        path = folder / "live" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")
    divs = "".join(f"<div>{html}</div>" for html in live_html(*widgets))
    head = "<meta charset=utf-8><meta name=viewport content='width=device-width'>"
    page = folder / "page.html"
    page.write_text(f"<!doctype html><html lang=en>{head}<body>{divs}", encoding="utf-8")
    return page


@contextmanager
def html_page(browser, html: str, **options) -> Iterator[Page]:
    """A page of this HTML; any request, error or message on its console is one of the test."""
    page, errors = browser.new_page(**options), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.on("request", lambda request: errors.append(request.url))
    page.set_content(f"<!doctype html>{html}")
    yield page
    page.close()
    assert errors == []


@contextmanager
def live_page(browser, file: Path, fragment: str = "", **options) -> Iterator[Page]:
    """A page whose widgets are alive; any error or message on its console is one of the test."""
    page, errors = browser.new_page(**options), []
    page.set_default_timeout(WAIT)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.goto(file.as_uri() + fragment)
    page.wait_for_function("() => !document.querySelector('form.cu-live:not([data-ready])')")
    yield page
    page.close()
    assert errors == []


def copied_link(page: Page) -> str:
    """What "Copy link" of the first widget of a page copies."""
    return page.evaluate("""() => {
        let copied = "";
        const clipboard = { writeText: async (text) => { copied = text; } };
        Object.defineProperty(navigator, "clipboard", { value: clipboard, configurable: true });
        document.querySelector(".cu-live-link button").click();
        return copied;
    }""")


def part(page: Page, name: str) -> Locator:
    """A part of the first widget of a page."""
    return page.locator(f"form >> nth=0 >> [data-part={name}]")
