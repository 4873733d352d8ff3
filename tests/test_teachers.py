"""A page for teachers on each chapter: of one form, short, in the book, and in no handout."""

import re

import pytest

from course_utils.files import ROOT
from course_utils.studio import handout, manifest
from course_utils.studio.book import pages

COURSE = manifest.load(files=False)
FOLDER = ROOT / "docs" / "chapters"
HEADINGS = [
    "Goal",
    "Where students stumble",
    "Three questions to discuss",
    "A board plan for ten minutes",
]


@pytest.mark.parametrize("chapter", COURSE.chapters, ids=lambda chapter: chapter.slug)
def test_each_chapter_has_its_page_with_goal_slips_questions_and_a_board_plan(chapter):
    text = (FOLDER / f"{chapter.slug}.md").read_text(encoding="utf-8")
    title, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    assert title.strip() == f"# For teachers: {chapter.title.partition(':')[0]}"
    found = {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}
    assert list(found) == HEADINGS and all(found.values())
    assert len(text.split()) <= 350
    _, slips, questions, board = found.values()
    assert len(re.findall(r"^- \*\*", slips, re.MULTILINE)) >= 3
    asked = re.findall(r"^(\d)\. (\*.+?\*|\*.+?)", questions, re.MULTILINE)
    assert [number for number, _ in asked] == ["1", "2", "3"]
    assert "$$" in board


def test_no_page_is_about_a_chapter_that_is_not_there_and_all_stand_in_the_book():
    named = {chapter.slug for chapter in manifest.load(files=False).chapters}
    assert COURSE.left_out or {file.stem for file in FOLDER.glob("*.md")} == named
    shown = set(pages.texts(COURSE).values())
    assert {FOLDER / f"{slug}.md" for slug in named} <= shown


def test_no_handout_holds_what_is_for_teachers():
    assert not [part for part in handout.PARTS if part.startswith("docs")]
