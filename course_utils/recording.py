"""Recorded attention: the weights of every attention module inside a model, while a block runs.

Taught in *Bahdanau attention*, where the first map of a translation is drawn.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn


class Attention(nn.Module):
    """Base class of attention modules, which hand their weights to `record_attention`."""

    _recorder: Callable[[Tensor], None] | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether a block of `record_attention` is open around this module."""
        return self._recorder is not None

    def record(self, weights: Callable[[], Tensor]) -> None:
        """Record the weights that `weights()` returns; it is called inside `record_attention` only."""
        if self._recorder is not None:
            with torch.no_grad():
                self._recorder(weights().detach())

    def __getstate__(self) -> dict:
        """The state of a copy and of a file: all attributes but the recording."""
        return {name: value for name, value in self.__dict__.items() if name != "_recorder"}


@contextlib.contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Attention weights of every module inside `model`, by name, collected while the block runs.

    The weights are computed only inside the block: before dropout, detached, (batch, heads, queries, keys) for
    multi-head and (batch, queries, keys) for single modules, keyed by the module's name in `model` ("attention" for
    `model` itself). A module that is called again replaces what it left before. A copy of the model made inside the
    block does not record. One thread at a time may look at a model.

        with record_attention(model) as maps:
            model(tokens)
        maps["encoder.layers.0.attention"]

    Raises:
        ValueError: `model` contains no attention module of ours.
    """
    modules = {
        name or "attention": module
        for name, module in model.named_modules()
        if isinstance(module, Attention)
    }
    if not modules:
        raise ValueError(f"{type(model).__name__} contains no course_utils attention module")
    maps: dict[str, Tensor] = {}
    before = {name: module._recorder for name, module in modules.items()}
    try:
        for name, module in modules.items():
            module._recorder = functools.partial(maps.__setitem__, name)
        yield maps
    finally:
        for name, module in modules.items():
            module._recorder = before[name]


def is_observed(module: nn.Module) -> bool:
    """Whether a module is looked into: by `record_attention`, or by hooks, such as those of `interventions`."""
    return any(
        part._forward_hooks
        or part._forward_pre_hooks
        or (isinstance(part, Attention) and part.is_recorded)
        for part in module.modules()
    )
