"""Large data sets: find them on this machine, or download and verify them, whole or not at all.

`data/registry.toml` lists each set with its address, the SHA-256 of the releases that the course was
tested with, license and source. A download gets its name only when it is right, so an interrupt, a
full disk or a second process never leaves half a file behind.

`COURSE_CACHE` moves the folder, `COURSE_OFFLINE=1` forbids the network. Taught in *Bahdanau attention:
learning to align*.
"""

import functools
import hashlib
import os
import sys
import tarfile
import tomllib
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from course_utils.files import atomic_write, data_path
from course_utils.runtime import in_notebook

DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error)
"""What reading a broken archive raises."""


class DataUnavailable(FileNotFoundError):
    """A data set is not in the cache and can't be downloaded; the message says what to do."""


@dataclass(frozen=True)
class DataSet:
    """One entry of the registry.

    Attributes:
        name: its key in registry.toml.
        file: its path in the cache.
        url: where it is published (HTTPS).
        sha256: of each release that the course was tested with, the newest first.
        megabytes: size of the download.
        licence, source: under what terms, and who made it.
        moving: its publisher replaces this .zip archive in place; a whole newer one is taken, too.
    """

    name: str
    file: str
    url: str
    sha256: tuple[str, ...]
    megabytes: float
    licence: str
    source: str
    moving: bool = False


def cache_folder() -> Path:
    """Where large data lives: `COURSE_CACHE`, or the user's cache folder."""
    import pooch

    return Path(os.environ.get("COURSE_CACHE") or pooch.os_cache("attention-course")).expanduser()


def registered(path: Path | None = None) -> dict[str, DataSet]:
    """All entries of registry.toml, by name."""
    entries = tomllib.loads((path or data_path("registry.toml")).read_text(encoding="utf-8"))
    return {
        name: DataSet(name=name, **entry | {"sha256": tuple(entry["sha256"])})
        for name, entry in entries.items()
    }


def fetch(name: str, *, registry: Path | None = None) -> Path:
    """The verified file of a data set: from the cache, or downloaded into it.

    A damaged file in the cache is downloaded again. Of a moving set, one line on stderr announces a
    release that the course was not tested with.

    Raises:
        KeyError: no entry has this name.
        DataUnavailable: the file is not in the cache and can't be downloaded, arrives damaged, or
            the cache can't be written. The message names file, address, SHA-256 and folder.
    """
    registry = registry or data_path("registry.toml")
    entries = registered(registry)
    if name not in entries:
        raise KeyError(
            f"{name!r} is not in {registry.name}; there are {', '.join(sorted(entries))}"
        )
    entry, path = entries[name], cache_folder() / entries[name].file
    problem = _problem(entry, path) if path.is_file() else "is missing"
    if problem and os.environ.get("COURSE_OFFLINE") == "1":
        reason = f"{path.name} {problem}, and COURSE_OFFLINE=1 forbids the download"
        raise DataUnavailable(_advice(entry, path, reason))
    if problem:
        _download(entry, path)
    return path


def _problem(entry: DataSet, path: Path) -> str:
    """What is wrong with a file; nothing, if it is a release that may be used."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 in entry.sha256:
        return ""
    if not entry.moving:
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
    """Refuse to be led from HTTPS to plain HTTP, where anybody may answer."""
    if url.startswith("https:") and not response.url.startswith("https:"):
        raise OSError(f"it leads to {response.url}, which is not HTTPS")


def _advice(entry: DataSet, path: Path, reason: str) -> str:
    hashes = " or ".join([*entry.sha256, *["any newer release"] * entry.moving])
    return (
        f"{entry.name}: {reason}.\n"
        f"  file:    {path.name} (about {entry.megabytes:g} MB)\n"
        f"  from:    {entry.url}\n"
        f"  SHA-256: {hashes}\n"
        f"  By hand: download it in a browser and put it at {path}"
    )


# Archives ---------------------------------------------------------------------------------------


def read_member(archive: Path, *members: str) -> bytes:
    """The bytes of one file inside a .zip or .tar.gz archive; nothing is written to disk.

    Args:
        members: names that the file may have, with slashes; the first that is there is read.

    Raises:
        ValueError: the archive holds a member that would leave its folder (`../`, absolute), or is
            damaged.
        KeyError: no member has such a name; lists those that are there.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as file:
                return file.read(_member(archive, file.namelist(), members))
        with tarfile.open(archive) as file:
            names = [info.name for info in file if info.isfile()]
            member = file.extractfile(_member(archive, names, members))
            assert member is not None, "the names are those of regular files"
            return member.read()
    except DAMAGED as error:
        raise ValueError(f"{archive.name} is damaged: {error}") from error


def _member(archive: Path, names: list[str], wanted: tuple[str, ...]) -> str:
    """The first of the wanted names that is there, as it is written in an archive that is harmless."""
    written = {name.replace("\\", "/"): name for name in names}  # some programs of Windows write \
    for name in written:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or ":" in name.partition("/")[0]:
            raise ValueError(
                f"{archive.name} holds {name!r}, which would leave its folder; refused"
            )
    for name in wanted:
        if name in written:
            return written[name]
    files = [name for name in written if not name.endswith("/")]
    sought = " or ".join(map(repr, wanted))
    raise KeyError(f"{archive.name} holds no {sought}; it holds {', '.join(files[:10])}")
