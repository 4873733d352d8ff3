"""A folder that a command writes, and writes anew later: its own files are replaced, and all others stay."""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from course_utils.studio import StudioError
from course_utils.studio.notebook_files import UnreadableError, is_edited, read_notebook

RECORD = ".written.json"
"""The file that says which of the folder's files the command has written, with their digests."""


def check(to: Path) -> dict[str, str]:
    """The files that the command wrote into a folder earlier, with their digests; none if it is new or empty.

    Raises:
        StudioError: the folder holds something else, or somebody has worked in one of these files.
    """
    record = to / RECORD
    if not record.is_file():
        if to.exists() and (not to.is_dir() or any(path.name != ".git" for path in to.iterdir())):
            raise StudioError(
                f"{to} holds something else, or what an earlier release has written: name a new folder with --to, or "
                "empty it."
            )
        return {}
    files = json.loads(record.read_text(encoding="utf-8"))
    if edited := [name for name, digest in files.items() if _is_edited(to / name, digest)]:
        raise StudioError(
            f"Somebody has worked in {to}: {_listed(edited)}. Move that folder away, or name another with --to."
        )
    return files


def replace(new: Path, to: Path) -> list[str]:
    """Put the files of a folder in the place of those that the command wrote earlier.

    Args:
        new: the folder with the new files, which are moved.
        to: where they belong.

    Returns:
        Files and folders in `to` that the command hasn't written. They are as they were.

    Raises:
        StudioError: as `check`, or one of the new files would replace another; then nothing is changed.
    """
    former = check(to)
    names = sorted(p.relative_to(new).as_posix() for p in new.rglob("*") if p.is_file())
    if theirs := [name for name in names if name not in former and (to / name).exists()]:
        raise StudioError(
            f"{to} has files of yours whose names are needed: {_listed(theirs)}. Give them other names, or "
            "name another folder with --to."
        )
    digests = {name: _digest(new / name) for name in names}
    try:
        for name in names:
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(new / name, to / name)
        for name in former.keys() - set(names):
            _delete(to / name, to)
        text = json.dumps(digests, indent=0, ensure_ascii=False) + "\n"
        (to / RECORD).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StudioError(
            f"{to} can't be written ({error.strerror}): name another folder with --to."
        ) from error
    folders = {str(folder.as_posix()) for name in names for folder in Path(name).parents}
    return list(_others(to, to, {*names, RECORD}, folders))


def _digest(file: Path) -> str:
    data = file.read_bytes().replace(b"\r\n", b"\n")  # git may have changed the ends of lines
    return hashlib.sha256(data).hexdigest()


def _is_edited(file: Path, digest: str) -> bool:
    if not file.is_file():
        return file.exists()
    if _digest(file) == digest:
        return False
    if file.suffix == ".ipynb":
        with contextlib.suppress(UnreadableError):
            return is_edited(read_notebook(file))  # merely run, it isn't
    return True


def _delete(file: Path, to: Path) -> None:
    file.unlink(missing_ok=True)
    for folder in file.relative_to(to).parents:
        shutil.rmtree(to / folder / "__pycache__", ignore_errors=True)
        if folder == Path() or any((to / folder).iterdir()):
            return
        (to / folder).rmdir()


def _others(
    folder: Path, to: Path, files: Collection[str], folders: Collection[str]
) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        name = path.relative_to(to).as_posix()
        if name in folders and path.is_dir():
            yield from _others(path, to, files, folders)
        elif name not in files and path.name != "__pycache__":
            yield name


def _listed(names: list[str]) -> str:
    return ", ".join(sorted(names)[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def left(names: list[str]) -> str:
    """A sentence about what `replace` has left in its place; empty if there is nothing."""
    return f"Left as it was, because no handout wrote it: {_listed(names)}" if names else ""
