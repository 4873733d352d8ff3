"""The trainings of *Translating* that are made beforehand: `make runs CHAPTER=11`."""

import statistics
from pathlib import Path

from course_utils.data.translation import collate
from course_utils.decoding import beam_search, greedy, translate
from course_utils.kit.runs import stored
from course_utils.lessons.bahdanau_attention.alignment import errors
from course_utils.lessons.sequence_to_sequence.real import learned
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, small_world
from course_utils.lessons.translating.beams import (
    translator_checkpoints as translator_checkpoints,
)
from course_utils.lessons.translating.everyday import everyday as everyday
from course_utils.lessons.translating.real import real_transformer as real_transformer
from course_utils.lessons.translating.real import translation_memory as translation_memory
from course_utils.metrics import bleu
from course_utils.models.recurrent import AttentionTranslator
from course_utils.models.transformer import Transformer
from course_utils.runtime import seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import inverse_sqrt, warmup_decay
from course_utils.train.trainer import Trainer

DATA = ["translation/grammar_fr.tsv", "translation/sentences.tsv"]
PARTS = ["new_model", "train", "score", "log_p", "cross_maps", "sizes", "world", "vocabularies"]
GROUPS = {"exact_5": (4, 5), "exact_6": (6, 6), "exact_7": (7, 7), "exact_10": (8, 10)}


@stored(cases=[{"seed": seed} for seed in range(3)], chapter=PARTS, data=DATA)
def translator(chapter, *, seed: int) -> dict:
    """The chapter's Transformer: its losses, its translations with several beams, and its maps."""
    model = chapter.new_model(seed)
    rows = chapter.train(model, seed).rows
    score, exact, hits = chapter.score(model, chapter.world.test)
    translations = translate(model, FOUR, *chapter.vocabularies)
    result = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "train_loss": rows[-1]["train_loss"],
        "val_loss": rows[-1]["val_loss"],
        "bleu": score,
        "exact": exact,
        "four": sum(
            a in chapter.world.references[line] for line, a in zip(FOUR, translations, strict=True)
        ),
    }
    for name, (low, high) in GROUPS.items():
        group = [
            hit
            for pair, hit in zip(chapter.world.test, hits, strict=True)
            if low <= len(pair.source) <= high
        ]
        result[name] = sum(group) / len(group)
    result |= _beams(chapter, model) | _maps(chapter, model)
    curves = {name: [[row["epoch"], round(row[name], 4)] for row in rows] for name in ("val_loss",)}
    return {"result": {name: round(value, 4) for name, value in result.items()}, "curves": curves}


def _beams(chapter, model) -> dict[str, float]:
    """BLEU, exact translations, tokens and log-probabilities of several beams, and whose errors they are."""
    english, french = chapter.vocabularies
    pairs = chapter.world.test
    right = [" ".join(pair.target) for pair in pairs]
    batch = collate([(english.encode(pair.source), french.encode(pair.target)) for pair in pairs])
    log_p_right = chapter.log_p(model, pairs, [list(pair.target) for pair in pairs])
    result = {}
    for name, size, penalty in (
        ("1", 1, 0.6), ("2", 2, 0.6), ("4", 4, 0.6), ("8", 8, 0.6), ("4, 0", 4, 0.0), ("4, 1.2", 4, 1.2),
    ):  # fmt: skip
        if size == 1:
            decoded = greedy(model, batch.source, batch.source_lens, max_len=20)
        else:
            decoded = beam_search(
                model, batch.source, batch.source_lens,
                beam_size=size, max_len=20, length_penalty=penalty,
            )  # fmt: skip
        words = [french.decode(ids) for ids in decoded]
        lines = [" ".join(tokens) for tokens in words]
        given = chapter.log_p(model, pairs, words)
        wrong = [i for i, line in enumerate(lines) if line != right[i]]
        result |= {
            f"bleu, {name}": bleu(lines, right),
            f"exact, {name}": 1 - len(wrong) / len(pairs),
            f"tokens, {name}": statistics.mean(map(len, words)),
            f"log_p, {name}": float(given.mean()),
            f"right is likelier, {name}": sum(bool(log_p_right[i] > given[i]) for i in wrong)
            / len(wrong),
        }
    return result


def _maps(chapter, model) -> dict[str, float]:
    """Alignment error rates: of the mean of all heads, and of the layer and row that validation chose."""
    val, test = chapter.world.val, chapter.world.test
    on_val, on_test = (
        chapter.cross_maps(model, pairs, chapter.vocabularies) for pairs in (val, test)
    )
    result = {}
    for row, cut in (("says", slice(None, -1)), ("reads", slice(1, None))):
        means = [attention[..., cut, :].mean(dim=(0, 1)) for attention in on_test]
        result[f"aer, {row}"], result[f"aer_crossed, {row}"] = errors(means, test)
        for layer in range(2):
            chosen = [attention[layer, :, cut].mean(dim=0) for attention in on_val]
            result[f"val_aer, {layer}, {row}"] = errors(chosen, val)[0]
            shown = [attention[layer, :, cut].mean(dim=0) for attention in on_test]
            rates = errors(shown, test)
            result[f"aer, {layer}, {row}"], result[f"aer_crossed, {layer}, {row}"] = rates
    heads = {
        (layer, head): errors([attention[layer, head, :-1] for attention in on_val], val)[0]
        for layer in range(2)
        for head in range(4)
    }
    layer, head = min(heads, key=lambda key: heads[key])
    best = errors([attention[layer, head, :-1] for attention in on_test], test)
    result |= {"aer, head": best[0], "aer_crossed, head": best[1]}
    return {name: float(value) for name, value in result.items()} | {"layer": layer, "head": head}


@stored(
    cases=[{"epochs": 20, "width": 512, "layers": 6, "pairs": 1_000_000, "seed": 0}],
    minutes=12,
    quick={"epochs": 1, "width": 16, "layers": 1, "pairs": 60},
)
def full_size(*, width: int, layers: int, checkpoint: Path | None = None, **options) -> dict:
    """All English–French pairs of at most ten tokens; norm after, warm-up and rate as in the paper."""
    warmup = 4000
    sizes = {"embed_dim": width, "num_heads": 8, "ffn_dim": 4 * width, "num_layers": layers}
    return learned(
        "fr",
        lambda *words: Transformer(*words, **sizes, dropout=0.1, norm_first=False),
        lambda steps: inverse_sqrt(warmup),
        lr=(width * warmup) ** -0.5,
        label_smoothing=0.1,
        checkpoint=checkpoint,
        **options,
    )


EPOCHS, RATE, DROPOUT = 18, 0.009, 0.2


@stored(seeds=range(3), data=["translation/grammar_fr.tsv", "translation/sentences.tsv"])
def recurrent_for_longer(*, seed: int) -> dict:
    """Losses, and BLEU and the shares of exact translations of the test sentences."""
    world = small_world("fr")
    vocabularies, test = (world.source_vocab, world.target_vocab), world.test
    seed_everything(seed)
    model = AttentionTranslator(
        *map(len, vocabularies), embed_dim=64, hidden_dim=64, dropout=DROPOUT
    )
    loader = world.loader(world.train, seed=seed)
    schedule = warmup_decay(50, EPOCHS * len(loader))
    trainer = Trainer(
        translation_loss(), epochs=EPOCHS, lr=RATE, schedule=schedule, seed=seed, quiet=True
    )
    rows = trainer.fit(model, loader, world.loader(world.val, shuffle=False)).rows
    translations = translate(model, [" ".join(p.source) for p in test], *vocabularies, max_len=20)
    right = [" ".join(pair.target) for pair in test]
    hits = [a == b for a, b in zip(translations, right, strict=True)]
    result = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "train_loss": rows[-1]["train_loss"],
        "val_loss": rows[-1]["val_loss"],
        "bleu": bleu(translations, right),
        "exact": sum(hits) / len(hits),
    }
    for name, (low, high) in {"exact_5": (4, 5), "exact_10": (8, 10)}.items():
        group = [hit for hit, p in zip(hits, test, strict=True) if low <= len(p.source) <= high]
        result[name] = sum(group) / len(group)
    return {
        "result": {name: round(float(value), 4) for name, value in result.items()},
        "curves": {"val_loss": [[row["epoch"], round(row["val_loss"], 4)] for row in rows]},
    }
