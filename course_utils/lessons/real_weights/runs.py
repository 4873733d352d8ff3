"""What was recorded with SmolLM2's weights for *Real weights*: forbidden tokens, copying heads, the page's own cells.

`make runs CHAPTER=18` makes these runs and those of the modules beside this one, where the file is. Answers are greedy,
without a system prompt. `make nightly` makes the runs again and compares their numbers.
"""

from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch

from course_utils.interventions import intervene
from course_utils.kit.runs import RunFunction, stored
from course_utils.lessons.real_weights import experiments, heads, windows
from course_utils.lessons.real_weights.experiments import (
    CAPITALS,
    COUNTRIES,
    answers,
)
from course_utils.lessons.real_weights.smollm import (
    SIZES,
    SmolLM,
    chat,
    reference,
)

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
    """A question's answers without each of its tokens, and, if it has at most seven words, without each set of them."""
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
    """Set of places → `answers` if no token of the question, or after it, may look at these places."""
    gave: dict[tuple[int, ...], list] = {}
    for first in range(0, len(forbidden), 64):
        batch = forbidden[first : first + 64]
        cuts = [(places, FIRST) for places in batch]
        gave |= dict(zip(batch, answers(lm, question, cuts), strict=True))
    return gave


@stored(cases=[{"block": block} for block in ("first", "second", "both")])
def look_before(*, block: str) -> dict[str, dict]:
    """The share that is copied rightly if head 16.0 may not look at the token before, in one block or in both."""
    lm = reference()
    places = {"first": range(1, 41), "second": range(41, 80), "both": range(1, 80)}[block]
    with torch.inference_mode(), intervene(lm.model) as acts:
        for place in places:
            acts.forbid(layers=16, heads=0, queries=place, keys=place - 1)
        return {"result": {"copied": experiments.copied(lm)}}


# What the page itself computes --------------------------------------------------------------------


def of_page(name: str, cases: Sequence[dict]) -> RunFunction:
    """The run function for a function `name`(lm, …) that the chapter defines; `known` shows what it gave."""

    def run(chapter: SimpleNamespace, **case: Any) -> dict[str, Any]:
        with torch.inference_mode():
            return _as_example(getattr(chapter, name)(reference(), **case))

    run.__name__ = name
    return stored(cases=cases, chapter=[name])(run)


def of_lesson(experiment: Callable, cases: Sequence[dict]) -> RunFunction:
    """The run function for a function of `experiments`."""

    def run(**case: Any) -> dict[str, Any]:
        with torch.inference_mode():
            return _as_example(experiment(reference(), **case))

    run.__name__ = experiment.__name__
    return stored(cases=cases)(run)


def _as_example(answer: Any) -> dict[str, Any]:
    """What a run function returns that has nothing but an answer to show."""
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
def ranked_heads() -> experiments.Heads:
    """All heads, ranked by their mean induction scores on two draws, the highest first."""
    with torch.inference_mode():
        scores = sum(
            torch.tensor(experiments.induction_scores(reference(), seed)) for seed in (0, 1)
        )
    return [list(divmod(i, HEADS)) for i in scores.flatten().argsort(descending=True).tolist()]


@stored(cases=COPYING)
def copying(*, take: str, count: int, seed: int = 0) -> dict[str, dict]:
    """What is copied rightly, and the loss on our story, without some heads.

    Args:
        take: which heads: "best", by their scores on two draws; "same layers", others of the layers of the best;
            "anywhere", others of any layer; or "alone", one head. Others are not among the 24 best.
        count: how many heads.
        seed: draws the others; with "alone" it is the head, 9 · layer + head.
    """
    with torch.inference_mode():
        heads = heads_to_remove(take, count, seed)
        return {"result": experiments.without_heads(reference(), heads)}


def heads_to_remove(take: str, count: int, seed: int) -> experiments.Heads:
    """The heads of a case of `copying`."""
    best = ranked_heads()
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

# What heads learn ---------------------------------------------------------------------------------

FRONTS = [
    "", "banana ", "apple ", "house ", "water ", "green ", "music ", "table ", "dog ", "answer ", "seven ",
    "The ", "A ", "And ", "So ", "Hello ", "Yes ", "\n", ". ", ": ", "banana\n", "Fact: ",
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|endoftext|><|endoftext|>", " banana",
]  # fmt: skip
HIDDEN = [
    *(("<|endoftext|>", [place]) for place in range(4)),
    (" banana", [0]), (" banana", [1]),
]  # fmt: skip
"""Text in front → positions that nobody may look at: the front itself, or *The*, *capital*, *of*."""

sinks = of_lesson(heads.sinks, [{"text": text} for text in ("story", "news", "sentences")])
hidden_words = of_lesson(heads.hidden_words, [{"text": text} for text in ("story", "sentences")])
capitals_behind = of_lesson(
    heads.capitals_behind,
    [
        *({"front": front} for front in FRONTS),
        *({"front": front, "hidden": hidden} for front, hidden in HIDDEN),
    ],
)
capitals_behind_any = of_lesson(
    heads.capitals_behind_any,
    [{"tokens": tokens} for tokens in ("all", "frequent")],
)
induction_heads = of_lesson(heads.induction_heads, [{}])
ablations = of_lesson(
    heads.ablations, [{"seed": 9}, {"seed": 10}, {"block": 20}, {"tokens": "frequent"}]
)
noted_before = of_lesson(heads.noted_before, [{}])
each_alone = of_lesson(heads.each_alone, [{}])
look_back = of_lesson(heads.look_back, [{}])
copied_over_gap = of_lesson(
    heads.copied_over_gap, [{"tokens": tokens} for tokens in ("all", "frequent")]
)
ten_again = of_lesson(
    heads.ten_again,
    [
        {"tokens": tokens, "block": block, "seed": seed}
        for tokens, block in (
            ("all", 40),
            ("all", 10),
            ("all", 160),
            ("frequent", 40),
            ("rare", 40),
        )
        for seed in (20, 21)
    ],
)

# Attention at length ------------------------------------------------------------------------------

screen = of_lesson(
    windows.screen,
    [
        *(
            {"text": text, "group": group}
            for text in windows.TEXTS
            for group in windows.VIEWS
            if group != "recounted" or text in ("pages", "ferry")
        ),
        *({"text": text, "group": "128", "front": False} for text in ("pages", "ferry")),
        {"text": "pages", "group": "128", "tokens": 512},
    ],
)
through = of_lesson(
    windows.through,
    [
        {"last": last, "always": always, "alone": alone}
        for last, always, alone in (
            (127, [0], []),
            (127, [90], []),
            (127, [90], [90]),
            (128, [], []),
            (31, [0], []),
            (15, [0], []),
        )
    ],
)
weight_on_first = of_lesson(windows.weight_on_first, [{"text": text} for text in windows.TEXTS])
weight_on_kept = of_lesson(windows.weight_on_kept, [{"text": text} for text in ("pages", "ferry")])
logits_in_pieces = of_lesson(windows.logits_in_pieces, [{}])
evicted = of_lesson(windows.evicted, [{}])


@stored(
    times=["read", "written", *(f"written, {n} texts" for n in (2, 4, 8)), "written without"],
    digits=5,
)
def writing() -> dict[str, dict]:
    """Seconds a token of reading and writing, with the cache and without."""
    with torch.inference_mode():
        return {"result": windows.writing(reference())}
