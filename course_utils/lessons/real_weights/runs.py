"""What was recorded with SmolLM2's weights for *Real weights*: `make runs CHAPTER=18`, which needs the file.

Greedy, without a system prompt. A run is made again by `make nightly`, and its numbers are compared.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from course_utils.interventions import intervene, record_activations
from course_utils.kit.runs import RunFunction, stored
from course_utils.lessons.real_weights import experiments
from course_utils.lessons.real_weights.experiments import CAPITALS, COUNTRIES
from course_utils.lessons.real_weights.smollm import (
    END,
    SIZES,
    SmolLM,
    chat,
    loss_on_story,
    reference,
)
from course_utils.masks import causal_mask
from course_utils.recording import record_attention

LAYERS, HEADS = SIZES["num_layers"], SIZES["num_heads"]
MOST = 16
"""Tokens of an answer at most."""
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


def answers(
    lm: SmolLM, question: str, cuts: Sequence[tuple[Sequence[int], int]]
) -> list[list[Any]]:
    """[words, percents, whether more follows] of the answer's first sentence, for each cut side by side.

    Args:
        lm: the model.
        question: without its template.
        cuts: in each, no token from a place on, its second entry, may look at the places of its first.
    """
    prompt = lm.encode(chat(question)).repeat(len(cuts), 1)
    whole = prompt.shape[1] + MOST
    forbidden = torch.zeros(len(cuts), 1, whole, whole, dtype=torch.bool)
    for row, (places, start) in enumerate(cuts):
        forbidden[row, :, start:, list(places)] = True
    allowed = causal_mask(whole) & ~forbidden

    def forbid(given: dict[str, Any]) -> None:
        start = given["cache"].length
        end = start + given["queries"].shape[1]
        given["attn_mask"], given["is_causal"] = allowed[:, :, start:end, :end], False

    state, new, said, sure = lm.model.start(), prompt, [], []
    with torch.inference_mode(), intervene(lm.model) as acts:
        for attention in acts.attentions.values():
            acts.before(attention, forbid)
        for _ in range(MOST):
            probs, best = lm.model.step(new, state).softmax(-1).max(-1)
            new = best[:, None]
            said.append(best)
            sure.append(probs)
    rows = zip(torch.stack(said, 1).tolist(), torch.stack(sure, 1).tolist(), strict=True)
    return [_first_sentence(lm, ids, probs) for ids, probs in rows]


def _first_sentence(lm: SmolLM, ids: list[int], probs: list[float]) -> list[Any]:
    ended = END in ids
    ids = ids[: ids.index(END)] if ended else ids
    words: list[list] = []
    for text, p in _texts(lm, ids, probs):
        for part in re.findall(r"\n+|[^\n]+", text):
            if "\n" in part:
                words.append(["↵" * len(part), p])
            elif part.startswith(" ") or not words or words[-1][0].startswith("↵"):
                words.append([part.strip(" "), p])
            else:
                words[-1] = [words[-1][0] + part, words[-1][1] * p]
    words = [[word, p] for word, p in words if word]
    closed = [i for i, (word, _) in enumerate(words) if re.search(r"[a-z)”\"'][.!?]$", word)]
    more = not closed and not ended
    words = words[: closed[0] + 1] if closed else words
    percents = " ".join(str(round(100 * p)) for _, p in words)
    return [" ".join(word for word, _ in words), percents, int(more)]


def _texts(lm: SmolLM, ids: list[int], probs: list[float]) -> list[tuple[str, float]]:
    """The text that each token adds and its probability; tokens that share a letter's bytes come together."""
    found, before, product = [], "", 1.0
    for k, p in enumerate(probs[: len(ids)]):
        product *= p
        now = lm.decode(ids[: k + 1])
        if not now.endswith("\ufffd") or k + 1 == len(ids):
            found.append((now[len(before) :], product))
            before, product = now, 1.0
    return found


@stored(cases=[{"question": question} for question in QUESTIONS])
def questions(*, question: str) -> dict[str, Any]:
    """A question's answer without each of its tokens, and without each set of seven words."""
    lm, key = reference(), QUESTIONS[question]
    ids = lm.encode(chat(question))[0].tolist()
    words = range(FIRST, len(ids) - AFTER)
    sets = [(), *((place,) for place in range(len(ids)))]
    if len(words) <= 7:
        every = range(1 << len(words))
        sets += [tuple(w for bit, w in enumerate(words) if number >> bit & 1) for number in every]
    sets = list(dict.fromkeys(sets))
    gave: dict[tuple[int, ...], list] = {}
    for first in range(0, len(sets), 64):
        batch = sets[first : first + 64]
        cuts = [(places, FIRST) for places in batch]
        gave |= dict(zip(batch, answers(lm, question, cuts), strict=True))
    quiet = tuple(p for p in range(len(ids)) if gave[p,][0] == gave[()][0])
    early = [
        (place,) for place in range(FIRST)
    ]  # what tokens before the question may see is forbidden, too
    more = answers(lm, question, [(quiet, FIRST), *((place, 0) for place in early)])
    gave[quiet] = more[0]
    lost = [p for p in range(len(ids)) if key.lower() not in gave[p,][0].lower()]
    kept = [
        places
        for places in sets
        if set(places) <= {*words} and key.lower() in gave[places][0].lower()
    ]
    result = {"tokens": len(ids), "quiet": len(quiet), "lost": len(lost)}
    if len(words) <= 7:
        result["fewest"] = len(words) - max(len(places) for places in kept)
    named = {",".join(map(str, places)): answer for places, answer in gave.items()}
    example = {
        "tokens": [lm.decode([i]) for i in ids],
        "key": key,
        "answers": named,
        "for_everybody": more[1:],
    }
    return {"result": result, "examples": [example]}


# In which layer -----------------------------------------------------------------------------------


def last_step(
    lm: SmolLM, ids: Tensor, cuts: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> Tensor:
    """Probabilities (cuts, vocabulary) of what follows, if the last token may not look at some places in some layers.

    Args:
        lm: the model.
        ids: the text, (1, n).
        cuts: (places, layers) of each row.
    """
    state = lm.model.start()
    with torch.inference_mode(), intervene(lm.model) as acts:
        lm.model.step(ids[:, :-1], state)
        for held in state.caches:
            held.repeat(len(cuts))
        for layer, attention in enumerate(acts.attentions.values()):
            allowed = torch.ones(len(cuts), 1, 1, ids.shape[1], dtype=torch.bool)
            for row, (places, layers) in enumerate(cuts):
                if layer in layers:
                    allowed[row, :, :, list(places)] = False

            def forbid(given: dict[str, Any], allowed: Tensor = allowed) -> None:
                given["attn_mask"], given["is_causal"] = allowed, False

            acts.before(attention, forbid)
        return lm.model.step(ids[:, -1:].repeat(len(cuts), 1), state).softmax(-1)


@stored(cases=[{"country": country} for country in CAPITALS])
def countries(*, country: str) -> dict[str, Any]:
    """“The capital of X is”: what comes next if *is* may not look at X in one layer, or from a layer on."""
    lm, capital = reference(), CAPITALS[country]
    ids = lm.encode(f"<|endoftext|>The capital of {country} is")
    wanted = lm.encode(" " + capital)[0, 0].item()
    alone = [([4], [layer]) for layer in range(LAYERS)]
    onwards = [([4], range(layer, LAYERS)) for layer in range(LAYERS)]
    probs = last_step(lm, ids, [([], []), *alone, *onwards])
    rows = []
    for row in probs:
        best = [[lm.decode([i]), round(row[i].item(), 3)] for i in row.topk(5).indices]
        rows.append([round(row[wanted].item(), 4), best])
    whole, alone, onwards = rows[0], rows[1 : LAYERS + 1], rows[LAYERS + 1 :]
    lowest = min(range(LAYERS), key=lambda layer: alone[layer][0])
    result = {"whole": whole[0], "lowest": lowest, "least": alone[lowest][0]}
    result["next"] = min(row[0] for layer, row in enumerate(alone) if layer != lowest)
    piece = lm.decode([wanted]).strip()
    example = {"capital": capital, "piece": piece, "whole": whole, "alone": alone, "from": onwards}
    return {"result": result, "examples": [example]}


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
    lm, rows = reference(), []
    for kind in ("well known", "another city is larger", "little known"):
        for country, capital in COUNTRIES[kind].items():
            ids = lm.encode(f"<|endoftext|>The capital of {country} is")
            wanted = lm.encode(" " + capital)[0, 0]
            places = range(4, ids.shape[1] - 1)
            probs = last_step(lm, ids, [([], []), *((places, [layer]) for layer in range(LAYERS))])
            if probs[0].argmax() == wanted:
                p, lost = probs[1:, wanted], (probs[1:].argmax(1) != wanted).nonzero().flatten()
                rows.append(
                    [country, round(probs[0, wanted].item(), 3), p.argmin().item(), lost.tolist()]
                )
    result = {
        "asked": sum(
            len(COUNTRIES[kind])
            for kind in ("well known", "another city is larger", "little known")
        ),
        "known": len(rows),
        "lowest_23": sum(lowest == 23 for _, _, lowest, _ in rows),
        "lost_23": sum(23 in lost for *_, lost in rows),
        "lost_elsewhere": sum(layer != 23 for *_, lost in rows for layer in lost),
    }
    return {"result": result, "examples": [{"rows": rows}]}


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
    lm, right, asked = reference(), 0, COUNTRIES["well known"] | COUNTRIES["another city is larger"]
    for country, capital in asked.items():
        ids, wanted = (
            lm.encode(f"{front}The capital of {country} is"),
            lm.encode(" " + capital)[0, 0],
        )
        with torch.inference_mode():
            right += int(lm.model(ids)[0, -1].argmax() == wanted)
    return {"right": right, "asked": len(asked)}


@stored()
def weight_on_country() -> dict[str, Any]:
    """The weight of each layer at *is* on the country, summed over its heads: mean over the fourteen countries."""
    lm = reference()
    ids = lm.encode(*(f"<|endoftext|>The capital of {country} is" for country in CAPITALS))
    with torch.inference_mode(), record_attention(lm.model) as maps:
        lm.model(ids)
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
    """How far the answer moves from one country's capital to the other's if one activation comes from the other run.

    0: no way, 1: all the way, in logits; mean, least and most over the pairs in both directions.
    """
    lm, (part, place) = reference(), PATCHED[what]
    pairs = [*PAIRS, *((b, a) for a, b in PAIRS)]
    own, other = (
        lm.encode(*(f"<|endoftext|>The capital of {pair[k]} is" for pair in pairs)) for k in (1, 0)
    )
    good, bad = (
        torch.cat([lm.encode(" " + CAPITALS[pair[k]])[:, 0] for pair in pairs]) for k in (0, 1)
    )

    def lead(ids: Tensor) -> Tensor:
        logits = lm.model(ids)[:, -1]
        return (logits.gather(1, good[:, None]) - logits.gather(1, bad[:, None]))[:, 0]

    curves: dict[str, list] = {"mean": [], "least": [], "most": []}
    with torch.inference_mode():
        with record_activations(lm.model) as run:
            top = lead(other)
        bottom = lead(own)
        for layer in range(LAYERS):
            with intervene(lm.model) as acts:
                acts.patch(part, run, layers=layer, positions=place)
                moved = (lead(own) - bottom) / (top - bottom)
            for name, value in (
                ("mean", moved.mean()),
                ("least", moved.min()),
                ("most", moved.max()),
            ):
                curves[name].append([layer, round(value.item(), 3)])
    result = {f"{name}_23": curves[name][23][1] for name in curves}
    result["pairs"] = len(pairs)
    return {"result": result, "curves": curves}


# Fewer bits ---------------------------------------------------------------------------------------

BITS = [
    {"bits": 0, "block": 0},  # as it comes
    *({"bits": bits, "block": block} for block in (32, 64, 192, 0) for bits in (2, 3, 4, 5, 6)),
]
SHIFT = 16
"""By so much the borders of our blocks differ from the file's, on whose own blocks four bits would cost nothing."""


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
    whole = {n: p for n, p in lm.model.named_parameters() if n.startswith("layers") and p.ndim == 2}
    kept = {name: p.clone() for name, p in whole.items()}
    try:
        if bits:
            for name, p in whole.items():
                p.copy_(quantized(kept[name], bits, block))
        with torch.inference_mode():
            loss = loss_on_story(lm)
        writes = lm.write("The capital of France is", max_new=6)
    finally:
        for name, p in whole.items():
            p.copy_(kept[name])
    numbers = sum(p.numel() for p in whole.values())
    scales = sum(p.numel() // (block or p.shape[-1]) for p in whole.values())
    result = {"loss": loss, "stored": bits + 32 * scales / numbers if bits else 5}
    return {"result": result, "examples": [{"writes": writes}]}


# What the page itself computes --------------------------------------------------------------------


def of_page(name: str, cases: Sequence[dict]) -> RunFunction:
    """The runs of a function that the chapter defines, `name`(lm, …); `known` shows what it gave."""

    def run(chapter: SimpleNamespace, **case: Any) -> dict[str, Any]:
        with torch.inference_mode():
            return _gave(getattr(chapter, name)(reference(), **case))

    run.__name__ = name
    return stored(cases=cases, chapter=[name])(run)


def of_lesson(experiment: Callable, cases: Sequence[dict]) -> RunFunction:
    """The runs of a function of `experiments`."""

    def run(**case: Any) -> dict[str, Any]:
        with torch.inference_mode():
            return _gave(experiment(reference(), **case))

    run.__name__ = experiment.__name__
    return stored(cases=cases)(run)


def _gave(answer: Any) -> dict[str, Any]:
    return {"result": {}, "examples": [{"gave": _rounded(answer)}]}


def _rounded(thing: Any) -> Any:
    """The same with all its numbers to four digits."""
    if isinstance(thing, float):
        return round(thing, 4)
    if isinstance(thing, list):
        return [_rounded(each) for each in thing]
    return {k: _rounded(v) for k, v in thing.items()} if isinstance(thing, dict) else thing


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
def ranked() -> list[tuple[int, int]]:
    """All heads, (layer, head), by their induction scores on two draws, the highest first."""
    with torch.inference_mode():
        scores = sum(
            torch.tensor(experiments.induction_scores(reference(), seed)) for seed in (0, 1)
        )
    return [divmod(i, HEADS) for i in scores.flatten().argsort(descending=True).tolist()]


@stored(cases=COPYING)
def copying(*, take: str, count: int, seed: int = 0) -> dict[str, float]:
    """What is copied rightly, and the loss on our story, without some heads.

    The best by their scores on two draws; as many others of the same layers; as many others anywhere; or the one
    head 9 · layer + head that `seed` says. "Others" are not among the 24 best.
    """
    lm, draws = reference(), torch.Generator().manual_seed(seed)
    best = ranked()
    heads = best[:count]
    if take == "anywhere":
        rest = sorted(best[24:])
        heads = [rest[i] for i in torch.randperm(len(rest), generator=draws)[:count].tolist()]
    if take == "alone":
        heads = [divmod(seed, HEADS)]
    if take == "same layers":
        heads = experiments.others(best, seed, count)
    with torch.inference_mode():
        return experiments.without_heads(lm, heads)


EIGHT = [[18, 6], [17, 4], [17, 3], [17, 5], [23, 2], [18, 7], [23, 7], [20, 6]]
OTHERS = [[18, 4], [17, 6], [17, 7], [17, 0], [23, 6], [18, 3], [23, 4], [20, 1]]
without_heads = of_lesson(
    experiments.without_heads,
    [{"heads": heads} for heads in ([], EIGHT, OTHERS, [[16, 0]])],
)
