"""Trainings of the head of *Scoring functions*, with the scale and without, at rates chosen by validation."""

import math

import torch

from course_utils.kit.runs import stored
from course_utils.runtime import seed_everything

LISTS = {16: (4, 16, 64), 64: (4, 16, 64), 256: (4, 8, 16, 32, 64)}
RATES = {16: (0.001, 0.003, 0.01), 64: (0.001, 0.003, 0.01), 256: (0.0001, 0.0003, 0.001, 0.003)}
"""Dimension → lengths of the lists, and rates. Where a side is best at the smallest, it has smaller ones in LONGER."""
COMPARED = [
    (divisor, d, m, RATES[d], 500) for divisor in ("√d", "nothing") for d in LISTS for m in LISTS[d]
]
CONTROLS = [("nothing, small start", 256, m, RATES[256], 500) for m in (16, 64)]
CONTROLS += [("√d, large start", 256, 64, RATES[256], 500)]
LONGER = [
    ("nothing", 64, 64, (0.0001, 0.0003, 0.001, 0.003, 0.01), 2000),
    ("nothing", 64, 64, (0.0001, 0.0003, 0.001), 8000),
    ("nothing", 256, 16, (0.0003, 0.001, 0.003), 2000),
    ("nothing", 256, 64, (0.00003, 0.0001, 0.0003), 2000),
]


@stored(
    cases=[
        {"divided_by": divisor, "d": d, "keys": m, "rate": rate, "seed": seed, "steps": steps}
        for sides in (COMPARED, CONTROLS, LONGER)
        for seed in range(3)
        for divisor, d, m, rates, steps in sides
        for rate in rates
    ],
    chapter=["Head", "draw_lists", "share_right", "train"],
)
def recall_by_one_head(
    chapter, *, divided_by: str, d: int, keys: int, rate: float, seed: int, steps: int
) -> dict:
    """Share of right digits on lists for choosing a rate, and on lists for telling."""
    seed_everything(seed)
    head = chapter.Head(d, 1 / math.sqrt(d) if divided_by.startswith("√d") else 1.0)
    powers = {"nothing, small start": -0.25, "√d, large start": 0.25}
    with torch.no_grad():  # both matrices together change the scores by √d
        head.W_Q *= d ** powers.get(divided_by, 0)
        head.W_K *= d ** powers.get(divided_by, 0)
    curve = chapter.train(head, keys, rate, seed, steps)
    test = chapter.draw_lists(2000, keys, torch.Generator().manual_seed(2000))
    result = {"validation": curve[-1][1], "test": chapter.share_right(head, *test)}
    return {
        "result": result,
        "curves": {"right": [[step, round(share, 3)] for step, share in curve]},
    }
