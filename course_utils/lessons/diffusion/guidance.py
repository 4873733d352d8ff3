"""Samplers at equal steps and guidance, measured on drawn garments: for the further page."""

from collections.abc import Callable

import torch
from torch import Tensor

from course_utils.kit.live import load_model
from course_utils.lessons.diffusion.training import clothes, diffusion
from course_utils.models.diffusion import UNet

CLASSES, UNTOLD = 10, 10


def painter() -> UNet:
    """The stored network."""
    stored = load_model("clothes_unet")
    network = UNet(**stored.config)
    network.load_state_dict(stored.state)
    return network.eval()


def guided(network: Callable[..., Tensor], scale: float) -> Callable[..., Tensor]:
    """The network's noise without a class, plus `scale` times what the class changes: 1 is the network itself.

    Ho and Salimans (2022), "Classifier-free diffusion guidance", equation 6, whose w is `scale` − 1.
    """

    def guess(x: Tensor, t: Tensor, labels: Tensor) -> Tensor:
        if scale == 1:
            return network(x, t, labels)
        told, untold = network(x, t, labels), network(x, t, torch.full_like(labels, UNTOLD))
        return untold + scale * (told - untold)

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
    images, classes = clothes("train", 14)
    means = torch.stack([images[classes == c].mean(dim=0).flatten() for c in range(CLASSES)])
    found = torch.cdist(pictures.flatten(1), means).argmin(dim=1)
    spread = [pictures[labels == c].std(dim=0).mean().item() for c in range(CLASSES)]
    return {"named": (found == labels).float().mean().item(), "spread": sum(spread) / CLASSES}
