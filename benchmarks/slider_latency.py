"""How long a slider takes: from key press to new picture, decoded, in the page.

    python benchmarks/slider_latency.py [--presses 30] [--json FILE]

Three ways: an explorer in JupyterLab, the same picture made anew into an Output widget in JupyterLab, and
the explorer's page in the book. Each time is taken in the page, from the key press itself to the frame in which
the decoded picture is painted.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from browsing import FLAGS, jupyterlab, open_notebook, write_notebook  # noqa: E402

import course_utils as cu  # noqa: E402

EXPLORER = "import course_utils as cu\ncu.explore.kernel_width()"
REDRAWN = """
import ipywidgets, course_utils as cu
from IPython.display import display
explorer = cu.explore.kernel_width()
values = explorer.controls["width"].values
slider = ipywidgets.SelectionSlider(options=values, value=values[0])
output = ipywidgets.Output()

def redraw(change):
    output.clear_output(wait=True)
    with output:
        display(explorer.figure(width=change["new"]))

slider.observe(redraw, "value")
ipywidgets.VBox([slider, output]).add_class("redrawn")
"""
MEASURE = """
([root, handle]) => {
    const images = () => [...root.querySelectorAll("img:not([hidden])")];
    window.times = [];
    const seen = images().map(image => image.src).join();
    let last = seen, start = null;
    handle.addEventListener("keydown", () => { start = performance.now(); }, true);
    new MutationObserver(async () => {
        const now = images(), key = now.map(image => image.src).join();
        if (!now.length || key === last || start === null) return;
        last = key;
        const began = start;
        start = null;
        await now.at(-1).decode();
        requestAnimationFrame(() => window.times.push(performance.now() - began));
    }).observe(root, { childList: true, subtree: true, attributes: true, attributeFilter: ["src"] });
}
"""


def measure(page, root, handle, presses: int) -> list[float]:
    """Milliseconds for each key press: to the right, and back at the end."""
    page.evaluate(MEASURE, [root.element_handle(), handle.element_handle()])
    handle.focus()
    page.keyboard.press("Home")
    page.wait_for_timeout(1500)
    page.evaluate("window.times.length = 0")
    for press in range(presses):
        page.keyboard.press("ArrowLeft" if press // 10 % 2 else "ArrowRight")
        page.wait_for_function(
            "count => window.times.length === count", arg=press + 1, timeout=10_000
        )
        page.wait_for_timeout(100)
    return page.evaluate("window.times")


def in_lab(browser, folder: Path, presses: int) -> dict[str, list[float]]:
    write_notebook(folder / "explorer.ipynb", EXPLORER)
    write_notebook(folder / "redrawn.ipynb", REDRAWN)
    times = {}
    with jupyterlab(folder) as address:
        for label, name, where in (
            ("explorer in Lab", "explorer.ipynb", ".cu-explorer"),
            ("Output redraw in Lab", "redrawn.ipynb", ".redrawn"),
        ):
            page = open_notebook(browser, address, name)
            root = page.locator(where)
            handle = root.locator("[role=slider], input[type=range]")
            handle.wait_for(timeout=60_000)
            times[label] = measure(page, root, handle, presses)
            page.close()
    return times


def in_the_book(browser, folder: Path, presses: int) -> list[float]:
    path = folder / "page.html"
    path.write_text(
        f"<!doctype html><meta charset=utf-8>{cu.explore.kernel_width().page()}", "utf-8"
    )
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_timeout(1000)
    root = page.locator(".cu-explorer")
    return measure(page, root, root.locator("input[type=range]"), presses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presses", type=int, default=30)
    parser.add_argument("--json", type=Path, help="write every time to this file")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        folder = Path(name)
        times = in_lab(browser, folder, options.presses)
        times["explorer in the book"] = in_the_book(browser, folder, options.presses)
        browser.close()
    print(f"{'key press → picture, ms':<26}{'median':>8}{'95 %':>8}{'most':>8}")
    for label, values in times.items():
        late = statistics.quantiles(values, n=20)[-1]
        print(f"{label:<26}{statistics.median(values):8.0f}{late:8.0f}{max(values):8.0f}")
    if options.json:
        options.json.write_text(json.dumps(times, indent=1) + "\n")


if __name__ == "__main__":
    main()
