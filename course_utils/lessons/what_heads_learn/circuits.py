"""The copying circuit of *What heads learn*: built by hand, and read from the weights.

A model is the chapter's `Copier`: `letters` and `positions` (embeddings), `norms` and `layers` (two of each), `norm`
and `output`. Elhage et al. (2021), "A mathematical framework for transformer circuits", sections on QK and OV circuits.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.attention import MultiHeadAttention
from course_utils.masks import causal_mask
from course_utils.recording import record_attention

LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
"""The 32 letters of the texts."""
LENGTH = 48
"""Positions of a text."""


# By hand ------------------------------------------------------------------------------------------


def attend(scores: Tensor, values: Tensor) -> Tensor:
    """Causal attention from scores (n, n) and values (n, d): (n, d)."""
    return scores.masked_fill(~causal_mask(len(scores)), -torch.inf).softmax(-1) @ values


def by_hand(ids: Tensor) -> Tensor:
    """Scores of the next letter (n, 32) after the letters of a text, (n,); nothing is trained."""
    letter, position = torch.eye(len(LETTERS))[ids], torch.eye(LENGTH)[: len(ids)]
    one_back = torch.eye(LENGTH).roll(1, 0)  # row i has its 1 in column i − 1
    before = attend(100 * position @ one_back @ position.T, letter)
    before[0] = 0  # no letter stands before the first
    return attend(100 * letter @ before.T, letter)


def accuracy_by_hand(circuit: Callable[[Tensor], Tensor], period: int, *, different: bool) -> float:
    """Accuracy of a circuit from the second letter of the second block on, in 200 texts with blocks of one length."""
    draws, right, asked = torch.Generator().manual_seed(0), 0, 0
    for _ in range(200):
        block = torch.randint(len(LETTERS), (period,), generator=draws)
        if different:
            block = torch.randperm(len(LETTERS), generator=draws)[:period]
        ids = block[torch.arange(LENGTH) % period]
        named = circuit(ids[:-1]).argmax(-1)[period:]
        right, asked = right + (named == ids[period + 1 :]).sum().item(), asked + len(named)
    return right / asked


# Read from the weights ----------------------------------------------------------------------------


def of_head(attention: MultiHeadAttention, head: int) -> tuple[Tensor, Tensor, Tensor]:
    """W_Q and W_K of a head, (d, head_dim) each, and W_V W_O, (d, d): a row vector times a matrix."""
    rows = slice(head * attention.head_dim, (head + 1) * attention.head_dim)
    W_Q, W_K, W_V = (
        proj.weight[rows].T
        for proj in (attention.query_proj, attention.key_proj, attention.value_proj)
    )
    return W_Q, W_K, W_V @ attention.out_proj.weight[:, rows].T


def letters_in(model: nn.Module, layer: int) -> Tensor:
    """The letters as a layer reads them, (32, d): their embeddings times the gain of its norm."""
    return model.letters.weight * model.norms[layer].weight


def ov_map(model: nn.Module, induction: int) -> Tensor:
    """Letter that the head looks at × letter whose logit this raises: (32, 32)."""
    _, _, W_OV = of_head(model.layers[1], induction)
    return letters_in(model, 1) @ W_OV * model.norm.weight @ model.output.weight.T


def qk_map(model: nn.Module, previous: int, induction: int) -> Tensor:
    """Letter at which the head stands × letter after which it looks: (32, 32)."""
    _, _, W_OV = of_head(model.layers[0], previous)
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    after = letters_in(model, 0) @ W_OV * model.norms[1].weight
    return letters_in(model, 1) @ W_Q @ (after @ W_K).T


def second_map(model: nn.Module, previous: int, induction: int) -> Tensor:
    """Letter before the one at which the head stands × letter two back after which it looks: (32, 32).

    The first is noted by head `previous` of layer 0, the second by its other head.
    """
    W_Q, W_K, _ = of_head(model.layers[1], induction)
    asking, noted = (
        letters_in(model, 0) @ of_head(model.layers[0], head)[2] * model.norms[1].weight
        for head in (previous, 1 - previous)
    )
    return asking @ W_Q @ (noted @ W_K).T


def on_diagonal(matrix: Tensor) -> int:
    """In how many rows the largest entry is on the diagonal."""
    return int((matrix.argmax(-1) == torch.arange(len(matrix))).sum())


@dataclass(frozen=True)
class Heads:
    """How the heads look at texts: weights by head of a layer.

    Attributes:
        before: of layer 0, on the position before.
        right: of the last layer, on the positions whose letter before is the letter now; both means over the
            positions from the second letter of the second block on.
    """

    before: list[float]
    right: list[float]

    @property
    def pair(self) -> tuple[int, int]:
        """The head of layer 0 that looks back most, and that of the last layer that looks most at the right ones."""
        return self.before.index(max(self.before)), self.right.index(max(self.right))


def same_letter_before(ids: Tensor) -> Tensor:
    """(batch, n) → (batch, n, n): whether the letter before a key is the query's, and the key is not later."""
    before = F.pad(ids[:, :-1], (1, 0), value=-1)
    return (ids[:, :, None] == before[:, None]) & causal_mask(ids.shape[1])


@torch.no_grad()
def looks_back(model: nn.Module, ids: Tensor, lengths: Tensor) -> dict[str, list[float]]:
    """Weights of the heads of layer 0 on the letter one back and two back, in the first block, where notes are read.

    Means over the positions from the fourth on: a list by head for each, and one for what equal weights would be.
    """
    with record_attention(model) as maps:
        model(ids)
    at, weights = torch.arange(ids.shape[1]), maps["layers.0"]
    first = ((at >= 3) & (at < lengths)).float()
    found = {}
    for name, offset in (("one back", 1), ("two back", 2)):
        on = F.pad(weights.diagonal(-offset, -2, -1), (offset, 0))  # (batch, heads, n)
        found[name] = ((on * first[:, None]).sum((0, 2)) / first.sum()).tolist()
    even = ((1 / (at + 1)) * first).sum() / first.sum()
    return found | {"equal weights": [even.item()] * weights.shape[1]}


def look(model: nn.Module, ids: Tensor, periods: Tensor) -> Heads:
    """Where the heads of a model look, in texts (batch, n) with blocks of these lengths, (batch, 1)."""
    with record_attention(model) as maps, torch.no_grad():
        model(ids)
    first, last = maps["layers.0"], maps[f"layers.{len(model.layers) - 1}"]
    asked = (torch.arange(ids.shape[1]) >= periods).float()
    to_before = F.pad(first.diagonal(-1, -2, -1), (1, 0))  # (batch, heads, n)
    to_right = (last * same_letter_before(ids)[:, None]).sum(-1)
    mean = [
        (weights * asked[:, None]).sum((0, 2)) / asked.sum() for weights in (to_before, to_right)
    ]
    return Heads(*(row.tolist() for row in mean))
