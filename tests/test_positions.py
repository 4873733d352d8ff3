"""Positions: the table against its formula, rotation by an offset, and clear limits."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.positions import (
    LearnedPositions,
    RelativeBias,
    RelativeKeys,
    SinusoidalPositions,
    alibi_bias,
    offset_buckets,
    rotate,
    sinusoidal_table,
)


@given(st.integers(0, 300), st.integers(0, 15))
def test_the_table_is_its_formula(position, pair):
    table = sinusoidal_table(301, 32)
    angle = position / 10_000 ** (2 * pair / 32)
    assert table[position, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-6)
    assert table[position, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


@given(st.integers(0, 100), st.integers(0, 100))
def test_dot_products_of_the_table_depend_on_the_distance_alone(first, offset):
    table = sinusoidal_table(201, 16)
    torch.testing.assert_close(
        table[first] @ table[first + offset], table[0] @ table[offset], atol=1e-4, rtol=1e-4
    )


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_rotated_dot_products_depend_on_the_distance_alone(query, key, shift):
    q, k = torch.randn(1, 8).double(), torch.randn(1, 8).double()
    near = (rotate(q, start=query) * rotate(k, start=key)).sum()
    moved = (rotate(q, start=query + shift) * rotate(k, start=key + shift)).sum()
    torch.testing.assert_close(near, moved)


def test_rotation_keeps_lengths_and_leaves_position_zero_alone():
    x = torch.randn(2, 3, 5, 8)
    turned = rotate(x)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    torch.testing.assert_close(turned[..., 0, :], x[..., 0, :])


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
def test_positions_are_added_and_the_embedding_is_left_alone(kind):
    positions, x = kind(8, max_len=10), torch.randn(2, 4, 8)
    before = x.clone()
    added = positions(x, start=3)
    assert torch.equal(x, before)
    torch.testing.assert_close(added - x, positions.table[3:7].expand(2, 4, 8))


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
def test_positions_beyond_the_table_are_refused(kind):
    positions = kind(8, max_len=10)
    positions(torch.zeros(1, 10, 8))
    with pytest.raises(ValueError, match="positions 0 to 10 do not fit a table of max_len=10"):
        positions(torch.zeros(1, 11, 8))
    with pytest.raises(ValueError, match="positions 9 to 10 do not fit"):
        positions(torch.zeros(1, 2, 8), start=9)


def test_the_table_moves_with_the_module_and_is_not_saved():
    positions = SinusoidalPositions(8)
    assert positions.to(torch.float64).table.dtype == torch.float64
    assert not positions.state_dict() and not list(positions.parameters())


@pytest.mark.parametrize("embed_dim", [7, 0, -2])
def test_odd_sizes_are_refused(embed_dim):
    with pytest.raises(ValueError, match=f"embed_dim={embed_dim}; a positive, even size"):
        sinusoidal_table(4, embed_dim)


def test_angles_first_used_in_inference_mode_can_be_trained_through_later():
    x = torch.randn(3, 14, requires_grad=True)
    with torch.inference_mode():
        rotate(x.detach(), base=123.0)
    rotate(x, base=123.0).square().sum().backward()
    assert x.grad is not None


def test_tracing_without_data_leaves_nothing_behind():
    with FakeTensorMode():
        assert rotate(torch.randn(3, 22), base=77.0).shape == (3, 22)
    x = torch.randn(3, 22)
    torch.testing.assert_close(rotate(x, base=77.0)[0], x[0])


def test_late_positions_are_turned_as_exactly_as_early_ones():
    x = torch.randn(1, 8, dtype=torch.float64)
    angles = 1_000_000 / 10_000 ** (torch.arange(0, 8, 2, dtype=torch.float64) / 8)
    even, odd = x[:, 0::2], x[:, 1::2]
    expected = torch.stack(
        [even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()], dim=-1
    ).flatten(1)
    torch.testing.assert_close(rotate(x, start=1_000_000), expected, atol=1e-8, rtol=1e-8)


def test_a_late_step_costs_no_more_than_an_early_one():
    class Sizes(TorchDispatchMode):
        largest = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            self.largest = max(self.largest, out.numel())
            return out

    with Sizes() as sizes:
        rotate(torch.randn(1, 6), start=12_345)
    assert sizes.largest <= 6


def test_shaw_adds_the_score_with_the_vector_of_the_offset():
    relative, queries = RelativeKeys(4, farthest=2), torch.randn(3, 5, 4)
    for i in range(5):
        for j in range(5):
            vector = relative.table[max(-2, min(2, j - i)) + 2]
            torch.testing.assert_close(relative(queries)[:, i, j], queries[:, i] @ vector)
    with pytest.raises(ValueError, match="farthest=0"):
        RelativeKeys(4, farthest=0)


def test_buckets_are_those_of_t5():
    # from the definition in Raffel et al. (2020): 8 offsets of their own, then logarithmic up to 128
    distances = [0, 1, 7, 8, 11, 12, 15, 16, 22, 23, 31, 32, 63, 64, 127, 128, 1000]
    wanted = [0, 1, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 13, 14, 15, 15, 15]
    assert offset_buckets(-torch.tensor(distances)).tolist() == wanted
    right = offset_buckets(torch.tensor(distances[1:])).tolist()
    assert right == [bucket + 16 for bucket in wanted[1:]]
    assert offset_buckets(torch.arange(-500, 501)).unique().numel() == 31  # 16 is "0 to the right"
    for wrong in ({"buckets": 6}, {"farthest": 8}):
        with pytest.raises(ValueError, match="a multiple of 4 is needed"):
            offset_buckets(torch.tensor([1]), **wrong)


def test_a_relative_bias_is_its_table_by_bucket_and_is_trained():
    bias = RelativeBias(2)
    with torch.no_grad():
        bias.table.copy_(torch.arange(64.0).view(32, 2))
    table = bias(40)
    assert table.shape == (2, 40, 40)
    assert table[1, 30, 5] == 2 * offset_buckets(torch.tensor(-25)) + 1
    assert table[0, 5, 6] == 2 * 17
    table.sum().backward()
    assert bias.table.grad[0, 0] == 40


def test_alibi_falls_with_the_distance_by_a_slope_for_each_head():
    bias = alibi_bias(8, 6)
    assert bias[:, 2, 2].tolist() == [0.0] * 8
    assert bias[:, 5, 4].tolist() == [-(2.0**-h) for h in range(1, 9)]
    assert bias[2, 1, 5] == bias[2, 5, 1] == -4 / 8
    with pytest.raises(ValueError, match="num_heads=0"):
        alibi_bias(0, 6)
