"""``make slides CHAPTER=02``: a deck of a chapter, in a folder that asks no other host for anything.

`_build/slides/02_….html` is shown by any browser, from a file or from a server: arrow keys move, `S` opens the notes,
`O` shows all slides, `?print-pdf` behind the address prints. Beside it stand reveal.js, MathJax and the live models
that the decks show: copy the folder.
"""

import argparse
import html
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from course_utils.files import ROOT
from course_utils.kit.language import of, spoken
from course_utils.studio import StudioError
from course_utils.studio.manifest import Chapter, Manifest, load
from course_utils.studio.teaching.beats import Slide, slides
from course_utils.studio.teaching.markup import code_css, markdown

HERE = Path(__file__).parent
REVEAL = ("reveal.js", "reveal.css", "reset.css", "notes.js", "LICENSE.txt")
LIVE = re.compile(r'"(live/[\w/]+\.js)"')
PAGE = """<!DOCTYPE html>
<html lang="{language}" style="color-scheme: light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="assets/reset.css">
<link rel="stylesheet" href="assets/reveal.css">
<link rel="stylesheet" href="assets/deck.css">
</head>
<body>
<div class="reveal"><div class="slides">
{slides}
</div></div>
<script src="assets/reveal.js"></script>
<script src="assets/notes.js"></script>
<script src="assets/deck.js"></script>
<script src="assets/mathjax.js"></script>
</body>
</html>
"""


def deck(chapter: Chapter, course: Manifest) -> str:
    """The page of a deck.

    Args:
        chapter: its notebook is executed.
        course: what the last line of each slide names, with its license.
    """
    from course_utils.studio.book.calm import with_plain_tables
    from course_utils.studio.book.live import with_widgets
    from course_utils.studio.pairs import read

    try:
        shown = slides(with_plain_tables(with_widgets(read(chapter.ipynb))))
    except StudioError as error:
        raise StudioError(f"{chapter.notebook}: {error}.") from None
    credit = f"{course.title} · {course.license}"
    return PAGE.format(
        language=course.language,
        title=html.escape(f"{chapter.number} · {chapter.title}"),
        slides="\n".join(_section(slide, credit) for slide in shown),
    )


def _section(slide: Slide, credit: str) -> str:
    head = "h1" if slide.kind == "title" else "h2"
    notes = markdown("\n\n".join(slide.notes))
    return (
        f'<section class="cu-{slide.kind}"><div class="slide"><{head}>{markdown(slide.title, inline=True)}</{head}>'
        f'<div class="body">{slide.body}</div><footer>{html.escape(credit)}</footer></div>'
        f'<aside class="notes">{notes}</aside></section>'
    )


def write(course: Manifest, chapters: Sequence[Chapter], out: Path) -> list[Path]:
    """Write the decks of chapters, and beside them what they load; their files."""
    from course_utils.studio.book.live import scripts

    assets = out / "assets"
    assets.mkdir(parents=True, exist_ok=True)
    for name in REVEAL:
        shutil.copy(HERE / "reveal" / name, assets / name)
    shutil.copy(HERE / "deck.js", assets / "deck.js")
    shutil.copy(_mathjax(), assets / "mathjax.js")
    (assets / "deck.css").write_text(_style(), encoding="utf-8")
    made, live = [], scripts()
    with spoken(course.language):
        for chapter in chapters:
            page = deck(chapter, course)
            for name in sorted(set(LIVE.findall(page))):
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                (out / name).write_text(live[name], encoding="utf-8")
            made.append(out / f"{chapter.notebook}.html")
            made[-1].write_text(page, encoding="utf-8")
    return made


def _style() -> str:
    from course_utils.figures.style import fonts_css, tokens_css

    own = (HERE / "deck.css").read_text(encoding="utf-8")
    return "\n".join([fonts_css(), tokens_css(), code_css(), own])


def _mathjax() -> Path:
    """MathJax in one file, as the book has it.

    Raises:
        StudioError: the part of the environment that makes books is missing.
    """
    import importlib.util

    found = importlib.util.find_spec("sphinx-mathjax-offline")
    folders = list(found.submodule_search_locations or ()) if found else []
    for folder in folders:
        file = Path(folder) / "static" / "mathjax" / "tex-svg-full.js"
        if file.is_file():
            return file
    raise StudioError("MathJax is missing: pip install sphinx-mathjax-offline, as make does.")


def main(argv: Sequence[str] | None = None) -> int:
    """Write decks, and say where."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio slides", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    out = options.book.resolve().parent / "_build" / "slides"
    try:
        with spoken(of(options.book)):
            course = load(options.book)
            for file in write(course, course.chosen(options.chapters), out):
                print(file)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
