"""The stored runs of *Positions*: models with each kind of position, and rotary ones changed after their training.

Each takes some seconds.
"""

import math
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import torch
from torch import Tensor

from course_utils.kit.runs import stored
from course_utils.lessons.positions.rotary import LENGTHS, RETUNED, SEEN, SHARPER
from course_utils.masks import causal_mask, masked_softmax
from course_utils.positions import LearnedPositions, SinusoidalPositions

RATES = (0.002, 0.005, 0.015)
OFFSET_SIDES = [
    *({"kind": "T5", "setting": farthest} for farthest in (16, 128)),
    *({"kind": "Shaw", "setting": limit} for limit in (15, 16, 32, 128)),
    *({"kind": "ALiBi", "setting": slope} for slope in (1 / 2, 1 / 16)),
]
OTHER_SIDES = [{"kind": kind, "setting": 0} for kind in ("none", "sinusoidal", "learned", "rotary")]
LATEST_SIDES = [
    {"kind": "ALiBi", "setting": 1 / 2},
    {"kind": "ALiBi", "setting": 1 / 16},
    {"kind": "rotary", "setting": 0},
]
MODELS = ("train", "tested", "OneLayer", "RotaryLayer", "WithOffsets")
"""The names of the page that the runs need."""
ADDED = {
    "sinusoidal": partial(SinusoidalPositions, max_len=LENGTHS[-1]),
    "learned": partial(LearnedPositions, max_len=LENGTHS[-1]),
}
"""Kinds of positions that are added to embeddings: dimension → layer."""
ASKED = 3
"""How many tokens before a query the answer of `three_before` and `cured` stands."""

Scores = Callable[[Tensor], Tensor]
"""(batch, n, dim) → (batch, n, n), the scores of a model."""


@stored(
    cases=[*OFFSET_SIDES, *OTHER_SIDES],
    rates=RATES,
    seeds=range(3),
    chapter=[*MODELS, "before"],
    digits=5,
)
def three_before(
    chapter: SimpleNamespace, *, kind: str, setting: float, rate: float, seed: int
) -> dict:
    """Loss on unseen tokens and accuracies at four lengths, of models that name the token three before.

    Args:
        chapter: the page's functions and classes.
        kind: of the positions.
        setting: its number, such as the slope of ALiBi; 0 for a kind without one.
        rate: the learning rate.
        seed: of the weights and the tokens.
    """
    return _loss_and_accuracies(chapter, chapter.before, kind, setting, rate, seed)


@stored(cases=LATEST_SIDES, rates=RATES, seeds=range(3), chapter=MODELS, digits=5)
def latest(chapter: SimpleNamespace, *, kind: str, setting: float, rate: float, seed: int) -> dict:
    """As `three_before`, for the task of `latest_capital`."""
    return _loss_and_accuracies(chapter, latest_capital, kind, setting, rate, seed)


def latest_capital(tokens: Tensor) -> Tensor:
    """The latest token below 16 at each place or before it, −100 where there is none yet: (batch, n) → (batch, n)."""
    places = torch.arange(tokens.shape[-1]).expand_as(tokens)
    places = places.masked_fill(tokens >= 16, -1).cummax(dim=-1).values
    return tokens.gather(-1, places.clamp(min=0)).masked_fill(places < 0, -100)


def _loss_and_accuracies(
    chapter: SimpleNamespace,
    answers: Callable[[Tensor], Tensor],
    kind: str,
    setting: float,
    rate: float,
    seed: int,
) -> dict:
    """Result of a model that learns to give `answers` to tokens, (batch, n) → (batch, n)."""

    def new_model() -> torch.nn.Module:
        if kind == "rotary":
            return chapter.RotaryLayer()
        return chapter.WithOffsets(kind, setting) if setting else chapter.OneLayer(ADDED.get(kind))

    model = chapter.train(new_model, answers, rate, seed)
    _, loss = chapter.tested(model, answers, SEEN, seed=99)
    right = {str(n): round(chapter.tested(model, answers, n)[0], 4) for n in LENGTHS}
    return {"result": {"val_loss": loss} | right}


@stored(rates=RATES, seeds=range(3), chapter=[*MODELS, "before"], digits=5)
def cured(chapter: SimpleNamespace, *, rate: float, seed: int) -> dict:
    """Accuracies at four lengths, of a model trained with rotary positions on 16 tokens and then changed.

    Nothing is trained after a change. The results "<change> <length>" are of changed frequencies (`RETUNED`), of
    changed scores, or of both. The curves are the mean query and the mean key: turned by an offset, their product is
    the mean score there.
    """
    model = chapter.train(chapter.RotaryLayer, chapter.before, rate, seed)
    _, loss = chapter.tested(model, chapter.before, SEEN, seed=99)
    trained, scores = model.frequency, model.scores
    sharper = partial(_sharper, scores)
    cures: dict[str, tuple[Tensor, Scores]] = {
        name: (retuned(trained), scores) for name, retuned in RETUNED.items()
    }
    cures |= {
        "yarn": (RETUNED["by parts"](trained), sharper),
        "slow pairs, sharper": (RETUNED["slow pairs"](trained), sharper),
        "sharper": (trained, sharper),
        "levelled": (trained, partial(_levelled, scores)),
        "few": (trained, partial(_few, scores)),
    }
    right = {}
    for name, (frequency, scores_of) in cures.items():
        model.frequency, model.scores = frequency, scores_of
        for n in LENGTHS:
            right[f"{name} {n}"] = round(chapter.tested(model, chapter.before, n)[0], 4)
    curves = {}
    for name, layer in (("query", model.W_Q), ("key", model.W_K)):
        with torch.no_grad():
            mean = layer(model.embedding.weight).mean(dim=0)
        curves[name] = [[column, round(x, 5)] for column, x in enumerate(mean.tolist())]
    return {"result": {"val_loss": loss} | right, "curves": curves}


@stored(
    cases=[{"slope": 1 / 2, "rate": 0.005, "seed": seed} for seed in range(3)],
    chapter=[*MODELS, "before"],
)
def named_by_alibi(chapter: SimpleNamespace, *, slope: float, rate: float, seed: int) -> dict:
    """Shares of the tokens that a model with ALiBi names when asked for that three before, and weights, by offset."""
    model = chapter.train(lambda: chapter.WithOffsets("ALiBi", slope), chapter.before, rate, seed)
    tokens = torch.randint(64, (256, SEEN), generator=torch.Generator().manual_seed(123))
    with torch.no_grad():
        named = model(tokens).argmax(dim=-1)
        weights = masked_softmax(model.scores(model.embedding(tokens)), causal_mask(SEEN))
    result, at = {}, torch.arange(3, SEEN)
    for back in range(4):
        result[f"{back} before"] = (named[:, at] == tokens[:, at - back]).float().mean().item()
        result[f"weight {back}"] = weights[:, at, at - back].mean().item()
    return {"result": result}


@stored(rates=RATES, seeds=range(3), chapter=[*MODELS, "before"], digits=5)
def level(chapter: SimpleNamespace, *, rate: float, seed: int) -> dict:
    """Accuracies among 1,024 tokens, of the model of `cured` with one score for all keys at untrained offsets.

    This score is a query's mean over the trained offsets ("mean"), or the best of them but for that of −3 ("best
    other"). The results "above the …" say how much higher the score of −3 is, on average.
    """
    model = chapter.train(chapter.RotaryLayer, chapter.before, rate, seed)
    _, loss = chapter.tested(model, chapter.before, SEEN, seed=99)
    scores, result = model.scores, {"val_loss": loss}
    for name, level_of in (("mean", _mean), ("best other", _best_other)):
        above: list[Tensor] = []
        model.scores = partial(_at_level, scores, level_of, above)
        result[name] = round(chapter.tested(model, chapter.before, LENGTHS[-1])[0], 4)
        result[f"above the {name}"] = torch.cat(above).mean().item()
    return {"result": result}


@stored(
    cases=[{"rate": 0.005, "seed": seed} for seed in (3, 4, 5)],
    chapter=[*MODELS, "before"],
    digits=5,
)
def cured_afresh(chapter: SimpleNamespace, *, rate: float, seed: int) -> dict:
    """Results of `cured` for models with other seeds than those by which the ramp of NTK-by-parts was chosen."""
    return {"result": cured.function(chapter, rate=rate, seed=seed)["result"]}


# Changed scores -----------------------------------------------------------------------------------


def _sharper(scores: Scores, x: Tensor) -> Tensor:
    """Scores times the factor of YaRN's temperature: (…, n, dim) → (…, n, n)."""
    return SHARPER * scores(x)


def _levelled(scores: Scores, x: Tensor) -> Tensor:
    """Scores in which a key at an untrained offset has the query's mean over the trained ones: (…, n, n)."""
    scores_of = scores(x)
    back = _back(x.shape[-2])
    return torch.where(back < SEEN, scores_of, _mean(scores_of, back))


def _at_level(
    scores: Scores,
    level_of: Callable[[Tensor, Tensor], Tensor],
    above: list[Tensor],
    x: Tensor,
) -> Tensor:
    """Scores in which a key at an untrained offset has a level of its query: (…, n, dim) → (…, n, n).

    Args:
        scores: of the trained model.
        level_of: `_mean` or `_best_other`.
        above: gets how far the scores of −3 lie above the level, for all queries that have untrained offsets.
        x: the embedded tokens.
    """
    scores_of = scores(x)
    back = _back(x.shape[-2])
    level = level_of(scores_of, back)
    of_asked = scores_of.diagonal(-ASKED, -2, -1)  # from the query at place 3 on
    above.append((of_asked[..., SEEN:] - level[..., SEEN + ASKED :, 0]).flatten())
    return torch.where(back < SEEN, scores_of, level)


def _few(scores: Scores, x: Tensor) -> Tensor:
    """Scores with −∞ but for the key at −3 and about 15 at untrained offsets: (…, n, dim) → (…, n, n).

    A query without untrained offsets keeps all its scores.
    """
    back = _back(x.shape[-2])
    far = back >= SEEN
    share = (SEEN - 1) / far.sum(dim=-1, keepdim=True)
    drawn = torch.rand(far.shape, generator=torch.Generator().manual_seed(0)) < share
    mask = (back == ASKED) | (far & drawn) | ~far.any(dim=-1, keepdim=True)
    return scores(x).masked_fill(~mask, -math.inf)


def _back(n: int) -> Tensor:
    """How many places a key stands before a query: (n, n), negative for keys after it."""
    place = torch.arange(n)
    return place[:, None] - place


def _mean(scores: Tensor, back: Tensor) -> Tensor:
    """Mean of each query's scores over the trained offsets: (…, n, n) → (…, n, 1)."""
    near = scores.masked_fill((back < 0) | (back >= SEEN), math.nan)
    return near.nanmean(dim=-1, keepdim=True)


def _best_other(scores: Tensor, back: Tensor) -> Tensor:
    """Best of each query's scores over the trained offsets but −3: (…, n, n) → (…, n, 1)."""
    other = (back >= 0) & (back < SEEN) & (back != ASKED)
    return scores.masked_fill(~other, -math.inf).amax(dim=-1, keepdim=True)
