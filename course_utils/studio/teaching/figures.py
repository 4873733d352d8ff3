"""``make figures CHAPTER=02``: the pictures of the notebooks as files for slides and papers of one's own.

`_build/figures/02_…/01_a_drawing.svg` has its title, its description and the colors of light paper written out, so that
other programs show it, too; beside it stands a PNG at twice the size, which a Chromium on this machine draws. A picture
that a notebook holds as pixels alone comes as it is. `_build/figures/index.html` shows all, with the line that credits
them.
"""

import argparse
import base64
import html
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from course_utils.figures.style import COLORS
from course_utils.files import ROOT, atomic_write
from course_utils.studio import StudioError, pairs
from course_utils.studio.book.pictures import IMAGE
from course_utils.studio.manifest import Chapter, Manifest, load
from course_utils.studio.page import HEADING, prose_lines

VECTOR = "data:image/svg+xml;base64,"
PIXELS = "data:image/png;base64,"
STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
COLOR = re.compile(r"var\(--cu-(\w+)\)")
PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>
body {{ font: 15px/1.45 Inter, system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; }}
ul {{ display: grid; gap: 24px; grid-template-columns: repeat(auto-fill, minmax(18em, 1fr)); }}
ul {{ list-style: none; padding: 0; }}
img {{ background: #fff; border: 1px solid #ccc; height: 170px; object-fit: contain; width: 100%; }}
small {{ color: #555; display: block; }}
</style>
<h1>{title}</h1>
<p>{credit}</p>
{parts}
</html>
"""


@dataclass(frozen=True)
class Figure:
    """A picture of a notebook.

    Attributes:
        chapter: where it stands.
        number: among the pictures of the notebook, from 1.
        section: under which heading.
        alt: what is to be seen.
        data: an SVG, or a PNG.
        vector: which.
    """

    chapter: Chapter
    number: int
    section: str
    alt: str
    data: bytes
    vector: bool

    @property
    def name(self) -> str:
        """``03_the_width_decides``."""
        words = re.sub(r"[^a-z0-9]+", "_", self.section.lower()).strip("_")
        return f"{self.number:02}_{words or 'picture'}"

    @property
    def title(self) -> str:
        """The chapter, and the section."""
        return f"{self.chapter.title}: {self.section}"

    @property
    def svg(self) -> str:
        """With title and description, and colors that every program knows."""
        text = COLOR.sub(lambda found: COLORS[found[1]], STYLE.sub("", self.data.decode(), count=1))
        said = f"<title>{html.escape(self.title)}</title><desc>{html.escape(self.alt)}</desc>"
        return re.sub(r"(<svg\b[^>]*)>", rf'\1 role="img">{_safe(said)}', text, count=1)


def _safe(text: str) -> str:
    return text.replace("\\", r"\\")


def figures(chapter: Chapter, notebook: NotebookNode) -> Iterator[Figure]:
    """The pictures among the outputs of an executed notebook, in order; live models aside."""
    section, number = chapter.title, 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            found = [HEADING.match(line) for line in prose_lines(cell.source)]
            section = next((one[2] for one in reversed(found) if one and len(one[1]) < 4), section)
            section = re.sub(r"<[^>]+>", "", section)
        for output in cell.get("outputs", []):
            for image in IMAGE.finditer(output.get("data", {}).get("text/html", "")):
                source, alt = image["source"], html.unescape(image["alt"])
                vector = source.startswith(VECTOR)
                if not (vector or source.startswith(PIXELS)):
                    continue
                number += 1
                data = base64.b64decode(source.partition(",")[2])
                yield Figure(chapter, number, section, alt, data, vector)


def write(course: Manifest, chapters: Sequence[Chapter], out: Path) -> list[Figure]:
    """Write each picture as SVG, or as PNG where it has no other form, and an index of all; the pictures."""
    found = [
        figure
        for chapter in chapters
        if chapter.ipynb.is_file()
        for figure in figures(chapter, pairs.read(chapter.ipynb))
    ]
    for figure in found:
        place = out / figure.chapter.notebook / figure.name
        with atomic_write(place.with_suffix(".svg" if figure.vector else ".png")) as file:
            file.write_bytes(figure.svg.encode() if figure.vector else figure.data)
    with atomic_write(out / "index.html") as file:
        file.write_text(index(course, found), encoding="utf-8")
    return found


def draw(found: Sequence[Figure], out: Path) -> str:
    """Draw the SVG files as PNG at twice the size; what is missing for it, or nothing.

    Returns:
        A sentence where no PNG can be drawn here.
    """
    from shutil import which

    chromium = next(
        filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return "No PNG at twice the size: pip install playwright first."
    if not chromium:
        return "No PNG at twice the size: there is no Chromium on this machine to draw them."
    from tqdm import tqdm

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(device_scale_factor=2, color_scheme="light")
        for figure in tqdm(
            [one for one in found if one.vector], unit="figure", leave=False, disable=None
        ):
            page.set_content(f'<body style="margin:0">{figure.svg}</body>')
            place = out / figure.chapter.notebook / f"{figure.name}.png"
            with atomic_write(place) as file:
                file.write_bytes(page.locator("svg").first.screenshot(omit_background=True))
        browser.close()
    return ""


def index(course: Manifest, found: Sequence[Figure]) -> str:
    """A page with all pictures, by notebook, and how they are credited."""
    parts = []
    for chapter in dict.fromkeys(figure.chapter for figure in found):
        items = "".join(_item(one) for one in found if one.chapter == chapter)
        title = html.escape(" · ".join(filter(None, (chapter.number, chapter.title))))
        parts.append(f"<h2>{title}</h2><ul>{items}</ul>")
    who = html.escape(f"{course.title}, {', '.join(course.authors)}. {course.license}")
    where = f" {html.escape(course.repository)}" if course.repository else ""
    return PAGE.format(
        title="Figures",
        credit=f"Credit them so: “{who}{where}”. Pictures go with the text’s license.",
        parts="\n".join(parts),
    )


def _item(figure: Figure) -> str:
    place = f"{figure.chapter.notebook}/{figure.name}"
    suffix = "svg" if figure.vector else "png"
    forms = (
        [("SVG", f"{place}.svg"), ("PNG", f"{place}.png")]
        if figure.vector
        else [("PNG alone", f"{place}.png")]
    )
    links = " · ".join(f'<a href="{file}">{form}</a>' for form, file in forms)
    return (
        f'<li><img loading="lazy" alt="{html.escape(figure.alt)}" src="{place}.{suffix}">'
        f"<b>{figure.number}</b> {html.escape(figure.section)} ({links})<small>{html.escape(figure.alt)}</small></li>"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pictures, and say where they are and which have one form only."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio figures", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    out = options.book.resolve().parent / "_build" / "figures"
    try:
        course = load(options.book, files=False)
        found = write(course, course.chosen(options.chapters), out)
        missing = draw(found, out)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    pixels = [f"{one.chapter.notebook}/{one.name}" for one in found if not one.vector]
    print(f"{len(found)} pictures, {len(pixels)} of them pixels alone: {out / 'index.html'}")
    print("\n".join([*pixels, *filter(None, [missing])]))
    return 0
