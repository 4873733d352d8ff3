"""The trainings of *Positions* that are made beforehand: `make runs CHAPTER=09`. Some seconds each."""

import math
from functools import partial

import torch
from torch import Tensor

from course_utils.kit.runs import stored
from course_utils.lessons.positions.rotary import LENGTHS, RETUNED, SEEN, SHARPER
from course_utils.masks import causal_mask, masked_softmax

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
MODELS = ("train", "tested", "OneLayer", "WithOffsets")


@stored(
    cases=[*OFFSET_SIDES, *OTHER_SIDES],
    rates=RATES,
    seeds=range(3),
    chapter=[*MODELS, "before"],
    digits=5,
)
def three_before(chapter, *, kind, setting, rate, seed) -> dict:
    """Name the token three before, trained on 16 tokens: the loss on others, and what is right at four lengths."""
    return _scores(chapter, chapter.before, kind, setting, rate, seed)


@stored(cases=LATEST_SIDES, rates=RATES, seeds=range(3), chapter=MODELS, digits=5)
def latest(chapter, *, kind, setting, rate, seed) -> dict:
    """As `three_before`, for the task of `latest_capital`."""
    return _scores(chapter, latest_capital, kind, setting, rate, seed)


def latest_capital(tokens: Tensor) -> Tensor:
    """(batch, n) → the latest token below 16, at each place or before it; −100 where there is none yet."""
    places = torch.arange(tokens.shape[-1]).expand_as(tokens)
    places = places.masked_fill(tokens >= 16, -1).cummax(dim=-1).values
    return tokens.gather(-1, places.clamp(min=0)).masked_fill(places < 0, -100)


def _scores(chapter, answers, kind, setting, rate, seed) -> dict:
    def new_model():
        return chapter.WithOffsets(kind, setting) if setting else chapter.OneLayer(kind)

    model = chapter.train(new_model, answers, rate, seed)
    _, loss = chapter.tested(model, answers, SEEN, seed=99)
    right = {str(n): round(chapter.tested(model, answers, n)[0], 4) for n in LENGTHS}
    return {"result": {"val_loss": loss} | right}


@stored(rates=RATES, seeds=range(3), chapter=[*MODELS, "before"], digits=5)
def cured(chapter, *, rate, seed) -> dict:
    """Trained with rotary positions on 16 tokens, then changed without training: what is right at four lengths.

    The curves are the mean query and the mean key: turned by an offset, their product is the mean score there.
    """
    model = chapter.train(lambda: chapter.OneLayer("rotary"), chapter.before, rate, seed)
    _, loss = chapter.tested(model, chapter.before, SEEN, seed=99)
    trained, scores = model.frequency, model.scores
    sharper = partial(_sharper, scores)
    by_parts = list(RETUNED.values())[-1](trained)
    cures = {name: (retuned(trained), scores) for name, retuned in RETUNED.items()} | {
        "yarn": (by_parts, sharper),
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
    with torch.no_grad():
        means = {
            name: layer(model.embedding.weight).mean(dim=0)
            for name, layer in (("query", model.W_Q), ("key", model.W_K))
        }
    curves = {
        name: [[column, round(x, 5)] for column, x in enumerate(mean.tolist())]
        for name, mean in means.items()
    }
    return {"result": {"val_loss": loss} | right, "curves": curves}


@stored(
    cases=[{"slope": 1 / 2, "rate": 0.005, "seed": seed} for seed in range(3)],
    chapter=[*MODELS, "before"],
)
def named_by_alibi(chapter, *, slope, rate, seed) -> dict:
    """Asked for the token three before, which one does ALiBi name? Shares of answers, and mean weights, by offset."""
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
def level(chapter, *, rate, seed) -> dict:
    """As `cured`, with one score for each key farther to the left than training went: what is right among 1,024 tokens.

    The score is a query's mean over the trained offsets, or its best but for that of −3. "above" is how much higher
    the score of −3 is, on average.
    """
    model = chapter.train(lambda: chapter.OneLayer("rotary"), chapter.before, rate, seed)
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
def cured_afresh(chapter, *, rate, seed) -> dict:
    """`cured` on models that had no part in choosing the ramp of NTK-by-parts."""
    return {"result": cured.function(chapter, rate=rate, seed=seed)["result"]}


def _sharper(scores, x):
    """Each query's scores times the factor of YaRN's temperature."""
    return SHARPER * scores(x)


def _levelled(scores, x):
    """Each query's scores; a key farther to the left than training went gets the mean of those that are not."""
    scores_of = scores(x)
    position = torch.arange(x.shape[-2])
    back = position[:, None] - position
    near = scores_of.masked_fill((back < 0) | (back >= SEEN), math.nan)
    return torch.where(back < SEEN, scores_of, near.nanmean(dim=-1, keepdim=True))


def _at_level(scores, level_of, above, x):
    """Each query's scores; a key farther to the left than training went gets a level of those that are not.

    How far the score of −3 lies above the level goes into the list `above`.
    """
    scores_of = scores(x)
    position = torch.arange(x.shape[-2])
    back = position[:, None] - position
    level_of_row = level_of(scores_of, back)
    above.append(
        (scores_of.diagonal(-3, -2, -1)[..., SEEN:] - level_of_row[..., SEEN + 3 :, 0]).flatten()
    )
    return torch.where(back < SEEN, scores_of, level_of_row)


def _mean(scores_of, back):
    """(…, n, n) → (…, n, 1): the mean over the trained offsets."""
    near = scores_of.masked_fill((back < 0) | (back >= SEEN), math.nan)
    return near.nanmean(dim=-1, keepdim=True)


def _best_other(scores_of, back):
    """(…, n, n) → (…, n, 1): the best of the trained offsets but for −3."""
    other = (back >= 0) & (back < SEEN) & (back != 3)
    return scores_of.masked_fill(~other, -math.inf).amax(dim=-1, keepdim=True)


def _few(scores, x):
    """Each query's scores, of −3 and about 15 keys farther to the left than training went; all where there are none."""
    masked = scores(x)
    position = torch.arange(x.shape[-2])
    back = position[:, None] - position
    far = back >= SEEN
    share = (SEEN - 1) / far.sum(dim=-1, keepdim=True)
    drawn = torch.rand(far.shape, generator=torch.Generator().manual_seed(0)) < share
    mask = (back == 3) | (far & drawn) | ~far.any(dim=-1, keepdim=True)
    return masked.masked_fill(~mask, -math.inf)
