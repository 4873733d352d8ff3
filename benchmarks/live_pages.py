"""How soon a live model is ready, and how soon a key is answered, in Chromium from a file.

    python benchmarks/live_pages.py [--starts 7] [--keys 20] [--book _build/html] [--json FILE]

Ready: from the opening of a page with one widget to the moment in which its form can be used. Painted: to the end of
the frame that shows it so, which a reader waits for, too. Answered: from the key press itself to the frame in which all
that it changed is painted. All as they are, and with the processor slowed six times, as a slow phone. An empty page
tells how much of it is the browser's own. With --book, the time to ready is taken on the pages of a built book, too.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from browsing import FLAGS  # noqa: E402

import course_utils as cu  # noqa: E402
from course_utils.studio.book import live as book  # noqa: E402

KINDS = {
    "translator": ("[name=sentence]", "x"),
    "alignment": ("[name=sentence]", "x"),
    "gpt": ("[name=prompt]", "e"),
    "bert": ("[name=sentence]", "."),
    "vit": ("button[data-map]", "Enter"),
    "kernel_regression": ("[name=query]", "ArrowRight"),
    "look_up": ("input[type=range]", "ArrowRight"),
    "heads": ("[name=sharpness]", "ArrowRight"),
}
"""Kind of widget → a control of it, and a key that it answers."""

WATCH = """
const painted = (done) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now());
    port2.postMessage(null);
});
globalThis.readyAt = new Promise((done) => {
    const look = () => {
        if (!document.querySelector("form.cu-live[data-ready]")) return;
        observer.disconnect();
        const ready = performance.now();
        painted((at) => done([ready, at]));
    };
    const observer = new MutationObserver(look);
    observer.observe(document, { subtree: true, childList: true, attributeFilter: ["data-ready"] });
});
addEventListener("keydown", (event) => {
    painted((at) => (globalThis.answers ??= []).push(at - event.timeStamp));
}, true);
"""


def opened(browser, address: str, slowed: int):
    """A new page in a new context at an address, and when its first widget was ready and painted, in ms."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(WATCH)
    if slowed > 1:
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slowed})
    page.goto(address)
    return page, page.evaluate("readyAt")


def started(browser, address: str, args, slowed: int) -> dict:
    """When a page was ready and painted: medians and ranges, in ms."""
    times = []
    for _ in range(args.starts):
        page, at = opened(browser, address, slowed)
        times.append(at)
        page.context.close()
    ready, painted = zip(*times, strict=True)
    return {"ready": summary(ready), "painted": summary(painted)}


def measure(browser, address: str, control: str, key: str, args, slowed: int) -> dict:
    """The same, and when keys were answered."""
    found = started(browser, address, args, slowed)
    page, _ = opened(browser, address, slowed)
    place = page.locator(f"form.cu-live >> {control} >> visible=true").first
    place.focus()
    for _ in range(args.keys):
        place.press(key)
        page.wait_for_timeout(60 * slowed)
    answered = page.evaluate("answers")
    page.context.close()
    return found | {"answered": summary(answered)}


def summary(times: Sequence[float]) -> dict:
    """Median, least and most."""
    return {
        "median": round(statistics.median(times)),
        "least": round(min(times)),
        "most": round(max(times)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=7)
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--book", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found: dict = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for name, text in book.scripts().items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        path = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        head = "<!doctype html><html lang=en><meta charset=utf-8><title>Live</title>"
        page = Path(folder) / "empty.html"
        page.write_text(f'{head}<body><form class="cu-live" data-ready></form>', encoding="utf-8")
        for slowed in (1, 6):
            found[f"empty page, slowed {slowed} times"] = started(
                browser, page.as_uri(), args, slowed
            )
            print("empty page", slowed, found[f"empty page, slowed {slowed} times"], flush=True)
        for kind, (control, key) in KINDS.items():
            page = Path(folder) / f"{kind}.html"
            form = book.page(getattr(cu.live, kind)())
            page.write_text(f"{head}<body><div>{form}</div>", encoding="utf-8")
            for slowed in (1, 6):
                one = measure(browser, page.as_uri(), control, key, args, slowed)
                found[f"{kind}, slowed {slowed} times" if slowed > 1 else kind] = one
                print(kind, slowed, one, flush=True)
        if args.book:
            for page in sorted(args.book.glob("*.html")):
                text = page.read_text(encoding="utf-8")
                if '<form class="cu-live"' not in text:
                    continue
                times = [near(browser, page.as_uri())[0] for _ in range(args.starts)]
                found[page.stem] = {"ready": summary(times)}
                print(page.stem, found[page.stem], flush=True)
        browser.close()
    if args.json:
        args.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def near(browser, address: str) -> list[float]:
    """On a page of the book with its widget in sight: when it was ready and painted after the opening, in ms."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(WATCH)
    page.add_init_script(
        "addEventListener('DOMContentLoaded', () => document.querySelector('form.cu-live').scrollIntoView())"
    )
    page.goto(address)
    at = page.evaluate("readyAt")
    context.close()
    return at


if __name__ == "__main__":
    main()
