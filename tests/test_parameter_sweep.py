"""Numbers that a reader may change: how they are marked, and that no value breaks a chapter."""

import pytest
from nbclient.exceptions import CellExecutionError

from course_utils.studio import manifest
from course_utils.studio.manifest import Chapter
from course_utils.studio.parameter_sweep import broken_claims, parameters

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
    cells = [cell for chapter in CHAPTERS for cell in chapter.content.code]
    assert sum(len(parameters(cell.source)) for cell in cells) > 3 * len(CHAPTERS)


@pytest.mark.nightly
@pytest.mark.notebook
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.notebook)
def test_with_all_marked_numbers_changed_nothing_is_raised_and_every_guard_holds(chapter):
    assert broken_claims(chapter) == []
