"""One file out of a .zip, a wheel or a .tar.gz, read or copied to a path of ours; nothing is unpacked by its name."""

import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error)
"""What reading a broken archive raises."""


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


def copy_member(archive: Path, member: str, path: Path) -> None:
    """Copy one file out of a .zip archive, such as a wheel, to `path`; never whole in memory.

    Raises:
        ValueError, KeyError: as `read_member`.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            name = _member(archive, file.namelist(), (member,))
            with file.open(name) as packed, path.open("wb") as copy:
                shutil.copyfileobj(packed, copy, 1 << 20)
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
