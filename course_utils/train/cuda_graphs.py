"""CUDA graphs: the kernels of a training step, captured once for each shape of batch and replayed.

A GPU computes the kernels of a small model faster than Python launches them, so it waits most of the time. A CUDA
graph launches all of them by one command. Used by `Trainer(graphs=True)`.
"""

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def is_capturing(tensor: Tensor) -> bool:
    """Whether operations on this tensor are being captured; then no shape may depend on its values."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def signature(batch: Any) -> tuple:
    """Shape and dtype of each tensor in a batch, and the values of its other fields: one graph serves all such batches.

    Args:
        batch: an object whose attributes are tensors, or values that have a hash.
    """
    return tuple(
        (value.shape, value.dtype) if isinstance(value, Tensor) else value
        for value in vars(batch).values()
    )


class CapturedFunction:
    """A function of a batch, computed by CUDA graphs: one for each signature that comes a second time.

    The first batch with a signature is computed as usual, as a warm-up; the second is captured; later ones are copied
    into the memory of the second, and the same kernels run again. What Python does in the function (counters, hooks)
    happens in these two calls only. See https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs.

    Args:
        function: batch, a dataclass → tensors; it may write into others, such as gradients. For two batches with
            one signature it launches the same kernels: no branch and no shape depends on values.
        device: the GPU that computes it.
    """

    def __init__(self, function: Callable[[Any], Any], device: torch.device | str):
        self.function = function
        self.stream = torch.cuda.Stream(device)
        self.graphs: dict[tuple, tuple[Any, torch.cuda.CUDAGraph, Any] | None] = {}
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, batch: Any) -> Any:
        """The function's result; the next call may overwrite its tensors.

        Raises:
            RuntimeError: the kernels depend on values, or the function draws random numbers on the CPU.
            TypeError: a field of the batch is neither a tensor nor has a hash, such as a list of tensors.
        """
        key = signature(batch)
        if key not in self.graphs:
            self.graphs[key] = None
            return self._warm_up(batch)
        captured = self.graphs[key] = self.graphs[key] or self._capture(batch)
        inputs, graph, result = captured
        for name, value in vars(batch).items():
            if isinstance(value, Tensor):
                getattr(inputs, name).copy_(value)
        graph.replay()
        return result

    def _warm_up(self, batch: Any) -> Any:
        """Call the function on the stream that will capture it, as memory it keeps must belong to that stream."""
        usual = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(usual)
        with torch.cuda.stream(self.stream):
            result = self.function(batch)
        usual.wait_stream(self.stream)
        return result

    def _capture(self, batch: Any) -> tuple[Any, torch.cuda.CUDAGraph, Any]:
        """The batch that the graph reads, the graph, and the result that it writes."""
        clones = {k: v.clone() for k, v in vars(batch).items() if isinstance(v, Tensor)}
        inputs, graph = dataclasses.replace(batch, **clones), torch.cuda.CUDAGraph()
        before = _cpu_random_state()
        try:
            with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
                result = self.function(inputs)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise RuntimeError(
                "this step cannot be captured as a CUDA graph, most likely because its kernels depend on values and "
                "not on shapes alone; train with graphs=False"
            ) from error
        if _cpu_random_state() != before:
            raise RuntimeError(
                "this step draws random numbers on the CPU, which would be the same in each replay; draw them on the "
                "GPU, or train with graphs=False"
            )
        return inputs, graph, result


def _cpu_random_state() -> tuple:
    """The states of PyTorch's and Python's random number generators on the CPU."""
    return torch.get_rng_state().numpy().tobytes(), random.getstate()
