"""Both recurrent translators on all real sentences, 256 wide: `make gpu CHAPTER=06`."""

from pathlib import Path

from course_utils.kit.runs import stored
from course_utils.lessons.sequence_to_sequence.full_size import learned
from course_utils.models.recurrent import AttentionTranslator, RecurrentTranslator
from course_utils.train.schedules import warmup_decay

EPOCHS, WIDTH, ALL = 10, 256, 1_000_000


@stored(
    cases=[
        {"attention": attention, "epochs": EPOCHS, "width": WIDTH, "pairs": ALL, "seed": 0}
        for attention in (False, True)
    ],
    minutes=6,
    quick={"epochs": 1, "width": 16, "pairs": 60},
)
def full_size(
    *,
    attention: bool,
    epochs: int,
    width: int,
    pairs: int,
    seed: int,
    checkpoint: Path | None = None,
) -> dict:
    """All English–French pairs of at most ten tokens, with a fixed context or with attention."""
    kind = AttentionTranslator if attention else RecurrentTranslator
    return learned(
        "fr",
        lambda *sizes: kind(*sizes, embed_dim=width, hidden_dim=width, num_layers=2, dropout=0.2),
        lambda steps: warmup_decay(steps // 4, epochs * steps + 1),
        pairs=pairs,
        max_tokens=10,
        epochs=epochs,
        batch=128,
        lr=1e-3,
        seed=seed,
        checkpoint=checkpoint,
    )
