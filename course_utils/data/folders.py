"""Photographs in one folder for each class, or in an archive of such folders, read into an `ImageSet`."""

import os
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unicodedata import normalize

import torch

from course_utils.data.archives import DAMAGED
from course_utils.data.images import ImageSet, is_image, read_image

SKIPPED = ("thumbs.db", "desktop.ini", "__macosx")
"""Files and folders, in lower case, that operating systems add, besides those whose names begin with a dot."""

NAMED = 5
"""The number of unreadable files that are named when they are left out."""


def load_image_folder(
    path: str | Path,
    size: int = 32,
    *,
    inside: str = "",
    channels: int = 3,
    skip_broken: bool = False,
) -> ImageSet:
    """The images of a folder that has a folder for each class, such as `cat/0001.jpg` or `cat/summer/0001.jpg`.

    Args:
        path: the folder, or a .zip or .tar of it (compressed or not), which is unpacked to a temporary folder.
        size: height and width of the result in pixels; each image is cut to a square in its middle and resized.
        inside: the folder in `path` that holds the folders of the classes, such as "train".
        channels: 3 for color, 1 for gray.
        skip_broken: True leaves out files that cannot be read as images, and prints which.

    Returns:
        The images, (n, channels, size, size), sorted by class and file name; the classes are the folders' names,
        sorted as words are, so that "10" comes before "2". A folder in which no file is an image, such as one of
        annotations, is no class; its name is printed. Links are followed, and hidden files are left out.

    Raises:
        FileNotFoundError: there is no such folder or archive.
        ValueError: the archive or an image can't be read, or no image of a class can be, a link leads nowhere, or
            all images lie deeper than in their class's folder. The message names the file or folder.
    """
    path = Path(path)
    with _unpacked(path) as folder:
        files = _files_by_class(folder, inside, path)
        images, broken = [], []
        for label, name, file in files:
            try:
                images.append((label, name, read_image(file, size=size, channels=channels)))
            except ValueError as error:
                broken.append(f"{label}/{name}")
                if not skip_broken:
                    raise ValueError(
                        f"{broken[0]} in {path.name}: {error}. Remove it, or leave out all such files with "
                        "skip_broken=True."
                    ) from error
    if broken:
        names = ", ".join(broken[:NAMED]) + ", …" * (len(broken) > NAMED)
        print(
            f"{path.name}: {len(broken)} of {len(files)} files can't be read as images and are left out: {names}"
        )
    classes = sorted({label for label, _, _ in files})
    if lost := set(classes).difference(label for label, _, _ in images):
        raise ValueError(
            f"no file of {', '.join(sorted(lost))} in {path.name} can be read, so this class would be lost; put an "
            "image there, or remove the folder"
        )
    labels = torch.tensor([classes.index(label) for label, _, _ in images])
    return ImageSet(torch.stack([image for _, _, image in images]), labels, tuple(classes))


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """A folder as it is, or a temporary one with the files of an archive, none of them outside it."""
    if not path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        try:  # not shutil.unpack_archive, which leaves out some files of a .zip without a word
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    archive.extractall(folder)  # drops ".." and the root from names
            else:
                with tarfile.open(path) as archive:
                    archive.extractall(folder, filter="data")  # refuses both
        except (*DAMAGED, OSError, RuntimeError) as error:
            raise ValueError(f"{path.name} is no .zip or .tar that can be read: {error}") from error
        yield Path(folder)


def _files_by_class(folder: Path, inside: str, source: Path) -> list[tuple[str, str, Path]]:
    """(class, name in the class's folder, file), sorted, of folders with an image; messages call `folder` `source`.

    Raises:
        FileNotFoundError, ValueError: see `load_image_folder`.
    """
    top = folder / inside
    if not top.is_dir():
        raise FileNotFoundError(
            f"{source / inside} does not exist; a folder or an archive is needed"
        )
    files, classes = [], set()
    for file in _walk(top, source.name):
        label, *rest = (normalize("NFC", part) for part in file.relative_to(top).parts)
        if file.is_dir():
            classes.add(label)
        elif rest:
            files.append((label, "/".join(rest), file))
    files.sort()
    images = [each for each in files if is_image(each[2])]
    if not images:
        raise ValueError(
            f"{source / inside} holds no image in a folder of its class, such as cat/0001.jpg"
        )
    if all("/" in name for _, name, _ in images):
        deep = images[0][2].relative_to(folder)
        raise ValueError(
            f"all images in {source.name} lie deeper than in the folder of their class, such as {deep.as_posix()}: "
            f"is inside={deep.parent.parent.as_posix()!r} meant?"
        )
    labels = {label for label, _, _ in images}
    if others := sorted(classes - labels):
        print(f"{source.name}: no file in {' or '.join(others)} is an image, so that is no class")
    return [each for each in files if each[0] in labels]


def _walk(top: Path, source: str) -> Iterator[Path]:
    """Every folder and file under `top` that is not hidden, through links.

    Raises:
        ValueError: a link leads nowhere, or back to a folder above it.
    """
    for folder, subfolders, names in os.walk(top, followlinks=True):
        subfolders[:] = [name for name in subfolders if not _is_hidden(name)]
        for name in [*subfolders, *(name for name in names if not _is_hidden(name))]:
            path = Path(folder, name)
            circular = path.is_symlink() and path.parent.resolve().is_relative_to(path.resolve())
            if circular or not path.exists():
                raise ValueError(
                    f"{path.relative_to(top).as_posix()} in {source} is a link to {os.readlink(path)}, which can't "
                    "be followed; put what it points at in its place"
                )
            yield path


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.lower() in SKIPPED
