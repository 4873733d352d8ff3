"""Positions: the table against its formula, rotation by an offset, and clear limits."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import course_utils as cu
from course_utils.positions import (
    LearnedPositions,
    RelativeBias,
    RelativeKeys,
    Rotation,
    SinusoidalPositions,
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


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
def test_positions_are_added_and_those_beyond_the_table_are_refused(kind):
    positions, x = kind(8, max_len=10), torch.randn(2, 4, 8)
    before = x.clone()
    added = positions(x, start=3)
    assert torch.equal(x, before)
    torch.testing.assert_close(added - x, positions.table[3:7].expand(2, 4, 8))
    positions(torch.zeros(1, 10, 8))
    with pytest.raises(ValueError, match="positions 0 to 10 do not fit a table of max_len=10"):
        positions(torch.zeros(1, 11, 8))
    with pytest.raises(ValueError, match="positions 9 to 10 do not fit"):
        positions(torch.zeros(1, 2, 8), start=9)
    assert kind(8).table.shape == (512, 8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoidal_table(-1, 2), "length=-1; a length is at least 0"),
        (lambda: sinusoidal_table(4, 7), "embed_dim=7; a positive, even size"),
        (lambda: sinusoidal_table(4, 0), "embed_dim=0; a positive, even size"),
        (lambda: rotate(torch.zeros(1, 2), start=-1), "start=-1; a position is at least 0"),
        (lambda: RelativeKeys(4, farthest=0), "farthest=0"),
        (lambda: offset_buckets(torch.tensor([1]), buckets=6), "buckets=6, .*a multiple of 4 is"),
        (lambda: offset_buckets(torch.tensor([1]), farthest=8), "farthest=8; a multiple of 4 is"),
    ],
)
def test_what_cannot_be_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("base", [10_000, 123.0])
@pytest.mark.parametrize("start", [0, 1_000_000])
def test_pairs_are_turned_by_the_angle_of_the_formula(start, base):
    x = torch.randn(2, 8, dtype=torch.float64)
    places = torch.tensor([[start], [start + 1.0]], dtype=torch.float64)
    angles = places / base ** (torch.arange(0, 8, 2, dtype=torch.float64) / 8)
    turned = torch.view_as_complex(x.unflatten(-1, (4, 2))) * torch.exp(1j * angles)
    expected = torch.view_as_real(turned).flatten(1)
    options = ({"start": start} if start else {}) | ({"base": base} if base != 10_000 else {})
    torch.testing.assert_close(rotate(x, **options), expected, atol=1e-8, rtol=1e-8)
    assert torch.equal(Rotation(2, 8, **options)(x), rotate(x, **options))


def test_shaw_adds_the_score_with_the_vector_of_the_offset():
    relative, queries = RelativeKeys(4, farthest=2), torch.randn(3, 5, 4)
    for i in range(5):
        for j in range(5):
            vector = relative.table[max(-2, min(2, j - i)) + 2]
            torch.testing.assert_close(relative(queries)[:, i, j], queries[:, i] @ vector)


def test_buckets_are_those_of_t5():
    # from the definition in Raffel et al. (2020): 8 offsets of their own, then logarithmic up to 128
    distances = [0, 1, 7, 8, 11, 12, 15, 16, 22, 23, 31, 32, 63, 64, 127, 128, 1000]
    wanted = [0, 1, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 13, 14, 15, 15, 15]
    assert offset_buckets(-torch.tensor(distances)).tolist() == wanted
    right = offset_buckets(torch.tensor(distances[1:])).tolist()
    assert right == [bucket + 16 for bucket in wanted[1:]]
    assert offset_buckets(torch.arange(-500, 501)).unique().numel() == 31  # 16 is "0 to the right"


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
    near = RelativeBias(1, farthest=20)
    torch.nn.init.normal_(near.table)
    expected = near.table[offset_buckets(torch.tensor(-25), farthest=20), 0]
    assert near(40)[0, 30, 5] == expected != near.table[offset_buckets(torch.tensor(-25)), 0]


def test_the_period_on_paper_with_decimals_is_called_right_and_to_be_rounded():
    report = cu.checks.predicted_products(lambda: [2, 1.54, 1.54, 628.319])
    assert not report.passed
    assert "which is right" in report.reason and "round" in report.hint
