"""The exercises of *Kernel regression*: right answers in other ways pass, and the page can use what passes."""

import pytest
import torch

import course_utils as cu
from course_utils.lessons.kernel_regression import curves


def _as_the_pencil_does(keys, values, width):
    """The kernel with zeros on its diagonal, divided by its sum."""
    kernel = torch.exp(-((keys[:, None] - keys) ** 2) / (2 * width**2)) * (1 - torch.eye(len(keys)))
    return kernel @ values / kernel.sum(1)


def _minus_a_billion(keys, values, width):
    scores = -((keys[:, None] - keys) ** 2) / (2 * width**2)
    return (scores - 1e9 * torch.eye(len(keys))).softmax(1) @ values


def _a_loop(keys, values, width):
    left_out = []
    for i, key in enumerate(keys):
        others = torch.arange(len(keys)) != i
        scores = -((key - keys[others]) ** 2) / (2 * width**2)
        left_out.append(scores.softmax(0) @ values[others])
    return torch.stack(left_out)


@pytest.mark.parametrize("answer", [_as_the_pencil_does, _minus_a_billion, _a_loop])
def test_other_ways_to_leave_one_out_pass_and_give_numbers_at_the_widths_of_the_page(answer):
    assert cu.checks.my_leave_one_out(answer).passed
    forty = cu.noisy_sine(40, noise=1.0)
    for width in torch.logspace(-1.75, 0.7, 64):
        assert answer(forty.x, forty.y, width).isfinite().all()


@pytest.mark.parametrize("waves", [1.0, 2.0])
def test_the_best_average_is_one_and_the_best_linear_rule_expects_a_smaller_error(waves):
    places, *_ = curves.random_curves(3, waves, torch.Generator().manual_seed(0))
    of_curves, of_values = curves._second_moments(places, waves)

    def expected_error(weights):
        errors = ((weights @ of_values - 2 * of_curves) * weights).sum(-1)
        return (errors + of_curves.diagonal(dim1=1, dim2=2)).mean()

    average, linear = curves.best_average(places, waves), curves.best_linear(places, waves)
    uniform = (1 - torch.eye(40, dtype=torch.double)).expand(3, -1, -1) / 39
    for weights in (average, linear):
        assert weights.diagonal(dim1=1, dim2=2).eq(0).all()
    assert average.min() >= 0 and torch.allclose(average.sum(-1), torch.ones(3, 40).double())
    assert expected_error(linear) < expected_error(average) < expected_error(uniform)
    for _ in range(5):  # no step to another average is a better one
        other = torch.rand_like(average).masked_fill(torch.eye(40, dtype=torch.bool), 0) ** 8
        other = other / other.sum(-1, keepdim=True)
        nearby = average + 0.05 * (other - average)
        assert expected_error(average) <= expected_error(nearby) + 1e-6
