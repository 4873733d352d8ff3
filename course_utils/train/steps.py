"""The training loop of stored runs: a batch is drawn for each step, and each step has its learning rate.

The chapters write their loops themselves, and long trainings have a `Trainer`. First used in *GPT*.
"""

from collections.abc import Callable

from torch import Tensor, nn
from torch.optim import Optimizer


def take_steps(
    optimizer: Optimizer,
    loss: Callable[[], Tensor],
    *,
    steps: int,
    rate: Callable[[int], float],
    clip_norm: float | None = 1.0,
    after_step: Callable[[int, float], None] | None = None,
) -> None:
    """Take `steps` steps of an optimizer, each on a new batch.

    Args:
        optimizer: with one group of parameters.
        loss: draws a batch and gives its mean loss.
        steps: how many.
        rate: step, from 1 on → learning rate.
        clip_norm: gradients longer than this are shortened to it; None leaves them.
        after_step: called with the number of the step and its loss.
    """
    (group,) = optimizer.param_groups
    for step in range(1, steps + 1):
        group["lr"] = rate(step)
        value = loss()
        optimizer.zero_grad()
        value.backward()
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(group["params"], clip_norm)
        optimizer.step()
        if after_step is not None:
            after_step(step, value.item())
