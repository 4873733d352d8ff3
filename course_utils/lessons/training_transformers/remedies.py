"""Trainings that fail, with the norm after and without a warm-up, and what may help them.

Stored runs of *Training transformers*; `chapter` has the page's functions by their names.
"""

import copy
import itertools
from types import SimpleNamespace

import torch

from course_utils.kit.runs import stored
from course_utils.lessons.training_transformers.small_spanish import (
    RATE,
    SEEDS,
    SHORT,
    STEPS,
    WARMUP,
    loss_curve,
    mean_of_last,
    rate,
)


@stored(seeds=SEEDS, chapter=["new_model", "train", "world"])
def four_times_as_long(chapter: SimpleNamespace, *, seed: int) -> dict:
    """BLEU and loss of the training that fails after four times as many steps, 1,120."""
    world, model = chapter.world, chapter.new_model(False, seed)
    batches = world.batches(4 * STEPS, seed=seed)
    losses = chapter.train(model, batches, lambda step: RATE * rate(step, 0))
    result = {"bleu": world.bleu(model, world.val), "loss": mean_of_last(losses)}
    return {"result": result, "curves": {"loss": loss_curve(losses)}}


@stored(
    seeds=SEEDS,
    chapter=["new_model", "train", "exchange", "world", "with_another_english", "loss_on"],
)
def second_try(chapter: SimpleNamespace, *, seed: int) -> dict:
    """Scores of a training that failed for 112 steps, got a new part, and goes on for 224 steps with a warm-up.

    The encoder and the decoder are made anew twice each. The scores, after 112 and after 224 steps, are BLEU and the
    validation losses with the right English and with another sentence's.
    """
    world, failed = chapter.world, chapter.new_model(False, seed)
    chapter.train(failed, world.batches(SHORT, seed=seed), lambda step: RATE * rate(step, 0))
    right, result = world.whole(world.val), {}
    another = chapter.with_another_english(right)
    for fresh, draw in (("nothing", 0), *itertools.product(("encoder", "decoder"), (0, 1))):
        model = chapter.exchange(copy.deepcopy(failed), fresh, seed + 100 * draw)

        def look(step: int, model=model, name=f"{fresh} {draw}") -> None:
            if step % SHORT == 0:
                result[f"{name}, {step}, right"] = chapter.loss_on(model, right)
                result[f"{name}, {step}, another"] = chapter.loss_on(model, another)
                result[f"{name}, {step}, bleu"] = world.bleu(model, world.val)

        batches = world.batches(2 * SHORT, seed=seed + 10)
        chapter.train(model, batches, lambda step: RATE * rate(step, WARMUP), each_step=look)
    return {"result": result}


@stored(
    cases=[{"adam": adam, "seed": seed} for seed in SEEDS for adam in ("filled", "radam")],
    chapter=["new_model", "train", "world"],
)
def other_adam(chapter: SimpleNamespace, *, adam: str, seed: int) -> dict:
    """BLEU and loss of the training that fails, after 112 steps, with another Adam.

    `adam` is "filled", Adam whose averages have seen 50 batches before, or "radam".
    """
    world, model = chapter.world, chapter.new_model(False, seed)
    kind = torch.optim.RAdam if adam == "radam" else torch.optim.Adam
    optimizer = kind(model.parameters(), betas=(0.9, 0.98))
    if adam == "filled":
        chapter.train(model, world.batches(WARMUP, seed=seed), lambda step: 0.0, optimizer)
    batches = world.batches(SHORT, seed=seed)
    losses = chapter.train(model, batches, lambda step: RATE * rate(step, 0), optimizer)
    result = {"bleu": world.bleu(model, world.val), "loss": mean_of_last(losses)}
    return {"result": result, "curves": {"loss": loss_curve(losses)}}


@stored(seeds=SEEDS, chapter=["new_model", "train", "world"])
def first_step_filled(chapter: SimpleNamespace, *, seed: int) -> dict:
    """Mean change of a weight in the first step, as a multiple of the rate, if Adam's averages have seen 50 batches."""
    world, model = chapter.world, chapter.new_model(False, seed)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    chapter.train(model, world.batches(WARMUP, seed=seed), lambda step: 0.0, optimizer)
    before = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    chapter.train(model, world.batches(1, seed=seed), lambda step: RATE, optimizer)
    moved = torch.nn.utils.parameters_to_vector(model.parameters()).detach() - before
    return {"result": {"moved": round(moved.abs().mean().item() / RATE, 3)}}
