"""Quizzes: what the files may hold, what a cell shows, and what a click does in a real browser."""

import ast
import html
import json
import random
import re
from collections import Counter

import pytest
from browsing import (
    CONTRAST,
    WAIT,
    html_page,
    jupyterlab,
    open_notebook,
    run_all,
    write_notebook,
)
from matplotlib import ft2font
from playwright.sync_api import Page, expect
from tiny_book import book

from course_utils.figures.style import FONTS
from course_utils.files import LESSONS
from course_utils.kit.quiz import QuizError, all_questions, quiz, recall
from course_utils.kit.registry import checks
from course_utils.studio import manifest

COURSE = manifest.load(files=False).whole
CHAPTERS = COURSE.chapters

GOOD = """
[[question]]
id = "sums"
section = "Masked softmax"
text = "What do the *rows* of `softmax(S)` sum to?"
[[question.answer]]
text = "To 1, if S < ∞"
correct = true
why = "Each query shares out one unit of attention & no more."
[[question.answer]]
text = "To 0"
correct = false
why = "Weights are not negative; [they](x) cost $1 each, $2 for both."

[[question]]
section = "Masked softmax"
text = "What leaves the softmax unchanged?"
[[question.answer]]
text = "Adding a constant"
correct = true
why = "It cancels."
[[question.answer]]
text = "Subtracting the maximum"
correct = true
why = "This adds a constant."
[[question.answer]]
text = "Doubling"
correct = false
why = "This sharpens it."
"""


@pytest.fixture
def written(tmp_path):
    """Writes a quiz file and reads it."""

    def write(text: str):
        (tmp_path / "masks").mkdir(exist_ok=True)
        (tmp_path / "masks" / "quiz.toml").write_text(text, encoding="utf-8")
        return quiz("masks", folder=tmp_path)

    return write


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("correct = true", "correct = false", "question 1: write correct = true for one answer or more"),
        ("correct = false", "correct = true", "question 1: write correct = true for one answer or more"),
        ("correct = true", 'correct = "yes"', "question 1: write correct = true for one answer or more"),
        ('why = "It cancels."', "", "question 2: a question has text, section, [[question.answer]]"),
        ('why = "It cancels."', 'why = " "', "question 2: write question, answers and reasons as texts"),
        ('why = "It', 'because = "It', "question 2: a question has text"),
        ("[[question]]", "[[question", "not valid TOML"),
        ('id = "sums"', 'id = "The sums"', "question 1: id is 'The sums'. Write a short name"),
        ('section = "Masked softmax"', "", 'question 1: write section = "…", the title of the section'),
        ('section = "Masked softmax"', "section = true", 'question 1: write section = "…", the title'),
        ('id = "sums"', 'asked = "before"', 'question 1: write asked = "end" or "within" or "later"'),
        ('text = "What leaves', 'id = "sums"\ntext = "What', "question 2: id 'sums' is taken. Write"),
        (GOOD, "question = []", "it has no [[question]]"),
        (GOOD, "question = [1]", "question 1: a question has text"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_quiz_is_named_with_its_place_and_remedy(written, old, new, message):
    with pytest.raises(QuizError, match=r"^masks/quiz\.toml[:,] ") as error:
        written(GOOD.replace(old, new, 2 if "correct" in old[:7] else 1))
    assert message in str(error.value)


def test_a_quiz_that_does_not_exist_lists_those_that_do(written, tmp_path):
    written(GOOD)
    with pytest.raises(QuizError, match=r"^no quiz 'heads'; available: masks\.$"):
        quiz("heads", folder=tmp_path)


def test_a_section_question_is_shown_by_its_name_and_not_again_at_the_end(written, tmp_path):
    end = written(GOOD.replace('id = "sums"', 'id = "sums"\nasked = "within"'))
    assert [question.text for question in end.questions] == ["What leaves the softmax unchanged?"]
    assert repr(end) == "Quiz masks: 1 questions"
    named = quiz("masks", "sums", folder=tmp_path)
    assert [question.id for question in named.questions] == ["sums"]
    assert repr(named) == "Question masks: sums"
    page = named._repr_mimebundle_()["text/html"]
    assert "What do the <em>rows</em>" in page and "What leaves" not in page


def test_a_question_that_does_not_exist_is_named_with_the_nearest_and_all(written, tmp_path):
    written(GOOD)
    with pytest.raises(QuizError) as error:
        quiz("masks", "sum", folder=tmp_path)
    assert str(error.value) == (
        "masks/quiz.toml: no question has id 'sum'. Did you mean 'sums'? It has: sums."
    )


@pytest.mark.parametrize(
    "slugs", [("start_here",), ("gpt", "positions"), ("gpt", "masks", "positions")]
)
def test_a_recall_draws_from_as_many_chapters_as_can_be_always_the_same(slugs):
    shown = recall(*slugs)
    state = random.getstate()
    assert shown == recall(*slugs)
    assert random.getstate() == state
    drawn = {question.slug for question in shown.questions}
    assert drawn <= set(slugs) and len(drawn) == min(2, len(slugs))
    assert len(shown.questions) == 2
    everything = {question.key for slug in slugs for question in all_questions(slug)}
    assert {question.key for question in (*shown.questions, *shown.spare)} == everything
    assert repr(shown) == f"Recall {', '.join(slugs)}: 2 questions"


@pytest.mark.parametrize("slug", ["masks", "heads", "gpt"])
def test_a_question_that_is_added_changes_no_draw_but_its_own(slug, tmp_path):
    file = tmp_path / slug / "quiz.toml"
    file.parent.mkdir()
    drawn = []
    for text in (GOOD, GOOD + GOOD.replace("?", " now?").replace('"sums"', '"now"')):
        file.write_text(text)
        everything = recall(slug, folder=tmp_path)
        drawn.append(
            [q for q in (*everything.questions, *everything.spare) if "now?" not in q.text]
        )
    assert drawn[0] == drawn[1]


def test_recalls_ask_about_earlier_chapters_and_nothing_twice():
    asked = []
    for place, chapter in enumerate(CHAPTERS):
        source = chapter.source.read_text("utf-8")
        for call in re.findall(r"^cu\.(recall\(.+\))$", source, re.MULTILINE):
            shown = eval(call)
            earlier = {one.slug for one in CHAPTERS[:place]}
            assert {one.slug for one in (*shown.questions, *shown.spare)} <= earlier
            asked += [question.key for question in shown.questions]
    twice = [key for key, count in Counter(asked).items() if count > 1]
    assert not twice, "name the chapters of one of these recalls in another order"


@pytest.mark.parametrize("slugs", [(), ("gpt", "gpt")])
def test_a_recall_needs_different_chapters(slugs):
    with pytest.raises(QuizError, match="name one chapter or more, each once"):
        recall(*slugs)


def test_each_question_of_a_recall_says_its_chapter_and_leads_there():
    page = _html(recall("scoring_functions", "kernel_regression"))
    by_slug = {chapter.slug: chapter for chapter in CHAPTERS}
    pieces = page.split('<fieldset data-key="')[1:]
    assert len(pieces) == sum(
        len(all_questions(slug)) for slug in ("scoring_functions", "kernel_regression")
    )
    for piece in pieces:
        chapter = by_slug[piece.partition("/")[0]]
        assert f'From</span> <a href="{chapter.notebook}.ipynb">{chapter.title}</a>.' in piece


def test_a_recall_from_a_chapter_outside_the_course_has_no_link(written, tmp_path):
    written(GOOD)
    (tmp_path / "masks").rename(tmp_path / "elsewhere")
    page = _html(recall("elsewhere", folder=tmp_path))
    assert "<span>From</span> Elsewhere." in page and "<a " not in page


def _html(shown) -> str:
    return shown._repr_mimebundle_()["text/html"]


def test_a_quiz_shows_the_same_each_time_and_neither_answers_nor_reasons_before_it_is_asked(
    written,
):
    random.seed(3)
    state = random.getstate()
    bundle = written(GOOD)._repr_mimebundle_()
    assert bundle == written(GOOD)._repr_mimebundle_() and random.getstate() == state
    assert bundle["text/plain"] == "Quiz masks: 2 questions"
    page = bundle["text/html"]
    shown = re.sub("<script>.*?</script>|<[^>]*>", " ", page, flags=re.S)
    assert "Subtracting the maximum" in shown and "adds a constant" not in shown
    keys = re.findall(r'data-answers="([^"]+)"', page)
    assert [True, "It cancels."] in [
        pair for key in keys for pair in json.loads(html.unescape(key))
    ]
    assert not re.search(r"<(script|link|img|iframe)\b[^>]*\b(src|href)=", page), "no other host"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.slug)
def test_answers_differ_and_each_question_of_a_section_is_shown_by_a_cell_of_its_chapter(chapter):
    code = ast.parse("\n".join(cell.source for cell in chapter.content.code))
    shown = set()
    for call in ast.walk(code):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "cu.quiz":
            slug, *names = (argument.value for argument in call.args)
            shown |= {f"{slug}/{name}" for name in names}
    for question in all_questions(chapter.slug):
        texts = [answer.text for answer in question.answers]
        assert len(set(texts)) == len(texts)
        assert not re.search(r"\$|\\[a-zA-Z]+", question.text), "write Unicode, not TeX"
        assert question.key in shown or question.asked != "within"


ASKING = [*CHAPTERS, *(chapter for chapter in COURSE.appendices if chapter.slug == "pytorch")]


@pytest.mark.parametrize("chapter", ASKING, ids=lambda chapter: chapter.slug)
def test_each_question_names_the_section_that_teaches_its_answer(chapter):
    unknown = {question.id: question.section for question in all_questions(chapter.slug)
               if question.section not in chapter.content.sections}  # fmt: skip
    assert not unknown, f"its sections are {chapter.content.sections}"


# In a browser ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def page(browser, written):
    """A page with the quiz, twice, as when two notebooks are open: each has to answer for itself."""
    content = _html(written(GOOD))
    with html_page(browser, f"<main>{content}</main><aside>{content}</aside>") as page:
        yield page


@pytest.mark.smoke
def test_a_click_on_an_answer_marks_it_and_opens_its_reason_below_it(page: Page):
    for part in ("main", "aside"):
        first = page.locator(f"{part} fieldset").first
        reason = first.locator(".reason")
        first.get_by_text("To 0").click()
        expect(reason).to_have_text(
            "Weights are not negative; [they](x) cost $1 each, $2 for both."
        )
        expect(first.locator("label.wrong + .reason")).to_have_class("reason wrong")
        first.get_by_text("To 1, if S < ∞").click()
        expect(reason).to_have_text("Each query shares out one unit of attention & no more.")
        expect(first.locator("label.right:has(+ .reason)")).to_contain_text("To 1, if S < ∞")
        expect(first.locator("label.wrong")).to_have_count(0)
        expect(first.locator("legend code")).to_have_text("softmax(S)")
        expect(first.locator("legend em")).to_have_text("rows")


def test_at_the_end_questions_come_one_at_a_time_and_two_right_answers_are_counted(page: Page):
    first, second = page.locator("main fieldset").all()
    expect(second).to_be_hidden()
    first.get_by_text("To 0").click()
    page.locator("main").get_by_role("button", name="Next question").click()
    expect(first).to_be_hidden()
    expect(page.get_by_role("button", name="Question 1 of 2").first).to_have_class("wrong")
    expect(second).to_contain_text("More than one is right")
    second.get_by_label("Adding a constant").check()
    expect(second.locator(".reason")).to_have_text("It cancels. (1 of 2 found.)")
    second.get_by_label("Subtracting the maximum").check()
    expect(second.locator(".reason")).to_have_text("This adds a constant. (2 of 2 found.)")
    second.get_by_label("Subtracting the maximum").uncheck()
    expect(second.locator(".reason")).to_be_empty()


@pytest.mark.smoke
def test_after_the_last_answer_of_a_chapter_s_quiz_the_next_chapter_is_linked(
    page: Page,
):
    onward = page.locator("main").get_by_role("link", name="Next: 05 · Sequence to sequence")
    first, second = page.locator("main fieldset").all()
    first.get_by_text("To 0").click()
    expect(onward).to_be_hidden()
    page.locator("main").get_by_role("button", name="Next question").click()
    second.get_by_label("Doubling").check()
    expect(onward).to_be_visible()
    assert onward.get_attribute("href") == "05_sequence_to_sequence.ipynb"


def test_the_next_chapter_is_the_next_chosen_one_and_the_last_leads_nowhere(tmp_path):
    text = book("00_start_here", "01_masks", "02_positions")
    chosen = 'repository = ""\nchapters = ["start_here", "positions"]'
    (path := tmp_path / "book.toml").write_text(text.replace('repository = ""', chosen))
    (after,) = quiz("start_here", book=path).onward
    assert after[:2] == ("02_positions", "Positions") and after.always
    assert quiz("positions", book=path).onward == ()
    assert "Next: 0" not in _html(quiz("positions", book=path))


def test_the_keyboard_gives_answers_and_a_screen_reader_hears_question_and_reason(page: Page):
    expect(page.get_by_role("group").first).to_have_accessible_name(
        "What do the rows of softmax(S) sum to?"
    )
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    reason = page.locator("main .reason").first
    expect(reason).to_have_attribute("aria-live", "polite")
    expect(reason).not_to_be_empty()
    before = reason.inner_text()
    page.keyboard.press("ArrowDown")
    expect(reason).not_to_have_text(before)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_contrast_is_at_least_4_5_in_light_and_dark(page: Page, scheme: str):
    page.add_style_tag(content=f":root {{ color-scheme: {scheme} }}")
    first = page.locator("main fieldset").first
    for answer in ("To 0", "To 1"):
        first.get_by_text(answer).click()
        assert page.locator("main form").evaluate(CONTRAST) >= 4.5


def test_without_scripts_the_questions_can_be_read_and_a_recall_folds_its_spare_ones(browser):
    later = recall("scoring_functions", "kernel_regression")
    with html_page(browser, _html(later), java_script_enabled=False) as page:
        expect(page.get_by_text("Run this cell to answer.")).to_be_visible()
        for question in later.questions:
            expect(page.locator(f'fieldset[data-key="{question.key}"]')).to_be_visible()
        for question in later.spare:
            expect(page.locator(f'fieldset[data-key="{question.key}"]')).to_be_hidden()


# A recall in a browser ------------------------------------------------------------------------------------------------

OLD = {"scoring_functions": "Scoring functions", "kernel_regression": "Kernel regression"}


@pytest.fixture
def site(browser):
    """Pages of one origin, each with the HTML of one output; yields a function that opens one."""
    context = browser.new_context()
    errors = []

    def open_page(shown, *, script: str = "", around: str = "") -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.add_init_script(script)
        page.route("**/*", lambda route: route.fulfill(body=content, content_type="text/html"))
        content = f"<!doctype html><meta charset=utf-8>{around}{_html(shown)}"
        page.goto("http://course.test/page.html")
        return page

    yield open_page
    context.close()
    assert errors == []


def answer(page: Page, key: str, *, right: bool) -> None:
    """Give every answer that is right, or one that is wrong."""
    question = page.locator(f'fieldset[data-key="{key}"]')
    told = json.loads(question.get_attribute("data-answers"))
    places = [place for place, (correct, _) in enumerate(told) if correct == right]
    for place in places if right else places[:1]:
        question.locator("label").nth(place).evaluate("label => label.click()")  # or it is hidden
    expect(question.locator(".reason")).not_to_be_empty()


def keys(page: Page) -> list[str]:
    return [field.get_attribute("data-key") for field in page.locator("fieldset").all()]


def test_what_was_missed_in_a_chapter_comes_first_in_a_later_one_until_it_is_right_there(site):
    later = recall(*OLD)
    drawn = [question.key for question in later.questions]
    assert keys(site(later)) == drawn
    shown = {question.key for question in quiz("scoring_functions").questions}
    missed = next(q.key for q in later.spare if q.key in shown)

    chapter = site(quiz("scoring_functions"))
    answer(chapter, missed, right=False)
    answer(chapter, missed, right=True)  # the reason has been read; that is no recall
    again = site(quiz("scoring_functions"))
    answer(again, missed, right=True)

    page = site(later)
    assert keys(page) == [missed, drawn[0]]
    first, second = page.locator("fieldset").nth(0), page.locator("fieldset").nth(1)
    expect(first.locator(".source")).to_have_text("You missed this question of Scoring functions.")
    expect(second.locator(".source")).to_contain_text("From ")
    expect(page.locator("details")).to_have_count(0)
    answer(page, missed, right=True)
    assert keys(site(later)) == drawn


def test_what_is_missed_in_a_recall_comes_again_and_what_is_right_does_not(site):
    later = recall(*OLD)
    drawn = [question.key for question in later.questions]
    page = site(later)
    for key, first in ((drawn[0], True), (drawn[1], False)):
        answer(page, key, right=first)
        answer(page, key, right=not first)  # only the first answer counts
    assert keys(site(later)) == [drawn[1], drawn[0]]


# On a way -------------------------------------------------------------------------------------------------------------

WAYS = """
[[path]]
title = "Fast"
goal = "02_end"
chapters = ["00_start", { chapter = "01_masks", sections = ["Causal"] }, "02_end"]

[[path]]
title = "Short"
goal = "01_masks"
chapters = ["00_start", "01_masks"]
"""


@pytest.fixture
def on_ways(tmp_path):
    """A closing quiz and a recall of a chapter whose sections are *Padding* and *Causal*."""
    (path := tmp_path / "book.toml").write_text(book("00_start", "01_masks", "02_end") + WAYS)
    asked = {"first": "Padding", "second": "Causal", "third": "Causal"}
    one = GOOD.partition("\n\n")[0]
    questions = [
        one.replace("sums", name)
        .replace("Masked softmax", section)
        .replace("What do", f"{name}: what do")
        for name, section in asked.items()
    ]
    questions[2] = questions[2].replace('id = "third"', 'id = "third"\nasked = "later"')
    (tmp_path / "masks").mkdir()
    (tmp_path / "masks" / "quiz.toml").write_text("\n".join(questions))
    options = {"folder": tmp_path, "book": path}
    return quiz("masks", **options), recall("masks", **options)


def choosing(way: str) -> str:
    return f"localStorage.setItem('cu-way', JSON.stringify({way!r}));"


@pytest.mark.parametrize(
    ("way", "asked", "after"),
    [
        ("", ["first", "second"], "Next: 02 · End"),
        ("Elsewhere", ["first", "second"], "Next: 02 · End"),
        ("Fast", ["second", "third"], "Next: 02 · End"),
        ("Short", ["first", "second"], "Your path ends here. Next: 02 · End"),
    ],
)
def test_a_closing_quiz_asks_about_the_way_and_leads_on_along_it(site, on_ways, way, asked, after):
    page = site(on_ways[0], script=choosing(way))
    assert keys(page) == [f"masks/{name}" for name in asked]
    expect(page.locator(".steps button:not(.next)")).to_have_count(2)
    for name in asked:
        answer(page, f"masks/{name}", right=True)
    expect(page.locator(".onward")).to_be_visible()
    assert page.locator(".onward").inner_text() == after


@pytest.mark.smoke
@pytest.mark.parametrize("around", ["", "<details open>"], ids=["alone", "in a fold of the book"])
def test_a_recall_asks_about_the_way_and_begins_again_when_another_is_chosen(site, on_ways, around):
    _, later = on_ways
    page = site(later, script=choosing("Fast"), around=around)
    assert sorted(keys(page)) == ["masks/second", "masks/third"]
    page.evaluate(choosing("") + "dispatchEvent(new Event('cu-way'))")
    assert keys(page) == [question.key for question in later.questions]
    answer(page, later.questions[0].key, right=True)


@pytest.mark.smoke
def test_answers_are_remembered_and_the_first_open_question_is_shown(site):
    shown = quiz("scoring_functions")
    first, second, *_ = (question.key for question in shown.questions)
    answer(site(shown), first, right=False)
    page = site(shown)
    expect(page.locator(f'[data-key="{first}"] .reason')).not_to_be_empty()
    expect(page.locator(f'[data-key="{first}"]')).to_be_hidden()
    expect(page.locator(f'[data-key="{second}"]')).to_be_visible()
    expect(page.locator(f'[data-key="{second}"] :checked')).to_have_count(0)


def test_where_nothing_may_be_stored_the_fixed_draw_is_answered(site):
    refuse = """Object.defineProperty(window, "localStorage",
        {get() { throw new DOMException("not here", "SecurityError"); }});"""
    later = recall(*OLD)
    page = site(later, script=refuse)
    assert keys(page) == [question.key for question in later.questions]
    answer(page, later.questions[0].key, right=False)


def test_in_lab_too_what_was_missed_comes_first_and_its_chapter_opens_in_a_tab(browser, tmp_path):
    cells = [f"cu.recall(*{list(OLD)})", "cu.quiz('scoring_functions')"]
    write_notebook(
        tmp_path / "later.ipynb", "import course_utils as cu", *cells, "print('all', 'run')"
    )
    write_notebook(tmp_path / "03_scoring_functions.ipynb", "1")
    spare = [q for q in recall(*OLD).spare if q.slug == "scoring_functions" and q.asked == "end"]
    with jupyterlab(tmp_path) as address:
        page = open_notebook(browser, address, "later.ipynb")
        page.get_by_text("all run").wait_for(timeout=WAIT)
        forms = page.locator(".course-quiz[data-ready]")
        answer(page, spare[0].key, right=False)
        forms.first.evaluate("form => { form.dataset.before = true; }")
        run_all(page)
        first = page.locator(".course-quiz[data-ready]:not([data-before]) fieldset").first
        expect(first).to_have_attribute("data-key", spare[0].key)
        expect(first.locator(".source")).to_have_text(
            "You missed this question of Scoring functions."
        )
        first.get_by_role("link").click()
        tab = page.locator(".lm-TabBar-tabLabel", has_text="03_scoring_functions.ipynb")
        expect(tab.first).to_be_visible()
        page.close()


def test_quizzes_and_checks_are_written_in_letters_that_our_font_has():
    """Where it lacks one, a browser takes another font's, and an accent slides over what comes next."""
    font = ft2font.FT2Font(str(FONTS / "Inter-Regular.ttf"))
    texts = [path.read_text("utf-8") for path in LESSONS.glob("*/quiz.toml")]
    for name in dir(checks):
        for prop in getattr(checks, name).properties:
            texts += [prop.sentence, *prop.hints]
    shown = set(re.sub(r"\s", "", "".join(texts)))
    assert len(texts) > 100
    assert [letter for letter in shown if not font.get_char_index(ord(letter))] == []


def test_by_keyboard_an_answer_has_one_ring(page: Page):
    page.add_style_tag(content=":focus-visible { outline: 3px solid magenta }")  # a theme's
    page.keyboard.press("Tab")
    rings = page.evaluate("""() => [...document.querySelectorAll(":focus-visible, :has(:focus-visible)")]
        .filter((node) => getComputedStyle(node).outlineStyle !== "none").map((node) => node.tagName)""")
    assert rings == ["LABEL"]
