"""The small model of the clinic of *Masks*, which continues rows of digits, its data and its training.

Each digit of a row is the last digit of the sum of the two before it; three in ten are drawn at random instead. Rows
are padded in front, so that all end at the same position, as a model that continues them wants it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.lessons.masks.weights import Attend, Weigh, attention
from course_utils.runtime import own_random_numbers
from course_utils.train.steps import take_steps

PAD = 10
"""The token of padding; the digits are tokens 0 to 9."""
LENGTH = 24
"""Places of a row that the model reads, and rows of a batch: as many, so that the mistake "no axis" fits."""
SHARE_AT_RANDOM = 0.3
"""The share of digits that do not follow the rule."""
STEPS = 300
RATE = 0.005


class NextDigit(nn.Module):
    """Embed digits and positions, attend once, and score the ten digits that may come next.

    Args:
        attend: the attention; the model is causal and ignores padding if it is.
        dim: size of embeddings, queries, keys and values.
    """

    def __init__(self, attend: Attend, dim: int = 64):
        super().__init__()
        self.attend = attend
        self.digit = nn.Embedding(PAD + 1, dim, padding_idx=PAD)
        self.position = nn.Embedding(LENGTH, dim)
        self.query, self.key, self.value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.scorer = nn.Sequential(nn.Linear(2 * dim, 256), nn.ReLU(), nn.Linear(256, PAD))

    def forward(self, tokens: Tensor, newest: int = LENGTH) -> Tensor:
        """Scores (batch, newest, 10) of the digit after each of the newest positions, from tokens (batch, m).

        All m positions have a key and a value, the newest ones also a query.
        """
        words = tokens != PAD
        digits = self.digit(tokens)
        x = digits + self.position((words.cumsum(dim=-1) - 1).clamp(min=0))
        read = self.attend(self.query(x[:, -newest:]), self.key(x), self.value(digits), words)
        return self.scorer(torch.cat([digits[:, -newest:], read], dim=-1))


def rows(generator: torch.Generator, lengths: Tensor | None = None) -> Tensor:
    """A batch of rows (LENGTH, LENGTH + 1) of digits, padded in front: as many rows as a row has positions.

    Args:
        generator: draws the digits.
        lengths: (LENGTH,), how many digits each row has; 13 to 25, drawn at random, by default.
    """

    def draw(high: int, *size: int) -> Tensor:
        return torch.randint(high, size, generator=generator)

    width = LENGTH + 1
    tokens = draw(10, LENGTH, width)
    for t in range(2, width):
        random = torch.rand(LENGTH, generator=generator) < SHARE_AT_RANDOM
        tokens[:, t] = torch.where(random, tokens[:, t], (tokens[:, t - 1] + tokens[:, t - 2]) % 10)
    padded = draw(width // 2 + 1, LENGTH) if lengths is None else width - lengths
    return tokens.masked_fill(torch.arange(width) < padded[:, None], PAD)


def train(weigh: Weigh, *, seed: int = 0, rate: float = RATE) -> tuple[NextDigit, list[float]]:
    """A model trained with these weights, and its loss at each step, in nats per digit."""
    generator = torch.Generator().manual_seed(seed)
    with own_random_numbers():
        torch.manual_seed(seed)
        model = NextDigit(attention(weigh))
    losses: list[float] = []

    def loss() -> Tensor:
        tokens = rows(generator)
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        real = inputs != PAD
        return F.cross_entropy(model(inputs)[real], targets[real])

    take_steps(
        torch.optim.Adam(model.parameters()),
        loss,
        steps=STEPS,
        rate=lambda step: rate,
        clip_norm=None,
        after_step=lambda step, value: losses.append(value),
    )
    return model, losses


def final_loss(losses: Sequence[float]) -> float:
    """The mean loss of the last 50 steps."""
    return sum(losses[-50:]) / 50


@torch.no_grad()
def write(model: NextDigit, tokens: Tensor, steps: int) -> Tensor:
    """Append the most probable digit `steps` times: (batch, n) → (batch, n + steps). Each step has one query."""
    for _ in range(steps):
        newest = model(tokens[:, -LENGTH:], newest=1)[:, -1]
        tokens = torch.cat([tokens, newest.argmax(dim=-1, keepdim=True)], dim=1)
    return tokens


def share_that_follows_the_rule(model: NextDigit) -> float:
    """The share of next digits that are the sum's last digit, after 240 rows of 5 to 14 digits; a guess has 0.1."""
    generator, right = torch.Generator().manual_seed(1), []
    for _ in range(10):
        lengths = torch.randint(5, 15, (LENGTH,), generator=generator)
        prompts = rows(generator, lengths)[:, 1:]
        *_, before, last, new = write(model, prompts, 1).unbind(dim=1)
        right.append(new == (before + last) % 10)
    return torch.cat(right).float().mean().item()


def continuation(model: NextDigit, start: Sequence[int], steps: int = 8) -> str:
    """These digits, an arrow, and the digits that a model writes after them."""
    padded = torch.tensor([[PAD] * (LENGTH - len(start)) + list(start)] * LENGTH)
    digits = write(model, padded, steps)[0, -steps:].tolist()
    return f"{' '.join(map(str, start))} → {' '.join(map(str, digits))}"
