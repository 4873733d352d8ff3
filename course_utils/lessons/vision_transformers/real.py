"""A vision transformer on all of Fashion-MNIST, trained beforehand; the registry has the files.

One seed; sizes and rate were set beforehand and not tuned.
"""

from pathlib import Path

import torch
from torch import nn

from course_utils.data.images import ImageLoader, ImageSet, load_fashion_mnist
from course_utils.lessons.runs import cpu_meter, stored
from course_utils.metrics import accuracy, confusion_matrix, predict_classes
from course_utils.models.vision import ViT
from course_utils.train.losses import classification_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

CLOTHES = {"patch_size": 4, "embed_dim": 96, "ffn_dim": 192, "num_heads": 4, "num_layers": 3}
CLOTHES_EPOCHS, CLOTHES_RATE = 8, 2e-3


# Whole epochs -----------------------------------------------------------------------------------


def learn(
    model: ViT,
    images: ImageSet,
    validation: ImageSet,
    *,
    epochs: int,
    lr: float,
    shift: int,
    seed: int,
    checkpoint: Path | None,
) -> dict[str, list]:
    """Fit with random moves and mirrors, label smoothing and a linear decay; the curves by epoch."""
    loader = ImageLoader(images, batch_size=128, augment=True, shift=shift, seed=seed)
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
    )
    rows = trainer.fit(model, loader, resume=checkpoint is not None).rows
    named = {"loss": "train_loss", "validation": "accuracy", "cpu_seconds": "cpu"}
    return {
        name: [[row["epoch"], round(row[key], 4)] for row in rows] for name, key in named.items()
    }


def scores(model: nn.Module, test: ImageSet) -> tuple[float, list[list[int]]]:
    """Share of the test pictures that are right, and the confusion matrix."""
    found = predict_classes(model, ImageLoader(test, batch_size=500, shuffle=False))
    return accuracy(*found), confusion_matrix(*found, len(test.classes)).long().tolist()


def _result(model: nn.Module, test: ImageSet, curves: dict[str, list]) -> dict:
    share, matrix = scores(model, test)
    result = {
        "test": share,
        "validation": curves["validation"][-1][1],
        "parameters": sum(one.numel() for one in model.parameters()),
        "cpu_seconds": sum(seconds for _, seconds in curves["cpu_seconds"]),
    }
    return {
        "result": {name: round(value, 4) for name, value in result.items()},
        "curves": {name: curves[name] for name in ("loss", "validation")},
        "examples": [{"classes": list(test.classes), "confusion": matrix}],
    }


@stored(cases=[{"epochs": CLOTHES_EPOCHS, "seed": 0}])
def whole_fashion(*, epochs: int, seed: int, checkpoint: Path | None = None) -> dict:
    """All 60,000 pictures of Fashion-MNIST, 5,000 of them for validation; tested once."""
    images, validation = load_fashion_mnist("train", full=True).split(55_000)
    torch.manual_seed(seed)
    model = ViT(**CLOTHES, dropout=0.0)
    curves = learn(
        model,
        images,
        validation,
        epochs=epochs,
        lr=CLOTHES_RATE,
        shift=2,
        seed=seed,
        checkpoint=checkpoint,
    )
    return _result(model, load_fashion_mnist("test", full=True), curves)
