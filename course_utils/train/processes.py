"""Data-parallel training: several processes that `torchrun` starts train one model together.

    torchrun --nproc-per-node 2 my_training.py

Each process has the whole model and computes its share of every batch. Losses, counts and gradients are summed over
all processes, so a step equals that of a single process on the whole batch.
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
class DataParallel:
    """The processes that train one model together.

    Attributes:
        rank: the number of this process, from 0. Process 0 shows progress and writes files.
        world_size: the number of processes.
    """

    rank: int
    world_size: int

    def shard(self, batch: Any) -> Any:
        """Every `world_size`-th row of a batch, from row `rank` on; the whole batch if it has fewer rows than that.

        Args:
            batch: a dataclass of tensors, each (batch, …).
        """
        tensors = {field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)}
        if any(len(tensor) < self.world_size for tensor in tensors.values()):
            return batch
        rows = {name: tensor[self.rank :: self.world_size] for name, tensor in tensors.items()}
        return dataclasses.replace(batch, **rows)

    def loss(self, single: Loss) -> Loss:
        """A loss with the value of the whole batch, and the gradient of this process's shard.

        Args:
            single: the loss as a single process computes it.
        """

        @per(getattr(single, "per", ""))
        def loss(model: nn.Module, batch: Any) -> tuple[Tensor, float]:
            shard = self.shard(batch)
            share, count = single(model, shard)
            if shard is batch:  # every process has computed all of it
                share, count = share / self.world_size, count / self.world_size
            total, count = self.sum(share.item(), float(count))
            return share + (total - share.detach()), count

        return loss

    def sum(self, *numbers: float) -> list[float]:
        """The sum of each number over all processes."""
        summed = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(summed)
        return summed.tolist()

    def broadcast_weights(self, model: nn.Module) -> None:
        """Give every process the weights and buffers of process 0."""
        for tensor in model.state_dict().values():
            if isinstance(tensor, Tensor):  # a module's extra state may be something else
                dist.broadcast(tensor, src=0)

    def sum_gradients(self, model: nn.Module) -> None:
        """Replace each gradient by its sum over all processes."""
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        for work in [dist.all_reduce(gradient, async_op=True) for gradient in gradients]:
            work.wait()


def data_parallel() -> DataParallel | None:
    """The processes that `torchrun` has started with this one; None without `torchrun`, or for one process."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return None
    if not dist.is_initialized():
        if torch.cuda.is_available():
            torch.cuda.set_device(best_device())
        dist.init_process_group()  # Gloo for tensors on the CPU, NCCL for those on GPUs
    return DataParallel(dist.get_rank(), dist.get_world_size())
