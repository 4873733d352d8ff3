"""A ViT on all of Fashion-MNIST: test accuracy and time, with the course's own Trainer.

    python -m benchmarks.fashion_mnist [--folder FOLDER] [--epochs N] [--threads N] [--json FILE]

FOLDER holds the four IDX files; without it the registry finds or downloads them.
"""

import argparse
import json
import os
import time
from pathlib import Path

import torch

from benchmarks.timing import conditions
from course_utils.data.images import ImageLoader, load_fashion_mnist
from course_utils.lessons.vision_transformers.scores import predict_classes
from course_utils.metrics import accuracy
from course_utils.models.vision import ViT
from course_utils.runtime import seed_everything
from course_utils.train.losses import classification_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer


def run(folder: Path | None, *, epochs: int, seed: int, patch_size: int) -> dict:
    """Train once and evaluate on the 10,000 test images."""
    train = load_fashion_mnist("train", full=True, folder=folder)
    test = load_fashion_mnist("test", full=True, folder=folder)
    seed_everything(seed)
    model = ViT(patch_size=patch_size, dropout=0.0)
    loader = ImageLoader(train, augment=True, shift=1, mirror=False, seed=seed)
    steps = epochs * len(loader)
    trainer = Trainer(
        classification_loss(label_smoothing=0.1),
        epochs=epochs,
        lr=2e-3,
        schedule=warmup_decay(steps // 10, steps),
        weight_decay=0.5,
        seed=seed,
        quiet=True,
    )
    began, used = time.perf_counter(), time.process_time()
    history = trainer.fit(model, loader)
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    share = accuracy(*predict_classes(model, ImageLoader(test, batch_size=500, shuffle=False)))
    return {
        "accuracy": share,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "epochs": epochs,
        "seed": seed,
        "patch_size": patch_size,
        "train_loss": history.rows[-1]["train_loss"],
    }


def main(arguments: list[str] | None = None) -> None:
    """Print the result, and write it as JSON if a file is named."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.fashion_mnist", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--patch-size", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    result = run(
        options.folder, epochs=options.epochs, seed=options.seed, patch_size=options.patch_size
    )
    text = json.dumps(conditions() | result, indent=1, ensure_ascii=False)
    print(text)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
