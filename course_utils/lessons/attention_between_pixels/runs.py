"""The trainings of *Attention between pixels* that are made beforehand: `make runs CHAPTER=16`."""

import torch

from course_utils.kit.runs import stored
from course_utils.lessons.attention_between_pixels.far_colors import (
    KINDS,
    FarPictures,
    far_pictures,
    middle,
)

SEEDS = (0, 1, 2, 4, 5, 6)  # 3 chose the rates
STEPS, TRIAL = 800, 400
RATES = (1e-3, 3e-3, 1e-2)
BEST = dict(zip(KINDS, (1e-3, 3e-3, 1e-2, 3e-3, 1e-3, 1e-3), strict=True))
"""What `rates` found; of two rates whose shares differ by less than 0.005 the smaller."""
TESTS, VALIDATION = 1_000_001, 1_000_002  # seeds of pictures that no training draws


def _train(chapter, kind: str, steps: int, lr: float, seed: int, tests: FarPictures) -> dict:
    torch.manual_seed(seed)
    network = chapter.FarNetwork(middle(kind), tests.symbols)
    curve = chapter.train(network, tests, steps, lr=lr, seed=seed)
    shares = {f"right after {step}": round(share, 4) for step, share in curve if step % TRIAL == 0}
    count = sum(parameter.numel() for parameter in network.parameters())
    return {"result": shares | {"parameters": count}, "curves": {"right": curve}}


@stored(
    cases=[
        {"kind": kind, "steps": TRIAL, "lr": lr, "seed": 3}
        for kind in KINDS
        if kind != "layer norm, no attention"  # which can only guess
        for lr in RATES
    ],
    chapter=["FarNetwork", "train"],
)
def rates(chapter, *, kind: str, steps: int, lr: float, seed: int) -> dict:
    """Which rate? Chosen on other pictures and another seed."""
    return _train(chapter, kind, steps, lr, seed, far_pictures(500, VALIDATION))


@stored(
    cases=[
        {"kind": kind, "steps": STEPS, "lr": BEST[kind], "seed": seed}
        for seed in SEEDS
        for kind in KINDS
    ],
    chapter=["FarNetwork", "train"],
)
def far_colors(chapter, *, kind: str, steps: int, lr: float, seed: int) -> dict:
    """Share of right colors on 500 pictures, every 100 steps."""
    return _train(chapter, kind, steps, lr, seed, far_pictures(500, TESTS))


@stored(
    cases=[
        {"kind": kind, "steps": 2 * STEPS, "lr": lr, "seed": seed}
        for kind, lr in (("group norm (8), no attention", 1e-3), ("dilated convolutions", 3e-3))
        for seed in SEEDS[:3]
    ],
    chapter=["FarNetwork", "train"],
)
def steady(chapter, *, kind: str, steps: int, lr: float, seed: int) -> dict:
    """Twice the steps: the group norm that can do without attention, at a steadier rate, and dilated convolutions."""
    return _train(chapter, kind, steps, lr, seed, far_pictures(500, TESTS))
