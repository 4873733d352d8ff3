"""A real JupyterLab with a Chromium before it, for the browser tests and for the benchmark."""

import contextlib
import json
import os
import re
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from playwright.sync_api import Page, Playwright, sync_playwright

from course_utils.runtime import ROOT
from course_utils.studio import lab

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


WAIT = 300_000  # ms for what takes one second; a test is never red because a machine is busy


@contextmanager
def jupyter(folder: Path, *, timeout: float = 300) -> Iterator[str]:
    """A server over `folder`, configured as by `make lab`; yields its address, with {} for a path and the token."""
    options = [
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.app_settings_dir={lab.SETTINGS}",
        f"--LabApp.workspaces_dir={folder / '.workspaces'}",
        f"--IdentityProvider.token={secrets.token_hex(16)}",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0",
        "--Application.log_level=WARN",
        "--no-browser",
        *(["--allow-root"] if lab.is_root() else []),
    ]
    environ = dict(os.environ)
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environ.get("PYTHONPATH")]))
    runtime = folder / ".runtime"
    environ = lab.environment(environ) | {"JUPYTER_RUNTIME_DIR": str(runtime)}
    command = [sys.executable, "-m", "jupyterlab", *options]
    with open(folder / "lab.log", "w") as log:
        server = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log)
    try:
        limit = time.monotonic() + timeout
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


@contextmanager
def opened(browser, address: str, **options) -> Iterator[Page]:
    """A page of the book that must ask no other host and report no error by the end."""
    size = {"width": 1380, "height": 900}
    context = browser.new_context(**{"base_url": address, "viewport": size} | options)
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
