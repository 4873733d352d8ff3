"""The words that stand on every page, by language: what the course itself says around an author's text.

`language = "de"` in `book.toml` chooses one; without it they are English. A chapter's own text, its questions
and its hints are its author's, in whatever language. Headings and labels of exercises are read in every
language, so that a chapter may be translated before the course is.

    word("Exercise")            "Exercise", or "Aufgabe" in a German course
    pattern("Exercise")         a part of a regular expression that finds both
    in_language(page, SCRIPT)   a page or a script, these phrases in the course's language

Another language is one table more in `WORDS`, with every key of the one below.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from course_utils.files import ROOT

GERMAN = {
    # A chapter's form, which the rules read
    "Exercise": "Aufgabe",
    "build": "bauen",
    "predict": "vorhersagen",
    "bug": "Fehler",
    "open": "offen",
    "minute": "Minute",
    "minutes": "Minuten",
    "Section": "Abschnitt",
    "Take-aways": "Zum Mitnehmen",
    "Quiz": "Quiz",
    "References": "Literatur",
    "After this chapter": "Nach diesem Kapitel",
    "It needs": "Es braucht",
    "On the way": "Auf dem Weg",
    "and": "und",
    # Reports of checks
    "not done yet. Fill in the cell above and run it, then this one.": "noch offen. Fülle die Zelle "
    "darüber aus und führe sie aus, dann diese.",
    "An answer of yours from {day} is kept.": "Eine Antwort von dir vom {day} ist aufgehoben.",
    "To see it, in a new cell:": "Zu sehen in einer neuen Zelle mit:",
    "no answer is kept; one is when its check has run.": "keine Antwort ist aufgehoben; sie wird es, wenn ihre "
    "Prüfung gelaufen ist.",
    "answers kept in {folder}: {count}": "aufgehobene Antworten in {folder}: {count}",
    "passed": "bestanden",
    "the stub, as it was handed out.": "der leere Anfang, wie er ausgegeben wurde.",
    "Your answers are kept:": "Deine Antworten sind aufgehoben:",
    "It will test:": "Geprüft wird:",
    "{held} of {total}": "{held} von {total}",
    "the course's solution passes, {counted}.": "die Lösung des Kurses besteht, {counted}.",
    "passed, {counted}.": "bestanden, {counted}.",
    "not yet, {counted}.": "noch nicht, {counted}.",
    "{held} of {total} so far": "bisher {held} von {total}",
    "{held} of {total} right": "{held} von {total} richtig",
    "not tried yet": "noch nicht geprüft",
    "Hint": "Hinweis",
    "More, in a new cell:": "Mehr, in einer neuen Zelle:",
    "of {steps}": "von {steps}",
    "for": "zu",
    "passed: nothing to hint at": "bestanden: nichts mehr zu sagen",
    "this is the course's own; write yours in the cell above, and hand that in.": "das ist die Fassung "
    "des Kurses; schreibe deine in die Zelle darüber, und gib diese ab.",
    "Does each path through the function end with `return`?": "Endet jeder Weg durch die Funktion "
    "mit `return`?",
    "Which condition ends the loop, and what in the loop changes it?": "Welche Bedingung beendet die "
    "Schleife, und was in der Schleife ändert sie?",
    "What does the docstring say that the function gives back?": "Was gibt die Funktion laut "
    "Docstring zurück?",
    "Is the name spelled as where it is defined?": "Ist der Name so geschrieben wie dort, wo er "
    "definiert ist?",
    "Has what stands before the dot this attribute? Print its type.": "Hat das, was vor dem Punkt "
    "steht, dieses Attribut? Gib seinen Typ aus.",
    "the function returned None: a `return` is missing or not reached": "die Funktion gab None "
    "zurück: ein `return` fehlt oder wird nicht erreicht",
    "yours": "deine Fassung",
    "the course's": "die Fassung des Kurses",
    "was changed since it passed: run its check again": "wurde geändert, seit sie bestand: prüfe sie neu",
    "has not passed its check yet": "hat ihre Prüfung noch nicht bestanden",
    "{held} of {total} exercises passed": "{held} von {total} Aufgaben bestanden",
    "What you pass is remembered until this session ends, and no longer:": "Was du bestehst, bleibt nur bis zum Ende "
    "dieser Sitzung bekannt:",
    # Questions and predictions: in the page, then in its script
    "(More than one is right.)": "(Mehr als eine ist richtig.)",
    "Run this cell to answer.": "Führe diese Zelle aus, um zu antworten.",
    "More questions from these chapters": "Weitere Fragen aus diesen Kapiteln",
    "<span>From</span>": "<span>Aus</span>",
    '"You missed this question of"': '"Nicht gewusst, aus"',
    "`Question ${i + 1} of ${questions.length}`": "`Frage ${i + 1} von ${questions.length}`",
    '"Next question"': '"Nächste Frage"',
    "${right.length} found.)": "${right.length} gefunden.)",
    "Drag to your guess": "Ziehe zu deinem Tipp",
    "A number from": "Eine Zahl von",
    "This is my guess": "Das ist mein Tipp",
    "<p>Right. ": "<p>Richtig. ",
    "<p>Not quite. ": "<p>Nicht ganz. ",
    "The answer, and why": "Die Antwort, und warum",
    "See it move": "Sieh es dir an",
    # Cards, head and foot of the book's pages; its contents
    "Recall": "Wiederholung",
    "A solution passes when": "Eine Lösung besteht, wenn",
    "Hints": "Hinweise",
    "Solution": "Lösung",
    "goals": "Ziele",
    "needs": "braucht",
    "set-up, {count} lines": "Vorbereitung, {count} Zeilen",
    "{count} questions to warm up": "{count} Fragen zum Aufwärmen",
    "further page": "Vertiefung",
    "appendix": "Anhang",
    "own chapter": "eigenes Kapitel",
    "about {minutes} minutes": "etwa {minutes} Minuten",
    "at the top of this page": "oben auf dieser Seite",
    "{count} works": "{count} Werke",
    "Next": "Weiter",
    "All chapters": "Alle Kapitel",
    "On this page": "Auf dieser Seite",
    "{count} statements of this section are computed": "{count} Aussagen dieses Abschnitts sind berechnet",
    "(not in this course)": "(nicht in diesem Kurs)",
    "Taught in": "Gelehrt in",
    "Not taught in this course.": "In diesem Kurs nicht gelehrt.",
    "Appendices": "Anhänge",
    "Own chapters": "Eigene Kapitel",
    "For teachers": "Für Lehrende",
    "At the end": "Am Ende",
    "Home": "Start",
    # Tables of chapters and ways
    "Chapter": "Kapitel",
    "Minutes": "Minuten",
    "Needs": "Braucht",
    "optional": "möglich",
    "Way": "Weg",
    "Chapters (sections)": "Kapitel (Abschnitte)",
    "About": "Etwa",
    "hour": "Stunde",
    "hours": "Stunden",
    "all": "alle",
    "Everything": "Alles",
    "Everything, only read": "Alles, nur gelesen",
}
WORDS: dict[str, dict[str, str]] = {"en": {english: english for english in GERMAN}, "de": GERMAN}
"""The one table: language → English → what stands there."""

QUIZ = (
    "(More than one is right.)",
    "Run this cell to answer.",
    "More questions from these chapters",
    "<span>From</span>",
    '"You missed this question of"',
    "`Question ${i + 1} of ${questions.length}`",
    '"Next question"',
    "${right.length} found.)",
)
PREDICTION = (
    "Drag to your guess",
    "A number from",
    "This is my guess",
    "<p>Right. ",
    "<p>Not quite. ",
    "The answer, and why",
    "See it move",
)

_spoken: ContextVar[str] = ContextVar("spoken", default="")


def current() -> str:
    """The language of the course: that of the block, of COURSE_LANGUAGE, or of `book.toml`; else English."""
    return _spoken.get() or os.environ.get("COURSE_LANGUAGE") or of(ROOT / "book.toml")


@contextmanager
def spoken(language: str) -> Iterator[None]:
    """The block speaks this language."""
    before = _spoken.set(language)
    try:
        yield
    finally:
        _spoken.reset(before)


@cache
def of(book: Path) -> str:
    """The language that a manifest names; English where it names none of `WORDS`, or cannot be read."""
    try:
        table = tomllib.loads(book.read_text(encoding="utf-8"))
        language = table["course"].get("language", "en")
    except (OSError, ValueError, LookupError, AttributeError):
        return "en"
    return language if language in WORDS else "en"


def word(english: str) -> str:
    """What stands for this in the course's language.

    Raises:
        KeyError: the table has no such entry.
    """
    return WORDS.get(current(), WORDS["en"])[english]


def pattern(*english: str) -> str:
    """A part of a regular expression that finds any of these, in any language; it makes no group."""
    found = {words[one] for words in WORDS.values() for one in english}
    return f"(?:{'|'.join(map(re.escape, sorted(found, key=len, reverse=True)))})"


def meant(said: str, english: Iterable[str]) -> str:
    """Which of these was said, in whatever language; empty if none."""
    found = (one for one in english if said in {one, *(words[one] for words in WORDS.values())})
    return next(found, "")


def in_language(text: str, phrases: Iterable[str]) -> str:
    """A page or a script, with these phrases in the course's language."""
    for english in phrases:
        text = text.replace(english, word(english))
    return text
