"""Trainings of the head of *Scoring functions*, with the scale and without, at rates chosen by validation."""

import math
from collections.abc import Sequence
from types import SimpleNamespace

import torch

from course_utils.kit.comparison import grid
from course_utils.kit.runs import stored
from course_utils.lessons.scoring_functions.trainings import STEPS
from course_utils.lessons.scoring_functions.word_lists import LARGE_START, SMALL_START
from course_utils.runtime import seed_everything

LISTS = {16: (4, 16, 64), 64: (4, 16, 64), 256: (4, 8, 16, 32, 64)}
"""Dimension → lengths of the lists."""
RATES = {16: (0.001, 0.003, 0.01), 64: (0.001, 0.003, 0.01), 256: (0.0001, 0.0003, 0.001, 0.003)}
"""Dimension → learning rates. A kind of head that is best at the smallest has smaller ones in LONGER."""


def _trainings(
    divided_by: str, d: int, keys: int, rates: Sequence[float], steps: int = STEPS
) -> tuple[dict, ...]:
    """The configurations of one kind of head: each rate with three seeds."""
    kind = {"divided_by": divided_by, "d": d, "keys": keys, "steps": steps}
    return grid([kind], rates, range(3))


COMPARED = [
    case
    for divided_by in ("√d", "nothing")
    for d, lengths in LISTS.items()
    for keys in lengths
    for case in _trainings(divided_by, d, keys, RATES[d])
]
CONTROLS = [
    *_trainings(SMALL_START, 256, 16, RATES[256]),
    *_trainings(SMALL_START, 256, 64, RATES[256]),
    *_trainings(LARGE_START, 256, 64, RATES[256]),
]
"""Heads that begin with the scores of the other kind."""
LONGER = [
    *_trainings("nothing", 64, 64, (0.0001, 0.0003, 0.001, 0.003, 0.01), 2000),
    *_trainings("nothing", 64, 64, (0.0001, 0.0003, 0.001), 8000),
    *_trainings("nothing", 256, 16, (0.0003, 0.001, 0.003), 2000),
    *_trainings("nothing", 256, 64, (0.00003, 0.0001, 0.0003), 2000),
]
"""Heads without the divisor, given more time."""


@stored(
    cases=[*COMPARED, *CONTROLS, *LONGER],
    chapter=["Head", "draw_lists", "accuracy", "train"],
)
def recall_by_one_head(
    chapter: SimpleNamespace,
    *,
    divided_by: str,
    d: int,
    keys: int,
    rate: float,
    seed: int,
    steps: int,
) -> dict[str, dict]:
    """One head learns to find the digit of a word in a list.

    Result: the share of right digits on `validation` lists, which choose a rate, and on `test` lists, which are told.
    """
    seed_everything(seed)
    head = chapter.Head(d, 1 / math.sqrt(d) if divided_by.startswith("√d") else 1.0)
    # Each of the two matrices is multiplied by d^±¼, so that the first scores are those of the other divisor.
    power = {SMALL_START: -0.25, LARGE_START: 0.25}.get(divided_by, 0)
    with torch.no_grad():
        head.W_Q *= d**power
        head.W_K *= d**power
    curve = chapter.train(head, keys, rate, seed, steps)
    test_lists = chapter.draw_lists(2000, keys, torch.Generator().manual_seed(2000))
    result = {"validation": curve[-1][1], "test": chapter.accuracy(head, *test_lists)}
    points = [[step, round(share, 3)] for step, share in curve]
    return {"result": result, "curves": {"right": points}}
