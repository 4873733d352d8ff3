"""The map in *Start here* shows what book.toml says."""

import re

import pytest

from course_utils.lessons.start_here.course_map import chapters, course_map, direct_needs, ways
from course_utils.studio import manifest

BOOK = """
[[way]]
title = "Seeing"
to = ["05_images"]
planned = ["Films"]

[[chapter]]
notebook = "00_start"
title = "Start"

[[chapter]]
notebook = "01_keys"
title = "Keys"
prerequisites = ["00_start"]

[[chapter]]
notebook = "04_pooling"
title = "Pooling"
prerequisites = ["00_start", "01_keys"]

[[chapter]]
notebook = "05_images"
title = "Images"
prerequisites = ["00_start"]
"""


@pytest.fixture
def book(tmp_path):
    """A manifest of four chapters."""
    (tmp_path / "book.toml").write_text(BOOK)
    return tmp_path / "book.toml"


def test_the_chapters_are_those_of_the_course():
    listed = [(c["number"], c["title"]) for c in chapters()]
    assert listed == [(c.number, c.title) for c in manifest.load(files=False).chapters]


def test_an_arrow_leads_to_a_chapter_from_each_that_it_needs_directly(book):
    course = chapters(book)
    assert course[2] == {"number": "04", "title": "Pooling", "needs": ["00", "01"]}
    assert direct_needs(course) == {"00": [], "01": ["00"], "04": ["01"], "05": ["00"]}


def test_each_chapter_is_drawn_below_what_it_needs_and_named_in_the_alt_text(book):
    picture = course_map(book=book)
    (ax,) = picture.axes
    boxes = {text.get_text()[:2]: text.get_position() for text in ax.texts if text.get_text()}
    arrows = [text for text in ax.texts if not text.get_text()]
    assert boxes["00"][1] > boxes["01"][1] == boxes["05"][1] > boxes["04"][1]
    assert boxes["01"][0] != boxes["05"][0]
    assert len(arrows) == 3
    alt = picture.alt
    assert re.search("00 Start; then 01 Keys and 05 Images; then 04 Pooling", alt)


def test_a_way_holds_all_that_its_chapters_need(book):
    assert ways(book) == {"Seeing": ["00", "05"]}
    needs = {chapter["number"]: set(chapter["needs"]) for chapter in chapters()}
    for numbers in ways().values():
        assert set().union(*(needs[number] for number in numbers)) <= set(numbers)


def test_the_map_of_a_way_marks_its_chapters(book):
    picture = course_map("Seeing", book=book)
    assert picture.alt.endswith("Marked, Seeing: 00, 05.")
    marked = {text.get_text()[:2] for text in picture.axes[0].texts if text.get_color() == "white"}
    assert marked == {"00", "05"}
    with pytest.raises(ValueError, match="'Hearing' is not one of Seeing"):
        course_map("Hearing", book=book)
