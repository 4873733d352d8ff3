"""Stored trainings of *Training transformers*: orders of norm, rates and warm-ups, and how many words are learned.

`make runs CHAPTER=12` makes them, and those of the modules beside this one; most take some ten seconds of a quiet core.
"""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_utils.data.translation import PairLoader, load_grammar, split_by_source
from course_utils.kit.runs import stored, stored_runs
from course_utils.lessons.sequence_to_sequence.translator_training import curves_of
from course_utils.lessons.training_transformers.small_spanish import (
    RATE,
    SEEDS,
    STEPS,
    WARMUP,
    common_pairs,
    loss_curve,
    rate,
    spanish_world,
    world_of,
)
from course_utils.models.transformer import Transformer
from course_utils.runtime import evaluating, seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.trainer import Trainer

MODEL = {"embed_dim": 64, "num_heads": 4, "ffn_dim": 128, "num_layers": 4, "dropout": 0.0}

DEFAULTS = {"norm_first": False, "lr": RATE, "warmup": WARMUP, "seed": 0, "label_smoothing": 0.0}
"""The configuration of the chapter's training."""


def cases() -> list[dict]:
    """The configurations of `small_training`, the most important first."""
    changes = [
        {"norm_first": norm_first, "warmup": warmup, "seed": seed}
        for seed in range(3)
        for norm_first, warmup in itertools.product((False, True), (0, 50))
    ]
    changes += [{"label_smoothing": 0.1, "seed": seed} for seed in range(3)]
    changes += [
        {"norm_first": norm_first, "lr": lr, "warmup": warmup}
        for warmup in (0, 50, 10, 100)
        for lr in (1.5e-3, 3e-3, 6e-3, 1.2e-2)
        for norm_first in (False, True)
    ]
    distinct: list[dict] = []
    for case in ({**DEFAULTS, **change} for change in changes):
        if case not in distinct:
            distinct.append(case)
    return distinct


@stored(cases=cases())
def small_training(
    *,
    norm_first: bool,
    lr: float,
    warmup: int,
    seed: int,
    label_smoothing: float,
) -> dict:
    """Loss, BLEU by epoch, and scores at the end of 280 steps of a small Transformer, English to Spanish.

    All scores are of the validation sentences.
    """
    world = spanish_world()
    loader = world.loader(world.train, seed=seed)
    seed_everything(seed)
    sizes = len(world.source_vocab), len(world.target_vocab)
    model = Transformer(*sizes, norm_first=norm_first, **MODEL)
    losses: list[float] = []
    history = Trainer(
        keeping_losses(translation_loss(label_smoothing=label_smoothing), losses),
        epochs=STEPS // len(loader),
        lr=lr,
        schedule=lambda step: rate(step, warmup),
        seed=seed,
        measure=lambda model: {"bleu": world.bleu(model, world.val)},
        quiet=True,
    ).fit(model, loader)
    curves = {"loss": loss_curve(losses)}
    curves |= curves_of(history.rows, "bleu", "grad_norm", over="step")
    scores = {"bleu": world.bleu(model, world.val)}
    scores |= token_scores(model, world.loader(world.val, batch_size=128, shuffle=False))
    return {"result": scores, "curves": curves}


def keeping_losses(loss: Callable, losses: list[float]) -> Callable[[Any, Any], tuple[Tensor, int]]:
    """A loss for a `Trainer` that appends its mean per token to `losses` at each call."""

    def keeping(model: Any, batch: Any) -> tuple[Tensor, int]:
        total, count = loss(model, batch)
        losses.append(total.item() / count)
        return total, count

    return keeping


@torch.no_grad()
def token_scores(model: Transformer, batches: PairLoader) -> dict[str, float]:
    """Scores of a model's next tokens, by name.

    "nll" is the mean loss in nats, "confidence" the mean largest probability, and "accuracy" the share of tokens to
    which it gives the largest.
    """
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


# More words, or more pairs? -----------------------------------------------------------------------


@stored(
    cases=[
        {"words": words, "pairs": pairs, "seed": seed}
        for seed in SEEDS
        for words, pairs in ((200, 3000), (1000, 3000), (1000, 15_000))
    ],
)
def vocabulary(*, words: int, pairs: int, seed: int) -> dict:
    """BLEU after 510 steps on pairs in the commonest English words, on unseen sentences in them and on any unseen.

    The unseen sentences are the same for all: 1,000 of all the generated ones of at most 8 Spanish tokens.

    Args:
        words: how many of the commonest words.
        pairs: at most, for training.
        seed: of weights and batches.
    """
    corpus = common_pairs(load_grammar("es"), words=1000)
    train, unseen = split_by_source(corpus, [1000])
    inside = common_pairs(train, words=words)[:pairs]
    world = world_of(inside, unseen, [])
    known = [pair for pair in unseen if all(word in world.source_vocab for word in pair.source)]
    loader = world.loader(inside, seed=seed)
    sizes = len(world.source_vocab), len(world.target_vocab)
    seed_everything(seed)
    model = Transformer(*sizes, norm_first=False, **MODEL)
    Trainer(
        translation_loss(), epochs=510 // len(loader), lr=RATE / 2,
        schedule=lambda step: rate(step, WARMUP), seed=seed, quiet=True,
    ).fit(model, loader)  # fmt: skip
    result = {"trained on": len(inside), "unseen in its words": len(known)}
    result |= dict(zip(("English", "Spanish"), sizes, strict=True))
    for name, pairs_of in (("its words", known), ("any", unseen)):
        result[f"bleu, {name}"] = world.bleu(model, pairs_of)
    return {"result": result}


# What the chapter reads -------------------------------------------------------------------------


def load_training_runs() -> list[dict]:
    """The stored runs of `small_training`, a dict each: its configuration, its scores, and its curves by name."""
    return [
        run.config | run.result | {"curves": run.curves}
        for run in stored_runs("training_transformers", "small_training")
    ]


def found(runs: list[dict], **chosen) -> list[dict]:
    """Those runs that have these values, and the chapter's values otherwise, one for each seed."""
    config = {key: value for key, value in DEFAULTS.items() if key != "seed"} | chosen
    some = [run for run in runs if all(run[name] == value for name, value in config.items())]
    return sorted(some, key=lambda run: run["seed"])
