"""Training of translators on sentence pairs, for stored runs of this chapter and of later ones.

`train_translator` trains any translator on any pairs; `train_on_tatoeba` does the whole experiment on the sentences of
Tatoeba, at the size of a lecture, for `make gpu`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from course_utils.data.translation import Pair, PairLoader, load_tatoeba, split_by_source
from course_utils.lessons.sequence_to_sequence.small_world import Vocabularies, vocabularies_of
from course_utils.lessons.sequence_to_sequence.translator_scores import (
    bleu_by_source,
    readable_pairs,
    translated_examples,
)
from course_utils.runtime import best_device, placed, seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import Schedule
from course_utils.train.trainer import Trainer

MAX_TOKENS = 10
"""The most tokens of a sentence, punctuation included."""
BATCH = 128
"""Pairs in a training step."""


def train_translator(
    model: nn.Module,
    train: Sequence[Pair],
    held_out: Sequence[Pair],
    vocabularies: Vocabularies,
    *,
    batch: int,
    schedule: Callable[[int], Schedule],
    seed: int,
    checkpoint: Path | None,
    label_smoothing: float = 0.0,
    **options: Any,
) -> list[dict[str, Any]]:
    """Train a translator on pairs, from its checkpoint on if there is one; the history has a row for each epoch.

    Args:
        model: the translator.
        train, held_out: the pairs of the training, and those of the validation loss.
        vocabularies: of the source, and of the target.
        batch: pairs in a training step.
        schedule: number of steps of an epoch → schedule of the learning rate.
        seed, checkpoint, options: as in `Trainer`.
        label_smoothing: as in `translation_loss`.
    """
    loader = PairLoader(train, *vocabularies, batch_size=batch, seed=seed)
    objective = translation_loss(label_smoothing=label_smoothing)
    trainer = Trainer(
        objective, schedule=schedule(len(loader)), seed=seed, checkpoint=checkpoint, **options
    )
    validation = PairLoader(held_out, *vocabularies, shuffle=False)
    return trainer.fit(model, loader, validation, resume=checkpoint is not None).rows


def curves_of(rows: Sequence[Mapping], *names: str, over: str = "epoch") -> dict[str, list]:
    """The curves of a stored run, name → points [epoch, value], from the rows of a history."""
    return {name: [[row[over], round(row[name], 4)] for row in rows] for name in names}


def train_on_tatoeba(
    language: str,
    new_model: Callable[[int, int], nn.Module],
    *,
    pairs: int,
    seed: int,
    max_tokens: int = MAX_TOKENS,
    words_only: bool = False,
    at_least: int = 0,
    batch: int = BATCH,
    **options: Any,
) -> dict[str, Any]:
    """Train a translator on English pairs of Tatoeba, and measure it on up to 500 pairs read and 500 held out.

    The result has BLEU by source sentence, on what was read and on what was held out; `examples` has twenty
    translations of each.

    Args:
        language: "fr" or "es".
        new_model: sizes of both vocabularies → the translator.
        pairs: the most pairs for training.
        seed: of the weights, and as in `train_translator`.
        max_tokens: the most tokens of a sentence, in both languages.
        words_only: whether punctuation is dropped before the tokens are counted.
        at_least: the fewest pairs for training.
        batch, options: as in `train_translator`.

    Raises:
        ValueError: fewer than `at_least` pairs are left for training.
    """
    read = pairs_of_words if words_only else load_tatoeba
    corpus = read(language, max_tokens=max_tokens)
    train, held_out = split_by_source(corpus, [min(500, len(corpus) // 10)])
    train = train[:pairs]
    if len(train) < at_least:
        raise ValueError(
            f"{len(train):,} pairs of at most {max_tokens} tokens are left for training, expected at least "
            f"{at_least:,}; is the archive complete?"
        )
    vocabularies = vocabularies_of(train)
    seed_everything(seed)
    model = new_model(*map(len, vocabularies))
    rows = train_translator(model, train, held_out, vocabularies, batch=batch, seed=seed, **options)
    seen, unseen = (readable_pairs(part, vocabularies) for part in (train[:500], held_out))
    with placed(model, best_device()):
        result = {
            "seen_bleu": bleu_by_source(model, seen, vocabularies),
            "held_out_bleu": bleu_by_source(model, unseen, vocabularies),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "pairs": len(train),
        }
        examples = []
        for part, some in (("seen", seen), ("not seen", unseen)):
            for example in translated_examples(model, some, vocabularies, 20):
                examples.append({"part": part} | example)
    return {
        "result": result,
        "curves": curves_of(rows, "train_loss", "val_loss"),
        "examples": examples,
    }


def pairs_of_words(language: str, *, max_tokens: int) -> list[Pair]:
    """The pairs of Tatoeba without punctuation, if both sides then have from one to `max_tokens` words."""
    pairs = [without_punctuation(pair) for pair in load_tatoeba(language, max_tokens=None)]
    lengths = range(1, max_tokens + 1)
    return [pair for pair in pairs if len(pair.source) in lengths and len(pair.target) in lengths]


def without_punctuation(pair: Pair) -> Pair:
    """The pair without the tokens that are punctuation."""
    return Pair(_words(pair.source), _words(pair.target))


def _words(tokens: Sequence[str]) -> tuple[str, ...]:
    """The tokens that have a letter or a digit."""
    return tuple(token for token in tokens if any(letter.isalnum() for letter in token))
