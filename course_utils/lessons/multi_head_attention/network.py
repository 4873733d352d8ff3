"""A network for the two look-ups of *Multi-head attention*: one attention layer and a linear readout, nothing else.

Above: `attention`, and `data.lookups` with the task. Below: the chapter and its explorer.
"""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention import MultiHeadAttention
from course_utils.lessons.multi_head_attention.task import TwoLookups, two_lookups


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
    network: LookupNetwork, *, steps: int = 300, lr: float = 0.03, batch: int = 16, seed: int = 0
) -> LookupNetwork:
    """Train on random cabinets, all requests each, by cross-entropy on the two signs.

    Args:
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


def without_head(network: LookupNetwork, head: int) -> LookupNetwork:
    """A copy of the network in which one head contributes nothing to the output.

    Raises:
        ValueError: there is no such head; they count from 0.
    """
    num_heads = network.attention.num_heads
    if not 0 <= head < num_heads:
        raise ValueError(f"head={head}; the network has {num_heads}, counted from 0")
    network = copy.deepcopy(network)
    weight = network.attention.out_proj.weight.data  # (embed_dim, heads · head_dim)
    weight.unflatten(1, (num_heads, -1))[:, head] = 0
    return network


def _task_of(network: LookupNetwork) -> TwoLookups:
    return two_lookups(network.readout.in_features // 2)
