"""Planes colored by the key that wins each point, taken as a query."""

from collections.abc import Mapping

import torch
from matplotlib.colors import to_rgba_array
from torch import Tensor

from course_utils.figures import COLORS, Picture, subplots

NAMES = "ABCDE"
PALETTE = [COLORS[name] for name in ("key", "query", "value", "wrong", "plum")]
HALF = 3
"""The plane is the square from −3 to 3."""


def grid(side: int = 240) -> Tensor:
    """The points of a square grid over the plane, (side², 2), row by row from below."""
    axis = torch.linspace(-HALF, HALF, side)
    return torch.cartesian_prod(axis, axis)[:, [1, 0]]


def show_winners(planes: Mapping[str, tuple[Tensor, Tensor]]) -> Picture:
    """One plane for each rule; the title says which keys never win.

    Args:
        planes: name of a rule → its keys, (5, 2), and the number of the winning key for each point of `grid`.
    """
    told = {rule: _losers(winner) for rule, (_, winner) in planes.items()}
    said = "; ".join(f"by {rule}, {end}" for rule, end in told.items())
    alt = f"Planes colored by which of the keys {', '.join(NAMES)} wins each point: {said}."
    picture, axes = subplots(1, len(planes), alt=alt, width=8.6, height=3.6, sharey=True)
    extent = (-HALF, HALF, -HALF, HALF)
    for ax, (rule, (keys, winner)) in zip(axes, planes.items(), strict=True):
        side = round(len(winner) ** 0.5)
        shown = torch.tensor(to_rgba_array(PALETTE, 0.45))[winner.view(side, side)]
        ax.imshow(shown.numpy(), origin="lower", extent=extent)
        ax.plot(*keys.T, "o", color=COLORS["ink"], markersize=4)
        for name, (x, y) in zip(NAMES, keys.tolist(), strict=True):
            ax.text(x + 0.12, y + 0.12, name, fontsize=11, weight="bold", clip_on=True)
        ax.set(title=f"{rule}\n{told[rule]}", xlabel="first coordinate", aspect="equal")
        ax.set(xlim=extent[:2], ylim=extent[2:], xticks=range(-HALF, HALF + 1))
    axes[0].set_ylabel("second coordinate")
    return picture


def _losers(winner: Tensor) -> str:
    wins = winner.bincount(minlength=len(NAMES)).tolist()
    lost = [name for name, count in zip(NAMES, wins, strict=True) if not count]
    return f"{' and '.join(lost)} never wins" if lost else "each key wins somewhere"
