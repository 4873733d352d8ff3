"""Reading one file of a .zip, wheel or .tar.gz archive without unpacking the rest."""

import lzma
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError)
"""The exceptions of reading a damaged archive."""


def read_member(archive: Path, *members: str) -> bytes:
    """The bytes of one file inside a .zip or .tar.gz archive; nothing is written to disk.

    Args:
        members: paths that the file may have in the archive, with slashes; the first that exists is read.

    Raises:
        ValueError: the archive is damaged, or a path in it is absolute or contains `..`.
        KeyError: no member has such a path; the message lists the first ten.
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


def copy_member(archive: Path, member: str, path: Path) -> None:
    """Copy one file of a .zip archive, such as a wheel, to `path`, in pieces of 1 MiB.

    Raises:
        ValueError, KeyError: see `read_member`.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            name = _member(archive, file.namelist(), (member,))
            with file.open(name) as packed, path.open("wb") as copy:
                shutil.copyfileobj(packed, copy, 1 << 20)
    except DAMAGED as error:
        raise ValueError(f"{archive.name} is damaged: {error}") from error


def _member(archive: Path, names: list[str], wanted: tuple[str, ...]) -> str:
    """The first of the wanted paths that is in the archive, as it is spelled there, if no path leaves its folder."""
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
