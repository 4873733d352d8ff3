"""The trainings of *Training transformers* that are made beforehand: `make runs CHAPTER=12`.

Some ten seconds of one quiet core each; those on real sentences, in `real`, a quarter of an hour.
"""

import copy
import itertools
from collections import Counter
from functools import partial
from pathlib import Path

import torch
from torch import nn

from course_utils.data.translation import PairLoader, load_grammar, split_by_source
from course_utils.kit.runs import stored, stored_runs
from course_utils.lessons.sequence_to_sequence.translator_training import (
    curves_of,
    train_on_tatoeba,
)
from course_utils.lessons.training_transformers.breaking import (
    BREAK,
    END,
    HIGH,
    NOTICED,
    WaysOn,
    scheduled_rate,
)
from course_utils.lessons.training_transformers.small_spanish import (
    RATE,
    WARMUP,
    common_pairs,
    evenness,
    likeness,
    loss_curve,
    mean_of_last,
    rate,
    spanish_world,
    spread,
    world_of,
)
from course_utils.lessons.training_transformers.variants import FirstGeneration
from course_utils.models.transformer import Transformer
from course_utils.runtime import evaluating, seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import inverse_sqrt
from course_utils.train.trainer import Trainer

MODEL = {"embed_dim": 64, "num_heads": 4, "ffn_dim": 128, "num_layers": 4, "dropout": 0.0}
STEPS = 280  # 56 batches a pass, five passes
USUAL = {
    "norm_first": False, "lr": 6e-3, "warmup": 50, "seed": 0,
    "label_smoothing": 0.0,
}  # fmt: skip
HALF = 112
FEW, PASSES = 300, 24  # pairs, and how often each is read
SEEDS = (0, 1, 2)
WATCHED = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 56, 72, 88, 112)


def cases() -> list[dict]:
    """What to run, the most important first."""
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
    for case in ({**USUAL, **change} for change in changes):
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
    """280 steps of a small Transformer, English to Spanish: loss, BLEU by epoch, and scores at the end.

    All scores are of the validation sentences.
    """
    world = spanish_world()
    loader = world.loader(world.train, seed=seed)
    seed_everything(seed)
    sizes = len(world.source_vocab), len(world.target_vocab)
    model = Transformer(*sizes, norm_first=norm_first, **MODEL)
    loss, losses = translation_loss(label_smoothing=label_smoothing), []

    def noted(model, batch):
        total, count = loss(model, batch)
        losses.append(total.item() / count)
        return total, count

    history = Trainer(
        noted,
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
    scores |= on_held_out_tokens(model, world.loader(world.val, batch_size=128, shuffle=False))
    return {"result": scores, "curves": curves}


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


# With the chapter's own loop ---------------------------------------------------------------------


@stored(
    cases=[{"warmup": warmup, "seed": seed} for seed in SEEDS for warmup in (0, WARMUP)],
    chapter=["new_model", "train", "world"],
)
def looked_inside(chapter, *, warmup: int, seed: int) -> dict:
    """The first 112 steps of a training with the norm after: likeness and evenness on the validation sentences."""
    model, world = chapter.new_model(False, seed), chapter.world
    batch = world.whole(world.val)
    curves: dict[str, list] = {"likeness": [], "evenness": []}

    def look(step: int) -> None:
        if step in WATCHED:
            curves["likeness"].append([step, round(likeness(model, batch), 4)])
            curves["evenness"].append([step, round(evenness(model, batch), 4)])

    look(0)
    batches = world.batches(HALF, seed=seed)
    losses = chapter.train(model, batches, lambda step: RATE * rate(step, warmup), each_step=look)
    result = {name: points_of[-1][1] for name, points_of in curves.items()}
    return {"result": result | {"loss": mean_of_last(losses)}, "curves": curves}


@stored(
    cases=[{"warmup": warmup, "seed": seed} for seed in SEEDS for warmup in (0, WARMUP)],
    chapter=["new_model", "train", "world"],
)
def gradients(chapter, *, warmup: int, seed: int) -> dict:
    """The first 112 steps with the norm after: the gradient's norm before clipping, in all and in some parts.

    "spread" is how far the encoder's outputs lie from their sentence's mean, as a share of their size (root mean
    squares, validation sentences).
    """
    model, world = chapter.new_model(False, seed), chapter.world
    validation = world.whole(world.val)
    gradients = GradientNorms(model)
    curves: dict[str, list] = {}

    def look(step: int) -> None:
        norms = gradients.since_last()
        if step in WATCHED or step % 4 == 0:
            for name, value in (*norms.items(), ("spread", spread(model, validation))):
                curves.setdefault(name, []).append([step, float(f"{value:.3g}")])

    batches = world.batches(HALF, seed=seed)
    losses = chapter.train(model, batches, lambda step: RATE * rate(step, warmup), each_step=look)
    result = {name: points_of[-1][1] for name, points_of in curves.items()}
    return {"result": result | {"loss": mean_of_last(losses)}, "curves": curves}


class GradientNorms:
    """Norms of a model's gradients as they are computed, before they are clipped: in all, and by part."""

    def __init__(self, model: nn.Module):
        self._squares: Counter = Counter()
        for name, weight in model.named_parameters():
            weight.register_post_accumulate_grad_hook(partial(self._add, self._part_of(name)))

    def since_last(self) -> dict[str, float]:
        """The norm by part of all gradients since the last call."""
        norms = {part: square**0.5 for part, square in self._squares.items()}
        self._squares.clear()
        return norms

    def _add(self, part: str, weight: nn.Parameter) -> None:
        square = weight.grad.square().sum().item()
        self._squares["total"] += square
        self._squares[part] += square

    @staticmethod
    def _part_of(name: str) -> str:
        if "cross_attention." not in name:
            return name.split(".")[0]
        if "query_proj" in name or "key_proj" in name:
            return "cross-attention, queries and keys"
        return "cross-attention, values"


@stored(
    cases=[{"warmup": warmup, "seed": seed} for seed in SEEDS for warmup in (0, WARMUP)],
    chapter=["new_model", "train", "world", "with_another_english", "loss_on"],
)
def other_english(chapter, *, warmup: int, seed: int) -> dict:
    """112 steps with the norm after; then the validation loss with the right English, and with another sentence's."""
    world, model = chapter.world, chapter.new_model(False, seed)
    batches = world.batches(HALF, seed=seed)
    chapter.train(model, batches, lambda step: RATE * rate(step, warmup))
    right = world.whole(world.val)
    another = chapter.with_another_english(right)
    return {"right": chapter.loss_on(model, right), "another": chapter.loss_on(model, another)}


@stored(
    cases=[{"warmup": warmup, "seed": seed} for seed in SEEDS for warmup in (0, WARMUP)],
    chapter=["new_model", "train", "world"],
)
def one_batch(chapter, *, warmup: int, seed: int) -> dict:
    """56 steps on one and the same batch, with the norm after."""
    model = chapter.new_model(False, seed)
    (batch,) = chapter.world.batches(1, seed=seed)
    losses = chapter.train(model, [batch] * 56, lambda step: RATE * rate(step, warmup))
    return {"loss": losses[-1]}


# A training that breaks at step 168 ---------------------------------------------------------------


@stored(seeds=SEEDS, chapter=["new_model", "train", "world"])
def broken(chapter, *, seed: int) -> dict:
    """A training with a warm-up whose rate jumps to 0.03 at step 168, and what helps from step 224 on.

    "keep" never jumps, and "high" stays at 0.03. "lower" returns to the scheduled rate, once with Adam's old averages
    and once with empty ones. "file" returns to the weights of step 168. "0.012" and "0.018" jump less far, to step 224.
    """
    ways = WaysOn(chapter, seed=seed)
    good = ways.follow("start", ways.start, BREAK, scheduled_rate)
    ways.follow("keep", good, END, scheduled_rate)
    bad = ways.follow("high", good, NOTICED, lambda step: HIGH)
    ways.follow("lower", bad, END, scheduled_rate)
    ways.follow("lower, empty averages", bad.with_empty_averages(), END, scheduled_rate)
    ways.follow("high", bad, END, lambda step: HIGH)
    ways.follow("file", good.with_empty_averages(at=NOTICED), END, scheduled_rate)
    ways.follow("0.012", good, NOTICED, lambda step: 1.2e-2)
    ways.follow("0.018", good, NOTICED, lambda step: 1.8e-2)
    return {"result": ways.result, "curves": ways.curves, "examples": ways.examples}


@stored(seeds=SEEDS, chapter=["new_model", "train", "world"])
def broken_early(chapter, *, seed: int) -> dict:
    """A training with a warm-up whose rate jumps at step 56: BLEU then, and at step 196 for three high rates."""
    world, model = chapter.world, chapter.new_model(False, seed)
    batches = list(world.batches(196, seed=seed))
    early = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    chapter.train(model, batches[:56], lambda step: RATE * rate(step, WARMUP), early)
    result = {"start, bleu": world.bleu(model, world.val)}
    for high in (1.2e-2, 2e-2, HIGH):
        other, optimizer = copy.deepcopy((model, early))
        chapter.train(other, batches[56:], lambda step, high=high: high, optimizer)
        result[f"{high:g}, bleu"] = world.bleu(other, world.val)
    return {"result": result}


@stored(seeds=SEEDS, chapter=["new_model", "train", "world"])
def four_times_as_long(chapter, *, seed: int) -> dict:
    """The training that fails, with 1,120 steps."""
    world, model = chapter.world, chapter.new_model(False, seed)
    batches = world.batches(4 * STEPS, seed=seed)
    losses = chapter.train(model, batches, lambda step: RATE * rate(step, 0))
    result = {"bleu": world.bleu(model, world.val), "loss": mean_of_last(losses)}
    return {"result": result, "curves": {"loss": loss_curve(losses)}}


@stored(
    seeds=SEEDS,
    chapter=["new_model", "train", "exchange", "world", "with_another_english", "loss_on"],
)
def second_try(chapter, *, seed: int) -> dict:
    """112 steps of the training that fails; a part made anew; 224 steps that begin with a warm-up.

    The encoder and the decoder are made anew twice each. After 112 and after 224 steps: the validation loss with the
    right English and with another sentence's, and BLEU.
    """
    world, failed = chapter.world, chapter.new_model(False, seed)
    chapter.train(failed, world.batches(HALF, seed=seed), lambda step: RATE * rate(step, 0))
    right, result = world.whole(world.val), {}
    another = chapter.with_another_english(right)
    for fresh, draw in (("nothing", 0), *itertools.product(("encoder", "decoder"), (0, 1))):
        model = chapter.exchange(copy.deepcopy(failed), fresh, seed + 100 * draw)

        def look(step: int, model=model, name=f"{fresh} {draw}") -> None:
            if step % HALF == 0:
                result[f"{name}, {step}, right"] = chapter.loss_on(model, right)
                result[f"{name}, {step}, another"] = chapter.loss_on(model, another)
                result[f"{name}, {step}, bleu"] = world.bleu(model, world.val)

        batches = world.batches(2 * HALF, seed=seed + 10)
        chapter.train(model, batches, lambda step: RATE * rate(step, WARMUP), each_step=look)
    return {"result": result}


@stored(
    cases=[{"adam": adam, "seed": seed} for seed in SEEDS for adam in ("filled", "radam")],
    chapter=["new_model", "train", "world"],
)
def other_adam(chapter, *, adam: str, seed: int) -> dict:
    """The training that fails, 112 steps, with averages of Adam that have seen 50 batches before, or with RAdam."""
    world, model = chapter.world, chapter.new_model(False, seed)
    kind = torch.optim.RAdam if adam == "radam" else torch.optim.Adam
    optimizer = kind(model.parameters(), betas=(0.9, 0.98))
    if adam == "filled":
        chapter.train(model, world.batches(WARMUP, seed=seed), lambda step: 0.0, optimizer)
    batches = world.batches(HALF, seed=seed)
    losses = chapter.train(model, batches, lambda step: RATE * rate(step, 0), optimizer)
    result = {"bleu": world.bleu(model, world.val), "loss": mean_of_last(losses)}
    return {"result": result, "curves": {"loss": loss_curve(losses)}}


@stored(seeds=SEEDS, chapter=["new_model", "train", "world"])
def first_step_filled(chapter, *, seed: int) -> dict:
    """Mean move of a weight in the first step, in rates, if Adam's averages have seen 50 batches before."""
    world, model = chapter.world, chapter.new_model(False, seed)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    chapter.train(model, world.batches(WARMUP, seed=seed), lambda step: 0.0, optimizer)
    before = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    chapter.train(model, world.batches(1, seed=seed), lambda step: RATE, optimizer)
    moved = torch.nn.utils.parameters_to_vector(model.parameters()).detach() - before
    return {"result": {"moved": round(moved.abs().mean().item() / RATE, 3)}}


@stored(
    cases=[
        {"kind": kind, "lr": lr, "seed": 0}
        for kind, rates in (
            ("standard", (1e-3, 3e-3, 1e-2, 2e-2)),
            ("first generation", (5e-4, 1e-3, 2e-3, 3e-3)),
        )
        for lr in rates
    ],
)
def generations(*, kind: str, lr: float, seed: int) -> dict:
    """Both models, equally wide and deep, on 300 pairs: 20 sentences that were read, 20 that were not."""
    world = spanish_world()
    seen, sizes = world.train[:FEW], (len(world.source_vocab), len(world.target_vocab))
    seed_everything(seed)
    shape = {"embed_dim": 32, "num_heads": 4, "num_layers": 2}
    if kind == "standard":
        model = Transformer(*sizes, ffn_dim=64, dropout=0.0, norm_first=False, **shape)
    else:
        model = FirstGeneration(*sizes, **shape)
    loader = world.loader(seen, batch_size=30, seed=seed)
    history = Trainer(
        translation_loss(), epochs=PASSES, lr=lr,
        schedule=lambda step: rate(step, WARMUP), seed=seed, quiet=True,
    ).fit(model, loader)  # fmt: skip
    result, examples = {"loss": history.rows[-1]["train_loss"]}, []
    for name, pairs in (("seen", seen), ("not seen", world.val)):
        twenty = world.say(model, pairs[:20])
        references = [" ".join(pair.target) for pair in pairs[:20]]
        result[f"{name}, right of 20"] = sum(map(str.__eq__, twenty, references))
        result[f"{name}, bleu"] = world.bleu(model, pairs)
        examples += [
            {"part": name, "source": " ".join(pair.source), "target": right, "said": translation}
            for pair, right, translation in zip(pairs, references, twenty, strict=False)
        ]
    return {"result": result, "examples": examples}


# More words, or more pairs? -----------------------------------------------------------------------


@stored(
    cases=[
        {"words": words, "pairs": pairs, "seed": seed}
        for seed in SEEDS
        for words, pairs in ((200, 3000), (1000, 3000), (1000, 15_000))
    ],
)
def vocabulary(*, words: int, pairs: int, seed: int) -> dict:
    """510 steps on so many pairs in the commonest English words: BLEU on unseen sentences in them, and on any unseen.

    The unseen sentences are the same for all: 1,000 of all the generated ones of at most 8 Spanish tokens.
    """
    corpus = common_pairs(load_grammar("es"), words=1000)
    train, unseen = split_by_source(corpus, [1000])
    inside = common_pairs(train, words=words)[:pairs]
    world = world_of(inside, unseen, [])
    known = [pair for pair in unseen if all(word in world.source_vocab for word in pair.source)]
    loader, sizes = (
        world.loader(inside, seed=seed),
        (len(world.source_vocab), len(world.target_vocab)),
    )
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
    """The stored trainings, a dict each: its configuration, its scores, and its curves by name."""
    return [
        run.config | run.result | {"curves": run.curves}
        for run in stored_runs("training_transformers", "small_training")
    ]


def found(runs: list[dict], **chosen) -> list[dict]:
    """Runs with this choice and the chapter's values otherwise, one for each seed."""
    config = {key: value for key, value in USUAL.items() if key != "seed"} | chosen
    some = [run for run in runs if all(run[name] == value for name, value in config.items())]
    return sorted(some, key=lambda run: run["seed"])


@stored(
    cases=[
        {"kind": kind, "epochs": 40, "width": 256, "layers": 4, "pairs": 90_000, "seed": 0}
        for kind in ("norm first", "first generation")
    ],
    minutes=45,
    quick={"epochs": 1, "width": 16, "layers": 1, "pairs": 60},
)
def generations_at_full_size(
    *, kind: str, width: int, layers: int, pairs: int, checkpoint: Path | None = None, **options
) -> dict:
    """Both models at the size of Kak (2025), on English–Spanish pairs of at most eight words a side.

    As in the lecture, punctuation is no word: 93,582 pairs qualify. The first generation has 274 million parameters,
    because the heads of every attention read the flattened sentence; the other model has 8 million.
    """
    warmup, max_tokens = 4000, 8
    shape = {"embed_dim": width, "num_heads": 4, "num_layers": layers}

    def new_model(*sizes: int) -> nn.Module:
        if kind == "norm first":
            return Transformer(*sizes, ffn_dim=2 * width, dropout=0.1, norm_first=True, **shape)
        return FirstGeneration(*sizes, length=max_tokens + 2, flat_attention=True, **shape)

    return train_on_tatoeba(
        "es",
        new_model,
        schedule=lambda steps: inverse_sqrt(warmup),
        pairs=pairs,
        at_least=pairs,
        max_tokens=max_tokens,
        words_only=True,
        batch=50,
        lr=(width * warmup) ** -0.5,
        label_smoothing=0.1,
        graphs=True,
        checkpoint=checkpoint,
        **options,
    )
