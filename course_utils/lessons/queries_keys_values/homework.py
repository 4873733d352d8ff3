"""Homework on *Queries, keys and values*: weights in another base among the best, and a default."""

import random

import torch

from course_utils.kit.homework import Assignment

__all__ = ["best_weights", "with_default"]

BEST = """\
def best_weights(scores):
    best = scores.topk({k}, dim=-1)
    weights = torch.zeros_like(scores)
    shares = {total} * (best.values * math.log({base})).softmax(dim=-1)
    return weights.scatter(-1, best.indices, shares)
"""


def best_weights(draw: random.Random) -> Assignment:
    """Weights in another base than e, for the k best scores alone."""
    base, k = draw.choice([2, 3, 4, 5, 6, 8, 10]), draw.choice([2, 3, 4])
    total = draw.choice([1, 2, 5, 10])
    text = (
        f"A score that is higher by 1 shall count **{base} times** as much: the weights are proportional to "
        f"${base}^{{a}}$ for a score $a$. Only the **{k} highest scores** of each row get a weight; they sum to "
        f"**{total}**, and all others are exactly 0. It has to survive scores of ±1000. Any number "
        "of axes may stand in front."
    )
    stub = 'def best_weights(scores):\n    """(…, keys) → (…, keys)."""\n    ...'
    return Assignment(
        "best_weights", "Another base", 10, text, stub, BEST.format(base=base, k=k, total=total),
        shown=[
            "torch.tensor([[0.0, 1.0, 2.0, -1.0, 0.5]])",
            "torch.tensor([1000.0, 999.0, 998.0, 997.5, 997.0])",
        ],
        tried=lambda: (torch.randn(3, 2, 6) * 10,),
        hint="How do you write a power of this base as a power of e? And is your softmax stable?",
    )  # fmt: skip


DEFAULT = """\
def with_default(scores, values):
    extra = torch.full_like(scores[..., :1], {score})
    weights = torch.cat([scores, extra], dim=-1).div({temperature}).softmax(dim=-1)
    return weights[..., :-1] @ values + weights[..., -1:] * {value}
"""


def with_default(draw: random.Random) -> Assignment:
    """One more pair, with a score and a value of its own, at a temperature."""
    score, value = draw.choice([-2.0, -1.0, 0.5, 1.0, 1.5]), draw.choice([-4.0, -1.0, 3.0, 7.0])
    temperature = draw.choice([0.5, 2.0, 3.0, 4.0, 5.0])
    text = (
        f"Beside the stored pairs there is one more, with the score {score:g} for every query, and a value "
        f"whose entries are all {value:g}. Give the answer of each query at the temperature $T = {temperature:g}$: the "
        "weights are the softmax of all scores, each divided by $T$. It has to survive scores of ±1000."
    )
    stub = (
        'def with_default(scores, values):\n    """(queries, m), (m, d) → (queries, d)."""\n    ...'
    )
    return Assignment(
        "with_default", "A default answer", 8, text, stub,
        DEFAULT.format(score=score, value=value, temperature=temperature),
        shown=[
            "torch.tensor([[0.0, 1.0], [-9.0, -8.0]]), torch.tensor([[1.0, 0.0], [2.0, 10.0]])",
            "torch.tensor([[1000.0]]), torch.tensor([[5.0]])",
        ],
        tried=lambda: (torch.randn(4, 3) * 3, torch.randn(3, 2)),
        hint="Is the extra score divided by T, too? Which of the weights belong to the stored pairs?",
    )  # fmt: skip
