"""What a notebook runs on: the course's folder, seeds, the device, and a report on all of it.

The ground floor of the package: it imports nothing else of ours. *Start here* teaches `doctor`.
"""

import contextlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
"""The folder that holds `book.toml`, `notebooks/` and `data/`."""


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
    np.random.seed(seed)  # noqa: NPY002  the old interface is what a learner may use
    torch.manual_seed(seed)


def has_gpu() -> bool:
    """Whether a CUDA device is there; cells tagged `gpu` ask this before they start."""
    return torch.cuda.is_available()


def in_notebook() -> bool:
    """Whether this runs in a notebook's kernel, where there is somebody to show things to."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    return get_ipython() is not None


@contextlib.contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """The model in eval mode while a block runs, and back in its own mode afterwards."""
    was_training = model.training
    model.eval()
    try:
        yield model
    finally:
        model.train(was_training)
