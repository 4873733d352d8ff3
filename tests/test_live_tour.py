"""The tour of the translator, from the first card to the last, by keyboard."""

import pytest
from browsing import live_page, write_page
from playwright.sync_api import expect

import course_utils as cu

pytestmark = pytest.mark.slow


@pytest.fixture
def page(browser, tmp_path):
    with live_page(browser, write_page(tmp_path, cu.live.translator())) as page:
        yield page


def test_each_card_opens_and_marks_what_it_speaks_of_and_sees_its_task_done(page):
    form, tour = page.locator("form"), page.get_by_role("region", name="Tour")
    expect(tour).to_be_hidden()
    form.get_by_role("button", name="Take the tour").press("Enter")
    title, done = tour.locator("strong"), tour.locator("span, p[role=status]")
    slider, grid = form.get_by_role("slider"), form.get_by_role("grid")

    def radio(name: str):
        form.get_by_role("radio", name=name).check()

    def largest():
        cells = grid.locator("tbody tr").first.locator("td")
        numbers = [int(text) for text in cells.all_text_contents()]
        cells.nth(numbers.index(min(numbers))).press("Enter")
        expect(done).to_be_empty()
        cells.nth(numbers.index(max(numbers))).press("Enter")

    tasks = [
        lambda: form.get_by_role("textbox", name="English").fill("He's calm."),
        lambda: form.get_by_role("button", name="woman", exact=True).press("Enter"),
        lambda: slider.press("End"),
        largest,
        lambda: radio("normalize"),
        lambda: form.get_by_role("button", name="layer 0, head 2").press("Enter"),
        lambda: grid.locator("tbody tr").first.locator("td").last.click(),
        None,
        lambda: form.locator("[data-example='2']").press("Enter"),
    ]
    for number, task in enumerate(tasks, 1):
        expect(title).to_contain_text(f"{number} of 9: ")
        expect(title).to_be_focused()
        pressed, caption = (
            form.locator("[data-part=maps] [aria-pressed=true]"),
            grid.locator("caption"),
        )
        expect(caption).to_contain_text(pressed.inner_text())
        assert form.locator(".cu-live-marked").count() >= 1
        assert form.locator(".cu-live-marked").first.is_visible()
        expect(done).to_be_empty()
        if task:
            task()
            expect(done).to_have_text("Done.")
        if number < 9:
            tour.get_by_role("button", name="Next").press("Enter")
    expect(tour.get_by_role("button", name="Next")).to_be_disabled()
    tour.get_by_role("button", name="Back").press("Enter")
    expect(title).to_contain_text("8 of 9: Beam search")
    expect(form.get_by_role("region", name="The beam as a tree")).to_be_visible()
    page.keyboard.press("Escape")
    expect(tour).to_be_hidden()
    expect(form.get_by_role("button", name="Take the tour")).to_be_focused()
    assert form.locator(".cu-live-marked").count() == 0


def test_an_address_opens_a_card_and_a_bad_number_none(page):
    page.goto(page.url + "#live=translator.0&tour=6")
    tour = page.get_by_role("region", name="Tour")
    expect(tour.locator("strong")).to_contain_text("6 of 9: Eight heads")
    page.goto(page.url.replace("tour=6", "tour=99"))
    expect(tour).to_be_hidden()
