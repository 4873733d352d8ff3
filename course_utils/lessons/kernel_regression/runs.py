"""The stored runs of *Kernel regression*: its trained head on curves of two speeds, and the best rules for them."""

from types import SimpleNamespace

import torch
from torch import Tensor

from course_utils.kit.comparison import grid
from course_utils.kit.runs import stored
from course_utils.lessons.kernel_regression import curves

WAVES = (1.0, 2.0)
RATES = (0.001, 0.003, 0.01)
SEEDS = range(3)


@stored(
    cases=[
        *grid([{"waves": waves} for waves in WAVES], RATES, SEEDS),
        *grid([{"waves": 2.0, "steps": 6000, "end": 0.0}], RATES[1:], SEEDS),
    ],
    chapter=["trained_head", "missed", "bump"],
)
def head(
    chapter: SimpleNamespace,
    *,
    waves: float,
    rate: float,
    seed: int,
    steps: int = 2000,
    end: float = 1.0,
) -> dict[str, dict]:
    """The chapter's head: its error on test curves, beside that of the best fixed Gaussian, and the width it found."""
    network, history = chapter.trained_head(waves, rate, seed, steps, end)
    _, (x, *test) = curves.judged_on(waves)
    with torch.no_grad():
        head_errors = chapter.missed(network(x, x), *test).mean(1)  # a mean for each curve
    width, fixed_errors = curves.tuned("gaussian", waves, chapter.missed)
    gain = fixed_errors.mean(1) - head_errors
    result = {
        "validation": history[-1][1],
        "error": head_errors.mean(),
        "width found": chapter.bump(network, 2.5)[3],
        "best fixed width": width,
        "its error": fixed_errors.mean(),
        "gain": gain.mean(),
        "standard error of the gain": gain.std() / len(gain) ** 0.5,
    }
    points = [[step, round(error, 4)] for step, error in history]
    return {"result": result, "curves": {"validation error": points}}


@stored(cases=[{"waves": waves} for waves in WAVES])
def best_rules(*, waves: float) -> dict[str, dict]:
    """The error on test curves of the best weights: of any sign or not negative, with any sum or the sum 1.

    "mean" is the error of the plain mean, for comparison.
    """
    _, (x, values, wanted) = curves.judged_on(waves)
    result = {"mean": curves.tuned("constant", waves, _missed)[1].mean()}
    rules = {
        "linear": curves.best_linear,
        "sum of 1": curves.best_of_sum_one,
        "not negative": curves.best_not_negative,
        "average": curves.best_average,
    }
    for name, rule in rules.items():
        weights = torch.cat([rule(places, waves) for places in x.split(200)])
        predicted = (weights @ values.double()[..., None])[..., 0]
        errors = (predicted - wanted).square().mean(1)  # a mean for each curve
        result[name] = errors.mean()
        result[f"standard error of {name}"] = errors.std() / len(x) ** 0.5
        others = ~torch.eye(x.shape[1], dtype=torch.bool)
        result[f"share below 0 of {name}"] = (weights[:, others] < 0).double().mean()
    return {"result": result}


def _missed(scores: Tensor, values: Tensor, wanted: Tensor) -> Tensor:
    """Squared errors (n, 40) where each value is predicted from the others, with softmax weights of these scores."""
    itself = torch.eye(values.shape[1], dtype=torch.bool)
    weights = scores.masked_fill(itself, -torch.inf).softmax(dim=-1)
    return ((weights @ values[..., None])[..., 0] - wanted).square()
