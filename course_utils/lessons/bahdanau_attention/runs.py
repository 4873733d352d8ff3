"""The trainings of *Bahdanau attention* that are made beforehand: `make runs CHAPTER=06`."""

import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from torch import Tensor, nn

from course_utils.data.text import tokenize
from course_utils.data.translation import Pair, PairLoader, load_tatoeba
from course_utils.decoding import translate
from course_utils.kit.comparison import grid
from course_utils.kit.runs import stored
from course_utils.lessons.bahdanau_attention.alignment import (
    SHOWN,
    alignment_error_rate,
    links_of,
    word_by_word,
    world_in,
)
from course_utils.lessons.sequence_to_sequence.small_world import (
    FOUR,
    SmallWorld,
    Vocabularies,
    batch_of,
    references_of,
    vocabularies_of,
)
from course_utils.lessons.sequence_to_sequence.translator_scores import word_maps
from course_utils.lessons.sequence_to_sequence.translator_training import (
    curves_of,
    train_on_tatoeba,
)
from course_utils.metrics import bleu
from course_utils.models.recurrent import AttentionTranslator, RecurrentTranslator
from course_utils.runtime import seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

PASSES = {"attention": 18, "fixed": 27}
"""Passes through the training data: about as many seconds for each kind."""
SEEN = (0, 1, 2, 4, 8)
"""Maps are stored after so many passes, and at the end."""
LONG = 8  # words in each language
GROUPS = {"exact_5": (4, 5), "exact_7": (6, 7), "exact_10": (8, 10)}


def _new(kind: str, *sizes: int) -> nn.Module:
    if kind == "attention":
        return AttentionTranslator(*sizes, embed_dim=64, hidden_dim=64, dropout=0.0)
    return RecurrentTranslator(*sizes, embed_dim=64, hidden_dim=96, dropout=0.0)


ATTENTION = {"kind": "attention", "order": "French"}
BACKWARDS = {"kind": "attention", "order": "backwards"}
FIXED = {"kind": "fixed", "order": "French"}


@stored(
    cases=[
        *grid([ATTENTION], (0.002, 0.004, 0.008, 0.016), range(3)),
        *grid([FIXED], (0.002, 0.004, 0.008), range(3)),
        *grid([BACKWARDS], (0.004,), range(3)),
    ],
)
def recurrent_translator(*, kind: str, order: str, rate: float, seed: int) -> dict:
    """A translator to French in this order: what it gets right, and with attention its alignments."""
    world = world_in(order)
    model, rows = fit(world, kind, PASSES[kind], rate, seed)
    result = scores(model, world, rows[-1])
    if kind == "attention":
        result |= _attending(model, world)
    return {"result": result}


@stored(
    cases=[
        {"order": order, "half": half, "word": word, "rate": rate, "seed": seed}
        for order, half, word, rate in (
            ("French", "ne", "pas", 0.008),
            ("backwards", "pas", "ne", 0.004),
        )
        for seed in range(3)
    ],
)
def unsaid(*, order: str, half: str, word: str, rate: float, seed: int) -> dict:
    """A negation whose other half was left out before this word: how probable the word is then."""
    world = world_in(order)
    model, _ = fit(world, "attention", PASSES["attention"], rate, seed)
    whole = [pair for pair in world.test if {"ne", "pas"} <= set(pair.target)]
    cut = [replace(p, target=tuple(each for each in p.target if each != half)) for p in whole]
    result = {"sentences": len(whole)}
    for name, pairs in (("said", whole), ("unsaid", cut)):
        batch = batch_of(pairs, (world.source_vocab, world.target_vocab))
        each = word_by_word(model, pairs, batch)
        means = each[each["word"] == word].mean(numeric_only=True)
        result |= {f"chosen, {name}": means["attention"], f"plain, {name}": means["plain average"]}
    return {"result": result}


@stored(cases=[{"order": order} for order in ("alphabetical", "shuffled")], seeds=range(3))
def other_orders(*, order: str, seed: int) -> dict:
    """The translator with attention, its French in the order of the alphabet or shuffled anew in each sentence."""
    world = world_in(order)
    model, _ = fit(world, "attention", PASSES["attention"], 0.004, seed)
    return {"result": {"aer": _rate(_maps(model, world), world.test)}}


@stored(cases=[{"order": order} for order in ("backwards", "French")])
def learning(*, order: str) -> dict:
    """How one translator learns to align: `SHOWN` and the error rate of all sentences after the passes `SEEN`."""
    world, examples, result = world_in(order), [], {}

    def seen(model: nn.Module, passed: int) -> None:
        maps = _maps(model, world)
        examples.append({"passes": passed, "maps": [_shown(world.test[i], maps[i]) for i in SHOWN]})
        result[f"aer_{passed}"] = _rate(maps, world.test)

    model, _ = fit(world, "attention", PASSES["attention"], 0.004, 0, seen)
    seen(model, PASSES["attention"])
    pairs = zip(_maps(model, world), world.test, strict=True)
    long = [(words, p) for words, p in pairs if min(len(p.source), len(p.target)) >= LONG]
    rates = [_rate([words], [pair]) for words, pair in long]
    result |= dict(zip(("first", "median", "third"), statistics.quantiles(rates, n=4), strict=True))
    return {"result": result, "examples": examples}


def fit(
    world: SmallWorld,
    kind: str,
    passes: int,
    rate: float,
    seed: int,
    seen: Callable[[nn.Module, int], None] = lambda model, passed: None,
) -> tuple[nn.Module, list[dict]]:
    """A trained translator, and the rows of its history; `seen` is called before each of the passes `SEEN`."""
    seed_everything(seed)
    model = _new(kind, len(world.source_vocab), len(world.target_vocab))
    loader = world.loader(world.train, seed=seed)
    objective = _watched(translation_loss(), len(loader), seen)
    schedule = warmup_decay(50, passes * len(loader))
    trainer = Trainer(objective, epochs=passes, lr=rate, schedule=schedule, seed=seed, quiet=True)
    return model, trainer.fit(model, loader, world.loader(world.val, shuffle=False)).rows


def scores(model: nn.Module, world: SmallWorld, last: dict) -> dict[str, float]:
    """Parameters, losses, BLEU, and the shares of the test sentences that are exactly right."""
    decoded, right = world.say(model, world.test), [" ".join(pair.target) for pair in world.test]
    hits = [a == b for a, b in zip(decoded, right, strict=True)]
    four = translate(model, FOUR, world.source_vocab, world.target_vocab)
    result = {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "train_loss": last["train_loss"],
        "val_loss": last["val_loss"],
        "bleu": bleu(decoded, right),
        "exact": sum(hits) / len(hits),
        "four": sum(a in world.references[line] for line, a in zip(FOUR, four, strict=True)),
    }
    for name, (low, high) in GROUPS.items():
        lengths = [len(pair.source) for pair in world.test]
        group = [hit for hit, n in zip(hits, lengths, strict=True) if low <= n <= high]
        result[name] = sum(group) / len(group)
    return result


def _watched(objective: Callable, steps: int, seen: Callable[[nn.Module, int], None]) -> Callable:
    """The objective, which calls `seen` before a training step that begins one of the passes `SEEN`."""
    step = 0

    def watched(model, batch):
        nonlocal step
        if model.training:
            if step % steps == 0 and step // steps in SEEN:
                seen(model, step // steps)
            step += 1
        return objective(model, batch)

    return watched


def _rate(maps: list[Tensor], pairs) -> float:
    return alignment_error_rate([links_of(words) for words in maps], [p.alignment for p in pairs])


def _maps(model: nn.Module, world: SmallWorld) -> list[Tensor]:
    """The map (French, English) of each test sentence."""
    return word_maps(model, world.test, world.source_vocab, world.target_vocab)


def _shown(pair: Pair, words: Tensor) -> dict:
    """A sentence with its gold links and its map, as JSON has them."""
    return {
        "source": pair.source,
        "target": pair.target,
        "links": sorted(pair.alignment),
        "weights": [[round(weight, 2) for weight in row] for row in words.tolist()],
    }


def _attending(model: nn.Module, world: SmallWorld) -> dict[str, float]:
    """Alignment error rates, and what a word loses without attention at its step."""
    result = {"aer": _rate(_maps(model, world), world.test)}
    whole = batch_of(world.test, (world.source_vocab, world.target_vocab))
    each = word_by_word(model, world.test, whole)
    for name, rows in (
        ("ne", each[each["word"] == "ne"]),
        ("pas", each[each["word"] == "pas"]),
        ("all", each),
    ):
        means = rows.mean(numeric_only=True)
        result |= {f"chosen_{name}": means["attention"], f"plain_{name}": means["plain average"]}
    return result


@stored(
    cases=[
        {"attention": attention, "epochs": 10, "width": 256, "pairs": 1_000_000, "seed": 0}
        for attention in (False, True)
    ],
    minutes=6,
    quick={"epochs": 1, "width": 16, "pairs": 60},
)
def recurrent_on_all_pairs(
    *, attention: bool, epochs: int, width: int, checkpoint: Path | None = None, **options
) -> dict:
    """All English–French pairs of at most ten tokens, with a fixed context or with attention."""
    kind = AttentionTranslator if attention else RecurrentTranslator
    return train_on_tatoeba(
        "fr",
        lambda *sizes: kind(*sizes, embed_dim=width, hidden_dim=width, num_layers=2, dropout=0.2),
        schedule=lambda steps: warmup_decay(steps // 4, epochs * steps + 1),
        epochs=epochs,
        checkpoint=checkpoint,
        **options,
    )


# The translators of two lectures, on the first lines of the Tatoeba file --------------------------

FIRST = {"pairs": 512, "width": 256, "dropout": 0.4, "batch": 128, "passes": 15, "min_freq": 2}
SECOND = {"pairs": 600, "width": 32, "dropout": 0.1, "batch": 64, "passes": 250, "min_freq": 1}


@stored(
    cases=[
        *grid([FIRST], seeds=range(3)),
        FIRST | {"min_freq": 1, "seed": 0},
        SECOND | {"seed": 0},
    ]
)
def lecture(
    *, pairs: int, width: int, dropout: float, batch: int, passes: int, min_freq: int, seed: int
) -> dict:
    """Two layers of GRU with attention, Adam at 0.005: its answers to `FOUR`, and whether it has read them."""
    corpus = load_tatoeba("fr")
    read = corpus[:pairs]
    words = vocabularies_of(read, min_freq=min_freq)
    seed_everything(seed)
    model = AttentionTranslator(
        *map(len, words), embed_dim=width, hidden_dim=width, num_layers=2, dropout=dropout
    )
    model.dropout = nn.Dropout(0.0)  # theirs stands between the layers alone
    for name, weight in model.named_parameters():
        if weight.dim() > 1 and "embedding" not in name:
            nn.init.xavier_uniform_(weight)
    loader = PairLoader(read, *words, batch_size=batch, seed=seed)
    trainer = Trainer(translation_loss(), epochs=passes, lr=0.005, seed=seed, quiet=True)
    rows = trainer.fit(model, loader).rows
    examples = []
    for line, translation in zip(FOUR, translate(model, FOUR, *words), strict=True):
        references = [" ".join(p.target) for p in read if p.source == tuple(tokenize(line))]
        examples.append({"English": line, "French": translation, "read with": references})
    return {
        "result": of_unread(model, corpus, words),
        "curves": curves_of(rows, "train_loss"),
        "examples": examples,
    }


def of_unread(model: nn.Module, corpus: list[Pair], words: Vocabularies) -> dict[str, int]:
    """Number of pairs of known words that a lecture's translator has not read, and of those it translates rightly."""
    references = references_of(corpus)
    fresh = [p for p in corpus[1000:1400] if all(token in words[0] for token in p.source)]
    sources = [" ".join(pair.source) for pair in fresh]
    pairs = zip(sources, translate(model, sources, *words), strict=True)
    hits = sum(translation in references[source] for source, translation in pairs)
    return {"unread": len(fresh), "unread_right": hits}
