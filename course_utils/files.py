"""The course's files: where they are, and how one is written whole or not at all. Nothing here waits for PyTorch."""

import contextlib
import errno
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent

ROOT = PACKAGE / "_course" if (PACKAGE / "_course").is_dir() else PACKAGE.parent
"""The folder that holds `book.toml`, `notebooks/` and `data/`: the repository's, or inside the package of a wheel."""

LESSONS = PACKAGE / "lessons"

ABANDONED = 3600
"""Seconds after which an unfinished file belongs to no process any more."""

NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
"""The errors of a file system that has no locks."""


def data_path(name: str) -> Path:
    """Where a file or folder of data/ is: "translation/grammar_fr.tsv", for instance.

    Args:
        name: its path inside data/, with forward slashes.

    Raises:
        FileNotFoundError: it is missing; the message names it and says how to restore it.
    """
    path = ROOT / "data" / name
    if not path.exists():
        raise FileNotFoundError(
            f"data/{name} is missing from {ROOT}; restore it with: git checkout -- data/{name} "
            "(or copy it from a fresh download of the course)"
        )
    return path


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[Path]:
    """Write a file whole or not at all.

        with atomic_write(path) as part:
            part.write_text("…")

    The block writes a new file beside `path`, which takes its name when the block is done. After an
    exception, an interrupt or a full disk, `path` is what it was and the new file is gone. What a
    killed process left behind goes at the next writing, an hour later at the earliest.

    Args:
        path: the file to replace or to make, in a folder that is made if need be; a symbolic link
            stays one. A new file gets the usual permissions, an old one keeps its own.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    for part in path.parent.iterdir():
        if part.name.startswith(f".{path.name}.") and part.suffix == ".part":
            with contextlib.suppress(OSError):
                if time.time() - part.stat().st_mtime > ABANDONED:
                    part.unlink()
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    part.touch(exist_ok=False)
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: str | os.PathLike, timeout: float = -1) -> Iterator[None]:
    """No two processes are in such a block of the same file at a time: read it, change it, write it.

    Args:
        path: the file that is to be changed. The lock is a hidden file beside it. On a drive without locks, as
            some network drives are, the block runs all the same: better a rare lost change than none written.
        timeout: seconds to wait for another process; without end by default.

    Raises:
        OSError: the folder cannot be written, or the time is over.
    """
    from filelock import FileLock  # slow to import

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=timeout)
    try:
        lock.acquire()
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
    try:
        yield
    finally:
        lock.release()


def home() -> Path:
    """The reader's own folder: what has passed, and answers that were checked. It need not exist yet.

    `.attention-course` in the reader's home, or what the variable COURSE_HOME names, such as a folder of a drive
    that outlives a hosted notebook; a `~` at its beginning is the reader's home.

    Raises:
        RuntimeError: the system knows no home.
    """
    return Path(os.environ.get("COURSE_HOME") or "~/.attention-course").expanduser()


@contextlib.contextmanager
def private_write(path: str | os.PathLike) -> Iterator[Path]:
    """As `atomic_write`, for a file in the reader's own folder: nobody else may read file and folders."""
    path = Path(path)
    for folder in reversed([parent for parent in path.parents if parent.is_relative_to(home())]):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with atomic_write(path) as part:
        part.chmod(0o600)
        yield part


def is_first_process() -> bool:
    """Whether this process prints and writes files: the first of those that `torchrun` started, or the only one."""
    return os.environ.get("RANK", "0") == "0"
