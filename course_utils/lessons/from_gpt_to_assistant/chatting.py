"""What stands in front of a question to SmolLM2: five system prompts, and a first token that nobody may look at.

And its calibration, on running text and by kinds of questions: Guo et al. (2017), "On calibration of modern neural
networks". Experiments on the prompts of *Real weights*, recorded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from course_utils.interventions import intervene
from course_utils.kit.runs import stored, stored_runs
from course_utils.lessons.gpt.own_texts import own_text
from course_utils.lessons.real_weights import experiments
from course_utils.lessons.real_weights.smollm import SmolLM, chat, reference

SYSTEM = {
    "none": "",
    "the model's own": "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
    "helpful": "You are a helpful assistant.",
    "short": "Answer in one short sentence.",
    "about something else": "The bakery on Harbor Street opens at seven.",
}
"""Name → system prompt; the second stands in the model's file, and is put in front if nobody gives one."""

CITIES = experiments.COUNTRIES["well known"]
ASKED = ("France", "Italy", "Spain", "Greece", "Japan", "Egypt", "Peru", "Cuba")
SHORT, LONGEST, ROW, BINS = 16, 70, 1024, 5
"""Tokens after which an answer is looked at, and at most; tokens of a text read at a time; bins of probabilities."""

WORDINGS = {
    "What is": "What is the capital of {}?",
    "What's": "What's the capital of {}?",
    "Tell me": "Tell me the capital of {}.",
    "Which city": "Which city is the capital of {}?",
    "without ?": "What is the capital of {}",
}
"""Name → a question for a capital."""


@torch.inference_mode()
def capitals_said(lm: SmolLM, system: str, asked: str = WORDINGS["What is"]) -> dict[str, str]:
    """Country → what the model answers, greedily, to a question for its capital behind a system prompt.

    An answer that doesn't name the city within `SHORT` tokens is read up to `LONGEST`, because it may describe the
    country first.
    """
    said = {}
    for country, city in CITIES.items():
        prompt = chat(asked.format(country), system)
        for most in (SHORT, LONGEST):
            said[country] = lm.write(prompt, max_new=most)
            if city in said[country]:
                break
    return said


@torch.inference_mode()
def without_token(
    lm: SmolLM, system: str, token: int, countries: Sequence[str] = ASKED
) -> dict[str, str]:
    """Country → the answer if nothing from the user's turn on may look at one token of the system prompt's turn."""
    said = {}
    for country in countries:
        prompt = chat(f"What is the capital of {country}?", system)
        turn = lm.encode(prompt[: prompt.index("<|im_start|>user")]).shape[1]
        with intervene(lm.model) as acts:
            acts.forbid(keys=[token], queries=range(turn, 200))
            said[country] = lm.write(prompt, max_new=SHORT)
    return said


@stored(cases=[{"system": name} for name in SYSTEM], version=2)
def system_prompts(*, system: str) -> dict[str, Any]:
    """How many of 24 capitals are named in the answer behind a system prompt."""
    said = capitals_said(reference(), SYSTEM[system])
    right = sum(CITIES[country] in answer for country, answer in said.items())
    return {"result": {"right": right, "asked": len(said)}, "examples": [said]}


@stored(cases=[{"wording": name} for name in WORDINGS if name != "What is"])
def wordings(*, wording: str) -> dict[str, Any]:
    """How many of them are named, without a system prompt, if the question has another wording."""
    said = capitals_said(reference(), "", WORDINGS[wording])
    right = sum(CITIES[country] in answer for country, answer in said.items())
    return {"result": {"right": right, "asked": len(said)}, "examples": [said]}


@stored(cases=[{"system": name} for name in SYSTEM])
def begun_answers(*, system: str) -> dict[str, Any]:
    """How many of the same capitals it names behind a system prompt if the answer is begun: The capital of X is."""
    lm, said = reference(), {}
    for country in CITIES:
        prompt = chat(f"What is the capital of {country}?", SYSTEM[system])
        said[country] = lm.write(f"{prompt}The capital of {country} is", max_new=5)
    right = sum(CITIES[country] in answer for country, answer in said.items())
    return {"result": {"right": right, "asked": len(said)}, "examples": [said]}


@stored(
    cases=[
        {"system": "the model's own", "token": 0},
        {"system": "the model's own", "token": 1},
        {"system": "the model's own", "token": 5},
        {"system": "helpful", "token": 0},
        {"system": "short", "token": 0},
        {"system": "about something else", "token": 0},
    ]
)
def cut_from(*, system: str, token: int) -> dict[str, Any]:
    """What it answers if nothing from the question on may look at one token, and how often it recites the prompt."""
    said = without_token(reference(), SYSTEM[system], token)
    right = sum(CITIES[country] in answer for country, answer in said.items())
    recited = sum(answer != "" and SYSTEM[system].startswith(answer) for answer in said.values())
    result = {"right": right, "recited": recited, "asked": len(said)}
    return {"result": result, "examples": [said]}


# Calibration --------------------------------------------------------------------------------------


def bins(
    sure: torch.Tensor, right: torch.Tensor, count: int = BINS
) -> list[tuple[int, float, float]]:
    """How many predictions are in each bin of their probability, its mean, and the share that is right.

    Args:
        sure: (n,) probability of each prediction.
        right: (n,) whether it is right.
        count: of the bins, which are equally wide; empty ones are left out.
    """
    low = (sure * count).long().clamp(max=count - 1)
    inside = [(low == i).nonzero().flatten() for i in range(count)]
    return [
        (len(some), sure[some].mean().item(), right[some].double().mean().item())
        for some in inside
        if len(some)
    ]


def gap(rows: Sequence[Sequence[float]]) -> float:
    """The mean distance between what was said and what was right, each bin by its size."""
    return sum(n * abs(said - right) for n, said, right in rows) / sum(n for n, *_ in rows)


@stored(cases=[{"text": text} for text in ("story", "topics")])
def calibrated(*, text: str) -> dict[str, Any]:
    """How often the likeliest next token of a text is right, by its probability; rows of `ROW` tokens, read alone."""
    lm = reference()
    sure, right = [], []
    with torch.inference_mode():
        for ids in torch.tensor(lm.tokenizer.encode(own_text(text)).ids).split(ROW):
            probs = lm.model(torch.cat([torch.tensor([0]), ids[:-1]])[None])[0].softmax(-1)
            most, best = probs.max(-1)
            sure.append(most)
            right.append(best == ids)
    rows = bins(torch.cat(sure), torch.cat(right))
    said, was = torch.cat(sure).mean().item(), torch.cat(right).double().mean().item()
    result = {"gap": gap(rows), "tokens": sum(n for n, *_ in rows), "said": said, "right": was}
    return {"result": result, "examples": [{"bins": rows}]}


def by_kind() -> Mapping[str, tuple[int, float, float]]:
    """Kind of country → how many, mean probability, share right: of the stored answers of *Real weights*."""
    return {kind: bins(*answers, count=1)[0] for kind, answers in _capitals().items()}


def by_probability() -> list[tuple[int, float, float]]:
    """The same of the same answers, of all kinds, in equal bins of their probability."""
    sure, right = zip(*_capitals().values(), strict=True)
    return bins(torch.cat(sure), torch.cat(right))


def _capitals() -> Mapping[str, tuple[torch.Tensor, torch.Tensor]]:
    """Kind of country → the probability of each stored answer, and whether it is right."""
    found = {}
    for run in stored_runs("real_weights", "capitals"):
        kind, gave = run.config["kind"], run.examples[0]["gave"]
        right = [experiments.is_right(kind, country, says) for country, (says, _) in gave.items()]
        found[kind] = torch.tensor([p for _, p in gave.values()]), torch.tensor(right)
    return found
