"""A folder of images by class, as photographs are usually handed over: read into an `ImageSet`."""

import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from unicodedata import normalize

import torch
from torch import Tensor

from course_utils.data.archives import DAMAGED
from course_utils.data.images import ImageSet, read_image

LARGEST_FILE = 100_000_000
"""Bytes of one image's file that are read from an archive."""

SKIPPED = ("thumbs.db", "desktop.ini", "__macosx")
"""What systems leave in folders and archives, besides files whose names begin with a dot."""

ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".xz", ".bz2", ".7z", ".rar")

NAMED = 5
"""Of files that are left out, so many are named."""


class Entry(NamedTuple):
    """A file or a folder, in a folder or an archive.

    Attributes:
        name: its path in there, with slashes.
        read: gives a file's bytes, before the next entry is asked for; None for a folder.
        link: where it points, if it is a link that is not followed.
    """

    name: str
    read: Callable[[], bytes] | None
    link: str = ""


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
        Links in a folder are followed. Files whose names begin with a dot are left out, and folders without an
        image, which are printed.

    Raises:
        FileNotFoundError: there is nothing at this path.
        ValueError: it is no such folder or archive, holds no image by class, an image can't be read, or a link
            can't be followed; says which.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; a folder or an archive is needed")
    _check_depth(path, inside)
    images: dict[tuple[str, str, str], Tensor] = {}  # by class, path in its folder, and whole name
    broken: list[tuple[str, str]] = []
    folders = set()
    for entry in _files(path):
        label, file = _below(entry.name, inside)
        if label and entry.link:
            raise ValueError(
                f"{entry.name} in {path.name} is a link to {entry.link}, which can't be followed; "
                "put what it points at in its place"
            )
        if label and entry.read is None:
            folders.add(label)
        if not file or entry.read is None:
            continue
        try:
            image = read_image(entry.read(), size=size, channels=channels)
        except ValueError as error:
            if not skip_broken:
                reason = str(error).replace("the upload", "it")
                advice = "Remove it, or leave out all such files with skip_broken=True."
                raise ValueError(f"{entry.name} in {path.name}: {reason}. {advice}") from error
            broken.append((label, entry.name))
        else:
            images[label, file, entry.name] = image
    classes = sorted({label for label, _, _ in images})
    _report(path.name, broken, folders.difference(classes), len(images) + len(broken))
    if lost := {label for label, _ in broken}.difference(classes):
        raise ValueError(f"no file of {', '.join(sorted(lost))} in {path.name} can be read")
    order = sorted(images)
    labels = torch.tensor([classes.index(label) for label, _, _ in order])
    return ImageSet(torch.stack([images[key] for key in order]), labels, tuple(classes))


def _report(
    where: str, broken: Sequence[tuple[str, str]], empty: Iterable[str], total: int
) -> None:
    """Print what is left out: files, as (class, name), and folders without an image."""
    if broken:
        names = ", ".join([name for _, name in broken[:NAMED]] + ["…"] * (len(broken) > NAMED))
        print(
            f"{where}: {len(broken)} of {total} files can't be read as images and are left out: {names}"
        )
    for folder in sorted(empty):
        print(f"{where}: no image lies in {folder}, so that it is no class")


def _check_depth(path: Path, inside: str) -> None:
    """Refuse what holds no image by class; the first file that does decides.

    Raises:
        ValueError: all lie deeper, as `train/cat/0001.jpg` without `inside`, or there is none.
    """
    deeper, packed = None, None
    for entry in _files(path):
        _, file = _below(entry.name, inside)
        if entry.name.lower().endswith(ARCHIVES):
            packed = packed or entry.name
        elif file and entry.read:
            if "/" not in file:
                return
            deeper = deeper or PurePosixPath(entry.name)
    where = f"{path.name}/{inside}" if inside else path.name
    problem = f"{where} holds no image in a folder of its class, such as cat/0001.jpg"
    if deeper:
        problem += f"; {deeper} lies deeper: is inside={str(deeper.parent.parent)!r} meant?"
    elif packed:
        problem += f"; {packed} in it is an archive of its own: unpack it, and give its path"
    elif inside:
        problem += f"; is inside={inside!r} right?"
    raise ValueError(problem)


def _below(name: str, inside: str) -> tuple[str, str]:
    """The class of a name such as `train/cat/0001.jpg` below `inside`, and the path in the class's folder.

    The path is empty for the class's folder itself, and both are where the name lies elsewhere, or is hidden.
    """
    parts, first = (
        [part for part in PurePosixPath(normalize("NFC", text)).parts if part != "."]
        for text in (name, inside.replace("\\", "/"))
    )
    hidden = any(part.startswith(".") or part.lower() in SKIPPED for part in parts)
    if hidden or parts[: len(first)] != first or len(parts) <= len(first):
        return "", ""
    label, *rest = parts[len(first) :]
    return label, "/".join(rest)


def _files(path: Path) -> Iterator[Entry]:
    """What a folder or an archive holds."""
    if path.is_dir():
        yield from _in_folder(path, path, ())
        return
    try:
        if zipfile.is_zipfile(path):
            yield from _zipped(path)
        else:
            yield from _tarred(path)
    except (*DAMAGED, OSError) as error:
        raise ValueError(
            f"{path.name} is no folder, and no .tar or .zip that can be read"
        ) from error


def _in_folder(top: Path, folder: Path, above: Sequence[Path]) -> Iterator[Entry]:
    """In the order of names, through links; one that leads back to a folder above it is not followed."""
    above = (*above, folder.resolve())
    for path in sorted(folder.iterdir()):
        name = path.relative_to(top).as_posix()
        if path.is_dir() and path.resolve() not in above:
            yield Entry(name, None)
            yield from _in_folder(top, path, above)
        elif path.is_file():
            yield Entry(name, path.read_bytes)
        elif path.is_symlink():
            yield Entry(name, path.read_bytes, os.readlink(path))


def _zipped(path: Path) -> Iterator[Entry]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.replace("\\", "/")  # as some programs of Windows write it
            read = partial(_read, archive.open, entry, entry.file_size)
            link = stat.S_ISLNK(entry.external_attr >> 16)
            folder = name.endswith("/")
            yield Entry(
                name, None if folder else read, read().decode(errors="replace") if link else ""
            )


def _tarred(path: Path) -> Iterator[Entry]:
    with tarfile.open(path, "r|*") as archive:  # from front to back, once
        for entry in archive:
            read = partial(_read, archive.extractfile, entry, entry.size)
            if entry.isdir():
                yield Entry(entry.name, None)
            elif entry.isfile() or entry.issym() or entry.islnk():
                yield Entry(entry.name, read, entry.linkname)


def _read(opened: Callable[..., Any], entry: Any, size: int) -> bytes:
    if size > LARGEST_FILE:
        raise ValueError(f"it has {size:,} bytes; an image of at most {LARGEST_FILE:,} is read")
    try:
        with opened(entry) as stream:
            return stream.read()
    except (*DAMAGED, OSError) as error:
        raise ValueError("the archive is damaged there") from error
    except (RuntimeError, NotImplementedError) as error:  # encrypted, or packed in a rare way
        raise ValueError(f"it can't be unpacked here ({error})") from error
