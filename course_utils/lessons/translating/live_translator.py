"""How the stored translator was trained: the chapter's network and loop on the sentences of `larger_world`."""

from course_utils.kit.runs import stored
from course_utils.lessons.bahdanau_attention.live_translator import kept
from course_utils.lessons.sequence_to_sequence.larger_world import larger_world
from course_utils.models.transformer import Transformer
from course_utils.runtime import seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

SHAPE = {"embed_dim": 64, "num_heads": 4, "ffn_dim": 64, "num_layers": 2, "norm_first": True}
RATE, WARMUP, PASSES = 0.007, 60, 2


@stored(
    cases=[{"seed": 0}],
    data=["translation/grammar_fr.tsv", "translation/sentences.tsv"],
)
def live_translator(*, seed: int) -> dict:
    """The translator of *Start here* and *Translating*; it is saved as the live model."""
    world = larger_world()
    vocabularies = world.source_vocab, world.target_vocab
    seed_everything(seed)
    model = Transformer(*map(len, vocabularies), dropout=0.0, **SHAPE)
    loader = world.loader(world.train, seed=seed)
    held_out = world.loader(world.val, batch_size=128, shuffle=False)
    rows = (
        Trainer(
            translation_loss(),
            epochs=PASSES,
            lr=RATE,
            schedule=warmup_decay(WARMUP, PASSES * len(loader)),
            seed=seed,
            quiet=True,
        )
        .fit(model, loader, held_out)
        .rows
    )
    return kept("translator_fr", model, SHAPE, {"val_loss": rows[-1]["val_loss"]})
