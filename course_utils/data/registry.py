"""Large data sets: find them on this machine, or download and verify them, whole or not at all.

`data/registry.toml` lists each set with its address, SHA-256, size, licence and source. Downloads go
through pooch to a temporary name and are renamed only when the hash is right, so an interrupt, a full
disk or a second process never leaves half a file behind. `COURSE_CACHE` moves the folder,
`COURSE_OFFLINE=1` forbids the network. Below: `translation`, `images`. Taught in chapter 04.
"""

import hashlib
import os
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from course_utils.runtime import ROOT

REGISTRY = ROOT / "data" / "registry.toml"


class DataUnavailable(FileNotFoundError):
    """A data set is neither here nor to be had; the message says which, whence and what to do."""


@dataclass(frozen=True)
class DataSet:
    """One entry of the registry.

    Attributes:
        name: its key in registry.toml.
        file: name of the file in the cache.
        url: where it is published (HTTPS).
        sha256: of the file; further accepted releases stand in `also`.
        megabytes: size of the download.
        licence, source: who made it and under what terms.
    """

    name: str
    file: str
    url: str
    sha256: str
    megabytes: float
    licence: str
    source: str
    also: tuple[str, ...] = ()


def cache_folder() -> Path:
    """Where large data lives: `COURSE_CACHE`, or the user's cache folder."""
    import pooch

    return Path(os.environ.get("COURSE_CACHE") or pooch.os_cache("attention-course")).expanduser()


def registered(path: Path = REGISTRY) -> dict[str, DataSet]:
    """All entries of registry.toml, by name."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: DataSet(name=name, **{**entry, "also": tuple(entry.get("also", ()))})
        for name, entry in entries.items()
    }


def fetch(name: str, *, registry: Path = REGISTRY) -> Path:
    """The verified file of a data set: from the cache, or downloaded into it.

    Raises:
        KeyError: no entry has this name.
        DataUnavailable: the file is not in the cache and can't be downloaded, arrives damaged, or
            the cache can't be written; the message names file, address, SHA-256 and folder.
    """
    entries = registered(registry)
    if name not in entries:
        raise KeyError(
            f"{name!r} is not in {registry.name}; there are {', '.join(sorted(entries))}"
        )
    entry, folder = entries[name], cache_folder()
    path = folder / entry.file
    if path.is_file() and _sha256(path) in (entry.sha256, *entry.also):
        return path
    if os.environ.get("COURSE_OFFLINE") == "1":
        raise DataUnavailable(_advice(entry, folder, "COURSE_OFFLINE=1 forbids the download"))
    _download(entry, folder)
    return path


def _download(entry: DataSet, folder: Path) -> None:
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    bar = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=30)
    try:
        pooch.retrieve(
            entry.url, f"sha256:{entry.sha256}", fname=entry.file, path=folder, downloader=bar
        )
    except PermissionError as error:
        raise DataUnavailable(
            _advice(entry, folder, f"the cache can't be written: {error}")
        ) from error
    except ValueError as error:  # pooch: the hash differs, nothing was kept
        raise DataUnavailable(_advice(entry, folder, "what arrived has another SHA-256")) from error
    except OSError as error:  # also every error of the network
        raise DataUnavailable(_advice(entry, folder, f"the download failed: {error}")) from error
    finally:
        logger.setLevel(level)


def _advice(entry: DataSet, folder: Path, reason: str) -> str:
    return (
        f"{entry.name}: {reason}.\n"
        f"  file:    {entry.file} ({entry.megabytes:g} MB)\n"
        f"  from:    {entry.url}\n"
        f"  SHA-256: {entry.sha256}\n"
        f"  By hand: download it in a browser and put it at {folder / entry.file}"
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Archives ---------------------------------------------------------------------------------------


def read_member(archive: Path, member: str) -> bytes:
    """The bytes of one file inside a .zip or .tar.gz archive; nothing is written to disk.

    Raises:
        ValueError: the archive holds a member that would leave its folder (`../`, absolute), or is
            damaged.
        KeyError: no member has this name; lists those that are there.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as file:
                names = file.namelist()
                _check_members(archive, names, member)
                return file.read(member)
        with tarfile.open(archive) as file:
            names = [info.name for info in file if info.isfile()]
            _check_members(archive, names, member)
            return file.extractfile(member).read()
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise ValueError(f"{archive.name} is damaged: {error}") from error


def _check_members(archive: Path, names: list[str], wanted: str) -> None:
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
            raise ValueError(
                f"{archive.name} holds {name!r}, which would leave its folder; refused"
            )
    if wanted not in names:
        files = [name for name in names if not name.endswith("/")]
        raise KeyError(f"{archive.name} holds no {wanted!r}; it holds {', '.join(files[:10])}")
