"""A task that a tiny Transformer learns in a moment, for the tests of training: copy words in capitals."""

import torch

from course_utils.data.text import Vocabulary
from course_utils.data.translation import Pair, PairLoader
from course_utils.models.transformer import Transformer

WORDS = ["red", "green", "blue", "one", "two", "three", "cat", "dog"]


def copy_task() -> list[Pair]:
    """Sixty pairs whose target is the source in capitals."""
    generator = torch.Generator().manual_seed(0)
    pairs = []
    for _ in range(60):
        length = int(torch.randint(1, 5, (1,), generator=generator))
        words = [WORDS[i] for i in torch.randint(0, len(WORDS), (length,), generator=generator)]
        pairs.append(Pair(tuple(words), tuple(word.upper() for word in words)))
    return pairs


PAIRS = copy_task()
SOURCE, TARGET = Vocabulary(p.source for p in PAIRS), Vocabulary(p.target for p in PAIRS)


def loader(**options) -> PairLoader:
    """Four batches per pass."""
    return PairLoader(PAIRS, SOURCE, TARGET, **{"batch_size": 16, **options})


def small_model(dropout: float = 0.2) -> Transformer:
    """The same weights each time."""
    torch.manual_seed(4)
    return Transformer(
        len(SOURCE),
        len(TARGET),
        embed_dim=16,
        num_heads=2,
        ffn_dim=16,
        num_layers=1,
        dropout=dropout,
    )
