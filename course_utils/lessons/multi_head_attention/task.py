"""Two look-ups at once: a task whose right attention maps are known beforehand (*Multi-head attention*).

A cabinet has eight drawers, A to H, with a white (+1) or a black (−1) ball in each. A request such as
"CF" asks for the balls in drawer C *and* in drawer F, in this order. A drawer carries its label once,
in the first half of its features; a request carries two labels, one in each half.
"""

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TwoLookups:
    """All requests for two of `num_drawers` drawers, and all fillings of the cabinet.

    Attributes:
        pairs: (requests, 2), the two drawers asked for; every ordered pair of distinct ones.
        queries: (requests, 2 · drawers), a one-hot label in each half.
        keys: (drawers, 2 · drawers), a one-hot label in the first half, zeros in the second.
        balls: (fillings, drawers), every way to fill the drawers with +1 and −1.
    """

    pairs: Tensor
    queries: Tensor
    keys: Tensor
    balls: Tensor

    @property
    def drawers(self) -> list[str]:
        """Names of the drawers: A, B, …"""
        return [chr(ord("A") + index) for index in range(len(self.keys))]

    @property
    def requests(self) -> list[str]:
        """Names of the requests: AB, AC, …, in the order of `pairs`."""
        return ["".join(self.drawers[index] for index in pair) for pair in self.pairs.tolist()]

    def inputs(self, balls: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values for cabinets (batch, drawers), each with a batch axis.

        A value holds its ball in the first feature and zeros elsewhere.
        """
        values = balls.new_zeros(*balls.shape, self.keys.shape[-1])
        values[..., 0] = balls
        batch = len(balls)
        return self.queries.expand(batch, -1, -1), self.keys.expand(batch, -1, -1), values

    def answers(self, balls: Tensor) -> Tensor:
        """The balls asked for: (batch, drawers) → (batch, requests, 2)."""
        return balls[:, self.pairs]


def two_lookups(num_drawers: int = 8) -> TwoLookups:
    """The task for `num_drawers` drawers; nothing about it is random.

    Raises:
        ValueError: fewer than 2 drawers, or more than 10 (which have 1,024 fillings).
    """
    if not 2 <= num_drawers <= 10:
        raise ValueError(f"num_drawers={num_drawers}; 2 to 10 are needed")
    label = torch.eye(num_drawers)
    pairs = torch.tensor(list(itertools.permutations(range(num_drawers), 2)))
    return TwoLookups(
        pairs=pairs,
        queries=label[pairs].flatten(1),
        keys=torch.cat([label, torch.zeros_like(label)], dim=1),
        balls=torch.tensor(list(itertools.product([-1.0, 1.0], repeat=num_drawers))),
    )
