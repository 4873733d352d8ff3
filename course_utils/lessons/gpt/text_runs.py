"""Stored runs of *GPT* on Tiny Shakespeare, character by character, and what its further page shows of them.

`shakespeare` has the size that nanoGPT has for a CPU: four layers, four heads, 128 features, windows of 64 characters;
the first nine tenths of the text are for training and the last tenth for validation, as there. nanoGPT says a
validation loss of 1.88 after 2,000 steps of 12 windows; this run takes more steps, with a larger rate. Both were set
before it, and there is one seed.
"""

import math
import time
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from course_utils.data.loading import Loader
from course_utils.data.prose import TextBatch, TextLoader, cut_windows, next_token
from course_utils.data.registry import fetch
from course_utils.decoding import next_token_probs
from course_utils.kit.runs import StoredRun, stored, stored_run
from course_utils.lessons.gpt.ngrams import kneser_ney_losses
from course_utils.lessons.gpt.training import evaluate, train, windows
from course_utils.lessons.sequence_to_sequence.translator_training import curves_of
from course_utils.models.language import GPT
from course_utils.runtime import evaluating, seed_everything
from course_utils.train.losses import language_model_loss
from course_utils.train.trainer import Trainer

# GPT on whole Shakespeare -------------------------------------------------------------------------

LENGTH = 64
"""Characters of a window."""
SIZE = {"embed_dim": 128, "num_heads": 4, "num_layers": 4, "max_len": LENGTH, "dropout": 0.0}
STEPS, BATCH, RATE, WARMUP = 3000, 12, 3e-3, 100
SAMPLED = (0, 100, 300, 1000, 2000, STEPS)
"""Steps at which it writes a text."""
EVERY = 500
"""Steps between two validations."""
ORDERS = 7
"""Tokens of the longest n-grams."""


def characters() -> tuple[str, Tensor, Tensor]:
    """The alphabet in order, and the ids of the training and of the validation text."""
    text = fetch("tinyshakespeare").read_text(encoding="utf-8")
    alphabet = "".join(sorted(set(text)))
    stream = ids(text, alphabet)
    cut = int(0.9 * len(stream))
    return alphabet, stream[:cut], stream[cut:]


@stored(cases=[{"steps": STEPS, "batch": BATCH, "seed": 0}], times=("seconds",))
def shakespeare(*, steps: int, batch: int, seed: int) -> dict:
    """Losses by step, CPU seconds of training alone, and what it writes at several steps.

    The validation loss counts all characters of windows one behind the other, the first of which have little
    to read. `val_loss_read` counts those with half a window or more before them, as n-grams have it.
    """
    alphabet, training, validation = characters()
    seed_everything(seed)
    model = GPT(len(alphabet), **SIZE)
    curves: dict[str, list] = {"train_loss": [], "val_loss": []}
    texts: list[dict] = []
    spent = [0.0, time.process_time()]  # CPU seconds of training, and when it went on

    def watch(step: int, loss: float) -> None:
        spent[0] += time.process_time() - spent[1]
        if step % EVERY == 0 or step == steps:
            curves["val_loss"].append([step, round(evaluate(model, validation, LENGTH), 4)])
            if step:
                curves["train_loss"].append([step, round(loss, 4)])
        if step in SAMPLED:
            texts.append({"step": step, "text": write(model, alphabet, 240)})
        spent[1] = time.process_time()

    batches = partial(windows, training, LENGTH, batch)
    train(model, batches, steps=steps, lr=RATE, warmup=WARMUP, seed=seed, watch=watch)
    result = {
        "val_loss": curves["val_loss"][-1][1],
        "best_val_loss": min(loss for _, loss in curves["val_loss"]),
        "val_loss_read": evaluate(model, validation, LENGTH, read=LENGTH // 2),
        "seconds": round(spent[0]),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    return {"result": result, "curves": curves, "examples": texts}


@stored(cases=[{}])
def shakespeare_kneser_ney() -> dict:
    """Validation losses of n-grams with modified Kneser–Ney smoothing, by their order: the numbers to beat."""
    alphabet, training, validation = characters()
    losses = kneser_ney_losses(training.tolist(), validation.tolist(), ORDERS + 1, len(alphabet))
    return {"result": {str(order): loss for order, loss in enumerate(losses, 1)}}


def ids(text: str, alphabet: str) -> Tensor:
    """Ids of a text's characters, (characters,): their places in the alphabet."""
    number = {character: index for index, character in enumerate(alphabet)}
    return torch.tensor([number[character] for character in text])


@torch.no_grad()
def write(model: GPT, alphabet: str, count: int) -> str:
    """A text of `count` characters, drawn after a line break.

    Where the table of positions ends, the model begins again with the last half window.
    """
    generator = torch.Generator().manual_seed(1)
    ids = [alphabet.index("\n")]
    with evaluating(model):
        state, new = model.start(), torch.tensor([ids])
        for _ in range(count):
            if state.length == LENGTH:
                state, new = model.start(), torch.tensor([ids[-LENGTH // 2 :]])
            probs = next_token_probs(model.step(new, state), temperature=0.8)
            new = torch.multinomial(probs, 1, generator=generator)
            ids.append(int(new))
    return "".join(alphabet[index] for index in ids[1:])


# What the chapter shows -------------------------------------------------------------------------


def real_run() -> StoredRun:
    """The stored run on Tiny Shakespeare."""
    return stored_run("gpt", "shakespeare")


# At full size, for a GPU ------------------------------------------------------------------------


class Windows(Loader):
    """Batches of windows from random places of a text.

    Args:
        stream: ids of the text, (tokens,).
        length: tokens of a window.
        steps: batches of a pass.
        batch_size: windows of a batch.
        seed: of the places.
    """

    def __init__(self, stream: Tensor, length: int, *, steps: int, batch_size: int, seed: int):
        super().__init__(steps * batch_size, batch_size=batch_size, shuffle=True, seed=seed)
        self.stream, self.length = stream, length

    def _batch(self, rows: list[int], generator: torch.Generator) -> TextBatch:
        starts = torch.randint(len(self.stream) - self.length, (len(rows), 1), generator=generator)
        both = self.stream[starts + torch.arange(self.length + 1)]
        return next_token(both, torch.full((len(rows),), self.length + 1), generator)


@stored(
    cases=[{"steps": 5000, "width": 384, "layers": 6, "length": 256, "seed": 0}],
    minutes=2,
    quick={"steps": 2, "width": 12, "layers": 1, "length": 16},
)
def shakespeare_at_full_size(
    *, steps: int, width: int, layers: int, length: int, seed: int, checkpoint: Path | None = None
) -> dict:
    """Losses of a GPT at nanoGPT's size for a GPU: 6 layers, 6 heads, 384 features.

    The rate falls to a tenth on half a cosine.
    """
    alphabet, training, validation = characters()
    seed_everything(seed)
    sizes = {"embed_dim": width, "num_heads": 6, "num_layers": layers, "max_len": length}
    model = GPT(len(alphabet), **sizes, dropout=0.2)
    per_epoch = min(250, steps)  # between two validations

    def schedule(step: int) -> float:
        falling = (1 + math.cos(math.pi * step / steps)) / 2
        return min(step / 100, 0.1 + 0.9 * falling)

    history = Trainer(
        language_model_loss(),
        epochs=steps // per_epoch,
        lr=1e-3,
        schedule=schedule,
        weight_decay=0.1,
        betas=(0.9, 0.99),
        seed=seed,
        checkpoint=checkpoint,
        graphs=True,
    ).fit(
        model,
        Windows(training, length, steps=per_epoch, batch_size=64, seed=seed),
        TextLoader(
            cut_windows(validation.tolist(), length), next_token, batch_size=64, shuffle=False
        ),
        resume=checkpoint is not None,
    )
    losses = [row["val_loss"] for row in history.rows]
    result = {
        "val_loss": losses[-1],
        "best_val_loss": min(losses),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    curves = curves_of(history.rows, "train_loss", "val_loss", over="step")
    return {"result": result, "curves": curves}
