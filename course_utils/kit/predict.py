"""Predictions: a question before a result, which the reader answers before it is shown.

The reader chooses or writes a number, then hears whether it is right, and why. All of it is one piece of HTML with a
few lines of script (`predict.js`), the same in Lab and in the book, with no kernel. What it will say is not shown until
then. The model or explorer nearby can be moved to what was asked for. Nothing waits for it and nothing is stored,
so that running all cells is as without it. Texts are as `rich_text.to_html` reads them; write Unicode rather than TeX.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.kit.assets import asset
from course_utils.kit.mime import REFUSED
from course_utils.kit.rich_text import json_attribute, to_html

HANDLE = "Drag to your guess"
TOLERANCE = 0.05
"""Distance from the right number, as a share of the range, that counts as right; `within` overrides it."""


@dataclass(frozen=True, repr=False)
class Prediction:
    """A question as a cell shows it, with the data for its script.

    Attributes:
        question: as it was written.
        choices: what can be chosen; empty where a number is asked for.
        task: question, choices or range, answer and reasons, as plain data.
    """

    question: str
    choices: tuple[str, ...]
    task: dict[str, Any]

    def __repr__(self) -> str:
        low, high = self.task.get("low"), self.task.get("high")
        asked = " · ".join(self.choices) or f"a number from {low} to {high}"
        return f"Predict: {self.question} ({asked})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": _page(self.task)}


def predict(
    question: str,
    options: Sequence[str] | tuple[float, float],
    *,
    answer: str | float,
    wrong: Mapping[str | float, str],
    why: str,
    within: float | None = None,
    shows: Mapping[str, str | float | bool] | None = None,
) -> Prediction:
    """Ask for a prediction; show it at the end of a cell, before the result.

        cu.predict("Which window follows the noise?", ["narrow", "wide"], answer="narrow",
                   wrong={"wide": "A wide one averages the noise away."}, why="Few points share a window.")
        cu.predict("By how much?", (0, 10), answer=4, why="It is the square of 2.",
                   wrong={"less": "Is it squared?", "more": "Is it halved?", 2: "This is the root."})

    Args:
        question: one sentence.
        options: the choices, in the order in which they are shown, or the two ends of a range of numbers.
        answer: one of the choices, or a number of the range. A number from the page is rounded first, so
            that it is the same on every machine.
        wrong: each other choice → why it is wrong. For a number, "less" and "more" are needed, and a
            number that a known mistake gives may have a reason of its own.
        why: the reason of the answer.
        within: how near a number has to be, both to the answer and to the numbers in `wrong`; one
            twentieth of the range by default.
        shows: controls → values of a live model, by their names, or of an explorer, by their labels: the next one
            on the page that has them (or the last before) is moved there when the reader has committed.

    Raises:
        TypeError: `options` are neither texts nor two numbers.
        ValueError: the answer is not among the options, or a wrong one has no reason.
    """
    for name, text in (("question", question), ("why", why)):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"got {name}={text!r}, expected a sentence")
    if options and all(isinstance(option, str) for option in options):
        task = _choice(options, answer, wrong)
    elif len(options) == 2 and all(map(_is_number, options)):
        task = _number(*options, answer, wrong, within)
    else:
        raise TypeError(
            f"got options={options!r}, expected several texts or the two ends of a range"
        )
    task |= {"question": to_html(question), "why": to_html(why)}
    if shows:
        task["shows"] = dict(shows)
    return Prediction(question, tuple(options) if "choices" in task else (), task)


def _choice(choices: Sequence[str], answer: Any, wrong: Mapping) -> dict[str, Any]:
    if len(set(choices)) < max(len(choices), 2):
        raise ValueError(f"got options={choices!r}, expected two or more that differ")
    if answer not in choices:
        raise ValueError(f"answer={answer!r} is not among the options {choices!r}")
    _check_reasons(wrong, set(choices) - {answer})
    return {
        "choices": [to_html(choice) for choice in choices],
        "answer": choices.index(answer),
        "reasons": ["" if choice == answer else to_html(wrong[choice]) for choice in choices],
    }


def _number(
    low: float, high: float, answer: Any, wrong: Mapping, within: float | None
) -> dict[str, Any]:
    within = TOLERANCE * (high - low) if within is None else within
    if not low < high or not within > 0:
        raise ValueError(
            f"options=({low}, {high}), within={within}; the smaller end comes first, and within is positive"
        )
    if not _is_number(answer) or not low <= answer <= high:
        raise ValueError(f"answer={answer!r} is not a number from {low} to {high}")
    mistakes = sorted(value for value in wrong if _is_number(value))
    _check_reasons(wrong, {"less", "more", *mistakes})
    for value in mistakes:
        if not low <= value <= high or abs(value - answer) <= 2 * within:
            raise ValueError(
                f"wrong[{value!r}] lies outside the range or too near to the answer {answer}"
            )
    return {
        "low": low,
        "high": high,
        "answer": float(f"{answer:.6g}"),
        "within": within,
        "less": to_html(wrong["less"]),
        "more": to_html(wrong["more"]),
        "known": [[value, to_html(wrong[value])] for value in mistakes],
    }


def _is_number(value: Any) -> bool:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and math.isfinite(value)


def _check_reasons(wrong: Mapping, expected: set) -> None:
    """Raise unless each wrong answer has a reason, and each reason belongs to a possible answer."""
    for key in sorted(expected | set(wrong), key=str):
        if key not in expected:
            known = sorted(expected, key=str)
            raise ValueError(f"got wrong[{key!r}], expected reasons for {known} only")
        if not isinstance(wrong.get(key), str) or not wrong[key].strip():
            raise ValueError(f"wrong[{key!r}] is missing; say why this answer is wrong")


# The page ---------------------------------------------------------------------------------------


def _page(task: dict[str, Any]) -> str:
    """The form of the question; its script shows the rest when the reader has committed."""
    if choices := task.get("choices"):
        answers = "".join(
            f'<button value="{place}" disabled>{choice}</button>'
            for place, choice in enumerate(choices)
        )
    else:
        low, high = task["low"], task["high"]
        answers = (
            f'<input type="range" min="{low}" max="{high}" step="any" aria-label="{HANDLE}" disabled>'
            f"<label>A number from {low} to {high} "
            f'<input type="number" min="{low}" max="{high}" step="any" required disabled></label>'
            "<button disabled>This is my guess</button>"
        )
    hidden = {key: value for key, value in task.items() if key not in ("question", "choices")}
    return (
        f'<form class="cu-predict mathjax_ignore" data-task="{json_attribute(hidden)}" autocomplete="off">'
        f"<style>{asset('predict.css')}</style><fieldset><legend>{task['question']}</legend>"
        f'<div class="answers">{answers}</div></fieldset><div class="said" tabindex="-1"></div>{REFUSED}'
        f"<script>{{{asset('predict.js')}}}</script></form>"
    )
