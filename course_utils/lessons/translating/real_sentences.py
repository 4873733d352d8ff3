"""Transformers on real sentences, in whole words and in subwords: two stored runs, and their curves.

The further page of *Translating* shows them. The English–French pairs are Tatoeba's, from the archive at
manythings.org/anki (CC BY 2.0 FR); `data.registry` says how it is found. Both runs have the same pairs, the same
network, the same number of steps and one seed; they differ in what a token is.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import nn

from course_utils.data.prose import Subwords
from course_utils.data.text import UNK, Vocabulary
from course_utils.data.translation import Pair, load_tatoeba, split_by_source
from course_utils.decoding import translate
from course_utils.figures import COLORS, Picture, subplots
from course_utils.kit.runs import StoredRun, stored, stored_run
from course_utils.lessons.sequence_to_sequence.nearest_sentence import nearest_translations
from course_utils.lessons.sequence_to_sequence.small_world import Vocabularies
from course_utils.lessons.sequence_to_sequence.small_world import vocabularies_of as known_words
from course_utils.lessons.sequence_to_sequence.translator_training import (
    curves_of,
    train_translator,
)
from course_utils.metrics import bleu
from course_utils.models.transformer import Transformer
from course_utils.runtime import seed_everything
from course_utils.train.schedules import warmup_decay

MAX_TOKENS = 10
"""The largest number of tokens on either side, punctuation included."""
TRAIN = 40_000
"""Number of training pairs."""
HELD_OUT = 500
"""Number of source sentences for validation, and for the test."""
SHAPE = {"embed_dim": 192, "ffn_dim": 384, "num_heads": 4, "num_layers": 2, "dropout": 0.2}
EPOCHS, BATCH, RATE, LABEL_SMOOTHING = 8, 128, 2e-3, 0.1
MIN_FREQ = 2
"""Number of times that a word has to be in the training pairs; rarer ones become `<unk>`."""
PIECES = 4000
"""Number of subwords of each language."""
SHOWN = 12
"""Number of test sentences whose translations are stored."""


@dataclass(frozen=True)
class Split:
    """Pairs for training, validation and test, which have no source sentence in common.

    Attributes:
        train: the training pairs.
        validation, test: one pair for each held-out source.
        references: held-out source → all its translations.
    """

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]
    references: dict[tuple[str, ...], list[str]]


def split(
    pairs: Sequence[Pair], *, num_train: int | None = None, num_held_out: int, seed: int
) -> Split:
    """Split of pairs by source sentence, after pairs that come twice were dropped.

    Args:
        pairs: all pairs.
        num_train: how many of the pairs that are not held out are drawn for training; all by default.
        num_held_out: number of source sentences for validation, and for the test.
        seed: of the choice.

    Raises:
        ValueError: there are fewer pairs than are asked for.
    """
    pairs = list(dict.fromkeys(pairs))
    rest, *held_out = split_by_source(pairs, [num_held_out, num_held_out], seed=seed)
    if num_train is not None and num_train > len(rest):
        raise ValueError(f"{num_train} training pairs are asked for; {len(rest)} are there")
    references: dict[tuple[str, ...], list[str]] = {}
    for pair in (pair for group in held_out for pair in group):
        references.setdefault(pair.source, []).append(" ".join(pair.target))
    train = rest if num_train is None else random.Random(seed).sample(rest, num_train)
    one_each = ([*{pair.source: pair for pair in reversed(group)}.values()] for group in held_out)
    return Split(train, *one_each, references)


class Pieces(Vocabulary):
    """A vocabulary of subwords, with the methods that loaders and decoders call.

    Args:
        subwords: the subwords.

    Attributes:
        tokens: all subwords, by id.
        merges: the pairs that were merged, in their order.
    """

    def __init__(self, subwords: Subwords):
        self._subwords, self.tokens = subwords, subwords.tokens
        self.merges = subwords.merges
        self._of_word = cache(subwords.encode)

    @classmethod
    def learned(cls, sentences: Iterable[Sequence[str]], *, size: int) -> "Pieces":
        """The vocabulary of `size` subwords learned from tokenized sentences."""
        return cls(Subwords((" ".join(sentence) for sentence in sentences), size=size))

    def __contains__(self, token: str) -> bool:
        return UNK not in self._subwords.encode(token)

    def __repr__(self) -> str:
        return f"Pieces({len(self)} tokens)"

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """The ids of the subwords of all words."""
        return [index for token in tokens for index in self._of_word(token)]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The whole words that ids spell."""
        return self._subwords.decode(ids).split()

    def pieces(self, text: str) -> list[str]:
        """The subwords of a text, as texts."""
        return self._subwords.pieces(text)


def vocabularies_of(train: Sequence[Pair], tokens: str) -> Vocabularies:
    """English and French vocabulary of the training pairs; `tokens` is "words" or "subwords"."""
    if tokens == "words":
        return known_words(train, min_freq=MIN_FREQ)
    sides = [pair.source for pair in train], [pair.target for pair in train]
    return Pieces.learned(sides[0], size=PIECES), Pieces.learned(sides[1], size=PIECES)


def new_transformer(vocabularies: Vocabularies, seed: int) -> Transformer:
    """An untrained Transformer whose output layer has the weights of the French embedding."""
    seed_everything(seed)
    model = Transformer(*map(len, vocabularies), **SHAPE)
    model.output.weight = model.target_embedding.weight
    return model


def forbid_unknown(model: Transformer) -> None:
    """Set the bias of `<unk>` to −∞, so that no translation has it."""
    with torch.no_grad():
        model.output.bias[UNK] = -torch.inf


@stored(
    cases=[{"tokens": tokens, "seed": 0} for tokens in ("words", "subwords")],
    times=("training_seconds",),
)
def real_transformer(*, tokens: str, seed: int, checkpoint: Path | None = None) -> dict:
    """Losses and BLEU of a Transformer by epoch, the scores of its best epoch, and some translations.

    The epoch is chosen by the validation loss. The test is scored once, greedily and with a beam: against the
    first translation of each sentence in the archive, and against all of them.
    """
    data = split(
        load_tatoeba("fr", max_tokens=MAX_TOKENS), num_train=TRAIN, num_held_out=HELD_OUT, seed=seed
    )
    vocabularies = vocabularies_of(data.train, tokens)
    model = new_transformer(vocabularies, seed)
    rows = train_translator(
        model,
        data.train,
        data.validation,
        vocabularies,
        batch=BATCH,
        epochs=EPOCHS,
        lr=RATE,
        schedule=lambda steps: warmup_decay(EPOCHS * steps // 8, EPOCHS * steps),
        keep_best=True,
        label_smoothing=LABEL_SMOOTHING,
        measure=lambda model: {"bleu": bleu(*_translations(model, data.validation, vocabularies))},
        seed=seed,
        checkpoint=checkpoint,
        quiet=True,
    )
    forbid_unknown(model)
    best = min(rows, key=lambda row: row["val_loss"])
    result = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "source_size": len(vocabularies[0]),
        "target_size": len(vocabularies[1]),
        "target_tokens": sum(len(vocabularies[1].encode(pair.target)) for pair in data.train),
        "unknown": sum(not all(w in vocabularies[0] for w in p.source) for p in data.test),
        "training_seconds": sum(row["seconds"] for row in rows),
        "epoch": best["epoch"],
        "val_loss": best["val_loss"],
        "val_bleu": best["bleu"],
    }
    scores, examples = _scores(model, data, vocabularies)
    result |= scores
    curves = curves_of(rows, "train_loss", "val_loss", "bleu")
    return {"result": result, "curves": curves, "examples": examples}


def _scores(
    model: nn.Module, data: Split, vocabularies: Vocabularies
) -> tuple[dict[str, float], list[dict]]:
    """Scores of the test, greedily and with a beam, against one translation and against all; sentences."""
    translations, right = _translations(model, data.test, vocabularies)
    with_beam, _ = _translations(model, data.test, vocabularies, beam_size=4)
    every = [data.references[pair.source] for pair in data.test]
    scores = {
        "test_bleu": bleu(translations, right),
        "test_bleu_beam": bleu(with_beam, right),
        "test_bleu_all": bleu(translations, every),
        "test_bleu_beam_all": bleu(with_beam, every),
        "exact": sum(a in b for a, b in zip(with_beam, every, strict=True)) / len(every),
    }
    shown = list(zip(data.test, translations, with_beam, every, strict=True))[:SHOWN]
    return scores, [
        {"source": " ".join(pair.source), "greedy": a, "beam": b, "references": references}
        for pair, a, b, references in shown
    ]


def _translations(
    model: nn.Module, pairs: Sequence[Pair], vocabularies: Vocabularies, *, beam_size: int = 1
) -> tuple[list[str], list[str]]:
    """Translations of the pairs' sources, and the pairs' own; a source without a known word gives an empty text."""
    lines = [" ".join(pair.source) for pair in pairs]
    rows = [i for i, p in enumerate(pairs) if any(word in vocabularies[0] for word in p.source)]
    translations = [""] * len(pairs)
    decoded = translate(
        model, [lines[i] for i in rows], *vocabularies, beam_size=beam_size, max_len=4 * MAX_TOKENS
    )
    for i, line in zip(rows, decoded, strict=True):
        translations[i] = line
    return translations, [" ".join(pair.target) for pair in pairs]


@stored(cases=[{"seed": 0}])
def translation_memory(*, seed: int) -> dict:
    """Scores of a translator that copies the translation of the nearest training sentence."""
    pairs = load_tatoeba("fr", max_tokens=MAX_TOKENS)
    data = split(pairs, num_train=TRAIN, num_held_out=HELD_OUT, seed=seed)
    lines = nearest_translations(data.train, data.test)
    right = {
        "test_bleu": [" ".join(pair.target) for pair in data.test],
        "test_bleu_all": [data.references[pair.source] for pair in data.test],
    }
    examples = [
        {"source": " ".join(pair.source), "said": line}
        for pair, line in list(zip(data.test, lines, strict=True))[:SHOWN]
    ]
    result = {name: bleu(lines, texts) for name, texts in right.items()}
    return {"result": result, "examples": examples}


# What the chapter shows -------------------------------------------------------------------------


def real_run(tokens: str) -> StoredRun:
    """The stored run of `real_transformer` in "words" or in "subwords"."""
    return stored_run("translating", "real_transformer", tokens=tokens)


def show_real_curves() -> Picture:
    """Picture of the loss and the BLEU of both translators over the epochs."""
    picture, (left, right) = subplots(
        1, 2, width=8, height=3,
        alt="Training and validation loss of the translator in words, and BLEU on validation sentences of both "
        "translators, over eight epochs. BLEU rises to the end, the validation loss falls to the end.",
    )  # fmt: skip
    for tokens, color, marker in (("words", "key", "o"), ("subwords", "query", "s")):
        curves = real_run(tokens).curves
        look = {"color": COLORS[color], "marker": marker, "markersize": 4, "label": tokens}
        if tokens == "words":
            left.plot(
                *zip(*curves["train_loss"], strict=True),
                "--",
                color=COLORS[color],
                label="training",
            )
            left.plot(
                *zip(*curves["val_loss"], strict=True), color=COLORS[color], label="validation"
            )
        right.plot([e for e, _ in curves["bleu"]], [100 * b for _, b in curves["bleu"]], **look)
    left.set(xlabel="Epoch", ylabel="Loss per token", title="In words")
    right.set(xlabel="Epoch", ylabel="BLEU, greedily", title="Validation", ylim=(0, None))
    left.legend()
    right.legend(loc="lower right")
    return picture
