"""Loading a checkpoint, after a check that it belongs to the model. Taught in *Training transformers*."""

import os
from pathlib import Path
from typing import Any

from torch import nn


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
