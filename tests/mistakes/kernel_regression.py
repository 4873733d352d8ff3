"""Mistakes that the checks of *Kernel regression* have to catch, each as learners make it."""

import torch
from torch import Tensor
from torch.nn import functional as F

import course_utils as cu

# gaussian_weights


def literal_ratio(queries: Tensor, keys: Tensor, width: float) -> Tensor:
    """Divides by a sum that underflows to 0."""
    kernel = torch.exp(-(((queries[:, None] - keys) / width) ** 2) / 2)
    return kernel / kernel.sum(1, keepdim=True)


def ratio_with_epsilon(queries: Tensor, keys: Tensor, width: float) -> Tensor:
    """Hides 0/0 behind a small constant, so that rows sum to 0 at small widths."""
    kernel = torch.exp(-(((queries[:, None] - keys) / width) ** 2) / 2)
    return kernel / (kernel.sum(1, keepdim=True) + 1e-8)


def softmax_over_queries(queries: Tensor, keys: Tensor, width: float) -> Tensor:
    """Normalizes the wrong axis."""
    return torch.softmax(-(((queries[:, None] - keys) / width) ** 2) / 2, dim=0)


def keys_by_queries(queries: Tensor, keys: Tensor, width: float) -> Tensor:
    """Has the axes swapped."""
    return torch.softmax(-(((queries[:, None] - keys) / width) ** 2) / 2, dim=1).T


def without_the_half(queries: Tensor, keys: Tensor, width: float) -> Tensor:
    """Leaves out the factor ½."""
    return torch.softmax(-(((queries[:, None] - keys) / width) ** 2), dim=1)


def width_not_squared(queries: Tensor, keys: Tensor, width: float) -> Tensor:
    """Divides the squared distance by the width itself."""
    return torch.softmax(-((queries[:, None] - keys) ** 2) / (2 * width), dim=1)


def distance_not_squared(queries: Tensor, keys: Tensor, width: float) -> Tensor:
    """Is a Laplace kernel."""
    return torch.softmax(-((queries[:, None] - keys) / width).abs() / 2, dim=1)


# class_probabilities


def average_of_labels(queries, keys, labels, num_classes, width):
    """Averages class numbers as if they were quantities."""
    return cu.kernel_weights(queries, keys, width=width) @ labels.to(keys.dtype)


def softmax_on_top(queries, keys, labels, num_classes, width):
    """Turns probabilities into "probabilities" once more."""
    one_hot = F.one_hot(labels, num_classes).to(keys.dtype)
    return (cu.kernel_weights(queries, keys, width=width) @ one_hot).softmax(1)


def as_many_columns_as_labels_seen(queries, keys, labels, num_classes, width):
    """Forgets num_classes."""
    one_hot = F.one_hot(labels).to(keys.dtype)
    return cu.kernel_weights(queries, keys, width=width) @ one_hot


def width_forgotten(queries, keys, labels, num_classes, width):
    """Uses the width 1 always."""
    return cu.kernel_weights(queries, keys) @ F.one_hot(labels, num_classes).to(keys.dtype)


def nearest_label(queries, keys, labels, num_classes, width):
    """Is the nearest-neighbor classifier."""
    return F.one_hot(labels[torch.cdist(queries, keys).argmin(1)], num_classes).to(keys.dtype)


# fixed_leave_one_out


def weights_zeroed(keys: Tensor, values: Tensor, width: float) -> Tensor:
    """The bug as it stands in the chapter: the rest does not sum to 1."""
    weights = cu.kernel_weights(keys, keys, width=width)
    weights.fill_diagonal_(0)
    return weights @ values


def nothing_left_out(keys: Tensor, values: Tensor, width: float) -> Tensor:
    """Each point still sees itself."""
    return cu.nadaraya_watson(keys, keys, values, width=width)


def values_zeroed(keys: Tensor, values: Tensor, width: float) -> Tensor:
    """Removes a point's value but leaves its weight."""
    weights = cu.kernel_weights(keys, keys, width=width)
    return weights @ values - weights.diagonal() * values


def divided_by_the_rest(keys: Tensor, values: Tensor, width: float) -> Tensor:
    """Right on paper; 0/0 where a point has all the weight."""
    weights = cu.kernel_weights(keys, keys, width=width)
    weights.fill_diagonal_(0)
    return weights / weights.sum(1, keepdim=True) @ values


def scores_set_to_zero(keys: Tensor, values: Tensor, width: float) -> Tensor:
    """Masks with 0, which is the best of all scores."""
    scores = -(((keys[:, None] - keys) / width) ** 2) / 2
    return scores.fill_diagonal_(0).softmax(1) @ values


def softmax_of_weights(keys: Tensor, values: Tensor, width: float) -> Tensor:
    """Normalizes with a second softmax, over weights instead of scores."""
    weights = cu.kernel_weights(keys, keys, width=width)
    itself = torch.eye(len(keys), dtype=torch.bool)
    return weights.masked_fill(itself, -torch.inf).softmax(1) @ values


def values_centered_in_place(keys: Tensor, values: Tensor, width: float) -> Tensor:
    """Subtracts the mean from the caller's own values."""
    mean = values.mean()
    values -= mean
    return cu.leave_one_out(keys, values, width=width) + mean


# loo_residuals


def plain_residuals(weights: Tensor, values: Tensor) -> Tensor:
    """The training residuals."""
    return values - weights @ values


def one_factor_for_all(weights: Tensor, values: Tensor) -> Tensor:
    """Uses the mean of the diagonal (generalized cross-validation), right only for equal entries."""
    return (values - weights @ values) / (1 - weights.diagonal().mean())


def sign_turned(weights: Tensor, values: Tensor) -> Tensor:
    """Prediction minus value."""
    return (weights @ values - values) / (1 - weights.diagonal())


def multiplied(weights: Tensor, values: Tensor) -> Tensor:
    """Multiplies where it should divide."""
    return (values - weights @ values) * (1 - weights.diagonal())


# local_linear


def local_constant(queries, keys, values, width):
    """Is kernel regression itself."""
    return cu.nadaraya_watson(queries, keys, values, width=width)


def one_column(queries, keys, values, width):
    """Leaves a matrix with one column."""
    return _line(cu.kernel_weights(queries, keys, width=width), queries, keys, values[:, None])


def global_line(queries, keys, values, width):
    """Fits one line to all data."""
    offsets = keys - keys.mean()
    slope = (offsets @ (values - values.mean())) / offsets.square().sum()
    return values.mean() + slope * (queries - keys.mean())


def offsets_turned(queries, keys, values, width):
    """Has the sign of the correction wrong."""
    weights = cu.kernel_weights(queries, keys, width=width)
    offsets = keys - queries[:, None]
    first = (weights * offsets).sum(1, keepdim=True)
    second = (weights * offsets**2).sum(1, keepdim=True)
    return (weights * (second + first * offsets) / (second + first**2)) @ values


def not_normalized(queries, keys, values, width):
    """Leaves out the denominator."""
    weights = cu.kernel_weights(queries, keys, width=width)
    offsets = keys - queries[:, None]
    first = (weights * offsets).sum(1, keepdim=True)
    second = (weights * offsets**2).sum(1, keepdim=True)
    return (weights * (second - first * offsets)) @ values


def weights_squared(queries, keys, values, width):
    """Multiplies both sides by the weights instead of their roots, and so uses them twice."""
    return _line(cu.kernel_weights(queries, keys, width=width) ** 2, queries, keys, values)


def width_of_one(queries, keys, values, width):
    """Ignores the width."""
    return _line(cu.kernel_weights(queries, keys), queries, keys, values)


def _line(weights, queries, keys, values):
    weights = weights / weights.sum(1, keepdim=True)
    offsets = keys - queries[:, None]
    first = (weights * offsets).sum(1, keepdim=True)
    second = (weights * offsets**2).sum(1, keepdim=True)
    return (weights * (second - first * offsets) / (second - first**2)) @ values


MISTAKES = {
    "gaussian_weights": [
        literal_ratio,
        ratio_with_epsilon,
        softmax_over_queries,
        keys_by_queries,
        without_the_half,
        width_not_squared,
        distance_not_squared,
    ],
    "class_probabilities": [
        average_of_labels,
        softmax_on_top,
        as_many_columns_as_labels_seen,
        width_forgotten,
        nearest_label,
    ],
    "fixed_leave_one_out": [
        weights_zeroed,
        nothing_left_out,
        values_zeroed,
        divided_by_the_rest,
        scores_set_to_zero,
        softmax_of_weights,
        values_centered_in_place,
    ],
    "loo_residuals": [plain_residuals, one_factor_for_all, sign_turned, multiplied],
    "local_linear": [
        local_constant,
        one_column,
        global_line,
        offsets_turned,
        not_normalized,
        weights_squared,
        width_of_one,
    ],
}
