"""Checks of *Kernel regression*: leave one out and its shortcut, a loss with a bug."""

from collections.abc import Callable

import torch
from torch import Tensor

from course_utils.kit.check import (
    Check,
    Unmet,
    expect,
    expect_close,
    expect_same_gradients,
    expect_shape,
)
from course_utils.pooling import kernel_weights, leave_one_out, leave_one_out_error


def _line(n: int) -> Tensor:
    return torch.linspace(0, 2, n) ** 1.3  # unevenly spaced


# Leave one out --------------------------------------------------------------------------------------

my_leave_one_out = Check("my_leave_one_out", forbids=["leave_one_out", "leave_one_out_error"])


def _data() -> tuple[Tensor, Tensor]:
    return _line(8), torch.randn(8)


def _same_gradient(candidate: Callable, reference: Callable) -> None:
    keys, values = _data()
    by_width = (
        lambda width: candidate(keys, values, width),
        lambda width: reference(keys, values, width=width),
    )
    expect_same_gradients(*by_width, width=torch.tensor(0.7), rtol=1e-3)


@my_leave_one_out.must("one prediction for each point")
def _(candidate):
    """Every point is a query and a key: which shape have the scores, and over which axis do you sum?"""
    expect_shape(candidate(*_data(), 0.4), (8,))


@my_leave_one_out.must("no prediction is NaN")
def _(candidate):
    """What is 0 · inf?

    Change the scores on the diagonal alone, where a table of True and False says so.
    """
    predictions = candidate(*_data(), 0.4)
    lost = predictions.isnan().sum().item()
    expect(lost == 0, f"{lost} of 8 predictions are NaN")


@my_leave_one_out.must("no prediction depends on its own value")
def _(candidate):
    """How much weight does a point give to itself?"""
    keys, values = _data()
    changed = values.clone()
    changed[3] += 10
    difference = candidate(keys, changed, 0.4)[3] - candidate(keys, values, 0.4)[3]
    expect_close(difference, torch.zeros(()), "change of a prediction when its own value changes")


@my_leave_one_out.must("equal values are predicted as they are")
def _(candidate):
    """What do the remaining weights of a row sum to?

    In which order do you leave the point out and normalize?
    """
    keys, _ = _data()
    expect_close(candidate(keys, torch.full((8,), 5.0), 0.4), torch.full((8,), 5.0))


@my_leave_one_out.must("the three-point example comes out")
def _(candidate):
    """Compute the row of the key 1 by hand: the others are at the distances 1 and 2. Is the ½ there?"""
    keys, values = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([2.0, 3.0, 7.0])
    expect_close(candidate(keys, values, 1.0), torch.tensor([3.0719, 2.9118, 2.9243]), atol=2e-3)


@my_leave_one_out.must("it equals removing each point in turn, at several widths")
def _(candidate):
    """Where does the width enter the scores, and is it squared?"""
    keys, values = _data()
    for width in (0.2, 2.5):
        expected = leave_one_out(keys, values, width=width)
        expect_close(candidate(keys, values, width), expected, f"width {width}")


@my_leave_one_out.must("it works at tiny widths too")
def _(candidate):
    """What is left of a row whose own weight was 1, once that weight is taken away?

    Leave the point out of the scores, before the softmax. Which score becomes a weight of 0?
    """
    keys, values = _data()
    for width in (1e-2, 1e-5, 1e-9):
        nearest, mine = leave_one_out(keys, values, width=width), candidate(keys, values, width)
        if torch.equal(mine, values):
            raise Unmet(
                f"width {width:g}: each point predicts itself",
                hint="The scores of the others are below −10⁹ there. Which score is below all numbers?",
            )
        expect_close(mine, nearest, f"width {width:g}")


@my_leave_one_out.must("two points at the same place predict each other")
def _(candidate):
    """Does a point leave out its own position in the table, or all that is at distance 0?"""
    keys, values = torch.tensor([0.0, 0.0, 3.0]), torch.tensor([2.0, 4.0, 7.0])
    expect_close(candidate(keys, values, 0.1), torch.tensor([4.0, 2.0, 3.0]))


@my_leave_one_out.must("it can be called with the names keys, values and width")
def _(candidate):
    """The parameters in the first line of the stub have names. Does yours have the same?"""
    keys, values = _data()
    named = candidate(keys=keys, values=values, width=0.4)
    expect_close(named, leave_one_out(keys, values, width=0.4))


@my_leave_one_out.must("a gradient reaches the width")
def _(candidate):
    """Which step turns the width, or what depends on it, into a plain number?"""
    _same_gradient(candidate, leave_one_out)


my_leave_one_out.must_keep_inputs(
    lambda: [*_data(), 0.4],
    "Does a line write into a tensor that the caller owns?",
    "its inputs are not changed",
)

# Residuals without a loop -----------------------------------------------------------------------

loo_residuals = Check("loo_residuals")


@loo_residuals.must("the three-point example comes out")
def _(candidate):
    """A residual is value minus prediction, in this order. What share is left for the other points?

    The prediction f(kᵢ) is entry i of weights @ values, and αᵢᵢ stands on the diagonal of the weights.
    """
    keys, values = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([2.0, 3.0, 7.0])
    residuals = candidate(kernel_weights(keys, keys, width=1.0), values)
    expect_close(residuals, torch.tensor([-1.0719, 0.0882, 4.0757]), atol=2e-3)


@loo_residuals.must("for average pooling it is n/(n − 1) times the usual residual")
def _(candidate):
    """Every αᵢᵢ is 1/n here. How do you get n/(n − 1) from 1/n?"""
    values = torch.randn(6)
    residuals = candidate(torch.full((6, 6), 1 / 6), values)
    expect_close(residuals, (values - values.mean()) * 6 / 5, "average pooling of 6 points")


@loo_residuals.must("it equals the slow way on random data")
def _(candidate):
    """Each residual has its own factor. Where in the matrix do you find each αᵢᵢ?"""
    keys, values = _data()
    for width in (0.3, 1.0):
        expected = values - leave_one_out(keys, values, width=width)
        weights = kernel_weights(keys, keys, width=width)
        expect_close(candidate(weights, values), expected, f"width {width}")


@loo_residuals.must("it holds for weights of any kind")
def _(candidate):
    """Must a point's own weight be the largest of its row? Where does it stand?"""
    weights, values = torch.rand(6, 6), torch.randn(6)
    weights = weights / weights.sum(1, keepdim=True)
    others = weights * (1 - torch.eye(6))
    expected = values - others @ values / others.sum(1)
    expect_close(candidate(weights, values), expected, "random weights")


# A column among rows: find the bug ------------------------------------------------------------------

fixed_loss = Check("fixed_loss", forbids=["leave_one_out_error"])


@fixed_loss.must("it gives one number, as a tensor")
def _(candidate):
    """What is taken over all points at the end? It has to stay a tensor, so that a gradient can flow."""
    loss = candidate(*_data(), 0.4)
    expect(isinstance(loss, Tensor), f"a tensor is expected, got a {type(loss).__name__}")
    expect_shape(loss, ())


@fixed_loss.must("the three-point example gives 5.92")
def _(candidate):
    """Is it the mean of three squares, each from a prediction without the point itself?

    Which shape has `predictions - values` in the loss above?

    A column minus a row is a table. How do you get the column back to (n,)?
    """
    keys, values = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([2.0, 3.0, 7.0])
    loss = candidate(keys, values, 1.0).item()
    expect(abs(loss - 5.9228) < 2e-3, f"yours is {loss:.2f}; expected 5.92")


@fixed_loss.must("it is the leave-one-out error at every width")
def _(candidate):
    """Is each prediction compared with its own value, and made with the width that was given?"""
    keys, values = _data()
    for width in (0.2, 2.5):
        expected = leave_one_out_error(keys, values, width=width)
        expect_close(candidate(keys, values, width), expected, f"width {width}")


@fixed_loss.must("a gradient reaches the width")
def _(candidate):
    """Which step turns the width, or what depends on it, into a plain number?"""
    _same_gradient(candidate, leave_one_out_error)
