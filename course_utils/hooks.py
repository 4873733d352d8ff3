"""Hooks: the activations and arguments inside a model, read and changed where `places` finds them.

`interventions` is built on them.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from course_utils.attention import merge_heads, split_heads
from course_utils.places import (
    Numbers,
    find_attentions,
    find_bypassable,
    find_places,
    find_shortcuts,
    matching,
)


class Hooks:
    """Hooks set at the places of a model, until `remove`.

    Args:
        model: a module with at least one attention inside.

    Attributes:
        attentions: attention modules by name.
        places: all places by name.
        starts: for each caller, the position of the first token of its last call, and whether this call
            holds all tokens, since it came without a cache.

    Raises:
        ValueError: `model` contains no attention, or is compiled.
    """

    def __init__(self, model: nn.Module):
        if any(hasattr(part, "_orig_mod") or part._compiled_call_impl for part in model.modules()):
            raise ValueError(
                "model is compiled, so hooks are skipped; give what went into torch.compile, or copy.deepcopy(model)"
            )
        self.model = model
        self.attentions = find_attentions(model)
        self.places = find_places(model, self.attentions)
        self.starts: dict[nn.Module, tuple[int, bool]] = {}
        self.handles: list[Any] = []
        self.last_embedding: nn.Module | None = None  # the one that was called last

    def change_arguments(self, module: nn.Module, change: Callable[[dict[str, Any]], None]) -> None:
        """Let `change` write into the arguments, by name, of each call of a module."""

        def hook(module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
            if not self.handles:  # in a copy of the model, made while the hooks were set
                return None
            bound = inspect.signature(module.forward).bind(*args, **kwargs)
            change(bound.arguments)
            return bound.args, bound.kwargs

        self.handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))

    def change_activation(
        self, name: str, change: Callable[[Tensor, int, bool], Tensor | None]
    ) -> None:
        """Let `change` replace each activation of a place.

        Args:
            name: of the place.
            change: called with the activation, (batch, positions, features) or, of heads, (batch, heads,
                positions, head_dim), and its entry in `starts`. It returns a new activation, or None.
        """
        place = self.places[name]
        self.follow(place.caller)

        def changed(output: Tensor) -> Tensor | None:
            if not self.handles:
                return None
            is_picture = isinstance(place.module, nn.Conv1d) or output.ndim == 4  # channels first
            x = output.flatten(2).mT if is_picture else output
            x = split_heads(x, place.num_heads) if place.num_heads else x
            new = change(x, *self.starts[place.caller])
            if new is None:
                return None
            new = merge_heads(new) if place.num_heads else new
            return new.mT.reshape(output.shape) if is_picture else new

        if place.num_heads:
            handle = place.module.register_forward_pre_hook(lambda _, args: changed(args[0]))
        else:
            handle = place.module.register_forward_hook(lambda _, args, output: changed(output))
        self.handles.append(handle)

    def follow(self, caller: nn.Module) -> None:
        """Keep the entry of a caller in `starts` up to date."""

        def read(arguments: dict[str, Any]) -> None:
            cache = arguments.get("cache")
            start = arguments.get("start", 0) if cache is None else cache.length
            self.starts[caller] = start, cache is None and "start" not in arguments

        if caller not in self.starts:
            self.starts[caller] = 0, True
            self.change_arguments(caller, read)

    def cut(self, place: str, layers: Numbers) -> None:
        """Replace the stream by a sublayer's output: x + f(norm(x)) becomes f(norm(x)).

        Args:
            place: name of a shortcut, whole or in part, such as "decoder.feed_forward.shortcut".
            layers: numbers of layers.

        Raises:
            ValueError: there is no such place or layer.
        """
        shortcuts = find_shortcuts(self.model)
        streams: dict[nn.Module, Tensor | None] = {}  # dropout → the x that is subtracted after it
        cut = {shortcuts[name] for name in matching(shortcuts, place, layers)}
        for norm, dropout in shortcuts.values():

            def keep(_, args, norm=norm, dropout=dropout):
                streams[dropout] = args[0] if (norm, dropout) in cut else None

            def subtract(dropout, _, output):
                x = streams.get(dropout) if self.handles else None
                return None if x is None else output - x

            self.handles.append(norm.register_forward_pre_hook(keep))
            if dropout not in streams:
                self.handles.append(dropout.register_forward_hook(subtract))
                streams[dropout] = None

    def bypass(self, place: str, layers: Numbers) -> None:
        """Let norms or positions return their input.

        A norm is bypassed, not set to zero, because the sublayer that reads it would then get zeros.

        Args:
            place: "norm" for all norms, "decoder.norm" or the name of one, "positions" or, of one side,
                "source_embedding.positions".
            layers: numbers of layers; the norm at the end of a stack is in none.

        Raises:
            ValueError: there is no such place or layer.
        """
        bypassable = find_bypassable(self.model)
        names = {name.replace("_norm", ".norm"): name for name in bypassable}
        for name in matching(names, place.replace("_norm", ".norm"), layers):
            module, embedding = bypassable[names[name]]
            handle = module.register_forward_hook(partial(self._return_input, embedding))
            self.handles.append(handle)
        for embedding in {embedding for _, embedding in bypassable.values() if embedding}:
            self.handles.append(embedding.register_forward_hook(self._remember))

    def _remember(self, embedding: nn.Module, args: tuple, output: Tensor) -> None:
        self.last_embedding = embedding

    def _return_input(
        self, embedding: nn.Module | None, module: nn.Module, args: tuple, output: Tensor
    ) -> Tensor | None:
        applies = embedding is None or embedding is self.last_embedding
        return args[0] if self.handles and applies else None

    def remove(self) -> None:
        """Remove all hooks, so that the model is as it was."""
        while self.handles:
            self.handles.pop().remove()
