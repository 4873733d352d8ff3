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
def test_it_shows_the_same_each_time_prints_nothing_and_tells_nothing(task, capsys):
    bundle = cu.predict(**task)._repr_mimebundle_()
    assert bundle == cu.predict(**task)._repr_mimebundle_()
    assert json.loads(json.dumps(bundle)) == bundle
    assert capsys.readouterr().out == ""
    for told in (task["why"], *task["wrong"].values()):
        assert told not in bundle["text/html"]


# In a browser -----------------------------------------------------------------------------------


@pytest.fixture
def page(browser):
    """A page with a choice, twice, and a number: each has to answer for itself."""
    with html_page(browser, shown(CHOICE) * 2 + shown(NUMBER)) as page:
        yield page


def test_by_keyboard_a_choice_is_made_once_and_answered_where_it_was_made(page: Page):
    form, other, _ = page.locator("form").all()
    expect(form.get_by_role("group", name="Which width follows the noise & why?")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")  # the middle one
    page.keyboard.press("Enter")
    said = form.locator(".said")
    expect(said).to_contain_text("Not quite. It averages <some> points.")
    expect(said).to_be_focused()
    expect(form.get_by_role("button")).to_have_count(0)
    expect(said.get_by_text("Few points share its window.")).to_be_hidden()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(said.get_by_text("narrow. Few points share its window.")).to_be_visible()
    expect(other.locator(".said")).to_be_empty()
    other.get_by_role("button", name="narrow").click()
    expect(other.locator(".said")).to_have_text("Right. Few points share its window.")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("3.5", "Right."),
        ("1", "Is it squared?"),
        ("6", "Is it halved?"),
        ("7.8", "This is the cube."),
        ("11", ""),
        ("", ""),
    ],
)
def test_each_number_has_its_answer(page: Page, given, said):
    field = page.get_by_label("A number from 0 to 10")
    field.fill(given)
    field.press("Enter")
    told = page.locator(".said").last
    expect(told).to_contain_text(said) if said else expect(told).to_be_empty()


def test_without_scripts_there_is_the_question_and_no_answer(browser):
    with html_page(browser, shown(CHOICE), java_script_enabled=False) as page:
        expect(page.get_by_text("Which width follows")).to_be_visible()
        expect(page.get_by_role("button", name="narrow")).to_be_disabled()
