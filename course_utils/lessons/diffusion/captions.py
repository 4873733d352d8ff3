"""Two different garments side by side, and a caption of two words: left, right."""

import torch
from torch import Tensor, nn

from course_utils.lessons.diffusion.training import clothes, diffusion, noise_like, some
from course_utils.models.diffusion import UNet

SIDE, WORDS, TOKEN = 8, 10, 32
KINDS = {
    "nothing": "no caption",
    "bag": "both words added, whichever stands first",
    "added": "words with their places added",
    "empty": "words with their places added, empty tokens",
    "cross": "cross-attention to words with their places",
}


class Captioned(nn.Module):
    """A U-Net that is told two words in one of the ways of KINDS: called with x, t and words (batch, 2)."""

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


def new_network(kind: str, seed: int) -> Captioned:
    """An untrained one."""
    torch.manual_seed(seed)
    return Captioned(kind)


def side_by_side(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The first half of the pictures on the left, the second on the right, and their words."""
    half = len(images) // 2
    pictures = torch.cat([images[:half], images[half : 2 * half]], dim=-1)
    return pictures, torch.stack([labels[:half], labels[half : 2 * half]], dim=1)


def loss(network: nn.Module, pictures: Tensor, words: Tensor, t: Tensor, noise: Tensor) -> Tensor:
    """Squared error of the noise, for each picture."""
    noisy = diffusion().add_noise(pictures, t, noise)
    return (network(noisy, t, words) - noise).square().mean(dim=(1, 2, 3))


def drawn_loss(network: nn.Module, generator: torch.Generator, batch: int) -> Tensor:
    """Mean loss of a batch of the training part."""
    pictures, words = side_by_side(*some(2 * batch, generator, SIDE))
    return loss(network, pictures, words, *noise_like(pictures, generator)).mean()


@torch.no_grad()
def held_out_loss(network: nn.Module) -> tuple[float, float]:
    """Mean loss on the test part, and that of the noisier half of the steps, where words matter most."""
    pictures, words = side_by_side(*clothes("test", SIDE))
    count = len(pictures)
    generator = torch.Generator().manual_seed(9)
    t = torch.arange(count) * diffusion().steps // count + 1
    noise = torch.randn(pictures.shape, generator=generator)
    errors = loss(network, pictures, words, t, noise)
    return errors.mean().item(), errors[count // 2 :].mean().item()


@torch.no_grad()
def drawn(network: nn.Module, words: Tensor, seed: int = 0) -> Tensor:
    """Pictures for captions, from noise alone: (batch, 1, 8, 16)."""
    shape = (len(words), 1, SIDE, 2 * SIDE)
    return diffusion().sample(network, shape, labels=words, num_steps=50, seed=seed)


@torch.no_grad()
def named_right(network: nn.Module, seed: int = 0, count: int = 150) -> float:
    """Share of drawn garments that are nearest to the mean picture of their word, of the training part."""
    words = torch.randint(WORDS, (count, 2), generator=torch.Generator().manual_seed(seed))
    pictures = drawn(network, words, seed)
    halves = torch.cat([pictures[..., :SIDE], pictures[..., SIDE:]]).flatten(1)
    return nearest_mean(halves, words.T.flatten())


def nearest_mean(pictures: Tensor, labels: Tensor) -> float:
    """How often a picture, (n, pixels), is nearest to the mean of its class in the training part."""
    images, classes = clothes("train", SIDE)
    means = torch.stack([images[classes == c].mean(dim=0).flatten() for c in range(WORDS)])
    found = torch.cdist(pictures, means).argmin(dim=1)
    return (found == labels).float().mean().item()
