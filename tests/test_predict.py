"""Predictions: what an author may write, what is shown without scripts, and by keyboard in a browser and in Lab."""

import json
import re

import pytest
from browsing import come_back, html_page
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
        (CHOICE, {"wrong": CHOICE["wrong"] | {"thin": "No."}}, r"got wrong\['thin'\], expected"),
        (CHOICE, {"options": ["narrow"], "wrong": {}}, "expected two or more that differ"),
        (CHOICE, {"why": " "}, "got why=' ', expected a sentence"),
        (NUMBER, {"answer": 11}, "answer=11 is not a number from 0 to 10"),
        (NUMBER, {"answer": "four"}, "answer='four' is not a number"),
        (NUMBER, {"options": (10, 0)}, "the smaller end comes first"),
        (NUMBER, {"wrong": {"less": "Is it?"}}, r"wrong\['more'\] is missing"),
        (NUMBER, {"wrong": NUMBER["wrong"] | {4.5: "No."}}, r"wrong\[4.5\] lies outside the range"),
        (NUMBER, {"within": 0}, "within=0; .* and within is positive"),
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
def test_it_shows_the_same_each_time_and_no_reason_before_it_is_asked(task, capsys):
    bundle = cu.predict(**task)._repr_mimebundle_()
    assert bundle == cu.predict(**task)._repr_mimebundle_()
    assert json.loads(json.dumps(bundle)) == bundle
    assert capsys.readouterr().out == ""
    shown = re.sub("<script>.*?</script>|<[^>]*>", " ", bundle["text/html"], flags=re.S)
    for told in (task["why"], *task["wrong"].values()):
        assert told not in shown


# In a browser -----------------------------------------------------------------------------------


@pytest.fixture
def page(browser):
    """A page with a choice, twice, and a number: each has to answer for itself."""
    with html_page(browser, shown(CHOICE) * 2 + shown(NUMBER)) as page:
        yield page


@pytest.mark.smoke
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


def test_a_handle_and_the_number_beside_it_are_one(page: Page):
    handle = page.get_by_label("Drag to your guess")
    field = page.get_by_label("A number from 0 to 10")
    expect(field).to_have_value("")  # nothing is suggested
    handle.fill("4")
    expect(field).to_have_value("4")
    field.fill("7.5")
    expect(handle).to_have_value("7.5")
    field.press("Enter")
    expect(page.locator(".said").last).to_contain_text("Not quite.")


TOY = (
    '<form class="cu-live"{}><input name="T" type="range" min="0" max="1" step="any">'
    '<label><input name="kind" type="radio" value="soft" checked>soft</label>'
    '<label><input name="kind" type="radio" value="hard">hard</label></form>'
)
EXPLORER = (
    '<form data-explorer="width"><label data-count="3"><span class="cu-label">width</span>'
    """<input type="range" max="2" value="0" data-texts='["0.1", "0.5", "2"]'></label></form>"""
)
HEARD = "window.heard = []; addEventListener('input', (e) => heard.push(e.target.name))"


def test_what_was_asked_for_is_shown_by_the_next_toy_that_can(browser):
    ready = TOY.format(' data-ready="true"')
    live = shown(CHOICE | {"shows": {"T": 0.25, "kind": "hard"}})
    explored = shown(CHOICE | {"shows": {"width": 0.5}})
    with html_page(browser, ready + live + explored + EXPLORER + TOY.format("")) as page:
        page.evaluate(HEARD)
        above, _, _, explorer, below = page.locator("form").all()
        for ask in page.locator(".cu-predict").all():
            ask.get_by_role("button", name="wide").click()
            expect(ask.get_by_role("button", name="See it move")).to_be_visible()
        expect(explorer.locator("input")).to_have_value("1")
        assert below.locator("[name=T]").input_value() == "0.5"  # not loaded yet
        below.evaluate("form => { form.dataset.ready = true; }")
        expect(below.locator("[name=T]")).to_have_value("0.25")
        expect(below.get_by_label("hard")).to_be_checked()
        assert page.evaluate("heard") == ["", "T", "kind"]  # the widget follows
        expect(above.get_by_label("soft")).to_be_checked()


OUTPUT = '<div class="cell"><div class="cell_output">{}</div></div>'
SECTION = (
    '<section id="widths"><h2>Widths</h2>{}<p>Now watch.</p>{}<p>So narrow follows it.</p><p>A narrow one is noisy.</p>'
    '<details class="cu-claim" open>Narrow is ahead.</details><section><h3>Later</h3></section></section>'
)
ANSWERS = ("narrow wins", "So narrow follows it.", "A narrow one is noisy.", "Narrow is ahead.")


RESULT = OUTPUT.format('narrow wins<form data-explorer="width" data-address="width.0"></form>')
"""The result of a prediction: an explorer's caption."""


@pytest.fixture
def chapter(browser, tmp_path):
    """A page of the book with a prediction, opened at an address."""
    context = browser.new_context()
    page = context.new_page()

    def open_page(address: str = "", html: str = SECTION) -> Page:
        html = html.format(OUTPUT.format(shown(CHOICE)), RESULT)
        (tmp_path / "page.html").write_text(f"<!doctype html>{html}", encoding="utf-8")
        page.goto((tmp_path / "page.html").as_uri() + address)
        return page

    yield open_page
    context.close()


def expect_answers(page: Page, visible: bool) -> None:
    for text in ANSWERS:
        expect(page.get_by_text(text)).to_be_visible(visible=visible)


@pytest.mark.smoke
@pytest.mark.parametrize("press", ["wide", "Show me"])
def test_all_that_tells_is_veiled_until_the_reader_answers_and_an_answer_is_remembered(
    chapter, press
):
    page = chapter()
    expect_answers(page, visible=False)
    for text in ("Now watch.", "Later"):
        expect(page.get_by_text(text)).to_be_visible()
    page.get_by_role("button", name=press).click()
    for _ in range(2):
        said = page.locator(".said")
        expect_answers(page, visible=True)
        expect(said).to_contain_text("averages" if press == "wide" else "narrow.")
        expect(page.get_by_role("button", name="middle")).to_have_count(int(press == "Show me"))
        page = come_back(page, ".said:not(:empty)")


@pytest.mark.parametrize(
    ("address", "is_open"),
    [
        ("#explorer=width.0&at=2", True),
        ("#live=width.0", True),
        ("?found#widths", True),
        ("#explorer=width.1&at=2", False),
        ("?found#elsewhere", False),
        ("#widths", False),
    ],
)
def test_a_link_to_a_veiled_result_opens_it_and_says_so(chapter, address, is_open):
    page = chapter(address)
    expect_answers(page, visible=is_open)
    notice = page.get_by_text("Your link leads here, so this is open")
    expect(notice).to_be_visible(visible=is_open)
    page.get_by_role("button", name="narrow").click()  # it can still be answered
    expect(page.locator(".said")).to_have_text("Right. Few points share its window.")
    expect_answers(page, visible=True)
    expect(notice).not_to_be_visible()


def test_where_a_prediction_has_no_result_the_text_after_it_waits(chapter):
    page = chapter(html="<section>{}<p>It is the narrow one.</p><h2>Later</h2><p>More.</p>")
    expect(page.get_by_text("It is the narrow one.")).to_be_hidden()
    expect(page.get_by_text("More.")).to_be_visible()


LAB = """(form) => {
  const kinds = {
    form: ["CodeCell", form],
    text: ["MarkdownCell", ""],
    result: ["CodeCell", "narrow wins"],
    exercise: ["CodeCell", "what mine prints"],
    check: ["CodeCell", '<div class="cu-report">3 of 3 tests</div>'],
  };
  window.add = (name, kind, before = null) => {
    const [type, inner] = kinds[kind];
    const cell = document.createElement("div");
    cell.className = `jp-Cell jp-${type}`;
    cell.id = name;
    cell.innerHTML = type === "MarkdownCell" ? '<div class="jp-RenderedMarkdown"></div>'
      : `<div class="jp-Cell-outputWrapper"><div class="jp-OutputArea-output">${inner}</div></div>`;
    document.querySelector("#notebook").insertBefore(cell, before && document.getElementById(before));
    for (const old of cell.querySelectorAll("script")) {
      const script = Object.assign(document.createElement("script"), { textContent: old.textContent });
      old.replaceWith(script);
    }
  };
  window.render = (name, html) => { document.querySelector(`#${name} .jp-RenderedMarkdown`).innerHTML = html; };
  const cellOf = (part) => part.closest(".jp-Cell").id;
  window.veiled = () => [...document.querySelectorAll("[data-veil]")].map(cellOf).join(" ");
}"""
"""Makes a page into a notebook of Lab, whose cells and texts come one by one."""


@pytest.fixture
def notebook(browser):
    """A notebook of Lab with a prediction, `ask`, a text, its result, and then an exercise. Its texts are late."""
    with html_page(browser, '<div id="notebook"></div>') as page:
        page.evaluate(LAB, shown(CHOICE))
        for name, kind in {
            "ask": "form",
            "say": "text",
            "result": "result",
            "heading": "text",
            "mine": "exercise",
            "check": "check",
            "solution": "check",
            "next": "text",
        }.items():
            page.evaluate(f"add('{name}', '{kind}')")
        yield page


@pytest.mark.smoke
@pytest.mark.parametrize("order", [("say", "heading"), ("heading", "say")])
def test_in_lab_a_veil_follows_texts_that_come_late_and_never_lies_over_an_exercise(
    notebook: Page, order
):
    texts = {"say": "<p>Now watch.</p>", "heading": "<p>So it is.</p><h3>Exercise 1</h3>"}
    for name in order:
        notebook.evaluate("([name, html]) => render(name, html)", [name, texts[name]])
        assert "mine" not in notebook.evaluate("veiled()")
    assert notebook.evaluate("veiled()") == "result heading"
    notebook.evaluate("render('heading', '')")  # she edits the text
    assert notebook.evaluate("veiled()") == "result"
    notebook.get_by_role("button", name="narrow").click()
    assert notebook.evaluate("veiled()") == ""


def test_in_lab_a_veil_is_lifted_from_what_no_longer_belongs_to_its_question(notebook: Page):
    for name in ("say", "heading"):
        notebook.evaluate("name => render(name, '<p>Now watch.</p>')", name)
    assert notebook.evaluate("veiled()") == "result heading"  # the exercise has no heading
    notebook.evaluate("add('hers', 'result', 'result')")  # a cell of the reader's own
    assert notebook.evaluate("veiled()") == "result heading"
    notebook.evaluate("add('again', 'form', 'result')")  # another question before the result
    assert notebook.evaluate("veiled()") == "say result heading"  # the first has only a text then
    notebook.locator("#again").get_by_role("button", name="narrow").click()
    assert notebook.evaluate("veiled()") == "say"
    notebook.evaluate("ask.remove()")
    assert notebook.evaluate("veiled()") == ""


def test_in_lab_a_question_that_is_run_again_or_deleted_leaves_no_veil(notebook: Page):
    for name in ("say", "heading"):
        notebook.evaluate("name => render(name, '<p>Now watch.</p>')", name)
    notebook.evaluate("document.querySelector('#ask form').remove()")
    assert notebook.evaluate("veiled()") == ""
    notebook.evaluate("add('again', 'form', 'say')")
    assert notebook.evaluate("veiled()") == "result heading"
    notebook.evaluate("again.remove()")
    assert notebook.evaluate("veiled()") == ""


TOLD = """() => [...document.querySelectorAll(".cu-predict")].flatMap((form) => {
  const after = [];
  const isResult = (node) => node.matches(".pst-scrollable-table-container") || node.querySelector(".cell_output");
  let next = form.closest(".cell").nextElementSibling;
  for (; next && !next.matches("section") && !next.querySelector(".cu-predict"); next = next.nextElementSibling)
    if (!next.matches(".cu-moved") && !next.querySelector(".course-quiz")) after.push(next);
  const told = after.slice(Math.max(0, after.findIndex(isResult)));
  return told.map((node) => node.querySelector(".cell_output") ?? node)
    .filter((node) => node.checkVisibility({ visibilityProperty: true }))
    .map((node) => `${form.querySelector("legend").textContent} ${node.textContent.trim().slice(0, 80)}`);
})"""
"""What can be seen after each prediction of a page, from its result to the end of its section."""


def test_no_prediction_of_the_book_tells_its_answer(book, browser):
    pages = [path for path in book.glob("*.html") if "cu-predict" in path.read_text("utf-8")]
    assert len(pages) > 15
    page = browser.new_page()
    for path in pages:
        page.goto(path.as_uri())
        assert page.evaluate(TOLD) == [], path.name
