"""Kernel regression as a widget: points to add, drag and remove, a query with its window, a width to learn."""

import torch

from course_utils.data.regression import noisy_sine
from course_utils.kit.live.widget import Live


class KernelRegression(Live):
    """Live kernel regression, shown as the last line of a cell."""

    kind = "kernel_regression"
    label = "Live kernel regression"


def kernel_regression(noise: float = 1.0) -> KernelRegression:
    """Points that can be dragged, one query with its window and its weights, and a width to learn.

    Args:
        noise: standard deviation of the noise on the forty points that are shown first; finite, not negative.

    Raises:
        ValueError: what `noisy_sine` says about `noise`.
    """
    data = noisy_sine(40, noise=noise)
    pairs = zip(data.x.tolist(), data.y.tolist(), strict=True)
    points = [[round(x, 3), round(y, 3)] for x, y in pairs]
    truth = data.truth(torch.linspace(0, 5, 101, dtype=torch.float64)).tolist()
    return KernelRegression(float(noise), points=points, truth=truth)
