"""Vision transformers on whole data sets, trained beforehand: Fashion-MNIST and CIFAR-10.

Fashion-MNIST comes through the registry. Of CIFAR-10 the cache folder has to hold `cifar10-jpeg.tar.xz`, the images
as JPEGs by class (`train/cat/0001.jpg`, `test/…`): they were compressed again with losses, so that scores are not quite
comparable with those of the original pixels. The test parts chose nothing.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

from course_utils.data.folders import load_image_folder
from course_utils.data.images import ImageLoader, ImageSet, load_fashion_mnist
from course_utils.data.registry import DataUnavailable, cache_folder
from course_utils.kit.runs import cpu_meter, stored
from course_utils.lessons.vision_transformers.training import confusion_matrix, predict_classes
from course_utils.metrics import accuracy
from course_utils.models.vision import PatchEmbedding, ViT
from course_utils.runtime import best_device, placed
from course_utils.train.losses import classification_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

SIZE = {"patch_size": 4, "embed_dim": 96, "ffn_dim": 192, "num_heads": 3, "num_layers": 3}
BATCH, RATE = 64, 2e-3
PHOTO_EPOCHS = 6


# Whole epochs -----------------------------------------------------------------------------------


def learn(
    model: nn.Module,
    images: ImageSet,
    validation: ImageSet,
    *,
    epochs: int,
    seed: int,
    checkpoint: Path | None,
    lr: float = RATE,
) -> dict[str, list]:
    """Fit to images that are mirrored at random, with warm-up and a linear decay; the curves by epoch."""
    loader = ImageLoader(images, batch_size=BATCH, augment=True, shift=0, seed=seed)
    held_out = ImageLoader(validation, batch_size=500, shuffle=False)
    steps, since = epochs * len(loader), cpu_meter()

    def measure(model: nn.Module) -> dict[str, float]:
        return {"accuracy": accuracy(*predict_classes(model, held_out)), "cpu": since()}

    trainer = Trainer(
        classification_loss(label_smoothing=0.1),
        epochs=epochs,
        lr=lr,
        schedule=warmup_decay(steps // 10, steps),
        weight_decay=0.05,
        measure=measure,
        seed=seed,
        checkpoint=checkpoint,
        quiet=True,
        graphs=True,
    )
    rows = trainer.fit(model, loader, resume=checkpoint is not None).rows
    named = {"loss": "train_loss", "validation": "accuracy", "cpu_seconds": "cpu"}
    return {
        name: [[row["epoch"], round(row[key], 4)] for row in rows] for name, key in named.items()
    }


def scores(model: nn.Module, test: ImageSet, curves: dict[str, list]) -> dict:
    """What a run gives: the test's accuracy and confusion, and the curves."""
    predictions = predict_classes(model, ImageLoader(test, batch_size=500, shuffle=False))
    result = {
        "test": accuracy(*predictions),
        "validation": curves["validation"][-1][1],
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "cpu_seconds": sum(seconds for _, seconds in curves["cpu_seconds"]),
    }
    confusion = confusion_matrix(*predictions, len(test.classes)).tolist()
    return {
        "result": result,
        "curves": {name: curves[name] for name in ("loss", "validation")},
        "examples": [{"classes": list(test.classes), "confusion": confusion}],
    }


# CIFAR-10, with right and with wrong patches ------------------------------------------------------


class Unpermuted(PatchEmbedding):
    """The axes as `unfold` leaves them: a "patch" of a color image is three neighbors, nearly always in one color."""

    def forward(self, images: Tensor) -> Tensor:
        """(batch, channels, height, width) → (batch, patches, embed_dim)."""
        p = self.patch_size
        windows = images.unfold(2, p, p).unfold(3, p, p)  # (batch, channels, rows, columns, p, p)
        length = images.shape[1] * p * p
        return self.proj(windows.reshape(len(images), -1, length))


def photos(split: str) -> ImageSet:
    """The "train" or "test" pictures of CIFAR-10, from JPEGs.

    Raises:
        DataUnavailable: the archive is not in the cache folder.
    """
    archive = cache_folder() / "cifar10-jpeg.tar.xz"
    if not archive.is_file():
        raise DataUnavailable(
            f"{archive} is missing: CIFAR-10 as JPEGs by class, train/cat/0001.jpg and test/…; "
            "COURSE_CACHE names the folder where it lies"
        )
    return load_image_folder(archive, 32, inside=split)


@stored(
    cases=[
        {"patches": kind, "epochs": PHOTO_EPOCHS, "seed": 0} for kind in ("right", "unpermuted")
    ],
    times=("cpu_seconds",),
)
def recompressed_cifar10(
    *, patches: str, epochs: int, seed: int, checkpoint: Path | None = None
) -> dict:
    """CIFAR-10, a tenth of its training pictures for validation; tested once."""
    torch.manual_seed(seed)
    model = ViT(image_size=32, channels=3, **SIZE, dropout=0.0)
    if patches == "unpermuted":
        embedding = Unpermuted(SIZE["patch_size"], 3, SIZE["embed_dim"])
        embedding.load_state_dict(model.patch_embedding.state_dict())
        model.patch_embedding = embedding
    parts = map(photos, ("train", "test"))
    return _learned(model, *parts, epochs=epochs, seed=seed, checkpoint=checkpoint)


# At full size, for a GPU ------------------------------------------------------------------------


def _learned(
    model: nn.Module, labeled: ImageSet, test: ImageSet, *, checkpoint: Path | None, **options
) -> dict:
    """A tenth of the training images is for validation; the test is scored once."""
    images, validation = labeled.split(len(labeled) * 9 // 10)
    curves = learn(model, images, validation, checkpoint=checkpoint, **options)
    with placed(model, best_device()):
        return scores(model, test, curves)


@stored(
    cases=[{"epochs": 40, "width": 256, "layers": 6, "seed": 0}],
    minutes=10,
    quick={"epochs": 1, "width": 16, "layers": 1},
)
def recompressed_photographs(
    *, epochs: int, width: int, layers: int, seed: int, checkpoint: Path | None = None
) -> dict:
    """CIFAR-10, read from JPEGs, 40 epochs (Kak, 2025), of which a tenth warms up."""
    torch.manual_seed(seed)
    size = {"image_size": 32, "patch_size": 4, "channels": 3, "num_heads": 8, "embed_dim": width}
    model = ViT(**size, ffn_dim=2 * width, num_layers=layers, dropout=0.1)
    parts = map(photos, ("train", "test"))
    return _learned(model, *parts, epochs=epochs, lr=1e-3, seed=seed, checkpoint=checkpoint)


@stored(
    cases=[{"epochs": 20, "width": 512, "layers": 2, "seed": 0}],
    minutes=5,
    quick={"epochs": 1, "width": 16, "layers": 1},
    times=("cpu_seconds",),
)
def clothes(
    *, epochs: int, width: int, layers: int, seed: int, checkpoint: Path | None = None
) -> dict:
    """Fashion-MNIST at 96 × 96 (Dive into Deep Learning, section 11.8)."""
    torch.manual_seed(seed)
    size = {"image_size": 96, "patch_size": 16, "num_heads": 8, "embed_dim": width}
    vit = ViT(**size, ffn_dim=4 * width, num_layers=layers, dropout=0.1)
    model = nn.Sequential(nn.Upsample((96, 96), mode="bilinear"), vit)
    parts = (load_fashion_mnist(split, full=True) for split in ("train", "test"))
    return _learned(model, *parts, epochs=epochs, lr=5e-4, seed=seed, checkpoint=checkpoint)
