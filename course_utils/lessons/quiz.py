"""Quizzes: five questions at the end of a chapter, each answer with its reason.

A quiz is written in ``lessons/<slug>/quiz.toml`` and answered by clicking (or with Tab, the arrow
keys and Space) in Lab and in the book; jupyterquiz brings the behaviour, this module the reading, the
checking and the looks. Where no script runs, the questions are shown as a plain list. Stands on
:mod:`course_utils.runtime` alone.
"""

import hashlib
import html
import json
import random
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

FOLDER = Path(__file__).parent


class QuizError(ValueError):
    """A mistake in a quiz file: which file, which question, and the remedy."""


@dataclass(frozen=True)
class Answer:
    """One answer, and why it is right or wrong."""

    text: str
    correct: bool
    why: str


@dataclass(frozen=True)
class Question:
    """A question with its answers, in the order they were written."""

    text: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, repr=False)
class Quiz:
    """What the last cell of a chapter shows."""

    slug: str
    questions: tuple[Question, ...]

    def __repr__(self) -> str:
        return f"Quiz {self.slug}: {len(self.questions)} questions"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": _page(self)}


def quiz(slug: str, *, folder: Path = FOLDER) -> Quiz:
    """Read and check the quiz of a chapter: ``cu.quiz("queries_keys_values")``.

    Raises:
        QuizError: naming the file, the question and what to write instead.
    """
    path = Path(folder) / slug / "quiz.toml"
    table = _parse(path)
    _check_keys(path, "the file", table, {"question": list})
    return Quiz(
        slug,
        tuple(
            _question(path, place, entry) for place, entry in enumerate(table["question"], start=1)
        ),
    )


# Reading --------------------------------------------------------------------------------------------------------------

WORDING = {
    str: "text in quotes that is not empty",
    bool: "true or false",
    list: "one table in double brackets or more",
}


def _parse(path: Path) -> dict:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = (
            ", ".join(sorted(file.parent.name for file in path.parents[1].glob("*/quiz.toml")))
            or "none yet"
        )
        raise QuizError(f"{path.parent.name}: there is no such quiz; there are: {known}.") from None
    except ValueError as error:
        raise QuizError(
            f"{path.parent.name}: not valid TOML: {error}. Correct that place; text stands in double quotes."
        ) from None


def _question(path: Path, place: int, table: dict) -> Question:
    where = f"question {place}"
    _check_keys(path, where, table, {"text": str, "answer": list})
    for number, answer in enumerate(table["answer"], start=1):
        _check_keys(
            path, f"{where}, answer {number}", answer, {"text": str, "correct": bool, "why": str}
        )
    answers = tuple(Answer(**answer) for answer in table["answer"])
    if not any(answer.correct for answer in answers):
        raise QuizError(
            f"{path.parent.name}: {where}: no answer is correct. Write correct = true for one."
        )
    if all(answer.correct for answer in answers):
        raise QuizError(
            f"{path.parent.name}: {where}: no answer is wrong. Write correct = false for one."
        )
    return Question(table["text"], answers)


def _check_keys(path: Path, where: str, table: dict, kinds: dict[str, type]) -> None:
    for key in table.keys() - kinds.keys():
        raise QuizError(
            f"{path.parent.name}: {where}: unknown key {key!r}. Known here: {', '.join(kinds)}."
        )
    for key, kind in kinds.items():
        if key not in table:
            raise QuizError(
                f"{path.parent.name}: {where}: {key!r} is missing. Add it: {WORDING[kind]}."
            )
        value = table[key]
        empty = kind is not bool and not (value.strip() if isinstance(value, str) else value)
        if (
            type(value) is not kind
            or empty
            or (kind is list and not all(isinstance(item, dict) for item in value))
        ):
            raise QuizError(
                f"{path.parent.name}: {where}: {key} is {value!r}. Write {WORDING[kind]}."
            )


# Showing --------------------------------------------------------------------------------------------------------------

STYLE = """
.course-quiz { --ink: var(--jp-content-font-color0, var(--pst-color-text-base, #1f2328));
  --line: var(--jp-border-color1, var(--pst-color-border, #c4c9d0)); --yes: #009e73; --no: #d55e00;
  color: var(--ink); counter-reset: question; line-height: 1.45; max-width: 46rem; }
.course-quiz .Quiz { counter-increment: question; margin: 0 0 1.4em; max-width: none !important; }
.course-quiz .Quiz > div:first-child { font-weight: 600; }
.course-quiz .Quiz > div:first-child::before { content: counter(question) ". "; }
.course-quiz .Quiz > div:first-child > div { display: inline; }
.course-quiz .Answer { display: grid; gap: .4em; margin: .6em 0; }
.course-quiz .MCButton { border: 1px solid var(--line); border-radius: 6px; cursor: pointer; display: flex; gap: .6em;
  margin: 0; padding: .45em .8em; color: var(--ink); }
.course-quiz .MCButton:hover { border-color: var(--ink); }
.course-quiz .MCButton:focus-within { outline: 2px solid #0072b2; outline-offset: 1px; }
.course-quiz .MCButton input { position: absolute; opacity: 0; pointer-events: none; width: 1px; height: 1px; }
.course-quiz .MCButton::before { content: "○"; width: 1em; flex: none; text-align: center; }
.course-quiz .correctButton { border-color: var(--yes); background: color-mix(in srgb, var(--yes) 16%, transparent); }
.course-quiz .correctButton::before { content: "✓"; }
.course-quiz .incorrectButton { border-color: var(--no); background: color-mix(in srgb, var(--no) 16%, transparent); }
.course-quiz .incorrectButton::before { content: "✗"; }
.course-quiz .Feedback { padding: 0 .8em; }
.course-quiz .Feedback.correct { border-left: 4px solid var(--yes); color: var(--ink); }
.course-quiz .Feedback.incorrect { border-left: 4px solid var(--no); color: var(--ink); }
"""

# jupyterquiz reaches for MathJax and the console wherever it finds them; our texts have no TeX, so it finds neither.
SCRIPT = """
(function (root) {{
  var MathJax, console = {{log() {{}}, error() {{}}}};
  {library}
  root.querySelector(".plain").remove();
  show_questions({questions}, root);
  for (const quiz of root.querySelectorAll(".Quiz")) {{
    const [question, answers, reason] = quiz.children;
    answers.setAttribute("role", "radiogroup");
    answers.setAttribute("aria-labelledby", question.id);
    reason.setAttribute("aria-live", "polite");
    for (const input of answers.querySelectorAll("input")) {{
      input.dataset.lmSuppressShortcuts = "true"; // in Lab, arrow keys would choose the next cell
    }}
  }}
}})(document.currentScript ? document.currentScript.parentElement : document.getElementById("{name}"));
"""


@cache
def _library() -> str:
    """jupyterquiz's own scripts, in the order in which it loads them."""
    scripts = sorted(files("jupyterquiz").joinpath("js").iterdir(), key=lambda file: file.name)
    return "\n".join(
        file.read_text(encoding="utf-8") for file in scripts if file.name.endswith(".js")
    )


def _page(shown: Quiz) -> str:
    """One element that holds its style and its script, and a plain list for where scripts do not run."""
    entries = [_entry(shown.slug, question) for question in shown.questions]
    questions = json.dumps(entries, ensure_ascii=False, sort_keys=True).replace("<", "\\u003c")
    name = "quiz-" + hashlib.sha256(questions.encode()).hexdigest()[:12]
    script = SCRIPT.format(library=_library(), questions=questions, name=name)
    plain = "".join(_plain(entry) for entry in entries)
    return (
        f'<div class="course-quiz" id="{name}" data-shuffleanswers="False">'
        f'<div class="plain"><ol>{plain}</ol><p>Run this cell to answer.</p></div>'
        f"<style>{STYLE}</style><script>{script}</script></div>"
    )


def _plain(entry: dict) -> str:
    answers = "".join(f"<li>{answer['answer']}</li>" for answer in entry["answers"])
    return f"<li>{entry['question']}<ul>{answers}</ul></li>"


def _entry(slug: str, question: Question) -> dict:
    """The question as jupyterquiz wants it, its answers in an order that is always the same and says nothing."""
    answers = list(question.answers)
    random.Random(f"{slug}: {question.text}").shuffle(answers)
    many = sum(answer.correct for answer in answers) > 1
    return {
        "question": _markup(question.text) + (" (More than one is right.)" if many else ""),
        "type": "many_choice" if many else "multiple_choice",
        "answers": [
            {
                "answer": _markup(answer.text),
                "correct": answer.correct,
                "feedback": _markup(answer.why),
            }
            for answer in answers
        ],
    }


def _markup(text: str) -> str:
    """Text as HTML: only `code` is marked up; what jupyterquiz would read as TeX or as a link stays as it is."""
    escaped = html.escape(text.strip()).replace("$", "&#36;").replace("[", "&#91;")
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
