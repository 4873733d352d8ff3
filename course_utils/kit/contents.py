"""The chapters of the course and its ways, from `book.toml`: those that its `[course] chapters` chooses, or all.

The studio reads the manifest whole and says what is wrong with it; a chapter that runs asks here. A file that is not
TOML is a ValueError.
"""

import tomllib
from pathlib import Path
from typing import NamedTuple

from course_utils.files import ROOT


def matches(notebook: str, name: str) -> bool:
    """Whether a name means a chapter, ``"04_masks"``: by its number, its slug, or both."""
    return name in (notebook.partition("_")[0], slug(notebook), notebook)


def slug(notebook: str) -> str:
    """A chapter's name without its number: "masks" of "04_masks"."""
    return notebook.partition("_")[2]


def titles(book: Path = ROOT / "book.toml") -> dict[str, str]:
    """Notebook → title: all chapters, then the appendices, in order; none where the package is alone."""
    table = _table(book)
    listed = [*table.get("chapter", ()), *table.get("appendix", ())]
    return {chapter["notebook"]: chapter["title"] for chapter in listed}


def left_out(book: Path = ROOT / "book.toml") -> set[str]:
    """The notebooks of the chapters that the course does not choose."""
    table = _table(book)
    names = table.get("course", {}).get("chapters", ())
    notebooks = {chapter["notebook"] for chapter in table.get("chapter", ())}
    return {n for n in notebooks if names and not any(matches(n, name) for name in names)}


def ways(book: Path = ROOT / "book.toml") -> dict[str, dict[str, tuple[str, ...]]]:
    """Title of a way → its stops: notebook → the titles of the sections that it takes, none for all of them.

    Chapters that are not chosen are no stops, and a way whose goal is not chosen is none.
    """
    absent, found = left_out(book), {}
    for path in _table(book).get("path", ()):
        stops = dict(map(_stop, path["chapters"]))
        chosen = {notebook: taken for notebook, taken in stops.items() if notebook not in absent}
        if path.get("goal", [*stops][-1]) in chosen and len(chosen) > 1:
            found[path["title"]] = chosen
    return found


def _stop(entry: str | dict) -> tuple[str, tuple[str, ...]]:
    return (entry, ()) if isinstance(entry, str) else (entry["chapter"], tuple(entry["sections"]))


class Onward(NamedTuple):
    """Notebook and title of a page that may come next, the ways on which it does, and whether without a way, too.

    Where a way ends, `ends` is true, and the page is the next chapter, which is no stop of it.
    """

    notebook: str
    title: str
    ways: tuple[str, ...]
    always: bool = False
    ends: bool = False


def following(name: str, book: Path = ROOT / "book.toml") -> tuple[Onward, ...]:
    """The pages that may come after a slug: the next chosen chapter, then those that come next on a way."""
    named = titles(book)
    absent, chapters = left_out(book), [n["notebook"] for n in _table(book).get("chapter", ())]
    here = next((notebook for notebook in named if slug(notebook) == name), "")
    later = chapters[chapters.index(here) + 1 :] if here in chapters else []
    after = next((notebook for notebook in later if notebook not in absent), "")
    found: dict[str, list[str]] = {after: []} if after else {}
    ended = []
    for title, stops in ways(book).items():
        order = [*stops, ""]
        if here not in stops:
            continue
        if to := order[order.index(here) + 1]:
            found.setdefault(to, []).append(title)
        else:
            ended.append(title)
    pages = [Onward(to, named[to], tuple(on), to == after) for to, on in found.items()]
    end = [Onward(after, named[after], tuple(ended), ends=True)] if ended and after else []
    return (*pages, *end)


def _table(book: Path) -> dict:
    return tomllib.loads(book.read_text(encoding="utf-8")) if book.is_file() else {}
