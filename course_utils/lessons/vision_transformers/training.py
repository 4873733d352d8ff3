"""The training of *Vision transformers* for its stored runs, as the chapter's own loop, and the models it compares.

Both pages use its pictures, sizes and scores.
"""

import functools
import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.images import ImageLoader, ImageSet, load_fashion_mnist
from course_utils.metrics import accuracy
from course_utils.models.vision import ViT
from course_utils.runtime import evaluating
from course_utils.train.steps import take_steps

SIZE = {"embed_dim": 64, "num_heads": 4, "ffn_dim": 128, "num_layers": 2, "dropout": 0.0}
"""Sizes of the chapter's ViT; patches of 7 × 7 and images of 28 × 28 are `ViT`'s own defaults."""

BATCH = 64
RATE = 3e-3
DECAY = 0.05
"""Weight decay."""
WARMUP = 0.1
"""Share of the steps in which the rate rises."""


@functools.cache
def parts() -> tuple[ImageSet, ImageSet, ImageSet]:
    """The course's pictures: 9,000 to train, 1,000 to choose by, 2,000 to test."""
    train, validation = load_fashion_mnist("train").split(9000)
    return train, validation, load_fashion_mnist("test")


def train(
    model: nn.Module,
    images: ImageSet,
    *,
    epochs: int | None = None,
    steps: int | None = None,
    lr: float = RATE,
    seed: int = 0,
    after_epoch: Callable[[int, float], None] | None = None,
) -> int:
    """The number of steps of a training with AdamW, whose rate rises over a tenth of them and falls on half a cosine.

    Args:
        model: (batch, channels, height, width) from -1 to 1 → logits (batch, classes).
        images: the training set.
        epochs, steps: one of them; a step takes one batch.
        lr: the largest rate.
        seed: of the order of the images.
        after_epoch: called with the number of the epoch, from 1 on, and its mean loss.
    """
    loader = ImageLoader(images, batch_size=BATCH, seed=seed)
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    total = steps or (epochs or 1) * len(loader)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=DECAY, fused=True)
    losses: list[float] = []

    def loss() -> Tensor:
        batch = next(batches)
        return F.cross_entropy(model(batch.images), batch.labels)

    def rate(step: int) -> float:
        rise = step / (WARMUP * total)
        fall = (1 + math.cos(math.pi * (step - 1) / total)) / 2
        return lr * min(rise, 1.0) * fall

    def after_step(step: int, value: float) -> None:
        losses.append(value)
        if len(losses) == len(loader):
            if after_epoch:
                after_epoch(step // len(loader), sum(losses) / len(losses))
            losses.clear()

    take_steps(optimizer, loss, steps=total, rate=rate, clip_norm=None, after_step=after_step)
    return total


def accuracy_of(model: nn.Module, images: ImageSet) -> float:
    """The model's accuracy: the share of the images that it names right."""
    return accuracy(*predict_classes(model, ImageLoader(images, batch_size=500, shuffle=False)))


class WithoutClassToken(ViT):
    """The ViT whose output layer reads the mean of the patches' tokens; there is no other token."""

    def forward(self, images: Tensor) -> Tensor:
        """(batch, channels, height, width) → logits (batch, num_classes)."""
        x = self.patch_embedding(images) + self.positions.table[1:]
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x).mean(dim=1))


def variant(kind: str, seed: int, **changes) -> ViT:
    """An untrained model: the chapter's, or with one change.

    Args:
        kind: "class token", "mean of the patches" or "no positions".
        seed: of its weights.
        changes: other sizes, such as `patch_size=4`.
    """
    torch.manual_seed(seed)
    if kind == "mean of the patches":
        return WithoutClassToken(**SIZE, **changes)
    model = ViT(**SIZE, **changes)
    if kind == "no positions":
        nn.init.zeros_(model.positions.table)
        model.positions.table.requires_grad_(False)
    return model


def distances(rows: int, columns: int) -> Tensor:
    """Distances of the places of a grid, (places, places), in steps along rows and columns."""
    patch = torch.arange(rows * columns)
    row, column = patch // columns, patch % columns
    return (row[:, None] - row).abs() + (column[:, None] - column).abs()


def position_cosines(model: ViT) -> Tensor:
    """Cosines of the position vectors of every two patches, (patches, patches)."""
    table = model.positions.table.detach()[1:]
    return F.cosine_similarity(table[:, None], table[None], dim=-1)


class SmallCNN(nn.Sequential):
    """A convolutional network to compare with: three 3 × 3 convolutions with stride 2, a linear layer.

    Gray images (batch, 1, height, width) → logits (batch, 10).
    """

    def __init__(self):
        layers: list[nn.Module] = []
        for channels, wider in ((1, 16), (16, 32), (32, 64)):
            convolution = nn.Conv2d(channels, wider, 3, stride=2, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(wider), nn.ReLU()]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 10))


# What a classifier says of many pictures, and which classes it takes for which --------------------


@torch.no_grad()
def predict_classes(model: nn.Module, batches) -> tuple[Tensor, Tensor]:
    """Predicted and true classes, each (n,), of all batches; the model runs in eval mode.

    Args:
        model: images (batch, channels, height, width) → logits (batch, classes).
        batches: an `ImageLoader` with `shuffle=False`, for instance.
    """
    device = next(model.parameters()).device
    with evaluating(model):
        pairs = [
            (model(batch.images.to(device)).argmax(-1).cpu(), batch.labels) for batch in batches
        ]
    predicted, true = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    return predicted, true


def confusion_matrix(predicted: Tensor, true: Tensor, num_classes: int) -> Tensor:
    """Counts, int64: images of each true class (row) that were taken for each class (column)."""
    cells = true * num_classes + predicted
    return torch.bincount(cells, minlength=num_classes**2).view(num_classes, num_classes)
