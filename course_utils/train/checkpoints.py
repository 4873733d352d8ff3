"""Checkpoints: written whole or not at all, and read only into the model they belong to.

Above: nothing of ours. Below: `training`. Taught in *Training transformers*.
"""

import contextlib
import os
import tempfile
from pathlib import Path

import torch
from torch import nn


def save_atomically(state: dict, path: str | os.PathLike) -> None:
    """Write a checkpoint so that `path` always holds a whole one: the old or the new."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def load_weights(model: nn.Module, state: dict, path: str | os.PathLike) -> None:
    """Put a checkpoint's weights into `model`.

    Raises:
        ValueError: they belong to another model; the first difference is named.
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
                shapes = f"{tuple(saved[name].shape)}, here {tuple(tensor.shape)}"
                problem = f"{name} is {shapes}"
                break
    if problem:
        raise ValueError(
            f"{Path(path).name} is a checkpoint of another {state['kind']}, not of this "
            f"{type(model).__name__}: {problem}"
        )
    model.load_state_dict(saved)
