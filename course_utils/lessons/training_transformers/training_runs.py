"""The trainings of *Training transformers* that were run beforehand, and the small corpus that all of them share.

data/training_runs/build_runs.py makes the file. Above: `translation`. Below: `explore` and *Training transformers*.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from course_utils.data.translation import Pair, load_grammar, split_by_source
from course_utils.runtime import data_path

HELD_OUT = (200, 200)
"""Source sentences for validation and for the test."""


def common_pairs(pairs: Sequence[Pair], *, words: int, max_tokens: int) -> list[Pair]:
    """Pairs whose source has none but the `words` commonest source words, and whose target is short.

    Raises:
        ValueError: nothing is left.
    """
    counts = Counter(token for pair in pairs for token in pair.source)
    common = {word for word, _ in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[:words]}
    left = [p for p in pairs if common.issuperset(p.source) and len(p.target) <= max_tokens]
    if not left:
        raise ValueError(f"words={words}, max_tokens={max_tokens} leave no pair; allow more")
    return left


def small_spanish() -> list[list[Pair]]:
    """English–Spanish for trainings of seconds: training, validation and test pairs.

    Generated sentences of at most 8 Spanish tokens in the 200 commonest English words. No English
    sentence stands in two parts.
    """
    pairs = common_pairs(load_grammar("es"), words=200, max_tokens=8)
    return split_by_source(pairs, HELD_OUT)


def load_training_runs(path: Path | None = None) -> list[dict]:
    """The recorded runs, a dict each.

    Each holds what was chosen: `norm_first`, `lr`, `warmup` (0: none), `seed`, `label_smoothing`,
    `sentences` (for training), `shortcut`; `curve`, a dict per epoch with `epoch`, `step`, `loss`,
    `grad_norm` and held-out `bleu`; and at the end `train_bleu`, `bleu`, and on held-out tokens
    `nll`, `confidence` and `accuracy`.
    """
    return json.loads((path or data_path("training_runs/runs.json")).read_text(encoding="utf-8"))[
        "runs"
    ]


def epochs_to(level: float, run: dict) -> float:
    """Epochs until a run's held-out BLEU first reached `level`, on a line between measurements."""
    before = 0.0
    for row in run["curve"]:
        if row["bleu"] >= level:
            return row["epoch"] - 1 + (level - before) / (row["bleu"] - before)
        before = row["bleu"]
    return math.inf
