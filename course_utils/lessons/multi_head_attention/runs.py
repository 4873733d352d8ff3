"""The trainings of *Multi-head attention* that are made beforehand, and heads of a translator, measured."""

import itertools

import torch
from torch.nn import functional as F

from course_utils.attention import MultiHeadAttention
from course_utils.data.translation import load_sentences
from course_utils.interventions import intervene
from course_utils.kit.runs import stored
from course_utils.lessons.multi_head_attention.side_by_side import ReadersSideBySide
from course_utils.lessons.multi_head_attention.tasks import (
    LookupNetwork,
    VerbReader,
    asked_weights,
    lookup_accuracy,
    lookup_cases,
    reader_accuracy,
    sentences,
    train_lookups,
    train_reader,
    two_lookups,
)
from course_utils.lessons.multi_head_attention.translator import (
    HEADS,
    LAYERS,
    PLACE,
    Read,
    everyday_translator,
    example_of,
    question,
    translation,
)
from course_utils.recording import record_attention

RATES, SEEDS, LONG = (0.001, 0.003, 0.01, 0.03), (0, 1, 2, 3, 4), 3000


@stored(cases=[{"objects": "people", "num_heads": heads, "steps": LONG} for heads in (1, 2)])
def verb_readers(*, objects: str, num_heads: int, steps: int) -> dict:
    """Who, and to whom? Over the steps, the share of 500 unseen sentences with both right, for all rates and seeds.

    All readers train side by side, each with its own rate, its own sentences and its own first weights, as
    `train_reader` would train it. The results are, of each, the share at the end, the mean weight of head 0 on the
    subject and on the object, and how much the first of them varies from sentence to sentence.
    """
    readers = ReadersSideBySide(objects, num_heads, rates=RATES, seeds=SEEDS)
    names = [f"{rate:g}, {seed}" for rate, seed in readers.choices]
    curves: dict[str, list[list[float]]] = {name: [] for name in names}
    for step in range(1, steps + 1):
        readers.step()
        if step % (50 if step <= 1200 else 300) == 0:
            for name, share in zip(names, readers.shares_right(), strict=True):
                curves[name].append([step, round(share, 3)])
    result = {}
    for name, weights in zip(names, readers.weights_on_nouns(), strict=True):
        result[f"{name}, both"] = curves[name][-1][1]
        result[f"{name}, subject"], result[f"{name}, object"] = weights.mean(dim=0).tolist()
        result[f"{name}, spread"] = weights[:, 0].std().item()
    return {"result": result, "curves": curves}


@stored(
    cases=[{"objects": "things", "num_heads": 1, "steps": 900}],
    rates=(0.003, 0.01, 0.03),
    seeds=(0, 1, 2),
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
    return {"result": scores}


@stored(
    cases=[{"num_heads": 2, "steps": 300}],
    rates=(0.01, 0.03, 0.1),
    seeds=(0, 1, 2),
)
def cabinet(*, num_heads: int, steps: int, rate: float, seed: int) -> dict:
    """Two look-ups of one feature: shares of all cases, which are all that there are."""
    torch.manual_seed(seed)
    network = train_lookups(LookupNetwork(16, num_heads), steps=steps, lr=rate, seed=seed)
    shares = zip(("first", "second", "both"), lookup_accuracy(network), strict=True)
    return {"result": dict(shares)}


@stored(cases=[{"steps": 300}], rates=(0.01, 0.03, 0.1), seeds=(0, 1, 2))
def single_head(*, steps: int, rate: float, seed: int) -> dict:
    """The cabinet with one head: where it looks, and both right where the balls are alike, and where they differ."""
    torch.manual_seed(seed)
    network = train_lookups(LookupNetwork(16, 1), steps=steps, lr=rate, seed=seed)
    task = two_lookups()
    with torch.no_grad(), record_attention(network) as maps:
        logits = network(*task.inputs(task.balls))
    labels = (task.answers(task.balls) > 0).float()
    losses = F.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(dim=(0, 1))
    (weights,) = maps.values()
    names = "alike", "differ", "weight 0", "weight 1", "loss 0", "loss 1"
    both = lookup_cases(network)[:, 2]
    return {"result": dict(zip(names, [*both, *asked_weights(weights)[0], *losses], strict=True))}


# Heads of a trained translator: where their weight lies, and what the network loses without them --

SHORTEST, LONGEST = 6, 10
SHOWN = ("i'm very well , thank you .", "do you want to come with me ?")
"""Sentences whose maps and translations are kept."""


@stored(cases=[{"sentences": 400}])
def translator_heads(*, sentences: int) -> dict:
    """The heads of the decoder's self-attention: weights by kind, loss by zero and by mean, some maps.

    Args:
        sentences: of the course's own, so many of 6 to 10 tokens. The translator has read them.
    """
    model, pieces = everyday_translator()
    pairs = [p for p in load_sentences("fr") if SHORTEST <= len(p.source) <= LONGEST]
    read = Read.of(pairs[:sentences], pieces)
    weights, answers = read.weights_and_answers(model)
    result = {"loss": read.loss(model)}
    for kind, shares in read.shares_by_kind(read.even_weights()).items():
        result[f"even, {kind}"] = shares.item()
    for kind, shares in read.shares_by_kind(weights).items():
        for index, share in enumerate(shares.tolist()):
            result[f"{index // HEADS}.{index % HEADS}, {kind}"] = share
    questions = [question(pieces, line) for line in SHOWN]
    examples = [example_of(model, pieces, *asked) for asked in questions]
    for layer, head in itertools.product(range(LAYERS), range(HEADS)):
        for by, run in (("zero", None), ("mean", answers)):
            name = f"{layer}.{head}, {by}"
            with intervene(model) as acts:
                acts.ablate(PLACE, heads=head, layers=layer, by=by, run=run)
                result[name] = read.loss(model)
                for example, asked in zip(examples, questions, strict=True):
                    example[name] = translation(model, pieces, *asked)
    return {"result": result, "examples": examples}
