"""A training whose learning rate jumps in the middle, and trainings that branch off from it there.

`broken` and `broken_early` are stored runs of *Training transformers*; its explorer shows the first.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import nn

from course_utils.kit.runs import stored
from course_utils.lessons.training_transformers.small_spanish import (
    RATE,
    SEEDS,
    WARMUP,
    evenness,
    likeness,
    loss_curve,
    mean_of_last,
    rate,
)

BREAK, NOTICED, END = 168, 224, 336
"""Steps at which the rate jumps, at which somebody reacts, and at which the training ends."""

HIGH = 3e-2
"""The rate to which it jumps."""

PER_BLEU = 28
"""Steps between two scores."""

SHOWN = 12
"""Validation sentences whose translations are stored."""


def scheduled_rate(step: int) -> float:
    """The learning rate that was planned: with a warm-up."""
    return RATE * rate(step, WARMUP)


def new_adam(model: nn.Module) -> torch.optim.Optimizer:
    """Adam as the chapter has it, with empty averages."""
    return torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))


@dataclass(frozen=True)
class State:
    """A training at a step: its model, and its optimizer with the averages so far."""

    step: int
    model: nn.Module
    optimizer: torch.optim.Optimizer

    def with_empty_averages(self, at: int | None = None) -> "State":
        """The same weights with a new optimizer, at step `at` of the schedule, or where they are."""
        return State(self.step if at is None else at, self.model, new_adam(self.model))


class Branches:
    """Trainings that branch off from each other's states, with the same batches at the same steps.

    Args:
        chapter: with `new_model`, `train` and `world`.
        seed: of weights and batches.

    Attributes:
        start: the untrained model.
        result: BLEU, loss, likeness and evenness at the end of each branch, by "<branch>, bleu" and so on.
        curves: BLEU and loss over the steps, by "<branch>, bleu" and "<branch>, loss".
        examples: validation sentences, with the translation at the end of each branch.
    """

    def __init__(self, chapter: SimpleNamespace, *, seed: int):
        self.chapter, self.world = chapter, chapter.world
        self.batches = list(self.world.batches(END, seed=seed))
        model = chapter.new_model(False, seed)
        self.start = State(0, model, new_adam(model))
        self.result: dict[str, float] = {}
        self.curves: dict[str, list] = {}
        self.examples = [
            {"source": " ".join(pair.source), "target": " ".join(pair.target)}
            for pair in self.world.val[:SHOWN]
        ]

    def train(self, branch: str, state: State, end: int, rate_at: Callable[[int], float]) -> State:
        """The state at step `end` of a training that goes on from a copy of `state`.

        Args:
            branch: the name under which its scores are noted.
            state: to go on from.
            end: the last step.
            rate_at: step → learning rate.
        """
        begin = state.step
        model, optimizer = copy.deepcopy((state.model, state.optimizer))

        def note_bleu(step: int) -> None:
            if (begin + step) % PER_BLEU == 0:
                point = [begin + step, round(self.world.bleu(model, self.world.val), 4)]
                self.curves.setdefault(f"{branch}, bleu", []).append(point)

        losses = self.chapter.train(
            model,
            self.batches[begin:end],
            lambda step: rate_at(begin + step),
            optimizer,
            note_bleu,
        )
        curve = [[begin + step, value] for step, value in loss_curve(losses)]
        self.curves.setdefault(f"{branch}, loss", []).extend(curve)
        self._note_end(branch, model, losses)
        return State(end, model, optimizer)

    def _note_end(self, branch: str, model: nn.Module, losses: list[float]) -> None:
        validation = self.world.whole(self.world.val)
        self.result[f"{branch}, bleu"] = self.curves[f"{branch}, bleu"][-1][1]
        self.result[f"{branch}, loss"] = mean_of_last(losses)
        self.result[f"{branch}, likeness"] = likeness(model, validation)
        self.result[f"{branch}, evenness"] = evenness(model, validation)
        translations = self.world.say(model, self.world.val[:SHOWN])
        for example, translation in zip(self.examples, translations, strict=True):
            example[branch] = translation


@stored(seeds=SEEDS, chapter=["new_model", "train", "world"])
def broken(chapter: SimpleNamespace, *, seed: int) -> dict:
    """A training with a warm-up whose rate jumps to 0.03 at step 168, and branches that may help from step 224 on.

    "keep" never jumps, and "high" stays at 0.03. "lower" returns to the scheduled rate, once with Adam's old averages
    and once with empty ones. "file" returns to the weights of step 168. "0.012" and "0.018" jump less far, to step 224.
    """
    branches = Branches(chapter, seed=seed)
    good = branches.train("start", branches.start, BREAK, scheduled_rate)
    branches.train("keep", good, END, scheduled_rate)
    bad = branches.train("high", good, NOTICED, lambda step: HIGH)
    branches.train("lower", bad, END, scheduled_rate)
    branches.train("lower, empty averages", bad.with_empty_averages(), END, scheduled_rate)
    branches.train("high", bad, END, lambda step: HIGH)
    branches.train("file", good.with_empty_averages(at=NOTICED), END, scheduled_rate)
    branches.train("0.012", good, NOTICED, lambda step: 1.2e-2)
    branches.train("0.018", good, NOTICED, lambda step: 1.8e-2)
    return {"result": branches.result, "curves": branches.curves, "examples": branches.examples}


@stored(seeds=SEEDS, chapter=["new_model", "train", "world"])
def broken_early(chapter: SimpleNamespace, *, seed: int) -> dict:
    """BLEU of a training with a warm-up at step 56, where its rate jumps, and at step 196 for three high rates."""
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
