"""``make homework SEED=7``: exercises with other numbers for each student, whose solutions stay with the instructor.

Into a folder, by default _build/homework, it writes

    students/<student>/02_kernel_regression_homework.ipynb    the tasks, with stubs and examples: to be handed out
    instructor/solutions/<student>/…                          the same, solved
    instructor/homework.json                                  what `make grade HOMEWORK=…/instructor` reads
"""

import argparse
import csv
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.files import ROOT, atomic_write
from course_utils.studio import StudioError, manifest
from course_utils.studio.manifest import Chapter
from course_utils.studio.pairs import bare, write

if TYPE_CHECKING:
    from nbformat import NotebookNode

KEY = "homework.json"
EVERYBODY = "everybody"
HEADS = {"name", "student", "students", "user", "username", "login", "email"}
GIVEN = {"first name", "firstname", "given name", "vorname"}
FAMILY = {"last name", "lastname", "surname", "family name", "nachname"}
INTRO = """# Homework: {title}

Homework `{code}` of **{student}**. The numbers are yours: another student has other ones.
Write each function in the place of its dots, run its cell, then the cell below it, which tries a few calls.
More calls than these are graded."""
SETUP = "import math\n\nimport torch\n\nfrom course_utils.kit.homework import examples"


class HomeworkError(StudioError):
    """Homework that cannot be made or read: why, and what to do."""


@dataclass(frozen=True)
class Key:
    """What the instructor's folder knows.

    Attributes:
        seed: of the class.
        students: as the list names them.
        notebooks: stem → its exercises, "kernel_regression/pooled".
    """

    seed: int
    students: tuple[str, ...]
    notebooks: dict[str, tuple[str, ...]]

    def code(self, student: str) -> str:
        """What stands in a student's notebooks, and tells whose numbers they have."""
        return hashlib.sha256(f"{self.seed} {student}".encode()).hexdigest()[:8]

    def owner(self, name: str, text: str = "") -> str | None:
        """The student of the list whose numbers a submission has to have; None if nobody is found.

        Args:
            name: whose it is, as the learning platform says.
            text: of the notebook, for where the platform spells names otherwise.
        """
        known = {_plain(student): student for student in self.students}
        if _plain(name) in known:
            return known[_plain(name)]
        if self.students == (EVERYBODY,):
            return EVERYBODY
        return self.maker(text)

    def maker(self, text: str) -> str | None:
        """The student for whom a notebook with this text was made; None if its code is nobody's."""
        return next((one for one in self.students if f"`{self.code(one)}`" in text), None)


def read_key(folder: Path) -> Key:
    """The key of an instructor's folder.

    Raises:
        HomeworkError: there is none that can be read.
    """
    try:
        told = json.loads((folder / KEY).read_text(encoding="utf-8"))
        notebooks = {stem: tuple(names) for stem, names in told["notebooks"].items()}
        return Key(int(told["seed"]), tuple(told["students"]), notebooks)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HomeworkError(
            f"{folder} has no {KEY} that can be read ({error}); name the folder `instructor` that make homework wrote."
        ) from error


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


# Making it --------------------------------------------------------------------------------------


def students_in(file: Path | None) -> tuple[str, ...]:
    """The names in a list: one a line, the first column of a table, or its columns of first and last names.

    Raises:
        HomeworkError: it cannot be read, is empty, or has a name twice or one that can be no folder.
    """
    if file is None:
        return (EVERYBODY,)
    try:
        names = _names(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeError, csv.Error) as error:
        raise HomeworkError(f"{file} cannot be read as a list of students: {error}") from error
    if not names:
        raise HomeworkError(f"{file} names no student: write one name a line.")
    for name in names:
        if re.search(r'[\\/:*?"<>|\x00-\x1f]', name) or name.startswith("."):
            raise HomeworkError(f"{file}: {name!r} can be no folder's name.")
        if [_plain(one) for one in names].count(_plain(name)) > 1:
            raise HomeworkError(f"{file}: {name!r} stands there twice; add a number or a login.")
    return tuple(names)


def _names(text: str) -> list[str]:
    top = text.partition("\n")[0]
    delimiter = ";" if top.count(";") > top.count(",") else ","
    rows = [row for row in csv.reader(text.splitlines(), delimiter=delimiter) if any(row)]
    heads = [cell.strip().casefold() for cell in rows[0]] if rows else []
    parts = [n for kind in (GIVEN, FAMILY) for n, cell in enumerate(heads) if cell in kind]
    begun = bool(parts or HEADS.intersection(heads[:1]))
    columns = parts or [0]
    names = (" ".join(row[n].strip() for n in columns if n < len(row)) for row in rows[begun:])
    return [name.strip() for name in names if name.strip()]


def make(chapters: Sequence[Chapter], seed: int, students: tuple[str, ...], to: Path) -> Key:
    """Write the homework of these chapters; that of the same seed which is there already is kept or added to.

    Raises:
        HomeworkError: no chapter has homework, or the folder holds homework of another seed.
    """
    from course_utils.kit.homework import assignment, exercises

    found = {f"{one.notebook}_homework": (one, tuple(exercises(one.slug))) for one in chapters}
    found = {stem: entry for stem, entry in found.items() if entry[1]}
    if not found:
        having = ", ".join(sorted({name.partition("/")[0] for name in exercises()}))
        raise HomeworkError(f"None of these chapters has homework; these have: {having}.")
    key = _joined(Key(seed, students, {stem: names for stem, (_, names) in found.items()}), to)
    for stem, (chapter, names) in found.items():
        for student in students:
            asked = [assignment(name, seed, student) for name in names]
            for folder, solved in (("students", False), ("instructor/solutions", True)):
                path = to / folder / student / f"{stem}.ipynb"
                path.parent.mkdir(parents=True, exist_ok=True)
                write(_notebook(chapter, key, student, asked, solved), path)
    with atomic_write(to / "instructor" / KEY) as part:
        part.write_text(json.dumps(asdict(key), indent=1, ensure_ascii=False), encoding="utf-8")
    return key


def _joined(key: Key, to: Path) -> Key:
    """The key together with what the folder has already."""
    if not (to / "instructor" / KEY).is_file():
        if to.exists() and any(to.iterdir()):
            raise HomeworkError(f"{to} holds something else; name a new folder with --to.")
        return key
    old = read_key(to / "instructor")
    if old.seed != key.seed:
        raise HomeworkError(
            f"{to} holds the homework of seed {old.seed}; name another folder with --to, or give that seed."
        )
    students = tuple(dict.fromkeys((*old.students, *key.students)))
    return Key(key.seed, students, old.notebooks | key.notebooks)


def _notebook(
    chapter: Chapter, key: Key, student: str, asked: list, solved: bool
) -> "NotebookNode":
    from nbformat.v4 import new_notebook

    intro = INTRO.format(title=chapter.title, code=key.code(student), student=student)
    return bare(new_notebook(cells=list(_cells(intro, asked, solved))))


def _cells(intro: str, asked: list, solved: bool) -> Iterator["NotebookNode"]:
    from nbformat.v4 import new_code_cell, new_markdown_cell

    yield new_markdown_cell(intro)
    yield new_code_cell(SETUP)
    for number, one in enumerate(asked, 1):
        head = f"### Exercise {number} · {one.title}\n\n*build · {one.minutes} minutes*"
        yield new_markdown_cell(f"{head}\n\n{one.text}")
        answer = one.solution.strip() if solved else one.stub
        yield new_code_cell(answer, metadata={"tags": ["exercise", "build"]})
        yield new_code_cell(one.examples)


# The command ------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Write homework; 0 if all went well, 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio homework",
        description="Exercises with other numbers for each student; solutions stay with the instructor.",
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    parser.add_argument("--seed", type=int, required=True, help="a number of the class, not told")
    parser.add_argument("--students", type=Path, metavar="FILE", help="one name a line, or a CSV")
    parser.add_argument("--to", type=Path, metavar="DIR", help="default: _build/homework")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    try:
        course = manifest.load(options.book, files=False)
        to = options.to or options.book.resolve().parent / "_build" / "homework"
        names = students_in(options.students)
        key = make(course.chosen(options.chapters), options.seed, names, to)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    count = sum(len(one) for one in key.notebooks.values())
    print(f"{count} exercises for {len(names)} of {len(key.students)} students, to hand out:")
    print(f"{to / 'students'}\n{to / 'instructor'} stays with you.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
