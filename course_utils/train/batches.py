"""What a trainer needs of the caller's batches, losses and measurements, and what it says of anything else."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.files import plain
from course_utils.train.losses import Loss


def batches_per_epoch(batches: Any) -> int:
    """The length of the training data, in batches.

    Raises:
        TypeError: they have no length, as those of a generator, which can be iterated over only once.
        ValueError: there is no batch.
    """
    if not hasattr(batches, "__len__"):
        raise TypeError(
            f"train is a {type(batches).__name__}, which has no length; a loader or a list of batches "
            "is needed, for several passes"
        )
    if not len(batches):
        raise ValueError("train is empty; there is nothing to learn from")
    return len(batches)


def on_device(batch: Any, device: torch.device) -> Any:
    """The batch on a device.

    Raises:
        TypeError: it has no method `to`, as the lists [x, y] of PyTorch's DataLoader.
    """
    if not hasattr(batch, "to"):
        raise TypeError(
            f"a batch is a {type(batch).__name__}, which has no method to(device), as a tensor or an ImageBatch has; "
            "DataLoader makes such batches with collate_fn=lambda rows: ImageBatch(*default_collate(rows)) "
            "(from course_utils.data.images and torch.utils.data)"
        )
    return batch.to(device)


def loss_of(loss: Loss, model: nn.Module, batch: Any) -> tuple[Tensor, float | Tensor]:
    """What a loss gives for a batch: the sum, and the number that it is summed over.

    Raises:
        TypeError: it gives something else, such as the sum alone.
        ValueError: the sum is no single number.
    """
    result = loss(model, batch)
    if not isinstance(result, tuple | list) or len(result) != 2:
        what = (
            f"{len(result)} values"
            if isinstance(result, tuple | list)
            else f"a {type(result).__name__}"
        )
        raise TypeError(
            f"loss gives {what}; two are needed: the summed loss, and the number of tokens or images that it is "
            "summed over, such as (cross_entropy(…, reduction='sum'), len(labels))"
        )
    total, count = result
    if not isinstance(total, Tensor):
        raise TypeError(f"loss gives a {type(total).__name__} as the sum; a tensor is needed")
    if total.numel() != 1:
        raise ValueError(
            f"loss gives a sum of shape {tuple(total.shape)}; one number is needed, such as loss.sum()"
        )
    return total.reshape(()) if total.ndim else total, count


def measured(measure: Callable[[], Any]) -> tuple[dict, Exception | None]:
    """The measurements as a file gives them back, or none and the exception that measuring them raised.

    The exception is a TypeError if they are no dict, or if one of them can't be saved.
    """
    try:
        values = measure()
        if not isinstance(values, Mapping):
            raise TypeError(
                f"measure gives a {type(values).__name__}; a dict of numbers is needed, such as {{'accuracy': 0.5}}"
            )
        return plain("measure", values), None
    except Exception as error:
        return {}, error
