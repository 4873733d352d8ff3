"""The stored runs of *Multi-head attention*: readers and look-ups in training, and the heads of a translator."""

import itertools

import torch
from torch.nn import functional as F

from course_utils.attention import MultiHeadAttention
from course_utils.data.translation import load_sentences
from course_utils.interventions import intervene
from course_utils.kit.runs import stored
from course_utils.lessons.multi_head_attention.cabinet import (
    LookupNetwork,
    asked_weights,
    lookup_accuracy,
    lookup_cases,
    train_lookups,
    two_lookups,
)
from course_utils.lessons.multi_head_attention.side_by_side import ReadersSideBySide
from course_utils.lessons.multi_head_attention.translator import (
    HEADS,
    LAYERS,
    PLACE,
    PairsInPieces,
    batch_of_one,
    everyday_translator,
    example_of,
    translate,
)
from course_utils.lessons.multi_head_attention.verbs import (
    RATES,
    SEEDS,
    VerbReader,
    reader_accuracy,
    reader_key,
    sentences,
    train_reader,
)
from course_utils.recording import record_attention


@stored(cases=[{"objects": "people", "num_heads": heads, "steps": 3000} for heads in (1, 2)])
def verb_readers(*, objects: str, num_heads: int, steps: int) -> dict:
    """Readers of subject and object at all rates and with all seeds, trained side by side (`ReadersSideBySide`).

    The curves are the accuracy on both nouns of 500 unseen sentences, over the steps, of each reader
    (`reader_key`). The results are, of each, this share at the end ("both"), the mean weights of head 0 on the
    "subject" and on the "object", and the standard deviation of the first over the sentences ("spread").
    """
    readers = ReadersSideBySide(objects, num_heads, rates=RATES, seeds=SEEDS)
    keys = [reader_key(rate, seed) for rate, seed in readers.choices]
    curves: dict[str, list[list[float]]] = {key: [] for key in keys}
    for step in range(1, steps + 1):
        readers.step()
        if step % (50 if step <= 1200 else 300) == 0:
            for key, share in zip(keys, readers.shares_right(), strict=True):
                curves[key].append([step, round(share, 3)])
    result = {}
    for key, weights in zip(keys, readers.weights_on_nouns(), strict=True):
        result[f"{key}, both"] = curves[key][-1][1]
        result[f"{key}, subject"], result[f"{key}, object"] = weights.mean(dim=0).tolist()
        result[f"{key}, spread"] = weights[:, 0].std().item()
    return {"result": result, "curves": curves}


@stored(
    cases=[{"objects": "things", "num_heads": 1, "steps": 900}],
    rates=(0.003, 0.01, 0.03),
    seeds=(0, 1, 2),
)
def verb_reader(*, objects: str, num_heads: int, steps: int, rate: float, seed: int) -> dict:
    """Accuracies of a reader with the library's attention, trained alone.

    Of the unseen sentences 250 give "validation", by which the rate is chosen, and the others all other accuracies.
    """
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
    """Accuracies of a network trained on the cabinet, over all requests and fillings."""
    torch.manual_seed(seed)
    network = train_lookups(LookupNetwork(16, num_heads), steps=steps, lr=rate, seed=seed)
    shares = zip(("first", "second", "both"), lookup_accuracy(network), strict=True)
    return {"result": dict(shares)}


@stored(cases=[{"steps": 300}], rates=(0.01, 0.03, 0.1), seeds=(0, 1, 2))
def single_head(*, steps: int, rate: float, seed: int) -> dict:
    """Results of one head on the cabinet: accuracy on both balls where they are alike and where they differ.

    "weight 0" and "loss 0" are those of the first ball that is asked for, "weight 1" and "loss 1" of the second.
    """
    torch.manual_seed(seed)
    network = train_lookups(LookupNetwork(16, 1), steps=steps, lr=rate, seed=seed)
    task = two_lookups()
    with torch.no_grad(), record_attention(network) as maps:
        logits = network(*task.inputs(task.balls))
    labels = (task.answers(task.balls) > 0).float()
    losses = F.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(dim=(0, 1))
    (weights,) = maps.values()
    alike, differ = lookup_cases(network)[:, 2]
    weight_0, weight_1 = asked_weights(weights)[0]
    loss_0, loss_1 = losses
    return {
        "result": {
            "alike": alike, "differ": differ,
            "weight 0": weight_0, "weight 1": weight_1,
            "loss 0": loss_0, "loss 1": loss_1,
        }
    }  # fmt: skip


# The heads of the stored translator ---------------------------------------------------------------

SHORTEST, LONGEST = 6, 10
SHOWN = ("i'm very well , thank you .", "do you want to come with me ?")
"""The sentences whose maps and translations are stored."""


@stored(cases=[{"sentences": 400}])
def translator_heads(*, sentences: int) -> dict:
    """Heads of the decoder's self-attention: their weights on each kind of token, and the loss without each.

    The results "<head>, zero" and "<head>, mean" are the losses with zeros or its mean in place of a head. The examples
    are the sentences of `SHOWN` with the maps of all heads, and their translations without each head.

    Args:
        sentences: number of the course's own sentences of 6 to 10 tokens that are used. The translator was trained on
            them.
    """
    model, pieces = everyday_translator()
    pairs = [p for p in load_sentences("fr") if SHORTEST <= len(p.source) <= LONGEST]
    batch = PairsInPieces.of(pairs[:sentences], pieces)
    weights, answers = batch.weights_and_answers(model)
    result = {"loss": batch.loss(model)}
    for kind, shares in batch.shares_by_kind(batch.even_weights()).items():
        result[f"even, {kind}"] = shares.item()
    for kind, shares in batch.shares_by_kind(weights).items():
        for index, share in enumerate(shares.tolist()):
            result[f"{index // HEADS}.{index % HEADS}, {kind}"] = share
    sources = [batch_of_one(pieces, line) for line in SHOWN]
    examples = [example_of(model, pieces, *source) for source in sources]
    for layer, head in itertools.product(range(LAYERS), range(HEADS)):
        for by, run in (("zero", None), ("mean", answers)):
            name = f"{layer}.{head}, {by}"
            with intervene(model) as acts:
                acts.ablate(PLACE, heads=head, layers=layer, by=by, run=run)
                result[name] = batch.loss(model)
                for example, source in zip(examples, sources, strict=True):
                    example[name] = translate(model, pieces, *source)
    return {"result": result, "examples": examples}
