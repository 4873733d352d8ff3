"""The pools of questions: a strict reader of GIFT finds every question in them."""

import re

import pytest

from course_utils.kit.quiz import Answer, Question, all_questions
from course_utils.studio import manifest
from course_utils.studio.__main__ import main
from course_utils.studio.teaching import pool

COURSE = manifest.load(files=False)
ALL = [question for one in COURSE.chapters for question in all_questions(one.slug)]
TRICKY = Question(
    "a", "Is $a_{1} \\le b = 2$: {yes} ~ *no* # `x = {1: 2}`?",
    (Answer("*a* < b: a=1", True, "It's so."), Answer("{}", True, "#~"), Answer("\\frac", False, "$c$")),
    id="tricky",
)  # fmt: skip


class Wrong(ValueError):
    """Text that is no GIFT."""


def pieces(text, signs):
    """The text in pieces, each after one of the signs that begins it; escaped signs are text."""
    found, at = [["", ""]], 0
    while at < len(text):
        if text[at] == "\\":
            if at + 1 == len(text) or text[at + 1] not in "\\~=#{}:":
                raise Wrong(f"a backslash before {text[at + 1 : at + 2]!r}")
            found[-1][1] += text[at + 1]
            at += 2
        elif text[at] in signs:
            found.append([text[at], ""])
            at += 1
        elif text[at] in "~=#{}":
            raise Wrong(f"a bare {text[at]!r} in {text!r}")
        else:
            found[-1][1] += text[at]
            at += 1
    return found


def read_gift(text):
    """Each question: title, text, and its answers as (percent, text, feedback).

    Raises:
        Wrong: something is not as the format asks.
    """
    found = []
    for block in re.split(r"\n\s*\n", text.strip()):
        if re.fullmatch(r"\$CATEGORY: \S.*", block):
            continue
        parsed = re.fullmatch(r"::((?:\\.|[^:\\])+)::\[html\](.+?)(?<!\\)\{\n(.*)\n\}", block, re.S)
        if not parsed:
            raise Wrong(block)
        answers = []
        ((_, before), *rest) = pieces(parsed[3], "=~#")
        if before.strip() or len(rest) % 2:
            raise Wrong(parsed[3])
        for (mark, said), (sign, why) in zip(rest[::2], rest[1::2], strict=True):
            if mark not in "=~" or sign != "#" or not said.strip() or not why.strip():
                raise Wrong(said)
            share = re.match(r"%(-?\d+(?:\.\d{1,5})?)%", said)
            percent = float(share[1]) if share else 100.0 * (mark == "=")
            answers.append((percent, said[share.end() if share else 0 :].strip(), why.strip()))
        (_, title), (_, asked) = pieces(parsed[1], "")[0], pieces(parsed[2], "")[0]
        found.append((title, asked.strip(), answers))
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("pool")
    return {file.name: file for file in pool.write(COURSE.chapters, out)}


def test_gift_of_all_questions_parses_and_holds_each_answer_with_its_reason(made):
    found = read_gift(made["all.gift"].read_text(encoding="utf-8"))
    assert len(found) == len(ALL) > 100 * len(COURSE.chapters) / 18
    for question, (title, asked, answers) in zip(ALL, found, strict=True):
        assert (title, asked) == (question.key, pool.page(question.text))
        expected = [(pool.page(one.text), pool.page(one.why)) for one in question.answers]
        assert [(text, why) for _, text, why in answers] == expected
        right = [percent for percent, *_ in answers if percent > 0]
        assert sum(right) == pytest.approx(100, abs=1e-3)
        assert [percent > 0 for percent, *_ in answers] == [one.correct for one in question.answers]


def test_signs_of_the_format_and_formulas_are_kept():
    text = pool.gift(COURSE.chapters[0], [TRICKY])
    ((title, asked, answers),) = read_gift(text)
    assert title == "a/tricky"
    assert asked == r"Is \(a_{1} \le b = 2\): {yes} ~ <em>no</em> # <code>x = {1: 2}</code>?"
    assert [percent for percent, *_ in answers] == [50, 50, -100]
    assert answers[0][1:] == ("<em>a</em> &lt; b: a=1", "It's so.") and answers[2][2] == r"\(c\)"


@pytest.mark.parametrize(
    "broken", ["::a::[html]b {\n\t=c\n}", "::a::b {\n\t=c#d\n}", "::a::[html]x=y {\n\t=c#d\n}"]
)
def test_the_reader_refuses_what_is_no_gift(broken):
    with pytest.raises(Wrong):
        read_gift(broken)


def test_a_pool_of_one_chapter_and_one_without_a_quiz(capsys, tmp_path):
    (one,) = COURSE.chapters[2:3]
    written = [file.name for file in pool.write([one], tmp_path)]
    assert written == [f"{one.notebook}.gift"]
    assert main(["pool", "A_"]) == 1
    assert capsys.readouterr().err == "None of these chapters has a quiz.\n"
