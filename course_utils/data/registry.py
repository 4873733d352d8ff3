"""Large data sets: find them on this machine, or download and verify them, whole or not at all.

`data/registry.toml` lists each set with its address, the SHA-256 of the releases that the course was
tested with, license and source. Downloads go to a temporary name and are renamed only when what has
arrived is right, so an interrupt, a full disk or a second process never leaves half a file behind.

A publisher may replace an archive in place. The entry then says `moving = true`, and a release that
the course does not know is inspected, announced and remembered: its SHA-256 is written beside it when
it is first used, and compared from then on. Everything else has to be a release that the course knows.

`COURSE_CACHE` moves the folder, `COURSE_OFFLINE=1` forbids the network. Taught in *Bahdanau attention:
learning to align*.
"""

import contextlib
import functools
import hashlib
import io
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

PLAUSIBLE = 4
"""An unknown release may be so many times smaller or larger than its entry says; no more is downloaded."""

UNPACKED = 50
"""And a member so many times larger than that: what is larger is no text, but a trap."""


class DataUnavailable(FileNotFoundError):
    """A data set is not in the cache and can't be downloaded; the message says what to do."""


@dataclass(frozen=True)
class DataSet:
    """One entry of the registry.

    Attributes:
        name: its key in registry.toml.
        file: its path in the cache.
        url: where it is published (HTTPS).
        sha256: of each release that the course was tested with, the newest first; none, if there
            was none to test with.
        megabytes: size of the download; of a moving set about.
        licence, source: under what terms, and who made it.
        moving: the publisher replaces the file in place with newer releases; it is a .zip of
            tab-separated text.
        members: names that this text has in the archive, in one release or another.
    """

    name: str
    file: str
    url: str
    sha256: tuple[str, ...]
    megabytes: float
    licence: str
    source: str
    moving: bool = False
    members: tuple[str, ...] = ()


def cache_folder() -> Path:
    """Where large data lives: `COURSE_CACHE`, or the user's cache folder."""
    import pooch

    return Path(os.environ.get("COURSE_CACHE") or pooch.os_cache("attention-course")).expanduser()


def registered(path: Path | None = None) -> dict[str, DataSet]:
    """All entries of registry.toml, by name."""
    path = path or data_path("registry.toml")
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    for entry in entries.values():
        entry |= {key: tuple(entry[key]) for key in ("sha256", "members") if key in entry}
    return {name: DataSet(name=name, **entry) for name, entry in entries.items()}


def fetch(name: str, *, registry: Path | None = None) -> Path:
    """The verified file of a data set: from the cache, or downloaded into it.

    A file in the cache that is not right is downloaded again. Of a moving set, one line on stderr
    announces a release that the course was not tested with, when it is first used.

    Raises:
        KeyError: no entry has this name.
        DataUnavailable: the file is not in the cache and can't be downloaded, arrives damaged, or
            the cache can't be written; a moving set was changed after its first use. The message
            names file, address, SHA-256 and folder.
    """
    registry = registry or data_path("registry.toml")
    entries = registered(registry)
    if name not in entries:
        raise KeyError(
            f"{name!r} is not in {registry.name}; there are {', '.join(sorted(entries))}"
        )
    entry, path = entries[name], cache_folder() / entries[name].file
    problem = ""
    if path.is_file():
        problem = _problem(entry, path)
        if not problem:
            return path
    if os.environ.get("COURSE_OFFLINE") == "1":
        reason = "COURSE_OFFLINE=1 forbids the download"
        found = f"the file that is there {problem}, and " if problem else ""
        raise DataUnavailable(_advice(entry, path, found + reason))
    _download(entry, path)
    return path


# Which release is it ----------------------------------------------------------------------------


def _problem(entry: DataSet, path: Path) -> str:
    """What is wrong with the file in the cache; nothing, if it may be used.

    An unknown release of a moving set is accepted at its first use, and remembered.

    Raises:
        DataUnavailable: it was accepted once, and has changed since.
    """
    found = _sha256(path)
    if found in entry.sha256:
        return ""
    if not entry.moving:
        return f"has another SHA-256 ({found})"
    remembered = _remembered(path)
    if remembered == found:
        return ""
    if remembered:
        reason = (
            f"{path.name} has changed since it was first used: its SHA-256 was {remembered} and is "
            f"{found}. To fetch it again, delete it; to use it as it is, delete {_record(path).name}"
        )
        raise DataUnavailable(_advice(entry, path, reason))
    problem = _damage(entry, path)
    if not problem:
        _remember(entry, path, found)
    return problem


def _damage(entry: DataSet, path: Path) -> str:
    """Why an unknown release can't be one; nothing, if it looks like one."""
    size = path.stat().st_size / 1e6
    if not entry.megabytes / PLAUSIBLE <= size <= entry.megabytes * PLAUSIBLE:
        return f"has {size:.3g} MB instead of about {entry.megabytes:g}"
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            member = _member(path, names, entry.members)
            if archive.getinfo(member).file_size > UNPACKED * PLAUSIBLE * entry.megabytes * 1e6:
                return f"holds a {member} of {archive.getinfo(member).file_size / 1e6:.0f} MB"
            if spoiled := archive.testzip():
                return f"is damaged: {spoiled} differs from its checksum"
            lines = archive.read(member).decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return f"holds a {member} that is not UTF-8 text"
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        return f"is no whole .zip archive: {error}"
    except (KeyError, ValueError) as error:
        return f"is another archive: {error.args[0]}"
    for number, line in enumerate(lines, start=1):
        if line.strip() and "\t" not in line:
            return f"holds a {member} whose line {number} is no tab-separated pair"
    return "" if any("\t" in line for line in lines) else f"holds an empty {member}"


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _remembered(path: Path) -> str:
    """The SHA-256 of the release first used, if there is one."""
    try:
        words = _record(path).read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        return ""
    return words[0] if words and len(words[0]) == 64 else ""


def _remember(entry: DataSet, path: Path, sha256: str) -> None:
    """Announce a new release, and write its SHA-256 down, as sha256sum does.

    Where nothing can be written, it is announced each time.
    """
    with zipfile.ZipFile(path) as archive:
        member = _member(path, archive.namelist(), entry.members)
        date = "{:04}-{:02}-{:02}".format(*archive.getinfo(member).date_time[:3])
    print(
        f"{path.name}: a release that the course was not tested with, of {date}, SHA-256 {sha256}; "
        "it is whole, and from now on compared with this.",
        file=sys.stderr,
    )
    with contextlib.suppress(OSError), atomic_write(_record(path)) as part:
        part.write_text(f"{sha256}  {path.name}\n", encoding="ascii")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Downloads --------------------------------------------------------------------------------------


def _download(entry: DataSet, path: Path) -> None:
    import pooch

    headers = {"User-Agent": "Mozilla/5.0 (attention-course)"}  # some hosts turn plain scripts away
    each = {"response": functools.partial(_stay_on_https, entry.url)}  # also each redirection
    watched = sys.stderr.isatty() or in_notebook()
    # `pooch.retrieve` would give its name to a release that is still to be inspected.
    download = pooch.HTTPDownloader(progressbar=watched, timeout=30, headers=headers, hooks=each)
    try:
        with atomic_write(path) as part:
            with _Bounded(part, entry.megabytes) as file:
                download(entry.url, file, None)
            known = _inspect(entry, part, path)
        if not known:
            _remember(entry, path, _sha256(path))
    except ValueError as error:  # it arrived, and is not right
        raise DataUnavailable(_advice(entry, path, str(error))) from error
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        raise DataUnavailable(
            _advice(entry, path, f"the cache can't be written: {error}")
        ) from error
    except OSError as error:  # also every error of the network
        raise DataUnavailable(_advice(entry, path, f"the download failed: {error}")) from error


class _Bounded(io.BufferedWriter):
    """A new file of about so many megabytes: it does not take many times as much."""

    def __init__(self, path: Path, megabytes: float):
        super().__init__(io.FileIO(path, "w"))
        self.megabytes = megabytes

    def write(self, chunk: Any) -> int:
        """Append a chunk.

        Raises:
            ValueError: the file grows too long.
        """
        limit = PLAUSIBLE * self.megabytes
        if self.tell() + len(chunk) > limit * 1e6:
            raise ValueError(
                f"what arrived has more than {limit:.3g} MB instead of about {self.megabytes:g}"
            )
        return super().write(chunk)


def _inspect(entry: DataSet, arrived: Path, path: Path) -> bool:
    """Whether what has arrived is a release that the course knows.

    Raises:
        ValueError: it is none, and can't be a newer one.
    """
    found = _sha256(arrived)
    if found in entry.sha256:
        return True
    problem = _damage(entry, arrived) if entry.moving else f"has another SHA-256 ({found})"
    if problem:
        raise ValueError(f"what arrived {problem}")
    return False


def _stay_on_https(url: str, response: Any, **_: Any) -> None:
    """Refuse to be led from HTTPS to plain HTTP, where anybody may answer."""
    if url.startswith("https:") and not response.url.startswith("https:"):
        raise OSError(f"it leads to {response.url}, which is not HTTPS")


def _advice(entry: DataSet, path: Path, reason: str) -> str:
    hashes = " or ".join([*entry.sha256, *["any newer release"] * entry.moving])
    about = "about " if entry.moving else ""
    return (
        f"{entry.name}: {reason}.\n"
        f"  file:    {path.name} ({about}{entry.megabytes:g} MB)\n"
        f"  from:    {entry.url}\n"
        f"  SHA-256: {hashes}\n"
        f"  By hand: download it in a browser and put it at {path}"
    )


# Archives ---------------------------------------------------------------------------------------


def read_member(archive: Path, *members: str) -> bytes:
    """The bytes of one file inside a .zip or .tar.gz archive; nothing is written to disk.

    Args:
        members: names that the file may have; the first that is there is read.

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
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise ValueError(f"{archive.name} is damaged: {error}") from error


def _member(archive: Path, names: list[str], wanted: tuple[str, ...]) -> str:
    """The first of the wanted names that is there, in an archive that is harmless."""
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
            raise ValueError(
                f"{archive.name} holds {name!r}, which would leave its folder; refused"
            )
    for name in wanted:
        if name in names:
            return name
    files = [name for name in names if not name.endswith("/")]
    sought = " or ".join(map(repr, wanted))
    raise KeyError(f"{archive.name} holds no {sought}; it holds {', '.join(files[:10])}")
