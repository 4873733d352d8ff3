"""The index of terms: what each means in one line, and the sections that teach it.

``notebooks/terms.toml`` holds them, sorted::

    ["attention weights"]
    means = "Nonnegative numbers, one per key, that sum to 1 …"
    taught = ["queries_keys_values A database, asked in four ways"]   # slug and heading
    also = ["weights"]                               # other words for it in those sections

A section that does not exist, or does not contain the term, is an error: the index can't go stale.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from mdit_py_plugins.anchors.index import slugify

from course_utils.studio.manifest import Chapter, Manifest


class TermError(ValueError):
    """An entry that leads nowhere: which, and why."""


@dataclass(frozen=True)
class Section:
    """A heading of a chapter with the Markdown text under it, up to the next heading."""

    chapter: Chapter
    heading: str
    anchor: str
    text: str


@dataclass(frozen=True)
class Term:
    """One entry: its name, its meaning in one line, and where it is taught."""

    name: str
    means: str
    taught: tuple[Section, ...]


def load(course: Manifest, path: Path | None = None) -> list[Term]:
    """The terms in alphabetical order.

    Raises:
        TermError: an entry lacks something, is out of order, names a section that does not exist, or one
            in which the term does not occur.
    """
    path = path or course.chapters[0].ipynb.parent / "terms.toml"
    entries = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    order = sorted(entries, key=_sort_key)
    if list(entries) != order:
        odd = next(name for name, right in zip(entries, order, strict=True) if name != right)
        raise TermError(f"{path.name}: {odd!r} is out of alphabetical order")
    sections = {
        chapter.slug: {section.heading: section for section in _sections(chapter)}
        for chapter in course.notebooks
    }
    return [
        Term(name, entry["means"], tuple(_find(path, name, entry, sections)))
        for name, entry in entries.items()
        if _is_whole(path, name, entry)
    ]


def page(terms: list[Term]) -> str:
    """The page, in Markdown: a heading per letter, an entry per term."""
    lines, letter = ["# Terms", "", "What each means in one line, and where it is taught."], ""
    for term in terms:
        if (initial := _sort_key(term.name)[0].upper()) != letter:
            letter = initial
            lines += ["", f"## {letter}", ""]
        links = ", ".join(
            f"[{one.chapter.number} {_plain(one.heading)}]({one.chapter.notebook}.ipynb#{one.anchor})"
            for one in term.taught
        )
        lines.append(f"- **{term.name}**: {term.means} {links}")
    return "\n".join([*lines, ""])


def _is_whole(path: Path, name: str, entry: dict) -> bool:
    missing = [key for key in ("means", "taught") if not entry.get(key)]
    if missing or set(entry) - {"means", "taught", "also"}:
        raise TermError(f"{path.name}: {name!r} needs means and taught, and may have also")
    return True


def _find(path: Path, name: str, entry: dict, sections: dict) -> list[Section]:
    found = []
    for place in entry["taught"]:
        slug, _, heading = place.partition(" ")
        if heading not in sections.get(slug, {}):
            raise TermError(f"{path.name}: {name!r} is taught in {place!r}, which does not exist")
        section = sections[slug][heading]
        words = [name, *entry.get("also", [])]
        text = f"{section.heading}\n{section.text}".casefold()
        if not any(word.casefold() in text for word in words):
            raise TermError(f"{path.name}: {place!r} does not contain {' or '.join(words)}")
        found.append(section)
    return found


def _sections(chapter: Chapter) -> list[Section]:
    import jupytext

    notebook = jupytext.read(chapter.source, fmt="py:percent")
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    pieces = re.split(r"^#{1,3} +(.+)$", text, flags=re.MULTILINE)[1:]
    taken: dict[str, int] = {}
    sections = []
    for heading, body in zip(pieces[::2], pieces[1::2], strict=True):
        slug = slugify(heading.strip())  # the anchor that MyST gives a heading
        again = taken[slug] = taken.get(slug, -1) + 1
        anchor = f"{slug}-{again}" if again else slug
        sections.append(Section(chapter, heading.strip(), anchor, re.sub(r"\s+", " ", body)))
    return sections


def _plain(heading: str) -> str:
    return heading.replace("[", "\\[").replace("]", "\\]")


def _sort_key(name: str) -> str:
    return re.sub(r"[^\w ]", "", name.casefold().replace("ä", "a"))
