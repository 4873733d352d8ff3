"""Make notebooks/images/translator.gif, the README's moving picture, from the cover of the built book.

    make book && .venv/bin/python notebooks/images/translator.py

A pointer goes to the word train and forbids it, and the translator takes a taxi.
"""

import io
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Locator, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
COVER = ROOT / "_build" / "html" / "index.html"
PICTURE = Path(__file__).with_suffix(".gif")
WIDTH, SCALE, COLORS = 860, 2, 64  # CSS pixels; pixels a CSS pixel; of the palette
MAX_BYTES = 1_000_000
# An arrow, in CSS pixels
POINTER = ((0, 0), (0, 17), (4, 13), (7, 20), (10, 19), (7, 12), (12, 12))


def frame(page: Page, pointer: tuple[float, float], clip: dict[str, float]) -> Image.Image:
    """The clip of the page with a pointer drawn over it, in WIDTH pixels."""
    picture = Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")
    x, y = pointer[0] - clip["x"], pointer[1] - clip["y"]
    arrow = [((x + dx) * SCALE, (y + dy) * SCALE) for dx, dy in POINTER]
    ImageDraw.Draw(picture).polygon(arrow, fill="black", outline="white")
    return picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.LANCZOS)


def middle(word: Locator) -> tuple[float, float]:
    box = word.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def frames(page: Page) -> list[tuple[Image.Image, int]]:
    """Each picture with the milliseconds that it stays."""
    page.goto(COVER.as_uri())
    form = page.locator("form.cu-live[data-ready]").first
    form.wait_for()
    box = form.bounding_box()
    drawing = form.locator(".cu-lines").bounding_box()
    clip = {"x": box["x"], "y": box["y"], "width": box["width"]}
    below = 40  # a line that says what it translated before, and not half a bar
    clip["height"] = drawing["y"] + drawing["height"] + below - box["y"]
    start = drawing["x"] + drawing["width"] * 0.85, drawing["y"] + drawing["height"] * 0.6
    target = middle(form.locator(".cu-words button", has_text="train").first)
    shown = [(frame(page, start, clip), 2200)]
    for step in range(1, 9):
        at = tuple(a + (b - a) * step / 8 for a, b in zip(start, target, strict=True))
        page.mouse.move(*at)
        shown.append((frame(page, at, clip), 60))
    page.mouse.click(*target)
    form.locator("[data-part=said]", has_text="taxi").wait_for(state="attached")
    page.wait_for_timeout(600)  # the lines glide
    shown.append((frame(page, target, clip), 4000))
    return shown


def main() -> None:
    with sync_playwright() as playwright:
        executable = "/usr/bin/chromium" if Path("/usr/bin/chromium").exists() else None
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 1000}, device_scale_factor=SCALE)
        shown = frames(page)
        browser.close()
    first, last = shown[0][0], shown[-1][0]
    both = Image.new("RGB", (first.width, 2 * first.height))
    both.paste(first)
    both.paste(last, (0, first.height))
    palette = both.quantize(COLORS)
    pictures = [picture.quantize(COLORS, palette=palette, dither=0) for picture, _ in shown]
    times = [time for _, time in shown]
    pictures[0].save(PICTURE, save_all=True, append_images=pictures[1:], duration=times, loop=0)
    if (size := PICTURE.stat().st_size) > MAX_BYTES:
        raise SystemExit(f"{PICTURE} has {size} bytes; at most {MAX_BYTES} are allowed.")
    print(f"{PICTURE}: {size // 1000} KB, {len(shown)} pictures")


if __name__ == "__main__":
    main()
