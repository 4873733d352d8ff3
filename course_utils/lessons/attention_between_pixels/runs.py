"""Stored trainings on far colors, `make runs CHAPTER=16`: networks with attention, or with group norms, in the middle.

*Attention between pixels* shows the accuracy over the number of symbols.
"""

from types import SimpleNamespace

import torch

from course_utils.kit.runs import stored
from course_utils.lessons.attention_between_pixels.far_colors import (
    accuracy_of,
    far_pictures,
    middle,
)

STEPS = {2: 600, 4: 1600, 8: 1600}
"""Symbols of a picture → steps of a training."""

RATES = (3e-4, 1e-3, 3e-3, 1e-2)
CASES = [("attention", n, 1e-3) for n in (2, 4, 8)]
CASES += [("group norm, 8 groups", 2, 1e-3)]
CASES += [("group norm, 8 groups", 4, rate) for rate in (1e-4, *RATES[:2])]
CASES += [("group norm, 8 groups", 8, rate) for rate in RATES]
CASES += [("group norm, 32 groups", 8, rate) for rate in RATES[:3]]
"""The block in the middle, the symbols of a picture, and a rate.

Attention solved each task at the first rate that was tried, so no other one was.
"""

MORE_SEEDS = ("group norm, 8 groups", 8)
"""The case whose result depends much on the seed; it has nine seeds at its two best rates, the others three."""

TESTS, VALIDATION = 1_000_001, 1_000_002
"""Seeds of pictures that no training draws."""


@stored(
    cases=[
        {"kind": kind, "symbols": n, "steps": STEPS[n], "rate": rate, "seed": seed}
        for kind, n, rate in CASES
        for seed in (range(9) if (kind, n) == MORE_SEEDS and rate in RATES[2:] else range(3))
    ],
    chapter=["FarNetwork", "train"],
    digits=20,  # not rounded
)
def far_colors(
    chapter: SimpleNamespace, *, kind: str, symbols: int, steps: int, rate: float, seed: int
) -> dict:
    """Accuracy on 500 test pictures, every 100 steps. The learning rate is chosen on 500 others."""
    torch.manual_seed(seed)
    network = chapter.FarNetwork(middle(kind), symbols)
    curve = chapter.train(network, far_pictures(500, TESTS, symbols), steps, rate, seed)
    count = sum(parameter.numel() for parameter in network.parameters())
    result = {"right": curve[-1][1], "parameters": count}
    result["validation"] = accuracy_of(network, far_pictures(500, VALIDATION, symbols))
    return {"result": result, "curves": {"right": curve}}
