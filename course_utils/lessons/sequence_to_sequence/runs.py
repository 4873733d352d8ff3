"""The trainings of *Sequence to sequence* that are made beforehand: `make runs CHAPTER=05`.

Copiers of random strings, through a vector or by looking back; and the chapter's translator on the small world. Those
of real sentences are in `real_translation`.
"""

from collections.abc import Sequence
from operator import eq
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.data.translation import Batch, Pair
from course_utils.kit.comparison import grid
from course_utils.kit.runs import stored
from course_utils.lessons.sequence_to_sequence.small_world import SmallWorld, target_sentences
from course_utils.lessons.sequence_to_sequence.strings import (
    VOCABULARY,
    Strings,
    Watched,
    shares_copied,
)
from course_utils.metrics import bleu
from course_utils.models.recurrent import AttentionTranslator
from course_utils.runtime import evaluating, seed_everything
from course_utils.train.losses import Loss

LENGTHS = {"up to 5": (1, 5), "6": (6, 6), "7": (7, 7), "8 to 10": (8, 10)}
"""Groups of source sentences by their number of tokens: the fewest and the most."""

SEEDS = range(3)
WIDTHS = [{"hidden_dim": width, "passes": 24, "source": True} for width in (96, 192)]
BLIND = {"hidden_dim": 96, "passes": 8, "source": False}
"""A translator that does not see the source: a language model."""

ROOMS = [{"room": 128}, {"room": 0}]
"""How many numbers the context has: as many as the encoder's two last states, or 0 for attention."""


@stored(
    cases=grid(ROOMS, (0.003, 0.01, 0.03), SEEDS),
    chapter=["Translator", "masked_loss", "train"],
)
def copier(chapter: SimpleNamespace, *, room: int, rate: float, seed: int) -> dict[str, dict]:
    """The share of whole strings that a copier copies after four passes of 100 batches, by length."""
    model, strings = _new_copier(chapter, room, seed), Strings(seed, batches=100)
    held_out = list(Strings(1000, batches=20))
    history = chapter.train(model, strings, held_out, _loss_of(chapter), 4, rate)
    shares = {f"right, {length}": share for length, share in shares_copied(model).items()}
    return {"result": {"val_loss": history[-1][1]} | shares}


LONG = {"vector": {"room": 128, "passes": 96}, "look back": {"room": 0, "passes": 12}}
"""Long trainings: far longer for the vector than for the decoder that looks back."""
LOOKS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 80, 88, 96)
"""Numbers of epochs after which a copier of a long training is measured."""


@stored(
    cases=[
        *grid([LONG["vector"]], (0.00125, 0.0025, 0.005, 0.01), SEEDS),
        *grid([LONG["look back"]], (0.003, 0.01, 0.03), SEEDS),
        *grid([{"room": 16, "passes": 96}], (0.005,), SEEDS),
    ],
    chapter=["Translator", "masked_loss", "train"],
)
def learning_to_copy(
    chapter: SimpleNamespace, *, room: int, passes: int, rate: float, seed: int
) -> dict[str, Any]:
    """As `copier`, for longer, and measured after the passes `LOOKS`.

    `examples` has the copies of the beginnings of the chapter's first string, with seed 0.
    """
    model = _new_copier(chapter, room, seed)
    strings = Watched(model, seed, looks=LOOKS, batches=100)
    held_out = list(Strings(1000, batches=20))
    history = chapter.train(model, strings, held_out, _loss_of(chapter), passes, rate)
    curves = {f"right, {length}": points for length, points in strings.shares.items()}
    ends = {name: points[-1][1] for name, points in curves.items()}
    return {
        "result": {"val_loss": history[-1][1]} | ends,
        "curves": curves,
        "examples": strings.copies if seed == 0 else [],
    }


def _new_copier(chapter: SimpleNamespace, room: int, seed: int) -> nn.Module:
    """An untrained copier, through a vector of `room` numbers; if that is 0, one that looks back."""
    seed_everything(seed)
    sizes = {"embed_dim": 32, "hidden_dim": 64}
    if room:
        return chapter.Translator(VOCABULARY, VOCABULARY, **sizes, room=room)
    return AttentionTranslator(VOCABULARY, VOCABULARY, **sizes, dropout=0.0)


@stored(
    cases=[*grid([BLIND], (0.009,), SEEDS), *grid(WIDTHS, (0.002, 0.004, 0.009), SEEDS)],
    chapter=["Translator", "masked_loss", "train", "world"],
)
def fixed_context(
    chapter: SimpleNamespace, *, hidden_dim: int, passes: int, source: bool, rate: float, seed: int
) -> dict[str, dict]:
    """Losses and exact translations of the chapter's translator, by sentence length, on what it read and on the test.

    `source` is whether it sees the source at all.
    """
    world: SmallWorld = chapter.world
    seed_everything(seed)
    model = chapter.Translator(
        len(world.source_vocab), len(world.target_vocab), hidden_dim=hidden_dim
    )
    if not source:
        _hide_source(model)
    train, val = world.loader(world.train, seed=seed), world.loader(world.val, shuffle=False)
    history = chapter.train(model, train, list(val), _loss_of(chapter), passes, rate)
    grammar = [pair for pair in world.train if pair.alignment]
    parts = {"read": _first_of_each_length(grammar), "test": world.test}
    result = {"val_loss": _mean_loss(model, world, world.val)}
    for name, pairs in parts.items():
        scores = _scores_by_length(model, world, pairs)
        result |= {f"{name}_{score}": value for score, value in scores.items()}
    curves: dict[str, list] = {"train_loss": [], "val_loss": []}
    for passes_so_far, (train_loss, val_loss) in enumerate(history, start=1):
        curves["train_loss"].append([passes_so_far, round(train_loss, 4)])
        curves["val_loss"].append([passes_so_far, round(val_loss, 4)])
    return {"result": result, "curves": curves}


def _scores_by_length(
    model: nn.Module, world: SmallWorld, pairs: Sequence[Pair]
) -> dict[str, float]:
    """BLEU and the share of exact translations, and this share and the loss for each of `LENGTHS`."""
    translations, right = world.say(model, pairs), target_sentences(pairs)
    exact = list(map(eq, translations, right))
    scores = {"bleu": bleu(translations, right), "exact": sum(exact) / len(exact)}
    for length, (low, high) in LENGTHS.items():
        inside = [index for index, p in enumerate(pairs) if low <= len(p.source) <= high]
        scores[f"exact, {length}"] = sum(exact[index] for index in inside) / len(inside)
        scores[f"loss, {length}"] = _mean_loss(model, world, [pairs[index] for index in inside])
    return scores


def _loss_of(chapter: SimpleNamespace) -> Loss:
    """The chapter's loss of a batch: its sum over the real tokens, and their number."""

    def loss(model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
        logits = model(batch.source, batch.source_lens, batch.target_in)
        mean = chapter.masked_loss(logits, batch.target_out, batch.target_lens)
        return mean * batch.num_tokens, batch.num_tokens

    return loss


def _hide_source(model: nn.Module) -> None:
    """Give the decoder zeros in the place of each context: what is left is a language model."""
    encode = model.start

    def start(source: Tensor, source_lens: Tensor) -> dict[str, Tensor]:
        state = encode(source, source_lens)
        return {name: torch.zeros_like(value) for name, value in state.items()}

    model.start = start


def _first_of_each_length(pairs: Sequence[Pair]) -> list[Pair]:
    """The first 100 pairs of each of `LENGTHS`."""
    chosen: list[Pair] = []
    for low, high in LENGTHS.values():
        chosen += [pair for pair in pairs if low <= len(pair.source) <= high][:100]
    return chosen


@torch.no_grad()
def _mean_loss(model: nn.Module, world: SmallWorld, pairs: Sequence[Pair]) -> float:
    """Mean cross-entropy per target token, `<eos>` included."""
    total, count = 0.0, 0
    with evaluating(model):
        for batch in world.loader(list(pairs), shuffle=False):
            logits = model(batch.source, batch.source_lens, batch.target_in)
            log_p = logits.log_softmax(dim=-1).gather(2, batch.target_out[..., None])[..., 0]
            real = torch.arange(log_p.shape[1]) < batch.target_lens[:, None]
            total, count = total - log_p[real].sum().item(), count + int(real.sum())
    return total / count
