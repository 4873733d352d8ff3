"""Seeds, the device, and context managers for a model's mode and device.

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
    """Seed the random numbers of Python, NumPy and PyTorch, on every device.

    Args:
        seed: an integer from 0 to 2**32 - 1, the range of NumPy.

    Raises:
        TypeError: `seed` is not an integer.
        ValueError: `seed` is out of range.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed={seed!r} is a {type(seed).__name__}; an integer is needed")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed} is out of range; use 0 <= seed < 2**32")
    random.seed(seed)
    np.random.seed(seed)  # the global generator, which a reader's code may use
    torch.manual_seed(seed)


@contextlib.contextmanager
def own_random_numbers(seed: int = 0) -> Iterator[None]:
    """A block with PyTorch's generators seeded anew; after it they are in the state from before the block."""
    devices = range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0)
    with torch.random.fork_rng(devices=devices):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would start the GPUs as well
        if devices:
            torch.cuda.manual_seed_all(seed)
        yield


def best_device() -> torch.device:
    """The GPU if there is one (under `torchrun` the one of this process), else the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def in_notebook() -> bool:
    """Whether this code runs in the kernel of a notebook, where widgets can be shown."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    return get_ipython() is not None


class Module(Protocol):
    """The part of `torch.nn.Module` that protocols of models need."""

    def modules(self) -> Iterator[torch.nn.Module]:
        """The module itself and all its submodules."""

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """The parameters of all submodules."""

    def eval(self) -> object:
        """Set eval mode."""


@contextlib.contextmanager
def keeping_modes(model: Module) -> Iterator[Module]:
    """A block after which each submodule is in the mode, train or eval, that it had before."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield model
    finally:
        for module, training in modes:
            module.training = training


@contextlib.contextmanager
def evaluating(model: Module) -> Iterator[Module]:
    """A block with the model in eval mode; afterwards each submodule is in the mode that it had before."""
    with keeping_modes(model):
        model.eval()
        yield model


@contextlib.contextmanager
def placed(model: torch.nn.Module, device: torch.device | str) -> Iterator[torch.nn.Module]:
    """A block with the model on a device; afterwards it is back on the device of its first parameter."""
    home = next(model.parameters(), torch.empty(0)).device
    try:
        yield model.to(device)
    finally:
        model.to(home)
