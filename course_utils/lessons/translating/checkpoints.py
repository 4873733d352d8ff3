"""What the stored translator was before it was trained, and early in its training: the same recipe, once more."""

from collections.abc import Mapping

import torch
from torch import nn

from course_utils.kit.live import load_model, save_model
from course_utils.kit.runs import stored
from course_utils.lessons.translating.larger_world import larger_world
from course_utils.lessons.translating.live_translator import PASSES, RATE, SHAPE, WARMUP
from course_utils.models.transformer import Transformer
from course_utils.runtime import evaluating, seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

EARLIER = (0, 100)  # steps


@stored(
    cases=[{"seed": 0}],
    data=["translation/grammar_fr.tsv", "translation/sentences.tsv"],
)
def translator_checkpoints(*, seed: int) -> dict:
    """The live translator at some steps of its training, and the held-out losses there.

    `loss` is that of the stored translator, `loss, again` that of this training's end.
    """
    world = larger_world()
    seed_everything(seed)
    sizes = {"source_size": len(world.source_vocab), "target_size": len(world.target_vocab)}
    model = Transformer(**sizes, dropout=0.0, **SHAPE)
    recipe = {"rate": RATE, "warmup": WARMUP, "passes": PASSES, "seed": seed}
    result = fit_and_keep(model, "translator_fr", sizes | SHAPE, **recipe)
    result["loss, again"] = result["loss"]
    model.load_state_dict(load_model("translator_fr").state)
    return {"result": result | {"loss": held_out_loss(model)}}


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
