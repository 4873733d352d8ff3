"""The Transformer of the paper's base size on all real sentences: `make gpu CHAPTER=11`."""

from pathlib import Path

from course_utils.kit.runs import stored
from course_utils.lessons.sequence_to_sequence.full_size import learned
from course_utils.models.transformer import Transformer
from course_utils.train.schedules import inverse_sqrt

EPOCHS, WIDTH, LAYERS, ALL, WARMUP = 20, 512, 6, 1_000_000, 4000


@stored(
    cases=[{"epochs": EPOCHS, "width": WIDTH, "layers": LAYERS, "pairs": ALL, "seed": 0}],
    minutes=12,
    quick={"epochs": 1, "width": 16, "layers": 1, "pairs": 60},
)
def full_size(
    *, epochs: int, width: int, layers: int, pairs: int, seed: int, checkpoint: Path | None = None
) -> dict:
    """All English–French pairs of at most ten tokens; norm after, warm-up and rate as in the paper."""
    return learned(
        "fr",
        lambda *sizes: Transformer(
            *sizes,
            embed_dim=width,
            num_heads=8,
            ffn_dim=4 * width,
            num_layers=layers,
            dropout=0.1,
            norm_first=False,
        ),
        lambda steps: inverse_sqrt(WARMUP),
        pairs=pairs,
        max_tokens=10,
        epochs=epochs,
        batch=128,
        lr=(width * WARMUP) ** -0.5,
        label_smoothing=0.1,
        seed=seed,
        checkpoint=checkpoint,
    )
