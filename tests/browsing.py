"""A real JupyterLab with a Chromium before it, for the browser tests and for the benchmark."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat

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


@contextmanager
def jupyterlab(folder: Path, *, timeout: float = 60) -> Iterator[str]:
    """Lab over the notebooks in `folder`; yields its address with {} for the path of a notebook."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    options = [
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.app_settings_dir={lab.SETTINGS}",
        f"--LabApp.workspaces_dir={folder / '.workspaces'}",
        f"--IdentityProvider.token={token}",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        "--Application.log_level=ERROR",
        "--no-browser",
        *(["--allow-root"] if lab.is_root() else []),
    ]
    environ = {key: value for key, value in os.environ.items() if key != "COURSE_BOOK"}
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "jupyterlab", *options]
    with open(folder / "lab.log", "w") as log:
        server = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log)
    try:
        _wait(f"http://127.0.0.1:{port}/api/status?token={token}", server, folder, timeout)
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token={token}&reset"
    finally:
        server.terminate()
        server.wait(timeout=20)


def _wait(url: str, server: subprocess.Popen, folder: Path, timeout: float) -> None:
    start = time.monotonic()
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                json.load(answer)
                return
        except OSError:
            if server.poll() is not None or time.monotonic() - start > timeout:
                log = (folder / "lab.log").read_text()
                raise RuntimeError(f"Lab does not answer after {timeout} s:\n{log}") from None
            time.sleep(0.1)


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
    page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
    if run:
        run_all(page)
    return page


def run_all(page) -> None:
    """Run All Cells, once the kernel is there to hear it."""
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=60_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
