"""Several processes, one training: the same script under `torchrun` as alone.

    torchrun --nproc-per-node 2 my_training.py

Each process has the whole model and takes its share of every batch; gradients are averaged by
`DistributedDataParallel`, so that a step equals one process's step on the joined batch. Below:
`training`, which is all that uses it.
"""

import dataclasses
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@dataclass(frozen=True)
class Team:
    """The processes that train together; one alone needs none of what follows.

    Attributes:
        rank: number of this process, from 0.
        size: how many there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this is the process that shows progress and writes files."""
        return self.rank == 0

    def share(self, batch):
        """This process's rows of a batch: a dataclass of tensors with the batch as first axis.

        A batch with fewer rows than processes is worked on whole by each.
        """
        rows = len(getattr(batch, dataclasses.fields(batch)[0].name)) if self.size > 1 else 0
        if self.size == 1 or rows < self.size:
            return batch
        own = {
            field.name: getattr(batch, field.name)[self.rank :: self.size]
            for field in dataclasses.fields(batch)
        }
        return dataclasses.replace(batch, **own)

    def total(self, *numbers: float) -> list[float]:
        """The sums of these numbers over all processes."""
        if self.size == 1:
            return list(numbers)
        summed = torch.tensor(numbers, dtype=torch.float64, device=_gathering_device())
        dist.all_reduce(summed)
        return summed.tolist()

    def any(self, flag: bool) -> bool:
        """Whether the flag is up in one of the processes."""
        return self.total(float(flag))[0] > 0

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module with its gradients averaged over all processes."""
        return module if self.size == 1 else DistributedDataParallel(module)


def join() -> Team:
    """The team that `torchrun` has set up in this process's environment; alone without it."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Team()
    if not dist.is_initialized():
        if torch.cuda.is_available():
            torch.cuda.set_device(own_device())
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return Team(dist.get_rank(), size)


def own_device() -> torch.device:
    """This process's GPU, or the CPU where there is none."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def _gathering_device() -> torch.device:
    return own_device() if dist.get_backend() == "nccl" else torch.device("cpu")
