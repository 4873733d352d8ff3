"""Several processes, one training: the same script under `torchrun` as alone.

    torchrun --nproc-per-node 2 my_training.py

Each process has the whole model and works on its share of every batch; losses, counts and gradients are summed over
all, so that a step equals one process's step on the whole batch. Taught in *Training transformers*.
"""

import dataclasses
import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from course_utils.runtime import best_device
from course_utils.train.losses import Loss, per


@dataclass(frozen=True)
class Team:
    """The processes that train together.

    Attributes:
        rank: number of this process, from 0. The first one shows progress and writes files.
        size: how many there are.
    """

    rank: int
    size: int

    def share(self, batch: Any) -> Any:
        """This process's rows of a batch: a dataclass of tensors with the batch as first axis.

        A batch with fewer rows than processes is worked on whole by each.
        """
        columns = {field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)}
        if any(len(column) < self.size for column in columns.values()):
            return batch
        own = {name: column[self.rank :: self.size] for name, column in columns.items()}
        return dataclasses.replace(batch, **own)

    def loss(self, alone: Loss) -> Loss:
        """The loss of the whole batch, with the gradient of this process's part of it."""

        @per(getattr(alone, "per", ""))
        def together(model: nn.Module, batch: Any) -> tuple[Tensor, float]:
            rows = self.share(batch)
            part, count = alone(model, rows)
            if rows is batch:  # each has worked on all of it
                part, count = part / self.size, count / self.size
            value, count = self.total(part.item(), float(count))
            return part + (value - part.detach()), count

        return together

    def total(self, *numbers: float) -> list[float]:
        """The sums of these numbers over all processes."""
        summed = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(summed)
        return summed.tolist()

    def begin_alike(self, model: nn.Module) -> None:
        """Give every process the first one's weights."""
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, src=0)

    def sum_gradients(self, model: nn.Module) -> None:
        """Replace each gradient by its sum over all processes."""
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        for sent in [dist.all_reduce(gradient, async_op=True) for gradient in gradients]:
            sent.wait()


def join() -> Team | None:
    """The team that `torchrun` has set up in this process's environment; None without it."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return None
    if not dist.is_initialized():
        if torch.cuda.is_available():
            torch.cuda.set_device(best_device())
        dist.init_process_group()  # Gloo for what lies on the CPU, NCCL for what lies on GPUs
    return Team(dist.get_rank(), dist.get_world_size())
