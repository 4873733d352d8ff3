"""Questions that take a look-up: "Anna's car is red. Ben's car is blue. Ben's?", and one that takes two.

A statement is one token, as in "Anna's car is red", and so is the question. The order says nothing, since
nobody is told where a token stands: what is asked for stands at the same position in every text.
"""

import torch
from torch import Tensor

NAMES = (
    "Anna", "Ben", "Clara", "David", "Emma", "Felix", "Gina", "Hugo",
    "Ida", "Jonas", "Kim", "Leo", "Mia", "Noah", "Olga", "Paul",
)  # fmt: skip
COLORS = ("red", "blue", "green", "white", "black", "gray", "brown", "yellow")
FRIENDS = 8
"""Of so many, the first, it is said whose friend they are."""
CARS, ASKED = len(NAMES) * len(COLORS), len(NAMES) * len(COLORS) + len(NAMES)

TEXTS = (
    *(f"{name}'s car is {color}" for name in NAMES for color in COLORS),
    *(f"{name}'s?" for name in NAMES),
    *(f"{name}'s friend is {other}" for name in NAMES[:FRIENDS] for other in NAMES[:FRIENDS]),
)
"""What each token says."""

NOT_ASKED = -100
"""A target at which nothing is asked; `cross_entropy` leaves it out."""


def owners(count: int, generator: torch.Generator, *, pairs: int) -> tuple[Tensor, Tensor]:
    """`pairs` cars of different people, then whose color is asked: that of the first.

    Returns:
        tokens: (count, pairs + 1).
        targets: (count, pairs + 1), `NOT_ASKED` but for the last: the number of a color.
    """
    who = torch.rand(count, len(NAMES), generator=generator).argsort(1)[:, :pairs]
    color = torch.randint(len(COLORS), (count, pairs), generator=generator)
    tokens = torch.cat([who * len(COLORS) + color, CARS + who[:, :1]], 1)
    return tokens, _at_the_end(tokens, color[:, 0])


def friends(count: int, generator: torch.Generator, *, people: int = 3) -> tuple[Tensor, Tensor]:
    """Whose friend is who, in a ring, then the cars, then: which color has the car of the first one's friend?

    Returns:
        tokens: (count, 2 · people + 1): the friend of the first is the last of the people.
        targets: as in `owners`.
    """
    who = torch.rand(count, FRIENDS, generator=generator).argsort(1)[:, :people]
    color = torch.randint(len(COLORS), (count, people), generator=generator)
    links = ASKED + who * FRIENDS + who.roll(1, 1)
    tokens = torch.cat([links, who * len(COLORS) + color, CARS + who[:, :1]], 1)
    return tokens, _at_the_end(tokens, color[:, -1])


def counting(pairs: int) -> float:
    """The share of right answers of one who says the most frequent color."""
    tokens, _ = owners(20_000, torch.Generator().manual_seed(0), pairs=pairs)
    color = tokens[:, :-1] % len(COLORS)
    often = torch.nn.functional.one_hot(color, len(COLORS)).sum(1).amax(1)
    return (often / pairs).mean().item()


def _at_the_end(tokens: Tensor, color: Tensor) -> Tensor:
    targets = torch.full_like(tokens, NOT_ASKED)
    targets[:, -1] = color
    return targets
