"""The walk of *Queries, keys and values*: a query goes by small steps to an answer that is wanted."""

from collections.abc import Callable

import torch
from torch import Tensor

MOST_STEPS, STEP, NEAR = 200, 0.02, 0.05
"""The walk that the live look-up shows: steps at most, the longest of them, and the distance that counts as there."""
MARGINS = (0.2, 0.1)
"""Margins of the picture beyond the keys and the unit square, below and above."""

DISHES = {  # name: (sweet, warm, minutes to make)
    "salad": (0.1, 0.1, 10.0),
    "stew": (0.1, 0.9, 120.0),
    "pancakes": (0.8, 0.8, 30.0),
    "ice cream": (1.0, 0.0, 45.0),
}


def my_table() -> tuple[dict, tuple[float, float], float, float]:
    """Dishes, a dish that is not among them, the minutes that we want, and a temperature."""
    return DISHES, (0.6, 0.9), 80.0, 0.1


def one_step(ask: Callable[[Tensor], Tensor], query: Tensor, wanted: float, rate: float) -> Tensor:
    """The query after one step of gradient descent on ½(answer − wanted)²: (queries, features) → the same."""
    query = query.detach().clone().requires_grad_()
    loss = (ask(query) - wanted).square().sum() / 2
    (slope,) = torch.autograd.grad(loss, query)
    return query.detach() - rate * slope


def walk(
    keys: Tensor, values: Tensor, query: Tensor, T: float, wanted: float
) -> tuple[list[Tensor], str]:
    """The places of a query, (features,), on its way through a softmax look-up, and how it ended.

    Each step follows the slope of the answer, for at most `STEP`, as in `cu.live.look_up`.

    Returns:
        The places, and "arrived", "left" (the picture), "stays" (the slope is 0) or "late".
    """
    low = keys.amin(0).clamp(max=0) - MARGINS[0]
    high = keys.amax(0).clamp(min=1) + MARGINS[1]
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
        length = min(STEP, abs(miss) / steepness) * (1 if miss > 0 else -1)
        places.append(at.detach() + length * slope / steepness)
