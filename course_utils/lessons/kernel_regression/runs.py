"""The chapter's head, trained beforehand at several rates, from several seeds, on waves of two speeds."""

import torch

from course_utils.kit.runs import stored
from course_utils.lessons.kernel_regression import curves

WAVES = (1.0, 2.0)
RATES = (0.001, 0.003, 0.01)


@stored(
    cases=[
        {"waves": waves, "rate": rate, "seed": seed}
        for waves in WAVES
        for rate in RATES
        for seed in range(3)
    ]
    + [
        {"waves": 2.0, "rate": rate, "seed": seed, "steps": 6000, "end": 0.0}
        for rate in RATES[1:]
        for seed in range(3)
    ],
    chapter=["trained_head", "missed", "bump"],
    small=True,
)
def head(
    chapter, *, waves: float, rate: float, seed: int, steps: int = 2000, end: float = 1.0
) -> dict:
    """Its error on test curves, beside that of the best fixed Gaussian, and the width that it found."""
    network, falls = chapter.trained_head(waves, rate, seed, steps, end)
    _, (x, *test) = curves.judged_on(waves)
    with torch.no_grad():
        own = chapter.missed(network(x, x), *test).mean(1)  # a mean for each curve
    width, misses = curves.tuned("gaussian", waves, chapter.missed)
    gain = misses.mean(1) - own
    result = {
        "validation": falls[-1][1],
        "error": own.mean(),
        "width found": chapter.bump(network, 2.5)[3],
        "best fixed width": width,
        "its error": misses.mean(),
        "gain": gain.mean(),
        "standard error of the gain": gain.std() / len(gain) ** 0.5,
    }
    return {
        "result": result,
        "curves": {"validation error": [[step, round(error, 4)] for step, error in falls]},
    }
