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
def test_about_half_of_the_best_average_s_lead_goes_with_the_crowding(waves):
    def lead(places, within):
        """Of the best average over the best Gaussian, as a share of its expected error."""
        of_curves, of_values = curves._second_moments(places, waves)
        itself = torch.eye(40, dtype=torch.bool)

        def expected_error(weights):
            errors = ((weights @ of_values - 2 * of_curves) * weights).sum(-1)
            return (errors + of_curves.diagonal(dim1=1, dim2=2))[within].mean()

        scores = -(places[:, :, None] - places[:, None, :]).double().square() / 2
        gaussians = [
            expected_error((scores / width**2).masked_fill(itself, -torch.inf).softmax(-1))
            for width in torch.arange(0.16, 0.8, 0.02)
        ]
        return 1 - expected_error(curves.best_average(places, waves)) / min(gaussians)

    grid = torch.linspace(0.0625, 4.9375, 40)[None]
    crowded, *_ = curves.random_curves(30, waves, torch.Generator().manual_seed(0))
    assert lead(crowded, crowded >= 0) > 0.15
    assert 0.4 < lead(grid, grid >= 0) / lead(crowded, crowded >= 0) < 0.7
    assert lead(grid, (grid > 1) & (grid < 4)) < 0.05


@pytest.mark.parametrize("waves", [1.0, 2.0])
def test_each_rule_is_the_best_of_its_kind_and_fewer_bounds_expect_a_smaller_error(waves):
    places, *_ = curves.random_curves(3, waves, torch.Generator().manual_seed(0))
    of_curves, of_values = curves._second_moments(places, waves)
    itself = torch.eye(40, dtype=torch.bool)

    def expected_error(weights):
        errors = ((weights @ of_values - 2 * of_curves) * weights).sum(-1)
        return (errors + of_curves.diagonal(dim1=1, dim2=2)).mean()

    average, linear = curves.best_average(places, waves), curves.best_linear(places, waves)
    not_negative = curves.best_not_negative(places, waves)
    of_sum_one = curves.best_of_sum_one(places, waves)
    uniform = (1 - torch.eye(40, dtype=torch.double)).expand(3, -1, -1) / 39
    for weights in (average, linear, not_negative, of_sum_one):
        assert weights.diagonal(dim1=1, dim2=2).eq(0).all()
    assert average.min() >= 0 and not_negative.min() >= 0
    for weights in (average, of_sum_one):
        assert torch.allclose(weights.sum(-1), torch.ones(3, 40).double())
    for between in (not_negative, of_sum_one):
        assert expected_error(linear) < expected_error(between) < expected_error(average)
    assert expected_error(average) < expected_error(uniform)
    for _ in range(5):  # no step to another rule of the same kind is a better one
        other = torch.rand_like(average).masked_fill(itself, 0) ** 8
        normed = other / other.sum(-1, keepdim=True)
        signed = (other - other.mean(-1, keepdim=True)).masked_fill(itself, 0)
        signed = signed + (1 - signed.sum(-1, keepdim=True)) * uniform
        for best, another in ((average, normed), (not_negative, other), (of_sum_one, signed)):
            nearby = best + 0.05 * (another - best)
            assert expected_error(best) <= expected_error(nearby) + 1e-6
