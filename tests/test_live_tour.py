"""The tours, from the first card to the last, by keyboard."""

import pytest
from playwright.sync_api import Page, expect

import course_utils as cu

pytestmark = pytest.mark.slow


def largest(page: Page) -> None:
    cells = page.get_by_role("grid").locator("tbody tr").first.locator("td")
    numbers = [int(text) for text in cells.all_text_contents()]
    cells.nth(numbers.index(min(numbers))).press("Enter")
    expect(page.locator(".cu-live-tour [role=status]")).to_be_empty()
    cells.nth(numbers.index(max(numbers))).press("Enter")


def above_the_diagonal(page: Page) -> None:
    page.get_by_role("grid").locator("tbody tr").first.locator("td").last.press("Enter")


def button(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).press("Enter")


def operation(page: Page, name: str) -> None:
    page.get_by_role("radio", name=name).check()


TASKS = {
    "translator": [
        lambda page: page.get_by_role("textbox", name="English").fill("He's calm."),
        lambda page: button(page, "woman"),
        lambda page: page.locator("[data-step='2']").press("Enter"),
        lambda page: page.locator("[data-word='3']").press("Space"),
        lambda page: button(page, "layer 0, head 2"),
        largest,
        lambda page: operation(page, "normalize"),
        above_the_diagonal,
        None,
        lambda page: page.locator("[data-example='2']").press("Enter"),
    ],
    "gpt": [
        lambda page: page.get_by_role("textbox", name="Beginning").fill("The old woman"),
        lambda page: [button(page, "One token") for _ in range(3)],
        lambda page: button(page, "woman"),
        lambda page: page.locator("[data-choice]").nth(3).press("Enter"),
        lambda page: page.get_by_role("slider", name="Temperature").press("End"),
        lambda page: page.get_by_role("combobox", name="Top k").select_option("3"),
        lambda page: [page.get_by_role("spinbutton", name="Seed").fill("5"), button(page, "Write")],
        lambda page: button(page, "layer 0, head 2"),
        lambda page: [page.locator("[data-word='2']").press("Space"), button(page, "Write")],
        above_the_diagonal,
        lambda page: operation(page, "merge"),
    ],
}
"""Kind → what a reader does at each card; None where a card sets no task that the page can see done."""


@pytest.mark.parametrize("kind", TASKS)
def test_each_card_opens_and_marks_what_it_speaks_of_and_sees_its_task_done(open_widget, kind):
    tasks = TASKS[kind]
    with open_widget(getattr(cu.live, kind)(), reduced_motion="reduce") as page:
        form, tour = page.locator("form"), page.get_by_role("region", name="Tour")
        expect(tour).to_be_hidden()
        page.get_by_role("checkbox", name="Look closer").check()
        button(page, "Take the tour")
        title, done = tour.locator("strong"), tour.locator("[role=status]")
        for number, task in enumerate(tasks, 1):
            expect(title).to_contain_text(f"{number} of {len(tasks)}: ")
            expect(title).to_be_focused()
            pressed = form.locator("[data-part=maps] [aria-pressed=true]")
            layer, _, head = pressed.get_attribute("data-map").partition(".")
            name = f"layer {layer}, head {head}" if head else f"mean of layer {layer}"
            expect(page.get_by_role("grid").locator("caption")).to_contain_text(name)
            assert form.locator(".cu-live-marked").count() >= 1
            assert form.locator(".cu-live-marked").first.is_visible()
            expect(done).to_be_empty()
            if task:
                task(page)
                expect(done).to_have_text("Done.")
            else:
                expect(page.get_by_role("region", name="The beam as a tree")).to_be_visible()
            if number < len(tasks):
                button(page, "Next")
        expect(tour.get_by_role("button", name="Next")).to_be_disabled()
        button(page, "Back")
        expect(title).to_contain_text(f"{len(tasks) - 1} of {len(tasks)}: ")
        page.keyboard.press("Escape")
        expect(tour).to_be_hidden()
        expect(form.get_by_role("button", name="Take the tour")).to_be_focused()
        assert form.locator(".cu-live-marked").count() == 0
        page.evaluate("kind => { location.hash = `live=${kind}.0&tour=6`; }", kind)
        expect(title).to_contain_text(f"6 of {len(tasks)}: ")
        page.evaluate("kind => { location.hash = `live=${kind}.0&tour=99`; }", kind)
        expect(tour).to_be_hidden()
