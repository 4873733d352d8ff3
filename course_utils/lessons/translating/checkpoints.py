"""What the stored translator was before it was trained, and early in its training: the same recipe, once more."""

import torch

from course_utils.lessons.live import load_model, save_model
from course_utils.lessons.runs import stored
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
    loader = world.loader(world.train, seed=seed)
    held_out = world.loader(world.val, batch_size=128, shuffle=False)
    objective, result, step = translation_loss(), {}, 0

    @torch.no_grad()
    def loss() -> float:
        with evaluating(model):
            sums = [objective(model, batch) for batch in held_out]
        return round(sum(s.item() for s, _ in sums) / sum(count for _, count in sums), 4)

    def watched(model, batch):
        nonlocal step
        if step in EARLIER and f"loss, {step}" not in result:
            result[f"loss, {step}"] = loss()
            save_model(f"translator_fr_{step}", model, {**sizes, **SHAPE})
        step += model.training
        return objective(model, batch)

    schedule = warmup_decay(WARMUP, PASSES * len(loader))
    trainer = Trainer(watched, epochs=PASSES, lr=RATE, schedule=schedule, seed=seed, quiet=True)
    trainer.fit(model, loader)
    result |= {"steps": step, "loss, again": loss()}
    model.load_state_dict(load_model("translator_fr").state)
    return {"result": result | {"loss": loss()}}
