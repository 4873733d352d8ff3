"""Stored trainings of *BERT and transfer*, `make runs CHAPTER=14`, and the cards of its two stored readers."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from course_utils.data.prose import IGNORE, Subwords
from course_utils.data.text import BOS, EOS, MASK, PAD
from course_utils.kit.runs import stored
from course_utils.kit.stored_model import StoredModel, largest_logits, load_model
from course_utils.lessons.bert_and_transfer import tasks, trigrams
from course_utils.lessons.bert_and_transfer.tasks import (
    Labeled,
    few,
    hidden,
    order_task,
    texts,
)
from course_utils.lessons.bert_and_transfer.tuning import LORA_AT, accuracy, classifier, fine_tune
from course_utils.lessons.gpt.runs import BATCH, LENGTH, RATE, VOCAB, WIDTH, streams
from course_utils.lessons.gpt.runs import STEPS as GPT_STEPS
from course_utils.lessons.gpt.training import evaluate, train, windows
from course_utils.models.language import BERT, GPT, LanguageModel

SEEDS = (0, 1, 2)
STEPS, COPY_STEPS = 3600, 1200
"""Steps of pretraining; an autoencoder needs fewer until its loss is 0."""
WATCHED = 100
"""Steps from one measurement to the next."""
TUNING_STEPS = {50: 120, 1000: 400}
"""Number of labels → steps of fine-tuning."""
LORA_RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
TUNING_RATES = {
    "all": (3e-4, 1e-3, 3e-3, 1e-2),
    **dict.fromkeys(LORA_AT, LORA_RATES),
    "output": (3e-2, 1e-1, 3e-1, 1.0, 3.0),
}
"""Method → rates; `stored_runs(…, highest="val")` takes the one that is best on the validation part."""

VARIANTS: dict[str, dict] = {
    "GPT": {},
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


# Pretraining --------------------------------------------------------------------------------------


def next_token_task(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens that a GPT reads, and its targets, each next token: each (batch, length − 1), from ids (batch, length)."""
    return ids[:, :-1], ids[:, 1:].masked_fill(ids[:, 1:] == PAD, IGNORE)


def same_token_task(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens that an autoencoder reads, and its targets, the same tokens: each (batch, length)."""
    return ids, ids.masked_fill(ids == PAD, IGNORE)


RULES = {"GPT": next_token_task, "autoencoder": same_token_task}
"""Name of a network → its rule for tokens and targets; the others get hidden tokens."""

_pretrained: dict[tuple[str, int], tuple[LanguageModel, dict]] = {}


def pretrained(chapter: SimpleNamespace, name: str, seed: int) -> tuple[LanguageModel, dict]:
    """A network trained as the chapter does it, and its curves; it is trained once for all runs of a process."""
    if (name, seed) not in _pretrained:
        torch.manual_seed(seed)
        kind = GPT if name == "GPT" else BERT
        model = kind(tasks.VOCAB, **tasks.SIZES, rotary=True, dropout=0.0)
        hidden_losses = [[0, round(tasks.hidden_loss(model), 4)]]

        def watch(step: int) -> None:
            if step % WATCHED == 0:
                hidden_losses.append([step, round(tasks.hidden_loss(model), 4)])

        steps = COPY_STEPS if name == "autoencoder" else STEPS
        losses = chapter.train(model, steps, RULES.get(name, chapter.hide), watch=watch)
        means = torch.tensor(losses).view(-1, WATCHED).mean(dim=1).tolist()
        training = [[WATCHED * (i + 1), round(mean, 4)] for i, mean in enumerate(means)]
        _pretrained[name, seed] = model.eval(), {"training": training, "hidden": hidden_losses}
    return _pretrained[name, seed]


@torch.no_grad()
def strangest(model: LanguageModel, data: Labeled) -> Tensor:
    """(sentences,): the largest loss of a token, given those before it for a GPT, or under a mask for a BERT."""
    if getattr(model, "is_causal", False):
        read, targets = next_token_task(data.ids)
        losses = nn.functional.cross_entropy(
            model(read).mT, targets, ignore_index=IGNORE, reduction="none"
        )
        return losses[:, :-1].amax(dim=1)
    worst = torch.zeros(len(data.ids))
    for place in range(1, data.ids.shape[1] - 1):
        rows = data.lengths > place + 1  # those with an ordinary token there
        tokens = data.ids[rows].clone()
        tokens[:, place] = MASK
        logits = model(tokens, data.lengths[rows])[:, place]
        losses = nn.functional.cross_entropy(logits, data.ids[rows, place], reduction="none")
        worst[rows] = worst[rows].maximum(losses)
    return worst


@stored(
    cases=[{"reader": name, "seed": seed} for seed in (0, 2) for name in ("BERT", "GPT")],
    chapter=["train", "hide", "best_threshold"],
    saves={"bert": {"reader": "BERT", "seed": 0}, "gpt_left": {"reader": "GPT", "seed": 0}},
)
def readers(chapter: SimpleNamespace, *, reader: str, seed: int) -> dict:
    """A reader of both sides, or one of the left only: its loss at hidden tokens, and `sorted_out` by one token.

    The strangest token of each sentence counts. Those of seed 0 are stored for pages.
    """
    model, curves = pretrained(chapter, reader, seed)
    models, cards = {}, {}
    if seed == 0:
        name, card = ("bert", model_card) if reader == "BERT" else ("gpt_left", left_card)
        models[name] = StoredModel.of(model, {"vocab_size": tasks.VOCAB} | tasks.SIZES)
        cards[name] = card(models[name].for_page())
    by_strangest = sorted_out(chapter, partial(strangest, model), order_task()[1], seed)
    shares = {name: right for name, right in by_strangest.items() if name != "pairs"}
    return {
        "result": {"hidden": curves["hidden"][-1][1]} | shares,
        "curves": curves,
        "models": models,
        "cards": cards,
    }


# Asked as they were trained -----------------------------------------------------------------------


@torch.no_grad()
def left_strangeness(model: GPT, data: Labeled) -> Tensor:
    """(sentences,): −ln P of each sentence by a GPT, the sum of the losses of all tokens and of the end."""
    read, targets = next_token_task(data.ids)
    losses = nn.functional.cross_entropy(
        model(read).mT, targets, ignore_index=IGNORE, reduction="none"
    )
    return losses.sum(dim=1)


def sorted_out(
    chapter: SimpleNamespace, measure: Callable[[Labeled], Tensor], data: Labeled, seed: int
) -> dict[str, float]:
    """Accuracies with which a measure of strangeness tells sentences in order from sentences with two words exchanged.

    Args:
        chapter: with `best_threshold`.
        measure: sentences → strangeness, (sentences,).
        data: each sentence in order, and after it exchanged.
        seed: draws the labels.

    Returns:
        "pairs", the share in which the exchanged sentence is the stranger one; and "order <count>", the share of
        sentences on the right side of a threshold that so many labels have set.
    """
    scores = measure(data)
    result = {"pairs": (scores[1::2] > scores[::2]).float().mean().item()}
    for count in TUNING_STEPS:
        some = few(count, seed)
        cut = chapter.best_threshold(measure(some), some.labels)
        right = ((scores > cut).long() == data.labels).float().mean().item()
        result[f"order {count}"] = right
    return result


@stored(
    cases=[{"reader": name, "seed": seed} for name in ("BERT", "GPT") for seed in SEEDS],
    chapter=["strangeness", "best_threshold"],
)
def by_reader(chapter: SimpleNamespace, *, reader: str, seed: int) -> dict:
    """`sorted_out` by the losses of the stored readers, without fine-tuning; the seed draws the labels."""
    model = beginning_of(chapter, reader, seed).eval()
    measure = chapter.strangeness if reader == "BERT" else left_strangeness
    return {"result": sorted_out(chapter, partial(measure, model), order_task()[1], seed)}


@stored(
    cases=[{"side": side, "seed": seed} for seed in SEEDS for side in ("each", "left")],
    chapter=["best_threshold"],
)
def by_counts(chapter: SimpleNamespace, *, side: str, seed: int) -> dict:
    """`sorted_out` by the losses of trigrams: each token guessed from both sides, or from the left."""
    of_both, of_left = trigrams.strangeness_by_both_sides, trigrams.strangeness_from_left
    measure = of_both if side == "each" else of_left
    return {"result": sorted_out(chapter, measure, order_task()[1], seed)}


# Fine-tuning --------------------------------------------------------------------------------------


def beginning_of(chapter: SimpleNamespace, name: str, seed: int) -> LanguageModel:
    """The network that a fine-tuning begins with: a stored reader, an autoencoder, or an untrained network."""
    if name == "autoencoder":
        return pretrained(chapter, name, seed)[0]
    if name == "from scratch":
        torch.manual_seed(seed)
        return BERT(tasks.VOCAB, **tasks.SIZES, rotary=True, dropout=0.0)
    kind, model = (GPT, "gpt_left") if name == "GPT" else (BERT, "bert")
    network = load_model(model).network(kind, rotary=True, dropout=0.0)
    return network.train().requires_grad_(True)


FINE_TUNED = [
    ("BERT", "all", 50),
    ("from scratch", "all", 50),
    *[("BERT", method, 1000) for method in TUNING_RATES],
    ("autoencoder", "all", 1000),
]


@stored(
    cases=[
        {"beginning": name, "method": method, "labels": labels, "rate": rate, "seed": seed}
        for name, method, labels in FINE_TUNED
        for rate in TUNING_RATES[method]
        for seed in (SEEDS if name != "autoencoder" else SEEDS[:1])
    ],
    chapter=["train", "hide"],
)
def transfer(
    chapter: SimpleNamespace, *, beginning: str, method: str, labels: int, rate: float, seed: int
) -> dict:
    """Accuracy on order of a network with a new output layer: `right` in the test, `val` on the validation part.

    The seed draws the labels.
    """
    body, (val, test) = beginning_of(chapter, beginning, seed), order_task()
    torch.manual_seed(seed)
    model = classifier(body, method)
    fine_tune(model, few(labels, seed), steps=TUNING_STEPS[labels], lr=rate, seed=seed)
    result = {"val": accuracy(model, val), "right": accuracy(model, test)}
    if beginning == "autoencoder":
        result["asked"] = pretrained(chapter, beginning, seed)[1]["training"][-1][1]
    return {"result": result}


@stored(cases=[{"seed": seed} for seed in SEEDS])
def longer(*, seed: int) -> dict:
    """Accuracy of a BERT from scratch with four times the steps of the others."""
    data, (val, test) = few(1000, seed), order_task()
    torch.manual_seed(seed)
    model = classifier(BERT(tasks.VOCAB, **tasks.SIZES, rotary=True, dropout=0.0))
    curve = fine_tune(model, data, steps=4 * TUNING_STEPS[1000], lr=1e-3, seed=seed, watch=val)
    return {"result": {"order 1000": accuracy(model, test)}, "curves": {"val": curve}}


@stored(cases=[{"variant": name, "seed": seed} for seed in SEEDS for name in VARIANTS])
def variants(*, variant: str, seed: int) -> dict:
    """Held-out loss of the GPT of the chapter before with one part exchanged, or all, trained as there."""
    stream, unread = streams()
    torch.manual_seed(seed)
    sizes = {"embed_dim": WIDTH, "num_heads": 4, "num_layers": 2, "max_len": LENGTH, "dropout": 0.0}
    model = GPT(VOCAB, **sizes, **VARIANTS[variant])
    curve: list[list[float]] = []

    def watch(step: int, loss: float) -> None:
        if step and step % 100 == 0:
            curve.append([step, round(loss, 4)])

    batches = partial(windows, stream, LENGTH, BATCH)
    train(model, batches, steps=GPT_STEPS, lr=RATE, seed=seed, watch=watch)
    loss = evaluate(model, unread, LENGTH, read=LENGTH // 2)
    return {"result": {"loss": loss}, "curves": {"training": curve}}


# What a page tells of the two stored readers --------------------------------------------------------

EXAMPLES = {
    "paul ___ a truck and washed it .": "bought␣",
    "i'm not going to ___ to music .": "listen␣",
    "lucas must sell a yellow ___ .": "hat␣",
}
"""Sentences outside the training set and their hidden word: two that the BERT fills rightly, and one wrongly."""


@torch.no_grad()
def model_card(stored_model: StoredModel) -> dict:
    """`examples`: sentence, first guess, what was hidden. `score`: how many of how many are right. `answers`."""
    subwords = texts().subwords
    model = stored_model.network(BERT, rotary=True)  # the chapter's class has no other positions
    vocabularies = {
        "tokens": list(subwords.tokens),
        "merges": [" ".join(merge) for merge in subwords.merges],
        "words": sorted(set(" ".join(texts().read).split())),
    }
    data, places = hidden()
    rows = torch.arange(len(places))
    tokens = data.ids.clone()
    tokens[rows, places] = MASK
    right = model(tokens, data.lengths)[rows, places].argmax(dim=-1) == data.ids[rows, places]
    answers = [_answer(model, _ids(subwords, sentence)) for sentence in EXAMPLES]
    examples = [
        {"sentence": sentence, "said": subwords.tokens[answer["logits"][0][0]], "right": hidden_one}
        for (sentence, hidden_one), answer in zip(EXAMPLES.items(), answers, strict=True)
    ]
    return {
        "config": stored_model.config | {"rotary": True},
        "vocabularies": vocabularies,
        "examples": examples,
        "score": [int(right.sum()), len(right)],
        "answers": answers,
    }


def left_card(stored_model: StoredModel) -> dict:
    """`config` and `answers` of the reader of the left; its vocabulary and examples stand on the other's card."""
    config = stored_model.config | {"rotary": True}
    model = stored_model.network(GPT, rotary=True)
    read = [_ids(texts().subwords, sentence) for sentence in EXAMPLES]
    return {"config": config, "answers": [_answer(model, ids[: ids.index(MASK)]) for ids in read]}


def _ids(subwords: Subwords, sentence: str) -> list[int]:
    """Ids of a sentence whose gap, "___", is hidden, with its marks."""
    left, right = sentence.split("___")
    return [BOS, *subwords.encode(left), MASK, *subwords.encode(right), EOS]


@torch.no_grad()
def _answer(model: nn.Module, ids: list[int]) -> dict:
    """Ids, the place of their gap (or the last one), and its ten largest logits."""
    place = ids.index(MASK) if MASK in ids else len(ids) - 1
    logits = model(torch.tensor([ids]))[0, place]
    return {"ids": ids, "place": place, "logits": largest_logits(logits)}
