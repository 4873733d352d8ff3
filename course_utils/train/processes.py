"""Several processes, one training: the same script under `torchrun` as alone.

    torchrun --nproc-per-node 2 my_training.py

Each process has the whole model and takes its share of every batch; gradients are averaged by
`DistributedDataParallel`, so that a step equals one process's step on the joined batch. Taught in
*Training transformers*.
"""

import dataclasses
import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from course_utils.runtime import best_device


@dataclass(frozen=True)
class Team:
    """The processes that train together; one alone needs none of what follows.

    Attributes:
        rank: number of this process, from 0. The first one shows progress and writes files.
        size: how many there are.
    """

    rank: int = 0
    size: int = 1

    def share(self, batch: Any) -> Any:
        """This process's rows of a batch: a dataclass of tensors with the batch as first axis.

        A batch with fewer rows than processes is worked on whole by each.
        """
        if self.size == 1:
            return batch
        columns = {field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)}
        if any(len(column) < self.size for column in columns.values()):
            return batch
        own = {name: column[self.rank :: self.size] for name, column in columns.items()}
        return dataclasses.replace(batch, **own)

    def total(self, *numbers: float) -> list[float]:
        """The sums of these numbers over all processes."""
        if self.size == 1:
            return list(numbers)
        summed = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(summed)
        return summed.tolist()

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module with its gradients averaged over all processes."""
        return module if self.size == 1 else DistributedDataParallel(module)


def join() -> Team:
    """The team that `torchrun` has set up in this process's environment; alone without it."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return Team()
    if not dist.is_initialized():
        if torch.cuda.is_available():
            torch.cuda.set_device(best_device())
        dist.init_process_group()  # Gloo for what lies on the CPU, NCCL for what lies on GPUs
    return Team(dist.get_rank(), dist.get_world_size())
