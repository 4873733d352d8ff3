"""A task that only a look back can solve: texts that repeat a block of random letters.

The further page of *GPT*, its stored runs and *One formula* use it.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.interventions import intervene
from course_utils.models.language import GPT
from course_utils.runtime import evaluating

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHORTEST, LONGEST = 5, 8
"""Letters of a block."""
LENGTH = 24
"""Letters that a model reads."""


def repeated(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """`count` texts, each a block of different letters that is repeated; and the lengths of the blocks.

    Args:
        count: how many texts.
        generator: draws the letters and the lengths, `SHORTEST` to `LONGEST`.

    Returns:
        Ids (count, LENGTH + 1), and (count,).
    """
    lengths = torch.randint(SHORTEST, LONGEST + 1, (count,), generator=generator)
    letters = torch.rand(count, len(LETTERS), generator=generator).argsort(dim=1)
    return letters.gather(1, torch.arange(LENGTH + 1) % lengths[:, None]), lengths


def tokens_and_targets(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """`count` texts, and the letters one place later as targets, each (count, LENGTH)."""
    texts, _ = repeated(count, generator)
    return texts[:, :-1], texts[:, 1:]


@torch.no_grad()
def losses(model: nn.Module, count: int = 500, seed: int = 1) -> tuple[float, float]:
    """Mean loss in nats per letter: of the first block, and of what repeats it.

    The first letter that comes again is in neither: nothing tells that the block has ended.
    """
    texts, lengths = repeated(count, torch.Generator().manual_seed(seed))
    with evaluating(model):
        each = F.cross_entropy(model(texts[:, :-1]).mT, texts[:, 1:], reduction="none")
    asked = torch.arange(1, LENGTH + 1)
    new, again = asked < lengths[:, None], asked > lengths[:, None]
    return each[new].mean().item(), each[again].mean().item()


def losses_without(model: GPT) -> list[list[float]]:
    """Mean losses of the repetitions, as in `losses`, if one head is ablated: a row per layer, a column per head."""
    losses_by_layer = []
    for number, layer in enumerate(model.layers):
        row = []
        for head in range(layer.attention.num_heads):
            with intervene(model) as acts:
                acts.ablate(layers=number, heads=head)
                row.append(losses(model)[1])
        losses_by_layer.append(row)
    return losses_by_layer


@torch.no_grad()
def block_loss(model: nn.Module, period: int, count: int = 200) -> float:
    """Mean loss of the repetitions of `count` random blocks of this many letters, in nats per letter."""
    draws = torch.Generator().manual_seed(1)
    letters = torch.rand(count, len(LETTERS), generator=draws).argsort(dim=1)
    texts = letters[:, torch.arange(LENGTH + 1) % period]
    with evaluating(model):
        each = F.cross_entropy(model(texts[:, :-1]).mT, texts[:, 1:], reduction="none")
    return each[:, period:].mean().item()


@torch.no_grad()
def after_match(model: nn.Module, back: int, *, match: bool, count: int = 500) -> float:
    """Probability of the letter that came after the one `back` places before, in texts of 13 to 21 different letters.

    Args:
        model: ids (batch, length) → logits (batch, length, 26).
        back: how many places, at most 12.
        match: whether the last letter is replaced by the one `back` places before. Nothing else is repeated.
        count: texts of each length.
    """
    draws = torch.Generator().manual_seed(1)
    letters = torch.rand(count, len(LETTERS), generator=draws).argsort(dim=1)
    means = []
    with evaluating(model):
        for last in range(12, 21):
            texts = letters[:, : last + 1].clone()
            if match:
                texts[:, last] = texts[:, last - back]
            probs = model(texts)[:, -1].softmax(dim=-1)
            means.append(probs.gather(1, letters[:, last - back + 1, None]).mean().item())
    return sum(means) / len(means)
