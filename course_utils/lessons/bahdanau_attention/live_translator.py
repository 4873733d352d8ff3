"""The chapter's translator that looks back, trained on what the stored Transformer has read."""

from course_utils.kit.runs import stored
from course_utils.lessons.bahdanau_attention.keeping import fit_and_keep, kept
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
    return kept("bahdanau_fr", model, SHAPE, result)
