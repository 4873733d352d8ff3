"""Numbers to play with, put to the test."""

import pytest
from tiny_book import book

from course_utils.studio import notebooks, vary
from course_utils.studio.__main__ import main

TINY = """\
# %%
import os

# %%
width = 2  # try 0 … 4
kernel = "gaussian"  # try "gaussian" | "boxcar"

# %%
assert os.environ["COURSE_STRICT"] != "1"
12 / (width + WORST)
"""

GUARD = """
# %% tags=["guard"]
import course_utils as cu

with cu.guard("A width of two is two, and this sentence is so long that a narrow table wraps it."):
    assert width == 2
"""


@pytest.fixture
def tiny(tmp_path):
    """A course of one chapter; called with a number, it divides by that number and `width`."""
    (tmp_path / "notebooks" / "source").mkdir(parents=True)
    (tmp_path / "book.toml").write_text(book("00_tiny"))

    def write(worst, more=""):
        source = tmp_path / "notebooks" / "source" / "00_tiny.py"
        source.write_text(TINY.replace("WORST", worst) + more)
        return str(tmp_path / "book.toml")

    return write


@pytest.mark.notebook
def test_each_number_is_tried_and_what_ends_in_an_exception_is_listed(tiny, capsys):
    assert main(["try", "--book", tiny("0")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "3 runs, 1 ended in an exception or against a guard.",
        "00_tiny with width = 0: cell 2: ZeroDivisionError: division by zero",
    ]


@pytest.mark.notebook
def test_a_number_that_sets_off_a_guard_is_listed(tiny, capsys):
    assert main(["try", "--book", tiny("0.5", GUARD)]) == 1
    first, *wrong = capsys.readouterr().out.splitlines()
    assert first == "3 runs, 2 ended in an exception or against a guard."
    assert [line.partition(" (")[0] for line in wrong] == [
        f"00_tiny with width = {width}: cell 3: With the numbers on this page now, this does not hold: "
        "“A width of two is two, and this sentence is so long that a narrow table wraps it.”"
        for width in (0, 4)
    ]
    given = GUARD.replace('wraps it."', 'wraps it.", given=width == 2')
    assert main(["try", "--book", tiny("0.5", given)]) == 0


@pytest.mark.notebook
def test_all_numbers_are_changed_in_one_run(tiny):
    chapter = vary.load(tiny("0"), files=False).chapters[0]
    changes = vary.one_by_one(notebooks.read_source(chapter.source))
    assert [str(change) for change in changes] == ["width = 0", "width = 4", "kernel = 'boxcar'"]
    assert "width = 0, kernel = 'boxcar': cell 2" in vary.failure(chapter, [changes[0], changes[2]])
    tiny("0.5")
    assert vary.failure(chapter, [changes[0], changes[2]]) == ""


def test_the_values_of_one_run_follow_from_the_text(tiny):
    chapter = vary.load(tiny("0"), files=False).chapters[0]
    notebook = notebooks.read_source(chapter.source)
    assert [change.mark.name for change in vary.all_at_once(notebook)] == ["width", "kernel"]
    drawn = set()
    for number in range(40):
        notebook.cells[0].source = f"import os  # {number}"
        assert vary.all_at_once(notebook) == vary.all_at_once(notebook)
        drawn.add(tuple(change.value for change in vary.all_at_once(notebook)))
    assert {value for value, _ in drawn} == {0, 1, 2, 3, 4}
