"""A training whose learning rate jumps in the middle, and the ways on from there."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from course_utils.lessons.training_transformers.small_spanish import (
    RATE,
    WARMUP,
    evenness,
    likeness,
    loss_curve,
    mean_of_last,
    rate,
)

BREAK, NOTICED, END, HIGH = 168, 224, 336, 3e-2
"""Steps at which the rate jumps, at which somebody reacts, and at which the training ends; the high rate."""
PER_BLEU, SHOWN = 28, 12
"""Steps between two scores; validation sentences whose translations are stored."""


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


class WaysOn:
    """Trainings that go on from states of each other, with the same batches at the same steps.

    Args:
        chapter: with `new_model`, `train` and `world`.
        seed: of weights and batches.

    Attributes:
        start: the untrained model.
        result: BLEU, loss, likeness and evenness at the end of each way, by "way, bleu" and so on.
        curves: BLEU and loss over the steps, by "way, bleu" and "way, loss".
        examples: validation sentences, with the translation at the end of each way.
    """

    def __init__(self, chapter: Any, *, seed: int):
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

    def follow(self, way: str, state: State, end: int, rate_at: Callable[[int], float]) -> State:
        """Train a copy of a state up to step `end`, and note under the name of the way what it gives."""
        begin = state.step
        model, optimizer = copy.deepcopy((state.model, state.optimizer))

        def note_bleu(step: int) -> None:
            if (begin + step) % PER_BLEU == 0:
                point = [begin + step, round(self.world.bleu(model, self.world.val), 4)]
                self.curves.setdefault(f"{way}, bleu", []).append(point)

        losses = self.chapter.train(
            model,
            self.batches[begin:end],
            lambda step: rate_at(begin + step),
            optimizer,
            note_bleu,
        )
        curve = [[begin + step, value] for step, value in loss_curve(losses)]
        self.curves.setdefault(f"{way}, loss", []).extend(curve)
        self._note_end(way, model, losses)
        return State(end, model, optimizer)

    def _note_end(self, way: str, model: nn.Module, losses: list[float]) -> None:
        validation = self.world.whole(self.world.val)
        self.result[f"{way}, bleu"] = self.curves[f"{way}, bleu"][-1][1]
        self.result[f"{way}, loss"] = mean_of_last(losses)
        self.result[f"{way}, likeness"] = likeness(model, validation)
        self.result[f"{way}, evenness"] = evenness(model, validation)
        translations = self.world.say(model, self.world.val[:SHOWN])
        for example, translation in zip(self.examples, translations, strict=True):
            example[way] = translation
