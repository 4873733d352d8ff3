"""Boards of the game memory: sixteen cards, eight pairs of garments of one class each.

The page of *Vision transformers* and its stored run train networks that say where the twin of each card lies.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.data.images import ImageSet, scaled

ROWS = 4
"""Rows of cards on a board, and columns."""

CARDS = ROWS * ROWS
CARD = 14
"""Pixels along each side of a card."""

Boards = tuple[Tensor, Tensor]
"""Pictures (boards, 1, 56, 56), from -1 to 1, and the number of each card's twin (boards, 16)."""


def deal(garments: ImageSet, count: int, seed: int) -> Boards:
    """Boards of eight classes, two different garments of each, in a random order of cards."""
    return next(deals(garments, count, seed))


def deals(garments: ImageSet, count: int, seed: int = 0) -> Iterator[Boards]:
    """Batch after batch of `count` new boards, without end."""
    generator = torch.Generator().manual_seed(seed)
    small = F.avg_pool2d(scaled(garments.images), garments.images.shape[-1] // CARD)
    classes = range(len(garments.classes))
    rows = [(garments.labels == label).nonzero().flatten() for label in classes]
    while True:
        chosen = torch.rand(count, len(rows), generator=generator).argsort(dim=1)[:, : CARDS // 2]
        pairs = torch.empty(count, CARDS // 2, 2, dtype=torch.int64)
        for label, garment in enumerate(rows):
            here = chosen == label
            number = int(here.sum())
            first = torch.randint(len(garment), (number,), generator=generator)
            step = torch.randint(1, len(garment), (number,), generator=generator)
            second = (first + step) % len(garment)
            pairs[here] = torch.stack([garment[first], garment[second]], dim=1)
        # order: the card at each place; place: the place of each card.
        order = torch.rand(count, CARDS, generator=generator).argsort(dim=1)
        place = order.argsort(dim=1)
        twins = place.gather(1, order ^ 1)  # cards 2k and 2k + 1 are a pair
        cards = small[pairs.flatten(1).gather(1, order)]  # (count, 16, 1, 14, 14)
        grid = cards.view(count, ROWS, ROWS, CARD, CARD).transpose(2, 3)
        yield grid.reshape(count, 1, ROWS * CARD, ROWS * CARD), twins


def without_twins(twins: Tensor) -> Tensor:
    """A mask (boards, 1, 17, 17), True = may look: each card may look at all but its twin.

    Token 0 is the class token, and card j is token j + 1.
    """
    allowed = torch.ones(len(twins), 1, CARDS + 1, CARDS + 1, dtype=torch.bool)
    boards = torch.arange(len(twins))[:, None]
    allowed[boards, 0, torch.arange(CARDS) + 1, twins + 1] = False
    return allowed
