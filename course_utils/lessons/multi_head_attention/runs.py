"""The trainings of *Multi-head attention* that are made beforehand: `make runs CHAPTER=08`."""

import torch

from course_utils.attention import MultiHeadAttention
from course_utils.kit.runs import stored
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

SEEDS = (0, 1, 2)
SHORT, LONG = 300, 1500


@stored(
    cases=[
        {"objects": objects, "num_heads": heads, "steps": steps, "seed": seed}
        for objects, heads, steps, seeds in (
            ("things", 1, SHORT, SEEDS), ("things", 2, SHORT, SEEDS),
            ("people", 1, SHORT, range(10)), ("people", 2, SHORT, range(10)),
            ("people", 1, LONG, SEEDS),
        )
        for seed in seeds
    ],
    small=True,
    tolerance=0.35,
)  # fmt: skip
def verb_reader(*, objects: str, num_heads: int, steps: int, seed: int) -> dict:
    """Who, and to whom? Shares of 500 other sentences; the layer is the package's, equal to the chapter's."""
    torch.manual_seed(seed)
    reader = VerbReader(MultiHeadAttention(32, num_heads))
    loss = train_reader(reader, objects, steps=steps, seed=seed)
    _, test = sentences(objects, seed=seed)
    scores = dict(zip(("who", "whom", "both"), reader_accuracy(reader, test), strict=True))
    return {"result": {name: round(value, 4) for name, value in (scores | {"loss": loss}).items()}}


@stored(cases=[{"steps": LONG, "seed": seed} for seed in SEEDS], small=True, tolerance=0.26)
def one_head(*, steps: int, seed: int) -> dict:
    """Two look-ups with a single head, trained five times as long as in the chapter."""
    torch.manual_seed(seed)
    network = train_lookups(LookupNetwork(16, 1), steps=steps, seed=seed)
    names = ("first", "second", "both")
    shares = zip(names, lookup_accuracy(network).tolist(), strict=True)
    return {"result": {name: round(share, 4) for name, share in shares}}
