"""Stacks of random position-wise networks: which gradient arrives at the input, and what can be read of it.

The size of the sublayers is a number to choose, because what a residual connection keeps depends on it.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Sublayer = Callable[[Tensor], Tensor]
Order = Callable[[Tensor, Sublayer], Tensor]
"""(x, f) → what leaves the layer, such as x + f(norm(x))."""

DEPTHS = (1, 2, 4, 8, 16, 24)
WIDTH, TOKENS = 32, 1000


def stack(x: Tensor, order: Order, s: float, generator: torch.Generator) -> list[Tensor]:
    """x, and what leaves each of 24 layers.

    Args:
        x: (tokens, WIDTH).
        order: of the layers.
        s: how large f(x) is, relative to x. The networks have no biases, so that this holds for x of any size.
        generator: of the weights.
    """
    xs = [x]
    for _ in range(max(DEPTHS)):
        w1 = torch.randn(WIDTH, 4 * WIDTH, generator=generator) * math.sqrt(2 / WIDTH)
        w2 = torch.randn(4 * WIDTH, WIDTH, generator=generator) * math.sqrt(1 / (4 * WIDTH))
        xs.append(order(xs[-1], lambda y, w1=w1, w2=w2: s * (y @ w1).relu() @ w2))
    return xs


def measured(order: Order, s: float, seed: int) -> list[list[float]]:
    """Behind each of DEPTHS layers: the gradient at the input, and R² of a linear map back to the input.

    The gradient is that of a random weighting of the output; its size is 1 where the output is the input. The
    map is fitted on one half of the tokens, with a little ridge, and R² is that of the other half.
    """
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(TOKENS, WIDTH, generator=generator).requires_grad_()
    xs = stack(x, order, s, generator)
    half, found = TOKENS // 2, []
    for depth in DEPTHS:
        weighted = (xs[depth] * torch.randn(TOKENS, WIDTH, generator=generator)).sum()
        (gradient,) = torch.autograd.grad(weighted, x, retain_graph=True)
        known, read = x.detach(), xs[depth].detach()
        read = F.pad(read / read.std(), (0, 1), value=1.0)
        gram = read[:half].T @ read[:half] + 0.01 * torch.eye(WIDTH + 1)
        back = torch.linalg.solve(gram, read[:half].T @ known[:half])
        missed = (known[half:] - read[half:] @ back).square().mean() / known[half:].var()
        found.append([gradient.square().mean().sqrt().item(), 1 - missed.item()])
    return found


@torch.no_grad()
def size_at_first(network: type[nn.Module]) -> float:
    """How large f(x) is, relative to x, in a position-wise network of 64 and 256 features that is not trained."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x = torch.randn(TOKENS, 64)
        return (network(64, 256)(x).square().mean() / x.square().mean()).sqrt().item()
