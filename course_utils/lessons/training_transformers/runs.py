"""The trainings of *Training transformers* that are made beforehand: `make runs CHAPTER=12`.

About a quarter of a minute of one core each, and some fifty of them.
"""

import itertools
import math

import torch

from course_utils.data.text import Vocabulary
from course_utils.data.translation import PairLoader
from course_utils.decoding import translate
from course_utils.lessons.runs import stored, stored_runs
from course_utils.lessons.training_transformers.shortcuts import SHORTCUTS, take_shortcut
from course_utils.lessons.training_transformers.small_spanish import small_spanish
from course_utils.metrics import bleu as bleu_of
from course_utils.models.transformer import Transformer
from course_utils.runtime import evaluating, seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.trainer import Trainer

MODEL = {"embed_dim": 64, "num_heads": 4, "ffn_dim": 128, "num_layers": 4, "dropout": 0.0}
STEPS, BATCH = 280, 59  # 56 batches a pass, five passes
PER_LOSS = 14  # steps per point of the loss curve
USUAL = {
    "norm_first": False, "lr": 6e-3, "warmup": 50, "seed": 0,
    "label_smoothing": 0.0, "sentences": 3253, "shortcut": "",
}  # fmt: skip


def cases() -> list[dict]:
    """What to run, the most important first."""
    changes = [
        {"norm_first": norm_first, "warmup": warmup, "seed": seed}
        for seed in range(3)
        for norm_first, warmup in itertools.product((False, True), (0, 50))
    ]
    changes += [{"sentences": count, "seed": seed} for count in (300, 1000) for seed in range(3)]
    changes += [{"label_smoothing": 0.1, "seed": seed} for seed in range(3)]
    changes += [{"shortcut": name, "seed": seed} for seed in range(3) for name in SHORTCUTS]
    changes += [
        {"norm_first": norm_first, "lr": lr, "warmup": warmup}
        for warmup in (0, 50, 10, 100)
        for lr in (1.5e-3, 3e-3, 6e-3, 1.2e-2)
        for norm_first in (False, True)
    ]
    distinct: list[dict] = []
    for case in ({**USUAL, **change} for change in changes):
        if case not in distinct:
            distinct.append(case)
    return distinct


def rate(step: int, warmup: int) -> float:
    """`inverse_sqrt(warmup)`; below 50 steps the fall begins at step 50, as with 50 steps."""
    fall = max(warmup, 50)
    return min(1.0, step / max(warmup, 1), (fall / step) ** 0.5)


@stored(cases=cases(), data=["translation/grammar_es.tsv"], small=True, tolerance=0.3)
def small_training(
    *,
    norm_first: bool,
    lr: float,
    warmup: int,
    seed: int,
    label_smoothing: float,
    sentences: int,
    shortcut: str,
) -> dict:
    """280 steps of a small Transformer, English to Spanish: loss, BLEU by epoch, and scores at the end."""
    all_train, _, test = small_spanish()
    train = all_train[:sentences]
    vocabularies = [
        Vocabulary(getattr(pair, side) for pair in all_train) for side in ("source", "target")
    ]
    loader = PairLoader(train, *vocabularies, batch_size=BATCH, seed=seed)
    seed_everything(seed)
    model = Transformer(*map(len, vocabularies), norm_first=norm_first, **MODEL)
    if shortcut:
        take_shortcut(model, shortcut)
    loss, losses = translation_loss(label_smoothing=label_smoothing), []

    def noted(model, batch):
        total, count = loss(model, batch)
        losses.append(total.item() / count)
        return total, count

    def score(pairs) -> float:
        said = translate(model, [" ".join(p.source) for p in pairs], *vocabularies, max_len=14)
        return bleu_of(said, [" ".join(p.target) for p in pairs])

    by_epoch = len(loader) * 5 >= STEPS  # few sentences: more passes, the same number of steps
    history = Trainer(
        noted,
        epochs=STEPS // len(loader),
        lr=lr,
        schedule=lambda step: rate(step, warmup),
        seed=seed,
        measure=lambda model: {"bleu": score(test)} if by_epoch else {},
        quiet=True,
    ).fit(model, loader)
    parts = [losses[start : start + PER_LOSS] for start in range(0, len(losses), PER_LOSS)]
    curves = {
        "loss": [
            [PER_LOSS * (place + 0.5), round(sum(part) / len(part), 4)]
            for place, part in enumerate(parts)
        ]
    }
    for name in ("bleu", "grad_norm") if by_epoch else ():
        curves[name] = [[row["step"], round(row[name], 4)] for row in history.rows]
    scores = {"train_bleu": score(train[:200]), "bleu": score(test)}
    scores |= on_held_out_tokens(model, PairLoader(test, *vocabularies, shuffle=False))
    return {"result": {name: round(value, 4) for name, value in scores.items()}, "curves": curves}


@torch.no_grad()
def on_held_out_tokens(model: Transformer, batches: PairLoader) -> dict[str, float]:
    """Mean surprise in nats, mean largest probability, and share of right guesses."""
    nll = confidence = accuracy = 0.0
    count = 0
    with evaluating(model):
        for batch in batches:
            logits = model(batch.source, batch.source_lens, batch.target_in)
            real = torch.arange(batch.target_out.shape[1]) < batch.target_lens[:, None]
            log_p, right = logits[real].log_softmax(dim=-1), batch.target_out[real]
            nll -= log_p.gather(1, right[:, None]).sum().item()
            confidence += log_p.amax(dim=-1).exp().sum().item()
            accuracy += (log_p.argmax(dim=-1) == right).sum().item()
            count += len(right)
    sums = {"nll": nll, "confidence": confidence, "accuracy": accuracy}
    return {name: value / count for name, value in sums.items()}


# What the chapter reads -------------------------------------------------------------------------


def load_training_runs() -> list[dict]:
    """The stored trainings, a dict each: its configuration, its scores, and its curves by name."""
    return [
        run.config | run.result | {"curves": run.curves}
        for run in stored_runs("training_transformers", "small_training")
    ]


def epochs_to(level: float, run: dict) -> float:
    """Epochs until a run's held-out BLEU first reached `level`, on a line between measurements."""
    before = 0.0
    for epoch, (_, bleu) in enumerate(run["curves"]["bleu"]):
        if bleu >= level:
            return epoch + (level - before) / (bleu - before)
        before = bleu
    return math.inf
