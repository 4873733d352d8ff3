"""Translators of real sentences, trained beforehand: one with a fixed context, and one with attention.

English–French pairs of Tatoeba, from the archive at manythings.org/anki (CC BY 2.0 FR); `data.registry` says
how it is found. The two stored runs differ in nothing but the class of the model. One seed each, and stopped while
they still improved: a small training. Their seconds are no comparison: other work on the same cores slowed them
unequally. *Sequence to sequence* and *Bahdanau attention* show the runs on their *Going further* pages.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from course_utils.data.translation import Pair, load_tatoeba, split_by_source
from course_utils.figures import COLORS, Picture, heatmap, subplots
from course_utils.kit.runs import StoredRun, stored, stored_run
from course_utils.lessons.sequence_to_sequence.small_world import Vocabularies, vocabularies_of
from course_utils.lessons.sequence_to_sequence.translator_scores import (
    bleu_by_source,
    translated_examples,
    word_maps,
)
from course_utils.lessons.sequence_to_sequence.translator_training import (
    BATCH,
    MAX_TOKENS,
    curves_of,
    train_translator,
)
from course_utils.models.recurrent import AttentionTranslator, RecurrentTranslator
from course_utils.runtime import seed_everything
from course_utils.train.schedules import warmup_decay

TRAIN = 25_000
"""Pairs for training."""
HELD_OUT = 1000
"""Source sentences for validation, and as many for the test."""
MIN_FREQ = 3
"""Words that the training pairs have less often become `<unk>`."""
SHAPE = {"embed_dim": 256, "hidden_dim": 256, "num_layers": 2, "dropout": 0.2}
EPOCHS = 4
RATE = 2e-3
WARMUP = 200
"""Steps in which the rate rises."""
EPOCHS_OF_THE_SCHEDULE = 6
"""Epochs after which the rate would have fallen to 0."""
SHORT = 5
"""The most source tokens of a short sentence."""
LONG = 8
"""The fewest source tokens of a long sentence."""
SHOWN = 4
"""Long sentences of the test whose translations are kept."""


@stored(cases=[{"attention": attention, "seed": 0} for attention in (False, True)])
def real_translation(
    *, attention: bool, seed: int, checkpoint: Path | None = None
) -> dict[str, Any]:
    """English to French: losses and BLEU by epoch, scores of the best epoch, and sentences to look at.

    The epoch is chosen by the validation loss; `test_…` scores are of sentences that chose nothing.
    """
    train, validation, test = real_pairs()
    vocabularies = vocabularies_of(train, min_freq=MIN_FREQ)
    seed_everything(seed)
    translator = AttentionTranslator if attention else RecurrentTranslator
    model = translator(*map(len, vocabularies), **SHAPE)
    rows = train_translator(
        model,
        train,
        validation,
        vocabularies,
        batch=BATCH,
        epochs=EPOCHS,
        lr=RATE,
        schedule=lambda steps: warmup_decay(WARMUP, EPOCHS_OF_THE_SCHEDULE * steps),
        keep_best=True,
        measure=lambda model: {"bleu": bleu_by_source(model, validation, vocabularies)},
        seed=seed,
        checkpoint=checkpoint,
        quiet=True,
    )
    best = min(rows, key=lambda row: row["val_loss"])
    short = [pair for pair in test if len(pair.source) <= SHORT]
    long = [pair for pair in test if len(pair.source) >= LONG]
    result = {
        "epoch": best["epoch"],
        "val_loss": best["val_loss"],
        "val_bleu": best["bleu"],
        "test_bleu": bleu_by_source(model, test, vocabularies),
        "test_bleu_short": bleu_by_source(model, short, vocabularies),
        "test_bleu_long": bleu_by_source(model, long, vocabularies),
    }
    return {
        "result": result,
        "curves": curves_of(rows, "train_loss", "val_loss", "bleu"),
        "examples": long_examples(model, test, vocabularies, maps=attention),
    }


def real_pairs() -> list[list[Pair]]:
    """Pairs for training, validation and test; no English sentence is in two of them."""
    pairs = load_tatoeba("fr", max_tokens=MAX_TOKENS)
    train, validation, test = split_by_source(pairs, (HELD_OUT, HELD_OUT))
    return [train[:TRAIN], validation, test]


def long_examples(
    model: nn.Module, test: Sequence[Pair], vocabularies: Vocabularies, *, maps: bool
) -> list[dict[str, Any]]:
    """The first long sentences of the test whose words are all known, whatever becomes of them.

    Each has its tokens as `source`, what the model says as `said`, the translations given as `references`, and with
    `maps` the attention `weights`: a row for each word said, a column for each source word.
    """
    english, long = vocabularies[0], []
    for pair in test:
        if len(pair.source) >= LONG and all(word in english for word in pair.source):
            long.append(pair)
    shown = translated_examples(model, long, vocabularies, SHOWN)
    for example in shown:
        example |= {name: example[name].split() for name in ("source", "said")}
    if maps:
        pairs = [Pair(tuple(example["source"]), tuple(example["said"])) for example in shown]
        for example, weights in zip(shown, word_maps(model, pairs, *vocabularies), strict=True):
            example["weights"] = [[round(weight, 3) for weight in row] for row in weights.tolist()]
    return shown


# What the chapters show -------------------------------------------------------------------------


def real_run(*, attention: bool) -> StoredRun:
    """The stored run of one of the two translators."""
    return stored_run("sequence_to_sequence", "real_translation", attention=attention)


def show_real_curves() -> Picture:
    """Loss and BLEU of both translators by epoch; training dashed, validation solid."""
    translators = (
        ("fixed context", real_run(attention=False), "wrong", "s"),
        ("attention", real_run(attention=True), "key", "o"),
    )
    picture, (left, right) = subplots(
        1, 2, width=8, height=3,
        alt="Training and validation loss, and BLEU, of two translators by epoch",
    )  # fmt: skip
    for label, run, color, marker in translators:
        look = {"color": COLORS[color], "marker": marker, "markersize": 4, "label": label}
        left.plot(*zip(*run.curves["train_loss"], strict=True), "--", color=COLORS[color])
        left.plot(*zip(*run.curves["val_loss"], strict=True), **look)
        right.plot(*zip(*run.curves["bleu"], strict=True), **look)
        epochs = [epoch for epoch, _ in run.curves["bleu"]]
    left.set(
        xlabel="Epoch",
        ylabel="Loss per token",
        title="Dashed: training; solid: validation",
        xticks=epochs,
    )
    right.set(xlabel="Epoch", ylabel="BLEU", title="Validation", xticks=epochs, ylim=(0, None))
    left.legend()
    return picture


def show_real_maps() -> Picture:
    """The stored maps of real sentences: the words said downwards, the English words to the right."""
    shown = real_run(attention=True).examples
    picture, axes = subplots(
        2, 2, width=8, height=7,
        alt="Attention weights of four sentences of the test set: French words said, English words read",
    )  # fmt: skip
    tall, wide = (max(len(row[side]) for row in shown) for side in ("said", "source"))
    for ax, row in zip(axes.flat, shown, strict=True):
        heatmap(
            ax, row["weights"], queries=row["said"], keys=row["source"], xlabel=None, ylabel=None
        )
        ax.set(xlim=(-0.5, wide - 0.5), ylim=(tall - 0.5, -0.5))  # cells of one size
        ax.tick_params(axis="x", rotation=45)
    axes[0, 0].set(xlabel="read", ylabel="said")
    return picture
