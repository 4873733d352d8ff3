"""The training loop of *Attention in a diffusion model*, for the runs that are made beforehand."""

import functools
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.data.images import load_fashion_mnist
from course_utils.models.noise import Diffusion, cosine_schedule
from course_utils.train.schedules import warmup_decay

STEPS = 200
"""Of the diffusion: from a picture, 0, to almost only noise."""

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
    lr: float = RATE,
    seed: int = 0,
) -> None:
    """Fit a network: the rate rises over 20 steps, then falls on a line to 0.

    Args:
        network: what is trained.
        loss: draws a batch with the generator, and gives its mean loss.
        steps, lr: how many steps, and the largest rate.
        seed: of the batches.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=lr, betas=(0.9, 0.99))
    rate = warmup_decay(20, steps)
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = lr * rate(step)
        value = loss(generator)
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()


def seconds_per_step(first: Callable[[], object], second: Callable[[], object]) -> dict[str, float]:
    """CPU seconds of two functions, called in turns, 7 times 10 calls each: the medians, and their ratio."""
    spent: list[list[float]] = [[], []]
    for turn in range(8):
        for times, function in zip(spent, (first, second), strict=True):
            start = time.process_time()
            for _ in range(10):
                function()
            if turn:  # the first turn warms up
                times.append((time.process_time() - start) / 10)
    one, other = (sorted(times)[len(times) // 2] for times in spent)
    ratios = sorted(b / a for a, b in zip(*spent, strict=True))
    return {"first": one, "second": other, "ratio": ratios[len(ratios) // 2]}
