"""The chapter's head at several rates and seeds, on waves of two speeds, and the best rules for these curves."""

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
)
def head(
    chapter, *, waves: float, rate: float, seed: int, steps: int = 2000, end: float = 1.0
) -> dict:
    """Error on test curves, beside that of the best fixed Gaussian, and the width that was found."""
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


@stored(cases=[{"waves": waves} for waves in WAVES])
def best_rules(*, waves: float) -> dict:
    """The errors on test curves of four rules that know the curves: of any sign or not negative, of any sum or of 1."""
    _, (x, values, wanted) = curves.judged_on(waves)
    result = {"mean": curves.tuned("constant", waves, _missed)[1].mean()}
    found = {
        "linear": curves.best_linear,
        "sum of 1": curves.best_of_sum_one,
        "not negative": curves.best_not_negative,
        "average": curves.best_average,
    }
    for name, rule in found.items():
        weights = torch.cat([rule(some, waves) for some in x.split(200)])
        misses = (weights @ values.double()[..., None])[..., 0] - wanted
        of_curve = misses.square().mean(1)
        result[name] = of_curve.mean()
        result[f"standard error of {name}"] = of_curve.std() / len(x) ** 0.5
        others = ~torch.eye(x.shape[1], dtype=torch.bool)
        result[f"share below 0 of {name}"] = (weights[:, others] < 0).double().mean()
    return {"result": result}


def _missed(scores: torch.Tensor, values: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Each value predicted from the others: squared distance from what is wanted."""
    itself = torch.eye(values.shape[1], dtype=torch.bool)
    weights = scores.masked_fill(itself, -torch.inf).softmax(dim=-1)
    return ((weights @ values[..., None])[..., 0] - wanted).square()
