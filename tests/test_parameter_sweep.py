"""Numbers that a reader may change: how they are marked, and that no value breaks a chapter."""

import random

import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from course_utils.studio import manifest
from course_utils.studio.manifest import Chapter
from course_utils.studio.parameter_sweep import broken_claims, change, parameters

MARKED = """\
width = 0.5  # try 0.1 … 10
steps = 40  # try 10 … 200
kernel = "gaussian"  # try "gaussian" | "boxcar"
shift = -1.5  # try -3 … 0
print("# try 1 … 2")
"""
GUARDED = """\
# %%
import course_utils as cu

width = 1.0  # try 2.0 | 1.0

# %%
with cu.guard("A width of one is one, and this sentence is so long that a narrow table wraps it."):
    assert {condition}
"""


def test_drawn_values_stay_in_their_range_and_come_to_its_ends():
    chance = random.Random(0)
    width, steps, kernel, shift = parameters(MARKED)
    for parameter, low, high in ((width, 0.1, 10), (steps, 10, 200), (shift, -3, 0)):
        drawn = [parameter.draw(chance) for _ in range(100)]
        assert min(drawn) == low and max(drawn) == high
        assert len(set(drawn)) > 20
        assert {type(value) for value in drawn if low < value < high} == {type(parameter.value)}
    assert {kernel.draw(chance) for _ in range(20)} == {"gaussian", "boxcar"}


def test_the_values_of_one_run_follow_from_the_text_and_stand_in_it():
    first, again, other = (
        new_notebook(cells=[new_code_cell(text)]) for text in (MARKED, MARKED, f"{MARKED}# 2")
    )
    assert (changes := change(first)) == change(again) != change(other)
    *lines, last = first.cells[0].source.splitlines()
    assert lines == changes and last == 'print("# try 1 … 2")'


@pytest.mark.parametrize(
    "wrong",
    [
        "width = 0.5  # try 0.1",
        "width = 4  # try 1.5 … 10",
        "width = 0.5  # try 2 … 3",
        'width = 0.5  # try "box" | "cos"',
        "width = x  # try 1 … 2",
        "print(1)  # try 1 … 2",
    ],
)
def test_a_mark_that_promises_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match='write "name = 0.5  # try'):
        parameters(wrong)


@pytest.mark.notebook
def test_a_run_with_other_values_finds_guards_and_exceptions(tmp_path):
    chapter = Chapter("00_tiny", "Tiny", root=tmp_path)
    chapter.source.parent.mkdir(parents=True)
    for condition, holds in (("width > 0", True), ("width == 0", False)):
        chapter.source.write_text(GUARDED.format(condition=condition))
        found = broken_claims(chapter)
        assert not found if holds else "narrow table wraps it" in found[0] and "width =" in found[1]
    chapter.source.write_text(MARKED + "\n# %%\n1 / 0")
    with pytest.raises(CellExecutionError) as caught:
        broken_claims(chapter)
    assert caught.value.__notes__[0].startswith("width = ")


CHAPTERS = manifest.load(files=False).chapters


def test_every_mark_of_the_course_can_be_read():
    cells = [cell for page in CHAPTERS for cell in page.page.code]
    assert sum(len(parameters(cell.source)) for cell in cells) > 3 * len(CHAPTERS)


@pytest.mark.nightly
@pytest.mark.notebook
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.notebook)
def test_with_all_marked_numbers_changed_nothing_is_raised_and_every_guard_holds(chapter):
    assert broken_claims(chapter) == []
