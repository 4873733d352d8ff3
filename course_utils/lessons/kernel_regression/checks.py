"""Checks: kernel weights, classification, leave one out, local lines."""

import torch
from torch import Tensor

from course_utils.lessons.check import Check, Property, expect, expect_close, expect_shape
from course_utils.pooling import kernel_weights, leave_one_out, nadaraya_watson

__all__ = [
    "class_probabilities",
    "fixed_leave_one_out",
    "gaussian_weights",
    "local_linear",
    "loo_residuals",
]


def _line(n: int) -> Tensor:
    return torch.linspace(0, 2, n) ** 1.3  # unevenly spaced


# gaussian_weights ----------------------------------------------------------------------------------


def _weights_shape(candidate):
    expect_shape(candidate(torch.randn(4), torch.randn(7), 0.5), (4, 7))


def _weights_rows(candidate):
    weights = candidate(torch.randn(4), torch.randn(7), 0.5)
    expect_close(weights.sum(1), torch.ones(4), "sums over the keys")


def _weights_by_hand(candidate):
    weights = candidate(torch.tensor([1.0]), torch.tensor([0.0, 1.0, 3.0]), 1.0)
    expect_close(weights, torch.tensor([[0.3482, 0.5741, 0.0777]]), atol=1e-3)


def _weights_width(candidate):
    queries, keys = torch.randn(4), torch.randn(7)
    for width in (0.3, 2.5):
        expected = kernel_weights(queries, keys, width=width)
        expect_close(candidate(queries, keys, width), expected, f"width {width}")


def _weights_tiny(candidate):
    weights = candidate(torch.tensor([0.4, 40.0]), torch.tensor([0.0, 1.0, 3.0]), 1e-4)
    nearest = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    expect_close(weights, nearest, "width 0.0001")


gaussian_weights = Check(
    "gaussian_weights",
    [
        Property(
            "weights have shape (queries, keys)",
            _weights_shape,
            "subtract every key from every query: queries[:, None] - keys[None, :]",
        ),
        Property(
            "each query's weights sum to 1", _weights_rows, "over which axis do you normalize?"
        ),
        Property(
            "the three-point example comes out",
            _weights_by_hand,
            "the Gaussian kernel is exp(−u²/2): is the ½ there?",
        ),
        Property(
            "the width divides the distance",
            _weights_width,
            "u is the distance divided by the width, and u is squared after that",
        ),
        Property(
            "a tiny width picks the nearest key, with no NaN",
            _weights_tiny,
            "exp(−u²/2) underflows to 0 for every key; which function of ch. 01 normalizes safely?",
        ),
    ],
)


# class_probabilities -------------------------------------------------------------------------------


def _moons() -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(5, 2), torch.randn(9, 2), torch.tensor([0, 2, 1, 1, 0, 2, 2, 0, 1])


def _classes_shape(candidate):
    expect_shape(candidate(*_moons(), 3, 0.5), (5, 3))


def _classes_sum(candidate):
    probabilities = candidate(*_moons(), 3, 0.5)
    expect_close(probabilities.sum(1), torch.ones(5), "sums over the classes")


def _classes_by_hand(candidate):
    points = torch.tensor([[0.0], [1.0], [3.0]])
    probabilities = candidate(torch.tensor([[1.0]]), points, torch.tensor([0, 1, 1]), 2, 1.0)
    expect_close(probabilities, torch.tensor([[0.3482, 0.6518]]), atol=1e-3)


def _classes_missing(candidate):
    queries, keys, labels = _moons()
    probabilities = candidate(queries, keys, labels.clamp(max=1), 4, 0.5)
    expect_shape(probabilities, (5, 4))
    expect_close(probabilities[:, 2:], torch.zeros(5, 2), "classes that no key has")


def _classes_width(candidate):
    queries, keys, labels = _moons()
    one_hot = torch.eye(3)[labels]
    for width in (0.2, 3.0):
        expected = nadaraya_watson(queries, keys, one_hot, width=width)
        expect_close(candidate(queries, keys, labels, 3, width), expected, f"width {width}")


class_probabilities = Check(
    "class_probabilities",
    [
        Property(
            "one probability for each query and class",
            _classes_shape,
            "the values are rows of length num_classes, not class numbers: cat and dog have no mean",
        ),
        Property(
            "probabilities of a query sum to 1",
            _classes_sum,
            "an average of one-hot rows sums to 1 by itself; what did you do besides averaging?",
        ),
        Property(
            "the three-point example comes out",
            _classes_by_hand,
            "P(class) is the sum of the weights of the keys of that class",
        ),
        Property(
            "a class that no key has gets probability 0",
            _classes_missing,
            "how many columns has your one-hot matrix when the last classes do not occur?",
        ),
        Property("the width is used", _classes_width, "hand the width on to the weights"),
    ],
)


# fixed_leave_one_out -------------------------------------------------------------------------------


def _loo_data() -> tuple[Tensor, Tensor]:
    return _line(8), torch.randn(8)


def _loo_own(candidate):
    keys, values = _loo_data()
    changed = values.clone()
    changed[3] += 10
    difference = candidate(keys, changed, 0.4)[3] - candidate(keys, values, 0.4)[3]
    expect_close(difference, torch.zeros(()), "change of a prediction when its own value changes")


def _loo_constant(candidate):
    keys, _ = _loo_data()
    expect_close(candidate(keys, torch.full((8,), 5.0), 0.4), torch.full((8,), 5.0))


def _loo_exact(candidate):
    keys, values = _loo_data()
    for width in (0.2, 1.0):
        expected = leave_one_out(keys, values, width=width)
        expect_close(candidate(keys, values, width), expected, f"width {width}")


def _loo_tiny(candidate):
    keys, values = _loo_data()
    nearest = leave_one_out(keys, values, width=1e-3)
    expect_close(candidate(keys, values, 1e-3), nearest, "width 0.001")


def _loo_pure(candidate):
    keys, values = _loo_data()
    before = keys.clone(), values.clone()
    candidate(keys, values, 0.4)
    same = torch.equal(keys, before[0]) and torch.equal(values, before[1])
    expect(same, "keys or values were changed")


fixed_leave_one_out = Check(
    "fixed_leave_one_out",
    [
        Property(
            "no prediction depends on its own value",
            _loo_own,
            "the weight of a point on itself has to be 0",
        ),
        Property(
            "equal values are predicted as they are",
            _loo_constant,
            "what do the remaining weights of a row sum to?",
        ),
        Property(
            "it equals removing each point in turn",
            _loo_exact,
            "remove the point first, then normalize over those that remain",
        ),
        Property(
            "it works at tiny widths too",
            _loo_tiny,
            "dividing by 1 − αᵢᵢ is 0/0 when a point has all the weight; mask before the softmax",
        ),
        Property("its inputs are left as they were", _loo_pure, "work on a copy"),
    ],
)


# loo_residuals -------------------------------------------------------------------------------------


def _all_weights(keys: Tensor, width: float) -> Tensor:
    return kernel_weights(keys, keys, width=width)


def _residuals_by_hand(candidate):
    keys, values = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([2.0, 3.0, 7.0])
    residuals = candidate(_all_weights(keys, 1.0), values)
    expect_close(residuals, torch.tensor([-1.0719, 0.0882, 4.0757]), atol=2e-3)


def _residuals_slow(candidate):
    keys, values = _loo_data()
    for width in (0.3, 1.0):
        expected = values - leave_one_out(keys, values, width=width)
        expect_close(candidate(_all_weights(keys, width), values), expected, f"width {width}")


def _residuals_average(candidate):
    values = torch.randn(6)
    residuals = candidate(torch.full((6, 6), 1 / 6), values)
    expect_close(residuals, (values - values.mean()) * 6 / 5, "average pooling of 6 points")


loo_residuals = Check(
    "loo_residuals",
    [
        Property(
            "the three-point example comes out",
            _residuals_by_hand,
            "residual = value minus prediction, in this order; the others share 1 − αᵢᵢ",
        ),
        Property(
            "for average pooling it is n/(n − 1) times the usual residual",
            _residuals_average,
            "every αᵢᵢ is 1/n here; which factor turns 1 − 1/n into that?",
        ),
        Property(
            "it equals the slow way on random data",
            _residuals_slow,
            "each residual has its own factor: take αᵢᵢ from the diagonal",
        ),
    ],
)


# local_linear --------------------------------------------------------------------------------------


def _local_shape(candidate):
    keys = _line(12)
    expect_shape(candidate(torch.rand(5), keys, keys.sin(), 0.5), (5,))


def _local_constant(candidate):
    answer = candidate(torch.linspace(-1, 3, 9), _line(12), torch.full((12,), 4.0), 0.5)
    expect_close(answer, torch.full((9,), 4.0), atol=1e-3)


def _local_line(candidate):
    queries, keys = torch.linspace(-0.5, 2.5, 9), _line(12)
    answer = candidate(queries, keys, 3 * keys - 1, 0.5)
    expect_close(answer, 3 * queries - 1, "values on a line", atol=1e-2, rtol=1e-3)


def _local_reference(candidate):
    queries, keys, values = torch.linspace(0, 2, 5), _line(12), torch.randn(12)
    for width in (0.4, 1.0):
        expected = torch.stack([_fit_line(q, keys, values, width) for q in queries])
        expect_close(
            candidate(queries, keys, values, width),
            expected,
            f"width {width}",
            atol=5e-3,
            rtol=1e-2,
        )


def _fit_line(query: Tensor, keys: Tensor, values: Tensor, width: float) -> Tensor:
    """Weighted least squares in float64; the line's height at the query."""
    offsets = (keys - query).double()
    root = (-0.25 * (offsets / width) ** 2).exp()[:, None]
    design = torch.stack([torch.ones_like(offsets), offsets], dim=1)
    line = torch.linalg.lstsq(root * design, root * values.double()[:, None]).solution
    return line[0, 0].float()


local_linear = Check(
    "local_linear",
    [
        Property("one prediction for each query", _local_shape, "the answer has shape (queries,)"),
        Property(
            "equal values are predicted as they are",
            _local_constant,
            "the weights β sum to 1 when the factor in front of them is right",
        ),
        Property(
            "values on a line are predicted on that line, beyond the data too",
            _local_line,
            "d is key minus query, so that the line's height at d = 0 is the prediction",
        ),
        Property(
            "it is the weighted least-squares line",
            _local_reference,
            "near keys count more: s₁ and s₂ are averages with the weights α, not plain means",
        ),
    ],
)
