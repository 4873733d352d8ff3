"""Where one pixel of a noisy picture looks, in both stages and heads of a small U-Net."""

import functools

import numpy as np
import torch
import torch.nn.functional as F

from course_utils.cache import record_attention
from course_utils.data.images import ImageLoader, ImageSet, load_fashion_mnist
from course_utils.figures import COLORS, subplots
from course_utils.lessons.explorer import Explorer, IntRange, Slider, outline, still_copy
from course_utils.models.diffusion import UNet
from course_utils.models.noise import Diffusion, cosine_schedule

__all__ = ["pixels"]

STAGES = {"down.1.attention": "down", "up.0.attention": "up"}
"""Name of the attention in the network → what it is called in the picture."""
SIDE = 7
"""Pixels on each side of the coarse picture that attends."""
CLASS = "Pullover"
"""The picture shown is the first of this class in the test set."""


def pixels(network: UNet | None = None, diffusion: Diffusion | None = None) -> Explorer:
    """A noisy picture, one of its coarse pixels marked, and the weights with which that pixel looks.

    Args:
        network: two levels of 14 × 14 and 7 × 7 pixels, attention with two heads on the coarse one,
            ten classes. Without it a small one is trained here, which takes some seconds.
        diffusion: the noise that the network was trained with.

    Raises:
        ValueError: the network has no attention on two stages of two heads and 49 pixels.
    """
    diffusion = diffusion or Diffusion(cosine_schedule(200))
    levels = tuple(round(diffusion.steps * share) for share in (0.1, 0.5))
    seen = _look(still_copy(network or _trained()), diffusion, levels)
    controls = {
        "row": IntRange(0, SIDE - 1, 3, label="Row"),
        "column": IntRange(0, SIDE - 1, 3, label="Column"),
        "t": Slider(levels, levels[0], label="Noise: step t"),
    }
    caption = "The marked pixel asks. Evenly spread, each of the 49 pixels would get 2%."
    return Explorer("pixels", lambda: Looks(seen), controls, caption=caption)


class Looks:
    """The noisy picture and four maps, one for each stage and head, with one pixel marked in all."""

    def __init__(self, seen: dict[int, tuple[np.ndarray, np.ndarray]]):
        """`seen` as `_look` returns it."""
        self.seen = seen
        self.picture, axes = subplots(
            1, 5, alt="Where a pixel looks", width=8.5, height=2.1, width_ratios=[1.15, 1, 1, 1, 1]
        )
        noisy, _ = next(iter(seen.values()))
        self.noisy = axes[0].imshow(noisy, cmap="gray", vmin=-1, vmax=1)
        empty = np.zeros((SIDE, SIDE))
        self.maps = [ax.imshow(empty, cmap="Blues", vmin=0, vmax=0.15) for ax in axes[1:]]
        self.names = [(stage, head) for stage in STAGES.values() for head in (1, 2)]
        titles = ["noisy picture", *(f"{stage},\nhead {head}" for stage, head in self.names)]
        self.marks = []  # with the pixels of each picture to one of the coarse
        for ax, title, scale in zip(axes, titles, (2, 1, 1, 1, 1), strict=True):
            ax.set(xticks=[], yticks=[])
            ax.set_title(title, fontsize=9)
            ax.spines[:].set_visible(False)
            (mark,) = ax.plot([], [], color=COLORS["vermilion"], linewidth=2)
            self.marks.append((mark, scale))
        bar = self.picture.colorbar(
            self.maps[-1], ax=list(axes[1:]), shrink=0.75, pad=0.015, extend="max"
        )
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8)

    def draw(self, row: int, column: int, t: int) -> str:
        """Mark one coarse pixel, at the noise of step `t`."""
        noisy, weights = self.seen[t]
        looks = weights[:, row, column]  # (stages · heads, 7, 7)
        self.noisy.set_data(noisy)
        for image, look in zip(self.maps, looks, strict=True):
            image.set_data(look)
        for mark, scale in self.marks:
            left, top = column * scale - 0.5, row * scale - 0.5
            mark.set_data(*outline(left, top, left + scale, top + scale))
        places = []
        for (stage, head), look in zip(self.names, looks, strict=True):
            y, x = divmod(int(look.argmax()), SIDE)
            places.append(f"{stage}, head {head}: most, {look.max():.0%}, at row {y}, column {x}")
        return (
            f"A {CLASS.lower()} with the noise of step {t}, and where the coarse pixel in row {row}, column "
            f"{column} looks. {'; '.join(places)}."
        )


def _look(
    network: UNet, diffusion: Diffusion, levels: tuple[int, ...]
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Step t → the noisy picture (14, 14), and weights (stages · heads, 7, 7, 7, 7) of its coarse pixels."""
    data = load_fashion_mnist("test")
    data = _halved(data[(data.labels == data.classes.index(CLASS)).nonzero()[0]])
    batch = next(iter(ImageLoader(data, batch_size=1, shuffle=False)))
    noise = torch.randn(batch.images.shape, generator=torch.Generator().manual_seed(0))
    expected = (1, 2, SIDE**2, SIDE**2)
    seen = {}
    for t in levels:
        step = torch.tensor([t])
        noisy = diffusion.add_noise(batch.images, step, noise)
        with record_attention(network) as maps:
            network(noisy, step, batch.labels)
        if any(name not in maps or maps[name].shape != expected for name in STAGES):
            shapes = {name: tuple(weights.shape) for name, weights in maps.items()}
            raise ValueError(f"network has maps {shapes}; {list(STAGES)} of {expected} are needed")
        weights = torch.cat([maps[name][0] for name in STAGES])
        seen[t] = noisy[0, 0].numpy(), weights.view(-1, SIDE, SIDE, SIDE, SIDE).numpy()
    return seen


def _halved(data: ImageSet) -> ImageSet:
    """The same pictures with half the height and width: means of 2 × 2 pixels."""
    images = F.avg_pool2d(data.images.float(), 2).round().byte()
    return ImageSet(images, data.labels, data.classes)


@functools.cache
def _trained() -> UNet:
    data = _halved(load_fashion_mnist("train").take(3200))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = UNet(num_classes=10)
        diffusion = Diffusion(cosine_schedule(200))
        optimizer = torch.optim.Adam(network.parameters(), lr=4e-3)
        for batch in ImageLoader(data, batch_size=32):
            loss, count = diffusion.loss(network, batch)
            optimizer.zero_grad()
            (loss / count).backward()
            optimizer.step()
    return network
