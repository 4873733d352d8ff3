"""The chapter's translator that looks back, trained on what the stored Transformer has read."""

from course_utils.lessons.runs import stored
from course_utils.lessons.translating.larger_world import larger_world
from course_utils.lessons.translating.live_translator import kept
from course_utils.models.recurrent import AttentionTranslator
from course_utils.runtime import seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

SHAPE = {"embed_dim": 64, "hidden_dim": 64}
RATE, WARMUP, PASSES = 0.009, 50, 9  # the chapter's


@stored(
    cases=[{"seed": 0}],
    data=["translation/grammar_fr.tsv", "translation/sentences.tsv"],
)
def live_translator(*, seed: int) -> dict:
    """The translator beside the Transformer in the live alignments; it is saved as the live model."""
    world = larger_world()
    seed_everything(seed)
    sizes = len(world.source_vocab), len(world.target_vocab)
    model = AttentionTranslator(*sizes, dropout=0.0, **SHAPE)
    loader = world.loader(world.train, seed=seed)
    held_out = world.loader(world.val, batch_size=128, shuffle=False)
    trainer = Trainer(
        translation_loss(),
        epochs=PASSES,
        lr=RATE,
        schedule=warmup_decay(WARMUP, PASSES * len(loader)),
        seed=seed,
        quiet=True,
    )
    rows = trainer.fit(model, loader, held_out).rows
    return kept("bahdanau_fr", model, SHAPE, rows[-1]["val_loss"])
