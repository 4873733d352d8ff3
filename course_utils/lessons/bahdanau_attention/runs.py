"""The trainings of *Bahdanau attention* that are made beforehand: `make runs CHAPTER=06`."""

from collections.abc import Callable
from pathlib import Path

from torch import Tensor, nn

from course_utils.data.text import Vocabulary, tokenize
from course_utils.data.translation import Batch, PairLoader, collate, load_tatoeba
from course_utils.decoding import translate
from course_utils.kit.runs import stored
from course_utils.lessons.bahdanau_attention.alignment import (
    alignment_error_rate,
    crossings,
    links_both_ways,
    links_of,
    pull,
    word_by_word,
    world_in,
)
from course_utils.lessons.bahdanau_attention.live_translator import (
    live_translator as live_translator,
)
from course_utils.lessons.sequence_to_sequence.real import learned, word_maps
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, SmallWorld
from course_utils.metrics import bleu
from course_utils.models.recurrent import AttentionTranslator, RecurrentTranslator
from course_utils.runtime import seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

DATA = ["translation/grammar_fr.tsv", "translation/sentences.tsv"]
SIDES = [("attention", "backwards", 18), ("attention", "French", 18), ("wider", "French", 27)]
"""Kind, order of the words, passes through the training data: about as many seconds each."""
SEEN = (0, 1, 2, 4, 8)
"""After so many passes through the training data maps are kept; and at the end."""
SHOWN = 5
GROUPS = {"exact_5": (4, 5), "exact_7": (6, 7), "exact_10": (8, 10)}


def _new(kind: str, *sizes: int) -> nn.Module:
    if kind == "attention":
        return AttentionTranslator(*sizes, embed_dim=64, hidden_dim=64, dropout=0.0)
    return RecurrentTranslator(*sizes, embed_dim=64, hidden_dim=96, dropout=0.0)


@stored(
    cases=[
        {"kind": kind, "order": order, "passes": passes, "rate": 0.004, "seed": seed}
        for kind, order, passes in SIDES
        for seed in range(1 if order == "backwards" else 2)
    ]
    + [{"kind": "wider", "order": "French", "passes": 27, "rate": 0.008, "seed": 0}],
    data=DATA,
)
def translator(*, kind: str, order: str, passes: int, rate: float, seed: int) -> dict:
    """A translator to French in this order: what it gets right, and its maps if it has attention."""
    world = world_in(order)
    examples, early = [], {}

    def seen(model: nn.Module, passed: int) -> None:
        if kind == "attention":
            maps = word_maps(model, world.test, world.source_vocab, world.target_vocab)
            examples.append(_shown(passed, maps, world.test))
            early[f"aer_{passed}"] = _rate(links_of, maps, world.test)
            early.update({f"pull_{passed}_{word}": v for word, v in _pulls(model, world).items()})

    model, last = _fit(world, kind, passes, rate, seed, seen)
    seen(model, passes)
    result = _scores(model, world, last) | early
    if kind == "attention":
        result |= _attending(model, world)
    return {"result": _rounded(result), "examples": examples if seed == 0 else []}


@stored(cases=[{"seed": seed} for seed in range(3)], data=DATA)
def nine_passes(*, seed: int) -> dict:
    """The translator with attention after nine passes at the rate 0.009, with which *Translating* compares."""
    world = world_in("French")
    model, last = _fit(world, "attention", 9, 0.009, seed)
    maps = word_maps(model, world.test, world.source_vocab, world.target_vocab)
    crossed = [i for i, pair in enumerate(world.test) if crossings(pair)]
    rates = {
        "aer": _rate(links_both_ways, maps, world.test),
        "aer_crossed": _rate(
            links_both_ways, [maps[i] for i in crossed], [world.test[i] for i in crossed]
        ),
    }
    return {"result": _rounded(_scores(model, world, last) | rates)}


def _fit(
    world: SmallWorld,
    kind: str,
    passes: int,
    rate: float,
    seed: int,
    seen: Callable[[nn.Module, int], None] = lambda model, passed: None,
) -> tuple[nn.Module, dict]:
    """A trained translator, and the last row of its history; `seen` is called before each of the passes `SEEN`."""
    seed_everything(seed)
    model = _new(kind, len(world.source_vocab), len(world.target_vocab))
    loader = world.loader(world.train, seed=seed)
    objective = _watched(translation_loss(), len(loader), seen)
    schedule = warmup_decay(50, passes * len(loader))
    trainer = Trainer(objective, epochs=passes, lr=rate, schedule=schedule, seed=seed, quiet=True)
    return model, trainer.fit(model, loader, world.loader(world.val, shuffle=False)).rows[-1]


def _scores(model: nn.Module, world: SmallWorld, last: dict) -> dict[str, float]:
    """Parameters, losses, BLEU, and the shares of the test sentences that are exactly right."""
    vocabularies, test = (world.source_vocab, world.target_vocab), world.test
    right = [" ".join(pair.target) for pair in test]
    decoded = translate(model, [" ".join(pair.source) for pair in test], *vocabularies, max_len=20)
    hits = [a == b for a, b in zip(decoded, right, strict=True)]
    four = translate(model, FOUR, *vocabularies)
    result = {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "train_loss": last["train_loss"],
        "val_loss": last["val_loss"],
        "bleu": bleu(decoded, right),
        "exact": sum(hits) / len(hits),
        "four": sum(a in world.references[line] for line, a in zip(FOUR, four, strict=True)),
    }
    for name, (low, high) in GROUPS.items():
        group = [hit for hit, p in zip(hits, test, strict=True) if low <= len(p.source) <= high]
        result[name] = sum(group) / len(group)
    return result


def _rounded(result: dict[str, float]) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in result.items()}


def _whole(world: SmallWorld) -> Batch:
    """The test sentences as one batch."""
    return collate(
        [
            (world.source_vocab.encode(p.source), world.target_vocab.encode(p.target))
            for p in world.test
        ]
    )


def _watched(objective: Callable, steps: int, seen: Callable[[nn.Module, int], None]) -> Callable:
    """The objective; before a training step that begins one of the passes `SEEN`, `seen` is told."""
    step = 0

    def watched(model, batch):
        nonlocal step
        if model.training:
            if step % steps == 0 and step // steps in SEEN:
                seen(model, step // steps)
            step += 1
        return objective(model, batch)

    return watched


def _rate(rule: Callable, maps: list[Tensor], pairs) -> float:
    return alignment_error_rate([rule(words) for words in maps], [p.alignment for p in pairs])


def _shown(passed: int, maps: list[Tensor], pairs) -> dict:
    """Maps of the first long sentences whose links cross in French."""
    places = [i for i, p in enumerate(pairs) if len(p.source) >= 8 and len(p.target) >= 8][:SHOWN]
    return {
        "passes": passed,
        "maps": [
            {
                "source": pairs[i].source,
                "target": pairs[i].target,
                "links": sorted(pairs[i].alignment),
                "weights": [[round(w, 2) for w in row] for row in maps[i].tolist()],
            }
            for i in places
        ],
    }


def _pulls(model: nn.Module, world: SmallWorld) -> dict[str, float]:
    """Mean of `pull` over the words "ne", "pas" and all."""
    model.zero_grad()
    pulls = pull(model, _whole(world))
    of = [
        (word, pulls[i, t].item())
        for i, p in enumerate(world.test)
        for t, word in enumerate(p.target)
    ]
    named = {"ne": ("ne",), "pas": ("pas",), "all": {word for word, _ in of}}
    return {
        name: sum(v for word, v in of if word in words) / sum(word in words for word, _ in of)
        for name, words in named.items()
    }


def _attending(model: nn.Module, world: SmallWorld) -> dict[str, float]:
    """Alignment error rates, and what a word loses without attention at its step."""
    test, maps = world.test, word_maps(model, world.test, world.source_vocab, world.target_vocab)
    crossed = [i for i, pair in enumerate(test) if crossings(pair)]
    result = {
        "aer_first": _rate(links_of, maps, test),
        "aer": _rate(links_both_ways, maps, test),
        "aer_first_crossed": _rate(
            links_of, [maps[i] for i in crossed], [test[i] for i in crossed]
        ),
    }
    each = word_by_word(model, test, _whole(world), maps)
    for name, rows in (
        ("ne", each[each["word"] == "ne"]),
        ("pas", each[each["word"] == "pas"]),
        ("all", each),
    ):
        means = rows.mean(numeric_only=True)
        result |= {
            f"gold_{name}": means["on gold"],
            f"with_{name}": means["attention"],
            f"zero_{name}": means["all keys zero"],
        }
    return result


@stored(
    cases=[
        {"attention": attention, "epochs": 10, "width": 256, "pairs": 1_000_000, "seed": 0}
        for attention in (False, True)
    ],
    minutes=6,
    quick={"epochs": 1, "width": 16, "pairs": 60},
)
def full_size(
    *, attention: bool, epochs: int, width: int, checkpoint: Path | None = None, **options
) -> dict:
    """All English–French pairs of at most ten tokens, with a fixed context or with attention."""
    kind = AttentionTranslator if attention else RecurrentTranslator
    return learned(
        "fr",
        lambda *sizes: kind(*sizes, embed_dim=width, hidden_dim=width, num_layers=2, dropout=0.2),
        lambda steps: warmup_decay(steps // 4, epochs * steps + 1),
        epochs=epochs,
        checkpoint=checkpoint,
        **options,
    )


# The translators of two lectures, on the first lines of the Tatoeba file --------------------------

SIZES = [
    {"pairs": 512, "width": 256, "dropout": 0.4, "batch": 128, "passes": 15},
    {"pairs": 600, "width": 32, "dropout": 0.1, "batch": 64, "passes": 250},
]


@stored(cases=[{**size, "seed": 0} for size in SIZES])
def lecture(*, pairs: int, width: int, dropout: float, batch: int, passes: int, seed: int) -> dict:
    """Two layers of GRU with attention, Adam at 0.005; what it says to `FOUR`, and whether it has read them."""
    corpus = load_tatoeba("fr")
    read = corpus[:pairs]
    words = Vocabulary(p.source for p in read), Vocabulary(p.target for p in read)
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
    loss = trainer.fit(model, loader).rows[-1]["train_loss"]
    examples = []
    for line, translation in zip(FOUR, translate(model, FOUR, *words), strict=True):
        references = [" ".join(p.target) for p in read if p.source == tuple(tokenize(line))]
        examples.append({"English": line, "said": translation, "read with": references})
    fresh = [p for p in corpus[1000:1400] if all(t in words[0] for t in p.source)]
    translation = translate(model, [" ".join(p.source) for p in fresh], *words)
    right = {}
    for p in corpus:
        right.setdefault(p.source, set()).add(" ".join(p.target))
    hits = sum(a in right[p.source] for a, p in zip(translation, fresh, strict=True))
    result = {"loss": round(loss, 4), "unread": len(fresh), "unread_right": hits}
    return {"result": result, "examples": examples}
