"""A task whose answer stands far away: each hole of a picture gets the color of the dot with its symbol.

A picture has 8 × 8 pixels. In it are two, four or eight colored dots and as many holes, one of each symbol, and a hole
is at least four rows or four columns away from its dot. The colors are drawn independently of all places, so that a
network that sees no farther than three pixels can do no better than guess one of four.

Both pages of *Attention between pixels* use the pictures; `runs` stores trainings on them.
"""

from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.figures import COLORS
from course_utils.models.diffusion import PixelAttention

SIDE = 8
"""Pixels along each side of a picture."""
PAINTS = 4
"""Colors."""
FAR = 4
"""Rows or columns between a hole and its dot, at least."""
IGNORED = -100
"""The answer at a pixel that is no hole: `cross_entropy` leaves it out."""


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
        """Number of different symbols, each once as a dot and once as a hole."""
        return self.places.shape[1] // 2

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, which: slice) -> "FarPictures":
        return FarPictures(self.inputs[which], self.answers[which], self.places[which])


def far_pictures(count: int, seed: int, symbols: int = 4) -> FarPictures:
    """Random pictures, the same for the same seed; one symbol after the other is put on free pixels."""
    generator = torch.Generator().manual_seed(seed)
    colors = torch.randint(PAINTS, (count, symbols), generator=generator)
    pixels = torch.arange(SIDE**2)
    pairs = (_distance(pixels[:, None], pixels) >= FAR).nonzero()  # every (dot, hole)
    places = torch.empty(count, symbols, 2, dtype=torch.long)
    is_free = torch.ones(count, SIDE**2, dtype=torch.bool)
    for symbol in range(symbols):
        todo = torch.arange(count)
        while len(todo):
            drawn = pairs[torch.randint(len(pairs), (len(todo),), generator=generator)]
            fits = is_free[todo[:, None], drawn].all(dim=1)
            places[todo[fits], symbol] = drawn[fits]
            todo = todo[~fits]
        is_free.scatter_(1, places[:, symbol], False)
    dots, holes = places.unbind(dim=-1)
    inputs = torch.zeros(count, PAINTS + symbols, SIDE**2)
    answers = torch.full((count, SIDE**2), IGNORED)
    picture, symbol = torch.arange(count)[:, None], torch.arange(symbols)
    inputs[picture, colors, dots] = 1
    inputs[picture, PAINTS + symbol, dots] = 1
    inputs[picture, PAINTS + symbol, holes] = 1
    answers[picture, holes] = colors
    shape = (SIDE, SIDE)
    places = torch.cat([dots, holes], dim=1)
    return FarPictures(inputs.unflatten(-1, shape), answers.unflatten(-1, shape), places)


def counting(symbols: int) -> float:
    """The expected accuracy of a baseline that always names a most frequent color, in pictures with so many symbols."""
    draws = torch.cartesian_prod(*[torch.arange(PAINTS)] * symbols).view(-1, symbols)
    counts = F.one_hot(draws, PAINTS).sum(dim=1)
    return (counts.max(dim=1).values / symbols).mean().item()


def _distance(first: Tensor, second: Tensor) -> Tensor:
    """Distance of pixels, given by their numbers: the larger of the differences of their rows and columns."""
    rows, columns = first // SIDE - second // SIDE, first % SIDE - second % SIDE
    return torch.maximum(rows.abs(), columns.abs())


@torch.no_grad()
def accuracy_of(model: nn.Module, pictures: FarPictures) -> float:
    """Accuracy: the share of the holes that get the right color."""
    asked = pictures.answers != IGNORED
    right = model(pictures.inputs).argmax(dim=1) == pictures.answers
    return right[asked].float().mean().item()


# The block in the middle of a network -----------------------------------------------------------


class PixelNorm(nn.LayerNorm):
    """Layer norm over the channels of each pixel, so that no statistics join pixels."""

    @property
    def num_channels(self) -> int:
        """Number of channels, under the name that `nn.GroupNorm` has for it."""
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


KINDS = ("attention", "group norm, 8 groups", "group norm, 32 groups")
"""Names of the blocks in the middle.

Attention comes with a layer norm of each pixel, so that it is the only path between far pixels.
"""


def middle(kind: str, channels: int = 32) -> nn.Module:
    """The block in the middle of a network, by its name in KINDS."""
    if kind == "attention":
        block = PixelAttention(channels)
        block.norm = PixelNorm(channels)
        return block
    return Pixelwise(channels, nn.GroupNorm(int(kind.split()[2]), channels))


# The colors that a network names --------------------------------------------------------------------


@torch.no_grad()
def named_colors(model: nn.Module, pictures: FarPictures) -> Tensor:
    """Colors that the model names for the holes, (count, symbols)."""
    holes = pictures.places[:, pictures.symbols :]
    return model(pictures.inputs).argmax(dim=1).flatten(1).gather(1, holes)


def recolored(pictures: FarPictures, symbol: int) -> FarPictures:
    """The same pictures with another color for one dot, and for its hole."""
    inputs, answers = pictures.inputs.flatten(2).clone(), pictures.answers.flatten(1).clone()
    picture = torch.arange(len(pictures))
    dot, hole = pictures.places[:, symbol], pictures.places[:, pictures.symbols + symbol]
    inputs[picture, :PAINTS, dot] = inputs[picture, :PAINTS, dot].roll(1, dims=1)
    answers[picture, hole] = (answers[picture, hole] + 1) % PAINTS
    shape = (SIDE, SIDE)
    return FarPictures(inputs.unflatten(2, shape), answers.unflatten(1, shape), pictures.places)


def answers_changed(model: nn.Module, pictures: FarPictures) -> Tensor:
    """Whether the answer at each hole changes if one dot is recolored: boolean, (count, recolored symbols, holes)."""
    before = named_colors(model, pictures)
    after = [named_colors(model, recolored(pictures, symbol)) for symbol in range(pictures.symbols)]
    return torch.stack([each != before for each in after], dim=1)


class Counter(nn.Module):
    """A stand-in for a network that names a most frequent color, of several the first.

    Args:
        far: whether a pixel counts only the dots that are far from it; else it counts those of the whole picture.
    """

    def __init__(self, far: bool = False):
        super().__init__()
        self.far = far

    def forward(self, x: Tensor) -> Tensor:
        """(batch, PAINTS + symbols, height, width) → (batch, PAINTS, height, width)."""
        colors = x[:, :PAINTS]
        counts = colors.sum(dim=(2, 3), keepdim=True).expand_as(colors)
        if not self.far:
            return counts
        side = 2 * FAR - 1  # of the square of what is near
        near = F.avg_pool2d(colors, side, stride=1, padding=FAR - 1) * side**2
        return (counts - near).round()


# Pictures of pictures -----------------------------------------------------------------------------

INKS = [COLORS[name] for name in ("key", "query", "value", "plum")]
MARKS = ("o", "s", "^", "D", "P", "*", "v", "X")


def draw_pixels(ax: Axes, pictures: FarPictures, which: int, named: Tensor | None = None) -> None:
    """Draw one picture: filled symbols are dots, empty ones holes.

    Args:
        ax: where to draw.
        pictures: of which one is drawn.
        which: its number.
        named: colors of its holes, (symbols,); gray without them.
    """
    dots, holes = pictures.places[which].view(2, -1).tolist()
    colors = pictures.answers[which].flatten()
    for symbol, (dot, hole) in enumerate(zip(dots, holes, strict=True)):
        style = {"marker": MARKS[symbol], "markersize": 10, "linestyle": ""}
        ax.plot(dot % SIDE, dot // SIDE, color=INKS[colors[hole]], **style)
        edge = "0.35" if named is None else INKS[named[symbol]]
        ax.plot(
            hole % SIDE, hole // SIDE, color=edge, markerfacecolor="none", markeredgewidth=1.8, **style
        )  # fmt: skip
    ax.set(xlim=(-0.5, SIDE - 0.5), ylim=(SIDE - 0.5, -0.5), aspect="equal")
    ax.set_xticks([pixel - 0.5 for pixel in range(SIDE + 1)], [])
    ax.set_yticks([pixel - 0.5 for pixel in range(SIDE + 1)], [])
    ax.grid(color="0.85", linewidth=0.6)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
