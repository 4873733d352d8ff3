"""Interventions in a model while a block runs: forbid a link, ablate a part, patch an activation.

An attention weight shows where a model looks, not what it needs. Each intervention changes one thing and leaves the
rest as it is, gradients and decoding on a cache included. Taught in *Self-attention* (forbid) and *Multi-head
attention* (ablate).

A place is the name of a module, such as "decoder.0.cross_attention". A layer has its attentions, its "feed_forward",
and its "residual", which is the layer's output. An attention is every module whose `forward` takes an `attn_mask`
(True = may attend), also one that a reader has written.

The path around a sublayer is its "shortcut", such as "decoder.0.cross_attention.shortcut". Norms have the names of
their modules, and the positions of a translator are "source_embedding.positions" and "target_embedding.positions".
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.hooks import Hooks
from course_utils.masks import causal_mask
from course_utils.places import Numbers, listed, matching

Run = Mapping[str, Tensor]
"""Activations by the name of a place: (batch, positions, features), of heads (batch, heads, positions, head_dim)."""


class Interventions(Hooks):
    """The interventions of `intervene`, which hold until its block ends, in the order of their calls.

    All of them have the arguments

        place: a name, whole ("decoder.0.cross_attention") or in part ("cross_attention",
            "decoder.feed_forward"); every attention by default.
        heads: numbers of heads; all by default.
        layers: numbers of layers, as they stand in the names; all by default.

    and raise ValueError where there is no such place, head, layer or position. Positions count from the first token,
    also on a cache; pixels are counted row by row.
    """

    def forbid(
        self,
        place: str | None = None,
        *,
        queries: Numbers = None,
        keys: Numbers = None,
        heads: Numbers = None,
        layers: Numbers = None,
    ) -> None:
        """Forbid queries to attend to keys. A query that may attend to no key at all gets zeros.

        The literature calls this attention knockout: Geva et al. (2023), "Dissecting recall of factual associations in
        auto-regressive language models".

        Args:
            queries, keys: their positions; all by default.
        """
        query_numbers, key_numbers = listed("queries", queries), listed("keys", keys)
        for name in matching(self.attentions, place, layers):
            module = self.attentions[name]
            num_heads = getattr(module, "num_heads", 1)
            chosen_heads = _among("heads", listed("heads", heads), num_heads, name)
            self.follow(self.places[name].caller)
            write = partial(self._write_mask, name, chosen_heads, query_numbers, key_numbers)
            self.change_arguments(module, write)

    def _write_mask(
        self,
        name: str,
        heads: Tensor,
        queries: list[int] | None,
        keys: list[int] | None,
        arguments: dict[str, Any],
    ) -> None:
        """Write a mask that forbids these queries these keys into the arguments of an attention."""
        x, cache = next(iter(arguments.values())), arguments.get("cache")
        is_picture = x.ndim == 4 and "queries" not in arguments  # (batch, channels, height, width)
        num_queries = x[0, 0].numel() if is_picture else x.shape[-2]
        new = arguments.get("keys" if "queries" in arguments else "tokens")
        num_keys = num_queries if new is None else new.shape[-2]
        if cache is not None:
            all_cached = "queries" in arguments and new is None
            num_keys = cache.length if all_cached else cache.length + num_keys
        start, is_all = self.starts[self.places[name].caller]
        chosen_queries = _among("queries", queries, num_queries, name, start, is_all)
        chosen_keys = _among("keys", keys, num_keys, name, 0, is_all)
        allowed = ~(heads[:, None, None] & chosen_queries[:, None] & chosen_keys).to(x.device)
        if arguments.get("is_causal"):
            allowed = allowed & causal_mask(num_keys, queries=num_queries, device=x.device)
            arguments["is_causal"] = False
        allowed = allowed[None] if hasattr(self.attentions[name], "num_heads") else allowed[0]
        mask = arguments.get("attn_mask")
        arguments["attn_mask"] = allowed if mask is None else mask & allowed

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
        """Replace the activations of a place, or of some heads, by zeros or by a mean.

        Without its heads an attention still adds the bias of its `out_proj`. Michel, Levy and Neubig (2019), "Are
        sixteen heads really better than one?"; by the mean: Wang et al. (2023), "Interpretability in the wild".

        Args:
            positions: of the tokens; all by default.
            by: "zero", or "mean" over all sequences and positions of a `run`.
            run: what `record_activations` has collected.

        Three kinds of places are ablated as a whole, so that only `layers` can be chosen: a "shortcut" adds zero to
        its sublayer's output (in layers with the norm before the sublayer), and norms ("norm", "decoder.norm") and
        positions ("positions", "source_embedding.positions") return their input.
        """
        kind = None if place is None else place.replace("_norm", ".norm").split(".")[-1]
        if place is not None and kind in ("shortcut", "norm", "positions"):
            if (heads, positions, by, run) != (None, None, "zero", None):
                raise ValueError(
                    f"place={place!r} is ablated as a whole and at all positions; only layers can be chosen"
                )
            return self.cut(place, layers) if kind == "shortcut" else self.bypass(place, layers)
        if by not in ("zero", "mean"):
            raise ValueError(f"by={by!r} is unknown; there are 'zero', 'mean'")
        if (by == "mean") != (run is not None):
            raise ValueError(f"by={by!r}; a run is needed for 'mean', and for nothing else")

        def value(name: str, x: Tensor, start: int) -> Tensor:
            if run is None:
                return x.new_zeros(())
            return _activation(run, name).mean(dim=-2, keepdim=True).mean(dim=0)

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
        """Replace the activations of a place, or of some heads, by those of another run (activation patching).

        Meng et al. (2022), "Locating and editing factual associations in GPT".

        Args:
            run: what `record_activations` has collected, with as many positions, and with one sequence or as
                many.
            positions: of the tokens; all by default.
        """

        def value(name: str, x: Tensor, start: int) -> Tensor:
            activation = _activation(run, name)[..., start : start + x.shape[-2], :]
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
        """Replace activations by `value(name, activation, position of its first token)`."""
        position_numbers, head_numbers = listed("positions", positions), listed("heads", heads)
        parts = [name for name in self.places if not name.endswith(".heads")]
        for name in matching(self.attentions if place is None else parts, place, layers):
            chosen = torch.tensor(True)
            if head_numbers is not None:
                if f"{name}.heads" not in self.places:
                    raise ValueError(f"heads={heads}; {name} has none that an out_proj joins")
                name = f"{name}.heads"
                num_heads = self.places[name].num_heads
                chosen = _among("heads", head_numbers, num_heads, name)[:, None, None]
            replace = partial(_replaced, partial(value, name), name, chosen, position_numbers)
            self.change_activation(name, replace)


@contextlib.contextmanager
def intervene(model: nn.Module) -> Iterator[Interventions]:
    """Interventions inside `model` while the block runs; afterwards the model is as it was.

        with intervene(model) as acts:
            acts.forbid("cross_attention", queries=3, keys=[0, 1], layers=1)
            acts.ablate(heads=2, layers=0)
            logits = model(source, source_lens, target)

    Blocks can be nested. In a copy of the model that is made inside, the interventions end with the block, too.

    Raises:
        ValueError: `model` contains no attention, or is compiled.
    """
    acts = Interventions(model)
    try:
        yield acts
    finally:
        acts.remove()


@contextlib.contextmanager
def record_activations(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Activations of every place inside `model`, by name and detached, collected while the block runs.

    Those of attentions, feed-forward networks and residuals are (batch, positions, features), and those of an
    attention's heads before `out_proj` ("layers.0.attention.heads") (batch, heads, positions, head_dim). Decoding
    step by step adds positions; any other call replaces what an earlier one left.

    Raises:
        ValueError: `model` contains no attention, or is compiled.
    """
    hooks = Hooks(model)
    run: dict[str, Tensor] = {}

    def keep(name: str, x: Tensor, start: int, is_all: bool) -> None:
        before = [run[name][..., :start, :]] if start and name in run else []
        run[name] = torch.cat([*before, x.detach()], dim=-2)

    try:
        for name in hooks.places:
            hooks.change_activation(name, partial(keep, name))
        yield run
    finally:
        hooks.remove()


def _replaced(
    value: Callable[[Tensor, int], Tensor],
    name: str,
    heads: Tensor,
    positions: list[int] | None,
    x: Tensor,
    start: int,
    is_all: bool,
) -> Tensor:
    """The activation x, with `value(x, start)` at these heads and positions."""
    chosen = _among("positions", positions, x.shape[-2], name, start, is_all)
    return torch.where((heads & chosen[:, None]).to(x.device), value(x, start), x)


def _among(
    name: str,
    numbers: list[int] | None,
    size: int,
    place: str,
    start: int = 0,
    is_all: bool = True,
) -> Tensor:
    """Boolean (size,), True at these numbers among `start` … `start + size − 1`; for None, everywhere.

    Raises:
        ValueError: a number is too large, where `is_all` says that there are no others.
    """
    if numbers is None:
        return torch.ones(size, dtype=torch.bool)
    if is_all and max(numbers) >= size:
        raise ValueError(f"{name}={numbers}; {place} has {size}, counted from 0")
    return torch.isin(torch.arange(start, start + size), torch.tensor(numbers))


def _activation(run: Run, name: str) -> Tensor:
    """The activation of a place in a run."""
    if name not in run:
        raise ValueError(f"run holds nothing of {name}; it has {', '.join(run) or 'nothing'}")
    return run[name]
