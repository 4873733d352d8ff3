"""The models of *Self-attention* that are trained beforehand, what a forbidden link costs them, and layers timed."""

import time
from functools import partial

import torch
from torch import nn

from course_utils.interventions import intervene
from course_utils.kit.runs import stored
from course_utils.lessons.scoring_functions import scores
from course_utils.lessons.self_attention.layers import convolution, recurrence
from course_utils.lessons.self_attention.tasks import (
    READERS,
    friends,
    new_reader,
    owners,
    reader_score,
    train_reader,
)
from course_utils.runtime import seed_everything

PAIRS = (2, 4, 12)
RATES = (0.001, 0.003, 0.01)
LENGTHS = (16, 64, 256, 1024, 4096)
LINK, OTHER_LINK, THIRD_LINK, CAR, OTHER_CAR, THIRD_CAR, QUESTION = 0, 1, 2, 5, 3, 4, 6
"""Positions: friends of Anna, of another, of Anna's friend; cars of Anna's and of the other's friend, of the other;
the question."""
LINKS = {
    "layer 1: Anna's friend → the friend's car": [(0, LINK, CAR)],
    "layer 1: another's friend → that friend's car": [(0, OTHER_LINK, OTHER_CAR)],
    "layer 1: question → Anna's friend": [(0, QUESTION, LINK)],
    "layer 1: question → all but itself": [(0, QUESTION, word) for word in range(QUESTION)],
    "layer 2: question → Anna's friend": [(1, QUESTION, LINK)],
    "layer 2: question → the friend's friend": [(1, QUESTION, THIRD_LINK)],
    "layer 2: question → the friend's car": [(1, QUESTION, CAR)],
    "layer 2: question → another's friend": [(1, QUESTION, OTHER_LINK)],
    "layer 2: question → Anna's car": [(1, QUESTION, OTHER_CAR)],
    "layer 2: question → the other's car": [(1, QUESTION, THIRD_CAR)],
    "layer 2: question → itself": [(1, QUESTION, QUESTION)],
    "layer 2: question → all that say nothing of the friend": [
        (1, QUESTION, word) for word in (OTHER_LINK, OTHER_CAR, THIRD_CAR, QUESTION)
    ],
    "both links to the friend's car": [(0, LINK, CAR), (1, QUESTION, CAR)],
}
"""What is knocked out → (layer, the word that asks, the word that it may not attend to), of each link."""


@stored(
    cases=[
        {"kind": kind, "pairs": pairs, "rate": rate, "seed": seed}
        for kind, pairs, rates in (
            ("one attention", 2, RATES),
            ("average, 256 wide", 2, RATES),
            ("one attention", 4, RATES),
            ("average, 256 wide", 4, RATES),
            ("one attention", 12, RATES),
            ("average, 256 wide", 12, (*RATES, 0.03)),
            ("average, 64 wide", 12, RATES),
        )
        for rate in rates
        for seed in range(3)
    ],
    chapter=["kinds", "train", "share_right"],
)  # fmt: skip
def recalled(chapter, *, kind: str, pairs: int, rate: float, seed: int) -> dict:
    """Whose car has which color, among so many: the share of right answers."""
    return _learned(chapter, kind, partial(owners, pairs=pairs), seed, rate=rate)


@stored(
    cases=[
        {"kind": "average, 256 wide", "pairs": 12, "steps": 4000, "rate": rate, "seed": seed}
        for rate in RATES
        for seed in range(3)
    ],
    chapter=["kinds", "train", "share_right"],
)
def recalled_later(chapter, *, kind: str, pairs: int, steps: int, rate: float, seed: int) -> dict:
    """As `recalled`, after so many steps: 800 there."""
    return _learned(chapter, kind, partial(owners, pairs=pairs), seed, steps=steps, rate=rate)


@stored(
    cases=[
        {"pairs": 12, "steps": steps, "rate": rate, "seed": seed}
        for steps in (800, 4000)
        for rate in RATES
        for seed in range(3)
    ],
    chapter=["kinds", "train", "share_right"],
)
def recalled_larger_start(chapter, *, pairs: int, steps: int, rate: float, seed: int) -> dict:
    """As `recalled`, by the average: its embeddings begin at 1 instead of 0.3, and its mean is multiplied by √13."""
    seed_everything(seed)
    model, draw = chapter.kinds["average, 256 wide"](), partial(owners, pairs=pairs)
    with torch.no_grad():
        model.embedding.weight.div_(0.3)
    model.mixers[0].register_forward_hook(lambda module, given, mean: 13**0.5 * mean)
    chapter.train(model, draw, seed, steps=steps, rate=rate)
    validation, right = (chapter.share_right(model, draw, seed=seed) for seed in (0, 1))
    return {"result": {"validation": validation, "right": right}}


@stored(
    cases=[
        {"kind": kind, "steps": steps, "rate": rate, "seed": seed}
        for kind, steps, rates in (
            ("one attention", 1500, RATES),
            ("one attention, hidden layer", 1500, RATES),
            ("one attention, hidden layer", 3000, (0.003,)),  # its best rate of three
            ("two attentions", 1500, RATES),
        )
        for rate in rates
        for seed in range(3)
    ],
    chapter=["kinds", "train", "share_right"],
)
def of_a_friend(chapter, *, kind: str, steps: int, rate: float, seed: int) -> dict:
    """Which color has the car of somebody's friend: the share of right answers."""
    return _learned(chapter, kind, friends, seed, steps=steps, rate=rate)


@stored(cases=[{"seed": seed} for seed in range(3)], chapter=["kinds", "train", "share_right"])
def forbidden(chapter, *, seed: int) -> dict:
    """Two attentions, then with some links knocked out: their weights, and the share right without them."""
    seed_everything(seed)
    model = chapter.kinds["two attentions"]()
    chapter.train(model, friends, seed, steps=1500)
    result = {"right, nothing": chapter.share_right(model, friends)}
    weights = [mix.weights.mean(0) for mix in model.mixers]
    for name, links in LINKS.items():
        result[f"weight, {name}"] = sum(
            weights[at][word, other].item() for at, word, other in links
        )
        with intervene(model) as acts:
            for layer, word, other in links:
                acts.knock_out(layers=layer, queries=word, keys=other)
            result[f"right, {name}"] = chapter.share_right(model, friends)
    return {"result": result}


def _learned(chapter, kind: str, draw, seed: int, **options) -> dict:
    seed_everything(seed)
    model = chapter.kinds[kind]()
    chapter.train(model, draw, seed, **options)
    validation, test = (chapter.share_right(model, draw, seed=seed) for seed in (0, 1))
    return {"result": {"validation": validation, "right": test}}


@stored(
    cases=[{"kind": kind} for kind in READERS],
    rates=(0.003, 0.01, 0.03),
    seeds=range(3),
    chapter=["SelfAttention"],
)
def reader(chapter, *, kind: str, seed: int, rate: float) -> dict:
    """The French task: the share of right genders at "it" and at the adjective."""
    model = new_reader(chapter.SelfAttention, kind, seed)
    train_reader(model, seed, rate=rate)
    seen, unseen = (reader_score(model, test=test) for test in (False, True))
    return {"result": unseen | {f"{word}, training": share for word, share in seen.items()}}


@stored(
    cases=[{"length": length} for length in LENGTHS],
    chapter=["SelfAttention"],
    times=("nn.RNN", "self-attention", "convolution", "recurrence"),
)
def milliseconds(chapter, *, length: int) -> dict:
    """Forward passes on one thread, in turn: the best of 25 rounds, in milliseconds of the processor's time."""
    seed_everything(0)
    width = 64
    x, square = torch.randn(length, width), torch.randn(width, width) / width**0.5
    kernel = torch.randn(width, width, 3) / (3 * width) ** 0.5
    attend = chapter.SelfAttention(width, width, width)
    recurrent = nn.RNN(width, width, bias=False)
    layers = {
        "convolution": lambda x: convolution(x, kernel),
        "recurrence": lambda x: recurrence(x, square, square),
        "nn.RNN": recurrent,
        "self-attention": attend,
    }
    return {"result": scores.milliseconds(layers, x, clock=time.process_time).min().to_dict()}
