"""A task whose answer stands far away: each hole of a picture gets the color of the dot with its symbol.

A picture has 8 × 8 pixels. In it stand four colored dots and four holes (or eight), one of each symbol, and a hole
is at least four rows or four columns away from its dot. The colors are drawn independently of all places, so that a
network that sees no farther than three pixels can do no better than guess one of four.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.figures import COLORS
from course_utils.models.diffusion import PixelAttention

SIDE, PAINTS = 8, 4
FAR = 4
"""Rows or columns between a hole and its dot, at least."""
IGNORED = -100  # what `cross_entropy` leaves out


# The task ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FarPictures:
    """Pictures and what is asked.

    Attributes:
        inputs: (count, 4 + symbols, SIDE, SIDE), channels for the color of a dot, then for the symbol of a dot or hole.
        answers: (count, SIDE, SIDE), the color of each hole; IGNORED elsewhere.
        places: (count, 2 · symbols), pixel numbers of the dots, then of their holes.
    """

    inputs: Tensor
    answers: Tensor
    places: Tensor

    @property
    def symbols(self) -> int:
        """How many different ones, each once as a dot and once as a hole."""
        return self.places.shape[1] // 2

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, which: slice) -> "FarPictures":
        return FarPictures(self.inputs[which], self.answers[which], self.places[which])


def far_pictures(count: int, seed: int, symbols: int = 4) -> FarPictures:
    """Random pictures, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    colors = torch.randint(PAINTS, (count, symbols), generator=generator)
    places = torch.empty(count, 2 * symbols, dtype=torch.long)
    todo = torch.arange(count)
    while len(todo):
        drawn = torch.rand(len(todo), SIDE**2, generator=generator).topk(2 * symbols).indices
        good = (_distance(*drawn.chunk(2, dim=1)) >= FAR).all(dim=1)
        places[todo[good]] = drawn[good]
        todo = todo[~good]
    dots, holes = places.chunk(2, dim=1)
    pixels = torch.zeros(count, PAINTS + symbols, SIDE**2)
    answers = torch.full((count, SIDE**2), IGNORED)
    picture, symbol = torch.arange(count)[:, None], torch.arange(symbols)
    pixels[picture, colors, dots] = 1
    pixels[picture, PAINTS + symbol, dots] = 1
    pixels[picture, PAINTS + symbol, holes] = 1
    answers[picture, holes] = colors
    shape = (SIDE, SIDE)
    return FarPictures(pixels.unflatten(-1, shape), answers.unflatten(-1, shape), places)


def _distance(first: Tensor, second: Tensor) -> Tensor:
    rows, columns = first // SIDE - second // SIDE, first % SIDE - second % SIDE
    return torch.maximum(rows.abs(), columns.abs())


def summed_loss(model: nn.Module, batch: FarPictures) -> tuple[Tensor, int]:
    """Cross-entropy summed over the holes, and how many they are."""
    loss = F.cross_entropy(model(batch.inputs), batch.answers, reduction="sum")
    return loss, int((batch.answers != IGNORED).sum())


def near(places: Tensor) -> Tensor:
    """(…) pixel numbers → (…, SIDE²), True for a place and those that touch it."""
    return _distance(places[..., None], torch.arange(SIDE**2)) <= 1


@torch.no_grad()
def share_right(model: nn.Module, pictures: FarPictures) -> float:
    """Of all holes."""
    asked = pictures.answers != IGNORED
    right = model(pictures.inputs).argmax(dim=1) == pictures.answers
    return right[asked].float().mean().item()


# What stands in the middle ----------------------------------------------------------------------


class PixelNorm(nn.LayerNorm):
    """Layer norm over the channels of each pixel: pixels hear nothing of one another."""

    @property
    def num_channels(self) -> int:
        """As a group norm calls them."""
        return self.normalized_shape[0]

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width) → the same shape."""
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class Pixelwise(nn.Module):
    """The block without attention: x + out(relu(widen(norm(x)))), with two convolutions of width 1."""

    def __init__(self, channels: int, norm: nn.Module):
        super().__init__()
        self.norm = norm
        self.widen = nn.Conv2d(channels, 2 * channels, 1)
        self.out = nn.Conv2d(2 * channels, channels, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width) → the same shape."""
        return x + self.out(F.relu(self.widen(self.norm(x))))


class Dilated(nn.Module):
    """x + relu(conv(x)) three times, the nine inputs of the convolutions 1, 2 and 4 pixels apart."""

    def __init__(self, channels: int):
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=apart, dilation=apart) for apart in (1, 2, 4)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width) → the same shape."""
        for conv in self.convs:
            x = x + F.relu(conv(x))
        return x


KINDS = {
    "layer norm, no attention": (0, False),
    "group norm (1), no attention": (1, False),
    "group norm (8), no attention": (8, False),
    "dilated convolutions": (None, False),
    "layer norm, attention": (0, True),
    "group norm (8), attention: the block": (8, True),
}
"""What can stand in the middle: name → groups of the norm (0: layer norm of each pixel), with attention or without."""


def middle(kind: str, channels: int = 32) -> nn.Module:
    """What stands in the middle of the network, by its name in KINDS."""
    groups, attends = KINDS[kind]
    if groups is None:
        return Dilated(channels)
    norm = nn.GroupNorm(groups, channels) if groups else PixelNorm(channels)
    if not attends:
        return Pixelwise(channels, norm)
    block = PixelAttention(channels)
    block.norm = norm
    return block


# Pictures of pictures -----------------------------------------------------------------------------

INKS = [COLORS[name] for name in ("key", "query", "value", "plum")]
MARKS = ("o", "s", "^", "D")


def draw_pixels(ax, pictures: FarPictures, which: int) -> None:
    """One picture: filled symbols are dots, empty ones holes."""
    places = pictures.places[which].view(2, -1).tolist()
    colors = [
        pictures.answers[which].flatten()[hole].item() for hole in places[1]
    ]  # of each symbol
    for symbol, (dot, hole, color) in enumerate(zip(*places, colors, strict=True)):
        style = {"marker": MARKS[symbol], "markersize": 10, "linestyle": "", "color": INKS[color]}
        ax.plot(dot % SIDE, dot // SIDE, **style)
        empty = style | {"color": "0.35", "markerfacecolor": "none", "markeredgewidth": 1.5}
        ax.plot(hole % SIDE, hole // SIDE, **empty)
    ax.set(xlim=(-0.5, SIDE - 0.5), ylim=(SIDE - 0.5, -0.5), aspect="equal")
    ax.set_xticks([pixel - 0.5 for pixel in range(SIDE + 1)], [])
    ax.set_yticks([pixel - 0.5 for pixel in range(SIDE + 1)], [])
    ax.grid(color="0.85", linewidth=0.6)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
