"""The recipe of the stored translator, once more: what it was before it was trained, and early in its training."""

from course_utils.kit.live import load_model
from course_utils.kit.runs import stored
from course_utils.lessons.bahdanau_attention.live_translator import (
    EARLIER,
    fit_and_keep,
    held_out_loss,
    tell_earlier,
)
from course_utils.lessons.sequence_to_sequence.small_world import larger_world
from course_utils.models.transformer import Transformer
from course_utils.runtime import seed_everything

SHAPE = {"embed_dim": 64, "num_heads": 4, "ffn_dim": 64, "num_layers": 2, "norm_first": True}
RATE, WARMUP, PASSES = 0.007, 60, 2


@stored(cases=[{"seed": 0}], data=["translation/grammar_fr.tsv", "translation/sentences.tsv"])
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
    result["loss"] = held_out_loss(model)
    tell_earlier(Transformer, "translator_fr", EARLIER, result)
    return {"result": result}
