"""CIFAR-10, read without executing what a pickle may carry."""

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.data.images import ImageSet
from course_utils.data.registry import fetch, read_member

CIFAR10 = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


def load_cifar10(split: str = "train", *, folder: str | Path | None = None) -> ImageSet:
    """CIFAR-10: 32 × 32 color pictures in ten classes, 50,000 + 10,000 (Krizhevsky, 2009).

    Args:
        split: "train" or "test".
        folder: where the python version's batches lie; else the registry's archive is read.

    Raises:
        ValueError: `split` is neither, or a batch is damaged or holds more than plain data.
        FileNotFoundError: a batch is missing, or the archive can't be had.
    """
    batches = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
    if split not in batches:
        raise ValueError(f"split={split!r}; 'train' or 'test' is needed")
    if folder is None:
        archive = fetch("cifar-10")
        contents = [read_member(archive, f"cifar-10-batches-py/{name}") for name in batches[split]]
    else:
        contents = [(Path(folder) / name).read_bytes() for name in batches[split]]
    parts = [read_cifar_batch(content) for content in contents]
    images, labels = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    return ImageSet(images, labels, CIFAR10)


def read_cifar_batch(content: bytes) -> tuple[Tensor, Tensor]:
    """Images (n, 3, 32, 32) uint8 and labels (n,) from one pickled batch of CIFAR-10.

    A pickle can carry code; this reader builds nothing but numbers, texts, lists, dictionaries and
    NumPy arrays, and executes nothing.

    Raises:
        ValueError: the pickle asks for something else, or does not hold what a batch holds.
    """
    try:
        batch = _PlainUnpickler(io.BytesIO(content), encoding="bytes").load()
        pixels, labels = np.asarray(batch[b"data"]), batch[b"labels"]
        images = torch.from_numpy(pixels.astype(np.uint8, casting="safe").reshape(-1, 3, 32, 32))
        return images.clone(), torch.tensor(labels, dtype=torch.int64)
    except Exception as error:  # whatever a damaged or hostile file provokes
        raise ValueError(f"not a batch of CIFAR-10: {error}") from error


_PLAIN = {
    ("numpy.core.multiarray", "_reconstruct"): np.zeros(0).__reduce__()[0],
    ("numpy._core.multiarray", "_reconstruct"): np.zeros(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): lambda text, encoding: text.encode("latin1"),
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _PLAIN:
            raise ValueError(f"it asks for {module}.{name}, which is more than plain data")
        return _PLAIN[module, name]
