"""A translator at the size of a lecture, on real sentences: what `make gpu` trains for several chapters."""

from collections.abc import Callable, Sequence
from pathlib import Path

from torch import nn

from course_utils.data.text import Vocabulary
from course_utils.data.translation import Pair, PairLoader, load_tatoeba, split_by_source
from course_utils.decoding import translate
from course_utils.metrics import bleu
from course_utils.runtime import best_device, placed, seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import Schedule
from course_utils.train.trainer import Trainer

HELD_OUT = 500  # source sentences


def learned(
    language: str,
    new_model: Callable[[int, int], nn.Module],
    schedule: Callable[[int], Schedule],
    *,
    pairs: int,
    max_tokens: int,
    epochs: int,
    batch: int,
    lr: float,
    seed: int,
    checkpoint: Path | None,
    label_smoothing: float = 0.0,
) -> dict:
    """Train on pairs of Tatoeba from English; BLEU by source sentence, of some that were read and of those held out.

    Args:
        language: "fr" or "es".
        new_model: sizes of both vocabularies → the translator.
        schedule: steps of an epoch → the schedule of the rate.
        pairs, max_tokens: so many pairs, both sides of at most so many tokens.
        epochs, batch, lr, label_smoothing, seed, checkpoint: as the Trainer has them.
    """
    known = load_tatoeba(language, max_tokens=max_tokens)
    train, held_out = split_by_source(known, [min(HELD_OUT, len(known) // 10)])
    train = train[:pairs]
    vocabularies = (
        Vocabulary(pair.source for pair in train),
        Vocabulary(pair.target for pair in train),
    )
    seed_everything(seed)
    model = new_model(*map(len, vocabularies))
    loader = PairLoader(train, *vocabularies, batch_size=batch, seed=seed)
    history = Trainer(
        translation_loss(label_smoothing=label_smoothing),
        epochs=epochs,
        lr=lr,
        schedule=schedule(len(loader)),
        seed=seed,
        checkpoint=checkpoint,
    ).fit(
        model,
        loader,
        PairLoader(held_out, *vocabularies, batch_size=batch, shuffle=False),
        resume=checkpoint is not None,
    )
    with placed(model, best_device()):
        result = {
            "seen_bleu": _score(model, train[:HELD_OUT], vocabularies),
            "held_out_bleu": _score(model, held_out, vocabularies),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "pairs": len(train),
        }
    return {
        "result": {name: round(value, 4) for name, value in result.items()},
        "curves": {
            name: [[row["epoch"], round(row[name], 4)] for row in history.rows]
            for name in ("train_loss", "val_loss")
        },
    }


def _score(
    model: nn.Module, pairs: Sequence[Pair], vocabularies: tuple[Vocabulary, Vocabulary]
) -> float:
    """BLEU of greedy translations of the sources that have a known word, against all translations given."""
    references: dict[str, list[str]] = {}
    for pair in pairs:
        if any(word in vocabularies[0] for word in pair.source):
            references.setdefault(" ".join(pair.source), []).append(" ".join(pair.target))
    said = translate(model, list(references), *vocabularies, max_len=20)
    return bleu(said, list(references.values()))
