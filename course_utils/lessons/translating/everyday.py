"""The translator of everyday sentences, the stored model `everyday_fr`: its data, its training and its card.

It is trained on all short English–French pairs of the archive at manythings.org/anki (CC BY 2.0 FR), as in
`real_sentences`, and on the course's own everyday sentences. Both languages share one table of pieces of words, which
is the output layer, too. Visitors of a page leave marks out and write other names than Tom and Mary, so the training
sentences are changed in this way, anew in each epoch.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_utils.data.text import tokenize
from course_utils.data.translation import (
    Batch,
    Pair,
    PairLoader,
    load_sentences,
    load_tatoeba,
)
from course_utils.decoding import translate
from course_utils.files import data_path
from course_utils.kit.runs import stored
from course_utils.kit.stored_model import StoredModel
from course_utils.lessons.bahdanau_attention.live_translator import LONG, answers_of
from course_utils.lessons.sequence_to_sequence.nearest_sentence import nearest_translations
from course_utils.lessons.sequence_to_sequence.small_world import batch_of
from course_utils.lessons.sequence_to_sequence.translator_training import curves_of
from course_utils.lessons.translating.real_sentences import Pieces, Split, split
from course_utils.metrics import bleu
from course_utils.models.transformer import Transformer
from course_utils.runtime import seed_everything
from course_utils.train.history import History
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_hold_decay
from course_utils.train.trainer import Trainer

MAX_TOKENS = 10
"""The largest number of tokens on either side, punctuation included."""
PIECES = 4000
"""Number of pieces of words, of both languages together."""
HELD_OUT = 1000
"""Number of source sentences for validation, and for the test."""
SHAPE = {"embed_dim": 256, "ffn_dim": 512, "num_heads": 4, "num_layers": 2, "dropout": 0.0}
NAME = "everyday_fr"
"""The name of the stored model."""
BITS = 6
"""Bits of a number in its large matrices."""
NO_MARK, NO_APOSTROPHE, OTHER_NAME = 1 / 6, 1 / 20, 1 / 2
"""Probabilities that a training sentence is changed in each of these ways."""
FINAL_MARKS = (".", "!", "?", "…")
BATCH, RATE, WARMUP, LABEL_SMOOTHING = 80, 2e-3, 300, 0.1
STEPS = 250
"""Number of steps in an epoch."""
ROUNDS = ((12, 0.4), (14, 0.7), (40, 0.6))
"""Rounds of the learning rate: number of epochs, and in which share of them, the last ones, the rate falls."""

NAMES = {
    "tom": """
        adam alex ali andrew ben bob carlos charlie chris dan daniel david eric frank george hugo ivan jack
        jacob james jim joe john jonas julien karl kevin khaled leo louis lucas luis marc mark martin max
        michael mike mohamed nick noah oliver omar oscar pablo patrick paul pedro peter philip pierre ravi
        robert robin ryan sam sasha simon stefan steve theo thomas tim victor vincent wei william yusuf""",
    "mary": """
        alice amina amy anna aisha bella betty carla carol chloe clara claire diana ella emily emma eva fatima
        fiona grace jane jenny jessica julia karen kate katie laura lena leila lily linda lisa louise lucy maria
        marie maya mei mia monica nadia nina nora olga olivia paula rachel rita rosa ruth sally sandra sara
        sarah sofia sophie susan tina vera yasmin zoe""",
}
"""Name in the archive → names that take its place in training."""

CONTRACTIONS = [
    (r"\bwon't\b", "will not"), (r"\bcan't\b|\bcannot\b", "can not"), (r"n't\b", " not"), (r"'m\b", " am"),
    (r"'re\b", " are"), (r"'ll\b", " will"), (r"'ve\b", " have"), (r"'d\b", " would"), (r"'s\b", " is"),
]  # fmt: skip


def without_marks(source: Sequence[str]) -> str:
    """Text of a sentence without final marks and contractions: the same for sentences that differ in nothing else."""
    words = list(source)
    while len(words) > 1 and words[-1] in FINAL_MARKS:
        words.pop()
    text = " ".join(words)
    for short, long in CONTRACTIONS:
        text = re.sub(short, long, text)
    return text


def everyday_split(num_held_out: int, *, seed: int) -> Split:
    """Split of Tatoeba's short pairs, with `num_held_out` sources for validation and as many for the test.

    The other pairs and the course's own are for training, except for those that differ from a held-out sentence only by
    a final mark or a contraction.
    """
    data = split(load_tatoeba("fr", max_tokens=MAX_TOKENS), num_held_out=num_held_out, seed=seed)
    ours = [p for p in load_sentences("fr") if max(map(len, (p.source, p.target))) <= MAX_TOKENS]
    hidden = set(map(without_marks, data.references))
    pairs = dict.fromkeys([*data.train, *ours])
    return replace(data, train=[pair for pair in pairs if without_marks(pair.source) not in hidden])


def as_typed(pair: Pair, chance: random.Random) -> Pair:
    """A pair with its source as somebody might type it: perhaps with another name, no final mark, no apostrophes."""
    for name, others in NAMES.items():
        if name in pair.source and name in pair.target and chance.random() < OTHER_NAME:
            pair = renamed(pair, name, chance.choice(others.split()))
    source = list(pair.source)
    if len(source) > 1 and source[-1] in FINAL_MARKS and chance.random() < NO_MARK:
        source.pop()
    if chance.random() < NO_APOSTROPHE:
        source = [word.replace("'", "") or word for word in source]
    return Pair(tuple(source), pair.target)


def renamed(pair: Pair, old: str, new: str) -> Pair:
    """A pair with another name, or the same pair where French would change the word before it (d'anna)."""
    place = pair.target.index(old)
    before = pair.target[place - 1] if place else ""
    if new[0] in "aeiou" and (before == "de" or before.endswith("que")):
        return pair
    source, target = (
        tuple(new if word == old else word for word in words)
        for words in (pair.source, pair.target)
    )
    return Pair(source, target)


class TypedPairs(PairLoader):
    """Batches of pairs as they might be typed, drawn anew in each epoch."""

    def __init__(self, pairs: Sequence[Pair], pieces: Pieces, *, batch_size: int, seed: int):
        super().__init__(pairs, pieces, pieces, batch_size=batch_size, seed=seed)
        self._pieces = pieces

    def _batch(self, rows: list[int], generator: torch.Generator) -> Batch:
        chance = random.Random(int(torch.randint(2**31, (), generator=generator)))
        typed = [as_typed(self.pairs[row], chance) for row in rows]
        return batch_of(typed, (self._pieces, self._pieces))


class Portions:
    """The batches of a loader, `size` at a time: epochs that are shorter or longer than its passes.

    A pass goes on in the next portion, and a new one begins where it ends. After `load_state_dict` the first portion is
    the rest of the one that was interrupted.
    """

    def __init__(self, loader: PairLoader, size: int):
        self.loader, self.size = loader, size
        self.restart()

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Batch]:
        while self._handed_out < self.size:
            batch = next(self._pass, None)
            if batch is None:
                self._pass = iter(self.loader)
            else:
                self._handed_out += 1
                yield batch
        self._handed_out = 0

    def restart(self) -> None:
        """Begin anew: the next portion is the first one again."""
        self.loader.restart()
        self._begin(0)

    def state_dict(self) -> dict[str, Any]:
        """How far loader and portion have come, for a checkpoint."""
        return {"loader": self.loader.state_dict(), "handed_out": self._handed_out}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where other portions of such a loader were."""
        self.loader.load_state_dict(state["loader"])
        self._begin(state["handed_out"])

    def _begin(self, handed_out: int) -> None:
        self._handed_out = handed_out
        self._pass: Iterator[Batch] = iter(())


def new_model(pieces: Pieces, seed: int) -> Transformer:
    """An untrained Transformer whose two embeddings and output layer share one table."""
    seed_everything(seed)
    model = Transformer(len(pieces), len(pieces), **SHAPE)
    model.source_embedding.weight = model.output.weight = model.target_embedding.weight
    return model


def rate(step: int) -> float:
    """Factor of the learning rate at a step, from 1 on: in each of `ROUNDS` it rises, stays and falls to 0."""
    for epochs, falling in ROUNDS:
        steps = epochs * STEPS
        if step <= steps:
            return warmup_hold_decay(min(WARMUP, steps // 4), int(falling * steps), steps)(step)
        step -= steps
    return 0.0


def fit(
    model: nn.Module, data: Split, pieces: Pieces, seed: int, checkpoint: Path | None
) -> History:
    """Train a model, and leave it with the weights of the epoch with the best validation loss.

    Raises:
        KeyboardInterrupt: it was interrupted; `checkpoint` has what there is.
    """
    history = Trainer(
        translation_loss(label_smoothing=LABEL_SMOOTHING),
        epochs=sum(epochs for epochs, _ in ROUNDS),
        lr=RATE,
        schedule=rate,
        keep_best=True,
        seed=seed,
        checkpoint=checkpoint,
        quiet=True,
    ).fit(
        model,
        Portions(TypedPairs(data.train, pieces, batch_size=BATCH, seed=seed), STEPS),
        PairLoader(data.validation, pieces, pieces, shuffle=False),
        resume=checkpoint is not None,
    )
    if history.stopped == "interrupted":
        raise KeyboardInterrupt
    return history


def scores(lines: Sequence[str], pairs: Sequence[Pair], data: Split) -> dict[str, float]:
    """BLEU of translations against all references, and the share of them that is a reference to the letter."""
    every = [data.references[pair.source] for pair in pairs]
    exact = sum(a in b for a, b in zip(lines, every, strict=True)) / len(lines)
    return {"bleu": bleu(lines, every), "exact": exact}


def published(
    model: nn.Module, data: Split, pieces: Pieces
) -> tuple[StoredModel, dict[str, Any], dict[str, float]]:
    """The model with its weights rounded, its card, and its scores.

    The scores are BLEU and exact share on the test part, of the rounded model and of looking up the nearest sentence.
    """
    sizes = {"source_size": len(pieces), "target_size": len(pieces)}
    vocabularies = {
        "tokens": pieces.tokens,
        "merges": [" ".join(merge) for merge in pieces.merges],
        "words": sorted({word for pair in data.train for word in pair.source}),
    }
    stored_model = StoredModel.of(model, {**sizes, **SHAPE}, vocabularies, bits=BITS)
    rounded = stored_model.for_page().network(Transformer)
    asked = [" ".join(pair.source) for pair in data.test]
    lines = translate(rounded, asked, pieces, pieces, max_len=4 * MAX_TOKENS)
    memory = nearest_translations(data.train, data.test)
    result = {f"test_{name}": value for name, value in scores(lines, data.test, data).items()}
    result |= {f"looked_up_{k}": value for k, value in scores(memory, data.test, data).items()}
    examples = examples_of(lines, data)
    card = {
        "pieces": True,
        "examples": examples,
        "score": [round(result["test_exact"] * len(lines)), len(lines)],
        "answers": answers_of(rounded, [example["sentence"] for example in examples], pieces),
        "read": len(data.train),
        "visitors": asked_by_visitors(rounded, data, pieces),
    }
    return stored_model, card | {name: round(value, 4) for name, value in result.items()}, result


def asked_by_visitors(model: nn.Module, data: Split, pieces: Pieces) -> list[dict]:
    """Sentences of visitors, each with its translation ("said") and whether it was trained on ("read")."""
    lines = data_path("translation/visitors.txt").read_text(encoding="utf-8").splitlines()
    sources = {without_marks(pair.source) for pair in data.train}
    return [
        {"sentence": line, "said": translation, "read": without_marks(tokenize(line)) in sources}
        for line, translation in zip(lines, translate(model, lines, pieces, pieces), strict=True)
    ]


def examples_of(translations: Sequence[str], data: Split) -> list[dict]:
    """Two test sentences whose translation is one of the references, and one whose translation is not."""
    every = [
        {
            "sentence": " ".join(pair.source),
            "said": line,
            "right": line if line in references else references[0],
        }
        for pair, line in zip(data.test, translations, strict=True)
        if len(pair.source) >= LONG and (references := data.references[pair.source])
    ]
    good = [each for each in every if each["said"] == each["right"]]
    bad = [each for each in every if each["said"] != each["right"]]
    return [*good[:2], *bad[:1]]


@stored(cases=[{"seed": 0}], times=("training_seconds",), saves={NAME: {}})
def everyday(*, seed: int, checkpoint: Path | None = None) -> dict:
    """Training of the translator of everyday sentences, which is saved as the live model: curves and scores."""
    data = everyday_split(HELD_OUT, seed=seed)
    sides = (side for pair in data.train for side in (pair.source, pair.target))
    pieces = Pieces.learned(sides, size=PIECES)
    model = new_model(pieces, seed)
    rows = fit(model, data, pieces, seed, checkpoint).rows
    best = min(rows, key=lambda row: row["val_loss"])
    stored_model, card, scored = published(model, data, pieces)
    result = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "pieces": len(pieces),
        "pairs": len(data.train),
        "training_seconds": sum(row["seconds"] for row in rows),
        "step": best["step"],
        "val_loss": best["val_loss"],
    } | scored
    curves = curves_of(rows, "train_loss", "val_loss", over="step")
    return {
        "result": result,
        "curves": curves,
        "models": {NAME: stored_model},
        "cards": {NAME: card},
    }
