"""Vision transformers on whole data sets, trained beforehand: Fashion-MNIST, small and enlarged, and CIFAR-10.

Fashion-MNIST comes through the registry. Of CIFAR-10 the cache folder has to hold `cifar10-jpeg.tar.xz`, the images
as JPEGs by class (`train/cat/0001.jpg`, `test/…`): they were compressed again with losses, so that scores are not quite
comparable with those of the original pixels. One seed each; sizes and rates were set on the validation pictures.
"""

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.folders import load_image_folder
from course_utils.data.images import ImageLoader, ImageSet, load_fashion_mnist
from course_utils.data.registry import DataUnavailable, cache_folder
from course_utils.lessons.runs import stored
from course_utils.metrics import accuracy, confusion_matrix, predict_classes
from course_utils.models.vision import PatchEmbedding, ViT
from course_utils.runtime import atomic_write, evaluating
from course_utils.train.losses import classification_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

CLOTHES = {"patch_size": 4, "embed_dim": 96, "ffn_dim": 192, "num_heads": 4, "num_layers": 3}
CLOTHES_EPOCHS, CLOTHES_RATE = 8, 2e-3
PHOTOS = {
    "image_size": 32, "patch_size": 4, "channels": 3,
    "embed_dim": 96, "ffn_dim": 192, "num_heads": 4, "num_layers": 4,
}  # fmt: skip
PHOTO_EPOCHS, PHOTO_RATE = 20, 2e-3
LARGE = {
    "image_size": 96, "patch_size": 16,
    "embed_dim": 512, "ffn_dim": 2048, "num_heads": 8, "num_layers": 2, "dropout": 0.1,
}  # fmt: skip
LARGE_BATCH, LARGE_RATE, LARGE_WARMUP = 128, 5e-4, 200
EVERY = 300.0  # seconds between two checkpoints of the long run


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
    steps = epochs * len(loader)

    def measure(model: nn.Module) -> dict[str, float]:
        return {"accuracy": accuracy(*predict_classes(model, held_out))}

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
    named = {"loss": "train_loss", "validation": "accuracy", "seconds": "seconds"}
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
        "training_seconds": sum(seconds for _, seconds in curves["seconds"]),
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


# CIFAR-10, with right and with wrong patches ------------------------------------------------------


class Unpermuted(PatchEmbedding):
    """The axes as `unfold` leaves them: a "patch" of a color image is c neighbors in one of the c colors."""

    def forward(self, images: Tensor) -> Tensor:
        """(batch, channels, height, width) → (batch, patches, embed_dim)."""
        p = self.patch_size
        windows = images.unfold(2, p, p).unfold(3, p, p)  # (batch, channels, rows, columns, p, p)
        return self.proj(windows.reshape(len(images), -1, images.shape[1] * p * p))


def photos(part: str) -> ImageSet:
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
    return load_image_folder(archive, 32, inside=part)


@stored(
    cases=[{"patches": kind, "epochs": PHOTO_EPOCHS, "seed": 0} for kind in ("right", "unpermuted")]
)
def recompressed_cifar10(
    *, patches: str, epochs: int, seed: int, checkpoint: Path | None = None
) -> dict:
    """CIFAR-10, 5,000 of its training pictures for validation; tested once."""
    images, validation = photos("train").split(45_000)
    torch.manual_seed(seed)
    model = ViT(**PHOTOS, dropout=0.0)
    if patches == "unpermuted":
        embedding = Unpermuted(PHOTOS["patch_size"], PHOTOS["channels"], PHOTOS["embed_dim"])
        embedding.load_state_dict(model.patch_embedding.state_dict())
        model.patch_embedding = embedding
    curves = learn(
        model,
        images,
        validation,
        epochs=epochs,
        lr=PHOTO_RATE,
        shift=4,
        seed=seed,
        checkpoint=checkpoint,
    )
    return _result(model, photos("test"), curves)


# As long as there is time -----------------------------------------------------------------------


def enlarged(images: Tensor, side: int = 96) -> Tensor:
    """(batch, 1, 28, 28) → (batch, 1, side, side), bilinear."""
    return F.interpolate(images, size=(side, side), mode="bilinear")


class Enlarged(nn.Module):
    """A model of large images that is given small ones."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 1, 28, 28) → logits (batch, classes)."""
        return self.model(enlarged(images))


class Timed:
    """A training that ends after so many seconds, cuts not counted; the rate falls in a line to 0 at that moment."""

    def __init__(self, model: nn.Module, loader: ImageLoader, seconds: float, lr: float):
        self.model, self.loader, self.seconds, self.lr = model, loader, seconds, lr
        self.optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=0.05, fused=True)
        self.step, self.spent = 0, 0.0
        self.losses: list[float] = []
        self.curves: dict[str, list] = {"loss": [], "validation": [], "seconds": []}

    def state(self) -> dict[str, Any]:
        """All that it needs to go on."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "loader": self.loader.state_dict(),
            "rng": torch.get_rng_state(),
            "numbers": {"step": self.step, "spent": self.spent},
            "losses": self.losses,
            "curves": self.curves,
        }

    def load(self, path: Path) -> None:
        """Go on from a file that `save` wrote."""
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.loader.load_state_dict(state["loader"])
        torch.set_rng_state(state["rng"])
        self.step, self.spent = state["numbers"]["step"], state["numbers"]["spent"]
        self.losses, self.curves = state["losses"], state["curves"]

    def save(self, path: Path | None) -> None:
        """Write the file whole, or not at all."""
        if path is not None:
            with atomic_write(path) as part:
                torch.save(self.state(), part)

    def run(self, validation: ImageSet, checkpoint: Path | None) -> None:
        """Train until the seconds are spent."""
        if checkpoint is not None and checkpoint.is_file():
            self.load(checkpoint)
        saved = self.spent
        while self.spent < self.seconds:
            for batch in self.loader:
                began = time.perf_counter()
                self.update(batch)
                self.spent += time.perf_counter() - began
                if self.spent >= self.seconds:
                    break
                if self.spent - saved > EVERY:
                    self.save(checkpoint)
                    saved = self.spent
            self.note(validation)
            self.save(checkpoint)

    def update(self, batch: Any) -> None:
        """One step."""
        left = max(1 - self.spent / self.seconds, 0.0)
        rate = self.lr * min((self.step + 1) / LARGE_WARMUP, left)
        self.optimizer.param_groups[0]["lr"] = rate
        loss = F.cross_entropy(self.model(batch.images), batch.labels, label_smoothing=0.1)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        self.losses.append(loss.item())

    def note(self, validation: ImageSet) -> None:
        """Loss since the last time, and accuracy on the validation pictures."""
        with evaluating(self.model):
            held_out = ImageLoader(validation, batch_size=250, shuffle=False)
            share = accuracy(*predict_classes(self.model, held_out))
        epoch = round(self.step / len(self.loader), 2)
        for name, value in (
            ("loss", sum(self.losses) / max(len(self.losses), 1)),
            ("validation", share),
            ("seconds", self.spent),
        ):
            self.curves[name].append([epoch, round(value, 4)])
        self.losses = []


@stored(cases=[{"seconds": 7200, "seed": 0}])
def enlarged_fashion(*, seconds: float, seed: int, checkpoint: Path | None = None) -> dict:
    """All of Fashion-MNIST at 96 × 96, patches of 16, 512 features, 2,048 inside, 8 heads, 2 layers."""
    images, validation = load_fashion_mnist("train", full=True).split(55_000)
    torch.manual_seed(seed)
    model = Enlarged(ViT(**LARGE))
    loader = ImageLoader(images, batch_size=LARGE_BATCH, augment=True, shift=2, seed=seed)
    training = Timed(model, loader, seconds, LARGE_RATE)
    training.run(validation, checkpoint)
    share, matrix = scores(model, load_fashion_mnist("test", full=True))
    result = {
        "test": round(share, 4),
        "validation": training.curves["validation"][-1][1],
        "epochs": training.curves["validation"][-1][0],
        "parameters": sum(one.numel() for one in model.parameters()),
        "training_seconds": round(training.spent),
    }
    classes = list(validation.classes)
    return {
        "result": result,
        "curves": training.curves,
        "examples": [{"classes": classes, "confusion": matrix}],
    }
