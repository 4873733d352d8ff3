"""The trainings of *The Transformer* that are made beforehand: `make runs CHAPTER=10`."""

from course_utils.data.text import EOS, pad
from course_utils.data.translation import load_sentences
from course_utils.decoding import greedy
from course_utils.interventions import intervene
from course_utils.kit.runs import stored
from course_utils.lessons.multi_head_attention.runs import everyday_translator
from course_utils.lessons.transformer.machine import LONGEST, ratios
from course_utils.lessons.transformer.totals import KINDS, draw, score, train_totals, without

SEEDS = (0, 1, 2)


@stored(
    cases=[{"kind": kind, "seed": seed} for kind in KINDS for seed in SEEDS],
    small=True,
)
def changed_model(*, kind: str, seed: int) -> dict:
    """The chapter's model with one change, trained as in the chapter: shares of 1,000 rows held out."""
    model = without(kind, seed)
    losses = train_totals(model, seed=seed)
    result = score(model, draw(1000, seed=7, held_out=True))
    result["loss"] = sum(losses[-20:]) / 20
    result["parameters"] = sum(
        weight.numel() for weight in model.parameters() if weight.requires_grad
    )
    return {"result": result}


@stored(
    cases=[
        {"kind": kind, "rate": rate, "seed": seed}
        for kind, rates in (
            ("no residual connections", (0.001, 0.003, 0.01)),
            ("no position-wise networks", (0.01,)),
        )
        for rate in rates
        for seed in SEEDS
    ],
)
def three_times_as_long(*, kind: str, rate: float, seed: int) -> dict:
    """The same with 750 steps: shares of 1,000 rows held out, and the loss of the last 20 steps."""
    model = without(kind, seed)
    losses = train_totals(model, steps=750, lr=rate, seed=seed)
    result = score(model, draw(1000, seed=7, held_out=True))
    result["loss"] = sum(losses[-20:]) / 20
    return {"result": result}


@stored(
    cases=[
        {"kind": kind}
        for kind in ("nothing", "no layer norms", "batch norm for layer norm", "norm after the sum")
    ],
    rates=(0.001, 0.03),  # 0.01 is above
    seeds=SEEDS,
)
def norms_at_rates(*, kind: str, rate: float, seed: int) -> dict:
    """Where the norm stands, and whether there is one, at the other rates: shares of 1,000 rows held out."""
    model = without(kind, seed)
    train_totals(model, lr=rate, seed=seed)
    result = score(model, draw(1000, seed=7, held_out=True))
    return {"result": result}


@stored(
    cases=[{"sentences": 40}],
    data=["translation/sentences.tsv", "models/everyday_fr.npz"],
    small=True,
)
def everyday_parts(*, sentences: int) -> dict:
    """The bars of the course's larger translator, and the share of sentences that change without its networks.

    Args:
        sentences: of the course's own, the first ones of 6 to 10 tokens.
    """
    model, pieces = everyday_translator()
    asked = [pair.source for pair in load_sentences("fr") if 6 <= len(pair.source) <= 10]
    batch = pad([[*pieces.encode(" ".join(text)), EOS] for text in asked[:sentences]])
    before = greedy(model, *batch, max_len=2 * LONGEST)
    with intervene(model) as acts:
        acts.ablate("feed_forward")
        now = greedy(model, *batch, max_len=2 * LONGEST)
    changed = sum(a != b for a, b in zip(now, before, strict=True)) / sentences
    return {"result": ratios(model, *batch, before) | {"changed without networks": changed}}
