"""No edit is lost: it reaches the other file of a pair; two edits, and what a source cannot hold, are refused."""

import nbformat
import pytest
from nbformat.v4 import new_output
from tiny_book import book

from course_utils.studio import manifest, pairs
from course_utils.studio.__main__ import main

SOURCE = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A chapter
#
# With prose.

# %% tags=["exercise"]
def answer():
    pass


# %%
print(6 * 7)

# %% [markdown]
# The end.
"""


class Course:
    """A course of one pair, as `make notebooks` leaves it."""

    def __init__(self, root):
        self.root = root
        self.source, self.ipynb = root / "notebooks/source/00_a.py", root / "notebooks/00_a.ipynb"
        self.source.parent.mkdir(parents=True)
        (root / "book.toml").write_text(book("00_a"))
        self.source.write_text(SOURCE)
        notebook = pairs.read_source(self.source)
        notebook.cells[2].execution_count = 1
        notebook.cells[2].outputs = [new_output("stream", text="42\n")]
        pairs.write(notebook, self.ipynb)

    def in_notebook(self, old, new, **metadata):
        """Edit the notebook, and it alone, as Lab does."""
        notebook = nbformat.read(self.ipynb, as_version=4)
        (cell,) = [cell for cell in notebook.cells if old in cell.source]
        cell.source = cell.source.replace(old, new)
        cell.metadata.update(metadata)
        notebook.metadata.language_info["version"] = "3.11.9"
        nbformat.write(notebook, self.ipynb)

    def in_source(self, old, new):
        assert old in self.source.read_text()
        self.source.write_text(self.source.read_text().replace(old, new))

    def sync(self, *chapters):
        return main(["--book", str(self.root / "book.toml"), "sync", *chapters])

    @property
    def halves(self):
        return self.source.read_text(), self.ipynb.read_text()


@pytest.fixture
def course(tmp_path):
    return Course(tmp_path)


def test_where_nobody_has_edited_nothing_is_written(course, capsys):
    before = course.halves
    assert course.sync() == 0
    assert course.halves == before and capsys.readouterr().out == ""


def test_an_edit_in_lab_changes_its_lines_of_the_source_and_no_others(course, capsys):
    course.in_notebook("pass", "return 42", tags=["exercise", "build"])
    assert course.sync("00") == 0
    assert course.source.read_text() == SOURCE.replace("pass", "return 42").replace(
        '["exercise"]', '["exercise", "build"]'
    )
    assert capsys.readouterr().out == "00_a.py follows 00_a.ipynb\n"
    assert "3.11.9" not in course.ipynb.read_text()


def test_an_edit_of_the_source_reaches_the_notebook_and_leaves_the_other_outputs(course):
    course.in_source("pass", "return 42")
    assert course.sync() == 0
    cells = nbformat.read(course.ipynb, as_version=4).cells
    assert "return 42" in cells[1].source and cells[2].outputs[0].text == "42\n"


def test_blank_lines_of_a_source_are_no_edit_of_its_notebook(course):
    course.in_source("pass\n\n\n", "return 42\n\n")
    assert course.sync() == 0
    assert not pairs.is_edited(nbformat.read(course.ipynb, as_version=4))


def test_a_deleted_cell_is_deleted_in_the_other_half(course):
    notebook = nbformat.read(course.ipynb, as_version=4)
    del notebook.cells[3]
    nbformat.write(notebook, course.ipynb)
    assert course.sync() == 0
    assert "The end." not in course.source.read_text()
    course.in_source(
        SOURCE[SOURCE.index("# %%\nprint") : SOURCE.index("\n# %% [markdown]\n# The")], ""
    )
    assert course.sync() == 0
    assert "print" not in course.ipynb.read_text()


def test_two_edits_change_nothing_and_are_shown(course, capsys):
    course.in_notebook("pass", "return 'mine'")
    course.in_source("The end.", "Farewell.")
    before = course.halves
    assert course.sync() == 1
    said = capsys.readouterr().out
    assert "both edited" in said and "with git" in said
    assert "-    pass\n" in said and "+    return 'mine'" in said and "-# Farewell." in said
    assert course.halves == before


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        (
            "The end.\n\n![image.png](attachment:image.png)",
            {"image.png": {"image/png": "aGVsbG8="}},
        ),
        ("The end.\n\n# %% [markdown]\nnot a cell", {}),
    ],
)
def test_what_a_source_cannot_hold_is_refused(course, capsys, text, metadata):
    notebook = nbformat.read(course.ipynb, as_version=4)
    notebook.cells[3].source = text
    if metadata:
        notebook.cells[3].attachments = metadata
    else:
        notebook.cells[3].cell_type = "code"
        notebook.cells[3] |= {"outputs": [], "execution_count": None}
    nbformat.write(notebook, course.ipynb)
    before = course.halves
    assert course.sync() == 1 and course.halves == before
    assert "cannot hold all of the notebook: take out pasted pictures" in capsys.readouterr().out


def test_two_equal_edits_are_one_and_either_half_may_be_edited_again(course):
    course.in_notebook("pass", "return 1")
    course.in_source("pass", "return 1")
    assert course.sync() == 0
    course.in_notebook("return 1", "return 2")
    assert course.sync() == 0
    course.in_source("return 2", "return 3")
    assert course.sync() == 0
    assert "return 3" in course.ipynb.read_text()


def test_a_chapter_begun_in_lab_gets_its_source(course):
    course.source.unlink()
    assert course.sync() == 0
    assert course.source.read_text() == SOURCE


@pytest.mark.parametrize("broken", ["<<<<<<< HEAD\n{}", "{}", "[]", '{"cells": 3}', "null"])
def test_what_is_no_notebook_is_said_and_left(course, capsys, broken):
    course.ipynb.write_text(broken)
    assert course.sync() == 1
    assert capsys.readouterr().out == "00_a.ipynb is no notebook\n"
    assert course.halves == (SOURCE, broken)


@pytest.mark.parametrize(
    "chapter", manifest.load(files=False).whole.notebooks, ids=lambda one: one.notebook
)
def test_the_source_of_each_chapter_is_written_back_to_the_byte(chapter):
    import jupytext

    like = jupytext.read(chapter.source, fmt=pairs.FORMAT)
    assert pairs.text(pairs.read(chapter.ipynb), like) == chapter.source.read_text(encoding="utf-8")
