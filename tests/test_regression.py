"""The regression data: their values, their seed, and the errors for wrong arguments."""

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


@pytest.mark.parametrize("draw", [noisy_sine, two_moons])
def test_a_seed_fixes_the_data_and_leaves_the_global_generator_alone(draw):
    state = torch.get_rng_state()
    drawn = (draw(30, seed=seed) for seed in (1, 1, 2))
    first, again, other = (one if isinstance(one, tuple) else (one.x, one.y) for one in drawn)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(map(torch.equal, first, again)) and not torch.equal(first[0], other[0])
