"""What was recorded with SmolLM2's weights for *Real weights*: `make runs CHAPTER=18`, which needs the file.

Greedy, without a system prompt. A run is made again by `make nightly`, and its numbers are compared.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from course_utils.interventions import intervene, record_activations
from course_utils.kit.runs import RunFunction, stored
from course_utils.lessons.real_weights import experiments
from course_utils.lessons.real_weights.experiments import (
    CAPITALS,
    COUNTRIES,
    answers,
    capital_prompts,
    capital_tokens,
    last_step,
)
from course_utils.lessons.real_weights.smollm import (
    SIZES,
    SmolLM,
    chat,
    loss_on_story,
    reference,
)
from course_utils.recording import record_attention

LAYERS, HEADS = SIZES["num_layers"], SIZES["num_heads"]
FIRST = 3
"""Place of the question's first token: <|im_start|>, "user" and a line break come before it."""
AFTER = 6
"""Tokens of the template behind the question's words."""

QUESTIONS = {
    "What is the capital of Japan?": "Tokyo",
    "What is the capital of Egypt?": "Cairo",
    "What is the opposite of hot?": "cold",
    "What is the currency of Japan?": "yen",
    "What is the first month of the year?": "January",
}
"""Question → the word of its answer that is looked for. Of 18 that were chosen beforehand, 8 are answered rightly."""


# Forbidden tokens ---------------------------------------------------------------------------------


@stored(cases=[{"question": question} for question in QUESTIONS])
def questions(*, question: str) -> dict[str, Any]:
    """A question's answer without each of its tokens, and without each set of seven words."""
    lm, key = reference(), QUESTIONS[question].lower()
    ids = lm.encode(chat(question))[0].tolist()
    places, words = range(len(ids)), range(FIRST, len(ids) - AFTER)
    forbidden = [(), *((place,) for place in places)]
    if len(words) <= 7:
        forbidden += subsets(words)
    forbidden = list(dict.fromkeys(forbidden))
    gave = answers_without(lm, question, forbidden)
    quiet = tuple(place for place in places if gave[place,][0] == gave[()][0])
    # For everybody: what the tokens before the question may see is forbidden, too.
    early = [((place,), 0) for place in range(FIRST)]
    gave[quiet], *for_everybody = answers(lm, question, [(quiet, FIRST), *early])
    named = {out: key in answer.lower() for out, (answer, *_) in gave.items()}
    result = {"tokens": len(ids), "quiet": len(quiet)}
    result["lost"] = sum(not named[place,] for place in places)
    if len(words) <= 7:
        most = max(len(out) for out in forbidden if named[out] and set(out) <= {*words})
        result["fewest"] = len(words) - most
    example = {
        "tokens": [lm.decode([i]) for i in ids],
        "key": QUESTIONS[question],
        "answers": {",".join(map(str, out)): answer for out, answer in gave.items()},
        "for_everybody": for_everybody,
    }
    return {"result": result, "examples": [example]}


def subsets(words: Sequence[int]) -> list[tuple[int, ...]]:
    """All sets of some of the words, from none to all."""
    return [
        tuple(word for bit, word in enumerate(words) if number >> bit & 1)
        for number in range(2 ** len(words))
    ]


def answers_without(
    lm: SmolLM, question: str, forbidden: Sequence[tuple[int, ...]]
) -> dict[tuple[int, ...], list]:
    """The `answers` without each of some sets of tokens, which no token of the question or after it may look at."""
    gave: dict[tuple[int, ...], list] = {}
    for first in range(0, len(forbidden), 64):
        batch = forbidden[first : first + 64]
        cuts = [(places, FIRST) for places in batch]
        gave |= dict(zip(batch, answers(lm, question, cuts), strict=True))
    return gave


# In which layer -----------------------------------------------------------------------------------


@stored(cases=[{"country": country} for country in CAPITALS])
def countries(*, country: str) -> dict[str, Any]:
    """“The capital of X is”: what comes next if *is* may not look at X in one layer, or from a layer on."""
    lm, capital = reference(), CAPITALS[country]
    ids = lm.encode(f"<|endoftext|>The capital of {country} is")
    wanted = lm.encode(" " + capital)[0, 0].item()
    one_layer = [([4], [layer]) for layer in range(LAYERS)]
    from_a_layer_on = [([4], range(layer, LAYERS)) for layer in range(LAYERS)]
    probs = last_step(lm, ids, [([], []), *one_layer, *from_a_layer_on])
    whole, *rows = [[round(row[wanted].item(), 4), best_tokens(lm, row)] for row in probs]
    alone, onwards = rows[:LAYERS], rows[LAYERS:]
    by_layer = {layer: p for layer, (p, _) in enumerate(alone)}
    lowest = min(by_layer, key=lambda layer: by_layer[layer])
    result = {"whole": whole[0], "lowest": lowest, "least": by_layer.pop(lowest)}
    result["next"] = min(by_layer.values())
    piece = lm.decode([wanted]).strip()
    example = {"capital": capital, "piece": piece, "whole": whole, "alone": alone, "from": onwards}
    return {"result": result, "examples": [example]}


def best_tokens(lm: SmolLM, probs: Tensor) -> list[list[Any]]:
    """The five likeliest tokens of (vocabulary,) probabilities: [text, probability]."""
    return [[lm.decode([i]), round(probs[i].item(), 3)] for i in probs.topk(5).indices]


WINDOWS = {
    "none": [], "0 to 10": range(11), "11 to 22": range(11, 23), "24 to 29": range(24, 30),
    "all but 23": [layer for layer in range(LAYERS) if layer != 23],
}  # fmt: skip


@stored(cases=[{"layers": name} for name in WINDOWS])
def several_layers(*, layers: str) -> dict[str, Any]:
    """“The capital of X is” if *is* may not look at X in several layers at once: right answers, and mean P(capital).

    Over the countries of one token that are answered rightly with nothing forbidden.
    """
    lm, right, p = reference(), 0, []
    for country, capital in CAPITALS.items():
        ids = lm.encode(f"<|endoftext|>The capital of {country} is")
        wanted = lm.encode(" " + capital)[0, 0]
        whole, cut = last_step(lm, ids, [([], []), ([4], WINDOWS[layers])])
        if whole.argmax() == wanted:
            right += int(cut.argmax() == wanted)
            p.append(cut[wanted].item())
    return {"right": right, "countries": len(p), "p": sum(p) / len(p)}


@stored()
def all_countries() -> dict[str, Any]:
    """The real countries of our lists, also of several tokens: which layer is lowest, and where an answer is lost."""
    lm = reference()
    asked = {name: capital for kind in REAL for name, capital in COUNTRIES[kind].items()}
    found = [without_country(lm, country, capital) for country, capital in asked.items()]
    rows = [row for row in found if row]
    result = {
        "asked": len(asked),
        "known": len(rows),
        "lowest_23": sum(lowest == 23 for _, _, lowest, _ in rows),
        "lost_23": sum(23 in lost for *_, lost in rows),
        "lost_elsewhere": sum(layer != 23 for *_, lost in rows for layer in lost),
    }
    return {"result": result, "examples": [{"rows": rows}]}


REAL = ("well known", "another city is larger", "little known")


def without_country(lm: SmolLM, country: str, capital: str) -> list[Any] | None:
    """A country's row: P(capital), the layer whose look at the country counts most, the layers that lose the answer.

    None if the capital is not the likeliest token with nothing forbidden.
    """
    ids = lm.encode(f"<|endoftext|>The capital of {country} is")
    wanted = lm.encode(" " + capital)[0, 0]
    places = range(4, ids.shape[1] - 1)
    whole, *alone = last_step(lm, ids, [([], []), *((places, [layer]) for layer in range(LAYERS))])
    if whole.argmax() != wanted:
        return None
    lost = [layer for layer, probs in enumerate(alone) if probs.argmax() != wanted]
    lowest = torch.stack(alone)[:, wanted].argmin().item()
    return [country, round(whole[wanted].item(), 3), lowest, lost]


LANGUAGES = {
    "Japan": "Japanese", "France": "French", "Germany": "German", "Norway": "Norwegian", "Italy": "Italian",
    "Spain": "Spanish", "Portugal": "Portuguese", "Greece": "Greek", "Poland": "Polish", "Austria": "German",
    "Hungary": "Hungarian", "Sweden": "Swedish", "Finland": "Finnish", "Egypt": "Arabic",
}  # fmt: skip
SENTENCES: dict[str, dict[str, str]] = {
    "The capital city of {} is": CAPITALS,
    "The language spoken in {} is": LANGUAGES,
    "People in {} speak": LANGUAGES,
}
"""Sentence → country → the word that is followed, however likely others are."""


@stored(cases=[{"sentence": sentence} for sentence in SENTENCES])
def other_sentences(*, sentence: str) -> dict[str, Any]:
    """In which layer the last token most needs its look at the country, in another sentence, over fourteen countries.

    "lowest_23": for how many it is layer 23. "kept": the share of the word's probability that is left without it, mean.
    """
    lm, lowest, kept = reference(), 0, []
    for country, word in SENTENCES[sentence].items():
        ids = lm.encode("<|endoftext|>" + sentence.format(country))
        place = lm.encode("<|endoftext|>" + sentence.partition("{")[0].rstrip()).shape[1]
        probs = last_step(lm, ids, [([], []), *(([place], [layer]) for layer in range(LAYERS))])
        p = probs[:, lm.encode(" " + word)[0, 0]]
        lowest += int(p[1:].argmin() == 23)
        kept.append((p[24] / p[0]).item())
    return {"lowest_23": lowest, "kept": sum(kept) / len(kept), "countries": len(kept)}


@stored(cases=[{"block": block} for block in ("first", "second", "both")])
def look_before(*, block: str) -> dict[str, float]:
    """What is copied if head 16.0 may not look at the token before, in one block of the random tokens or in both."""
    lm = reference()
    places = {"first": range(1, 41), "second": range(41, 80), "both": range(1, 80)}[block]
    with torch.inference_mode(), intervene(lm.model) as acts:
        for place in places:
            acts.knock_out(layers=16, heads=0, queries=place, keys=place - 1)
        return {"copied": experiments.copied(lm)}


@stored(cases=[{"front": front} for front in ("<|endoftext|>", "")])
def thirty_capitals(*, front: str) -> dict[str, float]:
    """Right answers after “The capital of X is” with something in front, by the first token of the capital."""
    lm, right = reference(), 0
    asked = COUNTRIES["well known"] | COUNTRIES["another city is larger"]
    for country, capital in asked.items():
        ids = lm.encode(f"{front}The capital of {country} is")
        wanted = lm.encode(" " + capital)[0, 0]
        with torch.inference_mode():
            right += int(lm.model(ids)[0, -1].argmax() == wanted)
    return {"right": right, "asked": len(asked)}


@stored()
def weight_on_country() -> dict[str, Any]:
    """The weight of each layer at *is* on the country, summed over its heads: mean over the fourteen countries."""
    lm = reference()
    with torch.inference_mode(), record_attention(lm.model) as maps:
        lm.model(capital_prompts(lm, CAPITALS))
    sums = [
        maps[f"layers.{layer}.attention"][:, :, 5, 4].sum(1).mean().item()
        for layer in range(LAYERS)
    ]
    heaviest = max(range(LAYERS), key=lambda layer: sums[layer])
    return {
        "result": {"heaviest": heaviest, "its_weight": sums[heaviest], "of_23": sums[23]},
        "curves": {"weight": [[layer, round(weight, 3)] for layer, weight in enumerate(sums)]},
    }


# What moves the answer ----------------------------------------------------------------------------

PAIRS = [
    ("France", "Italy"), ("Germany", "Spain"), ("Japan", "Egypt"), ("Greece", "Poland"), ("Norway", "Portugal"),
    ("Austria", "Sweden"),
]  # fmt: skip
PATCHED = {  # name → part, position
    "country": ("residual", 4),
    "last": ("residual", 5),
    "attention": ("attention", 5),
}


@stored(cases=[{"what": what} for what in PATCHED])
def patching(*, what: str) -> dict[str, Any]:
    """Move of the answer from one country's capital to the other's if one activation comes from the other run.

    0: no way, 1: all the way, in logits; mean, least and most over the pairs in both directions.
    """
    lm, (part, place) = reference(), PATCHED[what]
    pairs = [*PAIRS, *((second, first) for first, second in PAIRS)]
    givers, takers = ([pair[k] for pair in pairs] for k in (0, 1))
    right, wrong = capital_tokens(lm, givers), capital_tokens(lm, takers)

    def lead(ids: Tensor) -> Tensor:
        """(pairs,): how far the giver's capital is ahead of the taker's, in logits."""
        logits = lm.model(ids)[:, -1]
        return (logits.gather(1, right[:, None]) - logits.gather(1, wrong[:, None]))[:, 0]

    curves: dict[str, list] = {"mean": [], "least": [], "most": []}
    with torch.inference_mode():
        with record_activations(lm.model) as run:
            top = lead(capital_prompts(lm, givers))
        own = capital_prompts(lm, takers)
        bottom = lead(own)
        for layer in range(LAYERS):
            with intervene(lm.model) as acts:
                acts.patch(part, run, layers=layer, positions=place)
                moved = (lead(own) - bottom) / (top - bottom)
            curves["mean"].append([layer, round(moved.mean().item(), 3)])
            curves["least"].append([layer, round(moved.min().item(), 3)])
            curves["most"].append([layer, round(moved.max().item(), 3)])
    result = {f"{name}_23": curves[name][23][1] for name in curves}
    return {"result": result | {"pairs": len(pairs)}, "curves": curves}


# Fewer bits ---------------------------------------------------------------------------------------

BITS = [
    {"bits": 0, "block": 0},  # as it comes
    *({"bits": bits, "block": block} for block in (32, 64, 192, 0) for bits in (2, 3, 4, 5, 6)),
]
SHIFT = 16
"""Columns by which our blocks are shifted against the file's own, on which four bits would cost nothing."""


def quantized(weights: Tensor, bits: int, block: int) -> Tensor:
    """Each block of a row by 2^bits levels from its least to its largest number; `block` 0 is a whole row."""
    shifted = weights.roll(SHIFT, dims=1)
    rows = shifted.reshape(-1, block or weights.shape[-1])
    low, high = rows.min(1, keepdim=True).values, rows.max(1, keepdim=True).values
    step = ((high - low) / (2**bits - 1)).clamp(min=1e-12)
    return (low + step * ((rows - low) / step).round()).view_as(weights).roll(-SHIFT, dims=1)


@stored(cases=BITS)
def fewer_bits(*, bits: int, block: int) -> dict[str, Any]:
    """The loss on our story, and what follows “The capital of France is”, with the blocks' matrices rounded again.

    "stored": bits of a number with its share of the scale and of the least number, 16 bits each.
    """
    lm = reference()
    matrices = [p for n, p in lm.model.named_parameters() if n.startswith("layers") and p.ndim == 2]
    with rounded(matrices, bits, block), torch.inference_mode():
        loss = loss_on_story(lm)
        writes = lm.write("The capital of France is", max_new=6)
    numbers = sum(p.numel() for p in matrices)
    scales = sum(p.numel() // (block or p.shape[-1]) for p in matrices)
    result = {"loss": loss, "stored": bits + 32 * scales / numbers if bits else 5}
    return {"result": result, "examples": [{"writes": writes}]}


@contextlib.contextmanager
def rounded(matrices: Sequence[Tensor], bits: int, block: int) -> Iterator[None]:
    """Inside the block the matrices are `quantized`, unless `bits` is 0; afterwards they are as before."""
    kept = [matrix.clone() for matrix in matrices]
    try:
        if bits:
            for matrix in matrices:
                matrix.copy_(quantized(matrix, bits, block))
        yield
    finally:
        for matrix, before in zip(matrices, kept, strict=True):
            matrix.copy_(before)


# What the page itself computes --------------------------------------------------------------------


def of_page(name: str, cases: Sequence[dict]) -> RunFunction:
    """Runs of a function `name`(lm, …) that the chapter defines; `known` shows what it gave."""

    def run(chapter: SimpleNamespace, **case: Any) -> dict[str, Any]:
        with torch.inference_mode():
            return _gave(getattr(chapter, name)(reference(), **case))

    run.__name__ = name
    return stored(cases=cases, chapter=[name])(run)


def of_lesson(experiment: Callable, cases: Sequence[dict]) -> RunFunction:
    """Runs of a function of `experiments`."""

    def run(**case: Any) -> dict[str, Any]:
        with torch.inference_mode():
            return _gave(experiment(reference(), **case))

    run.__name__ = experiment.__name__
    return stored(cases=cases)(run)


def _gave(answer: Any) -> dict[str, Any]:
    return {"result": {}, "examples": [{"gave": _to_four_digits(answer)}]}


def _to_four_digits(thing: Any) -> Any:
    """A thing that JSON can hold, with all its numbers to four digits."""
    if isinstance(thing, float):
        return round(thing, 4)
    if isinstance(thing, list):
        return [_to_four_digits(each) for each in thing]
    return {k: _to_four_digits(v) for k, v in thing.items()} if isinstance(thing, dict) else thing


next_words = of_page("next_words", [{"text": "The capital of France is"}])
answer = of_lesson(
    experiments.answer,
    [{"question": q} for q in ("Tell me about attention in transformers.", *QUESTIONS)],
)
simple_questions = of_lesson(experiments.simple_questions, [{}])
goes_on = of_lesson(experiments.goes_on, [{}])
without = of_page(
    "without", [{"question": "What is the opposite of hot?", "words": ["hot", "opposite", "the"]}]
)
in_each_layer = of_page(
    "in_each_layer",
    [{"country": c} for c in ("Cuba", "Peru", "Kenya", "New Zealand", *CAPITALS)],
)
heads_of_23 = of_lesson(experiments.heads_of_23, [{}])
induction_scores = of_lesson(
    experiments.induction_scores,
    [{"seed": 0}, {"seed": 1}, {"seed": 0, "without": [[16, 0]]}],
)
token_before = of_lesson(experiments.token_before, [{"seed": seed} for seed in (0, 1)])
first_words = of_lesson(experiments.first_words, [{}])
capitals = of_lesson(experiments.capitals, [{"kind": kind} for kind in COUNTRIES])

ALONE = [(16, head) for head in range(9)]
ALONE += [(18, 6), (17, 4), (17, 3), (17, 5), (23, 2), (18, 7), (23, 7), (20, 6)]
ALONE += [(0, 5), (1, 3), (11, 1)]
COPYING = [
    *({"take": "best", "count": count} for count in (0, 1, 2, 4, 8, 16)),
    *({"take": "same layers", "count": 8, "seed": seed} for seed in range(10)),
    *({"take": "anywhere", "count": 8, "seed": seed} for seed in range(30)),
    *({"take": "alone", "count": 1, "seed": 9 * layer + head} for layer, head in ALONE),
]


@cache
def ranked() -> experiments.Heads:
    """All heads, [layer, head], by their induction scores on two draws, the highest first."""
    with torch.inference_mode():
        scores = sum(
            torch.tensor(experiments.induction_scores(reference(), seed)) for seed in (0, 1)
        )
    return [list(divmod(i, HEADS)) for i in scores.flatten().argsort(descending=True).tolist()]


@stored(cases=COPYING)
def copying(*, take: str, count: int, seed: int = 0) -> dict[str, float]:
    """What is copied rightly, and the loss on our story, without some heads.

    The best by their scores on two draws; as many others of the same layers; as many others anywhere; or the one
    head 9 · layer + head that `seed` says. "Others" are not among the 24 best.
    """
    with torch.inference_mode():
        return experiments.without_heads(reference(), heads_to_remove(take, count, seed))


def heads_to_remove(take: str, count: int, seed: int) -> experiments.Heads:
    """The heads, [layer, head], of a case of `copying`."""
    best = ranked()
    if take == "best":
        return best[:count]
    if take == "same layers":
        return experiments.others(best, seed, count)
    if take == "alone":
        return [list(divmod(seed, HEADS))]
    rest, draws = sorted(best[24:]), torch.Generator().manual_seed(seed)
    return [rest[i] for i in torch.randperm(len(rest), generator=draws)[:count].tolist()]


EIGHT = [[18, 6], [17, 4], [17, 3], [17, 5], [23, 2], [18, 7], [23, 7], [20, 6]]
OTHERS = [[18, 4], [17, 6], [17, 7], [17, 0], [23, 6], [18, 3], [23, 4], [20, 1]]
without_heads = of_lesson(
    experiments.without_heads,
    [{"heads": heads} for heads in ([], EIGHT, OTHERS, [[16, 0]])],
)
