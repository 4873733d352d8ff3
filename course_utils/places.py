"""Places: the names of activations inside a model, found without any change to its code.

Most activations are the output of a module. The residual stream is not: a layer's `forward` adds the input of a
sublayer to its output. A norm reads that input, and the layer's dropout returns that output, so a "shortcut" is found
by both. `hooks` reads and changes what stands at a place.
"""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from course_utils.positions import SinusoidalPositions

Numbers = int | Iterable[int] | None
"""One number or several, counted from 0; None for all."""


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


def find_attentions(model: nn.Module) -> dict[str, nn.Module]:
    """Attention modules by name: those that take a mask, and no module inside them takes one.

    Raises:
        ValueError: there is none.
    """
    attentions = {
        name or "attention": module
        for name, module in model.named_modules()
        if _is_attention(module)
    }
    if not attentions:
        raise ValueError(f"{type(model).__name__} contains no attention that takes a mask")
    return attentions


def find_places(model: nn.Module, attentions: Mapping[str, Any]) -> dict[str, Place]:
    """Places by name: each attention, its heads, and the feed-forward network and residual of its layer."""
    places: dict[str, Place] = {}
    for name, module in attentions.items():
        parent = name.rpartition(".")[0]
        layer = model.get_submodule(parent)
        caller = layer if "cache" in _parameters(layer) else module
        last: nn.Module = getattr(module, "out_proj", module)
        places[name] = Place(last, caller)
        if last is not module and hasattr(module, "num_heads"):
            places[f"{name}.heads"] = Place(last, caller, module.num_heads)
        if parent and not isinstance(layer, nn.ModuleList):
            if hasattr(layer, "feed_forward"):
                network = layer.get_submodule("feed_forward")
                places[f"{parent}.feed_forward"] = Place(network, caller)
            places[f"{parent}.residual"] = Place(layer, caller)
    return places


def find_bypassable(model: nn.Module) -> dict[str, tuple[nn.Module, nn.Module | None]]:
    """Norms by name, and positions, each with the embedding whose output they are added to."""
    bypassable: dict[str, tuple[nn.Module, nn.Module | None]] = {}
    embeddings = [name for name in ("source_embedding", "target_embedding") if hasattr(model, name)]
    for name, module in model.named_modules():
        if isinstance(module, nn.LayerNorm | nn.RMSNorm):
            bypassable[name] = module, None
        elif isinstance(module, SinusoidalPositions):
            bypassable |= {
                f"{each}.{name}": (module, getattr(model, each)) for each in embeddings
            } or {name: (module, None)}
    return bypassable


def find_shortcuts(model: nn.Module) -> dict[str, tuple[nn.Module, nn.Module]]:
    """Shortcuts by name: the norm that reads the stream, and the dropout of what is added to it."""
    shortcuts = {}
    for name, (norm, _) in find_bypassable(model).items():
        parent, _, norm_name = name.rpartition(".")
        layer, sublayer = model.get_submodule(parent), norm_name.removesuffix("_norm")
        if (
            sublayer != norm_name
            and getattr(layer, "norm_first", False)
            and hasattr(layer, sublayer)
        ):
            place = f"{name.removesuffix('_norm')}.shortcut"
            shortcuts[place] = norm, layer.get_submodule("dropout")
    return shortcuts


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
