"""The norm-first Transformer and the flattened first generation, as wide and deep as they were: `make gpu CHAPTER=12`.

90,000 English–Spanish pairs of at most eight tokens a side, 256 features, 4 + 4 layers, 4 heads, 40 epochs (Kak, 2025).
"""

from pathlib import Path

from torch import nn

from course_utils.kit.runs import stored
from course_utils.lessons.sequence_to_sequence.full_size import learned
from course_utils.lessons.training_transformers.first_generation import FirstGeneration
from course_utils.models.transformer import Transformer
from course_utils.train.schedules import inverse_sqrt

EPOCHS, WIDTH, LAYERS, PAIRS, WARMUP = 40, 256, 4, 90_000, 4000
MAX_TOKENS = 8
KINDS = ("norm first", "first generation")


@stored(
    cases=[
        {
            "kind": kind,
            "epochs": EPOCHS,
            "width": WIDTH,
            "layers": LAYERS,
            "pairs": PAIRS,
            "seed": 0,
        }
        for kind in KINDS
    ],
    minutes=45,
    quick={"epochs": 1, "width": 16, "layers": 1, "pairs": 60},
)
def full_size(
    *,
    kind: str,
    epochs: int,
    width: int,
    layers: int,
    pairs: int,
    seed: int,
    checkpoint: Path | None = None,
) -> dict:
    """One of both models; the first generation has 270 million parameters, the other one 8 million."""
    shape = {"embed_dim": width, "num_heads": 4, "num_layers": layers}

    def new_model(*sizes: int) -> nn.Module:
        if kind == "norm first":
            return Transformer(*sizes, ffn_dim=2 * width, dropout=0.1, norm_first=True, **shape)
        return FirstGeneration(*sizes, length=MAX_TOKENS + 2, **shape)

    return learned(
        "es",
        new_model,
        lambda steps: inverse_sqrt(WARMUP),
        pairs=pairs,
        max_tokens=MAX_TOKENS,
        epochs=epochs,
        batch=50,
        lr=(width * WARMUP) ** -0.5,
        label_smoothing=0.1,
        seed=seed,
        checkpoint=checkpoint,
    )
