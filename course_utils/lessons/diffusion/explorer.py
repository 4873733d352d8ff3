"""Noise becomes clothes step by step; and what a network guesses behind the noise, told the class or not."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.figures import subplots
from course_utils.kit.explorer import Choice, Explorer, Slider
from course_utils.lessons.diffusion.sampling import UNTOLD, clothes, diffusion, painter, path

__all__ = ["from_noise", "guesses"]

NAMES = {"ankle boot": 9, "bag": 8, "sandal": 5, "coat": 4}
STEPS = (20, 60, 100, 140, 170, 190, 200)


def from_noise() -> Explorer:
    """Ten pictures, a class each, on their way from noise to clothes."""
    steps = Slider(tuple(range(200, -1, -20)), 200, label="Step")
    return Explorer("from_noise", FromNoise, {"t": steps})


class FromNoise:
    """Two rows of five pictures; the network is the stored one."""

    def __init__(self):
        ways = path(painter(), torch.arange(10), range(200, -1, -20)).clamp(-1, 1)
        framed = F.pad(ways[:, :, 0], (1, 1, 1, 1), value=-1).unflatten(1, (2, 5))
        self.rows = framed.transpose(2, 3).flatten(3, 4).flatten(1, 2)  # (steps, 2 · 16, 5 · 16)
        self.picture, ax = subplots(alt="Noise becomes clothes", width=5.0, height=2.1)
        self.image = ax.imshow(self.rows[0], cmap="gray", vmin=-1, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)

    def draw(self, t: int) -> str:
        """The ten pictures at step t."""
        self.image.set_data(self.rows[(200 - t) // 20])
        return f"Ten pictures of 14 by 14 pixels at step {t} of 200: {_look(t)}."


def _look(t: int) -> str:
    return "noise" if t > 150 else "outlines in noise" if t else "clothes"


def guesses(network: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None) -> Explorer:
    """A held-out garment in noise, and the clean picture that the network guesses, told its class or not.

    Args:
        network: (x, t, labels) → the noise, for pictures of 14 × 14; by default the stored one.
    """
    network = network or painter()
    controls = {
        "garment": Choice(tuple(NAMES), "ankle boot", label="Garment"),
        "t": Slider(STEPS, 140, label="Noise: step t"),
    }
    caption = "Held-out pictures. A guess is a mean of what could be there: in strong noise it is blurred."
    return Explorer("guesses", lambda: Guesses(network), controls, caption=caption)


class Guesses:
    """Four pictures: noisy, two guesses, and what it was."""

    def __init__(self, network: Callable[[Tensor, Tensor, Tensor], Tensor]):
        """`network` as in `guesses`."""
        self.network = network
        self.picture, axes = subplots(1, 4, alt="Guesses", width=8.0, height=2.3)
        self.images = [ax.imshow(torch.zeros(14, 14), cmap="gray", vmin=-1, vmax=1) for ax in axes]
        titles = ("in noise", "guess, class told", "guess, not told", "what it was")
        for ax, title in zip(axes, titles, strict=True):
            ax.set(xticks=[], yticks=[])
            ax.set_title(title, fontsize=9)
            ax.spines[:].set_visible(False)

    def draw(self, garment: str, t: int) -> str:
        """A garment of this name, with the noise of step t."""
        images, labels = clothes("test", 14)
        row = int((labels == NAMES[garment]).nonzero()[1])
        clean = images[row : row + 1]
        noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(t))
        a = diffusion().alpha_bar[t]
        x = a.sqrt() * clean + (1 - a).sqrt() * noise
        classes = torch.tensor([NAMES[garment], UNTOLD])
        with torch.no_grad():
            predicted = self.network(x.expand(2, -1, -1, -1), torch.full((2,), t), classes)
        guess = ((x - (1 - a).sqrt() * predicted) / a.sqrt()).clamp(-1, 1)
        gaps = (guess - clean).square().mean(dim=(1, 2, 3)).tolist()
        for image, pixels in zip(self.images, (x[0], guess[0], guess[1], clean[0]), strict=True):
            image.set_data(pixels[0])
        return (
            f"A held-out picture, {garment}, with the noise of step {t}: a share of {a:.2f} of the variance is the "
            f"picture's. The guess is off by {gaps[0]:.2f} if the class is told, else by {gaps[1]:.2f}."
        )
