"""From the manifest to ``_build/html``."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
from filelock import FileLock
from nbformat import NotebookNode

from course_utils.figures.style import fonts_css, tokens_css
from course_utils.studio import StudioError, links
from course_utils.studio.book import pages
from course_utils.studio.book.check import check
from course_utils.studio.book.cover import cover, toys
from course_utils.studio.book.explorers import with_pages
from course_utils.studio.book.live import scripts, with_widgets
from course_utils.studio.book.publish import finish
from course_utils.studio.book.transforms import PictureError, Places, for_the_book, lead
from course_utils.studio.choice import fit
from course_utils.studio.manifest import Chapter, Manifest
from course_utils.studio.ways import onward


class BookError(StudioError):
    """The book could not be made: where, and why."""


def build(course: Manifest, out: Path) -> Path:
    """Make the book in ``out/html`` and return the path of its first page.

    Nothing is executed: the book shows the outputs that the notebooks hold. What has not changed since
    the last time is not rendered again.

    Raises:
        BookError: a notebook is not executed, a picture has no alt text, Jupyter Book warned, or the
            result is not whole.
    """
    out.mkdir(parents=True, exist_ok=True)
    with FileLock(out / ".book.lock"):
        return _build(course, out)


def _build(course: Manifest, out: Path) -> Path:
    start = time.perf_counter()
    source, html = out / "source", out / "html"
    places = _places(course)
    texts = {
        "_config.yml": pages.configuration(course),
        "_toc.yml": pages.contents(course),
        f"{pages.BIBLIOGRAPHY}.md": pages.BIBLIOGRAPHY_PAGE,
        pages.REFERENCES: pages.references(course),
    }
    texts |= {
        f"{name}.md": lead(pages.text(course, name), places, course.files, places[f"{name}.md"])
        for name in pages.texts(course)
    }
    texts |= {
        chapter.ipynb.name: nbformat.writes(_chapter(course, chapter, places, out / "explorers"))
        for chapter in course.notebooks
    }
    texts |= {
        f"_static/{file.name}": file.read_text(encoding="utf-8")
        for file in sorted(pages.STATIC.iterdir())
    }
    texts["_static/course_tokens.css"] = tokens_css()
    texts["_static/course_fonts.css"] = fonts_css()
    # A course that shows live models shows one on its cover, too.
    alive = any("cu-live" in text for text in texts.values())
    texts[f"{pages.COVER}.md"] = cover(course, toys(course, out / "explorers") if alive else {})
    if any(_differs(source / name, texts[name]) for name in texts if name[0] == "_"):
        _forget(out)  # other pages, another look: nothing of the last book is right
    for name, text in texts.items():
        _write(source / name, text)
    for file in source.iterdir():
        if file.is_file() and file.name not in texts:
            file.unlink()
    _render(source, out, whole=bool(course.url))  # a sitemap lists what is rendered
    finish(html)
    if alive:
        # Beside the pages: Sphinx puts what is in _static into all of them.
        for name, text in scripts().items():
            _write(html / name, text)
    if problems := check(html, course):
        raise BookError("\n".join(problems))
    print(f"The book took {time.perf_counter() - start:.0f} s.")
    return html / "index.html"


def _places(course: Manifest) -> Places:
    """The places of all pages that a notebook may link to, by file name."""
    found = {f"{pages.BIBLIOGRAPHY}.md": links.places([pages.BIBLIOGRAPHY_PAGE])}
    for name in pages.texts(course):
        found[f"{name}.md"] = links.places([pages.text(course, name)])
    for chapter in course.notebooks:
        if chapter.ipynb.is_file():
            found[chapter.ipynb.name] = links.places(
                links.texts(nbformat.read(chapter.ipynb, as_version=4))
            )
    return found


def _chapter(course: Manifest, chapter: Chapter, places: Places, folder: Path) -> NotebookNode:
    notebook = fit(nbformat.read(chapter.ipynb, as_version=4), course, chapter)
    never = [
        place for place, cell in enumerate(notebook.cells) if cell.get("execution_count", 1) is None
    ]
    if never:
        raise BookError(
            f"{chapter.notebook}: cell {never[0]} was never executed; make notebooks CHAPTER={chapter.number}"
        )
    try:
        shown = with_widgets(with_pages(notebook, folder))
        return for_the_book(shown, places, course.files, chapter, onward(course, chapter))
    except PictureError as error:
        raise BookError(f"{chapter.notebook}: {error}.") from None


def _differs(path: Path, text: str) -> bool:
    return not path.is_file() or path.read_text(encoding="utf-8") != text


def _write(path: Path, text: str) -> None:
    """Sphinx renders again what is newer than its page, so a file that would not change is not touched."""
    if _differs(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _forget(out: Path) -> None:
    for name in ("html", ".doctrees", "jupyter_execute", "source"):
        shutil.rmtree(out / name, ignore_errors=True)


def _render(source: Path, out: Path, *, whole: bool) -> None:
    """Jupyter Book, its warnings fatal. It always builds into a folder `_build` of the path it is given."""
    jupyter_book = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    options = ["-n", "-W", "--keep-going", "-q", *["--all"] * whole]
    done = subprocess.run(
        [*jupyter_book, "build", str(source), "--path-output", str(out.parent), *options],
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        # Sphinx warns once about a page that it keeps; the next build has to warn again.
        _forget(out)
        raise BookError(f"Jupyter Book warned:\n{done.stdout[-3000:]}{done.stderr}")
