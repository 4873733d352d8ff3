"""Checkpoints: what is written can be read again, and belongs to the model. Taught in *Training transformers*."""

import contextlib
import os
import pickle
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.files import atomic_write

CONTAINERS = (dict, OrderedDict, Counter, list, tuple, set)
CONTENTS = (
    bool, int, float, complex, str, bytes, type(None), torch.Size, torch.dtype, torch.device,
)  # fmt: skip
"""Types that `torch.load(…, weights_only=True)` reads, besides tensors."""


def save_checkpoint(state: dict[str, Any], path: str | os.PathLike) -> None:
    """Write a checkpoint in place of an earlier one, unless it could not be read again.

    Raises:
        TypeError: as in `check_readable`; the earlier one stays.
    """
    check_readable(state)
    with atomic_write(path) as part:
        torch.save(state, part)


def check_readable(value: Any, name: str = "") -> None:
    """Raise TypeError for what `torch.load(…, weights_only=True)` refuses, such as a NumPy number; it says where."""
    kind = type(value)
    if kind in CONTAINERS:
        parts: Iterable = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in parts:
            check_readable(key, f"a key of {name}")
            check_readable(part, f"{name}[{key!r}]" if name else key)
    elif kind not in CONTENTS and not isinstance(value, Tensor):
        raise TypeError(
            f"{name} is a {kind.__module__}.{kind.__qualname__}, so the checkpoint could not be read again; "
            "hand over Python's numbers, strings and tensors, such as float(x) or torch.as_tensor(x)"
        )


def load_checkpoint(
    model: nn.Module, path: str | os.PathLike, device: torch.device
) -> dict[str, Any]:
    """The state that `save_checkpoint` wrote, with tensors on a device; the model gets its weights.

    Raises:
        ValueError: the file is no checkpoint or damaged, or it is one of another model.
    """
    state = None
    if zipfile.is_zipfile(path):
        with contextlib.suppress(pickle.UnpicklingError):
            state = torch.load(path, weights_only=True, map_location=device)
    if not isinstance(state, dict) or not {"kind", "model", "optimizer"} <= state.keys():
        raise ValueError(
            f"{path} is damaged or no checkpoint of a Trainer, so there is nothing to go on from; train without "
            "resume=True, or give another file"
        )
    load_weights(model, state, path)
    return state


def load_weights(model: nn.Module, state: dict[str, Any], path: str | os.PathLike) -> None:
    """Load the weights of a checkpoint into `model`.

    Args:
        model: the model that gets the weights.
        state: the checkpoint, as `torch.load(path, weights_only=True)` returns it: `kind`, the name of the class, and
            `model`, its `state_dict()`.
        path: the checkpoint's file, for the message.

    Raises:
        ValueError: names or shapes of the weights are not those of the model; the message has the first difference.
    """
    saved, own = state["model"], model.state_dict()
    problem = None
    if missing := [name for name in own if name not in saved]:
        problem = f"it has no {missing[0]}"
    elif unknown := [name for name in saved if name not in own]:
        problem = f"its {unknown[0]} is unknown here"
    else:
        for name, tensor in own.items():
            if saved[name].shape != tensor.shape:
                problem = f"{name} is {tuple(saved[name].shape)}, here {tuple(tensor.shape)}"
                break
    if problem:
        raise ValueError(
            f"{Path(path).name} is a checkpoint of another {state['kind']}, not of this "
            f"{type(model).__name__}: {problem}"
        )
    model.load_state_dict(saved)
