"""The state of a live widget or an explorer in the address: restored, copied, hidden, and bad ones without harm."""

import re
from urllib.parse import urlencode

import pytest
from browsing import one_playwright
from playwright.sync_api import expect
from test_explore_browser import explorer

import course_utils as cu
from course_utils.files import ROOT
from course_utils.studio.book import live as book

pytestmark = pytest.mark.slow

STATE = {"sentence": "please eat a pizza .", "search": "1", "kind": "decoder", "map": "0.2"}
STATE |= {"cell": "9.3", "operation": "mix", "step": "10", "closer": "1"}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A page with two translators and two explorers."""
    folder = tmp_path_factory.mktemp("book")
    for name, text in book.scripts().items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(text, encoding="utf-8")
    parts = [book.page(cu.live.translator(line)) for line in ("i'm home .", "he's calm .")]
    parts += [explorer(start).page() for start in (1, 2)]
    divs = "".join(f"<div>{part}</div>" for part in parts)
    text = f"<!doctype html><html lang=en><meta charset=utf-8><body>{divs}"
    (folder / "page.html").write_text(text, encoding="utf-8")
    return folder / "page.html"


@pytest.fixture(scope="module")
def browser(chromium):
    with one_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def at(browser, file):
    """Opens the page at an address; the errors of all pages are none at the end."""
    context, errors = browser.new_context(), []

    def opened(fragment: str, address: str = ""):
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        page.goto((address or file.as_uri()) + fragment)
        expect(page.locator("form.cu-live[data-ready]")).to_have_count(2)
        return page

    yield opened
    context.close()
    assert errors == []


def live(state: dict, name: str = "translator.1") -> str:
    return f"#{urlencode({'live': name} | state)}"


def part(page, name: str, which: int = 1):
    return page.locator(f"form.cu-live >> nth={which} >> [data-part={name}]")


def test_a_state_is_restored_in_the_widget_that_is_named(at):
    page = at(live(STATE))
    expect(part(page, "said")).to_have_text("mange une pizza , s'il te plaît .")
    expect(part(page, "said", 0)).to_have_text("je suis chez moi .")
    expect(part(page, "table").locator("caption")).to_contain_text("decoder, layer 0, head 2")
    expect(part(page, "next")).to_contain_text("Word 9 of 9")  # what a step is beyond, is the last
    expect(part(page, "of")).to_contain_text("Choose a number")  # there is no row 9
    page.goto(page.url.replace("cell=9.3", "cell=3.2"))  # on the same page
    expect(part(page, "of")).to_contain_text("Query pizza, key une")
    expect(part(page, "work").locator("strong").first).to_have_text("mix")
    expect(page.locator("form.cu-live").nth(1)).to_be_in_viewport()


def test_a_copied_link_opens_the_same(at, browser):
    page = at("")
    page.evaluate(
        """() => { navigator.clipboard.writeText = async text => { globalThis.copied = text; }; }"""
    )
    form = page.locator("form.cu-live").first
    form.get_by_role("textbox", name="English").fill("he's calm .")
    form.get_by_role("button", name="layer 0, head 1").click()
    form.locator("[data-word='1']").click()
    form.get_by_role("button", name="Copy link").click()
    expect(form.locator("span[role=status]")).to_contain_text("Copied")
    copied = page.evaluate("copied")
    again = at("", copied)
    assert "search" not in copied, "what is as it was first is not named"
    for name in ("said", "before", "maps", "table", "next"):
        expect(part(again, name, 0)).to_have_text(part(page, name, 0).text_content())

    page.evaluate("""() => { navigator.clipboard.writeText = () => Promise.reject(); }""")
    form.get_by_role("button", name="Copy link").click()
    expect(form.get_by_role("textbox", name="Link to what is shown")).to_have_value(copied)


def test_a_teachers_link_hides_controls_and_keeps_them_hidden(at):
    page = at(live({"hide": "search,kind,map,nothing", "closer": "1"}))
    form = page.locator("form.cu-live").nth(1)
    for hidden in (
        form.get_by_role("combobox", name="Search"),
        form.get_by_role("group", name="Attention"),
        form.get_by_role("group", name="Heads"),
    ):
        expect(hidden).to_be_hidden()
    expect(form.get_by_role("grid")).to_be_visible()
    assert page.evaluate("form => live_address.link(form)", form.element_handle()).endswith(
        "hide=map%2Ckind%2Csearch"
    )


def test_the_link_that_is_given_to_teachers_does_what_it_says(at):
    told = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
    (fragment,) = re.findall(r"^11_translating\.html(#\S+)$", told, re.M)
    form = at(fragment).locator("form.cu-live").first
    expect(form.get_by_role("textbox", name="English")).to_have_value("she has a red car .")
    expect(form.locator("[data-word][aria-pressed=true]")).to_have_text("car")
    expect(form.locator("caption").first).to_contain_text("Cross-attention, layer 0, head 2")
    for hidden in (
        form.get_by_role("combobox", name="Search"),
        form.get_by_role("group", name="Attention"),
        form.get_by_role("button", name="Take the tour"),
    ):
        expect(hidden).to_be_hidden()
    expect(form.get_by_role("grid")).to_be_visible()


@pytest.mark.parametrize(
    "state",
    [
        {"map": "7.7"},
        {"map": "<img src=x onerror=alert(1)>"},
        {"kind": "no kind", "search": "99", "step": "-3", "operation": "guess", "cell": "a.b"},
        {"sentence": "<b>he's</b> <script>alert(1)</script>", "cell": "1.1"},
        {"sentence": "x" * 3000, "toString": "1", "elements": "2"},
        {"step": "1e9", "cell": "999999.0"},
        {"sentence": "xyzzy", "map": "9.9"},
        {"forbid": "0,1,2,3,4,5,6,<b>", "line": "0.0,9.9,x,-1.2", "encoder": "7"},
    ],
)
def test_a_bad_address_does_no_harm(at, state):
    page = at(live(state))
    form = page.locator("form.cu-live").nth(1)
    assert form.locator("img, b, [data-part=unknown] script").count() == 0
    form.get_by_role("textbox", name="English").fill("i'm home .")
    expect(part(page, "said")).to_have_text("je suis chez moi .")
    assert form.locator("[role=grid] td").count() == 6 * 4


@pytest.mark.parametrize(
    "fragment", ["#live=translator.5", "#live=none.0&map=0.0", "#", "#%E0%A4%A"]
)
def test_an_address_of_another_page_changes_nothing(at, fragment):
    page = at(fragment)
    expect(part(page, "said", 0)).to_have_text("je suis chez moi .")
    expect(part(page, "table", 0).locator("caption")).to_contain_text("mean of layer 1")


def test_an_explorer_is_restored_and_copied_too(at):
    page = at("#explorer=values.1&at=2.5.1.0")
    first, second = page.locator("form.cu-explorer").all()
    expect(second.locator(".cu-caption")).to_have_text("number 2, kind f, side right, on False")
    expect(second.get_by_role("radio", name="right")).to_be_checked()
    expect(first.locator(".cu-caption")).to_have_text("number 1, kind b, side left, on False")
    page.evaluate(
        """() => { navigator.clipboard.writeText = async text => { globalThis.copied = text; }; }"""
    )
    second.get_by_role("button", name="Copy link").click()
    expect(second.locator("span[role=status]")).to_contain_text("Copied")
    assert page.evaluate("copied") == page.url
    for bad in ("9.9.9.9", "1", "-1.0.0.0", "a.b.c.d", "0.5.0.0.0", "1.0.0.1e9"):
        page.goto(page.url.split("#")[0] + f"#explorer=values.0&at={bad}")
    expect(first.locator(".cu-caption")).to_have_text("number 1, kind b, side left, on False")
    page.evaluate("""() => { navigator.clipboard.writeText = () => Promise.reject(); }""")
    first.get_by_role("button", name="Copy link").click()
    expect(first.locator("span[role=status]")).to_contain_text("address bar")
    assert page.url.endswith("#explorer=values.0&at=1.1.0.0")
