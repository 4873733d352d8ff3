"""Quizzes: five questions at the end of a chapter, each answer with its reason.

A quiz is written in `lessons/<slug>/quiz.toml` and answered by clicking (or with Tab, the arrow keys and
Space) in Lab and in the book. Where no script runs, questions and answers can be read.
"""

import html
import random
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from course_utils.lessons.page import asset

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
        return {"text/plain": repr(self), "text/html": _form(self)}


def quiz(slug: str, *, folder: Path = FOLDER) -> Quiz:
    """Read and check the quiz of a chapter: `cu.quiz("queries_keys_values")`.

    Raises:
        QuizError: naming the file, the question and what to write instead.
    """
    table = _read(Path(folder), slug)
    questions = (
        Question(entry["text"], tuple(Answer(**answer) for answer in entry["answer"]))
        for entry in table["question"]
    )
    return Quiz(slug, tuple(questions))


# Reading ----------------------------------------------------------------------------------------


def _object(**properties: dict) -> dict:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        "description": f"a table with {', '.join(properties)}",
    }


def _tables(items: dict, *rules: dict) -> dict:
    remedy = "one table in double brackets or more"
    return {
        "type": "array",
        "minItems": 1,
        "items": items,
        "allOf": list(rules),
        "description": remedy,
    }


def _some_answer(*, correct: bool) -> dict:
    """At least one answer that is `correct`, or of another kind, which is reported by itself."""
    other = {"properties": {"correct": {"const": not correct}}, "required": ["correct"]}
    wording = "correct" if correct else "wrong"
    remedy = f"no answer is {wording}. Write correct = {str(correct).lower()} for one."
    return {"contains": {"not": other}, "description": remedy}


TEXT = {"type": "string", "pattern": r"\S", "description": "text in quotes that is not empty"}
ANSWER = _object(text=TEXT, correct={"type": "boolean", "description": "true or false"}, why=TEXT)
QUESTION = _object(
    text=TEXT,
    answer=_tables(ANSWER, _some_answer(correct=True), _some_answer(correct=False)),
)
SCHEMA = _object(question=_tables(QUESTION))
"""What a quiz file holds; each `description` says what to write."""


def _read(folder: Path, slug: str) -> dict:
    path = folder / slug / "quiz.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(file.parent.name for file in folder.glob("*/quiz.toml")))
        raise QuizError(
            f"{slug}: there is no such quiz; there are: {known or 'none yet'}."
        ) from None
    except ValueError as error:
        raise QuizError(
            f"{slug}/quiz.toml: not valid TOML: {error}. Correct that line; text stands in double quotes."
        ) from None
    from jsonschema import Draft202012Validator  # only here: it would slow down every import

    def place(error) -> tuple:
        """From the top of the file down; a misspelled key before the one that is missing for it."""
        return list(error.absolute_path), error.validator != "additionalProperties"

    if first := min(Draft202012Validator(SCHEMA).iter_errors(table), key=place, default=None):
        raise QuizError(f"{slug}/quiz.toml: {_complaint(first)}")
    return table


def _complaint(error) -> str:
    """A jsonschema error as a sentence: the place, what is wrong there, and what to write."""
    path = list(error.absolute_path)  # such as question, 0, answer, 2, why
    places = [f"{name} {number + 1}" for name, number in zip(path[::2], path[1::2], strict=False)]
    where = ", ".join(places) or "the file"
    key = path[-1] if len(path) % 2 else "it"
    known = error.schema.get("properties", {})
    if error.validator == "contains":
        return f"{where}: {error.schema['description']}"
    if error.validator == "additionalProperties":
        (unknown, *_) = error.instance.keys() - known.keys()
        return f"{where}: unknown key {unknown!r}. Known here: {', '.join(known)}."
    if error.validator == "required":
        missing = next(name for name in known if name not in error.instance)
        return f"{where}: {missing!r} is missing. Add it: {known[missing]['description']}."
    return f"{where}: {key} is {error.instance!r}. Write {error.schema['description']}."


# Showing ----------------------------------------------------------------------------------------


def _form(shown: Quiz) -> str:
    """One form that brings its style and its script."""
    questions = "".join(
        _question(shown.slug, number, question) for number, question in enumerate(shown.questions)
    )
    return (
        f'<form class="course-quiz mathjax_ignore" autocomplete="off"><style>{asset("quiz.css")}</style>'
        f'{questions}<p class="plain">Run this cell to answer.</p><script>{asset("quiz.js")}</script></form>'
    )


def _question(slug: str, number: int, question: Question) -> str:
    """A question with its answers in an order that is always the same and tells nothing."""
    answers = list(question.answers)
    random.Random(f"{slug}: {question.text}").shuffle(answers)
    many = sum(answer.correct for answer in answers) > 1
    kind, hint = ("checkbox", " (More than one is right.)") if many else ("radio", "")
    options = "".join(
        f'<label data-why="{html.escape(_markup(answer.why))}"{" data-correct=true" if answer.correct else ""}>'
        f'<input type="{kind}" name="{number}"> <span>{_markup(answer.text)}</span></label>'
        for answer in answers
    )
    return (
        f"<fieldset><legend>{_markup(question.text)}{hint}</legend>{options}"
        '<p class="reason" aria-live="polite"></p></fieldset>'
    )


def _markup(text: str) -> str:
    """Text as HTML: only `code` is marked up."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text.strip()))
