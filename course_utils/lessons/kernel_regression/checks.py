"""Checks of *Kernel regression*: leave one out and its shortcut, a loss with a bug, points of one's own."""

from collections.abc import Callable

import torch
from torch import Tensor

from course_utils.kit.check import Check
from course_utils.kit.expect import (
    Unmet,
    expect,
    expect_close,
    expect_same_gradients,
    expect_shape,
    kind_of,
)
from course_utils.pooling import kernel_weights, leave_one_out, leave_one_out_error, nadaraya_watson


def _uneven_keys(n: int) -> Tensor:
    return torch.linspace(0, 2, n) ** 1.3  # unevenly spaced


# Leave one out --------------------------------------------------------------------------------------

my_leave_one_out = Check(forbids=["leave_one_out", "leave_one_out_error"])


def _keys_and_values() -> tuple[Tensor, Tensor]:
    return _uneven_keys(8), torch.randn(8)


def _same_gradient(candidate: Callable, reference: Callable) -> None:
    keys, values = _keys_and_values()
    try:
        candidate(keys, values, torch.tensor(0.7, requires_grad=True))
    except TypeError as error:
        if "scale" not in str(error):
            raise
        hint = (
            "PyTorch's operator takes `scale` as a plain number, and a number has no gradient. Can you divide the "
            "queries by `width**2` instead, and let `scale` be 1?"
        )
        raise Unmet("`scale` got a tensor, expected a plain number", hint) from error
    by_width = (
        lambda width: candidate(keys, values, width),
        lambda width: reference(keys, values, width=width),
    )
    expect_same_gradients(*by_width, width=torch.tensor(0.7), rtol=1e-3)


@my_leave_one_out.must("gives one prediction per point")
def gives_one_prediction_per_point(candidate):
    """Each point is a query and a key. What shape does your score matrix have? Sum over the axis of the keys, and one
    number per query remains.
    """
    try:
        predictions = candidate(*_keys_and_values(), 0.4)
    except RuntimeError as error:
        if "boolean mask" not in str(error):
            raise
        hint = "`torch.eye(n)` holds numbers. Which `dtype` makes True and False of them? `masked_fill` wants those."
        raise Unmet("`masked_fill` got numbers, expected True and False", hint) from error
    expect_shape(predictions, (8,))


@my_leave_one_out.must("contains no NaN")
def contains_no_nan(candidate):
    """What is 0 · ∞? Multiplying the identity matrix by −∞ gives NaN off the diagonal.

    Change only the diagonal of the scores; a matrix of True and False says where.
    """
    predictions = candidate(*_keys_and_values(), 0.4)
    lost = predictions.isnan().sum().item()
    expect(lost == 0, f"{lost} of 8 predictions are NaN")


@my_leave_one_out.must("never uses a point's own value")
def never_uses_points_own_value(candidate):
    """How much weight does a point give itself? It should be 0, so look at the diagonal of your weights.

    A score of 0 doesn't do it, because its exponential is 1. Which score has the exponential 0?
    """
    keys, values = _keys_and_values()
    changed = values.clone()
    changed[3] += 10
    difference = candidate(keys, changed, 0.4)[3] - candidate(keys, values, 0.4)[3]
    expect_close(
        difference, torch.zeros(()), "change of prediction 3 when its own value grows by 10"
    )


@my_leave_one_out.must("predicts 5 everywhere if every value is 5")
def predicts_5_everywhere_if_every_value_is_5(candidate):
    """Add up the weights that remain in a row. Do they still sum to 1?

    Do you leave the point out *before* you normalize, and do you normalize over the keys? Both are needed.
    """
    keys, _ = _keys_and_values()
    expect_close(
        candidate(keys, torch.full((8,), 5.0), 0.4), torch.full((8,), 5.0), entry="prediction"
    )


@my_leave_one_out.must("gives the three predictions of the three-point example")
def gives_three_predictions_of_three_point_example(candidate):
    """Do the key 1 by hand: the other keys are at the distances 1 and 2. Which scores do you get with −½ ·
    distance²? Compare them with yours.
    """
    keys, values = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([1.0, 3.0, 5.0])
    expect_close(candidate(keys, values, 1.0), torch.tensor([3.0360, 1.7297, 2.8483]), atol=2e-3)


@my_leave_one_out.must("equals removing each point in turn, at several widths")
def equals_removing_each_point_in_turn_at_several_widths(candidate):
    """Where does the width enter your scores? We divide the distance by it *before* we square, so its
    square is in the denominator.
    """
    keys, values = _keys_and_values()
    for width in (0.2, 2.5):
        expected = leave_one_out(keys, values, width=width)
        expect_close(candidate(keys, values, width), expected, f"width {width}", entry="prediction")


@my_leave_one_out.must("works at a width of 0.05")
def works_at_width_of_0_05(candidate):
    """At a small width a point gives itself nearly all the weight. What is left of its row if you set that weight to
    0 after you normalize?

    So leave the point out *before* you normalize. Which score has the exponential 0?
    """
    keys, values = _keys_and_values()
    nearest, mine = leave_one_out(keys, values, width=0.05), candidate(keys, values, 0.05)
    if mine.isnan().any():
        raise Unmet(
            "width 0.05: a prediction is NaN",
            hint="A point's own weight is rounded to 1 here, so 1 − weight is 0, and you divide by it. Can you leave "
            "the point out before you add up the row?",
        )
    expect_close(mine, nearest, "width 0.05", entry="prediction")


@my_leave_one_out.must("lets two points at the same place predict each other")
def lets_two_points_at_same_place_predict_each_other(candidate):
    """Does a point leave out only itself, or everything at distance 0? Two points can be at the same place, so use the
    diagonal of the matrix, not the distance.
    """
    keys, values = torch.tensor([0.0, 0.0, 3.0]), torch.tensor([2.0, 4.0, 7.0])
    expect_close(candidate(keys, values, 0.5), torch.tensor([4.0, 2.0, 3.0]))


@my_leave_one_out.must("can be called with the names keys, values and width")
def can_be_called_with_names_keys_values_and_width(candidate):
    """Do your parameters have the names in the first line of the stub? The chapter calls it by these."""
    keys, values = _keys_and_values()
    expected = leave_one_out(keys, values, width=0.4)
    expect_close(candidate(keys=keys, values=values, width=0.4), expected)


@my_leave_one_out.must("lets a gradient reach the width")
def lets_gradient_reach_width(candidate):
    """Which step turns the width, or something computed from it, into a plain number? `.item()`, `float(…)` and
    `torch.tensor(…)` all do, and none is needed.
    """
    _same_gradient(candidate, leave_one_out)


my_leave_one_out.must_keep_inputs(
    lambda: [*_keys_and_values(), 0.4],
    (
        "Does a line write into a tensor that the caller owns? Assignments with [] and methods that end in _ do; "
        "make a new tensor instead."
    ),
    "leaves its inputs unchanged",
)

# Residuals without a loop -----------------------------------------------------------------------

loo_residuals = Check()


@loo_residuals.must("gives the residuals of the three-point example")
def gives_residuals_of_three_point_example(candidate):
    """A residual is value minus prediction, in this order. Which share of its row does a point leave for the others?
    Divide the usual residual by it.

    The prediction f(kᵢ) is entry i of `weights @ values`, and αᵢᵢ is on the diagonal of the weights.
    """
    keys, values = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([1.0, 3.0, 5.0])
    residuals = candidate(kernel_weights(keys, keys, width=1.0), values)
    expect_close(residuals, torch.tensor([-2.0360, 1.2703, 2.1517]), atol=2e-3)


@loo_residuals.must("gives n/(n − 1) times the usual residual for average pooling")
def gives_n_times_usual_residual_for_average_pooling(candidate):
    """Every αᵢᵢ is 1/n here. How do you get n/(n − 1) from 1/n? Try n = 2 first, where the factor is 2."""
    values = torch.randn(6)
    residuals = candidate(torch.full((6, 6), 1 / 6), values)
    expect_close(residuals, (values - values.mean()) * 6 / 5, "average pooling of 6 points")


@loo_residuals.must("equals the slow way on random data")
def equals_slow_way_on_random_data(candidate):
    """Each residual has its own factor. Where in the matrix do you find each αᵢᵢ? You need n of them, one per row."""
    keys, values = _keys_and_values()
    for width in (0.3, 1.0):
        expected = values - leave_one_out(keys, values, width=width)
        weights = kernel_weights(keys, keys, width=width)
        expect_close(candidate(weights, values), expected, f"width {width}")


@loo_residuals.must("works for weights of any kind")
def works_for_weights_of_any_kind(candidate):
    """Where in its row is a point's own weight? It needn't be the largest, so take it by its place on the diagonal."""
    weights, values = torch.rand(6, 6), torch.randn(6)
    weights = weights / weights.sum(1, keepdim=True)
    others = weights * (1 - torch.eye(6))
    expected = values - others @ values / others.sum(1)
    expect_close(candidate(weights, values), expected, "random weights")


# A column among rows: find the bug ------------------------------------------------------------------

fixed_loss = Check(forbids=["leave_one_out_error"])


@fixed_loss.must("returns one number, as a tensor")
def returns_one_number_as_tensor(candidate):
    """What do we take over all points at the end? Keep it a tensor, so a gradient can flow: no `.item()`."""
    loss = candidate(*_keys_and_values(), 0.4)
    expect(isinstance(loss, Tensor), f"got a {type(loss).__name__}, expected a tensor")
    expect_shape(loss, ())


@fixed_loss.must("gives 3.46 for the three-point example")
def gives_3_46_for_three_point_example(candidate):
    """Which shape does `predictions - values` have in the loss above? Print it: we want one difference per point, so
    (n,).

    A column minus a row is a table. How do you get the column back to (n,)? Drop its axis of size 1 before you
    subtract.
    """
    keys, values = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([1.0, 3.0, 5.0])
    loss = candidate(keys, values, 1.0).item()
    summed = "This is three times as much. Do you add the squares up, or take their mean?"
    hint = summed if abs(loss - 3 * 3.4629) < 6e-3 else ""
    expect(abs(loss - 3.4629) < 2e-3, f"the loss is {loss:.2f}, expected 3.46", hint)


@fixed_loss.must("equals the leave-one-out error at every width")
def equals_leave_one_out_error_at_every_width(candidate):
    """Is each prediction compared with its own value? Check also that it is made with the width that was given."""
    keys, values = _keys_and_values()
    for width in (0.2, 2.5):
        expected = leave_one_out_error(keys, values, width=width)
        expect_close(candidate(keys, values, width), expected, f"width {width}")


@fixed_loss.must("lets a gradient reach the width")
def loss_lets_gradient_reach_width(candidate):
    """Which step turns the width, or something computed from it, into a plain number? `.item()`, `float(…)` and
    `torch.tensor(…)` all do, and none is needed.
    """
    _same_gradient(candidate, leave_one_out_error)


# Points of one's own ---------------------------------------------------------------------------------

own_points = Check()
WIDTH = 0.43
"""Width of the bell that the chapter's network finds."""


_A_PAIR = (
    "What does one point look like? Two numbers such as `(0.5, 2)`, and you return a list of them."
)


def _point_table(candidate: Callable) -> Tensor:
    """(n, 2): places and values, made into a tensor as the chapter does it."""
    pairs = candidate()
    got = repr(pairs) if isinstance(pairs, list | tuple) else kind_of(pairs)
    try:
        points = torch.as_tensor(pairs, dtype=torch.float)
    except (TypeError, ValueError, RuntimeError) as error:
        raise Unmet(f"got {got}, expected a list of pairs (place, value)", _A_PAIR) from error
    if points.ndim != 2 or points.shape[1] != 2:
        raise Unmet(f"got {got}, expected a list of pairs (place, value)", _A_PAIR)
    return points


@own_points.must("returns at least eight pairs (place, value)")
def returns_at_least_eight_pairs(candidate):
    """How many points do you return? A peak has to lose its weight to its neighbors."""
    count = len(_point_table(candidate))
    expect(count >= 8, f"got {count} points, expected at least 8")


@own_points.must("keeps places from 0 to 5 and values from −5 to 5")
def keeps_places_and_values_in_range(candidate):
    """Which number comes first in a pair? The place does, and the network was trained on places from 0 to 5."""
    places, values = _point_table(candidate).T
    large = "How large may a value be? What fools the average is not the height of a peak but the points beside it."
    for name, numbers, low, hint in (("place", places, 0, ""), ("value", values, -5, large)):
        outside = numbers[~((numbers >= low) & (numbers <= 5))].tolist()
        found = f"{outside[0] if outside else 0:g}"
        expect(not outside, f"got the {name} {found}, expected {low} to 5", hint)


@own_points.must("has exactly one point at 2.5")
def has_exactly_one_point_at_2_5(candidate):
    """Where is your peak? We compare the answer at the place 2.5 with *your* value there, so it needs one."""
    count = int((_point_table(candidate)[:, 0] == 2.5).sum())
    expect(count == 1, f"got {count} points at 2.5, expected 1")


@own_points.must("lets the average at 2.5 miss your value there by more than 2")
def lets_average_miss_value_by_more_than_2(candidate):
    """Which points share the weight at 2.5? At a distance of one width, 0.43, a point still counts 0.61 times as much
    as the one at 2.5 itself.

    So put several points near 2.5, and give them another value.
    """
    places, values = _point_table(candidate).T
    average = nadaraya_watson(torch.tensor([2.5]), places, values, width=WIDTH)[0]
    own = values[places == 2.5][0]
    expect(abs(average - own) > 2, f"the average is {average:.2f}, and your value is {own:.2f}")
