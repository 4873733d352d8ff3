"""Translators of `larger_world` as live models: trained, stored with what they were early, and described."""

from collections.abc import Iterable, Mapping

import torch
from torch import nn

from course_utils.data.text import BOS, EOS, Vocabulary, tokenize
from course_utils.decoding import greedy, translate
from course_utils.kit.runs import stored
from course_utils.kit.stored_model import StoredModel, checkpoints_of
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, larger_world
from course_utils.metrics import bleu
from course_utils.models.recurrent import AttentionTranslator
from course_utils.runtime import evaluating, seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

# Trained and stored -------------------------------------------------------------------------------

EARLIER = (0, 100)  # steps


def fit(
    model: nn.Module,
    name: str,
    config: Mapping,
    *,
    rate: float,
    warmup: int,
    passes: int,
    seed: int,
) -> tuple[dict[str, float], dict[str, StoredModel]]:
    """Train a translator on `larger_world`: its result, and what it was at the steps of `EARLIER`, `<name>_<steps>`.

    The result: "steps" in all, the held-out loss at the end, and "loss, <steps>" of those.
    """
    world = larger_world()
    loader = world.loader(world.train, seed=seed)
    objective, result, step = translation_loss(), {}, 0
    models = {}

    def watched(model, batch):
        nonlocal step
        if step in EARLIER and f"loss, {step}" not in result:
            result[f"loss, {step}"] = held_out_loss(model)
            models[f"{name}_{step}"] = StoredModel.of(model, config)
        step += model.training
        return objective(model, batch)

    schedule = warmup_decay(warmup, passes * len(loader))
    trainer = Trainer(watched, epochs=passes, lr=rate, schedule=schedule, seed=seed, quiet=True)
    trainer.fit(model, loader)
    return result | {"steps": step, "loss": held_out_loss(model)}, models


@torch.no_grad()
def held_out_loss(model: nn.Module) -> float:
    """Cross-entropy per token in nats, on the validation sentences of `larger_world`."""
    world, objective = larger_world(), translation_loss()
    with evaluating(model):
        sums = [
            objective(model, batch)
            for batch in world.loader(world.val, batch_size=128, shuffle=False)
        ]
    return round(sum(s.item() for s, _ in sums) / sum(count for _, count in sums), 4)


def scores(model: nn.Module) -> dict[str, float]:
    """A translator's scores on sentences of `larger_world` that it has not read."""
    world = larger_world()
    vocabularies = world.source_vocab, world.target_vocab
    translations = translate(model, [" ".join(pair.source) for pair in world.test], *vocabularies)
    right = [" ".join(pair.target) for pair in world.test]
    four = translate(model, FOUR, *vocabularies)
    return {
        "bleu": bleu(translations, right),
        "exact": sum(a == b for a, b in zip(translations, right, strict=True)) / len(right),
        "four": sum(a in world.references[line] for line, a in zip(FOUR, four, strict=True)),
    }


# What a page tells of a translator ----------------------------------------------------------------

LONG = 5
"""An example has so many tokens at least."""


def model_card(model: nn.Module) -> dict:
    """`examples`: sentence, translation, what is right. `score`: how many of how many are right. `answers`.

    `model` has the weights that a page computes with.
    """
    world = larger_world()
    lines = [" ".join(pair.source) for pair in world.test]
    right = [" ".join(pair.target) for pair in world.test]
    translations = translate(model, lines, world.source_vocab, world.target_vocab)
    every = [
        {"sentence": line, "said": mine, "right": theirs}
        for line, mine, theirs in zip(lines, translations, right, strict=True)
        if len(line.split()) >= LONG
    ]
    good = [each for each in every if each["said"] == each["right"]]
    bad = [each for each in every if each["said"] != each["right"]]
    examples = [*good[:2], *bad[:1]]
    score = [sum(a == b for a, b in zip(translations, right, strict=True)), len(translations)]
    answers = answers_of(model, [each["sentence"] for each in examples])
    return {"examples": examples, "score": score, "answers": answers}


@torch.no_grad()
def answers_of(
    model: nn.Module, lines: Iterable[str], words: Vocabulary | None = None
) -> list[dict]:
    """Ids of each sentence and of its translation, and the ten largest logits after it.

    `words`: those that it reads; of `larger_world`, unless others are given.
    """
    answers = []
    for line in lines:
        read = words or larger_world().source_vocab
        ids = torch.tensor([[*read.encode(tokenize(line)), EOS]])
        lens = torch.tensor([ids.shape[1]])
        output_ids = greedy(model, ids, lens)[0]
        best = model(ids, lens, torch.tensor([[BOS, *output_ids]]))[0, -1].topk(10)
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        logits = [[token, round(value, 6)] for token, value in pairs]
        answers.append({"source": ids[0].tolist(), "said": output_ids, "logits": logits})
    return answers


def cards_of_checkpoints(
    kind: type[nn.Module], models: Mapping[str, StoredModel], examples: Iterable[Mapping]
) -> dict[str, dict]:
    """What each checkpoint says to the examples of a model's card."""
    lines = [each["sentence"] for each in examples]
    return {
        name: {"answers": answers_of(model.for_page().network(kind), lines)}
        for name, model in models.items()
    }


# The chapter's translator that looks back, trained on what the stored Transformer has read --------

SHAPE = {"embed_dim": 64, "hidden_dim": 64}
RECIPE = {"rate": 0.009, "warmup": 50, "passes": 9}  # the chapter's


@stored(cases=[{"seed": 0}])
def live_translator(*, seed: int) -> dict:
    """The translator beside the Transformer in the live alignments, as a live model."""
    world = larger_world()
    seed_everything(seed)
    sizes = {"source_size": len(world.source_vocab), "target_size": len(world.target_vocab)}
    model = AttentionTranslator(**sizes, dropout=0.0, **SHAPE)
    result, earlier = fit(model, "bahdanau_fr", sizes | SHAPE, **RECIPE, seed=seed)
    tokens = {"source": world.source_vocab.tokens, "target": world.target_vocab.tokens}
    stored_model = StoredModel.of(model, sizes | SHAPE, tokens)
    card = model_card(stored_model.for_page().network(AttentionTranslator))
    cards = cards_of_checkpoints(AttentionTranslator, earlier, card["examples"])
    card |= {"checkpoints": checkpoints_of("bahdanau_fr", EARLIER, result), "gold": gold()}
    return {
        "result": scores(model) | result,
        "models": {"bahdanau_fr": stored_model} | earlier,
        "cards": {"bahdanau_fr": card} | cards,
    }


def gold() -> list[list[str]]:
    """English, French and links, "0-1" for English 0 and French 1, of sentences that were not read."""
    pairs = {pair.source: pair for pair in reversed([*larger_world().test, *larger_world().val])}
    return [
        [
            " ".join(pair.source),
            " ".join(pair.target),
            " ".join(f"{s}-{t}" for s, t in sorted(pair.alignment or ())),
        ]
        for pair in reversed(pairs.values())
    ]
