"""The residual stream of a model: norms and positions that can be skipped, shortcuts that can be cut.

What passes by a sublayer is added in a layer's `forward`, so no module gives it. The hooks here find it between the
norm that reads it and the dropout of what is added to it. `interventions` makes verbs of them.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from torch import Tensor, nn

from course_utils.positions import SinusoidalPositions

Numbers = int | Iterable[int] | None
"""One or several, counted from 0; None: all."""


class Stream:
    """A model and the hooks set on it."""

    def __init__(self, model: nn.Module):
        self.model = model
        self.handles: list[Any] = []
        self.embedding: nn.Module | None = None  # the one that was called last

    @property
    def passes(self) -> dict[str, tuple[nn.Module, nn.Module | None]]:
        """What `skip` can leave out: name → a module that keeps the shape, and the embedding it belongs to."""
        passes: dict[str, tuple[nn.Module, nn.Module | None]] = {}
        embeddings = [
            name for name in ("source_embedding", "target_embedding") if hasattr(self.model, name)
        ]
        for name, module in self.model.named_modules():
            if isinstance(module, nn.LayerNorm | nn.RMSNorm):
                passes[name] = module, None
            elif isinstance(module, SinusoidalPositions):
                passes |= {
                    f"{each}.{name}": (module, getattr(self.model, each)) for each in embeddings
                } or {name: (module, None)}
        return passes

    @property
    def shortcuts(self) -> dict[str, tuple[nn.Module, nn.Module]]:
        """Name of a shortcut → the norm that reads what passes by, and the dropout of what is added to it."""
        norms = [
            (name, name.removesuffix("_norm"), norm) for name, (norm, _) in self.passes.items()
        ]
        layers = {name: self.model.get_submodule(name.rpartition(".")[0]) for name, _, _ in norms}
        return {
            f"{sublayer}.shortcut": (norm, layers[name].get_submodule("dropout"))
            for name, sublayer, norm in norms
            if sublayer != name and getattr(layers[name], "norm_first", False)
            and hasattr(layers[name], sublayer.rpartition(".")[2])
        }  # fmt: skip

    def cut(self, place: str, layers: Numbers) -> None:
        """Let a sublayer's output replace its input: x + f(norm(x)) becomes f(norm(x))."""
        passing: dict[nn.Module, Tensor | None] = {}
        cut = {self.shortcuts[name] for name in chosen_among(self.shortcuts, place, layers)}
        for norm, dropout in self.shortcuts.values():

            def keep(_, given, norm=norm, dropout=dropout):
                passing[dropout] = given[0] if (norm, dropout) in cut else None

            def replace(dropout, given, added):
                x = passing.get(dropout) if self.handles else None
                return None if x is None else added - x

            self.handles.append(norm.register_forward_pre_hook(keep))
            if dropout not in passing:
                self.handles.append(dropout.register_forward_hook(replace))
                passing[dropout] = None

    def skip(self, place: str = "norm", *, layers: Numbers = None) -> None:
        """Let norms or positions give what they were given.

        A norm is skipped, not set to zero, because zeros would silence the sublayer that reads it.

        Args:
            place: "norm" for all norms, "decoder.norm" or the name of one, "positions" or, of one side,
                "source_embedding.positions".
            layers: numbers of layers; the norms that close a stack are in none.
        """
        passes = self.passes
        names = {name.replace("_norm", ".norm"): name for name in passes}
        for name in chosen_among(names, place.replace("_norm", ".norm"), layers):
            module, embedding = passes[names[name]]
            handle = module.register_forward_hook(partial(self._given_back, embedding))
            self.handles.append(handle)
        for embedding in {embedding for _, embedding in passes.values() if embedding is not None}:
            self.handles.append(embedding.register_forward_hook(self._note))

    def _note(self, embedding: nn.Module, given: tuple, whole: Tensor) -> None:
        self.embedding = embedding

    def _given_back(
        self, embedding: nn.Module | None, module: nn.Module, given: tuple, whole: Tensor
    ) -> Tensor | None:
        is_here = self.handles and (embedding is None or embedding is self.embedding)
        return given[0] if is_here else None


def chosen_among(names: Iterable[str], place: str | None, layers: Numbers) -> list[str]:
    """The names of these places in these layers."""
    names, numbers = list(names), listed("layers", layers)
    wanted = [] if place is None else place.split(".")
    matching = [name for name in names if _fits(wanted, name.split("."))]
    if not matching:
        raise ValueError(f"place={place!r} is unknown; there are {', '.join(names)}")
    if numbers is None:
        return matching
    layer_of = {n: next((int(p) for p in n.split(".") if p.isdigit()), None) for n in matching}
    if not set(numbers) <= set(layer_of.values()):
        raise ValueError(f"layers={layers}; their numbers stand in {', '.join(matching)}")
    return [name for name in matching if layer_of[name] in numbers]


def _fits(wanted: list[str], parts: list[str]) -> bool:
    """Whether the parts contain the wanted ones in this order, and end as they do."""
    rest = iter(parts)
    return all(part in rest for part in wanted) and wanted[-1:] in ([], parts[-1:])


def listed(name: str, numbers: Numbers) -> list[int] | None:
    """The numbers as a list; None for all."""
    if numbers is None:
        return None
    listed = [numbers] if isinstance(numbers, int) else list(numbers)
    if not listed or min(listed) < 0:
        raise ValueError(f"{name}={numbers}; numbers counted from 0 are needed, or None for all")
    return listed
