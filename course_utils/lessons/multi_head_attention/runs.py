"""The trainings of *Multi-head attention* that are made beforehand, and heads of a translator, measured."""

import torch

from course_utils.attention import MultiHeadAttention
from course_utils.kit.runs import stored
from course_utils.lessons.multi_head_attention import dissection
from course_utils.lessons.multi_head_attention.lookups import (
    LookupNetwork,
    lookup_accuracy,
    train_lookups,
)
from course_utils.lessons.multi_head_attention.who_whom import (
    VerbReader,
    reader_accuracy,
    sentences,
    train_reader,
)

RATES, SEEDS, LONG = (0.003, 0.01, 0.03), (0, 1, 2), 900


@stored(cases=[{"sentences": 400}], data=["translation/sentences.tsv", "models/everyday_fr.npz"])
def translator_heads(*, sentences: int) -> dict:
    """The heads that look back at the French words in the live translator: weights, and losses without each."""
    return dissection.measured(sentences)


def _apart(*, objects: str, num_heads: int, rate: float, **_) -> float:
    """Where all seeds find both nouns, so does any machine; else whether a seed does is a matter of rounding."""
    return 1.0 if (objects, num_heads) == ("people", 1) or rate == max(RATES) else 0.02


@stored(
    cases=[
        {"objects": objects, "num_heads": heads, "steps": LONG}
        for objects, counts in (("things", (1,)), ("people", (1, 2)))
        for heads in counts
    ],
    rates=RATES,
    seeds=SEEDS,
    small=True,
    tolerance=_apart,
)
def verb_reader(*, objects: str, num_heads: int, steps: int, rate: float, seed: int) -> dict:
    """Who, and to whom? Shares of other sentences, 250 to choose by and 250 to tell; the package's layer."""
    torch.manual_seed(seed)
    reader = VerbReader(MultiHeadAttention(32, num_heads))
    loss = train_reader(reader, objects, steps=steps, lr=rate, seed=seed)
    _, others = sentences(objects, seed=seed)
    *_, validation = reader_accuracy(reader, others[:250])
    who, whom, both = reader_accuracy(reader, others[250:])
    scores = {"validation": validation, "who": who, "whom": whom, "both": both, "loss": loss}
    return {"result": {name: round(value, 4) for name, value in scores.items()}}


@stored(
    cases=[{"num_heads": heads, "steps": 300} for heads in (1, 2, 4)],
    rates=(0.01, 0.03, 0.1),
    seeds=SEEDS,
    small=True,
    tolerance=lambda *, num_heads, **_: 0.26 if num_heads == 1 else 0.02,
)
def cabinet(*, num_heads: int, steps: int, rate: float, seed: int) -> dict:
    """Two look-ups of one feature: shares of all cases, which are all that there are."""
    torch.manual_seed(seed)
    network = train_lookups(LookupNetwork(16, num_heads), steps=steps, lr=rate, seed=seed)
    names = ("first", "second", "both")
    shares = zip(names, lookup_accuracy(network).tolist(), strict=True)
    return {"result": {name: round(share, 4) for name, share in shares}}
