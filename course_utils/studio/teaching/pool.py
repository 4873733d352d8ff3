r"""``python -m course_utils.studio pool``: the questions of the quizzes for a learning platform, as GIFT.

`_build/pool/02_kernel_regression.gift` goes into Moodle (Question bank, Import, GIFT) and most other platforms, and
`all.gift` holds all chapters, a category for each. Each answer brings its reason as feedback. Where several answers are
right, each counts its share, and wrong ones take as much away. Formulas are between ``\(`` and ``\)``.
"""

import html
import re
from collections.abc import Sequence
from pathlib import Path

from course_utils.files import LESSONS, atomic_write
from course_utils.kit.quiz import Question, all_questions
from course_utils.kit.rich_text import to_html
from course_utils.studio import StudioError
from course_utils.studio.manifest import Chapter

FORMULA = re.compile(r"(?<![\\$])\$([^$\n]+)\$")


def to_platform(text: str) -> str:
    """A text of a quiz as HTML, with formulas in the form that platforms read."""
    formulas = [rf"\({html.escape(f, quote=False)}\)" for f in FORMULA.findall(text)]
    shown = to_html(FORMULA.sub("\x00", text)).replace("&#x27;", "'").replace("&quot;", '"')
    return re.sub("\x00", lambda _: formulas.pop(0), shown)


def gift(chapter: Chapter, questions: Sequence[Question]) -> str:
    """The questions of a chapter, in a category of its own."""
    title = f"{chapter.number} {chapter.title}".replace("/", "//")
    return "\n\n".join([f"$CATEGORY: {_escaped(title)}", *map(_question, questions)]) + "\n"


def _question(question: Question) -> str:
    lines = [f"::{_escaped(question.key)}::[html]{_escaped(to_platform(question.text))} {{"]
    right = sum(answer.correct for answer in question.answers)
    for answer in question.answers:
        mark = "=" if answer.correct else "~"
        if right > 1:  # in percent: right ones 100 together, wrong ones −100
            share = 100 / right if answer.correct else -100 / (len(question.answers) - right)
            mark = f"~%{round(share, 5):.12g}%"
        lines.append(
            f"\t{mark}{_escaped(to_platform(answer.text))}#{_escaped(to_platform(answer.why))}"
        )
    return "\n".join([*lines, "}"])


def _escaped(text: str) -> str:
    r"""A text with GIFT's control characters escaped; a backslash of a formula is doubled."""
    return re.sub(r"([\\~=#{}:])", r"\\\1", text)


def write(chapters: Sequence[Chapter], out: Path) -> list[Path]:
    """Write a file for each chapter with a quiz and, if there are several, one for all; returns their paths.

    Raises:
        StudioError: none of the chapters has a quiz.
    """
    with_quiz = [
        chapter for chapter in chapters if (LESSONS / chapter.slug / "quiz.toml").is_file()
    ]
    if not with_quiz:
        raise StudioError("None of these chapters has a quiz.")
    texts = {chapter.notebook: gift(chapter, all_questions(chapter.slug)) for chapter in with_quiz}
    texts |= {"all": "\n".join(texts.values())} if len(texts) > 1 else {}
    for name, text in texts.items():
        with atomic_write(out / f"{name}.gift") as file:
            file.write_text(text, encoding="utf-8")
    return [out / f"{name}.gift" for name in texts]
