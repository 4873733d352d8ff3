"""The built book in a real browser whose network ends at this machine."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import matplotlib as mpl
import pytest
from browsing import opened
from bs4 import BeautifulSoup
from playwright.sync_api import Page, expect

from course_utils.figures.style import ROLES
from course_utils.files import ROOT
from course_utils.studio import manifest
from course_utils.studio.book import pages

COURSE = manifest.load(files=False)
NAMES = pages.names(COURSE)
CHAPTERS = [chapter.notebook for chapter in COURSE.chapters]
EVERY_PUSH = {"01_queries_keys_values", "13_gpt"}
"""Chapters that between them have each kind of piece; `make nightly` opens all."""


@pytest.fixture
def page(browser, address):
    with opened(browser, address) as page:
        yield page


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.smoke if name in EVERY_PUSH else ())
        for name in CHAPTERS
    ],
)
def chapter(request, browser, address):
    """The page of each chapter, opened once for all tests that ask for it."""
    with opened(browser, address) as page:
        assert page.goto(f"/{request.param}.html").ok
        yield page


def test_no_reason_of_a_prediction_can_be_read_or_found_before_it_is_made(book):
    index = (book / "searchindex.js").read_text(encoding="utf-8")
    assert not (book / "_sources").exists()
    reasons = []
    for name in CHAPTERS:
        page = BeautifulSoup((book / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        text = page.get_text() + index
        tasks = [json.loads(ask["data-task"]) for ask in page.select(".cu-predict")]
        given = [why for task in tasks for why in (task["why"], *task.get("reasons", ())) if why]
        assert not [why for why in given if why[:40] in text], name
        reasons += given
    assert len(reasons) > 2 * len(CHAPTERS)


def test_formulas_are_set_by_mathjax(chapter: Page):
    written = chapter.locator("article .math").count()
    assert written, "each chapter has a formula"
    expect(chapter.locator("article .math > mjx-container")).to_have_count(written, timeout=30_000)
    assert chapter.locator("mjx-merror").count() == 0


def test_controls_move_by_keyboard_and_the_picture_follows(chapter: Page):
    explorers = chapter.locator("article .cu-explorer")
    name = Path(urlsplit(chapter.url).path).stem
    made = (ROOT / "notebooks" / "source" / f"{name}.py").read_text(encoding="utf-8")
    assert bool(explorers.count()) == ("\ncu.explore." in made)
    for explorer in explorers.all():
        sliders, picture = explorer.locator("input[type=range]"), explorer.locator("img")
        before, alt = picture.get_attribute("src"), picture.get_attribute("alt")
        if sliders.count():
            sliders.first.focus()
            at_end = sliders.first.evaluate("s => s.value === s.max")
            chapter.keyboard.press("Home" if at_end else "End")
        elif explorer.locator("select").count():
            explorer.locator("select").first.focus()
            chapter.keyboard.press("ArrowDown")
        else:  # a choice among few
            explorer.locator("input[type=radio]:checked").first.focus()
            chapter.keyboard.press("ArrowRight")
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


def test_nothing_is_cut_at_any_width(chapter: Page):
    before = chapter.viewport_size
    for width in (320, 390, 768, 1280):
        chapter.set_viewport_size({"width": width, "height": 900})
        chapter.evaluate(
            "() => Promise.allSettled(document.getAnimations().map(each => each.finished))"
        )
        assert chapter.evaluate(CUT) == [], width
        assert chapter.evaluate("document.documentElement.scrollWidth") <= width
    chapter.set_viewport_size(before)


def test_what_moves_or_is_seen_first_stands_on_the_first_screen(chapter: Page):
    """At 900 pixels from the top at most."""
    top = "node => node.getBoundingClientRect().top + scrollY"
    assert chapter.locator("#opening").evaluate(top) <= 900


@pytest.mark.smoke
def test_search_finds_softmax(page: Page):
    page.goto("/search.html?q=softmax")
    results = page.locator("#search-results a")
    expect(results.first).to_be_visible(timeout=15_000)
    targets = results.evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert any(name in target for name in CHAPTERS for target in targets)


@pytest.mark.smoke
def test_the_cover_leads_to_every_chapter_and_a_chapter_to_the_next(page: Page):
    page.goto("/")
    for chapter in COURSE.chapters:
        expect(page.locator(f'article a[href="{chapter.notebook}.html"]').first).to_be_visible()
    page.goto(f"/{NAMES[1]}.html")
    page.locator("article a.cu-next").click()
    expect(page).to_have_url(re.compile(f"/{NAMES[2]}\\.html$"))


OUTSIDE = """() => [...document.querySelectorAll(".cu-figure svg")].flatMap(svg => {
    const canvas = svg.getBoundingClientRect(), slack = 1.5;
    const boxes = [...svg.querySelectorAll("rect[stroke]:not([stroke-dasharray])")].map(r => r.getBoundingClientRect());
    return [...svg.querySelectorAll("text")].filter(text => {
        const word = text.getBoundingClientRect();
        const [x, y] = [(word.left + word.right) / 2, (word.top + word.bottom) / 2];
        const around = [canvas, ...boxes.filter(b => b.left < x && x < b.right && b.top < y && y < b.bottom)];
        return around.some(b => word.left < b.left - slack || word.right > b.right + slack
            || word.top < b.top - word.height / 4 || word.bottom > b.bottom + word.height / 4);
    }).map(text => text.textContent);
})"""
"""The words of pictures and drawings that reach over their box or their picture; a line is higher than its letters."""


@pytest.mark.parametrize("font", ["", "monospace", "serif"])
def test_words_lie_in_their_boxes_and_pictures_with_and_without_the_fonts(browser, address, font):
    with opened(browser, address) as page:
        for name in CHAPTERS[:3]:
            page.goto(f"/{name}.html")
            page.evaluate("document.fonts.ready")
            if font:
                page.add_style_tag(content=f".cu-figure svg {{ font-family: {font} !important; }}")
            assert page.locator(".cu-figure svg text").count()
            assert page.evaluate(OUTSIDE) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_stand_on_the_page_s_ground_in_its_ink(browser, address, theme):
    with opened(browser, address, color_scheme=theme) as page:
        page.goto(f"/{CHAPTERS[1]}.html")
        figures = page.locator("article .cu-figure svg")
        assert figures.count()
        for figure in figures.all():
            expect(figure).to_have_css("background-color", "rgba(0, 0, 0, 0)")
        ink = mpl.colors.to_rgb(ROLES["ink"][theme == "dark"])
        wanted = "rgb({:.0f}, {:.0f}, {:.0f})".format(*(255 * value for value in ink))
        expect(page.locator('.cu-figure [fill="var(--cu-ink)"]').first).to_have_css("fill", wanted)


STANDS = """([name, wanted]) => [...document.querySelectorAll("form.cu-live, form[data-explorer]")].some(toy => {
    const live = toy.matches(".cu-live") && toy.elements[name];
    if (live) return [live.value, live.checked].map(String).includes(wanted);
    const named = group => group.querySelector(".cu-label, legend").textContent.trim() === name;
    const chosen = [...toy.querySelectorAll("[data-count]")].find(named)?.querySelector("output, label:has(:checked)");
    return chosen?.textContent.trim() === wanted;
})"""


def test_what_a_prediction_asks_for_a_toy_of_its_page_shows(chapter: Page):
    for ask in chapter.locator(".cu-predict").all():
        shows = json.loads(ask.get_attribute("data-task")).get("shows", {})
        if shows:
            if (handle := ask.locator("[type=range]")).count():
                handle.press("ArrowRight")
            ask.locator("button").first.click()
            ask.get_by_role("button", name="See it move").click()
        for name, wanted in shows.items():
            wanted = str(wanted).lower() if isinstance(wanted, bool) else str(wanted)
            chapter.wait_for_function(STANDS, arg=[name, wanted])
