"""Noise, pictures and the training loop of *Attention in a diffusion model*, for its stored runs and both pages."""

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.data.images import load_fashion_mnist
from course_utils.models.noise import Diffusion, cosine_schedule
from course_utils.train.schedules import warmup_decay
from course_utils.train.steps import take_steps

STEPS = 200
"""Steps of the diffusion, from a picture, 0, to almost only noise."""

BATCH = 32
"""Pictures of a batch."""

RATE = 6e-3
"""The largest learning rate."""


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


def random_clothes(count: int, generator: torch.Generator, size: int) -> tuple[Tensor, Tensor]:
    """Random pictures of the training part, (count, 1, size, size), and their classes (count,)."""
    images, labels = clothes("train", size)
    rows = torch.randint(len(images), (count,), generator=generator)
    return images[rows], labels[rows]


def random_noise(x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A random step of the diffusion for each picture, (batch,), and noise of the shape of x."""
    t = torch.randint(1, STEPS + 1, (len(x),), generator=generator)
    return t, torch.randn(x.shape, generator=generator)


def train(
    network: nn.Module,
    loss: Callable[[torch.Generator], Tensor],
    *,
    steps: int,
    seed: int = 0,
) -> list[float]:
    """The loss of each step of a training whose rate rises to RATE over 20 steps, then falls on a line to 0.

    Args:
        network: is trained in place.
        loss: draws a batch with the generator, and gives its mean loss.
        steps: how many.
        seed: of the batches.
    """
    generator = torch.Generator().manual_seed(seed)
    losses: list[float] = []
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
