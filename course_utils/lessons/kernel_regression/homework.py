"""Homework on *Kernel regression*: a kernel of another form, and leaving out a neighborhood."""

import random

import torch

from course_utils.kit.homework import Assignment

__all__ = ["far_from_itself", "pooled"]

KERNELS = {
    "(1 - d.abs() / {w}).clamp(min=0)": r"\max\left(0,\; 1 - \frac{|d|}{@}\right)",
    "(1 - (d / {w}) ** 2).clamp(min=0)": r"\max\left(0,\; 1 - \frac{d^2}{@^2}\right)",
    "1 / (1 + (d / {w}) ** 2)": r"\frac{1}{1 + d^2/@^2}",
    "(-d.abs() / {w}).exp()": r"e^{-|d|/@}",
}
"""A kernel of the difference d, as code and as a formula; the width stands for {w} and @."""

POOLED = """\
def pooled(queries, keys, values):
    d = queries[:, None] - keys
    weights = {kernel}
    total = weights.sum(dim=1, keepdim=True)
    alone = total == 0
    shares = weights / total.masked_fill(alone, 1.0)
    return (shares @ values).masked_fill(alone[:, 0], {default})
"""


def pooled(draw: random.Random) -> Assignment:
    """The weighted mean with one of four kernels, and a value where no key is near."""
    code, formula = draw.choice(list(KERNELS.items()))
    width, default = draw.choice([0.4, 0.7, 1.3, 1.9]), draw.choice([-3.0, -1.0, 2.0, 5.0])
    text = (
        "A query at the distance $d$ of a key gives it the weight\n\n"
        f"$$w(d) = {formula.replace('@', str(width))} ,$$\n\n"
        "divided by the sum over all keys. Write the weighted mean of the values for each query. "
        f"Where all weights are 0, the answer is {default:g}."
    )
    stub = 'def pooled(queries, keys, values):\n    """(n,), (m,), (m,) → (n,)."""\n    ...'
    return Assignment(
        "pooled", "A kernel of your own", 12, text, stub,
        POOLED.format(kernel=code.format(w=width), default=default),
        shown=[
            "torch.tensor([0.0, 0.5, 9.0]), torch.tensor([0.0, 0.3, 1.0]), torch.tensor([1.0, 2.0, 4.0])",
            "torch.tensor([1.0]), torch.tensor([0.8, 1.1]), torch.tensor([-2.0, 6.0])",
        ],
        tried=lambda: (6 * torch.rand(5), 3 * torch.rand(4), torch.randn(4)),
        hint="How far is each query from each key, and over which axis do the weights sum to 1?",
    )  # fmt: skip


FAR = """\
def far_from_itself(keys, values):
    d = keys[:, None] - keys
    scores = (-d.square() / (2 * {width} ** 2)).masked_fill(d.abs() <= {radius}, -math.inf)
    alone = scores.isneginf().all(dim=1)
    return (scores.softmax(dim=1).nan_to_num(0.0) @ values).masked_fill(alone, {default})
"""


def far_from_itself(draw: random.Random) -> Assignment:
    """Leave-one-out with a radius: a point is predicted from those that are farther away."""
    width, radius = (
        draw.choice([0.4, 0.5, 0.6, 0.8, 1.0, 1.2]),
        draw.choice([0.15, 0.25, 0.35, 0.55]),
    )
    default = draw.choice([-2.0, 0.0, 3.0, 6.0])
    text = (
        "Neighbors in time are alike, so leaving out the point alone is too easy. Predict each value from the "
        f"points whose key is **more than {radius}** away, with a Gaussian kernel of width {width} (weights "
        rf"proportional to $e^{{-d^2/(2\cdot{width}^2)}}$). Where there is no such point, the "
        f"prediction is {default:g}."
    )
    stub = 'def far_from_itself(keys, values):\n    """(n,), (n,) → (n,)."""\n    ...'
    return Assignment(
        "far_from_itself", "Leave out a neighborhood", 12, text, stub,
        FAR.format(width=width, radius=radius, default=default),
        shown=[
            "torch.tensor([0.0, 0.3, 0.5, 1.5]), torch.tensor([1.0, 2.0, 3.0, 4.0])",
            "torch.tensor([0.0, 0.1]), torch.tensor([5.0, 7.0])",
        ],
        tried=lambda: (2 * torch.rand(6), torch.randn(6)),
        hint="Which score becomes a weight of 0? And what is a softmax of nothing but these?",
        gradient=False,
    )  # fmt: skip
