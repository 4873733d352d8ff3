"""The trainings of *Masks* that are made beforehand: `make runs CHAPTER=04`. Some seconds each."""

from course_utils.kit.runs import stored
from course_utils.lessons.masks.next_digit import (
    RATE,
    final_loss,
    share_that_follows_the_rule,
    train,
)
from course_utils.lessons.masks.weights import MISTAKES, right


@stored(cases=[{"mistake": mistake} for mistake in ("right", *MISTAKES)], seeds=range(3), digits=3)
def patients(*, mistake: str, seed: int) -> dict[str, dict[str, float]]:
    """The clinic's model with one mistake, or with none."""
    return _train_and_measure(mistake, seed, RATE)


@stored(
    cases=[{"mistake": "right"}, {"mistake": "off by one"}],
    rates=(0.002, RATE, 0.01),
    seeds=range(3),
    digits=3,
)
def two_models(*, mistake: str, rate: float, seed: int) -> dict[str, dict[str, float]]:
    """Models A and B of the first picture, at other rates and with other seeds."""
    return _train_and_measure(mistake, seed, rate)


def _train_and_measure(mistake: str, seed: int, rate: float) -> dict[str, dict[str, float]]:
    """Loss at the end of a training, and the share of digits that follow the rule."""
    weigh = right if mistake == "right" else MISTAKES[mistake]
    model, losses = train(weigh, seed=seed, rate=rate)
    loss, follows = final_loss(losses), share_that_follows_the_rule(model)
    return {"result": {"loss": loss, "follows the rule": follows}}
