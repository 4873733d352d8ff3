"""Counting the calls that a function makes of PyTorch and of the course, and the shapes of its tensors.

So a check finds a loop over rows, and a function that its task forbids.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


def count_calls(function: Callable, *inputs: torch.Tensor) -> Counter[str]:
    """The number of calls that a function makes of each of PyTorch's and of the course's functions, by name."""
    with counting_calls() as counts:
        function(*inputs)
    return counts


@contextmanager
def counting_calls() -> Iterator[Counter[str]]:
    """A context whose counter holds the number of calls in the block, by name, without those of the kit and studio.

    A method's name holds that of its class: `DecoderLayer.forward`.
    """
    counts: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        _, _, inner = module.partition("course_utils.")
        if event == "call" and inner and not inner.startswith(("kit.", "studio.")):
            counts[frame.f_code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        with _Counted(counts):
            yield counts
    finally:
        sys.setprofile(before)


class _Counted(TorchFunctionMode):
    """Counts the calls of PyTorch in its block."""

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self.counts = counts

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.counts[func.__name__] += 1
        return func(*args, **(kwargs or {}))


class Shapes(TorchFunctionMode):
    """A context that collects the shapes of the tensors that PyTorch makes in its block.

    Attributes:
        made: the set of shapes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.made: set[tuple[int, ...]] = set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        answer = func(*args, **(kwargs or {}))
        if isinstance(answer, torch.Tensor):
            self.made.add(tuple(answer.shape))
        return answer
