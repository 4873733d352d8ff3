"""Where one pixel of a noisy picture looks, in both stages and heads of a small U-Net."""

import functools

import torch
import torch.nn.functional as F

from course_utils.cache import record_attention
from course_utils.data.images import ImageLoader, ImageSet, load_fashion_mnist
from course_utils.figures import COLORS, subplots
from course_utils.lessons.explorer import Explorer, IntRange, Slider
from course_utils.models.diffusion import UNet
from course_utils.models.noise import Diffusion, cosine_schedule
from course_utils.runtime import evaluating

__all__ = ["pixels"]

STAGES = {"down.1.attention": "on the way down", "up.0.attention": "on the way up"}
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
    network = network or _trained()
    data = load_fashion_mnist("test")
    data = _halved(data[(data.labels == data.classes.index(CLASS)).nonzero()[0]])
    batch = next(iter(ImageLoader(data, batch_size=1, shuffle=False)))
    noise = torch.randn(batch.images.shape, generator=torch.Generator().manual_seed(0))
    levels = tuple(round(diffusion.steps * share) for share in (0.1, 0.5))
    seen = {}
    for t in levels:
        step = torch.tensor([t])
        noisy = diffusion.add_noise(batch.images, step, noise)
        with evaluating(network), record_attention(network) as maps, torch.no_grad():
            network(noisy, step, batch.labels)
        if any(name not in maps or maps[name].shape != (1, 2, 49, 49) for name in STAGES):
            shapes = {name: tuple(weights.shape) for name, weights in maps.items()}
            raise ValueError(
                f"network has maps {shapes}; {list(STAGES)} of (1, 2, 49, 49) are needed"
            )
        weights = torch.cat([maps[name][0] for name in STAGES])  # (stages · heads, 49, 49)
        seen[t] = noisy[0, 0].numpy(), weights.view(4, 7, 7, 7, 7).numpy()

    def picture():
        fig, axes = subplots(
            1, 5, alt="Where a pixel looks", width=8.5, height=2.1, width_ratios=[1.15, 1, 1, 1, 1]
        )
        shown = axes[0].imshow(seen[levels[0]][0], cmap="gray", vmin=-1, vmax=1)
        axes[0].set_title("noisy picture", fontsize=9)
        maps = [ax.imshow([[0.0] * 7] * 7, cmap="Blues", vmin=0, vmax=0.15) for ax in axes[1:]]
        titles = [f"{stage},\nhead {head}" for stage in ("down", "up") for head in (1, 2)]
        for ax, title in zip(axes[1:], titles, strict=True):
            ax.set_title(title, fontsize=9)
        marks = []
        for ax, size in zip(axes, (2, 1, 1, 1, 1), strict=True):
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            (mark,) = ax.plot([], [], color=COLORS["vermilion"], linewidth=2)
            marks.append((mark, size))
        bar = fig.colorbar(maps[-1], ax=list(axes[1:]), shrink=0.75, pad=0.015, extend="max")
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8)

        def draw(row: int, column: int, t: int) -> str:
            noisy, weights = seen[t]
            shown.set_data(noisy)
            for image, one in zip(maps, weights[:, row, column], strict=True):
                image.set_data(one)
            for mark, size in marks:
                left, top = column * size - 0.5, row * size - 0.5
                mark.set_data(
                    [left, left + size, left + size, left, left],
                    [top, top, top + size, top + size, top],
                )
            places = []
            for title, one in zip(titles, weights[:, row, column], strict=True):
                y, x = divmod(int(one.argmax()), 7)
                name = title.replace("\n", " ")
                places.append(f"{name}: most, {one.max():.0%}, at row {y}, column {x}")
            return (
                f"A {CLASS.lower()} with the noise of step {t}, and where the coarse pixel in row {row}, column "
                f"{column} looks. {'; '.join(places)}."
            )

        return fig, draw

    controls = {
        "row": IntRange(0, 6, 3, label="Row"),
        "column": IntRange(0, 6, 3, label="Column"),
        "t": Slider(levels, levels[0], label="Noise: step t"),
    }
    caption = "The marked pixel asks. Evenly spread, each of the 49 pixels would get 2 %."
    return Explorer("pixels", picture, controls, caption=caption)


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
