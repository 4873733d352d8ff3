"""The trainings of *Masks* that are made beforehand: `make runs CHAPTER=04`. Some seconds each."""

import itertools

from course_utils.kit.runs import stored
from course_utils.lessons.masks import clinic

CASES = [
    {"mistake": mistake, "seed": seed}
    for mistake, seed in itertools.product(("right", *clinic.MISTAKES), range(3))
]


@stored(cases=CASES, digits=3)
def patients(*, mistake: str, seed: int) -> dict:
    """The clinic's model with one mistake, or with none."""
    return _trained(mistake, seed, clinic.RATE)


@stored(
    cases=[{"mistake": "right"}, {"mistake": "off by one"}],
    rates=(0.002, clinic.RATE, 0.01),
    seeds=range(3),
    digits=3,
)
def two_models(*, mistake: str, rate: float, seed: int) -> dict:
    """A and B of the first picture, at other rates and with other seeds."""
    return _trained(mistake, seed, rate)


def _trained(mistake: str, seed: int, rate: float) -> dict:
    weigh = clinic.MISTAKES.get(mistake, clinic.right)
    model, losses = clinic.train(weigh, seed=seed, rate=rate)
    return {"result": {"loss": sum(losses[-50:]) / 50, "follows the rule": clinic.followed(model)}}
