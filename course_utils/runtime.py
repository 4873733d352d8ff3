"""What everything else runs on: the course's files, seeds, the device, a model's mode.

It imports nothing else of the course. Seeds are taught in *Start here*.
"""

import contextlib
import os
import random
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
"""The folder that holds `book.toml`, `notebooks/` and `data/`."""

LESSONS = ROOT / "course_utils" / "lessons"

ABANDONED = 3600
"""Seconds after which an unfinished file belongs to no process any more."""


# Files ------------------------------------------------------------------------------------------


def data_path(name: str) -> Path:
    """Where a file or folder of data/ is: "translation/grammar_fr.tsv", for instance.

    Args:
        name: its path inside data/, with forward slashes.

    Raises:
        FileNotFoundError: it is missing; the message names it and says how to restore it.
    """
    path = ROOT / "data" / name
    if not path.exists():
        raise FileNotFoundError(
            f"data/{name} is missing from {ROOT}; restore it with: git checkout -- data/{name} "
            "(or copy it from a fresh download of the course)"
        )
    return path


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[Path]:
    """Write a file whole or not at all.

        with atomic_write(path) as part:
            part.write_text("…")

    The block writes a new file beside `path`, which takes its name when the block is done. After an
    exception, an interrupt or a full disk, `path` is what it was and the new file is gone. What a
    killed process left behind goes at the next writing, an hour later at the earliest.

    Args:
        path: the file to replace or to make, in a folder that is made if need be; a symbolic link
            stays one. A new file gets the usual permissions, an old one keeps its own.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    for part in path.parent.iterdir():
        if part.name.startswith(f".{path.name}.") and part.suffix == ".part":
            with contextlib.suppress(OSError):
                if time.time() - part.stat().st_mtime > ABANDONED:
                    part.unlink()
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    part.touch(exist_ok=False)
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: str | os.PathLike, timeout: float = -1) -> Iterator[None]:
    """No two processes are in such a block of the same file at a time: read it, change it, write it.

    Args:
        path: the file that is to be changed. The lock is a hidden file beside it.
        timeout: seconds to wait for another process; without end by default.

    Raises:
        OSError: the folder cannot be written, or the time is over.
    """
    from filelock import FileLock  # slow to import

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock"), timeout=timeout):
        yield


def leads() -> bool:
    """Whether this process writes: the first one of those that `torchrun` started, or the only one."""
    return os.environ.get("RANK", "0") == "0"


# Seeds and device -------------------------------------------------------------------------------


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and PyTorch, on every device.

    Returns nothing, so that a cell may end with it and show nothing.

    Args:
        seed: a nonnegative integer below 2**32 (the range NumPy accepts).

    Raises:
        TypeError: `seed` is not an integer.
        ValueError: `seed` is out of range.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed={seed!r} is a {type(seed).__name__}; an integer is needed")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed} is out of range; use 0 <= seed < 2**32")
    random.seed(seed)
    np.random.seed(seed)  # the old interface, which a learner may use
    torch.manual_seed(seed)


@contextlib.contextmanager
def own_random_numbers(seed: int = 0) -> Iterator[None]:
    """In the block PyTorch's random numbers begin at `seed`; after it the caller's go on as if none had been drawn."""
    devices = range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0)
    with torch.random.fork_rng(devices=devices):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would start the GPUs as well
        if devices:
            torch.cuda.manual_seed_all(seed)
        yield


def has_gpu() -> bool:
    """Whether a CUDA device is there; cells tagged `gpu` ask this before they start."""
    return torch.cuda.is_available()


def best_device() -> torch.device:
    """The GPU where there is one (under `torchrun` this process's own), else the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def in_notebook() -> bool:
    """Whether this runs in a notebook's kernel, where there is somebody to show things to."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    return get_ipython() is not None


@contextlib.contextmanager
def keeping_modes(model: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """After the block each module of the model is in the mode, train or eval, that it had before."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield model
    finally:
        for module, training in modes:
            module.training = training


@contextlib.contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """The model in eval mode while a block runs; then each of its modules in its own mode again.

    A part that was frozen in eval mode inside a model in train mode stays so, also after an exception.
    """
    with keeping_modes(model):
        model.eval()
        yield model


@contextlib.contextmanager
def placed(model: torch.nn.Module, device: torch.device | str) -> Iterator[torch.nn.Module]:
    """The model on a device while a block runs; then back on the one it came from."""
    home = next(model.parameters(), torch.empty(0)).device
    try:
        yield model.to(device)
    finally:
        model.to(home)
