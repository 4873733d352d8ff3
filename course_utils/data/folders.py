"""Photographs in one folder for each class, or in an archive of such folders, read into an `ImageSet`."""

import os
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from unicodedata import normalize

import torch

from course_utils.data.archives import DAMAGED
from course_utils.data.images import ImageSet, check_form, is_image, read_image
from course_utils.files import path_of

SKIPPED = ("thumbs.db", "desktop.ini", "__macosx")
"""Files and folders, in lower case, that operating systems add, besides those whose names begin with a dot."""

NAMED = 5
"""The number of files or classes that are named where there are many."""

PARTS = re.compile(
    "(?<![a-z])(?i:train(?:ing)?|test(?:ing)?|val(?:id(?:ation)?)?|dev|eval(?:uation)?|pred(?:iction)?)"
    "(?=[^a-z]|set|$)"
)
"""What parts of a data set are called, such as `train`, `seg_train` and `test1`."""


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
        sorted as words are, so that "10" comes before "2". Links are followed, and hidden files are left out. Printed
        is what could be meant otherwise: a folder without images, such as one of annotations, is no class; an image
        beside the folders is left out; a folder that every class has, such as `cat/images/`, is looked into; and
        there is one class only.

    Raises:
        FileNotFoundError: there is no such folder or archive.
        ValueError: the archive or an image can't be read, or no image of a class can be, a link leads nowhere, all
            images lie deeper than in their class's folder, or the folders are `train` and `test` and no classes. The
            message names the file or folder. Or `size` or `channels` is out of range.
    """
    check_form(size, channels)
    path = path_of(path)
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
        print(
            f"{path.name}: {len(broken)} of {len(files)} files can't be read as images and are left out: "
            f"{_listed(broken)}"
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
    files, classes, loose = [], set(), []
    for file in _walk(top, source.name):
        label, *rest = (normalize("NFC", part) for part in file.relative_to(top).parts)
        if file.is_dir():
            classes.add(label)
        elif rest:
            files.append((label, "/".join(rest), file))
        elif is_image(file):
            loose.append(label)
    files.sort()
    images = [each for each in files if is_image(each[2])]
    if not images:
        raise ValueError(
            f"{source / inside} holds no image in a folder of its class, such as cat/0001.jpg"
        )
    folders = {file.relative_to(top).parent.parts for _, _, file in images}
    if not _classes(folders):
        raise ValueError(
            _other_folders(folders, images[0][2].relative_to(top), inside, source.name)
        )
    labels = {label for label, _, _ in images}
    if loose:
        print(
            f"{source.name}: images beside the folders of the classes are left out: {_listed(loose)}"
        )
    _say_what_is_read(folders, sorted(classes - labels), inside, source.name)
    shared = _shared(folders)
    return [each for each in files if each[0] in labels and each[1].startswith(shared)]


def _say_what_is_read(
    folders: set[tuple[str, ...]], others: list[str], inside: str, source: str
) -> None:
    """Print what could be meant otherwise.

    Args:
        folders: those that hold images.
        others: names of folders of no class.
        inside: see `load_image_folder`.
        source: the name of the folder or archive.
    """
    if others:
        print(f"{source}: no file in {' or '.join(others)} is an image, so that is no class")
    if shared := _shared(folders):
        print(f"{source}: of each class, the folder {shared} is read")
    labels = {folder[0] for folder in folders}
    if len(labels) == 1:
        (label,) = labels
        deep = any(len(folder) > 1 for folder in folders)
        where = f"; if its folders are classes, inside={_joined(inside, label)!r} is needed" * deep
        print(f"{source}: there is one class, {label}{where}")


def _classes(folders: set[tuple[str, ...]]) -> set[str]:
    """The classes among the paths of folders that hold images; empty if the outermost folders are none."""
    in_a_class = any(len(folder) == 1 for folder in folders) or _shared(folders)
    return (
        {folder[0] for folder in folders if folder}
        if in_a_class and not _are_parts(folders)
        else set()
    )


def _are_parts(folders: set[tuple[str, ...]]) -> bool:
    """Whether the outermost folders are parts of a data set, such as `train` and `test`.

    They are if all are named so, if several differ in that word only, such as seg_train and seg_test, or if those of
    that name are the only ones with folders in them.
    """
    labels = {folder[0] for folder in folders if folder}
    deep = {folder[0] for folder in folders if len(folder) > 1}
    frames: dict[str, set[str]] = {}
    for label in labels:
        if part := PARTS.search(label):
            frames.setdefault(_frame(label), set()).add(part[0].lower())
    named = {label for label in labels if PARTS.search(label) and not _frame(label)}
    several = any(len(parts) > 1 for parts in frames.values())
    return labels <= named or several or (bool(deep) and deep <= named)


def _frame(label: str) -> str:
    """What is left of a name without its word for a part of a data set, numbers and marks: "seg" of "seg_train_2"."""
    return re.sub(r"[\W\d_]+", "", PARTS.sub("", label, count=1))


def _shared(folders: set[tuple[str, ...]]) -> str:
    """The folder that holds the images of every class, as in cat/images/0001.jpg, with a slash, or ""."""
    inner = {folder[1:] for folder in folders}
    several = len({folder[0] for folder in folders if folder}) > 1
    return "/".join((*inner.pop(), "")) if several and len(inner) == 1 else ""


def _readings(folders: set[tuple[str, ...]], *path: str) -> Iterator[tuple[str, set[str]]]:
    """Each folder that holds the folders of classes, with these, from the outermost on."""
    if classes := _classes(folders):
        yield "/".join(path), classes
        return
    for label in sorted({folder[0] for folder in folders if folder}):
        inner = {folder[1:] for folder in folders if folder and folder[0] == label}
        yield from _readings(inner - {()}, *path, label)


def _other_folders(folders: set[tuple[str, ...]], first: Path, inside: str, source: str) -> str:
    """The message about folders that are no classes: what was found, and where the classes are."""
    labels = sorted({folder[0] for folder in folders})
    if _are_parts(folders) and (len(labels) > 1 or (labels[0],) in folders):
        parts = _listed([label for label in labels if PARTS.search(label)])
        found = f"{_joined(source, inside)} holds {parts}, named like parts of a data set (rename what is a class)"
    else:
        deep = _joined(inside, first.as_posix())
        found = (
            f"all images in {source} lie deeper than in the folder of their class, such as {deep}"
        )
    readings = list(_readings(folders))
    if len(readings) > 1:  # a folder with one class is seldom meant
        readings = [(path, classes) for path, classes in readings if len(classes) > 1]
    if not readings:
        return f"{found}; put the images of each class into a folder of its own, such as train/cat/0001.jpg"
    readings.sort(key=lambda reading: (not re.search("(?i)train", reading[0]), -len(reading[1])))
    first_path, classes = readings[0]
    meant = " or ".join(f"inside={_joined(inside, path)!r}" for path, _ in readings[:NAMED])
    return f"{found}: is {meant} meant? {first_path} has the classes {_listed(sorted(classes))}."


def _joined(*paths: str) -> str:
    return PurePath(*paths).as_posix()


def _listed(names: list[str]) -> str:
    return ", ".join(names[:NAMED]) + ", …" * (len(names) > NAMED)


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
