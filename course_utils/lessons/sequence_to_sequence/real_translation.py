"""Translators of real sentences, trained beforehand: with a fixed context, with attention, and at a lecture's size.

English–French pairs of Tatoeba, from the archive at manythings.org/anki (CC BY 2.0 FR); `data.registry` says
how it is found. The two stored runs differ in nothing but the class of the model. One seed each, and stopped while
they still improved: a small training. Their seconds are no comparison: other work on the same cores slowed them
unequally.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.data.text import UNK, Vocabulary
from course_utils.data.translation import Pair, PairLoader, load_tatoeba, split_by_source
from course_utils.decoding import translate
from course_utils.figures import COLORS, Picture, heatmap, subplots
from course_utils.kit.runs import StoredRun, stored, stored_run
from course_utils.lessons.sequence_to_sequence.small_world import (
    Vocabularies,
    batch_of,
    vocabularies_of,
)
from course_utils.metrics import bleu
from course_utils.models.recurrent import AttentionTranslator, RecurrentTranslator
from course_utils.recording import record_attention
from course_utils.runtime import best_device, evaluating, placed, seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import Schedule, warmup_decay
from course_utils.train.trainer import Trainer

MAX_TOKENS = 10  # of either side, punctuation included
TRAIN = 25_000  # pairs
HELD_OUT = 1000  # source sentences for validation, and as many for the test
MIN_FREQ = 3  # rarer words become <unk>
SHAPE = {"embed_dim": 256, "hidden_dim": 256, "num_layers": 2, "dropout": 0.2}
EPOCHS, BATCH, RATE, WARMUP = 4, 128, 2e-3, 200
FALL = 6  # epochs after which the rate would have fallen to 0
SHORT, LONG = 5, 8  # source tokens: a short sentence has at most, a long one at least so many
SHOWN = 4  # long sentences of the test whose translations are kept


@stored(cases=[{"attention": attention, "seed": 0} for attention in (False, True)])
def real_translation(*, attention: bool, seed: int, checkpoint: Path | None = None) -> dict:
    """English to French: losses and BLEU by epoch, scores of the best epoch, and sentences to look at.

    The epoch is chosen by the validation loss; `test_…` scores are of sentences that chose nothing.
    """
    train, validation, test = real_pairs()
    vocabularies = vocabularies_of(train, min_freq=MIN_FREQ)
    seed_everything(seed)
    translator = AttentionTranslator if attention else RecurrentTranslator
    model = translator(*map(len, vocabularies), **SHAPE)
    rows = fitted(
        model,
        train,
        validation,
        vocabularies,
        batch=BATCH,
        epochs=EPOCHS,
        lr=RATE,
        schedule=lambda steps: warmup_decay(WARMUP, FALL * steps),
        keep_best=True,
        measure=lambda model: {"bleu": score(model, validation, vocabularies)},
        seed=seed,
        checkpoint=checkpoint,
        quiet=True,
    )
    best = min(rows, key=lambda row: row["val_loss"])
    result = {
        "epoch": best["epoch"],
        "val_loss": best["val_loss"],
        "val_bleu": best["bleu"],
        "test_bleu": score(model, test, vocabularies),
        "test_bleu_short": score(model, [p for p in test if len(p.source) <= SHORT], vocabularies),
        "test_bleu_long": score(model, [p for p in test if len(p.source) >= LONG], vocabularies),
    }
    return {
        "result": result,
        "curves": curves_of(rows, "train_loss", "val_loss", "bleu"),
        "examples": examples(model, test, vocabularies, maps=attention),
    }


def fitted(
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
    **options,
) -> list[dict]:
    """Train a translator on pairs, from its checkpoint on if there is one: a row for each epoch.

    Args:
        model: the translator.
        train, held_out: pairs to learn from, and those of the validation loss.
        vocabularies: English, and the other language.
        batch: pairs of a training step.
        schedule: steps of an epoch → the schedule of the rate.
        seed, checkpoint, options: as the Trainer has them.
        label_smoothing: as `translation_loss` has it.
    """
    loader = PairLoader(train, *vocabularies, batch_size=batch, seed=seed)
    objective = translation_loss(label_smoothing=label_smoothing)
    trainer = Trainer(
        objective, schedule=schedule(len(loader)), seed=seed, checkpoint=checkpoint, **options
    )
    validation = PairLoader(held_out, *vocabularies, shuffle=False)
    return trainer.fit(model, loader, validation, resume=checkpoint is not None).rows


def curves_of(rows: Sequence[Mapping], *names: str, over: str = "epoch") -> dict[str, list]:
    """Points [epoch, value] of a history's rows, by name, as a stored run keeps them."""
    return {name: [[row[over], round(row[name], 4)] for row in rows] for name in names}


def real_pairs() -> list[list[Pair]]:
    """Pairs for training, validation and test; no English sentence stands in two parts."""
    pairs = load_tatoeba("fr", max_tokens=MAX_TOKENS)
    train, validation, test = split_by_source(pairs, (HELD_OUT, HELD_OUT))
    return [train[:TRAIN], validation, test]


def references_of(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """Each English sentence, with all its translations."""
    references: dict[str, list[str]] = {}
    for pair in pairs:
        references.setdefault(" ".join(pair.source), []).append(" ".join(pair.target))
    return references


def readable(pairs: Sequence[Pair], vocabularies: Vocabularies) -> list[Pair]:
    """The pairs whose English has a known word."""
    return [pair for pair in pairs if any(word in vocabularies[0] for word in pair.source)]


def score(
    model: nn.Module,
    pairs: Sequence[Pair],
    vocabularies: Vocabularies,
    *,
    max_len: int = 2 * MAX_TOKENS,
) -> float:
    """BLEU of greedy translations; each source sentence is translated once."""
    references = references_of(pairs)
    translations = translate(model, list(references), *vocabularies, max_len=max_len)
    return bleu(translations, list(references.values()))


def said(
    model: nn.Module,
    pairs: Sequence[Pair],
    vocabularies: Vocabularies,
    count: int,
    *,
    max_len: int = 2 * MAX_TOKENS,
) -> list[dict[str, Any]]:
    """The first `count` source sentences, what the model says, and their translations in the data."""
    references = references_of(pairs)
    sources = list(references)[:count]
    translations = translate(model, sources, *vocabularies, max_len=max_len)
    return [
        {"source": source, "said": words, "references": references[source]}
        for source, words in zip(sources, translations, strict=True)
    ]


def examples(
    model: nn.Module, test: Sequence[Pair], vocabularies: Vocabularies, *, maps: bool
) -> list[dict[str, Any]]:
    """The first long sentences of the test whose words are all known, whatever becomes of them.

    Each has its tokens as `source`, what the model says as `said`, the translations given as `references`,
    and with `maps` the attention `weights`: a row per word said, a column per source word.
    """
    long = [
        p for p in test if len(p.source) >= LONG and all(w in vocabularies[0] for w in p.source)
    ]
    shown = said(model, long, vocabularies, SHOWN)
    for example in shown:
        example |= {name: example[name].split() for name in ("source", "said")}
    if maps:
        pairs = [Pair(tuple(example["source"]), tuple(example["said"])) for example in shown]
        for example, weights in zip(shown, word_maps(model, pairs, *vocabularies), strict=True):
            example["weights"] = [[round(weight, 3) for weight in row] for row in weights.tolist()]
    return shown


def looked_up(train: Sequence[Pair], test: Sequence[Pair]) -> list[str]:
    """The French of the training sentence whose English has most words in common with each of the test.

    Words count by how rare they are (the logarithm of the inverse share of sentences that have them), and the
    overlap is divided by both sentences' lengths, as in the cosine of two vectors.
    """
    english = Vocabulary(pair.source for pair in train)
    counts = [
        torch.bincount(torch.tensor(english.encode(pair.source)), minlength=len(english)).float()
        for pair in test
    ]
    places = [(row, i) for row, p in enumerate(train) for i in english.encode(p.source)]
    read = torch.sparse_coo_tensor(
        torch.tensor(places).T,
        torch.ones(len(places)),
        (len(train), len(english)),
        check_invariants=False,
    ).coalesce()
    rows, words = read.indices()
    having = torch.bincount(words, minlength=len(english)).float()
    rare = (len(train) / having.clamp(min=1)).log()
    rare[UNK] = 0.0
    norms = torch.bincount(rows, (read.values() * rare[words]) ** 2, minlength=len(train))
    nearest = []
    for asked in (torch.stack(counts) * rare**2).split(100):  # as many as fit in memory
        overlap = torch.sparse.mm(read, asked.T) / norms.sqrt().clamp(min=1e-6)[:, None]
        nearest += overlap.argmax(dim=0).tolist()
    return [" ".join(train[row].target) for row in nearest]


@stored(cases=[{}])
def look_up() -> dict:
    """The dullest translator: it looks the nearest sentence up."""
    train, validation, test = real_pairs()
    scores = {}
    for name, pairs in (("val_bleu", validation), ("test_bleu", test)):
        references = references_of(pairs)
        asked = list({" ".join(pair.source): pair for pair in pairs}.values())
        translations = looked_up(train, asked)
        scores[name] = bleu(translations, list(references.values()))
    return {"result": scores}


# What the chapters show -------------------------------------------------------------------------


def real_run(*, attention: bool) -> StoredRun:
    """The stored run of one of the two translators."""
    return stored_run("sequence_to_sequence", "real_translation", attention=attention)


def show_real_curves() -> Picture:
    """Loss and BLEU of both translators by epoch."""
    return show_by_epoch(
        {"fixed context": real_run(attention=False), "attention": real_run(attention=True)}
    )


def show_by_epoch(runs: Mapping[str, StoredRun]) -> Picture:
    """Loss and BLEU of two translators by epoch; training dashed, held-out sentences solid."""
    picture, (left, right) = subplots(
        1, 2, width=8, height=3,
        alt="Training and validation loss, and BLEU, of two translators by epoch",
    )  # fmt: skip
    looks = (("wrong", "s"), ("key", "o"))
    for (label, run), (color, marker) in zip(runs.items(), looks, strict=True):
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
        alt="Attention weights of four held-out sentences: French words said, English words read",
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


# Maps of words over words -------------------------------------------------------------------------


@torch.no_grad()
def word_maps(
    model: nn.Module, pairs: Sequence[Pair], source_vocab: Vocabulary, target_vocab: Vocabulary
) -> list[Tensor]:
    """For each pair a map (target words, source words) of weights, in eval mode, on the CPU.

    The decoder is given the words of the target one after the other. The row of `<eos>` is left out.
    So is the column of `<eos>`, which is no word: what remains of a row is normalized again.

    The model has one attention module.
    """
    device = next(model.parameters()).device
    order = sorted(range(len(pairs)), key=lambda index: len(pairs[index].source))
    result: list[Tensor] = [torch.empty(0)] * len(pairs)
    with evaluating(model):
        for begin in range(0, len(order), BATCH):
            rows = order[begin : begin + BATCH]
            batch = batch_of([pairs[row] for row in rows], (source_vocab, target_vocab)).to(device)
            with record_attention(model) as maps:
                model(batch.source, batch.source_lens, batch.target_in)
            (weights,) = maps.values()
            for row, whole in zip(rows, weights.cpu(), strict=True):
                words = whole[: len(pairs[row].target), : len(pairs[row].source)]
                result[row] = words / words.sum(dim=1, keepdim=True)
    return result


# At the size of a lecture, for `make gpu` of several chapters -------------------------------------


def learned(
    language: str,
    new_model: Callable[[int, int], nn.Module],
    *,
    pairs: int,
    seed: int,
    max_tokens: int = MAX_TOKENS,
    words_only: bool = False,
    at_least: int = 0,
    batch: int = BATCH,
    **options,
) -> dict:
    """Train on pairs of Tatoeba from English; BLEU by source sentence, of some that were read and of those held out.

    `examples` has the translations of twenty sentences that were read and of twenty that were held out.

    Args:
        language: "fr" or "es".
        new_model: sizes of both vocabularies → the translator.
        pairs, max_tokens: at most so many pairs, both sides of at most so many tokens.
        words_only: whether punctuation is dropped before the tokens are counted.
        at_least: the fewest pairs for training.
        batch, seed, options: as `fitted` has them.

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
    rows = fitted(model, train, held_out, vocabularies, batch=batch, seed=seed, **options)
    seen, unseen = (readable(part, vocabularies) for part in (train[:500], held_out))
    with placed(model, best_device()):
        result = {
            "seen_bleu": score(model, seen, vocabularies),
            "held_out_bleu": score(model, unseen, vocabularies),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "pairs": len(train),
        }
        examples = [
            {"part": part} | example
            for part, some in (("seen", seen), ("not seen", unseen))
            for example in said(model, some, vocabularies, 20)
        ]
    return {
        "result": result,
        "curves": curves_of(rows, "train_loss", "val_loss"),
        "examples": examples,
    }


def pairs_of_words(language: str, *, max_tokens: int) -> list[Pair]:
    """The pairs of Tatoeba without punctuation, if both sides then have from one to `max_tokens` words."""
    pairs = [without_punctuation(pair) for pair in load_tatoeba(language, max_tokens=None)]
    return [
        pair
        for pair in pairs
        if 0 < len(pair.source) <= max_tokens and 0 < len(pair.target) <= max_tokens
    ]


def without_punctuation(pair: Pair) -> Pair:
    """The pair with its words only."""
    source, target = (
        tuple(token for token in side if any(letter.isalnum() for letter in token))
        for side in (pair.source, pair.target)
    )
    return Pair(source, target)
