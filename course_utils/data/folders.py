"""A folder of images by class, as photographs are usually handed over: read into an `ImageSet`."""

import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from unicodedata import normalize

import torch
from torch import Tensor

from course_utils.data.images import ImageSet, read_image

LARGEST_FILE = 100_000_000
"""Bytes of one image's file that are read from an archive."""

DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, OSError)
"""What reading a broken archive raises."""

SKIPPED = ("thumbs.db", "desktop.ini")

ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".xz", ".bz2", ".7z", ".rar")

NAMED = 5
"""Of files that are left out, so many are named."""


class Entry(NamedTuple):
    """A file of a folder or an archive.

    Attributes:
        name: its path in there, with slashes.
        read: gives its bytes; to be called before the next entry is asked for.
        link: where it points, if it is a link that is not followed.
    """

    name: str
    read: Callable[[], bytes]
    link: str = ""


class Place(NamedTuple):
    """Where an image lies, below the folder of the classes: its class, and its path in there."""

    label: str
    file: str


def load_image_folder(
    path: str | Path,
    size: int = 32,
    *,
    inside: str = "",
    channels: int = 3,
    skip_broken: bool = False,
) -> ImageSet:
    """Images that lie in one folder for each class, `cat/0001.jpg`, from a folder or an archive of it.

    Args:
        path: the folder, or a .tar (compressed or not) or .zip, which is read without being unpacked.
        size: height and width of the result; each image is cut to a square in its middle and resized.
        inside: a folder within it where the classes lie, such as "train".
        channels: 3 for color, 1 for gray.
        skip_broken: True leaves out files that cannot be read as images, and prints how many and which.

    Returns:
        The images in the order of their names; the classes, which are the folders' names, in alphabetical
        order. An image in a folder of its class's folder, `cat/summer/0001.jpg`, belongs to the class, too.
        Links in a folder are followed. Files whose names begin with a dot are left out.

    Raises:
        FileNotFoundError: there is nothing at this path.
        ValueError: it is no such folder or archive, holds no image by class, an image can't be read, or a link
            can't be followed; says which.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; a folder or an archive is needed")
    _check_depth(path, inside)
    found: dict[tuple[Place, str], Tensor] = {}
    broken: list[tuple[Place, str]] = []
    for entry in _files(path):
        place = _below(entry.name, inside)
        if place is None:
            continue
        if entry.link:
            raise ValueError(
                f"{entry.name} in {path.name} is a link to {entry.link}, which can't be followed; "
                "put what it points at in its place"
            )
        if not place.file:
            continue
        try:
            found[place, entry.name] = read_image(entry.read(), size=size, channels=channels)
        except ValueError as error:
            if not skip_broken:
                reason = str(error).replace("the upload", "it")
                advice = "Remove it, or leave out all such files with skip_broken=True."
                raise ValueError(f"{entry.name} in {path.name}: {reason}. {advice}") from error
            broken.append((place, entry.name))
    if broken:
        _say_left_out(path, broken, len(found) + len(broken))
    if lost := {place.label for place, _ in broken} - {place.label for place, _ in found}:
        raise ValueError(f"no file of {', '.join(sorted(lost))} in {path.name} can be read")
    return _as_set(found)


def _as_set(found: dict[tuple[Place, str], Tensor]) -> ImageSet:
    classes = tuple(sorted({place.label for place, _ in found}))
    order = sorted(found)
    labels = torch.tensor([classes.index(place.label) for place, _ in order])
    return ImageSet(torch.stack([found[key] for key in order]), labels, classes)


def _say_left_out(path: Path, broken: Sequence[tuple[Place, str]], total: int) -> None:
    named = [name for _, name in broken[:NAMED]] + ["…"] * (len(broken) > NAMED)
    print(
        f"{path.name}: {len(broken)} of {total} files can't be read as images and are left out: {', '.join(named)}"
    )


def _check_depth(path: Path, inside: str) -> None:
    """Refuse what holds no image by class; the first file that does decides.

    Raises:
        ValueError: all lie deeper, as `train/cat/0001.jpg` without `inside`, or there is none.
    """
    deeper, packed = None, None
    for entry in _files(path):
        place = _below(entry.name, inside)
        if entry.name.lower().endswith(ARCHIVES):
            packed = packed or entry.name
        elif place and place.file:
            if "/" not in place.file:
                return
            deeper = deeper or PurePosixPath(entry.name)
    where = f"{path.name}/{inside}" if inside else path.name
    said = f"{where} holds no image in a folder of its class, such as cat/0001.jpg"
    if deeper:
        said += f"; {deeper} lies deeper: is inside={str(deeper.parent.parent)!r} meant?"
    elif packed:
        said += f"; {packed} in it is an archive of its own: unpack it, and give its path"
    elif inside:
        said += f"; is inside={inside!r} right?"
    raise ValueError(said)


def _below(name: str, inside: str) -> Place | None:
    """Where a name such as `train/cat/0001.jpg` lies below `inside`; None if it lies elsewhere, or is hidden.

    The file is empty where the name is that of a class's folder.
    """
    parts, first = (
        [part for part in PurePosixPath(normalize("NFC", one)).parts if part != "."]
        for one in (name, inside.replace("\\", "/"))
    )
    hidden = any(part.startswith(".") for part in parts) or parts[-1].lower() in SKIPPED
    if hidden or parts[: len(first)] != first or len(parts) <= len(first):
        return None
    label, *rest = parts[len(first) :]
    return Place(label, "/".join(rest))


def _files(path: Path) -> Iterator[Entry]:
    """The files of a folder or an archive."""
    if path.is_dir():
        yield from _in_folder(path, path, ())
        return
    try:
        if zipfile.is_zipfile(path):
            yield from _zipped(path)
        else:
            yield from _tarred(path)
    except DAMAGED as error:
        raise ValueError(
            f"{path.name} is no folder, and no .tar or .zip that can be read"
        ) from error


def _in_folder(top: Path, folder: Path, above: Sequence[Path]) -> Iterator[Entry]:
    """In the order of names, through links; one that leads back to a folder above it is not followed."""
    above = (*above, folder.resolve())
    for one in sorted(folder.iterdir()):
        name = one.relative_to(top).as_posix()
        if one.is_dir() and one.resolve() not in above:
            yield from _in_folder(top, one, above)
        elif one.is_file():
            yield Entry(name, one.read_bytes)
        elif one.is_symlink():
            yield Entry(name, one.read_bytes, os.readlink(one))


def _zipped(path: Path) -> Iterator[Entry]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.replace("\\", "/")  # as some programs of Windows write it
            if name.endswith("/"):
                continue
            read = partial(_read, archive.open, entry, entry.file_size)
            link = stat.S_ISLNK(entry.external_attr >> 16)
            yield Entry(name, read, read().decode(errors="replace") if link else "")


def _tarred(path: Path) -> Iterator[Entry]:
    with tarfile.open(path, "r|*") as archive:  # from front to back, once
        for entry in archive:
            if entry.isfile() or entry.issym() or entry.islnk():
                read = partial(_read, archive.extractfile, entry, entry.size)
                yield Entry(entry.name, read, entry.linkname)


def _read(opened: Callable[..., Any], entry: Any, size: int) -> bytes:
    if size > LARGEST_FILE:
        raise ValueError(f"it has {size:,} bytes; an image of at most {LARGEST_FILE:,} is read")
    try:
        with opened(entry) as stream:
            return stream.read()
    except DAMAGED as error:
        raise ValueError("the archive is damaged there") from error
    except (RuntimeError, NotImplementedError) as error:  # encrypted, or packed in a rare way
        raise ValueError(f"it can't be unpacked here ({error})") from error
