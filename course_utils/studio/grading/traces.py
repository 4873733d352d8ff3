"""In the worker: what a call does besides its answer, and what it changes of what it was given."""

import contextlib
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.kit.calls import Shapes, counted
from course_utils.studio.grading import wire

# What a call changes ----------------------------------------------------------------------------


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers; NaN is NaN."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    return bool(torch.isclose(one.detach(), other, rtol=0, atol=0, equal_nan=True).all())


def state(module: nn.Module) -> tuple[dict[str, Tensor], dict[str, bool], dict[str, bool]]:
    """Values, what is trained, and the modes."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return (
        {name: tensor.detach().clone() for name, tensor in tensors},
        {name: tensor.requires_grad for name, tensor in module.named_parameters()},
        {name: one.training for name, one in module.named_modules()},
    )


def changes(packing: wire.Packing, module: nn.Module, before: tuple) -> dict[str, Any]:
    """What differs from an earlier `state`; the new values are added to those that are sent."""
    values, graded, modes = before
    found: dict[str, Any] = {"values": {}, "graded": {}, "modes": {}}
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if name in values and not same(tensor, values[name]):
            found["values"][name] = packing.tensor(tensor)
        if graded.get(name, tensor.requires_grad) != tensor.requires_grad:
            found["graded"][name] = tensor.requires_grad
    for name, one in module.named_modules():
        if modes.get(name, one.training) != one.training:
            found["modes"][name] = one.training
    return found


def load(module: nn.Module, request: dict[str, Any]) -> None:
    """The parameters and the mode that a module has in the judge."""
    values = wire.tensors(request["part_specs"], request["part_blob"])
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), values, strict=True):
            if not same(parameter, value):
                parameter.copy_(value)
    if module.training != request["on"]:
        module.train(request["on"])


class Notes:
    """What a call does: functions called, shapes made, numbers kept for the way back, warnings."""

    def __init__(self) -> None:
        self.called: Counter[str] = Counter()
        self.shapes: set[tuple[int, ...]] = set()
        self.kept: dict[tuple[int, int], int] = {}
        self.warned: list[warnings.WarningMessage] = []

    @contextlib.contextmanager
    def taken(self, watch: bool, keep: bool) -> Iterator[None]:
        """Note what happens in the block."""
        with contextlib.ExitStack() as stack:
            self.warned = stack.enter_context(warnings.catch_warnings(record=True))  # type: ignore
            warnings.simplefilter("always")
            if keep:
                hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda one: one)
                stack.enter_context(hooks)
            if watch:
                self.shapes = stack.enter_context(Shapes()).made
                self.called = stack.enter_context(_profiled())
            yield

    def _pack(self, tensor: Tensor) -> Tensor:
        self.kept[tensor.data_ptr(), tensor.numel()] = tensor.numel()
        return tensor

    def told(self) -> dict[str, Any]:
        """As it is sent."""
        said = [[w.category.__name__, str(w.message)[:500]] for w in self.warned[:20]]
        kept = sum(self.kept.values())
        return {"called": self.called, "shapes": list(self.shapes), "kept": kept, "warned": said}


_OURS: list[bool] = []


@contextlib.contextmanager
def _profiled() -> Iterator[Counter[str]]:
    """What the block calls; a submission may set no profiler in it, for it would hide its calls."""
    counting = counted()
    _OURS.append(True)
    found = counting.__enter__()
    _OURS.clear()
    try:
        yield found
    finally:
        _OURS.append(True)
        counting.__exit__(None, None, None)
        _OURS.clear()


def audit(event: str, _: tuple) -> None:
    """A hook of the interpreter that no submission can take away."""
    if event == "sys.setprofile" and not _OURS:
        raise RuntimeError("sys.setprofile is not for submissions")
