"""The built book in a real browser whose network ends at this machine."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browsing import opened, run_together
from bs4 import BeautifulSoup
from playwright.sync_api import Page, expect

from course_utils.files import ROOT
from course_utils.studio import manifest
from course_utils.studio.book import pages

COURSE = manifest.load(files=False)
NAMES = pages.names(COURSE)
CHAPTERS = [chapter.notebook for chapter in COURSE.chapters]
NOTEBOOKS = [notebook.notebook for notebook in COURSE.notebooks]
"""Chapters, their further pages, and the appendices."""
EVERY_PUSH = {"01_queries_keys_values", "13_gpt"}
"""Chapters that between them have each kind of piece; `make nightly` opens all notebooks."""


@pytest.fixture
def page(browser, address):
    with opened(browser, address) as page:
        yield page


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.smoke if name in EVERY_PUSH else ())
        for name in NOTEBOOKS
    ],
)
def notebook(request, browser, address):
    """The page of each notebook, opened once for all tests that ask for it."""
    with opened(browser, address) as page:
        assert page.goto(f"/{request.param}.html").ok
        yield page


def test_no_reason_of_a_prediction_can_be_read_or_found_before_it_is_made(book):
    index = (book / "searchindex.js").read_text(encoding="utf-8")
    assert not (book / "_sources").exists()
    reasons = []
    for name in NOTEBOOKS:
        page = BeautifulSoup((book / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        text = page.get_text() + index
        tasks = [json.loads(ask["data-task"]) for ask in page.select(".cu-predict")]
        given = [why for task in tasks for why in (task["why"], *task.get("reasons", ())) if why]
        assert not [why for why in given if why[:40] in text], name
        reasons += given
    assert len(reasons) > 2 * len(CHAPTERS)


def test_no_name_of_a_button_or_a_link_runs_together(book):
    names = {
        page.stem: run_together(page.read_text(encoding="utf-8")) for page in book.glob("*.html")
    }
    assert {stem: pairs for stem, pairs in names.items() if pairs} == {}


def stem(page: Page) -> str:
    """The name of the notebook that a page shows."""
    return Path(urlsplit(page.url).path).stem


def test_formulas_are_set_by_mathjax(notebook: Page):
    written = notebook.locator("article .math").count()
    assert written or stem(notebook) not in CHAPTERS, "each chapter has a formula"
    expect(notebook.locator("article .math > mjx-container")).to_have_count(written, timeout=30_000)
    assert notebook.locator("mjx-merror").count() == 0


def unveil(notebook: Page) -> None:
    """Lift the veils before the results of a page's predictions."""
    buttons = notebook.locator(".cu-predict .show-me:visible")
    while buttons.count():  # each is gone once its prediction is made
        buttons.first.click()


def test_controls_move_by_keyboard_and_the_picture_follows(notebook: Page):
    unveil(notebook)
    explorers = notebook.locator("article .cu-explorer")
    made = (ROOT / "notebooks" / "source" / f"{stem(notebook)}.py").read_text(encoding="utf-8")
    assert bool(explorers.count()) == ("\ncu.explore." in made)
    for explorer in explorers.all():
        sliders, picture = explorer.locator("input[type=range]"), explorer.locator("img")
        before, alt = picture.get_attribute("src"), picture.get_attribute("alt")
        if sliders.count():
            sliders.first.focus()
            at_end = sliders.first.evaluate("s => s.value === s.max")
            notebook.keyboard.press("Home" if at_end else "End")
        elif explorer.locator("select").count():
            explorer.locator("select").first.focus()
            notebook.keyboard.press("ArrowDown")
        else:  # a choice among few
            explorer.locator("input[type=radio]:checked").first.focus()
            notebook.keyboard.press("ArrowRight")
        expect(picture).not_to_have_attribute("src", before)
        expect(picture).not_to_have_attribute("alt", alt)
        expect(picture).to_have_attribute("alt", re.compile(r"\S"))
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0


CUT = """() => {
    const width = document.documentElement.clientWidth;
    const scrolls = (node) => ["auto", "scroll", "hidden"].includes(getComputedStyle(node).overflowX);
    const held = (node) => node.tagName !== "ARTICLE" && (scrolls(node) || held(node.parentElement));
    return [...document.querySelectorAll("article *:not(svg *, mjx-container *)")].filter(node => {
        const { left, right, height } = node.getBoundingClientRect();
        return height > 1 && (right > width + 1 || left < -1) && node.checkVisibility() && !held(node.parentElement);
    }).map(node => `${node.tagName}.${node.className}`);
}"""
"""What stands beyond the edge of the window, and not in a part that scrolls."""


def test_nothing_is_cut_at_any_width(notebook: Page):
    unveil(notebook)
    before = notebook.viewport_size
    for width in (320, 390, 768, 1280, 1920):
        notebook.set_viewport_size({"width": width, "height": 900})
        notebook.evaluate(
            "() => Promise.allSettled(document.getAnimations().map(each => each.finished))"
        )
        assert notebook.evaluate(CUT) == [], width
        cut = "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"
        if width > 390:
            assert notebook.locator(".cell_input pre:visible").evaluate_all(cut) == [], width
        assert notebook.evaluate("document.documentElement.scrollWidth") <= width
    notebook.set_viewport_size(before)


@pytest.mark.smoke
def test_what_can_be_pushed_on_a_phone_has_a_shade_and_folds_are_open_on_paper(page: Page):
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto("/17_diffusion.html")
    formula = page.locator("div.math > mjx-container[data-scrolled]").first
    expect(formula).to_have_css("background-image", re.compile("linear-gradient"))
    for name in (".cu-figure", ".pst-scrollable-table-container", ".cell_input pre"):
        pushed = page.locator(f"article {name}[data-scrolled]:visible").first
        expect(pushed).to_have_css("background-image", re.compile("linear-gradient"))
    closed = page.locator("article details:not([open], .cu-links *, .tag_hide-input > *)")
    before = closed.count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(closed).to_have_count(0)
    assert page.locator("article .cu-links details:not([open])").count()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(closed).to_have_count(before)
    assert before > 3


@pytest.mark.smoke
def test_search_finds_softmax(page: Page):
    page.goto("/search.html?q=softmax")
    results = page.locator("#search-results a")
    expect(results.first).to_be_visible(timeout=15_000)
    targets = results.evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert any(name in target for name in CHAPTERS for target in targets)


@pytest.mark.smoke
def test_the_search_shows_sections_while_one_types_and_loads_no_page(page: Page):
    page.goto("/accessibility.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("padding")
    results = page.locator("#pst-search-dialog #search-results")
    expect(results.locator("a").first).to_have_attribute(
        "href", re.compile("^(./)?04_masks.html.found#")
    )
    expect(results.locator("a")).to_have_count(8)
    assert urlsplit(page.url).path == "/accessibility.html"
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/search\.html\?q=padding"))


@pytest.mark.smoke
def test_the_cover_leads_to_every_chapter_and_a_chapter_to_the_next(page: Page):
    page.goto("/")
    for chapter in COURSE.chapters:
        expect(page.locator(f'article a[href="{chapter.notebook}.html"]').first).to_be_visible()
    page.goto(f"/{NAMES[1]}.html")
    page.locator("article a.cu-next:visible").click()
    expect(page).to_have_url(re.compile(f"/{NAMES[2]}\\.html$"))
