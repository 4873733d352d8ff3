"""The manifest of the course, ``book.toml``: read, checked and made into objects.

A mistake in it is a `StudioError` that names file and key, where chapters are counted from 0:
``chapter[2].part`` is a line of the third ``[[chapter]]``.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from course_utils.files import ROOT
from course_utils.kit.contents import matches
from course_utils.studio import StudioError

if TYPE_CHECKING:
    from course_utils.studio.content import Content

SCHEMA = Path(__file__).with_name("book.schema.json")
"""The JSON schema of book.toml."""
START = "START.ipynb"
"""The start page of JupyterLab, which `make lab` writes among the notebooks."""
QUESTION = re.compile(r"\*\*([^*]+\?)\*\*[ \n]?")
"""The question of a chapter: the first bold words of its text that end in a question mark."""


def find_question(text: str) -> str:
    """The question in a chapter's first text, in Markdown; empty if there is none."""
    match = QUESTION.search(text)
    return " ".join(match[1].split()) if match else ""


# The course ---------------------------------------------------------------------


@dataclass(frozen=True)
class Chapter:
    """A notebook with its place in the course: a chapter, its further page, or an appendix.

    Attributes:
        notebook: the stem that source and notebook share.
        title: as the book and the README show it.
        part: the title of its part; empty if it belongs to none.
        prerequisites: the stems of the chapters that it needs.
        gpu: whether it has runs at full size, for `make gpu`.
        further: the title of its further page, whose file is named ``…_further``; empty if it has none.
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
        """``"02"``, or ``"A"`` for an appendix."""
        return self.notebook.partition("_")[0]

    @property
    def core(self) -> str:
        """The stem of its chapter: its own, or for a further page that of the chapter it belongs to."""
        return self.notebook.removesuffix("_further")

    @property
    def slug(self) -> str:
        """The name without the number, ``"kernel_regression"``, which is also that of its folder in `lessons`."""
        return self.notebook.partition("_")[2]

    @property
    def ipynb(self) -> Path:
        """The executed notebook that students open."""
        return self.root / "notebooks" / f"{self.notebook}.ipynb"

    @property
    def source(self) -> Path:
        """The source, which authors edit."""
        return self.root / "notebooks" / "source" / f"{self.notebook}.py"

    @cached_property
    def content(self) -> "Content":
        """Its content, read from its source, else from its notebook; empty without both."""
        from nbformat.v4 import new_notebook  # slow to import, as the others

        from course_utils.studio import content, notebook_files

        if self.source.is_file():
            return content.Content(notebook_files.read_source(self.source))
        try:
            return content.Content(notebook_files.read_notebook(self.ipynb))
        except (OSError, notebook_files.UnreadableError):
            return content.Content(new_notebook())

    @property
    def minutes(self) -> int:
        """Estimated minutes for reading, running and the exercises; 0 without a text."""
        return self.content.minutes

    @property
    def question(self) -> str:
        """The question at the chapter's start; empty if there is none, or no file yet."""
        return "".join(find_question(cell.source) for cell in self.content.notebook.cells[:1])

    def with_further(self) -> "Iterator[Chapter]":
        """The chapter, and its further page after it."""
        yield self
        if self.further:
            changes = {"title": self.further, "prerequisites": (self.notebook,), "further": ""}
            stem = f"{self.notebook}_further"
            yield replace(self, notebook=stem, kind="further", gpu=False, **changes)


class Stop(NamedTuple):
    """A chapter or an appendix on a path; `sections` are the headings of those that are read, empty for all."""

    chapter: str
    sections: tuple[str, ...] = ()


class LearningPath(NamedTuple):
    """A path through the course, with one sentence `about` it; left out where its `goal`, a chapter, is not chosen."""

    title: str
    stops: tuple[Stop, ...]
    goal: str
    about: str = ""


FILE_VIEWS = {"github": "blob", "gitlab": "-/blob", "codeberg": "src/branch"}
"""Host → the part of a file's address between repository and branch."""


@dataclass(frozen=True)
class Manifest:
    """The course: the values of ``[course]``, its parts, paths and notebooks in order.

    Attributes:
        url: the address of the published book; empty if there is none.
        full_course: the address of a book of all chapters; empty if there is none.
        complete: the course with all chapters, where some are left out.
    """

    title: str
    authors: tuple[str, ...]
    license: str
    repository: str
    chapters: tuple[Chapter, ...]
    appendices: tuple[Chapter, ...] = ()
    parts: tuple[str, ...] = ()
    paths: tuple[LearningPath, ...] = ()
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
        """File name → notebook, of the chapters that are not chosen, and their further pages."""
        chosen = {chapter.notebook for chapter in self.notebooks}
        return {c.ipynb.name: c for c in self.whole.notebooks if c.notebook not in chosen}

    @property
    def missing_prerequisites(self) -> str:
        """The chapters left out that chosen ones need, as a sentence; empty if none."""
        chosen = {chapter.notebook for chapter in self.chapters}
        needs = [
            f"{stem[:2]} (by {chapter.number})"
            for chapter in self.whole.chapters
            for stem in chapter.prerequisites
            if chapter.notebook in chosen and stem not in chosen
        ]
        return f"Needed, and left out: {', '.join(sorted(needs))}." if needs else ""

    @property
    def files(self) -> str:
        """The address at which the repository shows its files; empty without a repository."""
        if not self.repository:
            return ""
        return f"{self.repository.rstrip('/')}/{FILE_VIEWS[self.hosted_like]}/{self.branch}"

    @property
    def hosted_like(self) -> str:
        """The host whose form of addresses the repository has: `host`, else the one in its address."""
        name = urlsplit(self.repository).netloc
        return self.host or next((host for host in FILE_VIEWS if host in name), "github")

    @property
    def root(self) -> Path:
        """The folder of the manifest, which holds ``notebooks/`` and ``docs/``."""
        return self.path.resolve().parent

    @property
    def notebooks(self) -> tuple[Chapter, ...]:
        """Every notebook in the book's order: chapters, each before its further page; appendices."""
        chapters = [each for chapter in self.chapters for each in chapter.with_further()]
        return (*chapters, *self.appendices)

    def chosen(self, names: Iterable[str]) -> list[Chapter]:
        """The notebooks whose names begin so, in the book's order, left out or not; all without a name.

        A name may be that of a file, with its folder.

        Raises:
            StudioError: no notebook begins so.
        """
        names = tuple(Path(name).name.removesuffix(".ipynb").removesuffix(".py") for name in names)
        chapters = self.whole.notebooks if names else self.notebooks
        for name in names:
            if not any(chapter.notebook.startswith(name) for chapter in chapters):
                stems = ", ".join(chapter.notebook for chapter in chapters)
                raise StudioError(f"no chapter begins with {name!r}; there are {stems}.")
        return [chapter for chapter in chapters if chapter.notebook.startswith(names or "")]

    def after(self, chapter: Chapter) -> Chapter | None:
        """The chapter after a chapter or its further page; None after the last, and for appendices."""
        stems = [other.notebook for other in self.whole.chapters]
        later = stems[stems.index(chapter.core) + 1 :] if chapter.core in stems else []
        return next((other for other in self.chapters if other.notebook in later), None)


# Reading it ---------------------------------------------------------------------


def load(path: Path | str = ROOT / "book.toml", *, files: bool = True) -> Manifest:
    """Read and check the manifest.

    Args:
        path: the TOML file; its folder is the root that holds ``notebooks/``.
        files: compare the manifest with the notebooks on disk, too; False while one is being made.

    Raises:
        StudioError: naming file, key and mistake.
    """
    path = Path(path)
    table = _parse(path)
    course = _manifest(path, table)
    for key, mistake in _mistakes(course):
        raise StudioError(f"{path.name}: {key}: {mistake}.")
    course = _choose(course, table["course"].get("chapters", ()))
    for key, mistake in _misplaced_files(course) if files else ():
        raise StudioError(f"{path.name}: {key}: {mistake}.")
    return course


def _parse(path: Path) -> dict[str, Any]:
    """The file's tables, after they were held against the schema."""
    from jsonschema import Draft202012Validator  # slow to import

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        folder = path.resolve().parent
        raise StudioError(f"{path.name}: there is no such file in {folder}.") from None
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError alike
        raise StudioError(f"{path.name}: not valid TOML: {error}.") from None
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    errors = list(Draft202012Validator(schema).iter_errors(table))
    errors.sort(key=lambda error: error.validator != "additionalProperties")  # a misspelled key
    for error in errors:
        keys = f"; the keys are {', '.join(error.schema.get('properties', ()))}"
        mistake = error.message + keys * (error.validator in ("additionalProperties", "required"))
        raise StudioError(f"{path.name}: {error.json_path[2:] or 'at the top'}: {mistake}.")
    return table


def _manifest(path: Path, table: dict[str, Any]) -> Manifest:
    root = path.resolve().parent
    course = {key: value for key, value in table["course"].items() if key != "chapters"}
    chapters = (
        entry | {"prerequisites": tuple(entry.get("prerequisites", ()))}
        for entry in table["chapter"]
    )
    return Manifest(
        **course | {"authors": tuple(course["authors"])},
        chapters=tuple(Chapter(**entry, root=root) for entry in chapters),
        appendices=tuple(
            Chapter(**entry, kind="appendix", root=root) for entry in table.get("appendix", ())
        ),
        parts=tuple(part["title"] for part in table.get("part", ())),
        paths=tuple(map(_path, table.get("path", ()))),
        path=path,
    )


def _path(entry: dict[str, Any]) -> LearningPath:
    stops = tuple(
        Stop(stop) if isinstance(stop, str) else Stop(stop["chapter"], tuple(stop["sections"]))
        for stop in entry["chapters"]
    )
    goal = entry.get("goal", stops[-1].chapter)
    return LearningPath(entry["title"], stops, goal, entry.get("about", ""))


def _choose(course: Manifest, names: Iterable[str]) -> Manifest:
    """The course of the chapters that go by these names; all of it without a name."""
    stems: set[str] = set()
    for index, name in enumerate(names):
        found = {c.notebook for c in course.chapters if matches(c.notebook, name)}
        if not found - stems:
            stems_known = ", ".join(chapter.notebook for chapter in course.chapters)
            problem = "is chosen already" if found else f"is none of {stems_known}"
            raise StudioError(f"{course.path.name}: course.chapters[{index}]: {name!r} {problem}.")
        stems |= found
    if len(stems) in (0, len(course.chapters)):
        return course
    needs = {chapter.notebook: chapter.prerequisites for chapter in course.chapters}
    chapters = tuple(
        replace(chapter, prerequisites=tuple(sorted(_needed(chapter.notebook, needs, stems))))
        for chapter in course.chapters
        if chapter.notebook in stems
    )
    kept = {*stems, *(appendix.notebook for appendix in course.appendices)}
    paths = (
        path._replace(stops=tuple(stop for stop in path.stops if stop.chapter in kept))
        for path in course.paths
        if path.goal in stems
    )
    return replace(
        course,
        chapters=chapters,
        parts=tuple(part for part in course.parts if part in {c.part for c in chapters}),
        paths=tuple(path for path in paths if len(path.stops) > 1),
        complete=course,
    )


def _needed(stem: str, needs: Mapping[str, Iterable[str]], stems: set[str]) -> set[str]:
    """The chosen chapters that a chapter needs; one that is left out is replaced by those that it needs itself."""
    return {
        needed
        for before in needs[stem]
        for needed in ([before] if before in stems else _needed(before, needs, stems))
    }


# Rules beyond the schema --------------------------------------------------------


def _mistakes(course: Manifest) -> Iterator[tuple[str, str]]:
    """Key and mistake of each wrong order: slugs that are not unique, parts and prerequisites out of order."""
    slugs: set[str] = set()
    for chapter in course.notebooks:
        if chapter.slug in slugs:
            yield (
                chapter.notebook,
                f"{chapter.slug!r} is the name, without its number, of another one",
            )
        slugs.add(chapter.slug)
    stems = [chapter.notebook for chapter in course.chapters]
    for index, chapter in enumerate(course.chapters):
        if chapter.part and chapter.part not in course.parts:
            yield f"chapter[{index}].part", f"{chapter.part!r} is none of the parts {course.parts}"
        for stem in {*chapter.prerequisites} - {*stems[:index]}:
            yield f"chapter[{index}].prerequisites", f"{stem!r} is no earlier chapter"
    parts = [course.parts.index(chapter.part) for chapter in course.chapters if chapter.part]
    if parts != sorted(parts):
        yield "chapter", "the chapters of a part stand together, in the order of the parts"
    for index, path in enumerate(course.paths):
        for key, mistake in _detours(path, stems, [c.notebook for c in course.appendices]):
            yield f"path[{index}].{key}", mistake


def _detours(
    path: LearningPath, stems: list[str], appendices: list[str]
) -> Iterator[tuple[str, str]]:
    """Key and mistake of a path whose stops are unknown, whose chapters are out of order, or whose goal is none."""
    chapters = [stop.chapter for stop in path.stops if stop.chapter not in appendices]
    for stem in {*chapters} - {*stems}:
        yield "chapters", f"no chapter is called {stem!r}"
    if sorted(chapters, key=stems.index) != chapters:
        yield "chapters", "they are not in the order of the course"
    if path.goal not in chapters:
        yield "goal", f"{path.goal!r} is no chapter of this path"


def _misplaced_files(course: Manifest) -> Iterator[tuple[str, str]]:
    for chapter in course.notebooks:
        for file in (chapter.source, chapter.ipynb):
            if not file.is_file():
                hint = f"; 'make notebooks CHAPTER={chapter.number}' makes notebooks"
                yield chapter.notebook, f"{file.relative_to(course.root)} is not on disk{hint}"
    listed = {file for c in course.whole.notebooks for file in (c.ipynb, c.source)}
    folder = course.root / "notebooks"
    for file in sorted([*folder.glob("*.ipynb"), *folder.glob("source/*.py")]):
        if file not in listed and file.name != START and not file.name.startswith("."):
            yield "chapter", f"none is {file.relative_to(course.root)}, which is on disk"
