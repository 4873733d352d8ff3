"""Predictions: what an author may write, what is shown without scripts, and by keyboard in a browser and in Lab."""

import json

import pytest
from browsing import html_page
from playwright.sync_api import Page, expect

import course_utils as cu

CHOICE = {
    "question": "Which `width` follows the noise & why?",
    "options": ["narrow", "middle", "wide"],
    "answer": "narrow",
    "wrong": {"middle": "It averages <some> points.", "wide": "It averages them all."},
    "why": "Few points share its window.",
}
WHY = "Why? Say it in your own words, then compare."
NUMBER = {
    "question": "What is 2 squared?",
    "options": (0, 10),
    "answer": 4,
    "wrong": {"less": "Is it squared?", "more": "Is it halved?", 8: "This is the cube."},
    "why": "It is 2 · 2.",
}


def shown(task: dict) -> str:
    return cu.predict(**task)._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    ("task", "change", "message"),
    [
        (CHOICE, {"answer": "thin"}, "answer='thin' is not among the options"),
        (CHOICE, {"wrong": {"middle": " ", "wide": "No."}}, r"wrong\['middle'\] is missing"),
        (CHOICE, {"wrong": CHOICE["wrong"] | {"thin": "No."}}, r"wrong\['thin'\] is no wrong"),
        (CHOICE, {"wrong": CHOICE["wrong"] | {"narrow": "No."}}, r"wrong\['narrow'\] is no wrong"),
        (CHOICE, {"options": ["narrow"], "wrong": {}}, "two or more different ones"),
        (CHOICE, {"why": " "}, "why=' '; a sentence is needed"),
        (NUMBER, {"answer": 11}, "answer=11 is not a number from 0 to 10"),
        (NUMBER, {"answer": "four"}, "answer='four' is not a number"),
        (NUMBER, {"options": (10, 0)}, "the smaller end comes first"),
        (NUMBER, {"wrong": {"less": "Is it?"}}, r"wrong\['more'\] is missing"),
        (NUMBER, {"wrong": NUMBER["wrong"] | {4.5: "No."}}, r"wrong\[4.5\] lies outside the range"),
        (NUMBER, {"within": 0}, "within=0; a positive number"),
    ],
)
def test_a_mistake_of_the_author_is_named(task, change, message):
    with pytest.raises(ValueError, match=message):
        cu.predict(**task | change)


@pytest.mark.parametrize("options", [[], (1, "two"), (1, 2, 3), (float("nan"), 1), (True, False)])
def test_options_are_texts_or_two_numbers(options):
    with pytest.raises(TypeError, match="several texts or the two ends of a range"):
        cu.predict(**NUMBER | {"options": options})


@pytest.mark.parametrize("task", [CHOICE, NUMBER])
def test_it_shows_the_same_each_time_and_prints_nothing(task, capsys):
    bundle = cu.predict(**task)._repr_mimebundle_()
    assert bundle == cu.predict(**task)._repr_mimebundle_()
    assert json.loads(json.dumps(bundle)) == bundle
    assert capsys.readouterr().out == ""


# In a browser -----------------------------------------------------------------------------------


@pytest.fixture
def page(browser):
    """A page with a choice, twice, and a number: each has to answer for itself."""
    with html_page(browser, shown(CHOICE) * 2 + shown(NUMBER)) as page:
        yield page


def test_by_keyboard_a_choice_is_made_and_both_are_shown(page: Page):
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")  # the middle one
    said = page.locator(".cu-said").first
    expect(said).to_be_empty()
    page.keyboard.press("Enter")
    expect(said).to_have_text(
        "Your prediction: middle. It averages <some> points."
        f"The answer: narrow. {WHY}Few points share its window."
    )
    expect(page.locator(".cu-said").nth(1)).to_be_empty()


def test_the_reason_is_asked_for_before_it_is_told_and_opens_by_keyboard(page: Page):
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    said = page.locator(".cu-said").first
    expect(said.get_by_text(WHY)).to_be_visible()
    expect(said.get_by_text("Few points share its window.")).to_be_hidden()
    for _ in range(3):  # over both buttons
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(said.get_by_text("Few points share its window.")).to_be_visible()


def test_skipping_is_one_click_and_nothing_is_asked_twice(page: Page):
    form = page.locator("form").first
    form.get_by_role("button", name="This is my prediction").click()
    expect(form.locator(".cu-said")).to_have_text("Choose first, or skip.")
    form.get_by_role("button", name="Skip").click()
    expect(form.locator(".cu-said")).to_have_text(
        f"The answer: narrow. {WHY}Few points share its window."
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("4.5", "Right."),
        ("3.5", "Right."),
        ("1", "Is it squared?"),
        ("6", "Is it halved?"),
        ("7.8", "This is the cube."),
        ("11", "Write a number from 0 to 10, or skip."),
        ("", "Write a number from 0 to 10, or skip."),
    ],
)
def test_each_number_has_its_answer(page: Page, given, said):
    field = page.get_by_label("A number from 0 to 10")
    field.fill(given)
    field.press("Enter")
    expect(page.locator(".cu-said").last).to_contain_text(said)


def test_without_scripts_the_answer_is_folded_below_the_question(browser):
    with html_page(browser, shown(CHOICE) + shown(NUMBER), java_script_enabled=False) as page:
        expect(page.get_by_text("Predict: Which width follows")).to_be_visible()
        reasons = [page.get_by_text("Few points share"), page.get_by_text("8: This is the cube.")]
        for reason in reasons:
            expect(reason).to_be_hidden()
        for summary in page.get_by_text("Show the answer").all():
            summary.click()
        for reason in reasons:
            expect(reason).to_be_visible()
