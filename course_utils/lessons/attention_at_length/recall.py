"""Recall of pairs: a network of *Attention at length* reads pairs of a key and a value, and is asked for each key."""

from types import SimpleNamespace

import torch
from torch import nn

from course_utils.kit.runs import stored
from course_utils.lessons.attention_at_length.blocks import whole

PAIRS = (4, 8, 16, 32, 64)
"""Numbers of pairs that a network is trained on and asked about."""
SYMBOLS, DIM, WIDTH = 128, 16, 64
"""How many keys and how many values there are; the size of a key, and of a value."""
RATES, SEEDS, STEPS = (0.003, 0.01, 0.03), range(3), 6000
NAMES = ("Recall", "linear_attention", "pairs", "train")
"""The names of the page that the runs need."""


@torch.no_grad()
def accuracies(chapter: SimpleNamespace, model: nn.Module, seed: int) -> list[float]:
    """Share of the values that a network finds, in 256 texts for each of `PAIRS`."""
    draws, found = torch.Generator().manual_seed(seed), []
    for n in PAIRS:
        keys, values = chapter.pairs(n, 256, draws)
        found.append((model(keys, values).argmax(-1) == values).float().mean().item())
    return found


def in_a_window(n: int, kept: int) -> float:
    """Share of the values that a look-up finds if it keeps the last pairs, up to `kept`, and guesses the others."""
    share = min(1, kept / n)
    return share + (1 - share) / SYMBOLS


def numbers_kept(dim: int, width: int = WIDTH) -> int:
    """Numbers in the state of linear attention, S and z."""
    return dim * width + dim


def pairs_of_same_memory(dim: int, width: int = WIDTH) -> int:
    """How many pairs of a key and a value the numbers of such a state would hold."""
    return numbers_kept(dim, width) // (dim + width)


def _trained(chapter: SimpleNamespace, how: str, **settings) -> tuple[dict, dict]:
    """Result and curves of a training; its accuracies on texts for the choice of a rate, and on others."""
    attend = {"softmax": whole, "linear": chapter.linear_attention}[how]
    sizes = {name: settings.pop(name) for name in ("dim", "width") if name in settings}
    torch.manual_seed(settings["seed"])
    model, curve = chapter.Recall(attend, **sizes), []

    def watch(step: int, model: nn.Module) -> None:
        if step % 1000 == 0:
            curve.append([step, accuracies(chapter, model, seed=7)[-1]])

    chapter.train(model, watch=watch, **settings)
    validation = accuracies(chapter, model, seed=7)
    result = {"validation": sum(validation) / len(validation)}
    result |= zip(map(str, PAIRS), accuracies(chapter, model, seed=8), strict=True)
    return result, {"64 pairs": curve}


@stored(
    cases=[
        {"how": "softmax", "dim": 8},
        *({"how": "linear", "dim": dim} for dim in (8, 16, 32)),
        {"how": "linear", "dim": 16, "width": 256},
    ],
    rates=RATES, seeds=SEEDS, chapter=NAMES,
)  # fmt: skip
def recalled(chapter: SimpleNamespace, *, how: str, rate: float, seed: int, **sizes) -> dict:
    """A network trained on texts of 4 to 64 pairs, with a softmax or with linear attention."""
    result, curves = _trained(chapter, how, steps=STEPS, rate=rate, seed=seed, **sizes)
    return {"result": result, "curves": curves}


@stored(cases=[{"how": "linear", "dim": 16}], seeds=SEEDS, chapter=NAMES)
def trained_longer(chapter: SimpleNamespace, *, how: str, dim: int, seed: int) -> dict:
    """The same for twice as many steps."""
    result, curves = _trained(chapter, how, dim=dim, steps=2 * STEPS, rate=RATES[1], seed=seed)
    return {"result": result, "curves": curves}


@stored(cases=[{"how": "linear", "dim": 16}], rates=RATES, seeds=SEEDS, chapter=NAMES)
def of_64_alone(chapter: SimpleNamespace, *, how: str, dim: int, rate: float, seed: int) -> dict:
    """The same, trained on texts of 64 pairs alone."""
    result, curves = _trained(
        chapter, how, dim=dim, steps=STEPS, rate=rate, seed=seed, sizes=(64,)
    )
    return {"result": result, "curves": curves}
