"""In which layer SmolLM2 looks up a country's capital: what it answers where *is* may not look at the country.

Stored runs of *Real weights*, which need the model's file. Its page and its live explorer show them.
"""

from typing import Any

import torch
from torch import Tensor

from course_utils.interventions import intervene, record_activations
from course_utils.kit.runs import stored
from course_utils.lessons.real_weights.experiments import (
    CAPITALS,
    COUNTRIES,
    capital_prompts,
    capital_tokens,
    last_step,
)
from course_utils.lessons.real_weights.smollm import SIZES, SmolLM, reference
from course_utils.recording import record_attention

LAYERS = SIZES["num_layers"]


@stored(cases=[{"country": country} for country in CAPITALS])
def countries(*, country: str) -> dict[str, Any]:
    """Probability of the capital after “The capital of X is” if *is* may not look at X in one layer, or from one on."""
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
"""Name → the layers in which *is* may not look at the country."""


@stored(cases=[{"layers": name} for name in WINDOWS])
def several_layers(*, layers: str) -> dict[str, Any]:
    """Right answers after “The capital of X is”, and mean P(capital), if *is* may not look at X in several layers.

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
    return {"result": {"right": right, "countries": len(p), "p": sum(p) / len(p)}}


REAL = ("well known", "another city is larger", "little known")
"""The kinds of `COUNTRIES` that exist."""


@stored()
def all_countries() -> dict[str, Any]:
    """Over all real countries, also of several tokens: which layer's look counts most, and where an answer is lost."""
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


def without_country(lm: SmolLM, country: str, capital: str) -> list[Any] | None:
    """The row of a country: its name, P(capital), the layer whose look counts most, the layers that lose the answer.

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
"""Sentence → country → the word whose probability is measured."""


@stored(cases=[{"sentence": sentence} for sentence in SENTENCES])
def other_sentences(*, sentence: str) -> dict[str, Any]:
    """In which layer the last token of another sentence most needs its look at the country, over fourteen countries.

    "lowest_23" says for how many it is layer 23, and "kept" which share of the word's probability is left without that
    look, on average.
    """
    lm, lowest, kept = reference(), 0, []
    for country, word in SENTENCES[sentence].items():
        ids = lm.encode("<|endoftext|>" + sentence.format(country))
        place = lm.encode("<|endoftext|>" + sentence.partition("{")[0].rstrip()).shape[1]
        probs = last_step(lm, ids, [([], []), *(([place], [layer]) for layer in range(LAYERS))])
        p = probs[:, lm.encode(" " + word)[0, 0]]
        lowest += int(p[1:].argmin() == 23)
        kept.append((p[24] / p[0]).item())
    result = {"lowest_23": lowest, "kept": sum(kept) / len(kept), "countries": len(kept)}
    return {"result": result}


@stored(cases=[{"front": front} for front in ("<|endoftext|>", "")])
def thirty_capitals(*, front: str) -> dict[str, dict]:
    """Right answers after “The capital of X is” with something in front, by the first token of the capital."""
    lm, right = reference(), 0
    asked = COUNTRIES["well known"] | COUNTRIES["another city is larger"]
    for country, capital in asked.items():
        ids = lm.encode(f"{front}The capital of {country} is")
        wanted = lm.encode(" " + capital)[0, 0]
        with torch.inference_mode():
            right += int(lm.model(ids)[0, -1].argmax() == wanted)
    return {"result": {"right": right, "asked": len(asked)}}


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

PATCHED = {
    "country": ("residual", 4),
    "last": ("residual", 5),
    "attention": ("attention", 5),
}
"""Case of `patching` → part of the model, and position."""


@stored(cases=[{"what": what} for what in PATCHED])
def patching(*, what: str) -> dict[str, Any]:
    """How far the answer moves from one country's capital to the other's if one activation comes from the other run.

    In logits, from 0, not at all, to 1, all the way: mean, least and most over the pairs in both directions.
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
