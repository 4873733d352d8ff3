"""Two look-ups at once: a task whose right attention maps are known beforehand, and a network for it.

A cabinet has eight drawers, A to H, with a white (+1) or a black (−1) ball in each. A request such as
"CF" asks for the balls in drawer C *and* in drawer F, in this order. A drawer carries its label once,
in the first half of its features; a request carries two labels, one in each half. The network is one
attention layer and a linear readout, nothing else.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention import MultiHeadAttention
from course_utils.figures import COLORS, Picture, subplots
from course_utils.kit.runs import StoredRun

# The task ---------------------------------------------------------------------------------------


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
    """The task for `num_drawers` drawers, two or more; nothing about it is random."""
    label = torch.eye(num_drawers)
    pairs = torch.tensor(list(itertools.permutations(range(num_drawers), 2)))
    return TwoLookups(
        pairs=pairs,
        queries=label[pairs].flatten(1),
        keys=torch.cat([label, torch.zeros_like(label)], dim=1),
        balls=torch.tensor(list(itertools.product([-1.0, 1.0], repeat=num_drawers))),
    )


# The network ------------------------------------------------------------------------------------


class LookupNetwork(nn.Module):
    """Attention, then a linear readout of two numbers whose signs are the answer.

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
    network: LookupNetwork, *, steps: int = 300, lr: float = 0.01, batch: int = 16, seed: int = 0
) -> LookupNetwork:
    """Train on random cabinets, all requests each, by cross-entropy on the two signs.

    Args:
        network: to be trained.
        steps: of Adam with rate `lr`.
        batch: cabinets per step.
        seed: of the cabinets drawn.

    Returns:
        The network that was given.
    """
    task = _task_of(network)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    for _ in range(steps):
        balls = task.balls[torch.randint(len(task.balls), (batch,), generator=generator)]
        logits = network(*task.inputs(balls))
        loss = F.binary_cross_entropy_with_logits(logits, (task.answers(balls) > 0).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network


@torch.no_grad()
def lookup_accuracy(network: LookupNetwork) -> Tensor:
    """Share of right answers over *all* requests and fillings: (first ball, second ball, both)."""
    task = _task_of(network)
    right = (network(*task.inputs(task.balls)) > 0) == (task.answers(task.balls) > 0)
    return torch.stack([*right.float().mean(dim=(0, 1)), right.all(dim=-1).float().mean()])


def _task_of(network: LookupNetwork) -> TwoLookups:
    return two_lookups(network.readout.in_features // 2)


def most_right(averages: Tensor, signs: Tensor) -> int:
    """In how many of four cases two answers are right, read off one average by the best linear rules.

    Args:
        averages: (4,), what the head returns.
        signs: (4, 2), the two balls.
    """
    cuts = torch.cat([averages - 1e-4, averages.max()[None] + 1])[:, None]
    above = averages > cuts  # (5, 4): u > 0
    said = torch.cat([above, ~above])  # and u < 0
    first, second = (said == (signs[:, ball] > 0) for ball in (0, 1))
    return int((first[:, None] & second).sum(dim=-1).max())


# Every rate and every seed in one picture ---------------------------------------------------------

MARKS = "os^"  # a marker for each rate, from the smallest


def show_paid(cabinet: Sequence[StoredRun], verbs: Sequence[StoredRun]) -> Picture:
    """Share of cases with both answers right over the number of heads: a point a training, a marker a rate."""
    found = pd.DataFrame([run.config | run.result for run in [*cabinet, *verbs]])
    found["task"] = found["objects"].fillna("cabinet")
    told = "; ".join(
        f"{task}, {heads} head(s): {part['both'].min():.2f} to {part['both'].max():.2f}"
        for (task, heads), part in found.groupby(["task", "num_heads"], sort=False)
    )
    picture, axes = subplots(
        1, 3, width=8.4, height=3.0, sharey=True,
        alt=f"Both answers right, three learning rates and three seeds each. {told}.",
    )  # fmt: skip
    for ax, (task, part) in zip(axes, found.groupby("task", sort=False), strict=True):
        counts, rates = sorted(part["num_heads"].unique()), sorted(part["rate"].unique())
        for mark, rate in zip(MARKS, rates, strict=True):
            at = part[part["rate"] == rate]
            shift = 0.16 * (rates.index(rate) - 1) + 0.04 * (at["seed"] - 1)
            places = at["num_heads"].map(counts.index) + shift
            ax.plot(
                places, at["both"], mark, color=COLORS["key"], markerfacecolor="none",
                label=f"{rate:g}",
            )  # fmt: skip
        ax.set_xticks(range(len(counts)), counts)
        ax.set(title=task, xlabel="heads", xlim=(-0.5, len(counts) - 0.5), ylim=(0, 1.05))
        ax.legend(title="rate", loc="center right", fontsize=8, title_fontsize=8, frameon=False)
    axes[0].set_ylabel("both answers right")
    return picture
