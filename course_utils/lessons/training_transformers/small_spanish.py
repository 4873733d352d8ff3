"""Corpus, schedule and measures that the trainings of *Training transformers* share; its pages use the corpus, too."""

from collections.abc import Hashable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.data.translation import Batch, Pair, load_grammar, split_by_source
from course_utils.lessons.sequence_to_sequence.small_world import (
    SmallWorld,
    common_words,
    vocabularies_of,
)
from course_utils.models.transformer import Transformer
from course_utils.recording import record_attention
from course_utils.runtime import evaluating

HELD_OUT = (200, 200)
"""Source sentences for validation and for the test."""
RATE = 6e-3
"""The peak learning rate."""

WARMUP = 50
"""Steps until it is reached."""

STEPS = 280
"""Steps of a training: 56 batches an epoch, five epochs."""

SHORT = 112
"""Steps of a training that is watched closely."""

SEEDS = (0, 1, 2)

PER_LOSS = 14
"""Steps per point of a loss curve."""


def common_pairs(pairs: Sequence[Pair], *, words: int) -> list[Pair]:
    """Pairs of at most 8 target tokens whose source has none but the `words` commonest source words."""
    common = common_words(pairs, words)
    return [p for p in pairs if common.issuperset(p.source) and len(p.target) <= 8]


def world_of(train: list[Pair], val: list[Pair], test: list[Pair]) -> SmallWorld:
    """Pairs in three parts, with the vocabularies of the first; the chapter's batches and translations."""
    return SmallWorld(train, val, test, *vocabularies_of(train), batch_size=59, max_len=14)


def spanish_world() -> SmallWorld:
    """The corpus of this chapter: 3,253 training pairs, 200 for validation, 200 for the test; 56 batches an epoch.

    Generated sentences of at most 8 Spanish tokens in the 200 commonest English words. No English sentence stands in
    two parts.
    """
    pairs = common_pairs(load_grammar("es"), words=200)
    train, test, validation = split_by_source(pairs, HELD_OUT)
    return world_of(train, validation, test)


def rate(step: int, warmup: int) -> float:
    """The chapter's schedule: a rise over `warmup` steps; from step 50, or the end of the rise, a fall as 1/√step."""
    fall = max(warmup, 50)
    return min(1.0, step / max(warmup, 1), (fall / step) ** 0.5)


def mean_of_last(losses: list[float]) -> float:
    """The mean loss of the last 14 steps."""
    return sum(losses[-PER_LOSS:]) / PER_LOSS


def loss_curve(losses: list[float]) -> list[list[float]]:
    """Points [step, loss]: the mean loss of each 14 steps, at their middle."""
    parts = [losses[start : start + PER_LOSS] for start in range(0, len(losses), PER_LOSS)]
    return [
        [PER_LOSS * (index + 0.5), round(sum(part) / len(part), 4)]
        for index, part in enumerate(parts)
    ]


# Inside a Transformer while it is trained ---------------------------------------------------------


@torch.no_grad()
def likeness(model: Transformer, batch: Batch) -> float:
    """Mean cosine between the encoder's outputs for different tokens of a batch; 1 if all are one vector."""
    with evaluating(model):
        memory, mask = model.encode(batch.source, batch.source_lens)
    vectors = F.normalize(memory[mask[:, 0, 0]], dim=-1)
    n = len(vectors)
    return ((vectors.sum(dim=0).square().sum() - n) / (n * n - n)).item()


@torch.no_grad()
def spread(model: Transformer, batch: Batch) -> float:
    """Distance of the encoder's outputs from the mean of their sentence, as a share of their size."""
    with evaluating(model):
        memory, mask = model.encode(batch.source, batch.source_lens)
    real = mask[:, 0, 0, :, None].to(memory.dtype)
    mean = (memory * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True)
    return (((memory - mean) * real).norm() / (memory * real).norm()).item()


@torch.no_grad()
def evenness(model: Transformer, batch: Batch) -> float:
    """Mean entropy of the cross-attention's rows as a share of that of equal weights, over all layers.

    1 means that the decoder looks at no source token more than at another.
    """
    with evaluating(model), record_attention(model) as maps:
        model(batch.source, batch.source_lens, batch.target_in)
    even = batch.source_lens.float().log()[:, None, None]
    shares = [
        (torch.special.entr(weights).sum(dim=-1) / even).mean()
        for name, weights in maps.items()
        if "cross" in name
    ]
    return torch.stack(shares).mean().item()


def entropy_given(contexts: Sequence[Hashable], tokens: Sequence[Hashable]) -> float:
    """Mean loss in nats of the best model that sees each token's context alone, on these very tokens."""
    row_of: dict[Hashable, int] = {}
    column_of: dict[Hashable, int] = {}
    rows = torch.tensor([row_of.setdefault(context, len(row_of)) for context in contexts])
    columns = torch.tensor([column_of.setdefault(token, len(column_of)) for token in tokens])
    counts = torch.zeros(len(row_of), len(column_of))
    counts.index_put_((rows, columns), torch.ones(len(rows)), accumulate=True)
    probs: Tensor = counts[rows, columns] / counts.sum(dim=1)[rows]
    return -probs.log().mean().item()
