"""The course's one list of chapters: ``book.toml``, read, checked and made into objects.

Stands above :mod:`course_utils.notebooks` and :mod:`course_utils.book`, which follow it, and below :mod:`course_utils.runtime`.
Whatever is wrong with the manifest is a :class:`ManifestError` that names the file, the key and what to do. Chapters are counted
from 0, as their file names are: ``chapter[2].minutes`` is a line of the third ``[[chapter]]``.
"""

import difflib
import graphlib
import re
import tomllib
from collections.abc import Callable
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
        files: also compare the chapters with the notebooks on disk (False while a notebook is about to be made).

    Raises:
        ManifestError: naming file, key and remedy.
    """
    path = Path(path)
    table = _parse(path)
    _check_keys(path, "", table, {"course": COURSE_TABLE, "chapter": CHAPTER_TABLES})
    _check_keys(path, "course.", table["course"], COURSE_KEYS)
    for place, chapter in enumerate(table["chapter"]):
        _check_keys(
            path, f"chapter[{place}].", chapter, CHAPTER_KEYS, optional={"prerequisites", "gpu"}
        )
    chapters = tuple(
        Chapter(
            **chapter | {"prerequisites": tuple(chapter.get("prerequisites", ()))},
            root=path.resolve().parent,
        )
        for chapter in table["chapter"]
    )
    _check_names(path, chapters)
    _check_prerequisites(path, chapters)
    if files:
        _check_files(path, chapters)
    return Manifest(
        **table["course"] | {"authors": tuple(table["course"]["authors"])}, chapters=chapters
    )


def chapter_table(manifest: Manifest) -> str:
    """The chapters as a Markdown table, with links that start at the repository's root."""
    lines = ["| | Chapter | Minutes | Needs | GPU |", "|---|---|---|---|---|"]
    for chapter in manifest.chapters:
        title = re.sub(r"([|\[\]\\])", r"\\\1", chapter.title)
        needs = ", ".join(stem.partition("_")[0] for stem in chapter.prerequisites) or "–"
        gpu = "optional" if chapter.gpu else "–"
        lines.append(
            f"| {chapter.number} | [{title}](notebooks/{chapter.notebook}.ipynb) | {chapter.minutes} | {needs} | {gpu} |"
        )
    return "\n".join(lines)


# What each key may hold -----------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """What a value must be: in words, and as a test."""

    wording: str
    fits: Callable[[object], bool]


def _is_text(value: object) -> bool:
    return type(value) is str and bool(value.strip())


def _is_texts(value: object) -> bool:
    return type(value) is list and all(_is_text(item) for item in value)


def _is_tables(value: object) -> bool:
    return type(value) is list and bool(value) and all(type(item) is dict for item in value)


COURSE_TABLE = Kind("one table [course]", lambda value: type(value) is dict)
CHAPTER_TABLES = Kind("one table [[chapter]] or more", _is_tables)
TEXT = Kind("text in quotes that is not empty", _is_text)
URL = Kind(
    'an address such as "https://…", or "" for none',
    lambda value: type(value) is str and bool(re.match("https://.|$", value)),
)
STEM = Kind(
    'a notebook\'s name without folder and suffix, such as "02_attention_pooling"',
    lambda value: type(value) is str and bool(re.fullmatch(r"\d\d_[a-z0-9_]+", value)),
)
TEXTS = Kind("a list of texts in quotes", _is_texts)
MINUTES = Kind("a whole number above 0", lambda value: type(value) is int and value > 0)
FLAG = Kind("true or false", lambda value: type(value) is bool)

COURSE_KEYS = {"title": TEXT, "authors": TEXTS, "license": TEXT, "repository": URL}
CHAPTER_KEYS = {
    "notebook": STEM,
    "title": TEXT,
    "minutes": MINUTES,
    "prerequisites": TEXTS,
    "gpu": FLAG,
}


# The checks -----------------------------------------------------------------------------------------------------------


def _fail(path: Path, key: str, problem: str, remedy: str) -> NoReturn:
    raise ManifestError(f"{path.name}: {key}: {problem}. {remedy}.")


def _parse(path: Path) -> dict:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ManifestError(
            f"{path.name}: there is no such file in {path.resolve().parent}. Restore it from git."
        ) from None
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError alike
        raise ManifestError(
            f"{path.name}: not valid TOML: {error}. Correct that place; text stands in double quotes."
        ) from None


def _check_keys(
    path: Path,
    prefix: str,
    table: dict,
    kinds: dict[str, Kind],
    optional: frozenset | set = frozenset(),
) -> None:
    for key in table.keys() - kinds.keys():
        near = difflib.get_close_matches(key, kinds, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}" if near else f"Remove it; known here: {', '.join(kinds)}"
        _fail(path, prefix + key, "unknown key", hint)
    for key, kind in kinds.items():
        if key not in table and key not in optional:
            _fail(path, prefix + key, "missing", f"Add it: {kind.wording}")
        if key in table and not kind.fits(table[key]):
            _fail(path, prefix + key, f"is {table[key]!r}", f"Write {kind.wording}")


def _check_names(path: Path, chapters: tuple[Chapter, ...]) -> None:
    first: dict[str, int] = {}
    for place, chapter in enumerate(chapters):
        if chapter.notebook in first:
            earlier = first[chapter.notebook]
            _fail(
                path,
                f"chapter[{place}].notebook",
                f"{chapter.notebook!r} is chapter[{earlier}] already",
                "Remove one of the two",
            )
        first[chapter.notebook] = place


def _check_prerequisites(path: Path, chapters: tuple[Chapter, ...]) -> None:
    order = {chapter.notebook: place for place, chapter in enumerate(chapters)}
    for place, chapter in enumerate(chapters):
        for stem in chapter.prerequisites:
            if stem not in order:
                near = difflib.get_close_matches(stem, order, n=1) or [", ".join(order)]
                _fail(
                    path,
                    f"chapter[{place}].prerequisites",
                    f"no chapter is called {stem!r}",
                    f"Did you mean {near[0]}",
                )
    try:
        graphlib.TopologicalSorter(
            {chapter.notebook: chapter.prerequisites for chapter in chapters}
        ).prepare()
    except graphlib.CycleError as error:
        cycle = error.args[1]
        place = max(order[stem] for stem in cycle)
        _fail(
            path,
            f"chapter[{place}].prerequisites",
            f"a cycle: {' → '.join(cycle)}",
            "Remove one of these prerequisites",
        )
    for place, chapter in enumerate(chapters):
        for stem in chapter.prerequisites:
            if order[stem] > place:
                _fail(
                    path,
                    f"chapter[{place}].prerequisites",
                    f"{stem!r} comes later in the course",
                    "Move that chapter up, or remove it here",
                )


def _check_files(path: Path, chapters: tuple[Chapter, ...]) -> None:
    root = path.resolve().parent
    for place, chapter in enumerate(chapters):
        key = f"chapter[{place}].notebook"
        if not chapter.source.is_file():
            _fail(
                path,
                key,
                f"{chapter.source.relative_to(root)} is not on disk",
                "Write that file, or remove the chapter",
            )
        if not chapter.ipynb.is_file():
            _fail(
                path,
                key,
                f"{chapter.ipynb.relative_to(root)} is not on disk",
                f"Make it with 'make notebooks CHAPTER={chapter.number}'",
            )
    named = {file for chapter in chapters for file in (chapter.ipynb, chapter.source)}
    on_disk = [*(root / "notebooks").glob("*.ipynb"), *(root / "notebooks" / "source").glob("*.py")]
    for file in sorted(on_disk):
        if file not in named and not file.name.startswith("."):
            _fail(
                path,
                "chapter",
                f"no chapter names {file.relative_to(root)}",
                "Add a [[chapter]] for it, or move the file away",
            )
