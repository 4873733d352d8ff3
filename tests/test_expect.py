"""The expectations of checks: what they let pass, and what they say is off."""

import copy
import math

import pytest
import torch

from course_utils.kit.expect import (
    expect_close,
    expect_equal,
    expect_number,
    expect_same_gradients,
    expect_shape,
    expect_sums_to_one,
    expect_tensors,
    expect_unchanged,
    unchanged,
)

ROWS = torch.tensor([[1.0, 2]]).expand(2, 2)
UP_TO_SEVEN = torch.arange(9.0).where(torch.arange(9) < 8, -math.inf)


@pytest.mark.parametrize(
    ("expectation", "given", "off"),
    [
        (expect_shape, ([1.0], (1,)), "got a list, expected a tensor"),
        (expect_shape, (torch.ones(2, 3), (3, 2)), r"^got shape \(2, 3\), expected shape \(3, 2\)"),
        (expect_close, (torch.ones(2), torch.tensor([1, 1.5]), "rows"), r"^rows: got \[1, 1\], expected \[1, 1\.5\]$"),
        (expect_close, (torch.tensor([torch.nan]), torch.ones(1)), "^entry 0 is nan, expected 1$"),
        (expect_close, (torch.tensor(1.0004), torch.tensor(1.0)), r"^got 1\.0004, expected 1$"),
        (expect_close, (torch.tensor([[1.0, 2], [1, 7]]), ROWS), r"^row 1 is \[1, 7\], expected \[1, 2\]$"),
        (expect_close, (torch.arange(9)[None], UP_TO_SEVEN[None]), r"^entry \[0, 8\] is 8, expected -inf$"),
        (expect_sums_to_one, (torch.ones(3, 2), (3, 2)), r"of the rows: got \[2, 2, 2\], expected \[1, 1, 1\]"),
        (expect_equal, (3, 4, "four"), "four: got 3, expected 4"),
        (expect_number, (3, 4, "the rate"), "the rate is 3, expected 4"),
        (expect_number, ((), 4, "the rate"), "got a tuple, expected a number"),
        (expect_tensors, (ROWS, "x", "y"), r"got a Tensor, expected a tuple of 2 tensors \(x, y\)"),
        (expect_tensors, ([ROWS, 1], "x", "y"), "got a list, expected a tuple of 2 tensors"),
    ],
)  # fmt: skip
def test_expectations_say_what_is_off(expectation, given, off):
    with pytest.raises(AssertionError, match=off):
        expectation(*given)


def test_what_holds_passes():
    expect_close(torch.tensor([torch.nan]), torch.tensor([torch.nan]))
    expect_sums_to_one(torch.ones(2, 3, 1), (2, 3, 1))
    expect_equal([1], [1], "a list")
    expect_number(torch.tensor(4.0), 4, "a tensor")
    expect_number(math.inf, math.inf, "never")


@pytest.mark.parametrize(
    ("given", "change"),
    [
        (torch.zeros(2), lambda x: x.add_(1)),
        ([[1], [2]], lambda rows: rows[0].append(3)),
        ([torch.zeros(2)], lambda tensors: tensors.__setitem__(0, torch.ones(2))),
    ],
)
def test_changed_inputs_are_noticed(given, change):
    with unchanged(torch.ones(1), given):
        copy.deepcopy(given)
    with pytest.raises(AssertionError, match="the call changed its inputs"):
        expect_unchanged(change, given)
    assert expect_unchanged(len, given) == len(given)


@pytest.mark.parametrize("given", [torch.zeros(2), [torch.zeros(2)]])
def test_an_input_that_the_call_makes_pytorch_follow_is_noticed(given):
    def follow(some):
        return (some[0] if isinstance(some, list) else some).requires_grad_()

    with pytest.raises(AssertionError, match="made PyTorch follow"):
        expect_unchanged(follow, given)
    with unchanged(given):  # it was followed before
        follow(given)


def test_an_equal_tensor_in_the_place_of_another_is_no_change():
    tensors = [torch.zeros(2)]
    with unchanged(tensors):
        tensors[0] = tensors[0].clone()


@pytest.mark.parametrize(
    ("candidate", "off"),
    [
        (lambda x, y: (x * y).detach(), "no gradient reaches the first or the second"),
        (lambda x, y: x * y.detach(), "no gradient reaches the second"),
        (lambda x, y: 2 * x * y - x.detach() * y, "the gradient of the first: .*, expected"),
        (lambda x, y: x @ y, r"got shape \(\), expected shape \(3,\)"),
    ],
)
def test_a_gradient_that_does_not_arrive_or_is_another_is_noticed(candidate, off):
    inputs = {"first": torch.randn(3), "second": torch.randn(3)}
    expect_same_gradients(lambda x, y: y * x, torch.mul, **inputs)
    with pytest.raises(AssertionError, match=off):
        expect_same_gradients(candidate, torch.mul, **inputs)
