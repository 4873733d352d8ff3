"""From the manifest and the executed notebooks to ``_build/html``."""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
from filelock import FileLock
from nbformat import NotebookNode

from course_utils.studio import StudioError, kernel, links
from course_utils.studio.book import pages, signposts
from course_utils.studio.book.check import check
from course_utils.studio.book.cover import cover
from course_utils.studio.book.search import write_sections
from course_utils.studio.book.transforms import BookPage, BookPages, relink, to_page
from course_utils.studio.book.widgets import live_scripts, show_widgets
from course_utils.studio.manifest import Chapter, Manifest
from course_utils.studio.paths import legs, next_chapters
from course_utils.studio.subset import trim, trim_text


def build(course: Manifest, out: Path) -> Path:
    """Make the book in ``out/html`` and return the path of its first page.

    Nothing is executed: the book shows the outputs that the notebooks hold. What has not changed since
    the last time is not rendered again.

    Raises:
        StudioError: a notebook is not executed, a picture has no alt text, Jupyter Book warned, or the
            result is not whole.
    """
    out.mkdir(parents=True, exist_ok=True)
    with FileLock(out / ".book.lock"):
        start = time.perf_counter()
        _build(course, out)
        print(f"The book took {time.perf_counter() - start:.0f} s.")
    return out / "html" / "index.html"


def _build(course: Manifest, out: Path) -> None:
    source, html = out / "source", out / "html"
    texts = _sources(course, out / "explorers")
    if any(_differs(source / name, text) for name, text in texts.items() if name[0] == "_"):
        _forget(out)  # the contents or the style have changed, and with them every page
    for name, text in texts.items():
        _write(source / name, text)
    for file in source.iterdir():
        if file.is_file() and file.name not in texts:
            file.unlink()
    _render(source, out, whole=bool(course.url))  # a sitemap lists what is rendered
    fix_theme(html)
    write_sections(html)
    # Beside the pages: Sphinx puts what is in _static into all of them.
    if "cu-live" in texts[f"{pages.COVER}.md"]:
        for name, text in live_scripts().items():
            _write(html / name, text)
    if problems := check(html, course):
        raise StudioError("\n".join(problems))


def _sources(course: Manifest, cache: Path) -> dict[str, str]:
    """The files that Jupyter Book reads: name → text."""
    linked = link_targets(course)
    texts = pages.beside(course)
    for name, file in pages.texts(course).items():
        text = trim_text(file.read_text(encoding="utf-8"), course)
        path = file.relative_to(course.root).as_posix()
        texts[f"{name}.md"] = relink(text, path, linked, course.files)
    for place, chapter in enumerate(course.notebooks):
        share = place / len(course.notebooks)
        print(f"preparing {chapter.notebook}, {share:.0%}", flush=True)
        page = chapter_page(course, chapter, linked, cache)
        texts[chapter.ipynb.name] = nbformat.writes(page)
    # A course that shows live models shows one on its cover, too.
    live = any("cu-live" in text for text in texts.values())
    return texts | {f"{pages.COVER}.md": cover(course, live_models=live)}


def link_targets(course: Manifest) -> BookPages:
    """The pages that a notebook or a Markdown file may link to."""
    texts = {course.root / "notebooks" / f"{pages.BIBLIOGRAPHY}.md": [pages.BIBLIOGRAPHY_PAGE]}
    names = {file: f"{name}.md" for name, file in pages.texts(course).items()}
    texts |= {file: [file.read_text(encoding="utf-8")] for file in names}
    for chapter in course.notebooks:
        if chapter.ipynb.is_file():
            texts[chapter.ipynb] = links.texts(nbformat.read(chapter.ipynb, as_version=4))
    return {
        file.relative_to(course.root).as_posix(): BookPage(
            names.get(file, file.name), links.places(text)
        )
        for file, text in texts.items()
    }


def chapter_page(
    course: Manifest, chapter: Chapter, linked: BookPages, cache: Path
) -> NotebookNode:
    """A committed notebook as the cells of its page, with its widgets in HTML.

    Raises:
        StudioError: a cell was never executed.
    """
    notebook = trim(nbformat.read(chapter.ipynb, as_version=4), course, chapter)
    notebook = signposts.put_up(notebook, course, chapter)
    for place, cell in enumerate(notebook.cells):
        if cell.get("execution_count", 1) is None:
            remedy = f"make notebooks CHAPTER={chapter.number}"
            raise StudioError(f"{chapter.notebook}: cell {place} was never executed; {remedy}")
    show_widgets(notebook.cells, cache)
    on = [title for title, way in legs(course).items() if chapter in [leg.chapter for leg in way]]
    onward = next_chapters(course, chapter)
    return to_page(notebook, chapter, linked, course.files, onward, on)


def _differs(path: Path, text: str) -> bool:
    return not path.is_file() or path.read_text(encoding="utf-8") != text


def _write(path: Path, text: str) -> None:
    """Write a file unless it would not change: Sphinx renders again what is newer than its page."""
    if _differs(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _forget(out: Path) -> None:
    for name in ("html", ".doctrees", "jupyter_execute", "source"):
        shutil.rmtree(out / name, ignore_errors=True)


PROGRESS = re.compile(r"(reading|writing) [a-z]+\.\.\. \[ *(\d+)%\] (?:.*, )?(\S+)")
"""What Sphinx says of a page."""
COLOR = re.compile(r"\x1b\[[\d;]*[A-Za-z]")


def _render(source: Path, out: Path, *, whole: bool) -> None:
    """Run Jupyter Book with fatal warnings. It always builds into a folder `_build` of the path that it is given."""
    jupyter_book = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    options = ["-n", "-W", "--keep-going", *["--all"] * whole]
    said: list[str] = []
    with subprocess.Popen(
        [*jupyter_book, "build", str(source), "--path-output", str(out.parent), *options],
        env=kernel.clean_environment() | {"PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout or ():
            line = COLOR.sub("", line)
            if step := PROGRESS.search(line):
                print(f"{step[1]} {step[3]}, {step[2]}%", flush=True)
            else:
                said.append(line)
    if process.returncode:
        # Sphinx warns once about a page that it keeps; the next build has to warn again.
        _forget(out)
        raise StudioError(f"Jupyter Book warned:\n{''.join(said)[-3000:]}")


WHOLE = '<span class="cu-whole">'
FORMULA = '<span class="math notranslate nohighlight">[^<]*</span>'
THEME_FIXES = {
    # A chapter in the side bar, and the arrow that shows its further page: the theme gives that no name.
    r"(<a [^>]*>([^<]*)</a><details[^>]*><summary)>": r'\1 aria-label="Pages below \2">',
    "doc-biblioentry": "listitem",
    'class="bd-sidebar-primary bd-sidebar"': 'class="bd-sidebar-primary bd-sidebar pst-sidebar-hidden"',
    "Toggle primary sidebar": "All chapters",
    "Toggle secondary sidebar": "On this page",
    # What ends the sentence of a formula stays on its line.
    rf"(?<!{WHOLE})({FORMULA}[.,;:!?)’]+)": rf"{WHOLE}\1</span>",
    # A repository elsewhere than on GitHub and GitLab, which Binder wants quoted whole.
    r"(?<=/v2/git/)https%3A//[^?\"]+(?=/[^/?\"]+\?)": lambda match: match[0].replace("/", "%2F"),
}
"""Patterns of what Sphinx and the theme write → what readers and Binder need; done again, they change nothing.

The theme has no setting for any of them, and a parser would write whole pages anew for a few words.
"""


def fix_theme(html: Path) -> None:
    """Apply `THEME_FIXES` to the pages of a folder, and delete the theme's templates."""
    for file in sorted(html.glob("*.html")):
        text = file.read_text(encoding="utf-8")
        for pattern, fix in THEME_FIXES.items():
            text = re.sub(pattern, fix, text)
        _write(file, text)
    for template in (html / "_static").glob("*macros.html"):
        template.unlink()  # of the theme: no page, and its links lead nowhere
