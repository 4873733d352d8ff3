"""What holds for every kind of live widget: a new script in live/widgets is taken in by itself."""

import re
from pathlib import Path

import pytest
from browsing import CONTRAST, in_theme, live_page, part, write_page
from nbformat.v4 import new_code_cell, new_notebook, new_output
from playwright.sync_api import Page, expect

from course_utils.kit import live
from course_utils.studio.book import live as book
from course_utils.studio.first_states import fill, first_state

pytestmark = pytest.mark.slow

KINDS = sorted(path.stem for path in (Path(live.__file__).parent / "widgets").glob("*.js"))

PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module", params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def file(kind, tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("book"), getattr(live, kind)())


# A widget that shows all it can -------------------------------------------------------------------


def explained(page: Page) -> None:
    part(page, "table").locator("td").nth(4).click()
    page.get_by_role("radio", name="merge").check()


def gpt(page: Page) -> None:
    page.get_by_role("textbox", name="Beginning").fill("the old wuman is sleeping behind the")
    page.get_by_role("button", name="Write", exact=True).click()
    page.locator("[data-word]").nth(3).click()
    page.get_by_role("button", name="layer 1, head 3").click()
    explained(page)


def bert(page: Page) -> None:
    line = "the old wuman is ___ behind the house near the old church ."
    page.get_by_role("textbox", name="Sentence").fill(line)
    explained(page)


def translator(page: Page) -> None:
    line = "there were three mirrors near the window and the old wuman is sleeping ."
    page.get_by_role("textbox", name="English").fill(line)
    page.locator("[data-word]").nth(4).click()
    page.get_by_role("button", name="layer 1, head 3").click()
    explained(page)


def alignment(page: Page) -> None:
    line = "there were three mirrors near the window and the old wuman is sleeping ."
    page.get_by_role("textbox", name="English").fill(line)
    explained(page)


FULL = {"alignment": alignment, "gpt": gpt, "bert": bert, "translator": translator}
"""Kind → what a reader does until it shows much; other kinds show all at once."""


def filled(page: Page, kind: str) -> None:
    page.locator("details").evaluate_all("nodes => nodes.forEach(node => { node.open = true; })")
    for closer in page.get_by_role("checkbox", name="Look closer").all():
        closer.check()
    FULL.get(kind, lambda _: None)(page)


# Before and after ---------------------------------------------------------------------------------


def test_what_a_notebook_keeps_makes_the_widget_again(kind):
    made, asleep = getattr(live, kind)(), "Run this cell"
    data, _ = made._repr_mimebundle_()
    assert asleep in data["text/html"], "a saved form says why it does not answer"
    assert asleep not in made._panel.form + book.page(made), "one that lives does not"
    output = new_output("execute_result", data=dict(data))
    fill(new_notebook(cells=[new_code_cell(outputs=[output])]))
    html = output.data["text/html"]
    assert html == data["text/html"].replace("></fieldset>", f">{first_state(made)}</fieldset>")
    assert '<fieldset disabled="">' in html and "<script" not in html


PARTS = """form => [...form.querySelectorAll('[data-part]')].map(part => {
    const copy = part.cloneNode(true);
    copy.querySelector('.cu-live-link')?.remove();  // a script alone makes links
    return copy.outerHTML.replaceAll(/ (role|tabindex|aria-selected)="[^"]*"/g, '');
})"""


@pytest.mark.smoke
def test_a_page_that_comes_alive_shows_what_it_showed_before(browser, kind, file):
    context = browser.new_context(java_script_enabled=False)
    before = context.new_page()
    before.goto(file.as_uri())
    assert before.locator("input:enabled, button:enabled").count() == 0
    written = before.locator("form").evaluate(PARTS)
    context.close()
    assert len(written) > 2
    for fragment in ("", f"#live={kind}.0"):  # the second makes the page draw all that it shows
        with live_page(browser, file, fragment, reduced_motion="reduce") as after:
            assert after.locator("form").evaluate(PARTS) == written


def test_without_widgets_an_output_is_the_same_page_and_needs_no_other_file(
    browser, kind, file, tmp_path
):
    alone = tmp_path / "output.html"
    made = getattr(live, kind)()
    alone.write_text(
        f"<!doctype html><meta charset=utf-8><div>{made.alone()}</div>", encoding="utf-8"
    )
    with live_page(browser, file) as page:
        written = page.locator("form").evaluate(PARTS)
    with live_page(browser, alone) as page:
        assert page.locator("form").evaluate(PARTS) == written
        expect(page.get_by_text("Run this cell")).to_have_count(0)


def test_an_address_that_holds_nonsense_does_no_harm(browser, kind, file):
    with live_page(browser, file) as page:
        named = "form => [...form.elements].filter(each => each.name).map(each => [each.name, each.type])"
        controls = dict(page.locator("form").evaluate(named))
        for name, sort in controls.items():
            texts = () if sort == "number" else ("<img src=x>",)  # the browser itself says so
            for junk in (*texts, "-1", "1e9", "9.9", ""):
                page.goto(f"{file.as_uri()}#live={kind}.0&{name}={junk}")
        assert page.locator("form img").count() == 0
        page.goto(f"{file.as_uri()}#live={kind}.0&hide={next(iter(controls))}")
        assert page.locator("form [data-away]").count() >= 1


def test_what_does_not_fit_into_a_field_is_said_to_be_left_out(browser, kind, file):
    with live_page(browser, file) as page:
        for field in page.locator("input[maxlength]").all():
            told = field.locator("xpath=ancestor::label/following-sibling::*[@role='status'][1]")
            most = int(field.get_attribute("maxlength"))
            field.fill("a" * (most - 1))
            field.press("End")
            field.press("b")
            expect(told).to_be_empty()
            field.press("c")
            expect(told).to_contain_text(f"At most {most} characters")
            assert field.input_value() == "a" * (most - 1) + "b"
            field.press("Backspace")
            expect(told).to_be_empty()


# For everyone -------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_read_on_its_ground(browser, kind, file, theme):
    with live_page(browser, file, reduced_motion="reduce") as page:
        in_theme(page, theme)
        assert page.locator("form").evaluate(CONTRAST) >= 4.5
        filled(page, kind)
        assert page.locator("form").evaluate(CONTRAST) >= 4.5


def test_on_a_phone_nothing_is_wider_than_the_page_and_all_can_be_touched(browser, kind, file):
    with live_page(browser, file, viewport=PHONE, reduced_motion="reduce") as page:
        filled(page, kind)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        touched = page.locator(":is(button, select, label, summary, input[type=text]):visible")
        assert min(each.bounding_box()["height"] for each in touched.all()) >= 24
        for region in page.get_by_role("region").all():
            wide = "node => node.scrollWidth > node.clientWidth && node.tabIndex !== 0"
            assert not region.evaluate(wide), "what scrolls can be reached by keys"


def test_a_screen_reader_finds_names(browser, kind, file):
    with live_page(browser, file, reduced_motion="reduce") as page:
        filled(page, kind)
        expect(page.get_by_role("form", name=re.compile("^Live "))).to_be_visible()
        assert page.locator("svg:not([aria-hidden=true], [role=img][aria-label])").count() == 0
        for control in page.locator(":is(input, select, button):visible").all():
            name = "node => node.ariaLabel ?? (node.labels?.[0] ?? node).textContent.trim()"
            assert control.evaluate(name)
        assert page.locator("[aria-live=polite], [role=status]").count() >= 1
