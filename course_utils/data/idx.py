"""Files in MNIST's format IDX: finding them by the names that they have in different places, and reading them."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from course_utils.files import path_of

NAMED = 10
"""The number of files that are named when the one that is needed is missing."""


def find_idx(folder: str | Path, name: str) -> Path:
    """The file of a name such as "t10k-images-idx3-ubyte" in a folder, or one level deeper.

    The name may end in .gz, be spelled `t10k-images.idx3-ubyte`, as on Kaggle, or begin with that of a set and have
    "test" for "t10k", as in EMNIST's `emnist-letters-test-images-idx3-ubyte`. The plainest name is taken.

    Raises:
        FileNotFoundError: there is no such file or folder; the message says what lies there.
        ValueError: files of several sets have such names.
    """
    folder = path_of(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    files = sorted(path for deep in ("*", "*/*") for path in folder.glob(deep) if path.is_file())
    found = []
    for path in files:
        plain = path.name.lower().removesuffix(".gz").replace(".", "-")
        for spelled in (name, name.replace("t10k", "test")):
            if f"-{plain}".endswith(f"-{spelled}"):
                prefix, deep = plain.removesuffix(spelled), len(path.parts)
                found.append((prefix != "", deep, path.suffix != ".gz", prefix, path))
                break
    if not found:
        names = [path.relative_to(folder).as_posix() for path in files]
        there = (
            f"it holds {', '.join(names[:NAMED])}{', …' * (len(names) > NAMED)}"
            if names
            else "it is empty"
        )
        raise FileNotFoundError(f"{folder} holds no {name}, with or without .gz; {there}")
    first = min(found)
    if rivals := [
        file for *rank, prefix, file in found if rank[0] == first[0] and prefix != first[3]
    ]:
        raise ValueError(
            f"several sets lie in {folder}, such as {first[4].name} and {rivals[0].name}; put the files of one into a "
            "folder of their own"
        )
    return first[4]


def read_idx(path: str | Path) -> np.ndarray:
    """The array of a file in MNIST's format IDX, compressed with gzip or not, as uint8.

    The format: two zero bytes, a byte for the type (8: unsigned bytes), a byte for the number of axes, a 32-bit size
    for each axis, then the elements. Source: https://yann.lecun.com/exdb/mnist/.

    Raises:
        ValueError: the file is damaged, or is no IDX file of unsigned bytes.
    """
    path = Path(path)
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            start = file.read(4)
            if start[:3] != b"\0\0\x08" or len(start) < 4:
                raise ValueError(f"{path.name} is not an IDX file of unsigned bytes")
            sizes = file.read(4 * start[3])
            shape = struct.unpack(f">{len(sizes) // 4}I", sizes[: len(sizes) // 4 * 4])
            announced = math.prod(shape)
            elements = bytearray()
            while len(elements) <= announced and (part := file.read(1 << 20)):
                elements += part
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path.name} is damaged: {error}") from error
    if len(shape) < start[3]:
        raise ValueError(f"{path.name} is damaged: it ends within its header")
    if len(elements) != announced:
        found = "more" if len(elements) > announced else len(elements)
        raise ValueError(f"{path.name} announces {shape}, {announced} bytes, and holds {found}")
    return np.frombuffer(elements, dtype=np.uint8).reshape(shape).copy()
