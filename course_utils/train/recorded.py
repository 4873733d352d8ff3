"""What a GPU is told to do for a batch, recorded and replayed.

A GPU computes the kernels of a small model sooner than Python starts them, so it waits most of the time. CUDA can
record as a graph what a function starts, and start all of it again by one command. Used by `Trainer(graphs=True)`.
"""

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def recordable(device: torch.device) -> bool:
    """Whether a device records what it is told to do: CUDA's alone."""
    return device.type == "cuda"


def recording(tensor: Tensor) -> bool:
    """Whether what is computed from this tensor is being recorded: then no size may follow from its values."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def tensors(batch: Any) -> list[Tensor]:
    """The fields of a batch that are tensors, in order."""
    return [value for value in vars(batch).values() if isinstance(value, Tensor)]


class Recorded:
    """A function of a batch that is computed by CUDA graphs: one for each shape that comes a second time.

    The first batch of a shape is computed as usual; afterwards the same kernels run on the same memory. What Python
    does in the function (counters, hooks) it does in these two batches only, so other fields than tensors are
    part of the shape.

    Args:
        function: batch → tensors, which it may leave elsewhere as well (gradients). Of two batches of one shape
            it starts the same kernels: no branch and no size follows from values.
        device: the GPU that computes it.
    """

    def __init__(self, function: Callable[[Any], Any], device: torch.device | str):
        self.function = function
        self.stream = torch.cuda.Stream(device)
        self.graphs: dict[tuple, tuple[Any, torch.cuda.CUDAGraph, Any] | None] = {}
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, batch: Any) -> Any:
        """What the function gives; tensors that the next batch of any shape may overwrite.

        Raises:
            RuntimeError: what the function starts depends on values, or it draws random numbers on the CPU.
            TypeError: a field is no tensor and has no hash, such as a list of tensors.
        """
        shape = tuple(
            (value.shape, value.dtype) if isinstance(value, Tensor) else value
            for value in vars(batch).values()
        )
        if shape not in self.graphs:
            self.graphs[shape] = None
            return self._as_usual(batch)
        held, graph, result = self.graphs[shape] or self._record(shape, batch)
        for mine, new in zip(tensors(held), tensors(batch), strict=True):
            mine.copy_(new)
        graph.replay()
        return result

    def _as_usual(self, batch: Any) -> Any:
        """On the stream that records: what stays of the first batch, such as gradients, belongs to it."""
        usual = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(usual)
        with torch.cuda.stream(self.stream):
            result = self.function(batch)
        usual.wait_stream(self.stream)
        return result

    def _record(self, shape: tuple, batch: Any) -> tuple[Any, torch.cuda.CUDAGraph, Any]:
        clones = {k: v.clone() for k, v in vars(batch).items() if isinstance(v, Tensor)}
        held, graph = dataclasses.replace(batch, **clones), torch.cuda.CUDAGraph()
        drawn = _state_of_cpu()
        try:
            with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
                result = self.function(held)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise RuntimeError(
                "this step cannot be recorded, most likely because what it computes depends on values and not on "
                "shapes alone; train with graphs=False"
            ) from error
        if _state_of_cpu() != drawn:
            raise RuntimeError(
                "this step draws random numbers on the CPU, which would be the same in each step that is replayed; "
                "draw them on the GPU, or train with graphs=False"
            )
        self.graphs[shape] = held, graph, result
        return held, graph, result


def _state_of_cpu() -> tuple:
    """Where PyTorch's and Python's random numbers are on the CPU."""
    return torch.get_rng_state().numpy().tobytes(), random.getstate()
