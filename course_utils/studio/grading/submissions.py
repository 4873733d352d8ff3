"""A folder of submissions: whose they are, which notebooks lie in them, and what stands in these.

    ana.ipynb                                                   a notebook for each student
    ana/…/02_kernel_regression.ipynb, ana.zip                   a folder or an archive for each
    Ana Pérez_1234567_assignsubmission_file_/02_….ipynb         as Moodle downloads them
    perezana_LATE_12345_678901_02_kernel_regression-2.ipynb     as Canvas does

Nothing of a submission is run here, and links are not followed.
"""

import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from course_utils.studio import StudioError

LARGEST = 20 * 2**20
"""Bytes of a notebook."""
MOST = 400  # notebooks of one archive
MOST_BYTES = 5 * LARGEST  # of all of these
SIZES = f"a notebook may have {LARGEST // 2**20} MB, all of an archive {MOST_BYTES // 2**20}"

_MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_[a-z]+(_(?P<file>.*))?")
_CANVAS = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)_\d+_(?P<file>.+)")


class SubmissionsError(StudioError):
    """There is nothing to grade."""


@dataclass(frozen=True)
class File:
    """A notebook as it was handed in.

    Attributes:
        name: with the folders inside the submission.
        when: the time of the file, or of its entry in an archive.
        content: its bytes; None where they are too many.
        wrong: why there is nothing to read; empty if there is.
    """

    name: str
    when: datetime
    content: bytes | None = None
    wrong: str = ""

    @property
    def order(self) -> tuple:
        """What is later is greater: by time, then by the numbers in the name."""
        parts = re.split(r"(\d+)", self.name)
        return self.when, [
            (int(part[:99]), "") if part.isdecimal() else (0, part) for part in parts
        ]


@dataclass
class Submission:
    """What one student has handed in.

    Attributes:
        student: the name.
        number: what the server calls the student; empty in a folder of one's own.
        late: whether the server says so.
        files: all notebooks.
    """

    student: str
    number: str = ""
    late: bool = False
    files: list[File] = field(default_factory=list)


@dataclass(frozen=True)
class Notebook:
    """What stands in a notebook: kind and text of each cell."""

    cells: tuple[tuple[str, str], ...]

    @property
    def code(self) -> list[str]:
        """The sources of the code cells."""
        return [source for kind, source in self.cells if kind == "code"]

    def binds(self, name: str) -> list[str]:
        """The code cells that bind a name at the beginning of a line."""
        found = re.compile(rf"^(?:def|class) {name}\b|^{name}\b[^=\n]*=(?!=)", re.MULTILINE)
        return [source for source in self.code if found.search(source)]


# Whose they are ---------------------------------------------------------------------------------


def whose(name: str, known: Iterable[str] = ()) -> tuple[str, str, bool]:
    """The student's name, the server's number, and whether it was late, by the name of a file or folder.

    Args:
        name: without the ending of a notebook or an archive.
        known: names of the course's notebooks, which are no part of a student's.
    """
    if found := _MOODLE.fullmatch(name):
        return found["name"].strip(), found["id"], False
    if found := _CANVAS.fullmatch(name):
        return found["name"].strip(), found["id"], bool(found["late"])
    for one in known:
        if name != one:
            name = name.replace(one, "").strip(" _-.") or name
    return name, "", False


def collect(folder: Path, known: Sequence[str] = ()) -> tuple[list[Submission], list[str]]:
    """All submissions of a folder by the students' names, and the names of what else lies there.

    Raises:
        SubmissionsError: there is no such folder, or no submission in it.
    """
    if not folder.is_dir():
        raise SubmissionsError(f"There is no folder {folder}: name the one with the submissions.")
    found: dict[tuple[str, str], Submission] = {}
    others = []
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or path.name.startswith((".", "__MACOSX")):
            continue
        ending = path.suffix.lower() if path.is_file() else ""
        if path.is_file() and ending not in (".ipynb", ".zip"):
            others.append(shown(path.name))
            continue
        stem = path.name if path.is_dir() else path.name[: -len(path.suffix)]
        student, number, late = whose(shown(stem), known)
        one = found.setdefault((student, number), Submission(student, number))
        one.late |= late
        one.files += _files(path)
    if not found:
        raise SubmissionsError(
            f"{folder} holds no submission: a notebook for each student is expected, or a folder or an archive."
        )
    names = [student for student, _ in found]
    for (student, number), one in found.items():
        if names.count(student) > 1 and number:
            one.student = f"{student} ({number})"
    return sorted(found.values(), key=lambda one: one.student.casefold()), others


def shown(text: str) -> str:
    """A name or a reason in one line that any file and any terminal takes."""
    text = "".join(one if one.isprintable() else " " for one in text)
    return " ".join(text.split())


def _files(path: Path) -> list[File]:
    if path.is_dir():
        inside = (one for one in sorted(path.rglob("*")) if _is_plain(one.relative_to(path)))
        files = [one for one in inside if one.is_file() and not one.is_symlink()]
        return [file for one in files for file in _one(one, str(one.relative_to(path)))]
    return list(_one(path, path.name))


def _is_plain(path: Path | PurePosixPath) -> bool:
    """Whether a path is no server's copy and no hidden file."""
    return not any(part.startswith((".", "__MACOSX")) for part in path.parts)


def _one(path: Path, name: str) -> Iterator[File]:
    status = path.stat()
    when = datetime.fromtimestamp(status.st_mtime)
    name = shown(name)
    if path.suffix.lower() == ".ipynb":
        if status.st_size > LARGEST:
            yield File(name, when, wrong=f"{name} is too large: {SIZES}")
        else:
            yield File(name, when, path.read_bytes())
    elif path.suffix.lower() == ".zip":
        try:
            yield from _unzipped(path)
        except Exception:  # of each kind of compression its own
            yield File(name, when, wrong=f"{name} is no archive that can be read")


def _unzipped(path: Path) -> Iterator[File]:
    """The notebooks of an archive; nothing is written."""
    with zipfile.ZipFile(path) as archive:
        entries = [
            one
            for one in archive.infolist()
            if one.filename.lower().endswith(".ipynb") and _is_plain(PurePosixPath(one.filename))
        ]
        left = MOST_BYTES
        for entry in entries[:MOST]:
            with archive.open(entry) as file:
                content = file.read(min(LARGEST, left) + 1)
            large = len(content) > min(LARGEST, left)
            left -= min(len(content), left)
            name = shown(entry.filename)
            wrong = f"{name} is too large: {SIZES}" if large else ""
            when = datetime(*entry.date_time)
            yield File(name, when, None if large else content, wrong)


# What stands in them ----------------------------------------------------------------------------


def read(file: File) -> Notebook:
    """The cells of a notebook.

    Raises:
        ValueError: it is none; the text says why.
    """
    if file.content is None:
        raise ValueError(file.wrong)
    try:
        cells = json.loads(file.content)["cells"]
        return Notebook(tuple(_cell(cell) for cell in cells))
    except Exception as error:  # whatever was handed in instead
        raise ValueError(f"{file.name} is no notebook that can be read") from error


def _cell(cell: Any) -> tuple[str, str]:
    source = cell["source"]
    text = source if isinstance(source, str) else "".join(map(str, source))
    return str(cell["cell_type"]), text
