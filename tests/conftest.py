"""What several test modules share."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from browsing import FLAGS, find_chromium, live_page, one_playwright, write_page
from hypothesis import settings

from course_utils.files import ROOT
from course_utils.studio import manifest
from course_utils.studio.book.__main__ import listen

settings.register_profile("course", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("course")


BROWSERS = {"chromium", "firefox"}


def pytest_addoption(parser):
    parser.addoption(
        "--nightly",
        action="store_true",
        help="run the tests marked `nightly`, too: every page in every browser at every width",
    )


def pytest_collection_modifyitems(config, items):
    """Mark what opens a browser or is a notebook's cell, leave out what is for the night, and order the rest."""
    for item in items:
        asked = set(getattr(item, "fixturenames", ()))
        if asked & BROWSERS:
            item.add_marker("browser")
            if "smoke" not in item.keywords:
                item.add_marker("nightly")
        if "book" in asked:
            item.add_marker("browser")
        if item.path.suffix == ".ipynb":
            item.add_marker("notebook")
    left_out = manifest.load(files=False).left_out
    tonight = config.getoption("nightly") or "nightly" in config.getoption("markexpr")
    gone = [
        item
        for item in items
        if item.path.name in left_out or ("nightly" in item.keywords and not tonight)
    ]
    if gone:
        config.hook.pytest_deselected(items=gone)
        left = set(items) - set(gone)
        items[:] = [item for item in items if item in left]
    items.sort(key=_start)


def _start(item) -> tuple[int, int]:
    """A test's place in the run, in which workers take up module after module: what takes minutes starts first.

    That is the test that builds the book, then notebooks, of late chapters before those of early ones. Tests that
    only need the book come last, when it is there.
    """
    if item.path.name == "test_book_browser.py":
        return 0, 0
    if item.path.suffix == ".ipynb":
        number = item.path.name.partition("_")[0]
        return 1, -int(number) if number.isdigit() else 0
    return 3 if "book" in item.fixturenames else 2, 0


@pytest.fixture(autouse=True)
def _same_seed():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium or Chrome; without one the test is skipped, in CI it fails."""
    return find_chromium() or _none("Chromium")


@pytest.fixture(scope="session")
def firefox() -> str:
    """Path of the system's Firefox; without one the test is skipped, in CI it fails."""
    for name in ("firefox-esr", "firefox"):
        if path := shutil.which(name):
            return path
    return _none("Firefox")


def _none(browser: str):
    reason = f"no {browser} found on PATH; install it to run the browser tests"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def book() -> Path:
    """The folder of the book: what an earlier run has rendered is not done again.

    A process of its own makes it, as `make book` does, and has to end well.
    """
    command = [sys.executable, "-m", "course_utils.studio.book", "build"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "_build" / "html"


@pytest.fixture(scope="session")
def address(book) -> Iterator[str]:
    """Where a server on this machine shows the book."""
    with listen(book, 8100) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(chromium):
    """A Chromium that the tests of a module share."""
    with one_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def open_widget(browser, tmp_path_factory):
    """Opens a page with live widgets, at a state that an address asks for; each page is written once."""
    files: dict[str, Path] = {}

    @contextmanager
    def opened(*widgets, at: str = "", **options):
        name = repr(widgets)
        if name not in files:
            files[name] = write_page(tmp_path_factory.mktemp("book"), *widgets)
        fragment = f"#live={widgets[0].kind}.0&{at}" if at else ""
        with live_page(browser, files[name], fragment, **options) as page:
            yield page

    return opened
