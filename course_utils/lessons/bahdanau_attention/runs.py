"""The trainings of *Bahdanau attention* that are made beforehand: `make runs CHAPTER=06`."""

import statistics
import time

import torch

from course_utils.decoding import translate
from course_utils.kit.runs import stored
from course_utils.lessons.bahdanau_attention.links import alignment_error_rate, links_of
from course_utils.lessons.bahdanau_attention.live_translator import (
    live_translator as live_translator,
)
from course_utils.lessons.sequence_to_sequence.small_world import FOUR
from course_utils.lessons.sequence_to_sequence.word_maps import word_maps
from course_utils.models.recurrent import RecurrentTranslator

DATA = ["translation/grammar_fr.tsv", "translation/sentences.tsv"]
KINDS = {"attention": 64, "fixed": 64, "wider": 96}
"""Size of the state, for each kind."""
GROUPS = {"exact_5": (4, 5), "exact_6": (6, 6), "exact_7": (7, 7), "exact_10": (8, 10)}


def _new(chapter, kind: str, seed: int):
    if kind == "attention":
        return chapter.new_model(seed)
    torch.manual_seed(seed)
    return RecurrentTranslator(*chapter.sizes, embed_dim=64, hidden_dim=KINDS[kind], dropout=0.0)


@stored(
    cases=[{"kind": kind, "seed": seed} for kind in KINDS for seed in range(3)],
    chapter=["new_model", "train", "score", "sizes", "world", "vocabularies", "aligned",
             "crossings", "word_by_word"],
    data=DATA,
)  # fmt: skip
def translator(chapter, *, kind: str, seed: int) -> dict:
    """A translator of this kind: its losses, its translations, and its maps if it looks back."""
    model = _new(chapter, kind, seed)
    history = chapter.train(model, seed)
    test, vocabularies = chapter.world.test, chapter.vocabularies
    bleu, exact, hits = chapter.score(model, test)
    said = translate(model, FOUR, *vocabularies)
    four = sum(a in chapter.world.references[line] for line, a in zip(FOUR, said, strict=True))
    rows = history.rows
    result = {
        "parameters": sum(one.numel() for one in model.parameters()),
        "train_loss": rows[-1]["train_loss"],
        "val_loss": rows[-1]["val_loss"],
        "bleu": bleu,
        "exact": exact,
        "four": four,
        **_by_length(test, hits),
    }
    if kind == "attention":
        result |= _looks(chapter, model)
    curves = {name: [[row["epoch"], round(row[name], 4)] for row in rows] for name in ("val_loss",)}
    return {"result": {name: round(value, 4) for name, value in result.items()}, "curves": curves}


def _by_length(pairs, hits) -> dict[str, float]:
    """Share of exact translations by the number of source tokens."""
    found = {}
    for name, (low, high) in GROUPS.items():
        group = [
            hit for pair, hit in zip(pairs, hits, strict=True) if low <= len(pair.source) <= high
        ]
        found[name] = sum(group) / len(group)
    return found


def _looks(chapter, model) -> dict[str, float]:
    """Alignments of the test sentences, of those whose links cross, and what a look is needed for."""
    test = chapter.world.test
    maps = word_maps(model, test, *chapter.vocabularies)
    crossed = [place for place, pair in enumerate(test) if chapter.crossings(pair)]
    rate, framed = chapter.aligned(maps, test)
    rate_crossed, framed_crossed = chapter.aligned(
        [maps[place] for place in crossed], [test[place] for place in crossed]
    )
    each = chapter.word_by_word(model, test, maps)
    result = {
        "aer": rate,
        "framed": framed,
        "aer_crossed": rate_crossed,
        "framed_crossed": framed_crossed,
    }
    for name, rows in (
        ("ne", each[each["word"] == "ne"]),
        ("pas", each[each["word"] == "pas"]),
        ("stop", each[each["word"] == "."]),
        ("all", each),
    ):
        means = rows.mean(numeric_only=True)
        result |= {
            f"gold_{name}": means["on gold"],
            f"looking_{name}": means["p, looking"],
            f"blind_{name}": means["p, not looking"],
        }
    return {key: float(value) for key, value in result.items()}


@stored(
    cases=[{"seed": seed} for seed in range(3)],
    chapter=["new_model", "train", "sizes", "world", "vocabularies", "crossings"],
    data=DATA,
)
def first_rule(chapter, *, seed: int) -> dict:
    """The translator that looks back: its alignments by the first rule alone, the largest weight of each word."""
    model = chapter.new_model(seed)
    chapter.train(model, seed)
    test = chapter.world.test
    found = [links_of(words) for words in word_maps(model, test, *chapter.vocabularies)]
    crossed = [place for place, pair in enumerate(test) if chapter.crossings(pair)]
    result = {
        "aer": alignment_error_rate(found, [pair.alignment for pair in test]),
        "aer_crossed": alignment_error_rate(
            [found[place] for place in crossed], [test[place].alignment for place in crossed]
        ),
    }
    return {"result": {name: round(value, 4) for name, value in result.items()}}


@stored(cases=[{}], chapter=["new_model", "train", "sizes", "world"], data=DATA)
def seconds(chapter) -> dict:
    """Seconds of one epoch, the kinds in turn, five times; the medians."""
    taken: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(5):
        for kind, times in taken.items():
            model = _new(chapter, kind, 0)
            began = time.process_time()
            chapter.train(model, 0, 1)
            times.append(time.process_time() - began)
    return {"result": {kind: round(statistics.median(times), 2) for kind, times in taken.items()}}


@stored(cases=[{"seed": 0}], chapter=["train", "score", "sizes", "world"], data=DATA)
def longer(chapter, *, seed: int) -> dict:
    """The wider translator that does not look, with three times the chapter's epochs; once."""
    model = _new(chapter, "wider", seed)
    last = chapter.train(model, seed, 27).rows[-1]
    bleu, exact, _ = chapter.score(model, chapter.world.test)
    return {
        "result": {
            "train_loss": round(last["train_loss"], 4),
            "val_loss": round(last["val_loss"], 4),
            "bleu": round(bleu, 4),
            "exact": round(exact, 4),
        }
    }
