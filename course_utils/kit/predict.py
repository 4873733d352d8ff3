"""Predict, commit, compare: a question before a result.

The reader chooses or writes a number, then sees both, the prediction and the answer, and is asked why. All of it
is one piece of HTML with a few lines of script (`predict.js`), the same in Lab and in the book, with no
kernel; where scripts do not run, the answer is folded below the question. Nothing waits for it and
nothing is stored, so that running all cells is as without it. Texts are plain, with `code` marked; write
Unicode rather than TeX.
"""

import hashlib
import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from course_utils.kit.page import asset

CLOSE = 0.05
"""A number is near enough within this part of the range, unless `within` says otherwise."""


@dataclass(frozen=True, repr=False)
class Prediction:
    """What a cell shows: the question, and what the script needs.

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
        why: the reason of the answer; it is folded below every prediction, under the question why.
        within: how near a number has to be, both to the answer and to the numbers in `wrong`; one
            twentieth of the range by default.

    Raises:
        TypeError: `options` are neither texts nor two numbers.
        ValueError: the answer is not among the options, or a wrong one has no reason.
    """
    for name, text in (("question", question), ("why", why)):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{name}={text!r}; a sentence is needed")
    choices = tuple(option for option in options if isinstance(option, str))
    ends = [option for option in options if _is_number(option)]
    if len(choices) == len(options) > 0:
        task = _choice(choices, answer, wrong)
    elif len(ends) == len(options) == 2:
        task = _number(ends[0], ends[1], answer, wrong, within)
    else:
        raise TypeError(f"options={options!r}; several texts or the two ends of a range are needed")
    return Prediction(
        question, choices, {"question": _markup(question), "why": _markup(why)} | task
    )


def _choice(
    choices: tuple[str, ...], answer: str | float, wrong: Mapping[str | float, str]
) -> dict[str, Any]:
    if len(set(choices)) < max(len(choices), 2):
        raise ValueError(f"options={choices!r}; two or more different ones are needed")
    if not isinstance(answer, str) or answer not in choices:
        raise ValueError(f"answer={answer!r} is not among the options {choices!r}")
    _check_reasons(wrong, set(choices) - {answer})
    return {
        "choices": [_markup(choice) for choice in choices],
        "answer": choices.index(answer),
        "reasons": ["" if choice == answer else _markup(wrong[choice]) for choice in choices],
    }


def _number(
    low: float,
    high: float,
    answer: str | float,
    wrong: Mapping[str | float, str],
    within: float | None,
) -> dict[str, Any]:
    if not low < high:
        raise ValueError(f"options=({low}, {high}); the smaller end comes first")
    if not _is_number(answer) or not low <= answer <= high:
        raise ValueError(f"answer={answer!r} is not a number from {low} to {high}")
    within = CLOSE * (high - low) if within is None else within
    if not within > 0:
        raise ValueError(f"within={within}; a positive number is needed")
    known = [value for value in wrong if _is_number(value)]
    _check_reasons(wrong, {"less", "more", *known})
    for value in known:
        if not low <= value <= high or abs(value - answer) <= 2 * within:
            raise ValueError(
                f"wrong[{value!r}] lies outside the range or too near to the answer {answer}"
            )
    return {
        "low": low,
        "high": high,
        "answer": float(f"{answer:.6g}"),
        "within": within,
        "less": _markup(wrong["less"]),
        "more": _markup(wrong["more"]),
        "known": [[value, _markup(wrong[value])] for value in sorted(known)],
    }


def _is_number(value: Any) -> TypeGuard[float]:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and math.isfinite(value)


def _check_reasons(wrong: Mapping[str | float, str], expected: set[Any]) -> None:
    """Each wrong answer has a reason, and no reason is for an answer that cannot be given.

    Raises:
        ValueError: one is missing, empty or too many.
    """
    for key in sorted(expected | set(wrong), key=str):
        if key not in expected:
            raise ValueError(
                f"wrong[{key!r}] is no wrong answer; they are {sorted(expected, key=str)}"
            )
        if not isinstance(wrong.get(key), str) or not wrong[key].strip():
            raise ValueError(f"wrong[{key!r}] is missing; say why this answer is wrong")


# The page ---------------------------------------------------------------------------------------


def _markup(text: str) -> str:
    """A text as HTML, with `code` marked."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(" ".join(text.split())))


def _page(task: dict[str, Any]) -> str:
    """One element that works without scripts, and the script that replaces its content by a form."""
    data = json.dumps(task, ensure_ascii=False, sort_keys=True)
    name = f"predict-{hashlib.sha256(data.encode()).hexdigest()[:12]}"
    script = asset("predict.js")
    inert = data.replace("<", r"\u003c")
    return f"""<div class="cu-predict" id="{name}">{_plain(task)}<style>
{asset("predict.css")}</style><script>
(() => {{
{script}
predict(document.currentScript?.parentElement ?? document.getElementById("{name}"), {inert});
}})();
</script></div>"""


def _plain(task: dict[str, Any]) -> str:
    """The question, and the answer folded below it: what is read where scripts do not run."""
    if "choices" in task:
        offered = "".join(f"<li>{choice}</li>" for choice in task["choices"])
        asked, answer = f"<ul>{offered}</ul>", task["choices"][task["answer"]]
        wrong = zip(task["choices"], task["reasons"], strict=True)
        reasons = [f"{choice}: {reason}" for choice, reason in wrong if reason]
    else:
        asked = f"<p>A number from {task['low']} to {task['high']}.</p>"
        answer = f"{task['answer']:g}"
        reasons = [f"{value:g}: {reason}" for value, reason in task["known"]]
        reasons += [f"less: {task['less']}", f"more: {task['more']}"]
    listed = "".join(f"<li>{reason}</li>" for reason in reasons)
    return (
        f'<div class="cu-plain"><p><strong>Predict: {task["question"]}</strong></p>{asked}'
        f"<details><summary>Show the answer</summary><p>The answer: <strong>{answer}</strong>. "
        f"{task['why']}</p><p>If you thought of another:</p><ul>{listed}</ul></details></div>"
    )
