"""The tasks of *Self-attention* that tell an attention from an average, and the sentences that its page writes on.

"Anna's car is red. Ben's car is blue. Ben's?" takes one look-up; a friend's car takes two. A statement is one token,
and so is the question. No token has a position of its own, and what is asked for stands at the same position in every
text, so a model has to look it up by what it says.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.text import BOS, EOS, Vocabulary
from course_utils.data.translation import load_grammar

# Whose car? ---------------------------------------------------------------------------------------

NAMES = (
    "Anna", "Ben", "Clara", "David", "Emma", "Felix", "Gina", "Hugo",
    "Ida", "Jonas", "Kim", "Leo", "Mia", "Noah", "Olga", "Paul",
)  # fmt: skip
COLORS = ("red", "blue", "green", "white", "black", "gray", "brown", "yellow")
FRIENDS = 8
"""Number of people, the first ones of `NAMES`, whose friend is named."""

TEXTS = (
    *(f"{name}'s car is {color}" for name in NAMES for color in COLORS),
    *(f"{name}'s?" for name in NAMES),
    *(f"{name}'s friend is {other}" for name in NAMES[:FRIENDS] for other in NAMES[:FRIENDS]),
)
"""The text of each token."""

FIRST_QUESTION = len(NAMES) * len(COLORS)
"""The first token that is a question; those before it say whose car has which color."""
FIRST_FRIEND = FIRST_QUESTION + len(NAMES)
"""The first token that says whose friend is who."""

NOT_ASKED = -100
"""The target where nothing is asked; `cross_entropy` leaves it out."""


def owners(count: int, generator: torch.Generator, *, pairs: int) -> tuple[Tensor, Tensor]:
    """Texts about the cars of `pairs` people, then the question for the color of the first one's.

    Returns:
        tokens: (count, pairs + 1).
        targets: (count, pairs + 1), `NOT_ASKED` but for the last: the number of a color.
    """
    people = torch.rand(count, len(NAMES), generator=generator).argsort(1)[:, :pairs]
    color = torch.randint(len(COLORS), (count, pairs), generator=generator)
    cars, question = people * len(COLORS) + color, FIRST_QUESTION + people[:, :1]
    tokens = torch.cat([cars, question], dim=1)
    return tokens, _targets_at_the_end(tokens, color[:, 0])


def friends(count: int, generator: torch.Generator, *, people: int = 3) -> tuple[Tensor, Tensor]:
    """Texts about friends in a ring and their cars, then the question for the car of the first one's friend.

    Returns:
        tokens: (count, 2 · people + 1): friends, cars, question. The friend of the first person is the last one.
        targets: as in `owners`.
    """
    who = torch.rand(count, FRIENDS, generator=generator).argsort(1)[:, :people]
    color = torch.randint(len(COLORS), (count, people), generator=generator)
    links = FIRST_FRIEND + who * FRIENDS + who.roll(1, 1)
    cars, question = who * len(COLORS) + color, FIRST_QUESTION + who[:, :1]
    tokens = torch.cat([links, cars, question], dim=1)
    return tokens, _targets_at_the_end(tokens, color[:, -1])


def counting(pairs: int) -> float:
    """Accuracy, among `pairs` cars, of a baseline that always answers the most frequent color."""
    tokens, _ = owners(20_000, torch.Generator().manual_seed(0), pairs=pairs)
    color = tokens[:, :-1] % len(COLORS)
    most_frequent = F.one_hot(color, len(COLORS)).sum(1).amax(1)
    return (most_frequent / pairs).mean().item()


def _targets_at_the_end(tokens: Tensor, color: Tensor) -> Tensor:
    """Targets of the tokens' shape, (count, n): the color, (count,), at the last position."""
    targets = torch.full_like(tokens, NOT_ASKED)
    targets[:, -1] = color
    return targets


# Sentences to write on ----------------------------------------------------------------------------


def sentences() -> tuple[Tensor, Vocabulary]:
    """The grammar's English sentences, (sentences, n) tokens with −100 after `<eos>`, and their vocabulary."""
    lines = sorted({pair.source for pair in load_grammar("fr")})
    vocabulary = Vocabulary(lines)
    rows = [torch.tensor([BOS, *vocabulary.encode(line), EOS]) for line in lines]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-100), vocabulary


def from_the_last_word(text: Tensor) -> float:
    """Lowest mean loss in nats that a model can reach which sees only the last word: H(next | last).

    Args:
        text: (sentences, n) tokens; those below 0 are past the end.
    """
    last, after = text[:, :-1], text[:, 1:]
    real = after >= 0
    size = int(text.max()) + 1
    pairs = torch.bincount(last[real] * size + after[real], minlength=size**2).view(size, size)
    chances = pairs / pairs.sum(1, keepdim=True)
    return -torch.special.xlogy(pairs, chances)[pairs > 0].sum().item() / pairs.sum().item()
