"""The course's one list of chapters: ``book.toml``, read, checked and made into objects.

Whatever is wrong with the manifest is a `ManifestError` that names the file, the key and what to do.
Chapters are counted from 0, as their file names are: ``chapter[2].part`` is a line of the third
``[[chapter]]``.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from course_utils.files import ROOT
from course_utils.kit.contents import is_called
from course_utils.studio.schema import (
    ManifestError,
    check_shape,
    fail,
    parse,
    suggest,
)

if TYPE_CHECKING:
    from course_utils.studio.page import Page


QUESTION = re.compile(r"\*\*([^*]+\?)\*\*[ \n]?")
"""The question of a chapter: the first bold words of its text that end so."""


def asked(text: str) -> str:
    """What a chapter's first text asks, in Markdown; empty if it asks nothing."""
    found = QUESTION.search(text)
    return " ".join(found[1].split()) if found else ""


@dataclass(frozen=True)
class Chapter:
    """A notebook with its place in the course: a chapter, its further page, or an appendix.

    Attributes:
        notebook: the stem that both files of the pair share.
        title: as the book and the README show it.
        part: the title of its part; empty if it belongs to none.
        prerequisites: the stems of the chapters that it needs.
        gpu: whether it has runs at full size, for `make gpu`.
        further: the title of its further page; empty if it has none.
        kind: "chapter", "further" or "appendix".
    """

    notebook: str
    title: str
    part: str = ""
    prerequisites: tuple[str, ...] = ()
    gpu: bool = False
    further: str = ""
    kind: str = "chapter"
    root: Path = field(default=ROOT, repr=False)

    @property
    def number(self) -> str:
        """What stands before the first underscore: ``"02"``, or ``"A"`` for an appendix."""
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

    @property
    def first(self) -> bool:
        """Whether it is a chapter that needs no other."""
        return self.kind == "chapter" and not self.prerequisites

    @cached_property
    def page(self) -> "Page | None":
        """Its text, read from its source, else from its notebook; None without one."""
        from course_utils.studio import page, pairs  # slow to import

        if self.source.is_file():
            return page.read(self.source)
        try:
            return page.Page(pairs.read(self.ipynb))
        except (OSError, pairs.UnreadableError):
            return None

    @property
    def minutes(self) -> int:
        """An estimate for reading, running and the exercises; 0 without a text."""
        return self.page.minutes if self.page else 0

    @cached_property
    def question(self) -> str:
        """What the chapter asks at its start; empty if it asks nothing, or is not there."""
        try:
            first = json.loads(self.ipynb.read_text(encoding="utf-8"))["cells"][0]
        except (OSError, ValueError, IndexError):
            return ""
        return asked("".join(first["source"]))

    def pages(self) -> "Iterator[Chapter]":
        """The chapter, and its further page after it."""
        yield self
        if self.further:
            yield Chapter(
                f"{self.notebook}_further",
                self.further,
                part=self.part,
                prerequisites=(self.notebook,),
                kind="further",
                root=self.root,
            )


@dataclass(frozen=True)
class Stop:
    """A chapter on a way, whole or in part.

    Attributes:
        chapter: its stem.
        sections: the headings of those that are read; empty for all.
    """

    chapter: str
    sections: tuple[str, ...] = ()


@dataclass(frozen=True)
class Way:
    """A way through the course: what the reader is after, and the chapters in order.

    Attributes:
        goal: the chapter without which the title would not be true; the last, if no other is named.
    """

    title: str
    stops: tuple[Stop, ...]
    goal: str = ""


SHOWS = {"github": "blob", "gitlab": "-/blob", "codeberg": "src/branch"}
"""Host → what stands between a repository and a branch in the address of a file."""


@dataclass(frozen=True)
class Manifest:
    """The course: what ``[course]`` says, its parts, ways and its notebooks in order.

    Attributes:
        url: where the book is published; empty if that is not said.
        full_course: where a book of all chapters is; empty for none.
        complete: the course with all chapters, where some are left out.
    """

    title: str
    authors: tuple[str, ...]
    license: str
    repository: str
    chapters: tuple[Chapter, ...]
    appendices: tuple[Chapter, ...] = ()
    parts: tuple[str, ...] = ()
    ways: tuple[Way, ...] = ()
    path: Path = ROOT / "book.toml"
    branch: str = "main"
    host: str = ""
    url: str = ""
    full_course: str = ""
    complete: "Manifest | None" = field(default=None, repr=False)

    @property
    def whole(self) -> "Manifest":
        """The course with all chapters that the manifest lists, chosen or not."""
        return self.complete or self

    @cached_property
    def left_out(self) -> dict[str, Chapter]:
        """File name → page, of the chapters that are not chosen, and their further pages."""
        here = {page.notebook for page in self.notebooks}
        return {p.ipynb.name: p for p in self.whole.notebooks if p.notebook not in here}

    @property
    def lacking(self) -> str:
        """Which chapters that are left out the chosen ones need, as a sentence; empty if none."""
        needed: dict[str, list[str]] = {}
        for chapter in self.whole.chapters:
            for stem in chapter.prerequisites:
                if (
                    f"{chapter.notebook}.ipynb" not in self.left_out
                    and f"{stem}.ipynb" in self.left_out
                ):
                    needed.setdefault(stem[:2], []).append(chapter.number)
        said = ", ".join(f"{stem} (by {', '.join(by)})" for stem, by in sorted(needed.items()))
        return f"Needed, and left out: {said}." if said else ""

    @property
    def files(self) -> str:
        """Where the repository shows its files; empty without a repository."""
        if not self.repository:
            return ""
        return f"{self.repository.rstrip('/')}/{SHOWS[self.hosted_like]}/{self.branch}"

    @property
    def hosted_like(self) -> str:
        """The host whose forms of links the repository has: as `host` says, else by its address."""
        name = urlsplit(self.repository).netloc
        return self.host or next((host for host in SHOWS if host in name), "github")

    @property
    def root(self) -> Path:
        """The folder of the manifest, which holds ``notebooks/`` and ``docs/``."""
        return self.path.resolve().parent

    @property
    def notebooks(self) -> tuple[Chapter, ...]:
        """Every notebook in the book's order: chapters, each before its further page; appendices."""
        pages = [page for chapter in self.chapters for page in chapter.pages()]
        return (*pages, *self.appendices)

    def chosen(self, names: Iterable[str]) -> list[Chapter]:
        """The notebooks whose names begin so, in the book's order; all if no name is given.

        ``02`` is a chapter and its further page. Who names a chapter that is left out means it.

        Raises:
            ManifestError: no chapter begins so.
        """
        names = tuple(names)
        pages = self.whole.notebooks if names else self.notebooks
        for name in names:
            if not any(page.notebook.startswith(name) for page in pages):
                known = ", ".join(page.notebook for page in pages)
                raise ManifestError(f"no chapter begins with {name!r}; there are {known}.")
        return [page for page in pages if page.notebook.startswith(names or "")]

    def after(self, page: Chapter) -> Chapter | None:
        """The chapter that comes after a chapter or its further page; None after the last, and for appendices."""
        stems = [chapter.notebook for chapter in self.whole.chapters]
        stem = page.notebook.removesuffix("_further") if page.kind == "further" else page.notebook
        place = stems.index(stem) + 1 if stem in stems else len(stems)
        return next((c for c in self.chapters if c.notebook in stems[place:]), None)


def load(path: Path | str = ROOT / "book.toml", *, files: bool = True) -> Manifest:
    """Read and check the manifest.

    Args:
        path: the TOML file; its folder is the root that holds ``notebooks/``.
        files: compare the manifest with the notebooks on disk, too; False while one is being made.

    Raises:
        ManifestError: naming file, key and remedy.
    """
    path = Path(path)
    table = parse(path)
    check_shape(path, table)
    root = path.resolve().parent
    said = dict(table["course"])
    names = said.pop("chapters", ())
    course = Manifest(
        **said | {"authors": tuple(said["authors"])},
        chapters=tuple(_chapter(entry, root) for entry in table["chapter"]),
        appendices=tuple(
            Chapter(**entry, kind="appendix", root=root) for entry in table.get("appendix", ())
        ),
        parts=tuple(part["title"] for part in table.get("part", ())),
        ways=tuple(_way(way) for way in table.get("way", ())),
        path=path,
    )
    _check_names(path, course)
    _check_parts(path, course)
    _check_prerequisites(path, course.chapters)
    _check_ways(path, course)
    course = _choose(path, course, names)
    if files:
        _check_files(path, course)
    return course


def _choose(path: Path, course: Manifest, names: Sequence[str]) -> Manifest:
    """The course of the chapters that go by these names, and all that follows from the choice; all without a name."""
    stems: list[str] = []
    for place, name in enumerate(names):
        key = f"course.chapters[{place}]"
        found = [c.notebook for c in course.chapters if is_called(c.notebook, name)]
        if not found:
            numbers = ", ".join(chapter.number for chapter in course.chapters)
            known = [] if name.isdigit() else [chapter.slug for chapter in course.chapters]
            remedy = suggest(name, known) if known else f"There are {numbers}"
            fail(path, key, f"no chapter is called {name!r}", remedy)
        if found[0] in stems:
            fail(
                path, key, f"{name!r} is {found[0]}, which is chosen already", "Remove one of them"
            )
        stems += found[:1]
    if len(stems) in (0, len(course.chapters)):
        return course
    needs = {one.notebook: one.prerequisites for one in course.chapters}
    chapters = tuple(
        replace(one, prerequisites=_needed(one.notebook, needs, stems))
        for one in course.chapters
        if one.notebook in stems
    )
    ways = [
        replace(way, stops=tuple(stop for stop in way.stops if stop.chapter in stems))
        for way in course.ways
        if way.goal in stems
    ]
    return replace(
        course,
        chapters=chapters,
        parts=tuple(part for part in course.parts if any(c.part == part for c in chapters)),
        ways=tuple(way for way in ways if len(way.stops) > 1),
        complete=course,
    )


def _needed(stem: str, needs: Mapping[str, Iterable[str]], stems: list[str]) -> tuple[str, ...]:
    """What a chapter needs, of the chosen ones: in place of one that is left out, what that one needs."""
    found: set[str] = set()
    for one in needs[stem]:
        found |= {one} if one in stems else set(_needed(one, needs, stems))
    return tuple(sorted(found))


def _chapter(entry: dict, root: Path) -> Chapter:
    return Chapter(**entry | {"prerequisites": tuple(entry.get("prerequisites", ()))}, root=root)


def _way(entry: dict) -> Way:
    stops = [{"chapter": one} if isinstance(one, str) else one for one in entry["chapters"]]
    return Way(
        entry["title"],
        tuple(Stop(one["chapter"], tuple(one.get("sections", ()))) for one in stops),
        entry.get("goal", stops[-1]["chapter"]),
    )


# The checks --------------------------------------------------------------------


def _check_names(path: Path, course: Manifest) -> None:
    """No two notebooks share a slug: folders, links and runs are named by it."""
    first: dict[str, str] = {}
    for table, chapters in (("chapter", course.chapters), ("appendix", course.appendices)):
        for place, chapter in enumerate(chapters):
            for page in chapter.pages():
                if page.slug in first:
                    problem = f"{page.slug!r}, without its number, is {first[page.slug]} already"
                    fail(path, f"{table}[{place}].notebook", problem, "Remove or rename one")
                first[page.slug] = f"{table}[{place}]"


def _check_parts(path: Path, course: Manifest) -> None:
    order = []
    for place, chapter in enumerate(course.chapters):
        key = f"chapter[{place}].part"
        if chapter.part and chapter.part not in course.parts:
            remedy = suggest(chapter.part, course.parts) if course.parts else "Add a [[part]]"
            fail(path, key, f"no part is called {chapter.part!r}", remedy)
        if chapter.part in order[:-1]:
            problem = f"{chapter.part!r} has ended above"
            fail(path, key, problem, "Move the chapter to the others of its part")
        if chapter.part not in order:
            order.append(chapter.part)


def _check_prerequisites(path: Path, chapters: tuple[Chapter, ...]) -> None:
    """A chapter needs chapters that come before it."""
    order = {chapter.notebook: place for place, chapter in enumerate(chapters)}
    for place, chapter in enumerate(chapters):
        key = f"chapter[{place}].prerequisites"
        for stem in chapter.prerequisites:
            if stem not in order:
                fail(path, key, f"no chapter is called {stem!r}", suggest(stem, order))
            if order[stem] >= place:
                remedy = "Move that chapter up, or remove it here"
                fail(path, key, f"{stem!r} does not come before this chapter", remedy)


def _check_ways(path: Path, course: Manifest) -> None:
    """A way names chapters, in the course's order."""
    order = {chapter.notebook: place for place, chapter in enumerate(course.chapters)}
    for place, way in enumerate(course.ways):
        for turn, stop in enumerate(way.stops):
            key = f"way[{place}].chapters[{turn}]"
            if stop.chapter not in order:
                problem = f"no chapter is called {stop.chapter!r}"
                fail(path, key, problem, suggest(stop.chapter, order))
            if turn and order[stop.chapter] <= order[way.stops[turn - 1].chapter]:
                problem = f"{stop.chapter!r} does not come after {way.stops[turn - 1].chapter!r}"
                fail(path, key, problem, "Write the chapters in their order")
        if way.goal not in {stop.chapter for stop in way.stops}:
            problem = f"{way.goal!r} is no chapter of this way"
            fail(path, f"way[{place}].goal", problem, "Name one of its chapters")


def _check_files(path: Path, course: Manifest) -> None:
    root = path.resolve().parent
    for chapter in course.notebooks:
        remedies = {
            chapter.source: "Write that file, or remove the entry",
            chapter.ipynb: f"Make it with 'make notebooks CHAPTER={chapter.number}'",
        }
        for file, remedy in remedies.items():
            if not file.is_file():
                key = f"{'appendix' if chapter.kind == 'appendix' else 'chapter'} {chapter.notebook!r}"
                fail(path, key, f"{file.relative_to(root)} is not on disk", remedy)
    named = {file for chapter in course.whole.notebooks for file in (chapter.ipynb, chapter.source)}
    folder = root / "notebooks"
    for file in sorted([*folder.glob("*.ipynb"), *folder.glob("source/*.py")]):
        if file not in named and not file.name.startswith("."):
            problem = f"no chapter names {file.relative_to(root)}"
            remedy = f"Add a [[chapter]] for it in {path.name}, or move the file away"
            fail(path, "chapter", problem, remedy)
