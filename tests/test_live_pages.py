"""Live models on the pages of the built book: in Chromium and Firefox, from a server and from a file."""

from contextlib import nullcontext

import pytest
from audit import CONTRAST, WCAG, broken_rules
from browsing import opened
from firefox import running
from playwright.sync_api import expect
from stored_models import ALL_ANSWERED

from course_utils.studio import manifest

pytestmark = pytest.mark.browser

FORMS = "article form.cu-live"

COME_NEAR = """(async () => {
    for (const form of document.querySelectorAll("article form.cu-live")) {
        form.scrollIntoView();
        while (!form.dataset.ready) await new Promise((done) => setTimeout(done, 20));
        const { checkpoint } = form.elements;
        for (let place = Number(checkpoint?.max) - 1; place >= 0; place -= 1) {
            checkpoint.value = place;
            checkpoint.dispatchEvent(new Event("input", { bubbles: true }));
            const said = form.querySelector("[data-part=checkpoint]");
            while (!said.textContent.includes("perplexity")) await new Promise((done) => setTimeout(done, 20));
        }
    }
    return document.querySelectorAll("article form.cu-live").length;
})()"""

CHAPTERS = manifest.load(files=False).notebooks
NAMES = ["index", *(c.notebook for c in CHAPTERS if "cu.live." in c.source.read_text("utf-8"))]
"""The pages with a live model."""

EVERY_PUSH = {"index", "11_translating"}


@pytest.fixture(
    scope="module",
    params=[pytest.param(n, marks=pytest.mark.smoke if n in EVERY_PUSH else ()) for n in NAMES],
)
def near(request, browser, address):
    """Each page with live models, opened once for all tests that ask for it; a reader came near to each model."""
    with opened(browser, address) as page:
        page.goto(f"/{request.param}.html")
        if page.locator(FORMS).first.bounding_box()["y"] > 3000:
            assert page.locator("script[src*='live/']").count() == 0  # nobody came near yet
        assert page.evaluate(COME_NEAR) == page.locator(FORMS).count()
        yield page


NETWORKS = """Object.entries(globalThis.live_bundles ?? {}).flatMap(([name, bundle]) => bundle.tensors ? [name] : [])"""
"""What a page has loaded to compute with; a bundle without tensors is shown as it was drawn."""


def answer(evaluate) -> None:
    """All networks of a page answer as PyTorch did."""
    networks = evaluate(NETWORKS)
    answers = dict(evaluate(ALL_ANSWERED)) if networks else {}
    assert answers.keys() == set(networks), "a network without answers of PyTorch's"
    for name, found in answers.items():
        assert len(found) == 3, name
        assert all(is_same and far < 1e-4 for is_same, far in found), (name, found)


def test_the_pages_with_a_live_model_are_known(book):
    form = '<form class="cu-live"'
    assert {f.stem for f in book.glob("*.html") if form in f.read_text("utf-8")} == set(NAMES)


@pytest.mark.parametrize(
    ("bundle", "is_network"), [({"frames": 60}, False), ({"tensors": {}}, True)]
)
def test_a_network_that_ships_no_answers_is_found(browser, bundle, is_network):
    with opened(browser, "http://127.0.0.1") as page:
        page.evaluate("bundle => { globalThis.live_bundles = { bundle }; }", bundle)
        with pytest.raises(AssertionError) if is_network else nullcontext():
            answer(page.evaluate)


def test_a_live_model_answers_as_pytorch_did_and_is_for_everyone(near):
    """WCAG 2.1 AA, as far as axe-core can tell, and contrast in the dark, too; at rest, for words fade in."""
    answer(near.evaluate)
    near.emulate_media(reduced_motion="reduce")
    assert broken_rules(near, WCAG, FORMS) == []
    near.emulate_media(color_scheme="dark")
    expect(near.locator("html")).to_have_attribute("data-theme", "dark")
    assert broken_rules(near, CONTRAST, FORMS) == []


def test_a_live_model_answers_from_a_file(browser, book):
    for name in NAMES:
        with opened(browser, "http://127.0.0.1") as page:
            page.goto((book / f"{name}.html").as_uri())
            assert page.evaluate(COME_NEAR) == page.locator(FORMS).count()
            answer(page.evaluate)


@pytest.mark.skipif("11_translating" not in NAMES, reason="chapter 11 is left out")
def test_a_sentence_that_is_written_is_translated(browser, address):
    with opened(browser, address) as page:
        page.goto("/11_translating.html")
        form = page.locator(f"{FORMS}[data-live=translator]").first
        form.scroll_into_view_if_needed()
        expect(form).to_have_attribute("data-ready", "true")
        form.get_by_role("textbox").fill("He's calm.")
        expect(form.locator("[data-part=said]")).to_have_text("il est calme .")


@pytest.fixture(scope="module")
def fox(firefox, tmp_path_factory):
    with running(firefox, tmp_path_factory.mktemp("profile")) as fox:
        yield fox


@pytest.mark.parametrize("way", ["http", "file"])
def test_a_live_model_answers_as_pytorch_did_in_firefox(fox, address, book, way: str):
    fox.errors.clear()
    for name in NAMES:
        file = f"{name}.html"
        fox.open(f"{address}/{file}" if way == "http" else (book / file).as_uri())
        assert fox.evaluate(COME_NEAR) >= 1
        answer(fox.evaluate)
        assert fox.errors == [], name
