"""What everything else runs on: seeds, the device, a model's mode.

It imports nothing else of the course. Seeds are taught in *Start here*.
"""

import contextlib
import os
import random
import sys
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch

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


class Module(Protocol):
    """What is asked of any `torch.nn.Module`, for protocols of models."""

    def modules(self) -> Iterator[torch.nn.Module]:
        """Itself and all inside."""

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """All that is trained."""

    def eval(self) -> object:
        """Go to eval mode."""


@contextlib.contextmanager
def keeping_modes(model: Module) -> Iterator[Module]:
    """After the block each module of the model is in the mode, train or eval, that it had before."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield model
    finally:
        for module, training in modes:
            module.training = training


@contextlib.contextmanager
def evaluating(model: Module) -> Iterator[Module]:
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
