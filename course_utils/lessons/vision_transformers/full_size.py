"""CIFAR-10 as it is, and Fashion-MNIST enlarged to 96 × 96: `make gpu CHAPTER=15`."""

from pathlib import Path

import torch
from torch import nn

from course_utils.data.images import ImageSet, load_fashion_mnist
from course_utils.kit.runs import stored
from course_utils.lessons.vision_transformers.cifar import load_cifar10
from course_utils.lessons.vision_transformers.real import LARGE, learn, scores
from course_utils.models.vision import ViT
from course_utils.runtime import best_device, placed

PHOTOS = {"image_size": 32, "patch_size": 4, "channels": 3, "num_heads": 8}


def _learned(
    model: nn.Module,
    known: ImageSet,
    test: ImageSet,
    *,
    epochs: int,
    lr: float,
    seed: int,
    checkpoint: Path | None,
) -> dict:
    """A tenth of the training images is for validation; the test is scored once."""
    images, validation = known.split(len(known) * 9 // 10)
    options = {"epochs": epochs, "seed": seed, "checkpoint": checkpoint, "lr": lr}
    curves = learn(model, images, validation, **options)
    with placed(model, best_device()):
        return scores(model, test, curves)


@stored(
    cases=[{"epochs": 40, "width": 256, "layers": 6, "seed": 0}],
    minutes=10,
    quick={"epochs": 1, "width": 16, "layers": 1},
)
def photographs(
    *, epochs: int, width: int, layers: int, seed: int, checkpoint: Path | None = None
) -> dict:
    """CIFAR-10, 40 epochs (Kak, 2025), of which a tenth warms up."""
    torch.manual_seed(seed)
    model = ViT(**PHOTOS, embed_dim=width, ffn_dim=2 * width, num_layers=layers, dropout=0.1)
    parts = (load_cifar10(part) for part in ("train", "test"))
    return _learned(model, *parts, epochs=epochs, lr=1e-3, seed=seed, checkpoint=checkpoint)


@stored(
    cases=[{"epochs": 20, "width": 512, "layers": 2, "seed": 0}],
    minutes=5,
    quick={"epochs": 1, "width": 16, "layers": 1},
)
def clothes(
    *, epochs: int, width: int, layers: int, seed: int, checkpoint: Path | None = None
) -> dict:
    """Fashion-MNIST at 96 × 96 (Dive into Deep Learning, section 11.8), five times as long as `enlarged_fashion`."""
    torch.manual_seed(seed)
    size = LARGE | {"embed_dim": width, "ffn_dim": 4 * width, "num_layers": layers}
    model = nn.Sequential(nn.Upsample((96, 96), mode="bilinear"), ViT(**size, dropout=0.1))
    parts = (load_fashion_mnist(part, full=True) for part in ("train", "test"))
    return _learned(model, *parts, epochs=epochs, lr=5e-4, seed=seed, checkpoint=checkpoint)
