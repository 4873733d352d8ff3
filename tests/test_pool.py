"""The pools of questions: a strict reader of GIFT finds every question in them."""

import re

import pytest

from course_utils.kit.quiz import Answer, Question, all_questions
from course_utils.studio import manifest
from course_utils.studio.teaching import pool

COURSE = manifest.load(files=False)
ALL = [question for page in COURSE.chapters for question in all_questions(page.slug)]
TRICKY = Question(
    "a", "Is $a_{1} \\le b = 2$: {yes} ~ *no* # `x = {1: 2}`?",
    (Answer("*a* < b: a=1", True, "It's so."), Answer("{}", True, "#~"), Answer("\\frac", False, "$c$")),
    id="tricky",
)  # fmt: skip
TEXT = r"((?:\\[\\~=#{}:]|[^\\~=#{}])+)"  # signs of the format are escaped, and nothing else is
QUESTION = re.compile(rf"::((?:\\.|[^:\\])+)::\[html\]{TEXT} \{{\n(.*)\n\}}", re.DOTALL)
ANSWER = re.compile(rf"\t([=~])(?:%(-?\d+(?:\.\d{{1,5}})?)%)?{TEXT}#{TEXT}(?:\n|\Z)")


def plain(text):
    return re.sub(r"\\(.)", r"\1", text)


def read_gift(text):
    """Each question: title, text, and its answers as (percent, text, feedback)."""
    questions = []
    for block in re.split(r"\n\s*\n", text.strip()):
        if re.fullmatch(r"\$CATEGORY: \S.*", block):
            continue
        title, asked, body = QUESTION.fullmatch(block).groups()
        assert not ANSWER.sub("", body), "all of it is answers"
        answers = [
            (float(percent or 100 * (mark == "=")), plain(answer), plain(why))
            for mark, percent, answer, why in ANSWER.findall(body)
        ]
        questions.append((plain(title), plain(asked), answers))
    return questions


def test_gift_of_all_questions_parses_and_holds_each_answer_with_its_reason(tmp_path):
    pool.write(COURSE.chapters, tmp_path)
    read = read_gift((tmp_path / "all.gift").read_text(encoding="utf-8"))
    assert len(read) == len(ALL) > 4 * len(COURSE.chapters)
    for question, (title, asked, answers) in zip(ALL, read, strict=True):
        assert (title, asked) == (question.key, pool.to_platform(question.text))
        expected = [
            (pool.to_platform(answer.text), pool.to_platform(answer.why))
            for answer in question.answers
        ]
        assert [(text, why) for _, text, why in answers] == expected
        right = [percent for percent, *_ in answers if percent > 0]
        assert sum(right) == pytest.approx(100, abs=1e-3)
        assert [p > 0 for p, *_ in answers] == [answer.correct for answer in question.answers]


def test_signs_of_the_format_and_formulas_are_kept():
    ((title, asked, answers),) = read_gift(pool.gift(COURSE.chapters[0], [TRICKY]))
    assert title == "a/tricky"
    assert asked == r"Is \(a_{1} \le b = 2\): {yes} ~ <em>no</em> # <code>x = {1: 2}</code>?"
    assert [percent for percent, *_ in answers] == [50, 50, -100]
    assert answers[0][1:] == ("<em>a</em> &lt; b: a=1", "It's so.") and answers[2][2] == r"\(c\)"
