"""The pages on accessibility and privacy are true: the cover is looked at at every push, all pages every night."""

import re

import pytest
from audit import STORED, Findings, look
from browsing import opened

from course_utils.files import ROOT
from course_utils.studio import manifest
from course_utils.studio.book import pages

NAMES = pages.names(manifest.load(files=False))
PRIVACY = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^\| (`[^|]*) \|", PRIVACY, re.MULTILINE)
KEPT = [
    re.escape(name).replace("…", ".*") for entry in ENTRIES for name in re.findall("`(.*?)`", entry)
]


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("index", marks=pytest.mark.smoke), *NAMES[1:]])
def test_a_page_is_for_everyone_asks_nobody_and_keeps_nothing(browser, address, name):
    assert look(browser, address, name) == Findings([], [])


@pytest.mark.slow
def test_what_a_page_keeps_when_it_is_used_is_what_the_page_on_privacy_names(browser, address):
    with opened(browser, address) as page:
        page.goto("/01_queries_keys_values.html")
        wrong = page.locator(".course-quiz label")
        for place in range(wrong.count()):
            wrong.nth(place).dispatch_event("click")
        page.locator("#take-aways").scroll_into_view_if_needed()
        page.wait_for_function("localStorage.getItem('cu-progress')")
        page.locator(".theme-switch-button").first.click()
        page.goto("/search.html?q=softmax")
        page.locator("#search-results a").first.click()
        page.goto("/index.html")
        kept = page.evaluate(STORED)
        assert not page.context.cookies()
    assert {"cu-progress", "cu-place", "mode"} <= set(kept) and any(
        name.startswith("course-quiz/") for name in kept
    )
    assert [name for name in kept if not any(re.fullmatch(known, name) for known in KEPT)] == []
