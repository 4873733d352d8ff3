"""Two garments in one picture: one that is a copy of the other, or two that a caption names.

A copy stands clean on the left, and mirrored far away on the right, in noise. Between the two are 16 black columns.
The convolutions of the U-Net reach 15 columns, so that what stands on the left can be known on the right only through
attention, or through the statistics of a group norm.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_utils.figures import COLORS, Picture
from course_utils.lessons.attention_between_pixels.far_colors import PixelNorm
from course_utils.lessons.diffusion.sampling import (
    BATCH,
    clothes,
    diffusion,
    judged,
    noise_like,
    some,
)
from course_utils.models.diffusion import UNet
from course_utils.recording import record_attention

SIDE, GAP = 8, 16
WIDTH = 2 * SIDE + GAP


def pixels_alone(network: nn.Module) -> nn.Module:
    """The network with `PixelNorm` in place of each group norm."""
    for name, child in network.named_children():
        if isinstance(child, nn.GroupNorm):
            setattr(network, name, PixelNorm(child.num_channels))
        else:
            pixels_alone(child)
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
    return network if kind in ("norm", "both") else pixels_alone(network)


def canvas(clean: Tensor, noisy: Tensor) -> Tensor:
    """The clean picture, black between, and the noisy one: (batch, 1, 8, 32)."""
    between = clean.new_full((*clean.shape[:3], GAP), -1.0)
    return torch.cat([clean, between, noisy], dim=-1)


def denoiser(kind: str, network: nn.Module, clean: Tensor) -> Callable[..., Tensor]:
    """(noisy, t) → its noise, for garments whose clean copies are given, not mirrored."""

    def guess(noisy: Tensor, t: Tensor, labels: Tensor | None = None) -> Tensor:
        if kind == "alone":
            return network(noisy, t)
        if kind == "aligned":
            return network(torch.cat([noisy, clean.flip(-1)], dim=1), t)[:, :1]
        return network(canvas(clean, noisy), t)[..., -SIDE:]

    return guess


def copy_errors(kind: str, network: nn.Module, clean: Tensor, t: Tensor, noise: Tensor) -> Tensor:
    """Squared error of the noise of the right garment: a number for each picture."""
    noisy = diffusion().add_noise(clean.flip(-1), t, noise)
    return (denoiser(kind, network, clean)(noisy, t) - noise).square().mean(dim=(1, 2, 3))


def copy_loss(kind: str, network: nn.Module, generator: torch.Generator) -> Tensor:
    """Mean loss of a batch of the training part."""
    clean, _ = some(BATCH, generator, SIDE)
    return copy_errors(kind, network, clean, *noise_like(clean, generator)).mean()


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
    """The right garments, from noise alone, mirrored back: like `clean`."""
    guess = denoiser(kind, network, clean)
    return diffusion().sample(guess, tuple(clean.shape), num_steps=50, seed=seed).flip(-1)


@torch.no_grad()
def looks(network: UNet) -> dict[str, Tensor]:
    """Mean maps over held-out garments at step 100, by block and head: queries (4, 16), keys (4, 16)."""
    clean = clothes("test", SIDE)[0][:100]
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(9))
    t = torch.full((len(clean),), 100)
    with record_attention(network) as maps:
        network(canvas(clean, diffusion().add_noise(clean.flip(-1), t, noise)), t)
    return {
        f"{name}, head {head}": maps[f"{block}.attention"][:, head]
        .mean(dim=0)
        .view(SIDE // 2, WIDTH // 2, SIDE // 2, WIDTH // 2)
        for name, block in (("down", "down.1"), ("up", "up.0"))
        for head in range(2)
    }


def on_left(weights: Tensor) -> tuple[float, float]:
    """Shares of a map's weight that the right garment puts on the left one, and on the mirror image itself."""
    side = SIDE // 2
    asked = weights[:, -side:]  # (row, column, row, column)
    twins = [asked[r, c, r, side - 1 - c] for r in range(side) for c in range(side)]
    return asked[..., :side].sum(dim=(2, 3)).mean().item(), torch.stack(twins).mean().item()


def framed(maps: Picture, column: int) -> Picture:
    """The maps with a frame around the pixel in row 1 that asks, and around its mirror image."""
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
    """A U-Net that gets two words in one of the ways of CAPTIONS: called with x, t and words (batch, 2)."""

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
        """(batch, 1, 8, 16), (batch,), (batch, 2) → the noise."""
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
    """An untrained one."""
    torch.manual_seed(seed)
    return CaptionVariant(kind)


def side_by_side(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The first half of the pictures on the left, the second on the right, and their words."""
    return torch.cat(images.chunk(2), dim=-1), torch.stack(labels.chunk(2), dim=1)


def caption_errors(
    network: nn.Module, pictures: Tensor, words: Tensor, t: Tensor, noise: Tensor
) -> Tensor:
    """Squared error of the noise, for each picture."""
    noisy = diffusion().add_noise(pictures, t, noise)
    return (network(noisy, t, words) - noise).square().mean(dim=(1, 2, 3))


def caption_loss(network: nn.Module, generator: torch.Generator) -> Tensor:
    """Mean loss of a batch of the training part."""
    pictures, words = side_by_side(*some(2 * BATCH, generator, SIDE))
    return caption_errors(network, pictures, words, *noise_like(pictures, generator)).mean()


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
    """Share of drawn garments that are nearest to the mean picture of their word, of the training part."""
    words = torch.randint(WORDS, (count, 2), generator=torch.Generator().manual_seed(seed))
    shape = (count, 1, SIDE, 2 * SIDE)
    pictures = diffusion().sample(network, shape, labels=words, num_steps=50, seed=seed)
    return judged(torch.cat(pictures.chunk(2, dim=-1)), words.T.flatten())["named"]
