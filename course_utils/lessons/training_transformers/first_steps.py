"""The first steps of trainings with the norm after, by the page's own loop: what changes inside, and the gradients.

Stored runs of *Training transformers*; `chapter` has the page's functions by their names.
"""

from collections import Counter
from functools import partial
from types import SimpleNamespace

from torch import nn

from course_utils.kit.runs import stored
from course_utils.lessons.training_transformers.small_spanish import (
    RATE,
    SEEDS,
    SHORT,
    WARMUP,
    evenness,
    likeness,
    mean_of_last,
    rate,
    spread,
)

WATCHED = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 56, 72, 88, 112)
"""Steps at which a model is measured."""

CASES = [{"warmup": warmup, "seed": seed} for seed in SEEDS for warmup in (0, WARMUP)]


@stored(
    cases=CASES,
    chapter=["new_model", "train", "world"],
)
def inner_states(chapter: SimpleNamespace, *, warmup: int, seed: int) -> dict:
    """The `likeness` and `evenness` of a model on the validation sentences, over the first 112 steps."""
    model, world = chapter.new_model(False, seed), chapter.world
    batch = world.whole(world.val)
    curves: dict[str, list] = {"likeness": [], "evenness": []}

    def look(step: int) -> None:
        if step in WATCHED:
            curves["likeness"].append([step, round(likeness(model, batch), 4)])
            curves["evenness"].append([step, round(evenness(model, batch), 4)])

    look(0)
    batches = world.batches(SHORT, seed=seed)
    losses = chapter.train(model, batches, lambda step: RATE * rate(step, warmup), each_step=look)
    result = {name: points[-1][1] for name, points in curves.items()}
    return {"result": result | {"loss": mean_of_last(losses)}, "curves": curves}


@stored(
    cases=CASES,
    chapter=["new_model", "train", "world"],
)
def gradients(chapter: SimpleNamespace, *, warmup: int, seed: int) -> dict:
    """The norm of the gradients before clipping, in all and by part, and the `spread`, over the first 112 steps."""
    model, world = chapter.new_model(False, seed), chapter.world
    validation = world.whole(world.val)
    gradient_norms = GradientNorms(model)
    curves: dict[str, list] = {}

    def look(step: int) -> None:
        norms = gradient_norms.since_last()
        if step in WATCHED or step % 4 == 0:
            for name, value in (*norms.items(), ("spread", spread(model, validation))):
                curves.setdefault(name, []).append([step, float(f"{value:.3g}")])

    batches = world.batches(SHORT, seed=seed)
    losses = chapter.train(model, batches, lambda step: RATE * rate(step, warmup), each_step=look)
    result = {name: points[-1][1] for name, points in curves.items()}
    return {"result": result | {"loss": mean_of_last(losses)}, "curves": curves}


class GradientNorms:
    """Norms of a model's gradients as they are computed, before they are clipped: in all, and by part."""

    def __init__(self, model: nn.Module):
        self._squares: Counter = Counter()
        for name, weight in model.named_parameters():
            weight.register_post_accumulate_grad_hook(partial(self._add, self._part_of(name)))

    def since_last(self) -> dict[str, float]:
        """Part of the model → norm of its gradients since the last call; "total" is the norm of all."""
        norms = {part: square**0.5 for part, square in self._squares.items()}
        self._squares.clear()
        return norms

    def _add(self, part: str, weight: nn.Parameter) -> None:
        assert weight.grad is not None
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
    cases=CASES,
    chapter=["new_model", "train", "world", "with_another_english", "loss_on"],
)
def other_english(chapter: SimpleNamespace, *, warmup: int, seed: int) -> dict:
    """The validation loss after 112 steps, with the right English and with another sentence's."""
    world, model = chapter.world, chapter.new_model(False, seed)
    batches = world.batches(SHORT, seed=seed)
    chapter.train(model, batches, lambda step: RATE * rate(step, warmup))
    right = world.whole(world.val)
    another = chapter.with_another_english(right)
    losses = {"right": chapter.loss_on(model, right), "another": chapter.loss_on(model, another)}
    return {"result": losses}


@stored(
    cases=CASES,
    chapter=["new_model", "train", "world"],
)
def one_batch(chapter: SimpleNamespace, *, warmup: int, seed: int) -> dict:
    """The loss after 56 steps on one and the same batch."""
    model = chapter.new_model(False, seed)
    (batch,) = chapter.world.batches(1, seed=seed)
    losses = chapter.train(model, [batch] * 56, lambda step: RATE * rate(step, warmup))
    return {"result": {"loss": losses[-1]}}
