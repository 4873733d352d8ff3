"""Checks of *Kernel regression*: kernel weights, classification, leave one out, local lines."""

import torch
from torch import Tensor

from course_utils.lessons.check import (
    Check,
    expect_close,
    expect_shape,
    expect_sums_to_one,
    unchanged,
)
from course_utils.pooling import kernel_weights, leave_one_out, nadaraya_watson


def _line(n: int) -> Tensor:
    return torch.linspace(0, 2, n) ** 1.3  # unevenly spaced


# Gaussian weights -------------------------------------------------------------------------------

gaussian_weights = Check("gaussian_weights")


@gaussian_weights.must(
    "weights have shape (queries, keys)",
    hint="Each query meets each key. How must the two axes stand so that a difference broadcasts?",
)
def _(candidate):
    expect_shape(candidate(torch.randn(4), torch.randn(7), 0.5), (4, 7))


@gaussian_weights.must("each query's weights sum to 1", hint="Over which axis do you normalize?")
def _(candidate):
    expect_sums_to_one(candidate(torch.randn(4), torch.randn(7), 0.5), (4, 7))


@gaussian_weights.must(
    "the three-point example comes out", hint="The Gaussian kernel is exp(−u²/2). Is the ½ there?"
)
def _(candidate):
    weights = candidate(torch.tensor([1.0]), torch.tensor([0.0, 1.0, 3.0]), 1.0)
    expect_close(weights, torch.tensor([[0.3482, 0.5741, 0.0777]]), atol=1e-3)


@gaussian_weights.must(
    "the width divides the distance",
    hint="The kernel is a function of u, the distance divided by the width. What is squared?",
)
def _(candidate):
    queries, keys = torch.randn(4), torch.randn(7)
    for width in (0.3, 2.5):
        expected = kernel_weights(queries, keys, width=width)
        expect_close(candidate(queries, keys, width), expected, f"width {width}")


@gaussian_weights.must(
    "a tiny width picks the nearest key, with no NaN",
    hint="Here exp(−u²/2) is rounded to 0 for every key. Which function normalizes without a ratio 0/0?",
)
def _(candidate):
    weights = candidate(torch.tensor([0.4, 40.0]), torch.tensor([0.0, 1.0, 3.0]), 1e-4)
    nearest = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    expect_close(weights, nearest, "width 0.0001")


# Class probabilities ----------------------------------------------------------------------------

class_probabilities = Check("class_probabilities")


def _points() -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(5, 2), torch.randn(9, 2), torch.tensor([0, 2, 1, 1, 0, 2, 2, 0, 1])


@class_probabilities.must(
    "one probability for each query and class",
    hint="Class numbers are names, not quantities: cat and dog have no mean. What can be averaged instead?",
)
def _(candidate):
    expect_shape(candidate(*_points(), 3, 0.5), (5, 3))


@class_probabilities.must(
    "probabilities of a query sum to 1",
    hint="An average of one-hot rows sums to 1 by itself. What did you do besides averaging?",
)
def _(candidate):
    expect_sums_to_one(candidate(*_points(), 3, 0.5), (5, 3))


@class_probabilities.must(
    "the three-point example comes out",
    hint="Which keys add their weights to the probability of a class?",
)
def _(candidate):
    points = torch.tensor([[0.0], [1.0], [3.0]])
    probabilities = candidate(torch.tensor([[1.0]]), points, torch.tensor([0, 1, 1]), 2, 1.0)
    expect_close(probabilities, torch.tensor([[0.3482, 0.6518]]), atol=1e-3)


@class_probabilities.must(
    "a class that no key has gets probability 0",
    hint="How many columns does your one-hot matrix have when the last classes do not occur?",
)
def _(candidate):
    queries, keys, labels = _points()
    probabilities = expect_shape(candidate(queries, keys, labels.clamp(max=1), 4, 0.5), (5, 4))
    expect_close(probabilities[:, 2:], torch.zeros(5, 2), "classes that no key has")


@class_probabilities.must("the width is used", hint="Where does the width enter the weights?")
def _(candidate):
    queries, keys, labels = _points()
    for width in (0.2, 3.0):
        expected = nadaraya_watson(queries, keys, torch.eye(3)[labels], width=width)
        expect_close(candidate(queries, keys, labels, 3, width), expected, f"width {width}")


# Leave one out: find the bug --------------------------------------------------------------------

fixed_leave_one_out = Check("fixed_leave_one_out")


def _data() -> tuple[Tensor, Tensor]:
    return _line(8), torch.randn(8)


@fixed_leave_one_out.must(
    "no prediction depends on its own value", hint="How much weight does a point give to itself?"
)
def _(candidate):
    keys, values = _data()
    changed = values.clone()
    changed[3] += 10
    difference = candidate(keys, changed, 0.4)[3] - candidate(keys, values, 0.4)[3]
    expect_close(difference, torch.zeros(()), "change of a prediction when its own value changes")


@fixed_leave_one_out.must(
    "equal values are predicted as they are",
    hint="What do the remaining weights of a row sum to?",
)
def _(candidate):
    keys, _ = _data()
    expect_close(candidate(keys, torch.full((8,), 5.0), 0.4), torch.full((8,), 5.0))


@fixed_leave_one_out.must(
    "it equals removing each point in turn",
    hint="In which order do you remove the point and normalize?",
)
def _(candidate):
    keys, values = _data()
    for width in (0.2, 1.0):
        expected = leave_one_out(keys, values, width=width)
        expect_close(candidate(keys, values, width), expected, f"width {width}")


@fixed_leave_one_out.must(
    "it works at tiny widths too",
    hint="What is 1 − αᵢᵢ when a point has all the weight? Is there an earlier place to leave it out?",
)
def _(candidate):
    keys, values = _data()
    nearest = leave_one_out(keys, values, width=1e-3)
    expect_close(candidate(keys, values, 1e-3), nearest, "width 0.001")


@fixed_leave_one_out.must(
    "its inputs are not changed", hint="Does a line write into a tensor that the caller owns?"
)
def _(candidate):
    keys, values = _data()
    with unchanged(keys, values):
        candidate(keys, values, 0.4)


# Residuals without a loop -----------------------------------------------------------------------

loo_residuals = Check("loo_residuals")


@loo_residuals.must(
    "the three-point example comes out",
    hint="A residual is value minus prediction, in this order. What share is left for the other points?",
)
def _(candidate):
    keys, values = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([2.0, 3.0, 7.0])
    residuals = candidate(kernel_weights(keys, keys, width=1.0), values)
    expect_close(residuals, torch.tensor([-1.0719, 0.0882, 4.0757]), atol=2e-3)


@loo_residuals.must(
    "for average pooling it is n/(n − 1) times the usual residual",
    hint="Every αᵢᵢ is 1/n here. How do you get n/(n − 1) from 1/n?",
)
def _(candidate):
    values = torch.randn(6)
    residuals = candidate(torch.full((6, 6), 1 / 6), values)
    expect_close(residuals, (values - values.mean()) * 6 / 5, "average pooling of 6 points")


@loo_residuals.must(
    "it equals the slow way on random data",
    hint="Each residual has its own factor. Where in the matrix do you find each αᵢᵢ?",
)
def _(candidate):
    keys, values = _data()
    for width in (0.3, 1.0):
        expected = values - leave_one_out(keys, values, width=width)
        weights = kernel_weights(keys, keys, width=width)
        expect_close(candidate(weights, values), expected, f"width {width}")


# Local lines ------------------------------------------------------------------------------------

local_linear = Check("local_linear")


def _fit_line(query: Tensor, keys: Tensor, values: Tensor, width: float) -> Tensor:
    """Weighted least squares in float64; the line's height at the query."""
    offsets = (keys - query).double()
    root = (-0.25 * (offsets / width) ** 2).exp()[:, None]
    design = torch.stack([torch.ones_like(offsets), offsets], dim=1)
    line = torch.linalg.lstsq(root * design, root * values.double()[:, None]).solution
    return line[0, 0].float()


@local_linear.must(
    "one prediction for each query", hint="Which axis is left when the keys are summed?"
)
def _(candidate):
    keys = _line(12)
    expect_shape(candidate(torch.rand(5), keys, keys.sin(), 0.5), (5,))


@local_linear.must(
    "equal values are predicted as they are",
    hint="The weights β should sum to 1. Look at the factor in front of them.",
)
def _(candidate):
    answer = candidate(torch.linspace(-1, 3, 9), _line(12), torch.full((12,), 4.0), 0.5)
    expect_close(answer, torch.full((9,), 4.0), atol=1e-3)


@local_linear.must(
    "values on a line are predicted on that line, beyond the data too",
    hint="The prediction is the line's height at d = 0. From where to where does d point?",
)
def _(candidate):
    queries, keys = torch.linspace(-0.5, 2.5, 9), _line(12)
    answer = candidate(queries, keys, 3 * keys - 1, 0.5)
    expect_close(answer, 3 * queries - 1, "values on a line", atol=1e-2, rtol=1e-3)


@local_linear.must(
    "it is the weighted least-squares line",
    hint="Near keys count more. Are s₁ and s₂ averages with the weights α, or plain means?",
)
def _(candidate):
    queries, keys, values = torch.linspace(0, 2, 5), _line(12), torch.randn(12)
    for width in (0.4, 1.0):
        expected = torch.stack([_fit_line(q, keys, values, width) for q in queries])
        answer = candidate(queries, keys, values, width)
        expect_close(answer, expected, f"width {width}", atol=5e-3, rtol=1e-2)
