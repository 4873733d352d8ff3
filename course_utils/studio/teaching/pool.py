r"""``python -m course_utils.studio pool``: the questions of the quizzes for a learning platform, as GIFT.

`_build/pool/02_kernel_regression.gift` goes into Moodle (Question bank, Import, GIFT) and most other platforms, and
`all.gift` holds all chapters, a category for each. Each answer brings its reason as feedback. Where several answers are
right, each counts its share, and wrong ones take as much away. Formulas are between ``\(`` and ``\)``.
"""

import argparse
import html
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from course_utils.files import LESSONS, ROOT, atomic_write
from course_utils.kit.quiz import Question, all_questions
from course_utils.kit.rich_text import marked
from course_utils.studio import StudioError
from course_utils.studio.manifest import Chapter, load

FORMULA = re.compile(r"(?<![\\$])\$([^$\n]+)\$")


def page(text: str) -> str:
    """A text of a quiz as HTML, its formulas as platforms know them."""
    formulas: list[str] = []

    def keep(found: re.Match) -> str:
        formulas.append(rf"\({html.escape(found[1], quote=False)}\)")
        return f"\x00{len(formulas) - 1}\x00"

    shown = marked(FORMULA.sub(keep, text)).replace("&#x27;", "'").replace("&quot;", '"')
    return re.sub("\x00(\\d+)\x00", lambda found: formulas[int(found[1])], shown)


def gift(chapter: Chapter, questions: Sequence[Question]) -> str:
    """The questions of a chapter, in a category of its own."""
    title = f"{chapter.number} {chapter.title}".replace("/", "//")
    return "\n\n".join([f"$CATEGORY: {_escaped(title)}", *map(_in_gift, questions)]) + "\n"


def _in_gift(question: Question) -> str:
    head = f"::{_escaped(question.key)}::[html]{_escaped(page(question.text))}"
    right = sum(answer.correct for answer in question.answers)
    lines = [f"{head} {{"]
    for answer in question.answers:
        mark = "=" if answer.correct else "~"
        if right > 1:  # in percent: right ones 100 together, wrong ones −100
            share = 100 / right if answer.correct else -100 / (len(question.answers) - right)
            mark = f"~%{round(share, 5):.12g}%"
        lines.append(f"\t{mark}{_escaped(page(answer.text))}#{_escaped(page(answer.why))}")
    return "\n".join([*lines, "}"])


def _escaped(text: str) -> str:
    r"""GIFT's own signs as text; a backslash of a formula is doubled."""
    return re.sub(r"([\\~=#{}:])", r"\\\1", text)


def write(chapters: Sequence[Chapter], out: Path) -> list[Path]:
    """Write a file for each chapter with a quiz and, if these are several, one for all; their paths.

    Raises:
        StudioError: none of the chapters has a quiz.
    """
    asked = [chapter for chapter in chapters if (LESSONS / chapter.slug / "quiz.toml").is_file()]
    if not asked:
        raise StudioError("None of these chapters has a quiz.")
    texts = {chapter.notebook: gift(chapter, all_questions(chapter.slug)) for chapter in asked}
    texts |= {"all": "\n".join(texts.values())} if len(texts) > 1 else {}
    for name, text in texts.items():
        with atomic_write(out / f"{name}.gift") as file:
            file.write_text(text, encoding="utf-8")
    return [out / f"{name}.gift" for name in texts]


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files, and say where they are."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio pool", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="how its name begins: 02")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    out = options.book.resolve().parent / "_build" / "pool"
    try:
        made = write(load(options.book, files=False).chosen(options.chapters), out)
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(made)} files of questions are in {out}")
    return 0
