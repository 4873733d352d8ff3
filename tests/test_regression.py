"""The drawn data: what they are, that a seed fixes them, and the words of their errors."""

import pytest
import torch
from torch.testing import assert_close

from course_utils.data.regression import noisy_sine
from course_utils.lessons.kernel_regression.curves import two_moons


@pytest.mark.parametrize("power", [1.0, 0.8])
def test_without_noise_the_observations_are_the_formula_at_sorted_points(power):
    data = noisy_sine(200, upper=3.0, noise=0, power=power)
    assert data.x.shape == data.y.shape == (200,)
    assert (data.x.diff() >= 0).all() and data.x[0] >= 0 and data.x[-1] < 3
    assert_close(data.y, 2 * data.x.sin() + data.x**power)
    assert_close(data.truth(data.x), data.y)


def test_noise_has_the_mean_and_the_deviation_it_says():
    data = noisy_sine(20_000, noise=0.5)
    residuals = data.y - data.truth(data.x)
    assert abs(residuals.mean()) < 0.02 and abs(residuals.std() - 0.5) < 0.02


@pytest.mark.parametrize("draw", [noisy_sine, two_moons])
def test_a_seed_fixes_the_data_and_leaves_the_global_generator_alone(draw):
    state = torch.get_rng_state()
    drawn = (draw(30, seed=seed) for seed in (1, 1, 2))
    first, again, other = (one if isinstance(one, tuple) else (one.x, one.y) for one in drawn)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(map(torch.equal, first, again)) and not torch.equal(first[0], other[0])


def test_two_moons_without_noise_lie_on_half_circles():
    points, classes = two_moons(100, noise=0)
    centers = torch.tensor([[0.0, 0.0], [1.0, 0.5]])[classes]
    assert_close((points - centers).norm(dim=1), torch.ones(100))
    assert (points[classes == 0, 1] >= -1e-6).all()
    assert (points[classes == 1, 1] <= 0.5 + 1e-6).all()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: noisy_sine(0), ValueError, "n=0 gives empty data; at least one point is needed"),
        (lambda: noisy_sine(2.5), TypeError, r"n=2\.5 is a float; an integer is needed"),
        (lambda: noisy_sine(noise=-1), ValueError, "noise=-1; a finite standard deviation of at"),
        (lambda: noisy_sine(upper=0), ValueError, "upper=0; a positive, finite bound is needed"),
        (lambda: noisy_sine(power=-1), ValueError, "power=-1; a finite power of at least 0 is"),
        (lambda: two_moons(1), ValueError, "n=1; two moons need at least 2 points"),
        (lambda: two_moons(noise=-0.1), ValueError, r"noise=-0\.1; a finite standard deviation of"),
    ],
)
def test_data_that_cannot_be_drawn(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
