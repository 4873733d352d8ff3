"""The chapters of the course, from `book.toml`: those that its `[course] chapters` chooses, or all.

The studio reads the manifest whole and says what is wrong with it; a chapter that runs asks here.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path

from course_utils.files import ROOT


def is_called(notebook: str, name: str) -> bool:
    """Whether a chapter, ``"04_masks"``, goes by this name: its number, its slug, or both."""
    number, _, slug = notebook.partition("_")
    return name in (number, slug, notebook)


def is_chosen(notebook: str, names: Iterable[str]) -> bool:
    """Whether a chapter goes by one of these names, or none is given."""
    names = tuple(names)
    return not names or any(is_called(notebook, name) for name in names)


def titles(book: Path = ROOT / "book.toml") -> dict[str, str]:
    """Notebook → title: the chapters of this course, then its appendices; none where the package is alone.

    A chapter that is left out has an empty title.

    Raises:
        ValueError: the file is not TOML.
    """
    if not book.is_file():
        return {}
    table = tomllib.loads(book.read_text(encoding="utf-8"))
    names = table["course"].get("chapters", ())
    found = {
        one["notebook"]: one["title"] if is_chosen(one["notebook"], names) else ""
        for one in table["chapter"]
    }
    return found | {one["notebook"]: one["title"] for one in table.get("appendix", ())}
