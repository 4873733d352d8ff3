"""Mistakes in the exercises of *Kernel regression*, each with the property that catches it and its hint."""

import torch
from mistakes.table import mistake

import course_utils as cu
from course_utils.pooling import leave_one_out, leave_one_out_error


def _scores(keys, width):
    return -((keys[:, None] - keys) ** 2) / (2 * width**2)


def _left_out(keys, values, width):
    return _scores(keys, width).fill_diagonal_(-torch.inf).softmax(1) @ values


def _error(keys, values, width):
    return (_left_out(keys, values, width) - values).square().mean()


@mistake(
    "my_leave_one_out",
    caught_by="gives one prediction per point",
    hint="What shape does your score",
)
def a_column(keys, values, width):
    """Leaves a column."""
    return _left_out(keys, values[:, None], width)


@mistake(
    "my_leave_one_out",
    caught_by="can be called with the names keys",
    hint="Do your parameters have",
)
def parameters_renamed(k, v, s):
    """Right, and not to be called by the names of the stub."""
    return _left_out(k, v, s)


@mistake(
    "my_leave_one_out",
    caught_by="gives one prediction per point",
    reason="it calls leave_one_out",
    hint="step by step",
)
def the_course_s_own(keys, values, width):
    """Wraps what is to be built."""
    return leave_one_out(keys, values, width=width)


@mistake(
    "my_leave_one_out",
    caught_by="gives one prediction per point",
    reason="expected True and False",
    hint="Which `dtype`",
)
def mask_of_numbers(keys, values, width):
    """torch.eye without a dtype."""
    return _scores(keys, width).masked_fill(torch.eye(len(keys)), -torch.inf).softmax(1) @ values


@mistake(
    "my_leave_one_out",
    caught_by="predicts 5 everywhere if every value",
    hint="Do they still sum to 1?",
)
def values_zeroed(keys, values, width):
    """Removes a point's value but leaves its weight."""
    weights = cu.kernel_weights(keys, keys, width=width)
    return weights @ values - weights.diagonal() * values


@mistake(
    "my_leave_one_out",
    caught_by="works at a width of 0.05",
    reason="a prediction is NaN",
    hint="rounded to 1",
)
def divided_by_what_it_leaves(keys, values, width):
    """Right on paper; 0/0 where a point has all the weight."""
    weights = cu.kernel_weights(keys, keys, width=width)
    own = weights.diagonal()
    return (weights @ values - own * values) / (1 - own)


@mistake(
    "my_leave_one_out",
    caught_by="lets a gradient reach the width",
    reason="expected a plain number",
    hint="divide the queries",
)
def width_as_a_scale(keys, values, width):
    """PyTorch's operator, whose scale has to be a plain number."""
    itself = torch.eye(len(keys), dtype=torch.bool)
    bias = (-(keys**2) / (2 * width**2)).expand(len(keys), -1).masked_fill(itself, -torch.inf)
    q, k, v = keys[:, None], keys[:, None], values[:, None]
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, bias, scale=width**-2)[:, 0]


@mistake(
    "my_leave_one_out",
    caught_by="never uses a point's own value",
    hint="How much weight does a point",
)
def scores_set_to_zero(keys, values, width):
    """Masks with 0, which is the best of all scores."""
    return _scores(keys, width).fill_diagonal_(0).softmax(1) @ values


@mistake(
    "my_leave_one_out",
    caught_by="gives the three predictions",
    hint="Which scores do you get with −½",
)
def without_the_half(keys, values, width):
    """Leaves out the factor ½."""
    return (2 * _scores(keys, width)).fill_diagonal_(-torch.inf).softmax(1) @ values


@mistake(
    "my_leave_one_out",
    caught_by="equals removing each point in turn",
    hint="Where does the width enter",
)
def width_not_squared(keys, values, width):
    """Divides the squared distance by the width itself."""
    return (width * _scores(keys, width)).fill_diagonal_(-torch.inf).softmax(1) @ values


@mistake("my_leave_one_out", caught_by="lets a gradient reach the width", hint="Which step turns")
def width_as_a_number(keys, values, width):
    """Takes the width out of the graph."""
    return _scores(keys, float(width)).fill_diagonal_(-torch.inf).softmax(1) @ values


@mistake("my_leave_one_out", caught_by="lets two points", hint="Does a point leave out")
def masked_by_distance(keys, values, width):
    """Masks all that is at distance 0: twins do not see each other."""
    return (s := _scores(keys, width)).masked_fill(s == 0, -torch.inf).softmax(1) @ values


@mistake("my_leave_one_out", caught_by="contains no NaN", hint="What is 0 · ∞?")
def infinity_times_the_identity(keys, values, width):
    """Subtracts eye · inf, which is NaN off the diagonal."""
    return (_scores(keys, width) - torch.eye(len(keys)) * torch.inf).softmax(1) @ values


@mistake(
    "my_leave_one_out",
    caught_by="leaves its inputs unchanged",
    hint="Does a line write into a tensor",
)
def values_centered_in_place(keys, values, width):
    """Subtracts the mean from the caller's own values."""
    mean = values.mean()
    values -= mean
    return _left_out(keys, values, width) + mean


@mistake("loo_residuals", caught_by="gives the residuals", hint="Which share of its row")
def multiplied(weights, values):
    """Multiplies where it should divide."""
    return (values - weights @ values) * (1 - weights.diagonal())


@mistake(
    "loo_residuals", caught_by="works for weights of any kind", hint="Where in its row is a point's"
)
def largest_of_the_row(weights, values):
    """Takes the largest weight of a row for the point's own, as it is for a kernel."""
    return (values - weights @ values) / (1 - weights.max(1).values)


@mistake("loo_residuals", caught_by="gives the residuals", hint="Which share of its row")
def one_factor_for_all(weights, values):
    """Uses the mean of the diagonal (generalized cross-validation), right only for equal entries."""
    return (values - weights @ values) / (1 - weights.diagonal().mean())


@mistake(
    "fixed_loss",
    caught_by="returns one number, as a tensor",
    hint="What do we take over all points",
)
def one_for_each_point(keys, values, width):
    """Forgets the mean."""
    return (leave_one_out(keys, values, width=width) - values).square()


@mistake(
    "fixed_loss",
    caught_by="returns one number, as a tensor",
    reason="it calls leave_one_out_error",
    hint="step by step",
)
def the_course_s_own_error(keys, values, width):
    """Wraps what is to be repaired."""
    return leave_one_out_error(keys, values, width=width)


@mistake(
    "fixed_loss", caught_by="equals the leave-one-out error", hint="Is each prediction compared"
)
def width_of_one(keys, values, width):
    """Ignores the width."""
    return _error(keys, values, 1.0)


@mistake("fixed_loss", caught_by="lets a gradient reach the width", hint="Which step turns")
def width_as_a_number_in_the_loss(keys, values, width):
    """Takes the width out of the graph."""
    return _error(keys, values, float(width))


@mistake("fixed_loss", caught_by="lets a gradient reach the width", hint="Which step turns")
def gradient_of_zero(keys, values, width):
    """Hangs the width on with a factor of 0."""
    return _error(keys, values, float(width)) + 0 * width


@mistake(
    "fixed_loss",
    caught_by="returns one number, as a tensor",
    hint="What do we take over all points",
)
def a_plain_number(keys, values, width):
    """Takes the number out of the tensor."""
    return _error(keys, values, width).item()


@mistake(
    "fixed_loss",
    caught_by="gives 3.46 for the three-point",
    hint="Which shape does `predictions - values` have",
)
def still_broadcast(keys, values, width):
    """The bug as it stands in the chapter."""
    predictions = leave_one_out(keys, values[:, None], width=width)
    return (predictions - values).square().mean()


FLAT = [(place / 2, 0) for place in range(11)]


@mistake("own_points", caught_by="returns at least eight pairs", hint="Two numbers such")
def numbers_without_pairs():
    """Values without their places."""
    return [0, 1, 2, 3, 4, 3, 2, 1]


@mistake(
    "own_points",
    caught_by="returns at least eight pairs",
    reason="expected a list of pairs",
    hint="What does one point look like",
)
def words_for_numbers():
    """Numbers in quotes, of which no tensor can be made."""
    return [(f"{place}", f"{value}") for place, value in FLAT]


@mistake(
    "own_points",
    caught_by="returns at least eight pairs",
    reason="expected a list of pairs",
    hint="What does one point look like",
)
def a_zip():
    """Two lists zipped, which is no list yet."""
    return zip(*zip(*FLAT, strict=True), strict=True)


@mistake(
    "own_points", caught_by="returns at least eight pairs", hint="How many points do you return?"
)
def too_few():
    """A peak of three points."""
    return [(2, 0), (2.5, 4), (3, 0)]


@mistake(
    "own_points", caught_by="keeps places from 0 to 5 and values", hint="Which number comes first"
)
def value_first():
    """Exchanges place and value."""
    return [(value - 5, place) for place, value in FLAT]


@mistake(
    "own_points", caught_by="keeps places from 0 to 5 and values", hint="How large may a value be?"
)
def too_high():
    """Fools it by a value out of the range."""
    return [*FLAT[:5], (2.5, 50), *FLAT[6:]]


@mistake("own_points", caught_by="has exactly one point at 2.5", hint="Where is your peak?")
def no_point_at_the_place():
    """Has no value to compare with."""
    return [*FLAT[:5], *FLAT[6:]]


@mistake("own_points", caught_by="has exactly one point at 2.5", hint="Where is your peak?")
def two_points_at_the_place():
    """Two values at one place."""
    return [*FLAT, (2.5, 4)]


@mistake("own_points", caught_by="lets the average", hint="Which points share the weight")
def lonely():
    """Nothing else is near, so the peak has all the weight."""
    return [(0, 0), (0.2, 0), (0.4, 0), (0.6, 0), (2.5, 4), (4.4, 0), (4.6, 0), (4.8, 0)]


@mistake("own_points", caught_by="lets the average", hint="Which points share the weight")
def a_gentle_hill():
    """The neighbors rise with it."""
    return [(place, 4 - abs(place - 2.5)) for place, _ in FLAT]
