"""The trainings of *Bahdanau attention* that are made beforehand: `make runs CHAPTER=06`.

On the small world: with a fixed context and with attention, with the French words in several orders, over the passes.
On real sentences: all pairs of Tatoeba (`make gpu`), and the first lines of it, as two lectures do.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import eq
from pathlib import Path
from typing import Any

import pandas as pd
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
    source_sentences,
    target_sentences,
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
"""Epochs of training: they take about as many seconds for each kind."""
LOOKS = (0, 1, 2, 4, 8)
"""Epochs after which `learning` stores maps, besides the end."""
LONG = 8
"""The fewest tokens of a long sentence, in each language."""
GROUPS = {"exact_5": (4, 5), "exact_7": (6, 7), "exact_10": (8, 10)}
"""Share of exact translations by length → the fewest and the most tokens of the source."""

WatchPass = Callable[[nn.Module, int], None]
"""(model, passes so far) → None."""


def _new_translator(kind: str, *sizes: int) -> nn.Module:
    """An untrained translator; both kinds have about as many parameters."""
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
def recurrent_translator(*, kind: str, order: str, rate: float, seed: int) -> dict[str, dict]:
    """A translator into French in one order of its words: its scores, and with attention those of its alignments."""
    world = world_in(order)
    model, rows = train_recurrent(world, kind, PASSES[kind], rate, seed)
    result = scores(model, world, rows[-1])
    if kind == "attention":
        result |= _attention_scores(model, world)
    return {"result": result}


@stored(
    cases=[
        *grid([{"order": "French", "half": "ne", "word": "pas"}], (0.008,), range(3)),
        *grid([{"order": "backwards", "half": "pas", "word": "ne"}], (0.004,), range(3)),
    ],
)
def unsaid(*, order: str, half: str, word: str, rate: float, seed: int) -> dict[str, dict]:
    """How probable one half of a negation is after the other half was said, and where that was left out.

    The result has both probabilities, "chosen", and those with the plain average of the memory at this step, "plain".

    Args:
        order: of the French words.
        half: the half that comes first in this order, "ne" or "pas".
        word: the other half, whose probability is measured.
        rate, seed: of the training.
    """
    world = world_in(order)
    model, _ = train_recurrent(world, "attention", PASSES["attention"], rate, seed)
    negations = [pair for pair in world.test if {"ne", "pas"} <= set(pair.target)]
    cut = [replace(pair, target=_without(half, pair.target)) for pair in negations]
    result: dict[str, float] = {"sentences": len(negations)}
    for name, pairs in (("said", negations), ("unsaid", cut)):
        batch = batch_of(pairs, (world.source_vocab, world.target_vocab))
        chosen, plain = _mean_probabilities(word_by_word(model, pairs, batch), word)
        result |= {f"chosen, {name}": chosen, f"plain, {name}": plain}
    return {"result": result}


def _without(word: str, tokens: tuple[str, ...]) -> tuple[str, ...]:
    """The tokens that are not this word."""
    return tuple(token for token in tokens if token != word)


def _mean_probabilities(words: pd.DataFrame, word: str | None = None) -> tuple[float, float]:
    """Mean probability of a word, or of all words, with attention and with the plain average of the memory."""
    rows = words if word is None else words[words["word"] == word]
    means = rows.mean(numeric_only=True)
    return means["attention"], means["plain average"]


@stored(cases=[{"order": order} for order in ("alphabetical", "shuffled")], seeds=range(3))
def other_orders(*, order: str, seed: int) -> dict[str, dict]:
    """The translator with attention, with the French of each sentence in alphabetical order or shuffled."""
    world = world_in(order)
    model, _ = train_recurrent(world, "attention", PASSES["attention"], 0.004, seed)
    return {"result": {"aer": _error_rate(_maps(model, world), world.test)}}


@stored(cases=[{"order": order} for order in ("backwards", "French")])
def learning(*, order: str) -> dict[str, Any]:
    """How one translator learns to align.

    After each of the epochs `LOOKS` and at the end, `examples` has the maps of the test sentences `SHOWN`, and the
    result the alignment error rate of all. "first", "median" and "third" are the quartiles over long sentences.
    """
    world, examples = world_in(order), []
    result: dict[str, float] = {}

    def look(model: nn.Module, passes: int) -> None:
        maps = _maps(model, world)
        shown = [_sentence_with_map(world.test[index], maps[index]) for index in SHOWN]
        examples.append({"passes": passes, "maps": shown})
        result[f"aer_{passes}"] = _error_rate(maps, world.test)

    model, _ = train_recurrent(world, "attention", PASSES["attention"], 0.004, 0, look)
    look(model, PASSES["attention"])
    rates = []
    for weights, pair in zip(_maps(model, world), world.test, strict=True):
        if min(len(pair.source), len(pair.target)) >= LONG:
            rates.append(_error_rate([weights], [pair]))
    result["first"], result["median"], result["third"] = statistics.quantiles(rates, n=4)
    return {"result": result, "examples": examples}


def train_recurrent(
    world: SmallWorld,
    kind: str,
    passes: int,
    rate: float,
    seed: int,
    watch: WatchPass = lambda model, passes: None,
) -> tuple[nn.Module, list[dict]]:
    """A trained translator, and the rows of its history.

    Args:
        world: what it reads.
        kind: "attention" or "fixed".
        passes: through the training data.
        rate: the largest learning rate; it rises for 50 steps and falls to 0 at the end.
        seed: of the weights and of the order of the sentences.
        watch: called before the first step, and after each of the passes `LOOKS`.
    """
    seed_everything(seed)
    model = _new_translator(kind, len(world.source_vocab), len(world.target_vocab))
    loader = world.loader(world.train, seed=seed)

    def before_step(model: nn.Module, steps: int) -> None:
        if steps % len(loader) == 0 and steps // len(loader) in LOOKS:
            watch(model, steps // len(loader))

    trainer = Trainer(
        translation_loss(),
        epochs=passes,
        lr=rate,
        schedule=warmup_decay(50, passes * len(loader)),
        before_step=before_step,
        seed=seed,
        quiet=True,
    )
    return model, trainer.fit(model, loader, world.loader(world.val, shuffle=False)).rows


def scores(model: nn.Module, world: SmallWorld, last: Mapping[str, float]) -> dict[str, float]:
    """Parameters, losses of the last epoch, BLEU, and the shares of the test sentences that are exactly right.

    Args:
        model: the translator.
        world: what it has read.
        last: the last row of its history.
    """
    translations, right = world.say(model, world.test), target_sentences(world.test)
    exact = list(map(eq, translations, right))
    result = {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "train_loss": last["train_loss"],
        "val_loss": last["val_loss"],
        "bleu": bleu(translations, right),
        "exact": sum(exact) / len(exact),
        "four": world.right_of_four(model),
    }
    lengths = [len(pair.source) for pair in world.test]
    for name, (low, high) in GROUPS.items():
        group = [hit for hit, n in zip(exact, lengths, strict=True) if low <= n <= high]
        result[name] = sum(group) / len(group)
    return result


def _error_rate(maps: Sequence[Tensor], pairs: Sequence[Pair]) -> float:
    """Alignment error rate of the largest weights of some maps."""
    links = [links_of(weights) for weights in maps]
    return alignment_error_rate(links, [pair.alignment or frozenset() for pair in pairs])


def _maps(model: nn.Module, world: SmallWorld) -> list[Tensor]:
    """The map (French, English) of each test sentence."""
    return word_maps(model, world.test, world.source_vocab, world.target_vocab)


def _sentence_with_map(pair: Pair, weights: Tensor) -> dict[str, Any]:
    """A sentence with its gold links and its map, as JSON has them."""
    return {
        "source": pair.source,
        "target": pair.target,
        "links": sorted(pair.alignment or ()),
        "weights": [[round(weight, 2) for weight in row] for row in weights.tolist()],
    }


def _attention_scores(model: nn.Module, world: SmallWorld) -> dict[str, float]:
    """Alignment error rate, and how probable words are with attention and with the plain average at their step."""
    result = {"aer": _error_rate(_maps(model, world), world.test)}
    whole = batch_of(world.test, (world.source_vocab, world.target_vocab))
    words = word_by_word(model, world.test, whole)
    for name, word in (("ne", "ne"), ("pas", "pas"), ("all", None)):
        chosen, plain = _mean_probabilities(words, word)
        result |= {f"chosen_{name}": chosen, f"plain_{name}": plain}
    return result


# Real sentences -----------------------------------------------------------------------------------


@stored(
    cases=[
        {"attention": attention, "epochs": 10, "width": 256, "pairs": 1_000_000, "seed": 0}
        for attention in (False, True)
    ],
    minutes=6,
    quick={"epochs": 1, "width": 16, "pairs": 60},
)
def recurrent_on_all_pairs(
    *, attention: bool, epochs: int, width: int, checkpoint: Path | None = None, **options: Any
) -> dict[str, Any]:
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


FIRST = {"pairs": 512, "width": 256, "dropout": 0.4, "batch": 128, "passes": 15, "min_freq": 2}
SECOND = {"pairs": 600, "width": 32, "dropout": 0.1, "batch": 64, "passes": 250, "min_freq": 1}
"""The translators of two lectures, which read the first lines of the file of Tatoeba."""


@stored(
    cases=[
        *grid([FIRST], seeds=range(3)),
        FIRST | {"min_freq": 1, "seed": 0},
        SECOND | {"seed": 0},
    ]
)
def lecture(
    *, pairs: int, width: int, dropout: float, batch: int, passes: int, min_freq: int, seed: int
) -> dict[str, Any]:
    """Two layers of GRU with attention, Adam at 0.005: its answers to `FOUR`, and whether it has read them."""
    corpus = load_tatoeba("fr")
    read = corpus[:pairs]
    vocabularies = vocabularies_of(read, min_freq=min_freq)
    seed_everything(seed)
    shape = {"embed_dim": width, "hidden_dim": width, "num_layers": 2, "dropout": dropout}
    model = AttentionTranslator(*map(len, vocabularies), **shape)
    model.dropout = nn.Dropout(0.0)  # the lectures have dropout between the layers alone
    for name, weight in model.named_parameters():
        if weight.dim() > 1 and "embedding" not in name:
            nn.init.xavier_uniform_(weight)
    loader = PairLoader(read, *vocabularies, batch_size=batch, seed=seed)
    trainer = Trainer(translation_loss(), epochs=passes, lr=0.005, seed=seed, quiet=True)
    rows = trainer.fit(model, loader).rows
    examples = []
    for line, translation in zip(FOUR, translate(model, FOUR, *vocabularies), strict=True):
        source = tuple(tokenize(line))
        references = target_sentences(pair for pair in read if pair.source == source)
        examples.append({"English": line, "French": translation, "read with": references})
    return {
        "result": scores_on_unread(model, corpus, vocabularies),
        "curves": curves_of(rows, "train_loss"),
        "examples": examples,
    }


def scores_on_unread(
    model: nn.Module, corpus: Sequence[Pair], vocabularies: Vocabularies
) -> dict[str, int]:
    """Number of pairs of known words outside a lecture's training set ("unread"), and how many are translated exactly.

    They are among lines 1,000 to 1,400 of the corpus, of which it has read fewer.
    """
    references = references_of(corpus)
    english, unread = vocabularies[0], []
    for pair in corpus[1000:1400]:
        if all(token in english for token in pair.source):
            unread.append(pair)
    sources = source_sentences(unread)
    translations = translate(model, sources, *vocabularies)
    right = [said in references[source] for source, said in zip(sources, translations, strict=True)]
    return {"unread": len(unread), "unread_right": sum(right)}
