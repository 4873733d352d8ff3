"""A GPT on Tiny Shakespeare at the size that nanoGPT has for a GPU: `make gpu CHAPTER=13`."""

import math
from pathlib import Path

import torch
from torch import Tensor

from course_utils.data.loading import Loader
from course_utils.data.prose import TextBatch, TextLoader, cut_windows, next_token
from course_utils.kit.runs import stored
from course_utils.lessons.gpt.real import characters
from course_utils.models.language import GPT
from course_utils.runtime import seed_everything
from course_utils.train.losses import language_model_loss
from course_utils.train.trainer import Trainer

BATCH, RATE, LOWEST, WARMUP = 64, 1e-3, 0.1, 100
PER_EPOCH = 250  # steps between two validations


class Windows(Loader):
    """Batches of windows from random places of a text; a pass has so many `steps`."""

    def __init__(self, stream: Tensor, length: int, *, steps: int, batch_size: int, seed: int):
        super().__init__(steps * batch_size, batch_size=batch_size, shuffle=True, seed=seed)
        self.stream, self.length = stream, length

    def _batch(self, rows: list[int], generator: torch.Generator) -> TextBatch:
        starts = torch.randint(len(self.stream) - self.length, (len(rows), 1), generator=generator)
        both = self.stream[starts + torch.arange(self.length + 1)]
        return next_token(both, torch.full((len(rows),), self.length + 1), generator)


@stored(
    cases=[{"steps": 5000, "width": 384, "layers": 6, "length": 256, "seed": 0}],
    minutes=5,
    quick={"steps": 2, "width": 12, "layers": 1, "length": 16},
)
def full_size(
    *,
    steps: int,
    width: int,
    layers: int,
    length: int,
    seed: int,
    checkpoint: Path | None = None,
) -> dict:
    """Losses of 6 layers, 6 heads and 384 features; the rate falls to a tenth on half a cosine."""
    alphabet, training, validation = characters()
    seed_everything(seed)
    sizes = {"embed_dim": width, "num_heads": 6, "num_layers": layers, "max_len": length}
    model = GPT(len(alphabet), **sizes, dropout=0.2)
    per_epoch = min(PER_EPOCH, steps)

    def schedule(step: int) -> float:
        falling = (1 + math.cos(math.pi * step / steps)) / 2
        return min(step / WARMUP, LOWEST + (1 - LOWEST) * falling)

    history = Trainer(
        language_model_loss(),
        epochs=steps // per_epoch,
        lr=RATE,
        schedule=schedule,
        weight_decay=0.1,
        betas=(0.9, 0.99),
        seed=seed,
        checkpoint=checkpoint,
    ).fit(
        model,
        Windows(training, length, steps=per_epoch, batch_size=BATCH, seed=seed),
        TextLoader(
            cut_windows(validation.tolist(), length), next_token, batch_size=BATCH, shuffle=False
        ),
        resume=checkpoint is not None,
    )
    losses = [row["val_loss"] for row in history.rows]
    result = {
        "val_loss": losses[-1],
        "best_val_loss": min(losses),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    return {
        "result": {name: round(value, 4) for name, value in result.items()},
        "curves": {
            name: [[row["step"], round(row[name], 4)] for row in history.rows]
            for name in ("train_loss", "val_loss")
        },
    }
