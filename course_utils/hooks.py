"""Hooks: where the activations inside a model are read and changed, without any change to its code.

Most activations are the output of a module. The residual stream is not: a layer's `forward` adds the input of a
sublayer to its output. `Stream` finds that input where a norm reads it, and the output where the layer's dropout
returns it. `interventions` is built on both classes.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from course_utils.attention import merge_heads, split_heads
from course_utils.positions import SinusoidalPositions

Numbers = int | Iterable[int] | None
"""One number or several, counted from 0; None for all."""


class Stream:
    """The residual stream of a model, and the hooks set on it.

    Args:
        model: any module; hooks are found by the names of norms, dropouts and positions in it.
    """

    def __init__(self, model: nn.Module):
        self.model = model
        self.handles: list[Any] = []
        self.last_embedding: nn.Module | None = None  # the one that was called last

    @property
    def skippable(self) -> dict[str, tuple[nn.Module, nn.Module | None]]:
        """Modules that `skip` can leave out, by name: norms, and positions with the embedding they follow."""
        skippable: dict[str, tuple[nn.Module, nn.Module | None]] = {}
        embeddings = [
            name for name in ("source_embedding", "target_embedding") if hasattr(self.model, name)
        ]
        for name, module in self.model.named_modules():
            if isinstance(module, nn.LayerNorm | nn.RMSNorm):
                skippable[name] = module, None
            elif isinstance(module, SinusoidalPositions):
                skippable |= {
                    f"{each}.{name}": (module, getattr(self.model, each)) for each in embeddings
                } or {name: (module, None)}
        return skippable

    @property
    def shortcuts(self) -> dict[str, tuple[nn.Module, nn.Module]]:
        """Shortcuts by name: the norm that reads the stream, and the dropout of what is added to it."""
        norms = [
            (name, name.removesuffix("_norm"), norm) for name, (norm, _) in self.skippable.items()
        ]
        layers = {name: self.model.get_submodule(name.rpartition(".")[0]) for name, _, _ in norms}
        return {
            f"{sublayer}.shortcut": (norm, layers[name].get_submodule("dropout"))
            for name, sublayer, norm in norms
            if sublayer != name and getattr(layers[name], "norm_first", False)
            and hasattr(layers[name], sublayer.rpartition(".")[2])
        }  # fmt: skip

    def cut(self, place: str, layers: Numbers) -> None:
        """Replace the stream by a sublayer's output: x + f(norm(x)) becomes f(norm(x)).

        Args:
            place: name of a shortcut, whole or in part, such as "decoder.feed_forward.shortcut".
            layers: numbers of layers.

        Raises:
            ValueError: there is no such place or layer.
        """
        streams: dict[nn.Module, Tensor | None] = {}  # dropout → the x that is subtracted after it
        cut = {self.shortcuts[name] for name in matching(self.shortcuts, place, layers)}
        for norm, dropout in self.shortcuts.values():

            def keep(_, args, norm=norm, dropout=dropout):
                streams[dropout] = args[0] if (norm, dropout) in cut else None

            def subtract(dropout, _, output):
                x = streams.get(dropout) if self.handles else None
                return None if x is None else output - x

            self.handles.append(norm.register_forward_pre_hook(keep))
            if dropout not in streams:
                self.handles.append(dropout.register_forward_hook(subtract))
                streams[dropout] = None

    def skip(self, place: str = "norm", *, layers: Numbers = None) -> None:
        """Let norms or positions return their input.

        A norm is skipped, not set to zero, because the sublayer that reads it would then get zeros.

        Args:
            place: "norm" for all norms, "decoder.norm" or the name of one, "positions" or, of one side,
                "source_embedding.positions".
            layers: numbers of layers; the norm at the end of a stack is in none.

        Raises:
            ValueError: there is no such place or layer.
        """
        skippable = self.skippable
        names = {name.replace("_norm", ".norm"): name for name in skippable}
        for name in matching(names, place.replace("_norm", ".norm"), layers):
            module, embedding = skippable[names[name]]
            handle = module.register_forward_hook(partial(self._return_input, embedding))
            self.handles.append(handle)
        for embedding in {embedding for _, embedding in skippable.values() if embedding}:
            self.handles.append(embedding.register_forward_hook(self._remember))

    def _remember(self, embedding: nn.Module, args: tuple, output: Tensor) -> None:
        self.last_embedding = embedding

    def _return_input(
        self, embedding: nn.Module | None, module: nn.Module, args: tuple, output: Tensor
    ) -> Tensor | None:
        applies = embedding is None or embedding is self.last_embedding
        return args[0] if self.handles and applies else None


@dataclass(frozen=True)
class Place:
    """A place whose activations can be read and changed.

    Attributes:
        module: its output is the activation; of heads, its input is the heads side by side.
        caller: module whose arguments `cache` or `start` tell the position of the first token.
        num_heads: number of heads; 0 where the activation is not of heads.
    """

    module: nn.Module
    caller: nn.Module
    num_heads: int = 0


class Hooks(Stream):
    """All places of a model, and the hooks set on them until `remove`.

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
        super().__init__(model)
        if any(hasattr(part, "_orig_mod") or part._compiled_call_impl for part in model.modules()):
            raise ValueError(
                "model is compiled, so hooks are skipped; give what went into torch.compile, or copy.deepcopy(model)"
            )
        self.attentions = {
            name: module for name, module in model.named_modules() if _is_attention(module)
        }
        if not self.attentions:
            raise ValueError(f"{type(model).__name__} contains no attention that takes a mask")
        self.places: dict[str, Place] = {}
        self.starts: dict[nn.Module, tuple[int, bool]] = {}
        for name, module in self.attentions.items():
            parent = name.rpartition(".")[0]
            layer = model.get_submodule(parent)
            caller = layer if "cache" in _parameters(layer) else module
            last: nn.Module = getattr(module, "out_proj", module)
            self.places[name] = Place(last, caller)
            if last is not module and hasattr(module, "num_heads"):
                self.places[f"{name}.heads"] = Place(last, caller, module.num_heads)
            if parent and not isinstance(layer, nn.ModuleList):
                if hasattr(layer, "feed_forward"):
                    network = layer.get_submodule("feed_forward")
                    self.places[f"{parent}.feed_forward"] = Place(network, caller)
                self.places[f"{parent}.residual"] = Place(layer, caller)

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

    def remove(self) -> None:
        """Remove all hooks, so that the model is as it was."""
        while self.handles:
            self.handles.pop().remove()


def matching(names: Iterable[str], place: str | None, layers: Numbers) -> list[str]:
    """The names that a place, whole or in part, stands for in these layers.

    Args:
        names: dotted names of modules.
        place: parts of a name in their order, of which the last ends it; None for all names.
        layers: numbers of layers, which stand in the names.

    Raises:
        ValueError: no name matches, or a layer is in none of those that do.
    """
    names, numbers = list(names), listed("layers", layers)
    wanted = [] if place is None else place.split(".")
    found = [name for name in names if _matches(wanted, name.split("."))]
    if not found:
        raise ValueError(f"place={place!r} is unknown; there are {', '.join(names)}")
    if numbers is None:
        return found
    layer_of = {n: next((int(p) for p in n.split(".") if p.isdigit()), None) for n in found}
    if not set(numbers) <= set(layer_of.values()):
        raise ValueError(f"layers={layers}; their numbers stand in {', '.join(found)}")
    return [name for name in found if layer_of[name] in numbers]


def _matches(wanted: list[str], parts: list[str]) -> bool:
    """Whether the parts of a name contain the wanted ones in this order, and end as they do."""
    rest = iter(parts)
    return all(part in rest for part in wanted) and wanted[-1:] in ([], parts[-1:])


def listed(name: str, numbers: Numbers) -> list[int] | None:
    """The numbers as a list; None for all.

    Raises:
        ValueError: there is none, or one is negative.
    """
    if numbers is None:
        return None
    listed = [numbers] if isinstance(numbers, int) else list(numbers)
    if not listed or min(listed) < 0:
        raise ValueError(f"{name}={numbers}; numbers counted from 0 are needed, or None for all")
    return listed


def _parameters(module: nn.Module) -> Mapping[str, inspect.Parameter]:
    """Parameters of a module's `forward`, by name."""
    return inspect.signature(type(module).forward).parameters


def _is_attention(module: nn.Module) -> bool:
    """Whether a module takes a mask, and no module inside it takes one."""
    takers = [
        part
        for part in module.modules()
        if "attn_mask" in _parameters(part) and not isinstance(part, nn.MultiheadAttention)
    ]
    return takers == [module]
