"""Checkpoints are read only into the model they belong to. Taught in *Training transformers*."""

import os
from pathlib import Path
from typing import Any

from torch import nn


def load_weights(model: nn.Module, state: dict[str, Any], path: str | os.PathLike) -> None:
    """Put a checkpoint's weights into `model`.

    Args:
        model: gets the weights, if each has the shape that it has here.
        state: what `torch.load(path, weights_only=True)` gave: `kind`, the class's name, and `model`,
            its `state_dict()`.
        path: where it came from, for the message.

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
                problem = f"{name} is {tuple(saved[name].shape)}, here {tuple(tensor.shape)}"
                break
    if problem:
        raise ValueError(
            f"{Path(path).name} is a checkpoint of another {state['kind']}, not of this "
            f"{type(model).__name__}: {problem}"
        )
    model.load_state_dict(saved)
