"""A cabinet of drawers: a task that needs two look-ups at once, and a small attention network that learns it.

There are eight drawers, A to H, with a white (+1) or a black (−1) ball in each. A request such as "CF" asks for the
balls in drawer C *and* in drawer F, in this order. A drawer carries its label once, in the first half of its features;
a request carries two labels, one in each half. So the right attention map is known. Both pages of *Multi-head
attention* train on it.
"""

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.attention import MultiHeadAttention
from course_utils.train.steps import take_steps

# The task ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoLookups:
    """The task: all requests for two of the drawers, and all fillings of the cabinet.

    Attributes:
        pairs: (requests, 2), the two drawers that are asked for; every ordered pair of two different ones.
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
        """Queries, keys and values for some fillings, each with a batch axis.

        A value holds its ball in the first feature, and zeros elsewhere.

        Args:
            balls: (batch, drawers), +1 or −1.

        Returns:
            (batch, requests, 2 · drawers), and (batch, drawers, 2 · drawers) twice.
        """
        values = balls.new_zeros(*balls.shape, self.keys.shape[-1])
        values[..., 0] = balls
        batch = len(balls)
        return self.queries.expand(batch, -1, -1), self.keys.expand(batch, -1, -1), values

    def answers(self, balls: Tensor) -> Tensor:
        """The balls that each request asks for: (batch, drawers) → (batch, requests, 2)."""
        return balls[:, self.pairs]


def two_lookups() -> TwoLookups:
    """The task for eight drawers; nothing about it is random."""
    label = torch.eye(8)
    pairs = torch.tensor(list(itertools.permutations(range(8), 2)))
    return TwoLookups(
        pairs=pairs,
        queries=label[pairs].flatten(1),
        keys=torch.cat([label, torch.zeros_like(label)], dim=1),
        balls=torch.tensor(list(itertools.product([-1.0, 1.0], repeat=8))),
    )


# The network ------------------------------------------------------------------------------------


class LookupNetwork(nn.Module):
    """Attention, then a linear layer that gives two numbers, whose signs are the answer.

    Args:
        embed_dim: size of queries, keys and values: twice the number of drawers.
        num_heads: number of heads; divides `embed_dim`.
        attention: a layer to use in place of `MultiHeadAttention`, called in the same way.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, attention: nn.Module | None = None):
        super().__init__()
        self.attention = attention or MultiHeadAttention(embed_dim, num_heads)
        self.readout = nn.Linear(embed_dim, 2)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """(batch, requests, embed_dim), (batch, drawers, embed_dim) twice → (batch, requests, 2)."""
        return self.readout(self.attention(queries, keys, values))


def train_lookups(
    network: LookupNetwork, *, steps: int = 300, lr: float = 0.01, seed: int = 0
) -> LookupNetwork:
    """Train a network on 16 random fillings a step, with all requests, by cross-entropy on the two signs.

    Args:
        network: to be trained.
        steps: of Adam with rate `lr`.
        seed: of the fillings that are drawn.

    Returns:
        The network that was given.
    """
    task = two_lookups()
    generator = torch.Generator().manual_seed(seed)

    def loss_of_a_batch() -> Tensor:
        balls = task.balls[torch.randint(len(task.balls), (16,), generator=generator)]
        logits = network(*task.inputs(balls))
        return F.binary_cross_entropy_with_logits(logits, (task.answers(balls) > 0).float())

    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    take_steps(optimizer, loss_of_a_batch, steps=steps, rate=lambda _: lr, clip_norm=None)
    return network


@torch.no_grad()
def lookup_accuracy(network: LookupNetwork) -> Tensor:
    """Accuracies over *all* requests and fillings, (3,): of the first ball, of the second, of both."""
    right = _right(network)
    return torch.stack([*right.float().mean(dim=(0, 1)), right.all(dim=-1).float().mean()])


@torch.no_grad()
def lookup_cases(network: LookupNetwork) -> Tensor:
    """Accuracies, (2, 3): a row where both balls are alike, a row where they differ.

    The columns are the first ball, the second, and both.
    """
    task, right = two_lookups(), _right(network)
    alike = task.answers(task.balls).prod(dim=-1) > 0
    right = torch.cat([right, right.all(dim=-1, keepdim=True)], dim=-1).float()
    return torch.stack([right[alike].mean(dim=0), right[~alike].mean(dim=0)])


def asked_weights(weights: Tensor) -> Tensor:
    """Mean weight of each head on the drawer asked for first, and on the second.

    Args:
        weights: (batch, heads, requests, drawers).

    Returns:
        (heads, 2).
    """
    pairs = two_lookups().pairs
    return weights.gather(-1, pairs.expand(*weights.shape[:-1], 2)).mean(dim=(0, 2))


def _right(network: LookupNetwork) -> Tensor:
    """Mask of the right answers: (fillings, requests, 2)."""
    task = two_lookups()
    return (network(*task.inputs(task.balls)) > 0) == (task.answers(task.balls) > 0)


def most_right(averages: Tensor, signs: Tensor) -> int:
    """Number of the four cases in which both balls can be read off one average, by the best linear rule for each ball.

    A linear rule says + on one side of a threshold and − on the other.

    Args:
        averages: (4,), the output of the head in each case.
        signs: (4, 2), the two balls.
    """
    thresholds = torch.cat([averages - 1e-4, averages.max()[None] + 1])[:, None]
    above = averages > thresholds  # (5, 4)
    rules = torch.cat([above, ~above])  # (10, 4): what each rule says in each case
    first_right, second_right = (rules == (signs[:, ball] > 0) for ball in (0, 1))
    both_right = first_right[:, None] & second_right  # (10, 10, 4): each pair of rules
    return int(both_right.sum(dim=-1).max())
