"""The clinic of *Masks*: patients, each a trained model with one mistake in its attention.

The chapter takes the mistakes (`weights`) and the model (`next_digit`) from here as well.
"""

import random
from dataclasses import dataclass

from course_utils.lessons.masks.next_digit import (
    PAD,
    STEPS,
    NextDigit,
    final_loss,
    rows,
    train,
)
from course_utils.lessons.masks.next_digit import continuation as continued
from course_utils.lessons.masks.next_digit import share_that_follows_the_rule as followed
from course_utils.lessons.masks.weights import MISTAKES, Attend, attention, off_by_one, right

__all__ = [
    "MISTAKES", "PAD", "STEPS", "NextDigit", "Patient", "attention", "continued", "followed", "mistake_of",
    "off_by_one", "patient", "right", "rows", "train",
]  # fmt: skip


@dataclass(frozen=True)
class Patient:
    """A trained model with one of seven mistakes in its attention.

    Attributes:
        model: the model.
        losses: one for each step of its training.
    """

    model: NextDigit
    losses: list[float]

    @property
    def loss(self) -> float:
        """The mean loss of the last 50 steps."""
        return final_loss(self.losses)

    @property
    def attend(self) -> Attend:
        """The model's attention, with the mistake: (queries, keys, values, words) → answers."""
        return self.model.attend


def mistake_of(case: int) -> str:
    """The name of a patient's mistake: the answer of an exercise."""
    return random.Random(case).choice(list(MISTAKES))


def patient(case: int) -> Patient:
    """Train the patient of this number; its mistake is drawn at random."""
    return Patient(*train(MISTAKES[mistake_of(case)]))
