"""An island for *PyTorch in an hour*: points that are land or water, and a map of what a network takes for land."""

import torch
from torch import Tensor

from course_utils.figures import COLORS

LAND, WATER = COLORS["value"], COLORS["key"]
HALF = 1.6  # half the side of the map


def survey(number: int, wrong: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random points of the map, (number, 2), and whether each is land, 1, or water, 0, (number,).

    Args:
        number: How many points.
        wrong: The probability that a point gets the wrong label.
        seed: Of the points and of the wrong labels.
    """
    generator = torch.Generator().manual_seed(seed)
    points = (2 * torch.rand(number, 2, generator=generator) - 1) * HALF
    errors = torch.rand(number, generator=generator) < wrong
    return points, ((points.norm(dim=-1) < 1) ^ errors).long()


def draw_map(ax, points: Tensor, land: Tensor, model=None, title: str = "") -> None:
    """Draw the points, and the land that a model sees, with its coast, where both classes have one half."""
    if model is not None:
        line = torch.linspace(-HALF, HALF, 121)
        squares = torch.stack(torch.meshgrid(line, line, indexing="xy"), dim=-1)
        with torch.no_grad():
            chance = model(squares).softmax(dim=-1)[..., 1]
        ax.contourf(line, line, chance, [0.5, 1.01], colors=[LAND], alpha=0.2)
        ax.contour(line, line, chance, [0.5], colors=[LAND], linewidths=2)
    for is_land, color, sign in ((0, WATER, "x"), (1, LAND, "o")):
        ax.scatter(*points[land == is_land].T, s=14, color=color, marker=sign, linewidths=1)
    ax.set(title=title, aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    ax.set(xlim=(-HALF, HALF), ylim=(-HALF, HALF))
