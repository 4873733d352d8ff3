"""What the further page of *Vision transformers* computes beside its text: larger images, and names of classes."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.data.images import ImageSet, scaled
from course_utils.models.vision import ViT
from course_utils.runtime import evaluating


def stretched(table: Tensor, grid: int) -> Tensor:
    """A position table for g × g patches, (1 + g², embed_dim), interpolated to (1 + grid², embed_dim)."""
    old = math.isqrt(len(table) - 1)
    square = table[1:].T.unflatten(1, (old, old))[None]
    finer = F.interpolate(square, size=(grid, grid), mode="bilinear")
    return torch.cat([table[:1], finer[0].flatten(1).T])


@torch.no_grad()
def share_right(model: ViT, images: ImageSet, side: int) -> float:
    """Share of the images, enlarged to side × side, that the model names right."""
    seen = F.interpolate(scaled(images.images), size=(side, side), mode="bilinear")
    with evaluating(model):
        return (model(seen).argmax(dim=-1) == images.labels).float().mean().item()


@torch.no_grad()
def class_tokens(model: ViT, images: ImageSet) -> Tensor:
    """(images, embed_dim): what the output layer would read."""
    with evaluating(model):
        return model.tokens(scaled(images.images))[:, 0]


def letters_of(names: Sequence[str]) -> tuple[Tensor, Tensor]:
    """The codes of all letters in one row, and where each name begins, as `nn.EmbeddingBag` takes them."""
    codes = [torch.tensor([min(ord(letter), 127) for letter in name.lower()]) for name in names]
    lengths = torch.tensor([0, *map(len, codes[:-1])])
    return torch.cat(codes), lengths.cumsum(dim=0)


def one_of_each(labels: Tensor) -> Tensor:
    """A random row of each class, in the order of the classes."""
    rows = [(labels == label).nonzero().flatten() for label in range(int(labels.max()) + 1)]
    return torch.stack([row[torch.randint(len(row), ())] for row in rows])
