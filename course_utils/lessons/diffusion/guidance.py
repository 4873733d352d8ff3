"""Garments of a class, drawn by the stored network with classifier-free guidance, and how they are scored.

For *Attention in a diffusion model*, its further page.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from course_utils.kit.stored_model import load_model
from course_utils.lessons.diffusion.training import clothes, diffusion
from course_utils.models.diffusion import UNet

CLASSES = 10
NO_CLASS = 10
"""The label of a picture whose class is withheld."""


def painter() -> UNet:
    """The stored network for garments of 14 × 14, in eval mode."""
    return load_model("clothes_unet").network(UNet)


def guided(network: Callable[..., Tensor], scale: float) -> Callable[..., Tensor]:
    """The denoiser whose noise is the network's without a class, plus `scale` times what the class changes.

    With a scale of 1 it is the network itself.

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
def draw_garments(count: int, *, num_steps: int, eta: float, scale: float, seed: int) -> Tensor:
    """`count` garments of each class, drawn by the stored network: (10 · count, 1, 14, 14), class by class.

    Args:
        count: garments of a class.
        num_steps, eta, seed: as in `Diffusion.sample`.
        scale: of the guidance.
    """
    labels = torch.arange(CLASSES).repeat_interleave(count)
    shape = (len(labels), 1, 14, 14)
    network = guided(painter(), scale)
    return diffusion().sample(
        network, shape, labels=labels, num_steps=num_steps, eta=eta, seed=seed
    )


def class_scores(pictures: Tensor, labels: Tensor) -> dict[str, float]:
    """Scores of drawn pictures, (batch, 1, size, size), by their classes, (batch,).

    "named" is the share of pictures that are nearest to the mean of their class in the training part, and "spread" the
    mean standard deviation of a pixel within a class.
    """
    images, classes = clothes("train", pictures.shape[-1])
    means = torch.stack([images[classes == c].mean(dim=0).flatten() for c in range(CLASSES)])
    nearest = torch.cdist(pictures.flatten(1), means).argmin(dim=1)
    spreads = [pictures[labels == c].std(dim=0).mean().item() for c in range(CLASSES)]
    return {"named": (nearest == labels).float().mean().item(), "spread": sum(spreads) / CLASSES}
