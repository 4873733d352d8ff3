"""The training loop of *Attention in a diffusion model*, what its exercises build, samplers and guidance."""

import functools
from collections.abc import Callable
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention import merge_heads, split_heads
from course_utils.data.images import load_fashion_mnist
from course_utils.figures import COLORS, Picture, subplots
from course_utils.kit.stored_model import load_model
from course_utils.kit.training_loop import take_steps
from course_utils.models.diffusion import UNet
from course_utils.models.noise import Diffusion, cosine_schedule
from course_utils.train.schedules import warmup_decay

STEPS = 200
"""Steps of the diffusion, from a picture, 0, to almost only noise."""

BATCH, RATE = 32, 6e-3


@functools.cache
def diffusion() -> Diffusion:
    """Noise as the chapter adds it: the cosine schedule with 200 steps."""
    return Diffusion(cosine_schedule(STEPS))


@functools.cache
def clothes(split: str, size: int) -> tuple[Tensor, Tensor]:
    """Fashion-MNIST at size × size: pictures (n, 1, size, size) from −1 to 1, and their classes (n,)."""
    data = load_fashion_mnist(split)
    images = F.adaptive_avg_pool2d(data.images.float(), size).round()
    return images / 127.5 - 1, data.labels


def some(count: int, generator: torch.Generator, size: int) -> tuple[Tensor, Tensor]:
    """`count` pictures of the training part, drawn at random, and their classes."""
    images, labels = clothes("train", size)
    rows = torch.randint(len(images), (count,), generator=generator)
    return images[rows], labels[rows]


def noise_like(x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A step for each picture, (batch,), and noise shaped like them."""
    t = torch.randint(1, STEPS + 1, (len(x),), generator=generator)
    return t, torch.randn(x.shape, generator=generator)


def train(
    network: nn.Module,
    loss: Callable[[torch.Generator], Tensor],
    *,
    steps: int,
    seed: int = 0,
) -> list[float]:
    """Fit a network: the rate rises to RATE over 20 steps, then falls on a line to 0.

    Args:
        network: what is trained.
        loss: draws a batch with the generator, and gives its mean loss.
        steps: how many.
        seed: of the batches.

    Returns:
        The loss of each step.
    """
    generator, losses = torch.Generator().manual_seed(seed), []
    optimizer = torch.optim.Adam(network.parameters(), betas=(0.9, 0.99))
    schedule = warmup_decay(20, steps)
    take_steps(
        optimizer,
        lambda: loss(generator),
        steps=steps,
        rate=lambda step: RATE * schedule(step),
        after_step=lambda step, value: losses.append(value),
    )
    return losses


# What the exercises build -------------------------------------------------------------------------


def noisy(x: Tensor, t: Tensor, noise: Tensor, alpha_bar: Tensor) -> Tensor:
    """Each picture of a batch with the noise of its own step.

    Args:
        x, noise: (batch, channels, height, width).
        t: (batch,), whole numbers.
        alpha_bar: share of the picture in the variance at each step.
    """
    a = alpha_bar[t][:, None, None, None]
    return a.sqrt() * x + (1 - a).sqrt() * noise


def step_back(x: Tensor, noise: Tensor, a: Tensor, b: Tensor, fresh: Tensor) -> Tensor:
    """A step from level a to level b: the sampler of Ho, Jain and Abbeel (2020), algorithm 2, with the guess cut.

    Args:
        x: pictures at level a.
        noise: what the network says is in them.
        a, b: shares of the picture in the variance, a < b.
        fresh: new noise, shaped like x.
    """
    clean = ((x - (1 - a).sqrt() * noise) / a.sqrt()).clamp(-1, 1)
    old = (x - a.sqrt() * clean) / (1 - a).sqrt()
    variance = (1 - b) / (1 - a) * (1 - a / b)
    return b.sqrt() * clean + (1 - b - variance).clamp(min=0).sqrt() * old + variance.sqrt() * fresh


def attend_to_words(queries: Tensor, keys: Tensor, values: Tensor, num_heads: int) -> Tensor:
    """Pixels ask and words answer: (batch, pixels, channels).

    Args:
        queries: of the pixels, (batch, pixels, channels).
        keys, values: of the words, (batch, words, channels).
        num_heads: divides the channels.
    """
    q, k, v = (split_heads(vectors, num_heads) for vectors in (queries, keys, values))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return merge_heads(scores.softmax(dim=-1) @ v)


def walk_picture(walks: Tensor) -> Picture:
    """24 paths of single pixels from noise to +1 or −1, and how many of all are on the side where they end.

    Args:
        walks: (steps + 1, pixels), from the last step to step 0.
    """
    last = len(walks) - 1
    settled = ((walks > 0) == (walks[-1] > 0)).float().mean(dim=1)
    picture, ax = subplots(
        width=7.0,
        height=2.8,
        alt=f"Paths of 24 pixels from noise at step {last} to plus or minus one at step 0: jagged; many change "
        "sides in the first hundred steps, a few later, none near the end. Above: the share of all paths that are "
        "on the side where they end.",
    )
    for walk in walks[:, :24].T:
        color = COLORS["key" if walk[-1] > 0 else "query"]
        ax.plot(range(last, -1, -1), walk, linewidth=0.8, color=color)
    for t in (150, 100, 50):
        ax.axvline(t, color="black", linewidth=0.8, linestyle=":")
        ax.text(t, 3.0, f"{settled[last - t]:.0%} on their side", ha="center", fontsize=8)
    ax.set(xlabel="Step t", ylabel="Pixel $x_t$", xlim=(last, 0), ylim=(-2.9, 2.9))
    return picture


# Samplers at equal steps, and guidance ------------------------------------------------------------

CLASSES = 10
NO_CLASS = 10
"""The label of a picture whose class is withheld."""


Network = TypeVar("Network", bound=nn.Module)


def load_network(kind: type[Network], name: str) -> Network:
    """A stored network of the class `kind`, in eval mode."""
    stored = load_model(name)
    network = kind(**stored.config)
    network.load_state_dict(stored.state)
    return network.eval()


def painter() -> UNet:
    """The stored network for 14 × 14."""
    return load_network(UNet, "clothes_unet")


def guided(network: Callable[..., Tensor], scale: float) -> Callable[..., Tensor]:
    """The network's noise without a class, plus `scale` times what the class changes: 1 is the network itself.

    Ho and Salimans (2022), "Classifier-free diffusion guidance", equation 6, whose w is `scale` − 1.
    """

    def guess(x: Tensor, t: Tensor, labels: Tensor) -> Tensor:
        if scale == 1:
            return network(x, t, labels)
        with_class = network(x, t, labels)
        without = network(x, t, torch.full_like(labels, NO_CLASS))
        return without + scale * (with_class - without)

    return guess


@torch.no_grad()
def drawn(count: int, *, num_steps: int, eta: float, scale: float, seed: int) -> Tensor:
    """`count` garments of each class, (10 · count, 1, 14, 14), class by class."""
    labels = torch.arange(CLASSES).repeat_interleave(count)
    shape = (len(labels), 1, 14, 14)
    network = guided(painter(), scale)
    return diffusion().sample(
        network, shape, labels=labels, num_steps=num_steps, eta=eta, seed=seed
    )


def judged(pictures: Tensor, labels: Tensor) -> dict[str, float]:
    """Share nearest to the mean of their class in the training part, and how far they spread within a class."""
    images, classes = clothes("train", pictures.shape[-1])
    means = torch.stack([images[classes == c].mean(dim=0).flatten() for c in range(CLASSES)])
    nearest = torch.cdist(pictures.flatten(1), means).argmin(dim=1)
    spread = [pictures[labels == c].std(dim=0).mean().item() for c in range(CLASSES)]
    return {"named": (nearest == labels).float().mean().item(), "spread": sum(spread) / CLASSES}
