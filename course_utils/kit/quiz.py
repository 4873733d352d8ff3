"""Quizzes: a question after a section, several at a chapter's end, and two old ones at the start of the next.

The questions of a chapter stand in `lessons/<slug>/quiz.toml`, each answer with its reason, and are answered
by clicking (or with Tab, the arrow keys and Space) in Lab and in the book. The browser remembers which were
missed, and `recall` asks these first. Where no script runs, questions and answers can be read.

The questions are for learning, and no marks depend on them: the file holds every answer.
"""

import hashlib
import html
import random
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from course_utils.files import LESSONS, ROOT
from course_utils.kit.assets import asset
from course_utils.kit.contents import Onward, following, titles, ways
from course_utils.kit.contents import slug as slug_of
from course_utils.kit.rich_text import json_attribute, quiz_file, to_html

RECALLED = 2
"""Number of questions in a recall."""
ASKED = ("end", "within", "later")
"""Where a question is asked: at its chapter's end, after a section, or only in the recalls of later chapters."""


class QuizError(ValueError):
    """A mistake in a quiz file or in a call. The message names the file, the question and the remedy."""


@dataclass(frozen=True)
class Answer:
    """An answer, and the reason why it is right or wrong."""

    text: str
    correct: bool
    why: str


@dataclass(frozen=True)
class Question:
    """A question with its answers, in the order they were written.

    Attributes:
        slug: the slug of its chapter.
        text: the question itself.
        answers: two or more.
        id: its name in a notebook's call; empty if it has none.
        section: the title of the section that teaches its answer.
        asked: one of `ASKED`.
    """

    slug: str
    text: str
    answers: tuple[Answer, ...]
    id: str = ""
    section: str = ""
    asked: str = "end"

    @property
    def key(self) -> str:
        """The key under which a browser remembers it: "kernel_regression/window"."""
        return f"{self.slug}/{self.id or hashlib.sha256(self.text.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, repr=False)
class Quiz:
    """A form of questions, as a cell shows it.

    Attributes:
        title: its plain text.
        kind: "quiz" at a chapter's end, "section" within it, "recall" at its start.
        questions: those that are shown.
        spare: others, shown instead of some that are not on the reader's way, and in a recall also of those that she
            has not missed.
        onward: the pages that may come next, linked when all questions are answered.
        book: the manifest, which knows the ways.
    """

    title: str
    kind: str
    questions: tuple[Question, ...]
    spare: tuple[Question, ...] = ()
    onward: tuple[Onward, ...] = ()
    book: Path = ROOT / "book.toml"

    def __repr__(self) -> str:
        return self.title

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": _form(self)}


def quiz(slug: str, *ids: str, folder: Path = LESSONS, book: Path = ROOT / "book.toml") -> Quiz:
    """Show the quiz at the end of a chapter, or within it the questions of these names.

        cu.quiz("kernel_regression")            # those of its end
        cu.quiz("kernel_regression", "window")  # this one

    Args:
        slug: the chapter.
        ids: of its questions; without any, those of the chapter's end, and then a link to the next chapter.
        folder: where the lessons lie.
        book: the manifest, which knows the next chapter.

    Raises:
        QuizError: naming the file, the question and what to write instead.
    """
    questions = all_questions(slug, folder)
    if not ids:
        end, spare = (tuple(q for q in questions if q.asked == at) for at in ("end", "later"))
        title = f"Quiz {slug}: {len(end)} questions"
        return Quiz(title, "quiz", end, spare, following(slug, book), book)
    named = {question.id: question for question in questions if question.id}
    for unknown in (name for name in ids if name not in named):
        close = get_close_matches(unknown, named, n=1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        known = ", ".join(named) or "none yet"
        raise QuizError(
            f"{slug}/quiz.toml: no question has id {unknown!r}.{meant} It has: {known}."
        )
    shown = tuple(named[name] for name in ids)
    return Quiz(f"Question {slug}: {', '.join(ids)}", "section", shown)


def recall(*slugs: str, folder: Path = LESSONS, book: Path = ROOT / "book.toml") -> Quiz:
    """Ask again from earlier chapters, at the start of a later one.

        cu.recall("queries_keys_values", "start_here")

    Drawn once for these chapters, from as many of them as can be, the same in every run. A browser in which
    the reader has missed a question of these chapters shows that one first, until it is answered right here. If she
    has chosen a way, it asks only about sections that she has read on it.

    Args:
        slugs: the chapters, each with its quiz; in another order, other questions are drawn.
        folder: where the lessons lie.
        book: the manifest, which knows the ways.

    Raises:
        QuizError: no chapter is named, or one of them twice.
    """
    if not 0 < len(set(slugs)) == len(slugs):
        raise QuizError(f"recall{slugs}: name one chapter or more, each once.")

    def random_key(question: Question) -> float:
        """A random number of the question alone, so that adding a question does not shuffle the others."""
        return random.Random(f"{' '.join(slugs)} {question.key}").random()

    by_slug = [sorted(all_questions(slug, folder), key=random_key) for slug in slugs]
    first = sorted((questions[0] for questions in by_slug), key=random_key)
    rest = sorted((question for questions in by_slug for question in questions[1:]), key=random_key)
    drawn = (*first, *rest)
    shown, spare = drawn[:RECALLED], drawn[RECALLED:]
    title = f"Recall {', '.join(slugs)}: {len(shown)} questions"
    return Quiz(title, "recall", shown, spare, book=book)


# Reading ----------------------------------------------------------------------------------------

FORM = (
    "a question has text, section, [[question.answer]] tables and perhaps id and asked; "
    "an answer has text, correct and why"
)


def all_questions(slug: str, folder: Path = LESSONS) -> tuple[Question, ...]:
    """All questions of a chapter, those after sections among them.

    Raises:
        QuizError: there is no such file, or it is not as it should be.
    """
    try:
        entries = tomllib.loads(quiz_file(slug, folder)).get("question", [])
    except FileNotFoundError:
        known = ", ".join(sorted(file.parent.name for file in Path(folder).glob("*/quiz.toml")))
        raise QuizError(f"no quiz {slug!r}; available: {known or 'none yet'}.") from None
    except ValueError as error:
        raise QuizError(f"{slug}/quiz.toml: not valid TOML: {error}") from None
    if not entries:
        raise QuizError(f"{slug}/quiz.toml: it has no [[question]].")
    questions: dict[str, Question] = {}
    for number, entry in enumerate(entries, start=1):
        place = f"{slug}/quiz.toml, question {number}"
        try:
            answers = tuple(Answer(**answer) for answer in entry.pop("answer"))
            question = Question(slug, answers=answers, **entry)
        except (TypeError, AttributeError, KeyError):
            raise QuizError(f"{place}: {FORM}.") from None
        if remedy := _remedy(question):
            raise QuizError(f"{place}: {remedy}.")
        if question.key in questions:
            raise QuizError(f"{place}: id {question.id!r} is taken. Write another one.")
        questions[question.key] = question
    return tuple(questions.values())


def _remedy(question: Question) -> str:
    """The remedy for a mistake in a question; empty if it has none."""
    answers = question.answers
    texts = [question.text, *(text for answer in answers for text in (answer.text, answer.why))]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        return "write question, answers and reasons as texts in quotes that are not empty"
    if {answer.correct for answer in answers} != {True, False}:
        return "write correct = true for one answer or more, and correct = false for another"
    if question.id and not re.fullmatch("[a-z][a-z0-9_]*", question.id):
        return f'id is {question.id!r}. Write a short name, such as "window" or "three_heads"'
    if not (isinstance(question.section, str) and question.section):
        return 'write section = "…", the title of the section that teaches its answer'
    known = " or ".join(f'"{place}"' for place in ASKED)
    return "" if question.asked in ASKED else f"write asked = {known}"


# Showing ----------------------------------------------------------------------------------------


def _form(shown: Quiz) -> str:
    """The quiz as one HTML form with its style and its script."""
    sources = _sources() if shown.kind == "recall" else None
    questions, on = (*shown.questions, *shown.spare), ways(shown.book)
    read_on = [_on(on, question) for question in questions]
    fields = [
        _field(number, question, sources, taken_by)
        for number, (question, taken_by) in enumerate(zip(questions, read_on, strict=True))
    ]
    asked, spare = fields[: len(shown.questions)], "".join(fields[len(shown.questions) :])
    more = f"<details><summary>More questions</summary>{spare}</details>" if spare else ""
    read = Counter(title for taken_by in read_on for title in taken_by)
    through = [title for title in on if read[title] >= min(RECALLED, len(shown.questions))]
    return (
        f'<form class="course-quiz mathjax_ignore" data-kind="{shown.kind}" data-ways="{_joined(through)}" '
        f'autocomplete="off"><style>{asset("quiz.css")}</style>{"".join(asked)}{more}'
        f'{_onward(shown.onward)}<p class="plain">Run this cell to answer.</p>'
        f"<script>{{{asset('quiz.js')}}}</script></form>"
    )


def _on(on: Mapping[str, Mapping[str, tuple[str, ...]]], question: Question) -> list[str]:
    """The titles of the ways on which the section of a question is read."""
    return [
        title
        for title, stops in on.items()
        for notebook, taken in stops.items()
        if slug_of(notebook) == question.slug and (not taken or question.section in taken)
    ]


def _joined(titles: Iterable[str]) -> str:
    return html.escape("|".join(titles))


def _onward(pages: Iterable[Onward]) -> str:
    """Links to the pages that may come next, one of which the script shows at the end; empty without one."""
    links = "".join(map(_link, pages))
    return f'<p class="onward" hidden>{links}</p>' if links else ""


def _link(page: Onward) -> str:
    text = f"Next: {page.notebook.partition('_')[0]} · {html.escape(page.title)}"
    before = "Your path ends here. " if page.ends else ""
    always = " data-always" if page.always else " hidden"
    return (
        f'<span data-ways="{_joined(page.ways)}"{always}>{before}'
        f'<a href="{page.notebook}.ipynb">{text}</a></span>'
    )


def _field(
    number: int, question: Question, sources: dict[str, str] | None, on: Iterable[str]
) -> str:
    """A question as HTML, its answers shuffled in the same way each time."""
    answers = list(question.answers)
    random.Random(f"{question.slug}: {question.text}").shuffle(answers)
    many = sum(answer.correct for answer in answers) > 1
    kind, hint = ("checkbox", " (More than one is right.)") if many else ("radio", "")
    options = "".join(
        f'<label><input type="{kind}" name="{number}"> <span>{to_html(answer.text)}</span></label>'
        for answer in answers
    )
    source = ""
    if sources is not None:
        chapter = sources.get(question.slug, question.slug.replace("_", " ").capitalize())
        source = f'<p class="source"><span>From</span> {chapter}.</p>'
    key = json_attribute([[answer.correct, to_html(answer.why)] for answer in answers])
    return (
        f'<fieldset data-key="{question.key}" data-ways="{_joined(on)}" data-answers="{key}">'
        f"<legend>{to_html(question.text)}{hint}</legend>{source}{options}</fieldset>"
    )


def _sources() -> dict[str, str]:
    """The slug of each chapter of the course → its title, linked to its notebook."""
    return {
        slug_of(notebook): f'<a href="{notebook}.ipynb">{html.escape(title)}</a>'
        for notebook, title in titles().items()
    }
