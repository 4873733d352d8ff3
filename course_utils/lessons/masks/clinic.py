"""The clinic of *Masks*: a small model that continues rows of digits, and patients, each with one mistake.

Each digit is the last of the sum of the two before it; three in ten are drawn at random instead. Rows are padded
in front, so that all end at the same place, as a model that continues them wants it.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.masks import causal_mask, masked_softmax
from course_utils.runtime import own_random_numbers

PAD, LENGTH, STEPS, RATE, NOISE = 10, 24, 300, 0.005, 0.3

Weigh = Callable[[Tensor, Tensor], Tensor]
"""Scores (batch, n, m) of the newest n of m places, and where words stand (batch, m) → weights."""


# The right weights, and seven mistakes ------------------------------------------------------------


def right(scores: Tensor, words: Tensor) -> Tensor:
    """Both masks, and of the causal one the newest rows."""
    n, m = scores.shape[-2:]
    return masked_softmax(scores, words[:, None] & causal_mask(m)[-n:])


def off_by_one(scores: Tensor, words: Tensor) -> Tensor:
    """Each place attends to the next one, too."""
    n, m = scores.shape[-2:]
    return masked_softmax(scores, words[:, None] & torch.ones(m, m).tril(1).bool()[-n:])


def polarity(scores: Tensor, words: Tensor) -> Tensor:
    """True is taken for forbidden."""
    n, m = scores.shape[-2:]
    return masked_softmax(scores, ~(words[:, None] & causal_mask(m)[-n:]))


def zeros_and_ones(scores: Tensor, words: Tensor) -> Tensor:
    """The mask is a number, and is added."""
    n, m = scores.shape[-2:]
    return (scores + (words[:, None] & causal_mask(m)[-n:])).softmax(dim=-1)


def zero_the_scores(scores: Tensor, words: Tensor) -> Tensor:
    """A forbidden score becomes 0, which is a score like any other."""
    n, m = scores.shape[-2:]
    return (scores * (words[:, None] & causal_mask(m)[-n:])).softmax(dim=-1)


def no_axis(scores: Tensor, words: Tensor) -> Tensor:
    """(batch, keys) is taken for (queries, keys); fits where there are as many rows as places."""
    n, m = scores.shape[-2:]
    return masked_softmax(scores, (words & causal_mask(m))[-n:])


def over_queries(scores: Tensor, words: Tensor) -> Tensor:
    """The softmax runs down the columns."""
    n, m = scores.shape[-2:]
    return masked_softmax(scores.mT, (words[:, None] & causal_mask(m)[-n:]).mT).mT


def upper_left(scores: Tensor, words: Tensor) -> Tensor:
    """The newest queries get the first rows, as with `is_causal=True` of PyTorch's operator."""
    n, m = scores.shape[-2:]
    return masked_softmax(scores, words[:, None] & causal_mask(m)[:n])


MISTAKES = {
    "polarity": polarity, "zeros and ones": zeros_and_ones, "zero the scores": zero_the_scores,
    "no axis": no_axis, "off by one": off_by_one, "over the queries": over_queries, "upper left": upper_left,
}  # fmt: skip


def attention(weigh: Weigh) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Scaled dot-product attention of the newest queries: (queries, keys, values, words) → answers."""

    def attend(queries: Tensor, keys: Tensor, values: Tensor, words: Tensor) -> Tensor:
        return weigh(queries @ keys.mT / math.sqrt(queries.shape[-1]), words) @ values

    return attend


# The model, and its training ----------------------------------------------------------------------


class NextDigit(nn.Module):
    """Embed digits and places, attend once, and score the ten digits that may come next."""

    def __init__(self, attend: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], dim: int = 64):
        super().__init__()
        self.attend = attend
        self.digit = nn.Embedding(PAD + 1, dim, padding_idx=PAD)
        self.place = nn.Embedding(LENGTH, dim)
        self.query, self.key, self.value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.scorer = nn.Sequential(nn.Linear(2 * dim, 256), nn.ReLU(), nn.Linear(256, PAD))

    def forward(self, tokens: Tensor, newest: int = LENGTH) -> Tensor:
        """(batch, m) → (batch, newest, 10): keys and values of all m places, queries of the newest."""
        words = tokens != PAD
        digits = self.digit(tokens)
        x = digits + self.place((words.cumsum(dim=-1) - 1).clamp(min=0))
        read = self.attend(self.query(x[:, -newest:]), self.key(x), self.value(digits), words)
        return self.scorer(torch.cat([digits[:, -newest:], read], dim=-1))


def rows(generator: torch.Generator, lengths: Tensor | None = None) -> Tensor:
    """(LENGTH, LENGTH + 1) digits, padded in front; 13 to 25 of a row are digits unless `lengths` are given."""

    def draw(high: int, *size: int) -> Tensor:
        return torch.randint(high, size, generator=generator)

    width = LENGTH + 1
    tokens = draw(10, LENGTH, width)
    for t in range(2, width):
        noisy = torch.rand(LENGTH, generator=generator) < NOISE
        tokens[:, t] = torch.where(noisy, tokens[:, t], (tokens[:, t - 1] + tokens[:, t - 2]) % 10)
    padded = draw(width // 2 + 1, LENGTH) if lengths is None else width - lengths
    return tokens.masked_fill(torch.arange(width) < padded[:, None], PAD)


def train(weigh: Weigh, *, seed: int = 0, rate: float = RATE) -> tuple[NextDigit, list[float]]:
    """A model trained with these weights, and its loss after each step, in nats a digit."""
    generator = torch.Generator().manual_seed(seed)
    with own_random_numbers():
        torch.manual_seed(seed)
        model = NextDigit(attention(weigh))
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=rate), []
    for _ in range(STEPS):
        tokens = rows(generator)
        seen, following = tokens[:, :-1], tokens[:, 1:]
        real = seen != PAD
        loss = F.cross_entropy(model(seen)[real], following[real])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


@torch.no_grad()
def write(model: NextDigit, tokens: Tensor, steps: int) -> Tensor:
    """Append the likeliest digit, one after another: (batch, n) → (batch, n + steps). One query a step."""
    for _ in range(steps):
        newest = model(tokens[:, -LENGTH:], newest=1)[:, -1]
        tokens = torch.cat([tokens, newest.argmax(dim=-1, keepdim=True)], dim=1)
    return tokens


def followed(model: NextDigit) -> float:
    """The share of next digits that follow the rule, after 240 rows of 5 to 14 digits; a guess has 0.1."""
    generator, history = torch.Generator().manual_seed(1), []
    for _ in range(10):
        lengths = torch.randint(5, 15, (LENGTH,), generator=generator)
        *_, before, last, new = write(model, rows(generator, lengths)[:, 1:], 1).unbind(dim=1)
        history.append(new == (before + last) % 10)
    return torch.cat(history).float().mean().item()


def continued(model: NextDigit, start: list[int], steps: int = 8) -> str:
    """What a model writes after these digits, in one line."""
    padded = torch.tensor([[PAD] * (LENGTH - len(start)) + start] * LENGTH)
    digits = write(model, padded, steps)[0, -steps:].tolist()
    return f"{' '.join(map(str, start))} → {' '.join(map(str, digits))}"


# Patients ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Patient:
    """A trained model with one of seven mistakes in its attention.

    Attributes:
        model: the model.
        losses: of its training.
        attend: its attention, (queries, keys, values, words) → answers.
    """

    model: NextDigit
    losses: list[float]

    @property
    def loss(self) -> float:
        """The mean of the last 50 steps."""
        return sum(self.losses[-50:]) / 50

    @property
    def attend(self) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
        """The attention that it was trained with."""
        return self.model.attend


def mistake_of(case: int) -> str:
    """What is wrong with a patient; the answer of an exercise."""
    return random.Random(case).choice(list(MISTAKES))


def patient(case: int) -> Patient:
    """Train the patient of this number; its mistake is drawn at random."""
    return Patient(*train(MISTAKES[mistake_of(case)]))
