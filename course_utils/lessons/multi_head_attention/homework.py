"""Homework on *Multi-head attention*: another way to split the features into heads."""

import random

import torch

from course_utils.kit.homework import Assignment

__all__ = ["my_heads"]

HEADS = """\
def my_heads(x):
    *batch, n, width = x.shape
    heads = x.reshape(*batch, n, {shape}).movedim({axis}, -3)
    weights = (heads @ heads.transpose(-2, -1) / math.sqrt({root})).softmax(dim=-1)
    return (weights @ heads * {scale}).movedim(-3, {axis}).reshape(*batch, n, width)
"""


def my_heads(draw: random.Random) -> Assignment:
    """Heads of neighboring features, or of features that lie apart."""
    number, apart = draw.choice([2, 3, 4, 5, 6]), draw.choice([True, False])
    scale = draw.choice([-1.0, 0.5, 2.0, 3.0])
    root = draw.choice([f"width / {number}", "width"])
    whose = (
        f"features 0, {number}, {2 * number}, … belong to head 0, features 1, {number + 1}, … to head 1"
        if apart
        else "the first features belong to head 0, the next as many to head 1"
    )
    by = "one head's features" if root != "width" else "all features together"
    text = (
        f"The features of each word are split into **{number} heads**: {whose}, and so on. Each head is self-attention "
        "without matrices: its features are queries and keys, and "
        f"{scale:g} times its features are the values. The scores are divided by the root of the "
        f"number of {by}. In the result each feature stands where it stood before. A batch may stand in front; "
        f"the number of features is a multiple of {number}."
    )
    stub = 'def my_heads(x):\n    """(…, n, width) → (…, n, width)."""\n    ...'
    shape, axis = (
        (f"width // {number}, {number}", -1) if apart else (f"{number}, width // {number}", -2)
    )
    words = [[(3 * i + 5 * j) % 7 / 2 - 1 for j in range(2 * number)] for i in range(2)]
    return Assignment(
        "my_heads", f"{number} heads", 12, text, stub,
        HEADS.format(shape=shape, axis=axis, root=root, scale=scale),
        shown=[f"torch.tensor({words})"],
        tried=lambda: (torch.randn(2, 5, 3 * number),),
        hint="Into which two axes do you split the features, and which of them is the head?",
    )  # fmt: skip
