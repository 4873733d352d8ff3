"""The stored runs of *Self-attention*: trained models, what a forbidden link costs them, and the times of layers."""

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from course_utils.interventions import intervene
from course_utils.kit.runs import stored
from course_utils.lessons.scoring_functions import scores
from course_utils.lessons.self_attention.genders import (
    READERS,
    accuracies_of_words,
    new_reader,
    train_and_test,
    train_reader,
)
from course_utils.lessons.self_attention.layers import convolution, recurrence
from course_utils.lessons.self_attention.tasks import friends, owners
from course_utils.runtime import seed_everything

RATES = (0.001, 0.003, 0.01)
LENGTHS = (16, 64, 256, 1024, 4096)  # tokens
Draw = Callable[..., tuple[Tensor, Tensor]]
"""A task: (count, generator) → tokens and targets, both (count, n)."""
LINK, OTHER_LINK, THIRD_LINK, OTHER_CAR, THIRD_CAR, CAR, QUESTION = range(7)
"""Places of the seven tokens of `tasks.friends`, if Anna is the one who is asked about.

LINK, OTHER_LINK, THIRD_LINK: the friends of Anna, of another person, and of Anna's friend.
OTHER_CAR, THIRD_CAR, CAR: the cars of Anna, of the other person, and of Anna's friend.
"""
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
"""Name of what is forbidden → its links, each as (layer, position of the query, position of the key)."""


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
    chapter=["kinds", "train", "accuracy"],
)  # fmt: skip
def recalled(chapter, *, kind: str, pairs: int, rate: float, seed: int) -> dict:
    """Accuracy on the question whose car has which color, by the number of cars (`pairs`)."""
    return _learned(chapter, kind, partial(owners, pairs=pairs), seed, rate=rate)


@stored(
    cases=[
        {"kind": "average, 256 wide", "pairs": 12, "steps": 4000, "rate": rate, "seed": seed}
        for rate in RATES
        for seed in range(3)
    ],
    chapter=["kinds", "train", "accuracy"],
)
def recalled_later(chapter, *, kind: str, pairs: int, steps: int, rate: float, seed: int) -> dict:
    """As `recalled`, with more steps of training than its 800."""
    return _learned(chapter, kind, partial(owners, pairs=pairs), seed, steps=steps, rate=rate)


@stored(
    cases=[
        {"pairs": 12, "steps": steps, "rate": rate, "seed": seed}
        for steps in (800, 4000)
        for rate in RATES
        for seed in range(3)
    ],
    chapter=["kinds", "train", "accuracy"],
)
def recalled_larger_start(chapter, *, pairs: int, steps: int, rate: float, seed: int) -> dict:
    """As `recalled`, for an average whose embeddings begin at 1 instead of 0.3, with its mean multiplied by √13."""
    seed_everything(seed)
    model, draw = chapter.kinds["average, 256 wide"](), partial(owners, pairs=pairs)
    with torch.no_grad():
        model.embedding.weight.div_(0.3)
    model.mixers[0].register_forward_hook(lambda module, given, mean: 13**0.5 * mean)
    chapter.train(model, draw, seed, steps=steps, rate=rate)
    validation, right = (chapter.accuracy(model, draw, seed=seed) for seed in (0, 1))
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
    chapter=["kinds", "train", "accuracy"],
)
def of_a_friend(chapter, *, kind: str, steps: int, rate: float, seed: int) -> dict:
    """Accuracy on the question which color the car of somebody's friend has."""
    return _learned(chapter, kind, friends, seed, steps=steps, rate=rate)


@stored(cases=[{"seed": seed} for seed in range(3)], chapter=["kinds", "train", "accuracy"])
def forbidden(chapter, *, seed: int) -> dict:
    """Weights of some links in two attentions, and the accuracy with these links forbidden."""
    seed_everything(seed)
    model = chapter.kinds["two attentions"]()
    chapter.train(model, friends, seed, steps=1500)
    result = {"right, nothing": chapter.accuracy(model, friends)}
    weights = [mix.weights.mean(0) for mix in model.mixers]
    for name, links in LINKS.items():
        result[f"weight, {name}"] = sum(
            weights[at][word, other].item() for at, word, other in links
        )
        with intervene(model) as acts:
            for layer, word, other in links:
                acts.forbid(layers=layer, queries=word, keys=other)
            result[f"right, {name}"] = chapter.accuracy(model, friends)
    return {"result": result}


def _learned(chapter, kind: str, draw: Draw, seed: int, **options: float) -> dict:
    """Validation and test accuracy of one of the chapter's kinds of model, after training on a task."""
    seed_everything(seed)
    model = chapter.kinds[kind]()
    chapter.train(model, draw, seed, **options)
    validation, test = (chapter.accuracy(model, draw, seed=seed) for seed in (0, 1))
    return {"result": {"validation": validation, "right": test}}


@stored(
    cases=[{"kind": kind} for kind in READERS],
    rates=(0.003, 0.01, 0.03),
    seeds=range(3),
    chapter=["SelfAttention"],
)
def reader(chapter, *, kind: str, seed: int, rate: float) -> dict:
    """Accuracy of the gender at "it" and at the adjective, on unseen sentences and on the training set."""
    model = new_reader(chapter.SelfAttention, kind, seed)
    train_reader(model, seed, rate=rate)
    seen, unseen = (accuracies_of_words(model, sentences) for sentences in train_and_test())
    return {"result": unseen | {f"{word}, training": share for word, share in seen.items()}}


@stored(
    cases=[{"length": length} for length in LENGTHS],
    chapter=["SelfAttention"],
    times=("nn.RNN", "self-attention", "convolution", "recurrence"),
)
def milliseconds(chapter, *, length: int) -> dict:
    """Milliseconds of the processor's time that a forward pass takes on one thread: the best of 25 rounds."""
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
