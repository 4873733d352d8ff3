"""The exercises of the course, as its notebooks have them: what is graded, by which check, for how many points."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType, ModuleType

from course_utils.kit import homework
from course_utils.kit.check import Check, Unmet
from course_utils.kit.collection import checks
from course_utils.studio import StudioError
from course_utils.studio.grading.submissions import Notebook
from course_utils.studio.homework import EVERYBODY, Key
from course_utils.studio.manifest import Chapter
from course_utils.studio.page import Page
from course_utils.studio.pairs import read as read_notebook
from course_utils.studio.pairs import read_source

SHORT = 40  # characters; such texts stand in several notebooks


class PointsError(StudioError):
    """A file of points that names what is no exercise, or gives no number."""


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        notebook: the stem of the notebook in which it stands.
        title: "Exercise 1 · All points at once".
        kind: build, bug, predict or open.
        check: the name of its check; empty for an open one.
        function: what the check is called with.
    """

    notebook: str
    title: str
    kind: str
    check: str = ""
    function: str = ""

    @property
    def name(self) -> str:
        """How marks.csv calls it."""
        return self.check or self.title.partition(" · ")[0]

    def judge(self) -> Check:
        """Its check."""
        return getattr(checks, self.check)

    def compared(self) -> frozenset[str]:
        """Functions of the course that its check uses: who calls one may have wrapped what was asked for."""
        module = sys.modules[self.judge().properties[0].test.__module__]
        things = [one for one in vars(module).values() if _is_course(one)]
        inner = [vars(one).values() for one in things if isinstance(one, ModuleType)]
        functions = [*things, *(f for all_of in inner for f in all_of if _is_course(f))]
        return frozenset(one.__qualname__ for one in functions if isinstance(one, FunctionType))


def _is_course(thing: object) -> bool:
    """Whether it is a module or a function of the library or of a lesson, and not of the checks themselves."""
    name = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", "")
    ours = str(name).startswith("course_utils.")
    return ours and not name.endswith(".checks") and ".kit." not in name


@dataclass(frozen=True)
class Homework(Exercise):
    """An exercise with one student's numbers.

    Attributes:
        place: "kernel_regression/pooled".
        seed: of the class.
        student: whose numbers; None if nobody on the list is known by the submission's name.
    """

    place: str = ""
    seed: int = 0
    student: str | None = None

    def judge(self) -> Check:
        """The check with these numbers."""
        if self.student is not None:
            return homework.check(self.place, self.seed, self.student)
        nobody = Check(self.check)
        for _ in homework.check(self.place, self.seed, "").properties:  # as many as anybody's
            nobody.must("whose homework it is, is known", hint="Is this name on the list?")(
                _unknown
            )
        return nobody


def _unknown(candidate: object) -> None:
    raise Unmet("no homework was made for a student of this name")


@dataclass(frozen=True)
class Sheet:
    """The exercises of one notebook; the texts of its cells, which are not a student's; and its code, with solutions.

    The `note` is for whoever reads the marks of one student.
    """

    notebook: str
    title: str
    exercises: tuple[Exercise, ...]
    texts: frozenset[str]
    code: tuple[str, ...] = ()
    note: str = ""

    def of(self, student: str, submitted: Notebook | None) -> "Sheet":
        """The sheet with one student's exercises: those of all, unless it is homework."""
        return self

    def likeness(self, submitted: Notebook) -> int:
        """How much a submitted notebook has of it: names of exercises that it binds count ten, longer texts one."""
        texts = {text.strip() for kind, text in submitted.cells if kind == "markdown"}
        bound = sum(bool(submitted.binds(one.function)) for one in self.exercises if one.check)
        return 10 * bound + sum(len(text) > SHORT for text in texts & self.texts)


@dataclass(frozen=True)
class HomeworkSheet(Sheet):
    """A notebook of homework, whose numbers are each student's own."""

    key: Key | None = None

    def of(self, student: str, submitted: Notebook | None) -> Sheet:
        """With the numbers of the student of this name, or else of the one for whom the notebook was made."""
        text = "\n".join(source for _, source in submitted.cells) if submitted else ""
        owner = self.key.owner(student, text) if self.key else None
        own = tuple(replace(one, student=owner) for one in self.exercises)  # type: ignore[call-arg]
        maker = self.key.maker(text) if self.key else None
        note = "" if owner in (None, EVERYBODY, student) else f"with the numbers of {owner}"
        if maker not in (None, owner):
            note = f"the notebook was made for {maker}"
        return replace(self, exercises=own, note=note)


def homework_sheets(key: Key) -> list[Sheet]:
    """The notebooks of homework that an instructor's folder knows."""
    found: list[Sheet] = []
    for stem, places in key.notebooks.items():
        one = [(place, homework.assignment(place, key.seed, key.students[0])) for place in places]
        exercises = tuple(
            Homework(stem, f"Exercise {n} · {a.title}", "build", a.name, a.name, place, key.seed)
            for n, (place, a) in enumerate(one, 1)
        )
        found.append(HomeworkSheet(stem, stem, exercises, frozenset(), key=key))
    return found


def sheets(chapters: Sequence[Chapter]) -> list[Sheet]:
    """Those notebooks that have exercises."""
    found = [_sheet(chapter) for chapter in chapters]
    return [sheet for sheet in found if sheet.exercises]


def _sheet(chapter: Chapter) -> Sheet:
    source = chapter.source.is_file()
    page = Page(read_source(chapter.source) if source else read_notebook(chapter.ipynb))
    exercises = tuple(_exercises(chapter.notebook, page))
    texts = frozenset(cell.source.strip() for cell in page.notebook.cells)
    code = tuple(cell.source for cell in page.code)
    return Sheet(chapter.notebook, chapter.title, exercises, texts, code)


def _exercises(stem: str, page: Page) -> Iterator[Exercise]:
    """In their order; a check belongs to the heading before it."""
    for one in page.exercises:
        own = [cell for cell in page.code if cell.exercise is one]
        asked = [_called(cell.source) for cell in own if "check" in cell.tags]
        for name, function in asked or [("", "")]:
            yield Exercise(stem, one.title, one.kind, name, function)


def _called(source: str) -> tuple[str, str]:
    """("name", "function") for `cu.checks.name(function)`."""
    match ast.parse(source).body[-1]:
        case ast.Expr(ast.Call(ast.Attribute(_, name), [ast.Name(function)])):
            return name, function
    raise StudioError(f"{source!r} is no cell of a check: cu.checks.<name>(<function>)")


def written(exercise: Exercise, sheet: Sheet, submitted: Notebook) -> str:
    """What a student has written about an open exercise: below its heading, and not the course's."""
    found, inside = [], False
    for kind, text in submitted.cells:
        heading = re.search(r"^#{1,3} .*$", text, re.MULTILINE) if kind == "markdown" else None
        here = kind == "markdown" and exercise.title in text
        if here or inside:
            if text.strip() not in sheet.texts:
                found.append(_own_lines(text, sheet) if here or kind == "markdown" else text)
            inside = here or heading is None
    return "\n\n".join(part for part in found if part.strip()).strip()


def _own_lines(text: str, sheet: Sheet) -> str:
    known = {line.strip() for one in sheet.texts for line in one.splitlines()}
    return "\n".join(line for line in text.splitlines() if line.strip() not in known).strip()


def points(file: Path | None, found: Sequence[Exercise]) -> dict[str, float]:
    """How many points each check's exercise gives: 1, or what a file says under [points].

    Raises:
        PointsError: the file cannot be read, names no exercise, or gives no number.
    """
    worth = {one.check: 1.0 for one in found if one.check}
    if file is None:
        return worth
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))["points"]
        given = {str(name): float(value) for name, value in table.items()}
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise PointsError(
            f'{file}: a table is expected, such as "[points]", and below it "my_mask = 2" ({error}).'
        ) from error
    if unknown := sorted(given.keys() - worth.keys()):
        raise PointsError(
            f"{file}: no exercise is called {', '.join(unknown)}; there are {', '.join(worth)}."
        )
    return worth | given
