"""Two garments in one picture, for the further page of *Attention in a diffusion model*: a copy, or a named pair.

The copy stands clean on the left, and mirrored far away on the right, in noise. Between the two are 16 black columns.
The convolutions of the U-Net reach 15 columns, so that what stands on the left can be known on the right only through
attention, or through the statistics of a group norm.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_utils.figures import COLORS, Picture
from course_utils.lessons.attention_between_pixels.far_colors import PixelNorm
from course_utils.lessons.diffusion.guidance import class_scores
from course_utils.lessons.diffusion.training import (
    BATCH,
    clothes,
    diffusion,
    random_clothes,
    random_noise,
)
from course_utils.models.diffusion import UNet
from course_utils.recording import record_attention

SIDE = 8
"""Pixels along each side of a garment."""

GAP = 16
"""Black columns between two garments."""

WIDTH = 2 * SIDE + GAP


def without_group_norms(network: nn.Module) -> nn.Module:
    """The network with `PixelNorm` in place of each group norm, so that no statistics join far pixels."""
    for name, child in network.named_children():
        if isinstance(child, nn.GroupNorm):
            setattr(network, name, PixelNorm(child.num_channels))
        else:
            without_group_norms(child)
    return network


def new_network(kind: str, seed: int) -> UNet:
    """An untrained network.

    Args:
        kind: "alone" sees the noisy garment only, "aligned" also the clean one, pixel on pixel. The others see the
            whole picture: "norm" has group norms, "deep" also a third level, "both" group norms and attention.
        seed: of the parameters.
    """
    torch.manual_seed(seed)
    if kind == "deep":  # its convolutions reach from one garment to the other
        return UNet(widths=(16, 32, 32), attention=(False, False, False))
    network = UNet(2 if kind == "aligned" else 1, attention=(False, kind == "both"))
    return network if kind in ("norm", "both") else without_group_norms(network)


def canvas(clean: Tensor, noisy: Tensor) -> Tensor:
    """Pictures (batch, 1, 8, 32) of a clean garment, black columns, and a noisy garment, each (batch, 1, 8, 8)."""
    between = clean.new_full((*clean.shape[:3], GAP), -1.0)
    return torch.cat([clean, between, noisy], dim=-1)


def denoiser(kind: str, network: nn.Module, clean: Tensor) -> Callable[..., Tensor]:
    """A denoiser of noisy garments whose clean copies are given.

    Args:
        kind: of the network, as in `new_network`.
        network: predicts the noise.
        clean: the copies, not mirrored, (batch, 1, 8, 8).

    Returns:
        (noisy (batch, 1, 8, 8), t (batch,)) → noise, like the noisy garments.
    """

    def guess(noisy: Tensor, t: Tensor, labels: Tensor | None = None) -> Tensor:
        if kind == "alone":
            return network(noisy, t)
        if kind == "aligned":
            return network(torch.cat([noisy, clean.flip(-1)], dim=1), t)[:, :1]
        return network(canvas(clean, noisy), t)[..., -SIDE:]

    return guess


def copy_errors(kind: str, network: nn.Module, clean: Tensor, t: Tensor, noise: Tensor) -> Tensor:
    """Squared errors of the noise of the right garment, (batch,).

    Args:
        kind, network, clean: as in `denoiser`.
        t: steps, (batch,).
        noise: like `clean`.
    """
    noisy = diffusion().add_noise(clean.flip(-1), t, noise)
    return (denoiser(kind, network, clean)(noisy, t) - noise).square().mean(dim=(1, 2, 3))


def copy_loss(kind: str, network: nn.Module, generator: torch.Generator) -> Tensor:
    """Mean loss of a random batch of the training part."""
    clean, _ = random_clothes(BATCH, generator, SIDE)
    return copy_errors(kind, network, clean, *random_noise(clean, generator)).mean()


@torch.no_grad()
def held_out_copy_loss(kind: str, network: nn.Module) -> float:
    """Mean loss on the test part, with the same steps and noise for every network."""
    clean, _ = clothes("test", SIDE)
    generator = torch.Generator().manual_seed(9)
    t = torch.arange(len(clean)) * diffusion().steps // len(clean) + 1
    noise = torch.randn(clean.shape, generator=generator)
    return copy_errors(kind, network, clean, t, noise).mean().item()


@torch.no_grad()
def draw_copies(kind: str, network: nn.Module, clean: Tensor, seed: int = 0) -> Tensor:
    """The right garments, drawn from noise beside clean ones (batch, 1, 8, 8), and mirrored back: like `clean`."""
    guess = denoiser(kind, network, clean)
    return diffusion().sample(guess, tuple(clean.shape), num_steps=50, seed=seed).flip(-1)


@torch.no_grad()
def looks(network: UNet) -> dict[str, Tensor]:
    """Mean attention of 100 held-out pictures at step 100, by block and head: queries (4, 16), keys (4, 16)."""
    clean = clothes("test", SIDE)[0][:100]
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(9))
    t = torch.full((len(clean),), 100)
    with record_attention(network) as maps:
        network(canvas(clean, diffusion().add_noise(clean.flip(-1), t, noise)), t)
    rows, columns = SIDE // 2, WIDTH // 2
    means = {}
    for name, block in (("down", "down.1"), ("up", "up.0")):
        for head in range(2):
            mean = maps[f"{block}.attention"][:, head].mean(dim=0)
            means[f"{name}, head {head}"] = mean.view(rows, columns, rows, columns)
    return means


def on_left(weights: Tensor) -> tuple[float, float]:
    """Shares of the right garment's attention that lie on the left garment, and on the mirror image of each pixel.

    Args:
        weights: (rows, columns, rows, columns), queries and keys, as in `looks`.
    """
    side = SIDE // 2
    of_right = weights[:, -side:]  # (row, column, row, column)
    twins = [of_right[r, c, r, side - 1 - c] for r in range(side) for c in range(side)]
    return of_right[..., :side].sum(dim=(2, 3)).mean().item(), torch.stack(twins).mean().item()


def framed(maps: Picture, column: int) -> Picture:
    """A picture of four maps, with frames around the pixel in row 1 that asks and around its mirror image.

    Args:
        maps: the picture, which is changed in place.
        column: of the pixel, counted in the coarse map of 16 columns.
    """
    twin = WIDTH // 2 - 1 - column
    for ax in maps.axes[:4]:
        for x, role in ((column, "query"), (twin, "value")):
            for color, thick in (("white", 4), (COLORS[role], 2)):
                ax.plot(x, 1, "s", color=color, markerfacecolor="none", markersize=15, mew=thick)
    for x, name in ((column, "pixel"), (twin, "twin")):
        maps.axes[0].annotate(name, (x, 1), (0, 12), textcoords="offset points", ha="center")
    return maps


# Two different garments side by side, and a caption of two words: left, right ---------------------

WORDS, TOKEN = 10, 32
CAPTIONS = {
    "nothing": "no caption",
    "bag": "both words added, whichever stands first",
    "added": "words with their places added",
    "empty": "words with their places added, empty tokens",
    "cross": "cross-attention to words with their places",
}


class CaptionVariant(nn.Module):
    """A U-Net that gets two words in one of the ways of CAPTIONS.

    Args:
        kind: a key of CAPTIONS.
    """

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind
        crosses = kind in ("cross", "empty")
        self.network = UNet(num_classes=0, token_dim=TOKEN if crosses else 0)
        if kind == "cross":
            self.words, self.places = nn.Embedding(WORDS, TOKEN), nn.Embedding(2, TOKEN)
        elif kind != "nothing":
            rows = WORDS if kind == "bag" else 2 * WORDS  # a row for each word, or word and place
            self.network.classes = nn.EmbeddingBag(rows, self.network.time_dim, mode="sum")
        if kind == "empty":  # the parameters of "cross", and no word in its tokens
            self.places = nn.Embedding(2, TOKEN)

    def forward(self, x: Tensor, t: Tensor, words: Tensor) -> Tensor:
        """The noise in x (batch, 1, 8, 16) at steps t (batch,), for words (batch, 2): like x."""
        if self.kind == "nothing":
            return self.network(x, t)
        if self.kind == "bag":
            return self.network(x, t, words)
        if self.kind == "added":
            return self.network(x, t, words + torch.tensor([0, WORDS]))
        if self.kind == "empty":
            tokens = self.places.weight.expand(len(x), -1, -1)
            return self.network(x, t, words + torch.tensor([0, WORDS]), tokens)
        return self.network(x, t, tokens=self.words(words) + self.places.weight)


def captioned_network(kind: str, seed: int) -> CaptionVariant:
    """An untrained `CaptionVariant` of a kind; the seed draws its weights."""
    torch.manual_seed(seed)
    return CaptionVariant(kind)


def side_by_side(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Pictures of two garments side by side, (n / 2, 1, 8, 16), and their words, (n / 2, 2).

    The first half of the images (n, 1, 8, 8) stands on the left, the second on the right; labels (n,).
    """
    return torch.cat(images.chunk(2), dim=-1), torch.stack(labels.chunk(2), dim=1)


def caption_errors(
    network: nn.Module, pictures: Tensor, words: Tensor, t: Tensor, noise: Tensor
) -> Tensor:
    """Squared errors of the noise, (batch,).

    Args:
        network: (noisy pictures, t, words) → noise.
        pictures, noise: (batch, 1, 8, 16).
        words: (batch, 2).
        t: steps, (batch,).
    """
    noisy = diffusion().add_noise(pictures, t, noise)
    return (network(noisy, t, words) - noise).square().mean(dim=(1, 2, 3))


def caption_loss(network: nn.Module, generator: torch.Generator) -> Tensor:
    """Mean loss of a random batch of pairs of the training part."""
    pictures, words = side_by_side(*random_clothes(2 * BATCH, generator, SIDE))
    return caption_errors(network, pictures, words, *random_noise(pictures, generator)).mean()


@torch.no_grad()
def held_out_caption_loss(network: nn.Module) -> tuple[float, float]:
    """Mean loss on the test part, and that of the noisier half of the steps, where words matter most."""
    pictures, words = side_by_side(*clothes("test", SIDE))
    count = len(pictures)
    generator = torch.Generator().manual_seed(9)
    t = torch.arange(count) * diffusion().steps // count + 1
    noise = torch.randn(pictures.shape, generator=generator)
    errors = caption_errors(network, pictures, words, t, noise)
    return errors.mean().item(), errors[count // 2 :].mean().item()


@torch.no_grad()
def share_nearest_to_own_mean(network: nn.Module, seed: int = 0, count: int = 150) -> float:
    """Share of drawn garments that are nearest to the mean picture of their word in the training part.

    Args:
        network: a `CaptionVariant`.
        seed: of captions and noise.
        count: captions.
    """
    words = torch.randint(WORDS, (count, 2), generator=torch.Generator().manual_seed(seed))
    shape = (count, 1, SIDE, 2 * SIDE)
    pictures = diffusion().sample(network, shape, labels=words, num_steps=50, seed=seed)
    return class_scores(torch.cat(pictures.chunk(2, dim=-1)), words.T.flatten())["named"]
