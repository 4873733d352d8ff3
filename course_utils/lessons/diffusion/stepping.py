"""What the exercises of *Attention in a diffusion model* build: noise for a batch, a step back, attention to words."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course_utils.attention import merge_heads, split_heads
from course_utils.figures import COLORS, Picture, subplots
from course_utils.lessons.diffusion.training import STEPS, diffusion


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
    """From level a to level b: the sampler of Ho, Jain and Abbeel (2020), algorithm 2, with the guess cut.

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
    q, k, v = (split_heads(part, num_heads) for part in (queries, keys, values))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return merge_heads(scores.softmax(dim=-1) @ v)


def walk_picture(walks: Tensor, shown: int = 24) -> Picture:
    """Paths of single pixels from noise to +1 or −1, and how many are on the side where they end.

    Args:
        walks: (steps + 1, pixels), from the last step to step 0.
        shown: how many of them are drawn.
    """
    last = len(walks) - 1
    settled = ((walks > 0) == (walks[-1] > 0)).float().mean(dim=1)
    picture, ax = subplots(
        width=7.0,
        height=2.8,
        alt=f"Paths of {shown} pixels from noise at step {last} to plus or minus one at step 0: jagged; many change "
        "sides in the first hundred steps, a few later, none near the end. Above: the share of all paths that are "
        "on the side where they end.",
    )
    for walk in walks[:, :shown].T:
        color = COLORS["key" if walk[-1] > 0 else "query"]
        ax.plot(range(last, -1, -1), walk, linewidth=0.8, color=color)
    for t in (150, 100, 50):
        ax.axvline(t, color="black", linewidth=0.8, linestyle=":")
        ax.text(t, 3.0, f"{settled[last - t]:.0%} on their side", ha="center", fontsize=8)
    ax.set(xlabel="Step t", ylabel="Pixel $x_t$", xlim=(last, 0), ylim=(-2.9, 2.9))
    return picture


@torch.no_grad()
def path(
    network: Callable[..., Tensor], labels: Tensor, shown: Sequence[int], *, seed: int = 0
) -> Tensor:
    """Pictures of 14 × 14 on their way from noise: at each of the steps `shown`, (shown, n, 1, 14, 14).

    Args:
        network: (x, t, labels) → the noise.
        labels: (n,), what to draw.
        shown: steps from 200 down to 0, even numbers: every second step is visited.
        seed: of all noise.
    """
    alpha_bar = diffusion().alpha_bar
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(len(labels), 1, 14, 14, generator=generator)
    kept = {STEPS: x}
    for t in range(STEPS, 0, -2):
        found = network(x, torch.full((len(x),), t), labels)
        fresh = torch.randn(x.shape, generator=generator)
        x = step_back(x, found, alpha_bar[t], alpha_bar[t - 2], fresh)
        kept[t - 2] = x
    return torch.stack([kept[t] for t in shown])
