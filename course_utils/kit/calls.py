"""How often a function calls PyTorch: a loop over rows shows, without a clock."""

from collections import Counter
from collections.abc import Callable

import torch
from torch.overrides import TorchFunctionMode


def calls(function: Callable, *inputs: torch.Tensor) -> Counter[str]:
    """How often a function calls each of PyTorch's, by name."""
    with _Counted() as counted:
        function(*inputs)
    return counted.calls


class _Counted(TorchFunctionMode):
    """Counts the calls of PyTorch in its block."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls[func.__name__] += 1
        return func(*args, **(kwargs or {}))
