"""The trainings of *Positions* that are made beforehand: `make runs CHAPTER=09`. Some seconds each."""

import math
from functools import partial

import torch

from course_utils.kit.runs import stored
from course_utils.lessons.positions.rotary import LENGTHS, RETUNED, SEEN

RATES = (0.002, 0.005, 0.015, 0.03)
SIDES = [
    *({"task": "three before", "kind": kind} for kind in ("none", "sinusoidal", "learned", "Shaw", "T5")),
    *({"task": "the first", "kind": kind} for kind in ("learned", "RoPE")),
    *({"task": "three before", "kind": kind, "farthest_start": 1008} for kind in ("sinusoidal", "learned")),
    {"task": "three before", "kind": "RoPE", "base": 10.0},
]  # fmt: skip


@stored(
    cases=[{"base": 1e4, "farthest_start": 0} | side for side in SIDES],
    rates=RATES,
    seeds=range(3),
    chapter=["train", "tested"],
    small=True,
    tolerance=0.25,
)
def reading(chapter, *, task, kind, base, farthest_start, rate, seed) -> dict:
    """The chapter's network, trained on 16 tokens: the loss on others, and what is right at four lengths."""
    model = chapter.train(kind, task, rate, seed, base, farthest_start)
    return _scores(chapter, model, task)


@stored(
    cases=[{"kind": "learned", "farthest_start": 1008, "steps": 1600}],
    rates=RATES[1:],
    seeds=range(3),
    chapter=["train", "tested"],
)
def visited_longer(chapter, *, kind, farthest_start, steps, rate, seed) -> dict:
    """Random starts with so many steps, 400 in `reading`: the loss on other rows, and what is right at four lengths."""
    task = "three before"
    model = chapter.train(kind, task, rate, seed, farthest_start=farthest_start, steps=steps)
    return _scores(chapter, model, task)


def _scores(chapter, model, task: str) -> dict:
    _, loss = chapter.tested(model, task, SEEN, seed=99)
    right = {str(n): round(chapter.tested(model, task, n)[0], 4) for n in LENGTHS}
    return {"result": {"val_loss": round(loss, 5)} | right}


@stored(rates=RATES, seeds=range(3), chapter=["train", "tested"])
def cured(chapter, *, rate, seed) -> dict:
    """Trained with rotary positions on 16 tokens, then changed without training: what is right at four lengths.

    The curves are the mean query and the mean key: turned by an offset, their product is the mean score there.
    """
    model = chapter.train("RoPE", "three before", rate, seed)
    _, loss = chapter.tested(model, "three before", 16, seed=99)
    right = {}
    trained, scores = model.frequency, model.scores
    for cure, retuned in RETUNED.items():
        model.frequency = retuned(trained)
        for n in LENGTHS:
            right[f"{cure} {n}"] = round(chapter.tested(model, "three before", n)[0], 4)
    model.frequency = trained
    for name, changed in (("levelled", _levelled), ("few", _few)):
        model.scores = partial(changed, scores)
        for n in LENGTHS:
            right[f"{name} {n}"] = round(chapter.tested(model, "three before", n)[0], 4)
    with torch.no_grad():
        means = {
            name: layer(model.embedding.weight).mean(dim=0)
            for name, layer in (("query", model.W_Q), ("key", model.W_K))
        }
    curves = {
        name: [[column, round(x, 5)] for column, x in enumerate(mean.tolist())]
        for name, mean in means.items()
    }
    return {"result": {"val_loss": round(loss, 5)} | right, "curves": curves}


def _levelled(scores, x):
    """Each query's scores; a key farther to the left than training went gets the mean of those that are not."""
    scores_of = scores(x)
    position = torch.arange(x.shape[-2])
    back = position[:, None] - position
    near = scores_of.masked_fill((back < 0) | (back >= SEEN), math.nan)
    return torch.where(back < SEEN, scores_of, near.nanmean(dim=-1, keepdim=True))


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
