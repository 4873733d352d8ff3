"""The readers of *Self-attention* that are trained beforehand, what they look at, and four layers timed."""

import time

import torch
from torch import nn

from course_utils.interventions import intervene
from course_utils.kit.runs import stored
from course_utils.lessons.self_attention.agreement import ADJECTIVE, IT, NOUN_PLACES, Sentences
from course_utils.runtime import seed_everything

KINDS = (
    "the word alone", "average", "average, hidden layer",
    "one attention", "one attention, hidden layer", "two attentions",
)  # fmt: skip
LENGTHS = (16, 64, 256, 1024, 4096)
COMMA = 11
LOOKS = {
    "layer 1: adjective to the four nouns": (0, ADJECTIVE, NOUN_PLACES),
    "layer 2: it to adjective": (1, IT, (ADJECTIVE,)),
    "layer 2: it to the four nouns": (1, IT, NOUN_PLACES),
    "layer 2: it to the comma": (1, IT, (COMMA,)),
}
"""What is knocked out → (layer, the word that asks, the words that it may not look at)."""


@stored(
    cases=[
        {"kind": kind, "seed": seed, "rate": rate}
        for rate in (0.003, 0.01, 0.03)
        for kind in KINDS
        for seed in range(3)
    ],
    chapter=["new_reader", "train", "score", "test_set"],
    small=True,
)
def reader(chapter, *, kind: str, seed: int, rate: float) -> dict:
    """One of the chapter's readers: the share of right genders at "it" and at the adjective."""
    model = chapter.new_reader(kind, seed)
    chapter.train(model, seed, rate=rate)
    seen, unseen = (chapter.score(model, test=test) for test in (False, True))
    result = {
        "it": unseen["it"], "adjective": unseen["adjective"],
        "it, training": seen["it"], "adjective, training": seen["adjective"],
    }  # fmt: skip
    if "attention" in kind:
        result |= looks(model, chapter.test_set)
    return {"result": {name: round(value, 4) for name, value in result.items()}}


def looks(model: nn.Module, sentences: Sentences) -> dict[str, float]:
    """Mean weights over the sentences that the model has read last, layer by layer."""
    found = {}
    for number, mix in enumerate(model.mixers, 1):
        to_noun = mix.weights.gather(2, sentences.meant[:, None, None].expand(-1, 17, 1))[..., 0]
        found |= {
            f"layer {number}: adjective to noun": to_noun[:, ADJECTIVE].mean().item(),
            f"layer {number}: it to noun": to_noun[:, IT].mean().item(),
            f"layer {number}: it to adjective": mix.weights[:, IT, ADJECTIVE].mean().item(),
        }
    return found


@stored(
    cases=[{"seed": seed} for seed in range(3)],
    chapter=["new_reader", "train", "score"],
)
def forbidden(chapter, *, seed: int) -> dict:
    """Two attentions, trained, then with one look knocked out: the share of right genders at "it"."""
    model = chapter.new_reader("two attentions", seed)
    chapter.train(model, seed)
    right = {"nothing": round(chapter.score(model)["it"], 4)}
    for name, (layer, word, others) in LOOKS.items():
        with intervene(model) as acts:
            acts.knock_out(layers=layer, queries=word, keys=others)
            right[name] = round(chapter.score(model)["it"], 4)
    return {"result": right}


@stored(
    cases=[{"length": length} for length in LENGTHS],
    chapter=["convolution", "recurrence", "SelfAttention"],
)
def milliseconds(chapter, *, length: int, width: int = 64, rounds: int = 25) -> dict:
    """Forward passes on one thread, in turn: the best of 25 rounds, in milliseconds of the processor's time."""
    seed_everything(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    x, square = torch.randn(length, width), torch.randn(width, width) / width**0.5
    kernel = torch.randn(width, width, 3) / (3 * width) ** 0.5
    attend = chapter.SelfAttention(width, width, width)
    recurrent = nn.RNN(width, width, bias=False)
    layers = {
        "convolution": lambda: chapter.convolution(x, kernel),
        "recurrence": lambda: chapter.recurrence(x, square, square),
        "nn.RNN": lambda: recurrent(x),
        "self-attention": lambda: attend(x),
    }
    taken: dict[str, list[float]] = {name: [] for name in layers}
    with torch.no_grad():
        for _ in range(rounds):
            for name, layer in layers.items():
                start = time.process_time()
                layer()
                taken[name].append(1e3 * (time.process_time() - start))
    torch.set_num_threads(threads)
    return {"result": {name: round(min(t), 4) for name, t in taken.items()}}
