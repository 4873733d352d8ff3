"""Interventions: forbid a look, take a part away, or put in what it gave in another run.

A weight shows where a model looks, not what it needs. These verbs change one thing and leave the rest as
it is, gradients and decoding on a cache included. Taught in *Self-attention* (looks) and *Multi-head
attention* (heads).

A place is named as its module, such as "decoder.0.cross_attention". In a layer there are its attentions,
its "feed_forward", and its "residual": what the layer gives. An attention is every module whose `forward`
takes an `attn_mask` (True = may attend), also one that a reader has written.

What passes by a sublayer is its "shortcut", "decoder.0.cross_attention.shortcut"; norms have the names of
their modules, and the positions of a translator are "source_embedding.positions" and
"target_embedding.positions".
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.attention import merge_heads, split_heads
from course_utils.masks import causal_mask
from course_utils.recording import observing
from course_utils.stream import Numbers, Stream, chosen_among, listed

Run = Mapping[str, Tensor]
"""Activations by place: (batch, positions, features), of heads (batch, heads, positions, head_dim)."""


@dataclass(frozen=True)
class Place:
    """What `module` gives or, if there are `num_heads`, what the heads side by side give to it.

    The arguments of `clock` tell at which position a call begins.
    """

    module: nn.Module
    clock: nn.Module
    num_heads: int = 0


class Hooks(Stream):
    """The places of a model, and the hooks set on them until `remove`."""

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
        self.calls: dict[nn.Module, tuple[int, bool]] = {}
        for name, module in self.attentions.items():
            parent = name.rpartition(".")[0]
            layer = model.get_submodule(parent)
            clock = layer if "cache" in _parameters(layer) else module
            last: nn.Module = getattr(module, "out_proj", module)
            self.places[name] = Place(last, clock)
            if last is not module and hasattr(module, "num_heads"):
                self.places[f"{name}.heads"] = Place(last, clock, module.num_heads)
            if parent and not isinstance(layer, nn.ModuleList):
                if hasattr(layer, "feed_forward"):
                    network = layer.get_submodule("feed_forward")
                    self.places[f"{parent}.feed_forward"] = Place(network, clock)
                self.places[f"{parent}.residual"] = Place(layer, clock)

    def before(self, module: nn.Module, change: Callable[[dict[str, Any]], None]) -> None:
        """Let `change` write into the arguments, by name, of each call of the module."""

        def hook(module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
            if not self.handles:  # in a copy of the model, made while the hooks were set
                return None
            bound = inspect.signature(module.forward).bind(*args, **kwargs)
            change(bound.arguments)
            return bound.args, bound.kwargs

        self.handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))

    def at(self, name: str, change: Callable[[Tensor, int, bool], Tensor | None]) -> None:
        """Give each activation of a place, and what `tell` keeps, to `change`; what it returns goes on."""
        place = self.places[name]
        self.tell(place.clock)

        def changed(whole: Tensor) -> Tensor | None:
            if not self.handles:
                return None
            pixels = isinstance(place.module, nn.Conv1d) or whole.ndim == 4  # channels come first
            x = whole.flatten(2).mT if pixels else whole
            x = split_heads(x, place.num_heads) if place.num_heads else x
            new = change(x, *self.calls[place.clock])
            if new is None:
                return None
            new = merge_heads(new) if place.num_heads else new
            return new.mT.reshape(whole.shape) if pixels else new

        if place.num_heads:
            handle = place.module.register_forward_pre_hook(lambda _, given: changed(given[0]))
        else:
            handle = place.module.register_forward_hook(lambda _, given, whole: changed(whole))
        self.handles.append(handle)

    def tell(self, clock: nn.Module) -> None:
        """Keep in `calls` at which position each call of this module begins, and whether it is the only one."""

        def read(given: dict[str, Any]) -> None:
            cache = given.get("cache")
            start = given.get("start", 0) if cache is None else cache.length
            self.calls[clock] = start, cache is None and "start" not in given

        if clock not in self.calls:
            self.calls[clock] = 0, True
            self.before(clock, read)

    def remove(self) -> None:
        """Leave the model as it was."""
        while self.handles:
            self.handles.pop().remove()


class Interventions(Hooks):
    """The verbs of `intervene`, in force until its block ends, one after the other as they were called.

    All of them take

        place: a name, whole ("decoder.0.cross_attention") or in part ("cross_attention",
            "decoder.feed_forward"); every attention by default.
        heads: numbers of heads.
        layers: numbers of layers, as they stand in the names.

    and raise ValueError where there is no such thing. Positions count from the first token, on a cache,
    too; pixels are counted row by row.
    """

    def knock_out(
        self,
        place: str | None = None,
        *,
        queries: Numbers = None,
        keys: Numbers = None,
        heads: Numbers = None,
        layers: Numbers = None,
    ) -> None:
        """Forbid these queries to look at these keys: the softmax is over what remains, if anything does.

        Attention knockout; Geva et al. (2023), "Dissecting recall of factual associations in
        auto-regressive language models".
        """
        asks, seen = listed("queries", queries), listed("keys", keys)
        for name in chosen_among(self.attentions, place, layers):
            module = self.attentions[name]
            which = _marked("heads", listed("heads", heads), getattr(module, "num_heads", 1), name)
            self.tell(self.places[name].clock)
            self.before(module, partial(self._forbid, name, which, asks, seen))

    def _forbid(
        self,
        name: str,
        heads: Tensor,
        queries: list[int] | None,
        keys: list[int] | None,
        given: dict[str, Any],
    ) -> None:
        """Write a mask, without these looks, into what an attention is given."""
        x, cache = next(iter(given.values())), given.get("cache")
        of_pixels = x.ndim == 4 and "queries" not in given  # (batch, channels, height, width)
        asking = x[0, 0].numel() if of_pixels else x.shape[-2]
        new = given.get("keys" if "queries" in given else "tokens")
        looked_at = asking if new is None else new.shape[-2]
        if cache is not None:
            looked_at = (
                cache.length if "queries" in given and new is None else cache.length + looked_at
            )
        start, whole = self.calls[self.places[name].clock]
        asks = _marked("queries", queries, asking, name, start, whole)
        seen = _marked("keys", keys, looked_at, name, 0, whole)
        allowed = ~(heads[:, None, None] & asks[:, None] & seen).to(x.device)
        if given.get("is_causal"):  # the queries are the last of the keys
            allowed = allowed & causal_mask(looked_at, queries=asking, device=x.device)
            given["is_causal"] = False
        allowed = allowed[None] if hasattr(self.attentions[name], "num_heads") else allowed[0]
        mask = given.get("attn_mask")
        given["attn_mask"] = allowed if mask is None else mask & allowed

    def ablate(
        self,
        place: str | None = None,
        *,
        heads: Numbers = None,
        layers: Numbers = None,
        positions: Numbers = None,
        by: str = "zero",
        run: Run | None = None,
    ) -> None:
        """Put zeros, or a mean, in the place of what a part, or some heads of an attention, give.

        Without its heads an attention still gives its bias. Michel, Levy and Neubig (2019), "Are sixteen
        heads really better than one?"; by the mean: Wang et al. (2023), "Interpretability in the wild".

        Args:
            positions: where; everywhere by default.
            by: "zero", or "mean" over all sequences and positions of a `run`.
            run: what `record_activations` has collected.

        A "shortcut" can only be taken away whole, by zero, in layers with the norm before the sublayer.
        """
        if place is not None and place.split(".")[-1] == "shortcut":
            if (heads, positions, by, run) != (None, None, "zero", None):
                raise ValueError(
                    f"place={place!r} is taken away whole and by zero; give layers only"
                )
            return self.cut(place, layers)
        if by not in ("zero", "mean"):
            raise ValueError(f"by={by!r} is unknown; there are 'zero', 'mean'")
        if (by == "mean") != (run is not None):
            raise ValueError(f"by={by!r}; a run is needed for 'mean', and for nothing else")

        def value(name: str, x: Tensor, start: int) -> Tensor:
            if run is None:
                return x.new_zeros(())
            return _of(run, name).mean(dim=-2, keepdim=True).mean(dim=0)

        self._replace(value, place, heads, layers, positions)

    def patch(
        self,
        place: str | None,
        run: Run,
        *,
        heads: Numbers = None,
        layers: Numbers = None,
        positions: Numbers = None,
    ) -> None:
        """Put in what a part, or some heads of an attention, gave in another run.

        Activation patching; Meng et al. (2022), "Locating and editing factual associations in GPT".

        Args:
            run: what `record_activations` has collected, of as many positions, and of one sequence or
                as many.
            positions: where; everywhere by default.
        """

        def value(name: str, x: Tensor, start: int) -> Tensor:
            activation = _of(run, name)[..., start : start + x.shape[-2], :]
            if activation.shape[1:] != x.shape[1:] or len(activation) not in (1, len(x)):
                raise ValueError(
                    f"run[{name!r}] has shape {tuple(run[name].shape)}; "
                    f"from position {start} on {tuple(x.shape)} is needed"
                )
            return activation

        self._replace(value, place, heads, layers, positions)

    def _replace(
        self,
        value: Callable[[str, Tensor, int], Tensor],
        place: str | None,
        heads: Numbers,
        layers: Numbers,
        positions: Numbers,
    ) -> None:
        where, which = listed("positions", positions), listed("heads", heads)
        parts = [name for name in self.places if not name.endswith(".heads")]
        for name in chosen_among(self.attentions if place is None else parts, place, layers):
            chosen = torch.tensor(True)
            if which is not None:
                if f"{name}.heads" not in self.places:
                    raise ValueError(f"heads={heads}; {name} has none that an out_proj joins")
                name = f"{name}.heads"
                chosen = _marked("heads", which, self.places[name].num_heads, name)[:, None, None]
            self.at(name, partial(_exchanged, partial(value, name), name, chosen, where))


@contextlib.contextmanager
def intervene(model: nn.Module) -> Iterator[Interventions]:
    """Change what happens inside `model` while the block runs; afterwards the model is as it was.

        with intervene(model) as acts:
            acts.knock_out("cross_attention", queries=3, keys=[0, 1], layers=1)
            acts.ablate(heads=2, layers=0)
            logits = model(source, source_lens, target)

    Blocks may stand in each other. A copy of the model that is made inside obeys no longer than the block.

    Raises:
        ValueError: `model` contains no attention, or is compiled.
    """
    acts = Interventions(model)
    try:
        with observing():
            yield acts
    finally:
        acts.remove()


@contextlib.contextmanager
def record_activations(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect, detached, what every place inside `model` gives while the block runs.

    By name: of attentions, networks and residuals (batch, positions, features), of an attention's heads, before
    they are joined ("layers.0.attention.heads"), (batch, heads, positions, head_dim). Decoding step by step
    adds positions; any other call replaces what an earlier one left.

    Raises:
        ValueError: `model` contains no attention, or is compiled.
    """
    hooks = Hooks(model)
    run: dict[str, Tensor] = {}

    def keep(name: str, x: Tensor, start: int, whole: bool) -> None:
        before = [run[name][..., :start, :]] if start and name in run else []
        run[name] = torch.cat([*before, x.detach()], dim=-2)

    try:
        for name in hooks.places:
            hooks.at(name, partial(keep, name))
        with observing():
            yield run
    finally:
        hooks.remove()


def _exchanged(
    value: Callable[[Tensor, int], Tensor],
    name: str,
    heads: Tensor,
    positions: list[int] | None,
    x: Tensor,
    start: int,
    whole: bool,
) -> Tensor:
    """The activation, but the `value` at these heads and positions."""
    here = _marked("positions", positions, x.shape[-2], name, start, whole)
    return torch.where((heads & here[:, None]).to(x.device), value(x, start), x)


def _parameters(module: nn.Module) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(type(module).forward).parameters


def _is_attention(module: nn.Module) -> bool:
    """Whether it takes a mask, and hands it on to no module inside."""
    takers = [
        part
        for part in module.modules()
        if "attn_mask" in _parameters(part) and not isinstance(part, nn.MultiheadAttention)
    ]
    return takers == [module]


def _marked(
    name: str,
    numbers: list[int] | None,
    size: int,
    where: str,
    start: int = 0,
    whole: bool = True,
) -> Tensor:
    """True at these numbers among `start` … `start + size − 1`, boolean (size,); all for None."""
    if numbers is None:
        return torch.ones(size, dtype=torch.bool)
    if whole and max(numbers) >= size:
        raise ValueError(f"{name}={numbers}; {where} has {size}, counted from 0")
    places = torch.arange(start, start + size)
    return torch.isin(places, torch.tensor(numbers))


def _of(run: Run, name: str) -> Tensor:
    if name not in run:
        raise ValueError(f"run holds nothing of {name}; it has {', '.join(run) or 'nothing'}")
    return run[name]
