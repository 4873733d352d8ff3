"""The state of a live widget or an explorer in the address: restored, copied, hidden, and bad ones without harm."""

from urllib.parse import urlencode

import pytest
from browsing import live_page, part, write_page
from playwright.sync_api import expect
from test_explore_browser import explorer

import course_utils as cu

pytestmark = pytest.mark.slow

STATE = {"sentence": "please eat a pizza .", "search": "1", "kind": "decoder", "map": "0.2"}
STATE |= {"cell": "9.3", "operation": "mix", "step": "10", "closer": "1"}
COPY = "() => { navigator.clipboard.writeText = async text => { globalThis.copied = text; }; }"
REFUSE = "() => { navigator.clipboard.writeText = () => Promise.reject(); }"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A page with two translators and two explorers."""
    made = map(cu.live.translator, ("i'm home .", "he's calm ."))
    explorers = "".join(f"<div>{explorer(start).page()}</div>" for start in (1, 2))
    page = write_page(tmp_path_factory.mktemp("book"), *made)
    page.write_text(page.read_text("utf-8") + explorers, encoding="utf-8")
    return page


def of_second(page, name: str):
    return page.locator(f"form.cu-live >> nth=1 >> [data-part={name}]")


def test_a_state_is_restored_in_the_widget_that_is_named_and_copied(browser, file):
    with live_page(browser, file, f"#{urlencode({'live': 'translator.1'} | STATE)}") as page:
        expect(of_second(page, "said")).to_have_text("mange une pizza , s'il te plaît .")
        expect(part(page, "said")).to_have_text("je suis chez moi .")
        told = "decoder, layer 0, head 2"
        expect(of_second(page, "table").locator("caption")).to_contain_text(told)
        expect(of_second(page, "next")).to_contain_text(
            "Word 9 of 9"
        )  # beyond the last is the last
        expect(of_second(page, "of")).to_contain_text("Choose a number")  # there is no row 9
        page.goto(page.url.replace("cell=9.3", "cell=3.2"))  # on the same page
        expect(of_second(page, "of")).to_contain_text("Query pizza, key une")
        expect(of_second(page, "work").locator("strong").first).to_have_text("mix")
        form = page.locator("form.cu-live").nth(1)
        expect(form).to_be_in_viewport()
        page.evaluate(COPY)
        form.get_by_role("button", name="Copy link").click()
        expect(form.locator("span[role=status]")).to_contain_text("Copied")
        copied = page.evaluate("copied")
        assert "search" not in copied, "what is as it was first is not named"
        page.evaluate(REFUSE)
        form.get_by_role("button", name="Copy link").click()
        link = form.get_by_role("textbox", name="Link to what is shown")
        expect(link).to_have_value(copied)


HANDED_ON = [
    "#live=translator.1&amp;sentence=he's calm .&amp;step=2",
    "#live=translator.1&amp;amp;sentence=he's%20calm%20.&amp;amp;step=2",
    "#live=translator.1&#38;sentence=he's+calm+.&#38;step=2",
    "#live=translator.1%26sentence=he%27s+calm+.%26step=2",
    "#live%3Dtranslator.1%26sentence%3Dhe%27s%20calm%20.%26step%3D2",
    "#live%3Dtranslator.1%2526sentence%3Dhe%252527s%2520calm%2520.%2526step%3D2",
    "#live=translator.1%26amp%3Bsentence=he's calm .%26amp%3Bstep=2",
    "#live=translator.1&sentence=he's calm .&step=2)",
    "#live=translator.1&sentence=he's calm .&step=2.",
    "#live=translator.1&step=2&sentence=he's calm ..",
    "#live=translator.1&sentence=he's calm .&step=2>",
    "#live=translator.1&sentence=he's calm .&step=2*",
    "#live=translator.1&sentence=he's calm .&step=2\u00a0»",
    "#live=3Dtranslator.1&sentence=3Dhe's calm .&step=3D2",
    "#LIVE=Translator.1&Sentence=he's calm .&STEP=2",
    "#live=translator.1&sentence=he's calm .&step=2&utm_source=mail&fbclid=x",
    "#live=translator.1&sentence=he's calm .&step=2?utm_source=mail",
    "?live=translator.1&sentence=he's calm .&step=2",
    "?live%3Dtranslator.1%26sentence%3Dhe%27s%20calm%20.%26step%3D2#top",
]
"""A link as mails, course platforms and trackers hand it on."""


@pytest.mark.smoke
def test_a_link_that_was_handed_on_keeps_its_state(browser, file):
    with live_page(browser, file) as page:
        for end in HANDED_ON:
            page.goto("about:blank")
            page.goto(file.as_uri() + end)
            expect(of_second(page, "said")).to_have_text("il est calme .")
            expect(of_second(page, "next")).to_contain_text("Word 2 of 5")
        for end in ("#explorer=values.1&amp;at=2.5.1.0", "#explorer%3Dvalues.1%26at%3D2.5.1.0."):
            page.goto("about:blank")
            page.goto(file.as_uri() + end)
            told = "number 2, kind f, side right, on False"
            expect(page.locator("form.cu-explorer .cu-caption").nth(1)).to_have_text(told)


def test_a_bad_address_does_no_harm_and_one_of_another_page_changes_nothing(browser, file):
    states = [
        {"map": "7.7"},
        {"map": "<img src=x onerror=alert(1)>"},
        {"kind": "no kind", "search": "99", "step": "-3", "operation": "guess", "cell": "a.b"},
        {"sentence": "<b>he's</b> <script>alert(1)</script>", "cell": "1.1"},
        {"sentence": "x" * 3000, "toString": "1", "elements": "2"},
        {"step": "1e9", "cell": "999999.0"},
        {"sentence": "xyzzy", "map": "9.9"},
        {"forbid": "0,1,2,3,4,5,6,<b>", "line": "0.0,9.9,x,-1.2", "encoder": "7"},
    ]
    with live_page(browser, file) as page:
        form = page.locator("form.cu-live").nth(1)
        for state in states:
            page.goto(f"{file.as_uri()}#{urlencode({'live': 'translator.1'} | state)}")
            assert form.locator("img, b, [data-part=unknown] script").count() == 0
            form.get_by_role("textbox", name="English").fill("i'm home .")
            expect(of_second(page, "said")).to_have_text("je suis chez moi .")
            assert form.locator("[role=grid] td").count() == 6 * 4
        for fragment in ("#live=translator.5", "#live=none.0&map=0.0", "#", "#%E0%A4%A"):
            page.goto(file.as_uri() + fragment)
            expect(part(page, "said")).to_have_text("je suis chez moi .")
            expect(part(page, "table").locator("caption")).to_contain_text("mean of layer 1")


def test_an_explorer_is_restored_and_copied_too(browser, file):
    with live_page(browser, file, "#explorer=values.1&at=2.5.1.0") as page:
        first, second = page.locator("form.cu-explorer").all()
        expect(second.locator(".cu-caption")).to_have_text("number 2, kind f, side right, on False")
        expect(second.get_by_role("radio", name="right")).to_be_checked()
        same = "number 1, kind b, side left, on False"
        expect(first.locator(".cu-caption")).to_have_text(same)
        page.evaluate(COPY)
        second.get_by_role("button", name="Copy link").click()
        expect(second.locator("span[role=status]")).to_contain_text("Copied")
        assert page.evaluate("copied") == page.url
        for bad in ("9.9.9.9", "1", "-1.0.0.0", "a.b.c.d", "0.5.0.0.0", "1.0.0.1e9"):
            page.goto(page.url.split("#")[0] + f"#explorer=values.0&at={bad}")
        expect(first.locator(".cu-caption")).to_have_text(same)
        page.evaluate(REFUSE)
        first.get_by_role("button", name="Copy link").click()
        expect(first.locator("span[role=status]")).to_contain_text("address bar")
        assert page.url.endswith("#explorer=values.0&at=1.1.0.0")
