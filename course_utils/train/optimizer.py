"""AdamW with weight decay for matrices and kernels only, after Loshchilov and Hutter (2019), arXiv 1711.05101."""

import torch
from torch import Tensor, nn


def adamw(
    model: nn.Module, *, lr: float, betas: tuple[float, float], weight_decay: float
) -> torch.optim.AdamW:
    """The optimizer of all parameters of a model that require gradients.

    Args:
        model: the model to train.
        lr: learning rate.
        betas: decay rates of Adam's two averages.
        weight_decay: for parameters with at least two axes; 0 for biases, norms, and what is named `class_token` or
            `position…`, the learned vectors of positions.

    Raises:
        ValueError: no parameter requires a gradient.
    """
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise ValueError(f"{type(model).__name__} has no parameter to train")
    groups = [
        {
            "params": [p for name, p in parameters.items() if _is_decayed(name, p) is decayed],
            "weight_decay": float(weight_decay) if decayed else 0.0,
        }
        for decayed in (True, False)
    ]
    beta1, beta2 = map(
        float, betas
    )  # as Python's, since a checkpoint with NumPy's numbers can't be read again
    return torch.optim.AdamW(groups, lr=float(lr), betas=(beta1, beta2), fused=True)


def _is_decayed(name: str, parameter: Tensor) -> bool:
    exempt = [
        part for part in name.split(".") if part == "class_token" or part.startswith("position")
    ]
    return parameter.ndim >= 2 and not exempt
