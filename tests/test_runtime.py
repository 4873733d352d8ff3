"""Same seed, same numbers."""

import random

import numpy as np
import pytest
import torch

import course_utils as cu

# Seeds ------------------------------------------------------------------------------------------


def _draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), torch.rand(()).item()  # noqa: NPY002


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_the_same_seed_gives_the_same_numbers(seed):
    cu.seed_everything(seed)
    first = _draw()
    cu.seed_everything(seed)
    assert _draw() == first


def test_another_seed_gives_other_numbers_in_each_library():
    cu.seed_everything(0)
    first = _draw()
    cu.seed_everything(1)
    assert all(one != other for one, other in zip(first, _draw(), strict=True))


def test_a_cell_that_ends_with_the_seed_shows_nothing():
    assert cu.seed_everything(3) is None


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused(seed):
    with pytest.raises(ValueError, match=rf"seed={seed} is out of range; use 0 <= seed < 2\*\*32"):
        cu.seed_everything(seed)


@pytest.mark.parametrize("seed", [1.0, "1", None, True])
def test_a_seed_that_is_no_integer_is_refused(seed):
    with pytest.raises(TypeError, match="an integer is needed"):
        cu.seed_everything(seed)


def test_a_refused_seed_changes_nothing():
    cu.seed_everything(5)
    expected = _draw()
    cu.seed_everything(5)
    with pytest.raises(ValueError):
        cu.seed_everything(-1)
    assert _draw() == expected
