"""The chapters of the course, from `book.toml`: those that its `[course] chapters` chooses, or all.

The studio reads the manifest whole and says what is wrong with it; a chapter that runs asks here. A file that is not
TOML is a ValueError.
"""

import tomllib
from pathlib import Path

from course_utils.files import ROOT


def matches(notebook: str, name: str) -> bool:
    """Whether a name means a chapter, ``"04_masks"``: by its number, its slug, or both."""
    return name in (notebook.partition("_")[0], slug(notebook), notebook)


def slug(notebook: str) -> str:
    """A chapter's name without its number: "masks" of "04_masks"."""
    return notebook.partition("_")[2]


def titles() -> dict[str, str]:
    """Notebook → title: all chapters, then the appendices, in order; none where the package is alone."""
    table = _table(ROOT / "book.toml")
    listed = [*table.get("chapter", ()), *table.get("appendix", ())]
    return {chapter["notebook"]: chapter["title"] for chapter in listed}


def left_out(book: Path = ROOT / "book.toml") -> set[str]:
    """The notebooks of the chapters that the course does not choose."""
    table = _table(book)
    names = table.get("course", {}).get("chapters", ())
    notebooks = {chapter["notebook"] for chapter in table.get("chapter", ())}
    return {n for n in notebooks if names and not any(matches(n, name) for name in names)}


def following(name: str, book: Path = ROOT / "book.toml") -> tuple[str, str]:
    """Notebook and title of the next chosen chapter after a slug; empty texts after the last one."""
    absent, later = left_out(book), iter(_table(book).get("chapter", ()))
    if any(slug(chapter["notebook"]) == name for chapter in later):  # it takes what comes before
        for chapter in later:
            if chapter["notebook"] not in absent:
                return chapter["notebook"], chapter["title"]
    return "", ""


def _table(book: Path) -> dict:
    return tomllib.loads(book.read_text(encoding="utf-8")) if book.is_file() else {}
