"""The trainings of *BERT and transfer* that are made beforehand: `make runs CHAPTER=14`."""

import functools

import torch
from torch import nn

from course_utils.data.prose import Subwords
from course_utils.data.text import BOS, EOS, MASK
from course_utils.kit.live import network_of, packed, save_model, write_card
from course_utils.kit.runs import stored
from course_utils.lessons.bert_and_transfer import tasks, tuning
from course_utils.lessons.bert_and_transfer.tasks import (
    CLASSES,
    DATA,
    Labeled,
    bag_accuracy,
    few,
    hidden,
    task,
    texts,
)
from course_utils.lessons.bert_and_transfer.tuning import accuracy, classifier, fine_tune
from course_utils.lessons.gpt.runs import BATCH, LENGTH, RATE, VOCAB, WIDTH, streams
from course_utils.lessons.gpt.runs import STEPS as GPT_STEPS
from course_utils.lessons.gpt.training import evaluate, train, windows
from course_utils.models.language import BERT, GPT, LanguageModel

SEEDS = (0, 1, 2)
LABELS = {"order": (50, 1000), "tense": (50,)}
STEPS = {50: 120, 1000: 400}
RATES = {"all": (1e-3, 3e-3), "LoRA": (3e-3, 1e-2), "output": (1e-2, 3e-2)}
"""Of these the better one on the validation part is taken, for each beginning, seed and number of labels."""

VARIANTS: dict[str, dict] = {
    "RMSNorm": {"norm": "rms"},
    "rotary": {"rotary": True},
    "SwiGLU": {"activation": "swiglu"},
    "GQA": {"num_kv_heads": 2},
    "MQA": {"num_kv_heads": 1},
}
"""Arguments of `GPT` that exchange one part of it for what came later; four heads of queries."""
VARIANTS["together"] = {
    "norm": "rms", "rotary": True, "activation": "swiglu", "num_kv_heads": 2, "bias": False,
}  # fmt: skip


@functools.cache
def begun(name: str, seed: int) -> tuple[LanguageModel, list[list[float]]]:
    """A pretrained network, once for all runs of a process."""
    return tasks.pretrain(name, seed)


def tuned(body: LanguageModel, name: str, count: int, seed: int, method: str) -> tuple[float, list]:
    """Test accuracy at the better rate, and points [step, accuracy on the validation part]."""
    best: tuple[float, float, list] = (-1.0, 0.0, [])
    data, (val, test) = few(name, count, seed), task(name)
    for lr in RATES[method]:
        torch.manual_seed(seed)
        model = classifier(body, CLASSES[name], method)
        curve = fine_tune(model, data, steps=STEPS[count], lr=lr, seed=seed, watch=val)
        best = max(best, (curve[-1][1], accuracy(model, test), curve), key=lambda trial: trial[0])
    return best[1], best[2]


@stored(
    cases=[{"beginning": name, "seed": seed} for seed in SEEDS for name in tasks.BEGINNINGS],
    data=DATA,
)
def transfer(*, beginning: str, seed: int) -> dict:
    """Pretrain, then fine-tune all weights on both tasks; seed 0 of one is the live model."""
    body, curve = begun(beginning, seed)
    result, curves = {}, {"pretraining": curve}
    if beginning != "from scratch":
        result["hidden"] = round(tasks.hidden_loss(body), 4)
    if beginning == "BERT" and seed == 0:
        sizes = {"vocab_size": body.embedding.num_embeddings} | tasks.SIZES
        save_model("bert", body, sizes)
        write_card("bert", **model_card("bert"))
    for name, amounts in LABELS.items():
        for count in amounts:
            score, curves[f"{name} {count}"] = tuned(body, name, count, seed, "all")
            result[f"{name} {count}"] = round(score, 4)
    return {"result": result, "curves": curves}


@stored(cases=[{"steps": 3 * tasks.STEPS, "seed": seed} for seed in SEEDS], data=DATA)
def pretrained_longer(*, steps: int, seed: int) -> dict:
    """The BERT with three times the steps of pretraining: its loss at hidden tokens of unread sentences."""
    body, curve = tasks.pretrain("BERT", seed, steps=steps)
    result = {"hidden": round(tasks.hidden_loss(body), 4)}
    return {"result": result, "curves": {"pretraining": curve}}


@stored(
    cases=[{"method": method, "seed": seed} for seed in SEEDS for method in ("LoRA", "output")],
    data=DATA,
)
def parts(*, method: str, seed: int) -> dict:
    """The same BERT with LoRA, or with nothing trained but the new output layer."""
    body, _ = begun("BERT", seed)
    scores = {f"order {n}": tuned(body, "order", n, seed, method)[0] for n in LABELS["order"]}
    return {"result": {name: round(score, 4) for name, score in scores.items()}}


@stored(
    cases=[{"answers_only": only, "seed": seed} for seed in SEEDS for only in (True, False)],
    data=DATA,
)
def answering(*, answers_only: bool, seed: int) -> dict:
    """A GPT that answers behind the sentence whether it is in order; the loss on all tokens, or on answers only."""
    data, (_, test) = few("order", 1000, seed), task("order")
    model = tuning.tune(
        begun("GPT", seed)[0], data, answers_only=answers_only,
        steps=STEPS[1000], lr=1e-3, seed=seed,
    )  # fmt: skip
    rows = {"in order": test.labels == 0, "exchanged": test.labels == 1}
    halves = {
        name: Labeled(test.ids[those], test.lengths[those], test.labels[those], ())
        for name, those in rows.items()
    }
    losses = {f"loss {name}": tuning.prompt_loss(model, half) for name, half in halves.items()}
    result = {"right": tuning.answered(model, test)} | losses
    return {"result": {name: round(value, 4) for name, value in result.items()}}


@stored(cases=[{"seed": seed} for seed in SEEDS], data=DATA, small=True, tolerance=0.03)
def counted(*, seed: int) -> dict:
    """What needs no network: bags of tokens and of pairs, and counted triples with a threshold."""
    result = {}
    for name, amounts in LABELS.items():
        for count in amounts:
            for kind, pairs in (("tokens", False), ("pairs", True)):
                score = bag_accuracy(name, count, seed, neighbors=pairs)
                result[f"bag of {kind}, {name} {count}"] = score
    for count in LABELS["order"]:
        result[f"triples, order {count}"] = tasks.counted_accuracy(count, seed)
    return {"result": {name: round(score, 4) for name, score in result.items()}}


@stored(cases=[{"seed": seed} for seed in SEEDS], data=DATA)
def longer(*, seed: int) -> dict:
    """From scratch with four times the steps of the others: does it still learn?"""
    data, (val, test) = few("order", 1000, seed), task("order")
    torch.manual_seed(seed)
    model = classifier(tasks.new_model("from scratch"), 2)
    curve = fine_tune(model, data, steps=4 * STEPS[1000], lr=RATES["all"][0], seed=seed, watch=val)
    return {"result": {"order 1000": round(accuracy(model, test), 4)}, "curves": {"val": curve}}


@stored(cases=[{"seed": seed} for seed in SEEDS], data=DATA)
def longer_bert(*, seed: int) -> dict:
    """The pretrained BERT with four times the steps: had it converged?"""
    data, (val, test) = few("order", 1000, seed), task("order")
    torch.manual_seed(seed)
    model = classifier(begun("BERT", seed)[0], 2)
    curve = fine_tune(model, data, steps=4 * STEPS[1000], lr=RATES["all"][0], seed=seed, watch=val)
    return {"result": {"order 1000": round(accuracy(model, test), 4)}, "curves": {"val": curve}}


@stored(cases=[{"seed": seed} for seed in SEEDS], data=DATA)
def autoencoder(*, seed: int) -> dict:
    """The same budget, asked for every token with none hidden, and the same fine-tuning."""
    body, curve = begun("autoencoder", seed)
    result, curves = {"asked": curve[-1][1]}, {"pretraining": curve}
    for name, amounts in LABELS.items():
        for count in amounts:
            score, curves[f"{name} {count}"] = tuned(body, name, count, seed, "all")
            result[f"{name} {count}"] = round(score, 4)
    return {"result": result, "curves": curves}


@stored(cases=[{"variant": name, "seed": seed} for seed in SEEDS for name in VARIANTS], data=DATA)
def exchanged(*, variant: str, seed: int) -> dict:
    """The GPT of the chapter before with one part exchanged, or all: its held-out loss, trained as there."""
    stream, unread = streams()
    torch.manual_seed(seed)
    sizes = {"embed_dim": WIDTH, "num_heads": 4, "num_layers": 2, "max_len": LENGTH, "dropout": 0.0}
    model = GPT(VOCAB, **sizes, **VARIANTS[variant])
    curve: list[list[float]] = []

    def watch(step: int, loss: float) -> None:
        if step and step % 100 == 0:
            curve.append([step, round(loss, 4)])

    train(
        model,
        lambda generator: windows(stream, LENGTH, BATCH, generator),
        steps=GPT_STEPS,
        lr=RATE,
        seed=seed,
        watch=watch,
    )
    loss = evaluate(model, unread, LENGTH, read=LENGTH // 2)
    return {"result": {"loss": round(loss, 4)}, "curves": {"training": curve}}


# What a page tells of the stored BERT -------------------------------------------------------------

LONG = 5
"""An example has so many words at least."""


@torch.no_grad()
def model_card(name: str) -> dict:
    """`examples`: sentence, first guess, what was hidden. `score`: how many of how many are right. `answers`."""
    subwords, weights = texts().subwords, packed(name)
    config = weights["config"] | {"rotary": True}  # the chapter's class has no other positions
    model = network_of(BERT, weights | {"config": config})
    vocabularies = {
        "tokens": list(subwords.tokens),
        "merges": [" ".join(merge) for merge in subwords.merges],
        "words": sorted(set(" ".join(texts().read).split())),
    }
    data, places = hidden()
    rows = torch.arange(len(places))
    tokens = data.ids.clone()
    tokens[rows, places] = MASK
    guesses = model(tokens, data.lengths)[rows, places].argmax(dim=-1)
    right = data.ids[rows, places]
    guessed = zip(data.ids.tolist(), places.tolist(), guesses.tolist(), right.tolist(), strict=True)
    every = [
        {"sentence": line, "said": subwords.tokens[guess], "right": subwords.tokens[token]}
        for row, position, guess, token in guessed
        if (line := _with_gap(subwords, row, position)) and len(line.split()) >= LONG
    ]
    good = [each for each in every if each["said"] == each["right"]]
    bad = [each for each in every if each["said"] != each["right"]]
    examples = [*good[:2], *bad[:1]]
    return {
        "config": config,
        "vocabularies": vocabularies,
        "examples": examples,
        "score": [int((guesses == right).sum()), len(right)],
        "answers": [_answer(model, subwords, each["sentence"]) for each in examples],
    }


def _with_gap(subwords: Subwords, row: list[int], position: int) -> str:
    """A sentence with a gap for one of its words; none if the place holds a part of a word."""
    before, piece = (subwords.tokens[i] for i in row[position - 1 : position + 1])
    word = piece.removesuffix("␣")
    if not word.isalpha() or word == piece or not before.endswith(("␣", ">")):
        return ""
    return f"{subwords.decode(row[:position])} ___ {subwords.decode(row[position + 1 :])}".strip()


def _answer(model: nn.Module, subwords: Subwords, sentence: str) -> dict:
    """Ids of a sentence with a gap, the gap's place, and its ten largest logits."""
    left, right = sentence.split("___")
    ids = [BOS, *subwords.encode(left), MASK, *subwords.encode(right), EOS]
    best = model(torch.tensor([ids]))[0, ids.index(MASK)].topk(10)
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    logits = [[token, round(value, 6)] for token, value in pairs]
    return {"ids": ids, "place": ids.index(MASK), "logits": logits}
