"""The course's one list of chapters: ``book.toml``, read, checked and made into objects.

Stands above `notebooks` and `book`, which follow it, and below `runtime`. Whatever is wrong with
the manifest is a `ManifestError` that names the file, the key and what to do. Chapters are counted
from 0, as their file names are: ``chapter[2].minutes`` is a line of the third ``[[chapter]]``.
"""

import difflib
import graphlib
import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn

from course_utils.runtime import ROOT


class ManifestError(ValueError):
    """A mistake in ``book.toml``: which file, which key, and the remedy."""


@dataclass(frozen=True)
class Chapter:
    """One ``[[chapter]]``: a notebook with its place in the course."""

    notebook: str  # the stem that both files of the pair share
    title: str
    minutes: int
    prerequisites: tuple[str, ...] = ()
    gpu: bool = False
    root: Path = field(default=ROOT, repr=False)

    @property
    def number(self) -> str:
        """The digits before the first underscore: ``"02"``."""
        return self.notebook.partition("_")[0]

    @property
    def slug(self) -> str:
        """What the chapter is called wherever its number may change: ``"kernel_regression"``."""
        return self.notebook.partition("_")[2]

    @property
    def ipynb(self) -> Path:
        """The executed notebook that students open."""
        return self.root / "notebooks" / f"{self.notebook}.ipynb"

    @property
    def source(self) -> Path:
        """The text that is edited and reviewed."""
        return self.root / "notebooks" / "source" / f"{self.notebook}.py"


@dataclass(frozen=True)
class Manifest:
    """The course: what ``[course]`` says, and its chapters in order."""

    title: str
    authors: tuple[str, ...]
    license: str
    repository: str
    chapters: tuple[Chapter, ...]


def load(path: Path | str = ROOT / "book.toml", *, files: bool = True) -> Manifest:
    """Read and check the manifest.

    Args:
        path: the TOML file; its folder is the root that holds ``notebooks/``.
        files: compare the chapters with the notebooks on disk, too; False while one is being made.

    Raises:
        ManifestError: naming file, key and remedy.
    """
    path = Path(path)
    table = _parse(path)
    _check_keys(path, "", table, TOP_KEYS)
    _check_keys(path, "course.", table["course"], COURSE_KEYS)
    for place, entry in enumerate(table["chapter"]):
        _check_keys(path, f"chapter[{place}].", entry, CHAPTER_KEYS)
    chapters = tuple(_chapter(entry, path.resolve().parent) for entry in table["chapter"])
    _check_names(path, chapters)
    _check_prerequisites(path, chapters)
    if files:
        _check_files(path, chapters)
    course = table["course"]
    return Manifest(**course | {"authors": tuple(course["authors"])}, chapters=chapters)


def _chapter(entry: dict, root: Path) -> Chapter:
    return Chapter(**entry | {"prerequisites": tuple(entry.get("prerequisites", ()))}, root=root)


def chapter_table(manifest: Manifest) -> str:
    """The chapters as a Markdown table, with links that start at the repository's root."""
    head = ["| | Chapter | Minutes | Needs | GPU |", "|---|---|---|---|---|"]
    return "\n".join(head + [_table_row(chapter) for chapter in manifest.chapters])


def _table_row(chapter: Chapter) -> str:
    title = re.sub(r"([|\[\]\\])", r"\\\1", chapter.title)
    link = f"[{title}](notebooks/{chapter.notebook}.ipynb)"
    needs = ", ".join(stem.partition("_")[0] for stem in chapter.prerequisites) or "–"
    gpu = "optional" if chapter.gpu else "–"
    return f"| {chapter.number} | {link} | {chapter.minutes} | {needs} | {gpu} |"


# What each key may hold --------------------------------------------------------


class Kind(NamedTuple):
    """What a value must be: in words, and as a test."""

    wording: str
    fits: Callable[[object], bool]
    optional: bool = False


def _is_text(value: object) -> bool:
    return type(value) is str and bool(value.strip())


def _is_texts(value: object) -> bool:
    return type(value) is list and all(_is_text(item) for item in value)


def _is_tables(value: object) -> bool:
    return type(value) is list and bool(value) and all(type(item) is dict for item in value)


def _is_stem(value: object) -> bool:
    return type(value) is str and bool(re.fullmatch(r"\d\d_[a-z0-9_]+", value))


def _is_address(value: object) -> bool:
    return value == "" or (type(value) is str and bool(re.match(r"https://\S+$", value)))


TEXT = Kind("text in quotes that is not empty", _is_text)
TEXTS = Kind("a list of texts in quotes", _is_texts)

TOP_KEYS = {
    "course": Kind("one table [course]", lambda value: type(value) is dict),
    "chapter": Kind("one table [[chapter]] or more", _is_tables),
}
COURSE_KEYS = {
    "title": TEXT,
    "authors": TEXTS,
    "license": TEXT,
    "repository": Kind('an address that begins with "https://", or "" for none', _is_address),
}
CHAPTER_KEYS = {
    "notebook": Kind('a name without folder and suffix, such as "02_pooling"', _is_stem),
    "title": TEXT,
    "minutes": Kind("a whole number above 0", lambda value: type(value) is int and value > 0),
    "prerequisites": Kind("a list of notebooks", _is_texts, optional=True),
    "gpu": Kind("true or false", lambda value: type(value) is bool, optional=True),
}


# The checks --------------------------------------------------------------------


def _fail(path: Path, key: str, problem: str, remedy: str) -> NoReturn:
    raise ManifestError(f"{path.name}: {key}: {problem}. {remedy}.")


def _parse(path: Path) -> dict:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problem = f"there is no such file in {path.resolve().parent}. Restore it from git."
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError alike
        problem = f"not valid TOML: {error}. Correct that place; text stands in double quotes."
    raise ManifestError(f"{path.name}: {problem}")


def _check_keys(path: Path, prefix: str, table: dict, kinds: dict[str, Kind]) -> None:
    for key in table:
        if key not in kinds:
            _fail(path, prefix + key, "unknown key", _suggest(key, kinds))
    for key, kind in kinds.items():
        if key not in table and not kind.optional:
            _fail(path, prefix + key, "missing", f"Add it: {kind.wording}")
        if key in table and not kind.fits(table[key]):
            _fail(path, prefix + key, f"is {table[key]!r}", f"Write {kind.wording}")


def _suggest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}" if near else f"Remove it; known here: {', '.join(known)}"


def _check_names(path: Path, chapters: tuple[Chapter, ...]) -> None:
    first: dict[str, int] = {}
    for place, chapter in enumerate(chapters):
        if chapter.notebook in first:
            problem = f"{chapter.notebook!r} is chapter[{first[chapter.notebook]}] already"
            _fail(path, f"chapter[{place}].notebook", problem, "Remove one of the two")
        first[chapter.notebook] = place


def _check_prerequisites(path: Path, chapters: tuple[Chapter, ...]) -> None:
    order = {chapter.notebook: place for place, chapter in enumerate(chapters)}
    for chapter in chapters:
        for stem in chapter.prerequisites:
            if stem not in order:
                key = f"chapter[{order[chapter.notebook]}].prerequisites"
                _fail(path, key, f"no chapter is called {stem!r}", _suggest(stem, order))
    needs = {chapter.notebook: chapter.prerequisites for chapter in chapters}
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        cycle = error.args[1]
        key = f"chapter[{max(order[stem] for stem in cycle)}].prerequisites"
        _fail(path, key, f"a cycle, {' → '.join(cycle)}", "Remove one of these prerequisites")
    for name, stems in needs.items():
        for stem in stems:
            if order[stem] > order[name]:
                key = f"chapter[{order[name]}].prerequisites"
                remedy = "Move that chapter up, or remove it here"
                _fail(path, key, f"{stem!r} comes later in the course", remedy)


def _check_files(path: Path, chapters: tuple[Chapter, ...]) -> None:
    root = path.resolve().parent
    for place, chapter in enumerate(chapters):
        remedies = {
            chapter.source: "Write that file, or remove the chapter",
            chapter.ipynb: f"Make it with 'make notebooks CHAPTER={chapter.number}'",
        }
        for file, remedy in remedies.items():
            if not file.is_file():
                problem = f"{file.relative_to(root)} is not on disk"
                _fail(path, f"chapter[{place}].notebook", problem, remedy)
    named = {file for chapter in chapters for file in (chapter.ipynb, chapter.source)}
    folder = root / "notebooks"
    for file in sorted([*folder.glob("*.ipynb"), *folder.glob("source/*.py")]):
        if file not in named and not file.name.startswith("."):
            problem = f"no chapter names {file.relative_to(root)}"
            _fail(path, "chapter", problem, "Add a [[chapter]] for it, or move the file away")
