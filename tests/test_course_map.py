"""The map of the course shows what book.toml says, fits every width, and keeps what was read."""

import re

import pytest
from playwright.sync_api import expect

from course_utils.studio.book.pages import STATIC
from course_utils.studio.course_map import all_needs, course_map, ways
from course_utils.studio.manifest import load

BOOK = """
[course]
title = "T"
authors = ["A"]
license = "L"
repository = ""

[[part]]
title = "One"

[[part]]
title = "Two"

[[way]]
title = "Seeing"
to = ["05_images"]
""" + "".join(
    f'[[chapter]]\nnotebook = "{stem}"\ntitle = "{stem}"\npart = "{part}"\nprerequisites = {needs}\n'
    for stem, part, needs in (
        ("00_start", "One", "[]"),
        ("01_keys", "One", '["00_start"]'),
        ("04_pooling", "Two", '["00_start", "01_keys"]'),
        ("05_images", "Two", '["00_start"]'),
    )
)


def test_a_way_holds_all_that_its_chapters_need(tmp_path):
    (tmp_path / "book.toml").write_text(BOOK)
    course = load(tmp_path / "book.toml", files=False)
    assert all_needs(course)["04_pooling"] == {"00_start", "01_keys"}
    assert {t: [c.number for c in on] for t, on in ways(course).items()} == {"Seeing": ["00", "05"]}


def test_each_chapter_is_a_link_with_its_question_and_minutes():
    course, shown = load(files=False), course_map()._repr_html_()
    for chapter in course.chapters:
        assert chapter.question.endswith("?")
        link = re.search(rf'<a href="{chapter.notebook}.ipynb">(.*?)</a>', shown)[1]
        assert f"{chapter.question} About {chapter.minutes} minutes." in link
        assert all(f'href="{page.notebook}.ipynb"' in shown for page in chapter.pages())


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_on_any_width_no_name_leaves_its_room_and_the_map_answers(browser, tmp_path, width):
    script = (STATIC / "course_map.js").read_text()
    file = tmp_path / "01_queries_keys_values.html"
    file.write_text(
        "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<body>{course_map()._repr_html_()}<div style='height: 3000px'></div><h2 id=take-aways>End</h2>"
        f"<script>{script}</script>"
    )
    page = browser.new_page(viewport={"width": width, "height": 800})
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
    expect(off).to_have_count(14)
    way.click()
    expect(off).to_have_count(0)
    if width > 736:
        page.locator("[data-number='13'] a").first.focus()
        expect(page.locator(".cu-map-said")).to_contain_text("It needs 10.")
        assert page.locator("[data-needed]").get_attribute("data-number") == "10"
    assert page.locator("[data-read]").count() == 0
    page.locator("#take-aways").scroll_into_view_if_needed()
    page.wait_for_function("localStorage.getItem('cu-read')")
    for _ in range(20):  # another process keeps it, and takes its time
        page.wait_for_timeout(500)
        page.reload()
        if page.locator("[data-read]").count():
            break
        page.locator("#take-aways").scroll_into_view_if_needed()
    assert page.locator("[data-read]").get_attribute("data-number") == "01"
    page.close()
