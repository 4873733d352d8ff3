"""How the stored translator was trained: the chapter's network and loop on the sentences of `larger_world`."""

from collections.abc import Mapping

from torch import nn

from course_utils.decoding import translate
from course_utils.kit.live import save_model
from course_utils.kit.runs import stored
from course_utils.lessons.sequence_to_sequence.small_world import FOUR
from course_utils.lessons.translating.larger_world import larger_world
from course_utils.metrics import bleu
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


def kept(name: str, model: nn.Module, shape: Mapping, measured: Mapping[str, float]) -> dict:
    """Save a translator of `larger_world` as a live model; give its scores on the sentences that it has not read."""
    world = larger_world()
    vocabularies = world.source_vocab, world.target_vocab
    sizes = {"source_size": len(vocabularies[0]), "target_size": len(vocabularies[1])}
    tokens = {"source": vocabularies[0].tokens, "target": vocabularies[1].tokens}
    save_model(name, model, {**sizes, **shape}, tokens)
    said = translate(model, [" ".join(pair.source) for pair in world.test], *vocabularies)
    right = [" ".join(pair.target) for pair in world.test]
    four = translate(model, FOUR, *vocabularies)
    result = {
        "bleu": bleu(said, right),
        "exact": sum(a == b for a, b in zip(said, right, strict=True)) / len(right),
        "four": sum(a in world.references[line] for line, a in zip(FOUR, four, strict=True)),
    } | measured
    return {"result": {key: round(value, 4) for key, value in result.items()}}
