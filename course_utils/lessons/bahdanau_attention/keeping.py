"""A translator of `larger_world`, trained and stored as a live model, with what it was early in its training."""

from collections.abc import Mapping

import torch
from torch import nn

from course_utils.decoding import translate
from course_utils.kit.live import save_model, tell
from course_utils.lessons.bahdanau_attention.telling import examples_of
from course_utils.lessons.sequence_to_sequence.larger_world import larger_world
from course_utils.lessons.sequence_to_sequence.small_world import FOUR
from course_utils.metrics import bleu
from course_utils.runtime import evaluating
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

EARLIER = (0, 100)  # steps


def fit_and_keep(
    model: nn.Module,
    name: str,
    config: Mapping,
    *,
    rate: float,
    warmup: int,
    passes: int,
    seed: int,
) -> dict[str, float]:
    """Train a translator on `larger_world`, and store what it was at the steps of `EARLIER` as `<name>_<steps>`.

    The result: "steps" in all, the held-out loss at the end, and "loss, <steps>" of those.
    """
    world = larger_world()
    loader = world.loader(world.train, seed=seed)
    objective, result, step = translation_loss(), {}, 0

    def watched(model, batch):
        nonlocal step
        if step in EARLIER and f"loss, {step}" not in result:
            result[f"loss, {step}"] = held_out_loss(model)
            save_model(f"{name}_{step}", model, config)
        step += model.training
        return objective(model, batch)

    schedule = warmup_decay(warmup, passes * len(loader))
    trainer = Trainer(watched, epochs=passes, lr=rate, schedule=schedule, seed=seed, quiet=True)
    trainer.fit(model, loader)
    return result | {"steps": step, "loss": held_out_loss(model)}


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


def kept(name: str, model: nn.Module, shape: Mapping, measured: Mapping[str, float]) -> dict:
    """Save a translator of `larger_world` as a live model; give its scores on the sentences that it has not read."""
    world = larger_world()
    vocabularies = world.source_vocab, world.target_vocab
    sizes = {"source_size": len(vocabularies[0]), "target_size": len(vocabularies[1])}
    tokens = {"source": vocabularies[0].tokens, "target": vocabularies[1].tokens}
    save_model(name, model, {**sizes, **shape}, tokens)
    tell(name, **examples_of(type(model), name))
    said = translate(model, [" ".join(pair.source) for pair in world.test], *vocabularies)
    right = [" ".join(pair.target) for pair in world.test]
    four = translate(model, FOUR, *vocabularies)
    result = {
        "bleu": bleu(said, right),
        "exact": sum(a == b for a, b in zip(said, right, strict=True)) / len(right),
        "four": sum(a in world.references[line] for line, a in zip(FOUR, four, strict=True)),
    } | measured
    return {"result": {key: round(value, 4) for key, value in result.items()}}
