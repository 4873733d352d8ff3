"""The maps of 1, 2, 4 or 8 heads that learned two look-ups, and what each head is worth."""

import functools
from collections.abc import Mapping

import torch

from course_utils.cache import record_attention
from course_utils.figures import COLORS, heatmap, subplots
from course_utils.lessons.explorer import Explorer, Slider
from course_utils.lessons.multi_head_attention.lookups import (
    LookupNetwork,
    lookup_accuracy,
    train_lookups,
    two_lookups,
    without_head,
)

__all__ = ["heads"]

NUM_HEADS = (1, 2, 4, 8)
SEEDS = (0, 1, 2)
SHOWN = ("AB", "BA", "CF", "FC", "DH", "HD", "EG", "GE")
"""Requests in the maps: each drawer stands once first and once second."""


def heads(networks: Mapping[tuple[int, int], LookupNetwork] | None = None) -> Explorer:
    """Maps of every head on eight requests, and the accuracy over all requests and fillings.

    Args:
        networks: (number of heads, seed) → trained network, for 1, 2, 4 and 8 heads and the same
            seeds each. Without it they are trained here, which takes some seconds.

    Raises:
        ValueError: a number of heads or a seed is missing.
    """
    networks = _trained() if networks is None else dict(networks)
    seeds = tuple(sorted({seed for _, seed in networks}))
    missing = [(h, seed) for h in NUM_HEADS for seed in seeds if (h, seed) not in networks]
    if missing or not seeds:
        raise ValueError(f"networks lacks {missing or 'every seed'}; (heads, seed) for {NUM_HEADS}")
    task = two_lookups()
    rows = [task.requests.index(request) for request in SHOWN]
    seen = {key: _look_at(network, rows) for key, network in networks.items()}

    def picture():
        fig, grid = subplots(
            2, 5, alt="Maps of heads", width=8.5, height=3.2, sharex="col",
            width_ratios=[1, 1, 1, 1, 0.9],
        )  # fmt: skip
        fig.get_layout_engine().set(hspace=0.22)  # hidden panels reserve no room for their titles
        panels = list(grid[:, :4].flat)
        images = []
        for index, ax in enumerate(panels):
            image = heatmap(
                ax, torch.zeros(8, 8), queries=SHOWN, keys=task.drawers, xlabel=None, ylabel=None
            )
            ax.tick_params(labelsize=7, length=0, pad=2, labelbottom=True)
            if index % 4:
                ax.set_yticks([])
            for row, request in enumerate(SHOWN):
                for letter, marker in zip(request, "os", strict=True):
                    ax.plot(
                        task.drawers.index(letter), row, marker, color=COLORS["vermilion"],
                        markerfacecolor="none", markersize=7, markeredgewidth=1.1,
                    )  # fmt: skip
            images.append(image)
        grid[1, 4].remove()
        bars_ax = grid[0, 4]
        bars_ax.set_subplotspec(grid[0, 4].get_gridspec()[:, 4])
        bars = bars_ax.bar(range(3), [1, 1, 1], color=COLORS["blue"], width=0.6)
        bars_ax.axhline(0.75, color=COLORS["vermilion"], linestyle="--", linewidth=1.2)
        bars_ax.set(ylim=(0, 1.12), title="Accuracy")
        bars_ax.set_xticks(range(3), ["first\n○", "second\n□", "both\n"])
        bars_ax.tick_params(labelbottom=True)
        numbers = [bars_ax.text(i, 0, "", ha="center", va="bottom", fontsize=8) for i in range(3)]

        def draw(num_heads: int, seed: int) -> str:
            maps, accuracy, without = seen[num_heads, seed]
            for head, (ax, image) in enumerate(zip(panels, images, strict=True)):
                ax.set_visible(head < num_heads)
                if head < num_heads:
                    image.set_data(maps[head])
                    ax.set_title(f"{head + 1}: without it {without[head]:.0%}", fontsize=8, pad=3)
            for bar, number, share in zip(bars, numbers, accuracy, strict=True):
                bar.set_height(share)
                number.set_y(share)
                number.set_text(f"{share:.0%}")
            first, second, both = accuracy
            count = "one head" if num_heads == 1 else f"{num_heads} heads"
            return (
                f"Maps of {count}, seed {seed}, for eight requests of two drawers each: the first ball is "
                f"right in {first:.0%} of the cases, the second in {second:.0%}, both in {both:.0%}. Without one "
                f"head, both are right in {_listed(without)}."
            )

        return fig, draw

    controls = {
        "num_heads": Slider(NUM_HEADS, 2, label="Heads h"),
        "seed": Slider(seeds, seeds[0], label="Seed"),
    }
    caption = (
        "○ first drawer asked for, □ second. Above each map: both balls right without this head. "
        "Dashed: the most that one head can reach."
    )
    return Explorer("heads", picture, controls, caption=caption)


def _listed(shares: list[float]) -> str:
    return ", ".join(f"{share:.0%}" for share in shares)


def _look_at(network: LookupNetwork, rows: list[int]) -> tuple:
    """Maps (heads, requests shown, drawers), accuracy, and accuracy of both without each head."""
    task = two_lookups()
    with record_attention(network) as maps, torch.no_grad():
        network(*task.inputs(task.balls[:1]))
    maps = maps["attention"][0, :, rows].numpy()
    without = [lookup_accuracy(without_head(network, head))[2].item() for head in range(len(maps))]
    return maps, lookup_accuracy(network).tolist(), without


@functools.cache
def _trained() -> dict[tuple[int, int], LookupNetwork]:
    networks = {}
    with torch.random.fork_rng(devices=[]):
        for num_heads in NUM_HEADS:
            for seed in SEEDS:
                torch.manual_seed(seed)
                networks[num_heads, seed] = train_lookups(LookupNetwork(16, num_heads), seed=seed)
    return networks
