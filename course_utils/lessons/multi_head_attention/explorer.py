"""The maps of 1, 2, 4 or 8 heads that learned two look-ups, and what each head is worth."""

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from course_utils.cache import record_attention
from course_utils.figures import COLORS, heatmap, subplots
from course_utils.interventions import intervene
from course_utils.kit.explorer import Explorer, Slider
from course_utils.lessons.multi_head_attention.lookups import (
    LookupNetwork,
    lookup_accuracy,
    train_lookups,
    two_lookups,
)

__all__ = ["heads"]

GRIDS = {1: (1, 1), 2: (1, 2), 4: (2, 2), 8: (2, 4)}
"""Rows and columns of maps for each number of heads."""

NUM_HEADS = tuple(GRIDS)
SEEDS = (0, 1, 2)
SHOWN = ("AB", "BA", "CF", "FC", "DH", "HD", "EG", "GE")
"""Requests in the maps: each drawer stands once first and once second."""
MARKER = {
    "color": COLORS["query"], "markerfacecolor": "none", "markersize": 6, "markeredgewidth": 1.0,
    "path_effects": [withStroke(linewidth=2.6, foreground="white")],  # seen on dark cells, too
}  # fmt: skip


def heads(networks: Mapping[tuple[int, int], LookupNetwork] | None = None) -> Explorer:
    """Maps of every head on eight requests, and the accuracy over all requests and fillings.

    Args:
        networks: (number of heads, seed) → trained network, for 1, 2, 4 and 8 heads and the same
            seeds each; their layers may be others than the package's, with the same weights. Without it
            they are trained here, which takes some seconds.

    Raises:
        ValueError: a number of heads or a seed is missing.
    """
    networks = _trained() if networks is None else networks
    seeds = tuple(sorted({seed for _, seed in networks}))
    missing = [(h, seed) for h in NUM_HEADS for seed in seeds if (h, seed) not in networks]
    if missing or not seeds:
        raise ValueError(f"networks lacks {missing or 'every seed'}; (heads, seed) for {NUM_HEADS}")
    seen = {key: _look_at(_twin(network, key[0])) for key, network in networks.items()}
    controls = {
        "num_heads": Slider(NUM_HEADS, 2, label="Heads h"),
        "seed": Slider(seeds, seeds[0], label="Seed"),
    }
    caption = (
        "○ first drawer asked for, □ second. Above a map: how often both balls are right without this head. "
        "Dashed: ¾, the most that one head can reach."
    )
    return Explorer("heads", lambda: Maps(seen), controls, caption=caption)


@dataclass(frozen=True)
class Seen:
    """What one network does.

    Attributes:
        maps: (heads, requests shown, drawers).
        accuracy: of the first ball, of the second, of both.
        without: accuracy of both without each head.
    """

    maps: np.ndarray
    accuracy: list[float]
    without: list[float]


class Maps:
    """The maps of all heads, as large as there is room for, and bars of the accuracy below them."""

    def __init__(self, seen: Mapping[tuple[int, int], Seen]):
        """Each number of heads has axes of its own, of which one set is visible."""
        self.seen = seen
        self.picture, bars = subplots(alt="Maps of heads", width=4.1, height=5.3)
        self.picture.set_layout_engine("none")
        bars.set_position((0.17, 0.05, 0.28, 0.17))
        self._set_bars(bars)
        self._set_legend(self.picture.add_axes((0.56, 0.05, 0.41, 0.17)))
        self.maps = {heads: self._grid(*shape) for heads, shape in GRIDS.items()}

    def _grid(self, rows: int, columns: int) -> list[tuple[Axes, AxesImage]]:
        width, height = 0.9 / max(columns, 2), 0.7 / rows  # a phone cuts in the middle
        made = []
        for row, column in itertools.product(range(rows), range(columns)):
            left, bottom = 0.09 + column * width, 1.015 - (row + 1) * height
            ax = self.picture.add_axes((left, bottom, width - 0.02, height - 0.085))
            made.append((ax, self._map(ax, first=column == 0)))
        return made

    def _map(self, ax: Axes, *, first: bool) -> AxesImage:
        drawers = two_lookups().drawers
        empty = torch.zeros(len(SHOWN), len(drawers))
        image = heatmap(ax, empty, queries=SHOWN, keys=drawers, xlabel=None, ylabel=None)
        ax.tick_params(labelsize=8, length=0, pad=2)
        if not first:
            ax.set_yticks([])
        for row, request in enumerate(SHOWN):
            for letter, marker in zip(request, "os", strict=True):
                ax.plot(drawers.index(letter), row, marker, **MARKER)
        return image

    def _set_bars(self, ax: Axes) -> None:
        self.bars = ax.barh(range(3), [1, 1, 1], color=COLORS["key"], height=0.62)
        self.numbers = [ax.text(0, i, "", ha="left", va="center", fontsize=8) for i in range(3)]
        ax.axvline(0.75, color=COLORS["query"], linestyle="--", linewidth=1.2)
        ax.set(xlim=(0, 1.14), ylim=(2.5, -0.5), xticks=[0, 0.5, 1])
        ax.set_title("Right answers", fontsize=9)
        ax.set_yticks(range(3), ["first ○", "second □", "both"])
        ax.tick_params(labelsize=8)

    def _set_legend(self, ax: Axes) -> None:
        ax.spines[:].set_visible(False)
        ax.set(xticks=[], yticks=[])
        dashed = {"color": COLORS["query"], "linestyle": "--", "linewidth": 1.2}
        handles = [
            Line2D([], [], marker="o", linestyle="", label="first drawer", **MARKER),
            Line2D([], [], marker="s", linestyle="", label="second drawer", **MARKER),
            Line2D([], [], label="¾: one head's best", **dashed),
        ]
        ax.legend(handles=handles, loc="center left", fontsize=8, frameon=False)

    def draw(self, num_heads: int, seed: int) -> str:
        """Show the network with so many heads that was trained with this seed."""
        seen = self.seen[num_heads, seed]
        for heads, maps in self.maps.items():
            for head, (ax, image) in enumerate(maps):
                ax.set_visible(heads == num_heads)
                if heads == num_heads:
                    image.set_data(seen.maps[head])
                    said = f"without {head}:\n" if heads > 4 else f"without head {head}: "
                    ax.set_title(f"{said}{seen.without[head]:.0%}", fontsize=8, pad=3)
        for bar, number, share in zip(self.bars, self.numbers, seen.accuracy, strict=True):
            bar.set_width(share)
            number.set_x(share)
            number.set_text(f" {share:.0%}")
        first, second, both = seen.accuracy
        count = "one head" if num_heads == 1 else f"{num_heads} heads"
        listed = ", ".join(f"{share:.0%}" for share in seen.without)
        return (
            f"Maps of {count}, seed {seed}, for eight requests of two drawers each: the first ball is "
            f"right in {first:.0%} of the cases, the second in {second:.0%}, both in {both:.0%}. Without one "
            f"head, both are right in {listed}."
        )


def _twin(network: LookupNetwork, num_heads: int) -> LookupNetwork:
    """A network of the package's own layers with the same weights, in evaluation mode, on the CPU."""
    twin = LookupNetwork(network.readout.in_features, num_heads)
    twin.load_state_dict(network.state_dict())
    return twin.eval()


def _look_at(network: LookupNetwork) -> Seen:
    task = two_lookups()
    rows = [task.requests.index(request) for request in SHOWN]
    with record_attention(network) as maps:
        network(*task.inputs(task.balls[:1]))
    maps = maps["attention"][0, :, rows].numpy()
    without = []
    for head in range(len(maps)):
        with intervene(network) as acts:
            acts.ablate(heads=head)
            without.append(lookup_accuracy(network)[2].item())
    return Seen(maps, lookup_accuracy(network).tolist(), without)


@functools.cache
def _trained() -> dict[tuple[int, int], LookupNetwork]:
    networks = {}
    with torch.random.fork_rng(devices=[]):
        for num_heads in NUM_HEADS:
            for seed in SEEDS:
                torch.manual_seed(seed)
                networks[num_heads, seed] = train_lookups(LookupNetwork(16, num_heads), seed=seed)
    return networks
