"""The chapter's translator that looks back, trained on what the stored Transformer has read."""

from course_utils.kit.live import tell
from course_utils.kit.runs import stored
from course_utils.lessons.bahdanau_attention.keeping import EARLIER, fit_and_keep, kept
from course_utils.lessons.bahdanau_attention.telling import tell_earlier
from course_utils.lessons.sequence_to_sequence.larger_world import larger_world
from course_utils.models.recurrent import AttentionTranslator
from course_utils.runtime import seed_everything

SHAPE = {"embed_dim": 64, "hidden_dim": 64}
RECIPE = {"rate": 0.009, "warmup": 50, "passes": 9}  # the chapter's


@stored(
    cases=[{"seed": 0}],
    data=["translation/grammar_fr.tsv", "translation/sentences.tsv"],
)
def live_translator(*, seed: int) -> dict:
    """The translator beside the Transformer in the live alignments; it is saved as the live model."""
    world = larger_world()
    seed_everything(seed)
    sizes = {"source_size": len(world.source_vocab), "target_size": len(world.target_vocab)}
    model = AttentionTranslator(**sizes, dropout=0.0, **SHAPE)
    result = fit_and_keep(model, "bahdanau_fr", sizes | SHAPE, **RECIPE, seed=seed)
    made = kept("bahdanau_fr", model, SHAPE, result)
    tell_earlier(AttentionTranslator, "bahdanau_fr", EARLIER, result)
    tell("bahdanau_fr", gold=gold())
    return made


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
