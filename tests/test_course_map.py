"""The map of the course shows what book.toml says, fits every width, and keeps what was read."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from browsing import come_back
from playwright.sync_api import expect
from tiny_book import book

from course_utils.studio import lab
from course_utils.studio.book.head_and_foot import next_cards
from course_utils.studio.book.pages import STATIC
from course_utils.studio.course_map import CourseMap
from course_utils.studio.manifest import load
from course_utils.studio.paths import legs, next_chapters, spans
from course_utils.studio.place import place, solved
from course_utils.studio.plain_formula import plain_text

COURSE = load(files=False).whole
WHOLE = CourseMap(COURSE)
QUIZ = """<form class=course-quiz data-kind=quiz><fieldset><label><input type=radio>three</label></fieldset></form>
<script>document.querySelector("form input").checked = Boolean(localStorage.answered);
document.querySelector("form").addEventListener("change", () => { localStorage.answered = true; });</script>"""
COVER = "<div hidden><h1>To print</h1></div><article><h1>Cover</h1></article><a class=cu-start href=''>Start</a>"
WAY = """[[path]]
title = "Seeing"
chapters = ["00_start", { chapter = "01_images", sections = ["Patches", "Colors"] }]
"""


def test_a_path_takes_the_minutes_of_its_sections_and_of_what_stands_outside_sections(tmp_path):
    (tmp_path / "book.toml").write_text(book("00_start", "01_images") + WAY)
    (tmp_path / "notebooks" / "source").mkdir(parents=True)
    course = load(tmp_path / "book.toml", files=False)
    titles = ("Opening", "Patches", "Sizes", "Colors", "Take-aways")
    cells = [f"# %% [markdown]\n# ## {title}\n# " + 1200 * "word " for title in titles]
    course.chapters[0].source.write_text(cells[0])
    course.chapters[1].source.write_text("\n\n".join(cells))
    first, second = legs(course)["Seeing"]
    assert (str(first), first.minutes) == ("00", course.chapters[0].minutes)
    assert str(second) == "01 (2, 4)" and second.sections == ("Patches", "Colors")
    assert second.minutes == pytest.approx(3 / 5 * second.chapter.minutes, abs=5)


def test_numbers_of_sections_are_shown_as_spans():
    assert (spans([1, 2, 3]), spans([1, 3, 4, 6])) == ("1–3", "1, 3–4, 6")


def test_each_chapter_is_a_link_with_its_question_and_minutes():
    shown = WHOLE._repr_html_()
    for chapter in COURSE.chapters:
        assert chapter.question.endswith("?")
        link = re.search(rf'<a href="{chapter.notebook}.ipynb">(.*?)</a>', shown)[1]
        assert f"{plain_text(chapter.question)} About {chapter.minutes} minutes." in link
        assert not re.search(r"[$\\]", link), "no TeX on the map"
        assert all(f'href="{page.notebook}.ipynb"' in shown for page in chapter.with_further())


def test_each_part_has_a_line_and_parts_beside_each_other_have_different_colors():
    many = replace(COURSE, parts=tuple("ABCDEFG"))
    colors = re.findall(r'style="--line: var\(--cu-(\w+)\)"', CourseMap(many)._repr_html_())
    assert len(colors) == len(many.parts) and all(a != b for a, b in pairwise(colors))


FIRST = "start_here/one_word"


@pytest.mark.parametrize(
    ("passed", "sentence", "state"),
    [
        ({}, "Begin with [00 · Start here](00_start_here.ipynb).", None),
        ({FIRST: "2026-11-20"}, "of {total} exercises.", "begun"),
        ({"start_here/*": "2026-11-20"}, "Go on with [01 · Queries, keys and values]", "done"),
        ({FIRST: "2026-11-20", "masks/old": "2026-11-21"}, "[04 · Masks](04_masks.ipynb), where", "begun"),
    ],
)  # fmt: skip
def test_the_start_page_of_lab_fills_what_is_solved_and_says_where_to_go_on(
    passed, sentence, state
):
    checks = re.findall(r"^cu\.checks\.(\w+)\(", COURSE.chapters[0].source.read_text("utf-8"), re.M)
    if "start_here/*" in passed:
        passed = {f"start_here/{name}": "2026-11-20" for name in checks}
    assert sentence.format(total=len(set(checks))) in place(COURSE.chapters, passed)
    (first,) = re.findall(
        '<li data-page="00_start_here".*?</a>', CourseMap(COURSE, passed)._repr_html_()
    )
    assert re.findall('data-state="(.*?)"', first) == [state] * bool(state)


def test_the_start_page_of_lab_links_every_appendix():
    text = lab.start_page(COURSE).cells[0].source
    for page in COURSE.appendices:
        assert f"[{page.title}]({page.notebook}.ipynb)" in text


def test_a_way_lists_its_stops_and_what_is_solved_in_their_sections():
    shown = CourseMap(COURSE, {"masks/old": "2026-11-20"})._repr_html_()
    for i, (path, way) in enumerate(legs(COURSE).items()):
        (stops,) = re.findall(f'<section class="cu-map-stops" data-stops="{i}".*?</section>', shown)
        assert f'aria-label="{path}"' in stops
        links = re.findall(r'<li><a href="(\w+)\.ipynb">', stops)
        assert links == [leg.chapter.notebook for leg in way]
        where = "Go on with" if "04_masks" in links else "Begin with"
        assert f"<p>{where} <a href=" in stops
    assert (
        "<p>"
        not in re.findall('<section class="cu-map-stops".*?</section>', WHOLE._repr_html_())[0]
    )


def test_a_way_counts_the_exercises_of_its_sections_alone():
    chapter = COURSE.chapters[3]
    assert solved(chapter, {})[1] > solved(chapter, {}, ["Additive scores"])[1]


SIGNS = """<p class=cu-eyebrow data-ways="To GPT|Kernels">04</p>
<p><span class=cu-way data-ways="To GPT">On the path to GPT: A.</span>
<span class=cu-way data-ways="To images">On the path to images: B.</span></p>
<h2>C</h2><div class=cu-off-way data-ways="To GPT" hidden><p>Not on your path to GPT.</p></div>"""


@pytest.mark.browser
def test_a_page_shows_what_concerns_the_chosen_way(browser, tmp_path):
    script = (STATIC / "course_map.js").read_text()
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{SIGNS}<script>{script}</script>")
    page = browser.new_page()
    for way, seen in {
        "": ["On the path to GPT: A.", "On the path to images: B."],
        "To images": [
            "On the path to GPT: A.",
            "On the path to images: B.",
        ],  # it does not come here
        "To GPT": ["On the path to GPT: A.", "Not on your path to GPT."],
        "Kernels": [],
    }.items():
        page.goto(file.as_uri())
        page.evaluate("way => localStorage.setItem('cu-way', JSON.stringify(way))", way)
        page.reload()
        assert page.locator(":is(.cu-way, .cu-off-way):visible").all_inner_texts() == seen, way
    expect(page.locator("p:visible")).to_have_count(1)  # no empty line where nothing is said
    page.close()


@pytest.mark.browser
def test_what_is_forgotten_leaves_a_sentence_in_its_place_and_nothing_moves(browser, tmp_path):
    file = tmp_path / "index.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{COVER}{WHOLE._repr_html_()}")
    page = browser.new_page()
    page.goto(file.as_uri())
    page.evaluate("localStorage.setItem('cu-place', JSON.stringify('04_masks'))")
    page.reload()
    stations = page.locator("[data-page='04_masks']")
    expect(stations).to_have_attribute("data-here", "")
    before = stations.bounding_box()["y"]
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Forget them").click()
    expect(page.locator(".cu-map .cu-map-place")).to_contain_text("Forgotten.")
    expect(page.locator("[data-here]")).to_have_count(0)
    expect(page.locator(".cu-start")).to_have_text("Start")
    assert abs(stations.bounding_box()["y"] - before) < 2
    page.close()


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_on_any_width_no_name_leaves_its_room_and_the_map_answers(browser, tmp_path, width):
    script = (STATIC / "course_map.js").read_text()
    file = tmp_path / "01_queries_keys_values.html"
    file.write_text(
        "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<body>{COVER}{WHOLE._repr_html_()}<div style='height: 3000px'></div><h2 id=take-aways>End</h2>{QUIZ}"
        "<style>svg { width: 100% }</style>"
        f"{next_cards(next_chapters(COURSE, COURSE.chapters[1]))}<script>{script}</script>"
    )
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    crossing = page.locator(".cu-map-lines > li > ol > li").evaluate_all(
        """items => items.flatMap(item => [...item.querySelectorAll('span, small, .cu-map-further')].filter(word => {
            const [room, filled] = [item, word].map(each => each.getBoundingClientRect());
            return filled.right > room.right + 1 || word.scrollWidth > word.offsetWidth + 1;
        }).map(word => word.textContent))"""
    )
    assert crossing == []
    off = page.locator("[data-off]")
    way = page.get_by_role("button", name="Kernels")
    way.click()
    expect(off).to_have_count(len(COURSE.chapters) - 4)
    expect(page.locator(".cu-map-said")).to_have_text(re.compile("^00 → .*02 → 03$"))
    stops = legs(COURSE)["Kernels"]
    expect(page.locator(".cu-map-stops:visible li")).to_have_count(len(stops))
    way.click()
    expect(off).to_have_count(0)
    onwards = page.locator(".cu-next:visible small")
    expect(onwards).to_have_text("Next: 02")
    page.get_by_role("button", name=re.compile("^To GPT")).click()
    page.mouse.move(0, 0)  # or a station below the pointer would be explained
    if width > 736:
        page.locator("[data-number='13'] a").first.focus()
        expect(page.locator(".cu-map-said")).to_contain_text("It needs 10.")
        assert page.locator("[data-needed]").get_attribute("data-number") == "10"
    state = page.locator("[data-state]")
    assert state.count() == 0
    page.locator("#take-aways").scroll_into_view_if_needed()
    page.wait_for_function("localStorage.getItem('cu-progress')")
    page = come_back(page, "[data-state=begun]")  # a question waits
    state, onwards = page.locator("[data-state]"), page.locator(".cu-next:visible small")
    expect(state).to_have_attribute("data-number", "01")
    expect(page.get_by_role("button", name=re.compile("^To GPT"))).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(onwards).to_have_text(re.compile("^Next: 0\\d · To GPT$"))
    expect(page.locator(".cu-map .cu-map-place a")).to_have_text("01 · Queries, keys and values")
    expect(page.locator("article h1 + p")).to_contain_text("Welcome back. Go on with 01")
    expect(page.locator("[data-here]")).to_have_attribute("data-number", "01")
    page.get_by_label("three").check()
    page = come_back(page, "[data-state=done]")
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Keep them").click()
    assert page.evaluate("localStorage.getItem('cu-way')"), "it asks first"
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Forget them").click()
    expect(page.locator(".cu-map .cu-map-place")).to_contain_text("Forgotten.")
    assert page.evaluate("localStorage.getItem('cu-way')") is None
    context.close()
