"""The walk of *Queries, keys and values*: gradient descent on a query, until a soft look-up gives the wanted answer.

The chapter's page takes `one_step` and `my_table` where the reader has not written them yet, and its guards repeat the
walk of the live look-up with `walk`.
"""

from collections.abc import Callable

import torch
from torch import Tensor

MOST_STEPS = 200
LONGEST_STEP = 0.02
NEAR = 0.05
"""The distance to the wanted answer at which the walk has arrived."""
MARGIN_BELOW, MARGIN_ABOVE = 0.2, 0.1
"""Margins of the picture beyond the keys and the unit square."""

DISHES = {  # name: (sweet, warm, minutes to make)
    "salad": (0.1, 0.1, 10.0),
    "stew": (0.1, 0.9, 120.0),
    "pancakes": (0.8, 0.8, 30.0),
    "ice cream": (1.0, 0.0, 45.0),
}


def my_table() -> tuple[dict[str, tuple[float, float, float]], tuple[float, float], float, float]:
    """A table for the walk: dishes, a dish that is not among them, the minutes that are wanted, and a temperature.

    Each dish has two features, sweet and warm, and its minutes.
    """
    return DISHES, (0.6, 0.9), 80.0, 0.1


def one_step(ask: Callable[[Tensor], Tensor], query: Tensor, wanted: float, rate: float) -> Tensor:
    """The query (queries, features) after one step of gradient descent on ½(answer − wanted)².

    Args:
        ask: query → answer, (queries,).
        query: (queries, features).
        wanted: the answer that it is to give.
        rate: the slope is multiplied by it.
    """
    query = query.detach().clone().requires_grad_()
    loss = (ask(query) - wanted).square().sum() / 2
    (slope,) = torch.autograd.grad(loss, query)
    return query.detach() - rate * slope


def walk(
    keys: Tensor, values: Tensor, query: Tensor, T: float, wanted: float
) -> tuple[list[Tensor], str]:
    """The way of a query through a softmax look-up, each step along the slope of the answer, as in `cu.live.look_up`.

    Args:
        keys: (m, features).
        values: (m,).
        query: (features,), where it begins.
        T: the temperature, by which scores −½‖q − k‖² are divided.
        wanted: the answer that it walks to.

    Returns:
        The places (features,), and how the walk ended: "arrived", "left" (the picture), "stays" (the slope is 0) or
        "late" (after `MOST_STEPS`).
    """
    low = keys.amin(0).clamp(max=0) - MARGIN_BELOW
    high = keys.amax(0).clamp(min=1) + MARGIN_ABOVE
    places = [query.detach()]
    while True:
        at = places[-1].clone().requires_grad_()
        scores = -(at - keys).square().sum(-1) / 2
        answer = (scores / T).softmax(-1) @ values
        (slope,) = torch.autograd.grad(answer, at)
        miss, steepness = wanted - answer.item(), slope.norm().item()
        if abs(miss) < NEAR:
            return places, "arrived"
        if ((at < low) | (at > high)).any():
            return places, "left"
        if steepness < 1e-6:
            return places, "stays"
        if len(places) > MOST_STEPS:
            return places, "late"
        length = min(LONGEST_STEP, abs(miss) / steepness) * (1 if miss > 0 else -1)
        places.append(at.detach() + length * slope / steepness)
