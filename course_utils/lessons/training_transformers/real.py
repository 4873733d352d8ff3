"""Both orders of norm on real sentences, trained beforehand.

English–Spanish pairs of Tatoeba, from the archive at manythings.org/anki (CC BY 2.0 FR); `data.registry` says
how it is found. The runs differ in the place of the norm; with the norm before, both halves end with one more.
One seed each: a small training. Their seconds are no comparison: other work on the same cores slowed them unequally.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from course_utils.data.text import Vocabulary
from course_utils.data.translation import Pair, PairLoader, load_tatoeba, split_by_source
from course_utils.decoding import translate
from course_utils.figures import Picture
from course_utils.kit.runs import StoredRun, cpu_meter, stored, stored_runs
from course_utils.lessons.sequence_to_sequence.real import (
    Vocabularies,
    show_by_epoch,
    vocabularies_of,
)
from course_utils.metrics import bleu
from course_utils.models.transformer import Transformer
from course_utils.runtime import seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

MAX_TOKENS = 8  # of either side, punctuation included
TRAIN = 20_000  # pairs
HELD_OUT = 500  # source sentences for validation, and as many for the test
SHAPE = {"embed_dim": 256, "num_heads": 4, "ffn_dim": 512, "num_layers": 4, "dropout": 0.1}
EPOCHS, BATCH, RATE, WARMUP = 6, 128, 1e-3, 200
SHOWN = 6  # sentences of the test whose translations are kept


@stored(cases=[{"norm_first": norm_first, "seed": 0} for norm_first in (False, True)])
def real_spanish(*, norm_first: bool, seed: int, checkpoint: Path | None = None) -> dict:
    """English to Spanish: losses and BLEU by epoch, scores of the last epoch, and sentences to look at.

    Nothing is chosen by a score; the rate falls to 0 at the end, and the last weights are kept.
    """
    train, validation, test = real_pairs()
    vocabularies = vocabularies_of(train)
    seed_everything(seed)
    model = Transformer(*map(len, vocabularies), norm_first=norm_first, **SHAPE)
    loader, since = PairLoader(train, *vocabularies, batch_size=BATCH, seed=seed), cpu_meter()
    history = Trainer(
        translation_loss(),
        epochs=EPOCHS,
        lr=RATE,
        schedule=warmup_decay(WARMUP, EPOCHS * len(loader)),
        measure=lambda model: {"bleu": score(model, validation, vocabularies), "cpu": since()},
        seed=seed,
        checkpoint=checkpoint,
        quiet=True,
    ).fit(
        model,
        loader,
        PairLoader(validation, *vocabularies, shuffle=False),
        resume=checkpoint is not None,
    )
    last = history.rows[-1]
    result = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "steps": last["step"],
        "train_loss": last["train_loss"],
        "val_loss": last["val_loss"],
        "val_bleu": last["bleu"],
        "seen_bleu": score(model, train[:HELD_OUT], vocabularies),
        "test_bleu": score(model, test, vocabularies),
        "cpu_seconds": sum(row["cpu"] for row in history.rows),
    }
    return {
        "result": {name: round(value, 4) for name, value in result.items()},
        "curves": {
            name: [[row["epoch"], round(row[name], 4)] for row in history.rows]
            for name in ("train_loss", "val_loss", "bleu")
        },
        "examples": examples(model, test, vocabularies),
    }


def real_pairs() -> list[list[Pair]]:
    """Pairs for training, validation and test; no English sentence stands in two parts."""
    pairs = load_tatoeba("es", max_tokens=MAX_TOKENS)
    train, validation, test = split_by_source(pairs, (HELD_OUT, HELD_OUT))
    return [train[:TRAIN], validation, test]


def references_of(pairs: Sequence[Pair], vocabulary: Vocabulary) -> dict[str, list[str]]:
    """Each English sentence that has a known word, with all its Spanish translations."""
    references: dict[str, list[str]] = {}
    for pair in pairs:
        if any(word in vocabulary for word in pair.source):
            references.setdefault(" ".join(pair.source), []).append(" ".join(pair.target))
    return references


def score(model: nn.Module, pairs: Sequence[Pair], vocabularies: Vocabularies) -> float:
    """BLEU of greedy translations; each source sentence is translated once."""
    references = references_of(pairs, vocabularies[0])
    said = translate(model, list(references), *vocabularies, max_len=2 * MAX_TOKENS)
    return bleu(said, list(references.values()))


def examples(
    model: nn.Module, test: Sequence[Pair], vocabularies: Vocabularies
) -> list[dict[str, Any]]:
    """The first sentences of the test whose words are all known, whatever becomes of them."""
    known = [pair for pair in test if all(word in vocabularies[0] for word in pair.source)]
    references = references_of(known, vocabularies[0])
    sources = list(references)[:SHOWN]
    said = translate(model, sources, *vocabularies, max_len=2 * MAX_TOKENS)
    return [
        {"source": source, "said": words, "references": references[source]}
        for source, words in zip(sources, said, strict=True)
    ]


# What the chapter shows -------------------------------------------------------------------------


def real_run(*, norm_first: bool) -> StoredRun:
    """The stored run of one of the two orders."""
    (run,) = stored_runs("training_transformers", "real_spanish", norm_first=norm_first)
    return run


def show_real_curves() -> Picture:
    """Loss and BLEU of both orders by epoch."""
    return show_by_epoch(
        {"norm after": real_run(norm_first=False), "norm before": real_run(norm_first=True)}
    )
