"""Mistakes that the checks of *Kernel regression* have to catch, each as learners make it."""

import torch
from mistakes.table import wrong

import course_utils as cu
from course_utils.pooling import leave_one_out, leave_one_out_error


def _scores(keys, width):
    return -((keys[:, None] - keys) ** 2) / (2 * width**2)


class my_leave_one_out:
    a_column = wrong("Leaves a column.", lambda keys, values, width: leave_one_out(keys, values[:, None], width=width))
    parameters_renamed = wrong("Right, and not to be called by the names of the stub.",
        lambda k, v, s: leave_one_out(k, v, width=s))
    the_course_s_own = wrong("Wraps what is to be built.",
        lambda keys, values, width: leave_one_out(keys, values, width=width))

    mask_of_numbers = wrong("torch.eye without a dtype.",
        lambda keys, values, width:
            _scores(keys, width).masked_fill(torch.eye(len(keys)), -torch.inf).softmax(1) @ values)

    def values_zeroed(keys, values, width):
        """Removes a point's value but leaves its weight."""
        weights = cu.kernel_weights(keys, keys, width=width)
        return weights @ values - weights.diagonal() * values

    def divided_by_what_it_leaves(keys, values, width):
        """Right on paper; 0/0 where a point has all the weight."""
        weights = cu.kernel_weights(keys, keys, width=width)
        own = weights.diagonal()
        return (weights @ values - own * values) / (1 - own)

    def width_as_a_scale(keys, values, width):
        """PyTorch's operator, whose scale has to be a plain number."""
        itself = torch.eye(len(keys), dtype=torch.bool)
        bias = (-(keys**2) / (2 * width**2)).expand(len(keys), -1).masked_fill(itself, -torch.inf)
        q, k, v = keys[:, None], keys[:, None], values[:, None]
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, bias, scale=width**-2)[:, 0]

    scores_set_to_zero = wrong("Masks with 0, which is the best of all scores.",
        lambda keys, values, width: _scores(keys, width).fill_diagonal_(0).softmax(1) @ values)
    without_the_half = wrong("Leaves out the factor ½.",
        lambda keys, values, width: (2 * _scores(keys, width)).fill_diagonal_(-torch.inf).softmax(1) @ values)
    width_not_squared = wrong("Divides the squared distance by the width itself.",
        lambda keys, values, width: (width * _scores(keys, width)).fill_diagonal_(-torch.inf).softmax(1) @ values)
    width_as_a_number = wrong("Takes the width out of the graph.",
        lambda keys, values, width: _scores(keys, float(width)).fill_diagonal_(-torch.inf).softmax(1) @ values)
    masked_by_distance = wrong("Masks all that is at distance 0: twins do not see each other.",
        lambda keys, values, width: (s := _scores(keys, width)).masked_fill(s == 0, -torch.inf).softmax(1) @ values)
    infinity_times_the_identity = wrong("Subtracts eye · inf, which is NaN off the diagonal.",
        lambda keys, values, width: (_scores(keys, width) - torch.eye(len(keys)) * torch.inf).softmax(1) @ values)
    def values_centered_in_place(keys, values, width):
        """Subtracts the mean from the caller's own values."""
        mean = values.mean()
        values -= mean
        return leave_one_out(keys, values, width=width) + mean


class loo_residuals:
    multiplied = wrong("Multiplies where it should divide.",
        lambda weights, values: (values - weights @ values) * (1 - weights.diagonal()))
    largest_of_the_row = wrong("Takes the largest weight of a row for the point's own, as it is for a kernel.",
        lambda weights, values: (values - weights @ values) / (1 - weights.max(1).values))

    def one_factor_for_all(weights, values):
        """Uses the mean of the diagonal (generalized cross-validation), right only for equal entries."""
        return (values - weights @ values) / (1 - weights.diagonal().mean())


class fixed_loss:
    one_for_each_point = wrong("Forgets the mean.",
        lambda keys, values, width: (leave_one_out(keys, values, width=width) - values).square())
    width_of_one = wrong("Ignores the width.", lambda keys, values, width: leave_one_out_error(keys, values))
    width_as_a_number_in_the_loss = wrong("Takes the width out of the graph.",
        lambda keys, values, width: leave_one_out_error(keys, values, width=float(width)))
    gradient_of_zero = wrong("Hangs the width on with a factor of 0.",
        lambda keys, values, width: leave_one_out_error(keys, values, width=float(width)) + 0 * width)
    a_plain_number = wrong("Takes the number out of the tensor.",
        lambda keys, values, width: leave_one_out_error(keys, values, width=width).item())

    def still_broadcast(keys, values, width):
        """The bug as it stands in the chapter."""
        predictions = leave_one_out(keys, values[:, None], width=width)
        return (predictions - values).square().mean()


FLAT = [(place / 2, 0) for place in range(11)]


class own_points:
    numbers_without_pairs = wrong("Values without their places.", lambda: [0, 1, 2, 3, 4, 3, 2, 1])
    words_for_numbers = wrong("Numbers in quotes, of which no tensor can be made.",
        lambda: [(f"{place}", f"{value}") for place, value in FLAT])
    a_zip = wrong("Two lists zipped, which is no list yet.", lambda: zip(*zip(*FLAT, strict=True), strict=True))
    too_few = wrong("A peak of three points.", lambda: [(2, 0), (2.5, 4), (3, 0)])
    value_first = wrong("Exchanges place and value.", lambda: [(value - 5, place) for place, value in FLAT])
    too_high = wrong("Fools it by a value out of the range.", lambda: [*FLAT[:5], (2.5, 50), *FLAT[6:]])
    no_point_at_the_place = wrong("Has no value to compare with.", lambda: [*FLAT[:5], *FLAT[6:]])
    two_points_at_the_place = wrong("Two values at one place.", lambda: [*FLAT, (2.5, 4)])
    lonely = wrong("Nothing else is near, so the peak has all the weight.",
        lambda: [(0, 0), (0.2, 0), (0.4, 0), (0.6, 0), (2.5, 4), (4.4, 0), (4.6, 0), (4.8, 0)])
    a_gentle_hill = wrong("The neighbors rise with it.",
        lambda: [(place, 4 - abs(place - 2.5)) for place, _ in FLAT])


ANSWERS = {
    "lonely": ("miss your value", "Which points share the weight"),
    "mask_of_numbers": ("expected True and False", "Which `dtype`"),
    "divided_by_what_it_leaves": ("a prediction is NaN", "rounded to 1"),
    "width_as_a_scale": ("expected a plain number", "divide the queries"),
    "words_for_numbers": ("expected a list of pairs", "What does one point look like"),
    "a_zip": ("expected a list of pairs", "What does one point look like"),
    "the_course_s_own": ("it calls leave_one_out", "step by step"),
}
