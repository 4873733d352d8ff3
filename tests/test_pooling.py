"""Kernel pooling: its properties, its extremes, and the words of its errors."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from course_utils.pooling import (
    KERNELS,
    best_width,
    kernel_values,
    kernel_weights,
    leave_one_out,
    leave_one_out_error,
    nadaraya_watson,
)

COMPACT = ["boxcar", "triangular", "epanechnikov"]
SMOOTH = ["gaussian", "constant", "triangular", "epanechnikov"]
REFERENCE = {
    "gaussian": lambda u: math.exp(-u * u / 2),
    "boxcar": lambda u: float(u <= 1),
    "constant": lambda u: 1.0,
    "triangular": lambda u: max(0.0, 1 - u),
    "epanechnikov": lambda u: max(0.0, 1 - u * u),
}

kernels = st.sampled_from(sorted(KERNELS))
widths = st.floats(-4, 4).map(lambda exponent: 10**exponent)
seeds = st.integers(0, 2**31)


def draw(seed: int, queries: int = 4, keys: int = 5, dim: int = 2) -> tuple:
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        torch.randn(size, generator=generator, dtype=torch.float64)
        for size in ((queries, dim), (keys, dim), (keys,))
    )


def slow_weights(queries, keys, kernel, width) -> torch.Tensor:
    """The definition, pair by pair in Python's own floats; NaN where the sum is 0."""
    rows = []
    for query in queries.tolist():
        row = [REFERENCE[kernel](math.dist(query, key) / width) for key in keys.tolist()]
        rows.append([value / sum(row) if sum(row) else math.nan for value in row])
    return torch.tensor(rows, dtype=torch.float64)


# Kernels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_kernels_have_the_values_of_their_formulas(kernel):
    u = torch.arange(-12, 13, dtype=torch.float64) / 4  # 1 exactly, too
    expected = torch.tensor([REFERENCE[kernel](abs(x)) for x in u.tolist()], dtype=torch.float64)
    assert_close(kernel_values(u, kernel=kernel), expected)
    assert kernel_values(torch.zeros(()), kernel=kernel) == 1


# Weights --------------------------------------------------------------------------------------------


@given(seed=seeds, kernel=kernels, width=st.floats(0.3, 10))
def test_weights_equal_the_definition(seed, kernel, width):
    queries, keys, _ = draw(seed)
    expected = slow_weights(queries, keys, kernel, width)
    assert_close(
        kernel_weights(queries, keys, kernel=kernel, width=width), expected, equal_nan=True
    )


@given(seed=seeds, width=widths)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_gaussian_weights_are_finite_at_every_width(dtype, seed, width):
    queries, keys, values = (tensor.to(dtype) for tensor in draw(seed))
    weights = kernel_weights(10 * queries, keys, width=width)
    assert weights.dtype == dtype
    assert weights.isfinite().all()
    assert_close(weights.double().sum(dim=1), torch.ones(4, dtype=torch.float64), atol=0.02, rtol=0)
    assert leave_one_out(keys, values, width=width).isfinite().all()


@pytest.mark.parametrize("kernel", COMPACT)
def test_weights_are_nan_exactly_where_no_key_is_in_reach(kernel):
    queries, keys = torch.tensor([-2.0, 0.5, 1.4, 1.6, 9.0]), torch.tensor([0.0, 1.0])
    weights = kernel_weights(queries, keys, kernel=kernel, width=0.5000001)
    assert weights.isnan().all(dim=1).tolist() == [True, False, False, True, True]
    prediction = nadaraya_watson(queries, keys, torch.ones(2), kernel=kernel, width=0.5000001)
    assert prediction.isnan().tolist() == [True, False, False, True, True]


# Regression -----------------------------------------------------------------------------------------


def test_gaussian_pooling_is_pytorchs_attention_with_a_bias_for_each_key():
    queries, keys, values = draw(1)
    width = 0.7
    attended = torch.nn.functional.scaled_dot_product_attention(
        queries, keys, values[:, None], attn_mask=-keys.square().sum(1) / (2 * width**2),
        scale=1 / width**2,
    )  # fmt: skip
    assert_close(attended[:, 0], nadaraya_watson(queries, keys, values, width=width))


@pytest.mark.parametrize("kernel", SMOOTH)
@pytest.mark.parametrize("width", [2.5, [2.0, 3.0]])
def test_gradients_are_right_also_where_points_meet(kernel, width):
    queries, keys, values = draw(2)
    queries[0] = keys[1] = keys[0]
    inputs = [queries, keys, values, torch.tensor(width, dtype=torch.float64)]
    inputs = [tensor.requires_grad_() for tensor in inputs]
    for pool in (
        lambda q, k, v, w: nadaraya_watson(q, k, v, kernel=kernel, width=w),
        lambda q, k, v, w: leave_one_out(k, v, kernel=kernel, width=2 * w),
    ):
        assert torch.autograd.gradcheck(pool, inputs)


# Leave one out --------------------------------------------------------------------------------------


@given(seed=seeds, kernel=kernels, width=widths)
def test_leave_one_out_equals_a_loop_that_removes_each_point(seed, kernel, width):
    _, keys, values = draw(seed)
    options, every = {"kernel": kernel, "width": width}, torch.arange(len(keys))
    expected = [
        nadaraya_watson(keys[i : i + 1], keys[every != i], values[every != i], **options)
        for i in every
    ]
    left_out = leave_one_out(keys, values, **options)
    assert_close(left_out, torch.cat(expected), equal_nan=True)
    assert torch.equal(leave_one_out(keys, values), leave_one_out(keys, values, width=1))
    assert torch.equal(leave_one_out(keys[:2], values[:2]), values[:2].flip(0))


def test_best_width_has_the_smallest_error():
    generator = torch.Generator().manual_seed(0)
    keys = torch.rand(60, generator=generator)
    values = (6 * keys).sin() + 0.3 * torch.randn(60, generator=generator)
    candidates = torch.logspace(-3, 1, 20)
    for kernel in ({}, {"kernel": "epanechnikov"}):
        width, errors = best_width(keys, values, candidates, **kernel)
        assert errors.shape == (20,)
        assert leave_one_out_error(keys, values, **kernel, width=width) == errors.min()
        assert (
            leave_one_out_error(keys, values, **kernel)
            == best_width(keys, values, torch.ones(1), **kernel)[1]
        )
        assert 0.01 < width < 1


# Errors: what is wrong, and what would be right -----------------------------------------------------

POINTS, VALUES = torch.randn(3, 2), torch.randn(3)


def pooled(width):
    return kernel_weights(POINTS, POINTS, width=width)


def candidates(*widths):
    keys = torch.tensor([0.0, 1.0, 2.0])
    return best_width(keys, torch.ones(3), torch.tensor(widths), kernel="boxcar")


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: pooled(0), ValueError, r"width=0\.0; a positive, finite width is needed"),
        (lambda: pooled(math.nan), ValueError, "width=nan; a positive, finite width"),
        (lambda: pooled(torch.ones(3)), ValueError, r"width has shape \(3,\); a number or \(2,\) is"),
        (lambda: pooled("wide"), TypeError, r"width is a str; a number or a torch\.Tensor is needed"),
        (lambda: kernel_values(VALUES, kernel="gauss"), ValueError, "kernel='gauss' is unknown; .*, boxcar,"),
        (lambda: kernel_weights(POINTS[:, 0], POINTS), ValueError, "queries have 1 coordinates, keys 2"),
        (lambda: kernel_weights(POINTS, POINTS[:0]), ValueError, "^keys is empty; at least one key"),
        (lambda: leave_one_out(POINTS, VALUES[:2]), ValueError, "3 keys, 2 values; each key needs one"),
        (lambda: leave_one_out(POINTS[:1], VALUES[:1]), ValueError, "keys has length 1; leaving one out"),
        (lambda: best_width(POINTS, VALUES, torch.tensor(1.0)), ValueError, r"widths has shape \(\); \(can"),
        (lambda: candidates(1e-9, 2e-9), ValueError, "no width up to 2e-09 reaches another .*; try larger"),
    ],
)  # fmt: skip
def test_what_cannot_be_pooled_is_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
