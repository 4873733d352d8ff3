"""Paths of the course's files, atomic writing, file locks, and values that a file gives back as they were.

It imports neither PyTorch nor the rest of the course.
"""

import contextlib
import errno
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent

ROOT = PACKAGE / "_course" if (PACKAGE / "_course").is_dir() else PACKAGE.parent
"""The folder with `book.toml`, `notebooks/` and `data/`: the repository, or a folder in the installed package."""

LESSONS = PACKAGE / "lessons"

ABANDONED = 3600
"""Seconds after which a temporary file is taken for one that a killed process has left."""

NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
"""The error numbers of a file system without locks."""


def data_path(name: str) -> Path:
    """The path of a file or folder in data/.

    Args:
        name: its path inside data/, with slashes, such as "translation/grammar_fr.tsv".

    Raises:
        FileNotFoundError: it is missing; the message says how to restore it.
    """
    path = ROOT / "data" / name
    if not path.exists():
        git = f"restore it with: git checkout -- data/{name} (or " * (ROOT / ".git").exists()
        raise FileNotFoundError(
            f"data/{name} is missing from {ROOT}; {git}copy it from a fresh download of the course{')' * bool(git)}"
        )
    return path


def path_of(given: str | os.PathLike) -> Path:
    """The path that a reader gives: it may begin with ~, and stand in the quotes in which other programs copy it."""
    path = Path(given).expanduser()
    return path if path.exists() else Path(str(given).strip().strip("\"'")).expanduser()


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary path for the new content of a file, which replaces the file at the end of the block.

        with atomic_write(path) as part:
            part.write_text("…")

    After an exception, an interrupt or a full disk, `path` is unchanged and the temporary file is deleted. One that a
    killed process has left is deleted by a later call, after an hour.

    Args:
        path: the file to replace or to create, with its folder. A symbolic link stays one, and an existing file keeps
            its permissions.

    Raises:
        OSError: the file can't be written, or there is something else of that name, such as a folder or a device.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise FileExistsError(
            f"{path} is no file but a folder or a device; give the path of a file"
        )
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
    """A block that only one process at a time runs for a file, to read, change and write it.

    Args:
        path: the file to change. The lock is a hidden file beside it. On a drive without locks, such as some network
            drives, the block runs without one: better a rare lost change than none written.
        timeout: seconds to wait for another process; -1 waits without limit.

    Raises:
        OSError: the folder cannot be written, or the timeout is over.
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
    """The folder of the reader's progress and answers, which need not exist yet.

    It is `~/.attention-course`, or the folder in the environment variable COURSE_HOME, such as one on a drive that
    outlives a hosted notebook.

    Raises:
        RuntimeError: the home directory cannot be determined.
    """
    return Path(os.environ.get("COURSE_HOME") or "~/.attention-course").expanduser()


@contextlib.contextmanager
def private_write(path: str | os.PathLike) -> Iterator[Path]:
    """Like `atomic_write`, for a file in `home()`; only the user may read the file and its folders."""
    path = Path(path)
    for folder in reversed([parent for parent in path.parents if parent.is_relative_to(home())]):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with atomic_write(path) as part:
        part.chmod(0o600)
        yield part


def is_first_process() -> bool:
    """Whether this process prints and writes files: the first of those that `torchrun` started, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def plain(name: str, value: Any) -> Any:
    """The value as a file holds it and gives it back: numbers are Python's, arrays and tensors lists of them.

    Args:
        name: what the value is, for the message.
        value: None, a text, a number (Python's, NumPy's, a fraction), an array or a tensor, or lists, tuples and dicts
            of those; a tuple becomes a list.

    Raises:
        TypeError: there is something else in it; the message says where.
    """
    if hasattr(value, "tolist"):  # of NumPy and PyTorch, which take long to import
        with contextlib.suppress(RuntimeError, TypeError):  # as of a sparse tensor
            value = value.tolist()
    for kind in (bool, int, float, str):  # in this order, since True is an int
        if isinstance(value, kind):
            return kind(value)
    if value is None:
        return None
    if isinstance(value, Mapping):
        for key in value:
            if isinstance(key, tuple):
                raise TypeError(
                    f"a key of {name} is a tuple, {key!r}; a text or a number is needed"
                )
        return {
            plain(f"a key of {name}", key): plain(f"{name}[{key!r}]", value[key]) for key in value
        }
    if isinstance(value, list | tuple):
        return [plain(f"{name}[{index}]", part) for index, part in enumerate(value)]
    if isinstance(value, Real | Decimal):
        return float(value)
    raise TypeError(
        f"{name} is a {type(value).__name__}, which can't be saved and read back; a number or a text is needed"
    )
