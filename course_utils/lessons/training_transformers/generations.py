"""The first generation of the Transformer beside the standard one, on 300 pairs and at full size.

Stored runs of *Training transformers*; the second one needs a GPU.
"""

from pathlib import Path

from torch import nn

from course_utils.kit.runs import stored
from course_utils.lessons.sequence_to_sequence.translator_training import train_on_tatoeba
from course_utils.lessons.training_transformers.small_spanish import WARMUP, rate, spanish_world
from course_utils.lessons.training_transformers.variants import FirstGeneration
from course_utils.models.transformer import Transformer
from course_utils.runtime import seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import inverse_sqrt
from course_utils.train.trainer import Trainer

PAIRS = 300
"""Pairs of the small training."""

PASSES = 24
"""Epochs of the small training."""

RATES = {
    "standard": (1e-3, 3e-3, 1e-2, 2e-2),
    "first generation": (5e-4, 1e-3, 2e-3, 3e-3),
}


@stored(
    cases=[{"kind": kind, "lr": lr, "seed": 0} for kind, rates in RATES.items() for lr in rates],
)
def generations(*, kind: str, lr: float, seed: int) -> dict:
    """Scores of one of the models, equally wide and deep, on 20 sentences that it has read and on 20 others."""
    world = spanish_world()
    seen, sizes = world.train[:PAIRS], (len(world.source_vocab), len(world.target_vocab))
    seed_everything(seed)
    shape = {"embed_dim": 32, "num_heads": 4, "num_layers": 2}
    model: nn.Module
    if kind == "standard":
        model = Transformer(*sizes, ffn_dim=64, dropout=0.0, norm_first=False, **shape)
    else:
        model = FirstGeneration(*sizes, **shape)
    loader = world.loader(seen, batch_size=30, seed=seed)
    history = Trainer(
        translation_loss(), epochs=PASSES, lr=lr,
        schedule=lambda step: rate(step, WARMUP), seed=seed, quiet=True,
    ).fit(model, loader)  # fmt: skip
    result, examples = {"loss": history.rows[-1]["train_loss"]}, []
    for name, pairs in (("seen", seen), ("not seen", world.val)):
        twenty = world.say(model, pairs[:20])
        references = [" ".join(pair.target) for pair in pairs[:20]]
        result[f"{name}, right of 20"] = sum(map(str.__eq__, twenty, references))
        result[f"{name}, bleu"] = world.bleu(model, pairs)
        examples += [
            {"part": name, "source": " ".join(pair.source), "target": right, "said": translation}
            for pair, right, translation in zip(pairs, references, twenty, strict=False)
        ]
    return {"result": result, "examples": examples}


@stored(
    cases=[
        {"kind": kind, "epochs": 40, "width": 256, "layers": 4, "pairs": 90_000, "seed": 0}
        for kind in ("norm first", "first generation")
    ],
    minutes=45,
    quick={"epochs": 1, "width": 16, "layers": 1, "pairs": 60},
)
def generations_at_full_size(
    *, kind: str, width: int, layers: int, pairs: int, checkpoint: Path | None = None, **options
) -> dict:
    """Scores of one of the models at the size of Kak (2025), on English–Spanish pairs of at most eight words a side.

    As in the lecture, punctuation is no word: 93,582 pairs qualify. The first generation has 274 million parameters,
    because the heads of every attention read the flattened sentence; the other model has 8 million.
    """
    warmup, max_tokens = 4000, 8
    shape = {"embed_dim": width, "num_heads": 4, "num_layers": layers}

    def new_model(*sizes: int) -> nn.Module:
        if kind == "norm first":
            return Transformer(*sizes, ffn_dim=2 * width, dropout=0.1, norm_first=True, **shape)
        return FirstGeneration(*sizes, length=max_tokens + 2, flat_attention=True, **shape)

    return train_on_tatoeba(
        "es",
        new_model,
        schedule=lambda steps: inverse_sqrt(warmup),
        pairs=pairs,
        at_least=pairs,
        max_tokens=max_tokens,
        words_only=True,
        batch=50,
        lr=(width * warmup) ** -0.5,
        label_smoothing=0.1,
        graphs=True,
        checkpoint=checkpoint,
        **options,
    )
