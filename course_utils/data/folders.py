"""A folder of images by class, as photographs are usually handed over: read into an `ImageSet`."""

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

from course_utils.data.images import ImageSet, read_image

LARGEST_FILE = 100_000_000
"""Bytes of one image's file that are read from an archive."""

DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, OSError)
"""What reading a broken archive raises."""

SKIPPED = ("thumbs.db", "desktop.ini")


def load_image_folder(
    path: str | Path, size: int = 32, *, inside: str = "", channels: int = 3
) -> ImageSet:
    """Images that lie in one folder for each class, `cat/0001.jpg`, from a folder or an archive of it.

    Args:
        path: the folder, or a .tar (compressed or not) or .zip, which is read without being unpacked.
        size: height and width of the result; each image is cut to a square in its middle and resized.
        inside: a folder within it where the classes lie, such as "train".
        channels: 3 for color, 1 for gray.

    Returns:
        The images in the order of their names; the classes, which are the folders' names, in alphabetical
        order. Files whose names begin with a dot are left out.

    Raises:
        FileNotFoundError: there is nothing at this path.
        ValueError: it is no such folder or archive, holds no image by class, or an image can't be read;
            says which.
    """
    path, found = Path(path), {}
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; a folder or an archive is needed")
    for name, read in _files(path):
        place = _below(name, inside)
        if place is None:
            continue
        try:
            found[place] = read_image(read(), size=size, channels=channels)
        except ValueError as error:
            reason = str(error).replace("the upload", "it")
            raise ValueError(f"{name} in {path.name}: {reason}") from error
    if not found:
        where = f"{path.name}/{inside}" if inside else path.name
        raise ValueError(
            f"{where} holds no image in a folder of its class, such as cat/0001.jpg"
            + (f"; is inside={inside!r} right?" if inside else "")
        )
    return _as_set(found)


def _as_set(found: dict[tuple[str, str], Tensor]) -> ImageSet:
    classes = tuple(sorted({label for label, _ in found}))
    order = sorted(found)
    labels = torch.tensor([classes.index(label) for label, _ in order])
    return ImageSet(torch.stack([found[place] for place in order]), labels, classes)


def _below(name: str, inside: str) -> tuple[str, str] | None:
    """Class and file of a name such as `train/cat/0001.jpg`; None if it is no image by class."""
    parts = tuple(part for part in PurePosixPath(name).parts if part != ".")
    first = tuple(part for part in PurePosixPath(inside).parts if part != ".")
    hidden = any(part.startswith(".") for part in parts) or parts[-1].lower() in SKIPPED
    if hidden or parts[: len(first)] != first or len(parts) != len(first) + 2:
        return None
    return parts[-2], parts[-1]


def _files(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Name of each file, with slashes, and what reads it, before the next name is asked for."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield file.relative_to(path).as_posix(), file.read_bytes
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


def _zipped(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                yield entry.filename, partial(_read, archive.open, entry, entry.file_size)


def _tarred(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with tarfile.open(path, "r|*") as archive:  # from front to back, once
        for entry in archive:
            if entry.isfile():
                yield entry.name, partial(_read, archive.extractfile, entry, entry.size)


def _read(opened: Callable[..., Any], entry: Any, size: int) -> bytes:
    if size > LARGEST_FILE:
        raise ValueError(f"it has {size:,} bytes; an image of at most {LARGEST_FILE:,} is read")
    try:
        with opened(entry) as stream:
            return stream.read()
    except DAMAGED as error:
        raise ValueError("the archive is damaged there") from error
